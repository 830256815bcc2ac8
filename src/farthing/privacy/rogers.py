"""The filters of Rogers, Samorodnitsky, Wu and Ramdas (2023), by theorem, so that their comparison can be rerun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from farthing.errors import InvalidBudget
from farthing.privacy import convert
from farthing.privacy.additive import Priced, PureFilter, ZcdpFilter, conversion_delta, priced, split, too_much
from farthing.privacy.ex_post import BrownianRun, ExPost, positive
from farthing.privacy.loss import Loss, Pure, Zcdp
from farthing.privacy.numbers import exact, within_unit

if TYPE_CHECKING:
    from typing import Self

    from farthing.privacy.numbers import Number

ZERO = Fraction(0)
NO_RHO, NO_EPSILON = Zcdp(0), Pure(0)


@dataclass(frozen=True, slots=True)
class RogersZcdpFilter:
    """Theorem 2 of Rogers et al.: stop before rho + 2 sqrt(rho log(1/delta)) would exceed epsilon.

    Attributes:
        epsilon, delta: the promise.
        set_aside: the part of delta for approximate terms; the conversion uses the rest.
        spent: the zCDP loss let through so far.
        delta_spent: the deltas of approximate terms so far.

    Guarantee: everything let through is (epsilon, delta)-DP.
    Proof: [RogersSRW23, Thm 2], from [WhitehouseRRW23, Thm 1] and [BunS16, Prop. 1.3].
    Assumes: asked before the draw; each part is delta_i-approximate rho_i-zCDP given the past.
    Rounds: the total rho down to whole farthings.

    >>> RogersZcdpFilter(epsilon=1, delta=1e-6).remaining
    Zcdp(rho=0.0174689)
    """

    takes: ClassVar[tuple[type, ...]] = (Loss,)

    epsilon: Number
    delta: Number
    set_aside: Number = ZERO
    spent: Zcdp = NO_RHO
    delta_spent: Fraction = ZERO

    def __post_init__(self) -> None:
        positive(self.epsilon, "epsilon")
        conversion_delta(self.delta, self.set_aside)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number, set_aside: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP."""
        return cls(epsilon, delta, set_aside)

    @property
    def _books(self) -> ZcdpFilter:
        """The additive filter behind the theorem."""
        total = _classic(Fraction(self.epsilon), conversion_delta(self.delta, self.set_aside))
        return ZcdpFilter(total, self.spent, self.set_aside, self.delta_spent)

    def can_spend(self, loss: Priced, *, delta: Number = 0) -> bool:
        """Tell whether a release of this loss may still be drawn; asking costs nothing."""
        if not isinstance(loss, self.takes):
            raise InvalidBudget(
                f"{type(self).__name__} has no theorem for it",
                rule=" or ".join(kind.__name__ for kind in self.takes),
                got=repr(loss),
                next_step="Brownian runs go to RogersUnifiedFilter, ExPost runs to RogersExPostFilter",
            )
        return self._books.can_spend(loss, delta=delta)

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit."""
        if not self.can_spend(loss, delta=delta):
            raise too_much(loss, self.remaining, delta, self._books.delta_left)
        after = self._books.spend(loss, delta=delta)
        return replace(self, spent=after.spent, delta_spent=after.delta_spent)

    @property
    def remaining(self) -> Zcdp:
        """The zCDP loss that may still be spent."""
        return self._books.remaining


@dataclass(frozen=True, slots=True)
class RogersUnifiedFilter(RogersZcdpFilter):
    """Section 6 of Rogers et al.: zCDP mechanisms and Brownian runs, stopped at t, in one sum at rho = t D^2/2.

    Guarantee: everything let through is (epsilon, delta)-DP, runs stopped by what they showed included.
    Proof: [RogersSRW23, section 6]; docs/proofs/privacy.filters.md, where a run is a row of fresh measurements.
    Assumes: each stretch of a run is asked for before it is drawn; stopping looks at what was shown only.
    Rounds: the total rho down to whole farthings.

    >>> look = BrownianRun(stop=Fraction(1, 100))
    >>> books = RogersUnifiedFilter(epsilon=1, delta=1e-6).spend(Zcdp(0.001)).spend(look)
    >>> books.can_spend(look.further(Fraction(3, 100))), books.can_spend(look.further(Fraction(4, 100)))
    (True, False)
    """

    takes = (Loss, BrownianRun)


@dataclass(frozen=True, slots=True)
class RogersExPostFilter:
    """Lemma 5.2 of Rogers et al.: ex-post losses add, if no chosen ex-post function can exceed what remains.

    `spend` books the declared cap before the run starts; `settle` lowers it to what the run turned out to lose.
    Whatever is spent next closes the run: a cap that was not settled by then stays spent.

    Attributes:
        epsilon, delta: the promise; delta bounds the sum of the runs' own deltas.
        spent: the realised losses so far, open cap included.
        delta_spent: the runs' deltas so far.
        open_cap: the cap of the run that may still be settled; zero when there is none.

    Guarantee: everything let through is (epsilon, delta)-DP.
    Proof: [RogersSRW23, Lemma 5.2]; docs/proofs/privacy.filters.md.
    Assumes: each run's loss statement holds with probability 1 - delta_i given the past, and never passes its cap;
        answer and realised loss leave together (statements with delta_i > 0 do not survive post-processing).
    Rounds: nothing; boundaries round up.

    >>> books = RogersExPostFilter(epsilon=1, delta=1e-6).spend(ExPost(cap=Pure(0.75), delta=1e-8))
    >>> books.settle(Pure(0.25)).remaining
    Pure(epsilon=0.75)
    """

    epsilon: Number
    delta: Number = 0
    spent: Pure = NO_EPSILON
    delta_spent: Fraction = ZERO
    open_cap: Pure = NO_EPSILON

    def __post_init__(self) -> None:
        positive(self.epsilon, "epsilon")
        if exact(self.delta, "delta"):
            within_unit(self.delta)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP."""
        return cls(epsilon, delta)

    @property
    def _books(self) -> PureFilter:
        """The additive filter behind the lemma."""
        return PureFilter(Pure(self.epsilon), self.spent, self.delta, self.delta_spent)

    def can_spend(self, loss: ExPost | Priced, *, delta: Number = 0) -> bool:
        """Tell whether a run of at most this loss may start: its cap and its delta must fit in what remains."""
        cap, own = _declared(loss)
        return self._books.can_spend(cap, delta=own + exact(delta, "delta"))

    def spend(self, loss: ExPost | Priced, *, delta: Number = 0) -> Self:
        """Return the filter with the cap of the run booked; refuse what does not fit."""
        cap, own = _declared(loss)
        after = self._books.spend(cap, delta=own + exact(delta, "delta"))
        return replace(self, spent=after.spent, delta_spent=after.delta_spent, open_cap=cap)

    def settle(self, realised: Pure) -> Self:
        """Return the filter with the open run charged what it lost; its delta stays spent."""
        if not self.open_cap or realised > self.open_cap:
            raise InvalidBudget(
                "the realised loss is not one that was let through",
                rule=f"at most the open cap, {self.open_cap}",
                got=repr(realised),
                next_step="declare a cap that the run cannot pass, before it starts",
            )
        return replace(self, spent=self.spent - self.open_cap + realised, open_cap=NO_EPSILON)

    @property
    def remaining(self) -> Pure:
        """The epsilon that may still be spent."""
        return self._books.remaining


class Remaining(NamedTuple):
    """What is left on each side of the concurrent filter."""

    zcdp: Zcdp
    ex_post: Pure


@dataclass(frozen=True, slots=True)
class RogersConcurrentFilter:
    """Theorem 3 of Rogers et al.: zCDP and ex-post mechanisms side by side, interleaved, each with its own total.

    Attributes:
        zcdp: the filter of Theorem 2, for losses that have a zCDP price.
        ex_post: the filter of Lemma 5.2, for `ExPost` runs (wrap a pure loss in `ExPost` to send it there).

    Guarantee: everything let through is (epsilon, delta)-DP, for the sums of the two epsilons and of the two deltas.
    Proof: [RogersSRW23, Thm 3]; directly in docs/proofs/privacy.filters.md.
    Assumes: what the two filters assume.
    Rounds: as the two filters do.

    >>> books = RogersConcurrentFilter.from_epsilon(1, delta=1e-6)
    >>> books.spend(Zcdp(0.001)).spend(ExPost(Pure(0.25), 1e-8)).settle(Pure(0.125)).remaining
    Remaining(zcdp=Zcdp(rho=0.00323511), ex_post=Pure(epsilon=0.375))
    """

    zcdp: RogersZcdpFilter
    ex_post: RogersExPostFilter

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number, share: Number = Fraction(1, 2)) -> Self:
        """Return the filter for (epsilon, delta)-DP; `share` of both goes to the ex-post side."""
        total, small, part = positive(epsilon, "epsilon"), within_unit(delta), within_unit(share, "share")
        return cls(
            RogersZcdpFilter(total * (1 - part), small * (1 - part)), RogersExPostFilter(total * part, small * part)
        )

    @property
    def epsilon(self) -> Fraction:
        """The promise: the sum of the two epsilons, exact."""
        return Fraction(self.zcdp.epsilon) + Fraction(self.ex_post.epsilon)

    @property
    def delta(self) -> Fraction:
        """The promise: the sum of the two deltas, exact."""
        return Fraction(self.zcdp.delta) + Fraction(self.ex_post.delta)

    def can_spend(self, loss: ExPost | Priced, *, delta: Number = 0) -> bool:
        """Tell whether a release of this loss may still be drawn, on the side where it belongs."""
        if isinstance(loss, ExPost):
            return self.ex_post.can_spend(loss, delta=delta)
        return self.zcdp.can_spend(loss, delta=delta)

    def spend(self, loss: ExPost | Priced, *, delta: Number = 0) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit on its side."""
        if isinstance(loss, ExPost):
            return replace(self, ex_post=self.ex_post.spend(loss, delta=delta))
        return replace(self, zcdp=self.zcdp.spend(loss, delta=delta))

    def settle(self, realised: Pure) -> Self:
        """Return the filter with the open ex-post run charged what it lost."""
        return replace(self, ex_post=self.ex_post.settle(realised))

    @property
    def remaining(self) -> Remaining:
        """What is left on each side; neither can be moved to the other."""
        return Remaining(self.zcdp.remaining, self.ex_post.remaining)


def _declared(loss: ExPost | Priced) -> tuple[Pure, Fraction]:
    """Return the cap and the delta of a run; a loss known beforehand is its own cap."""
    if isinstance(loss, ExPost):
        return loss.cap, Fraction(loss.delta)
    rest, own = split(loss)
    return priced(rest, Pure), own


@lru_cache(maxsize=256)
def _classic(epsilon: Fraction, delta: Fraction) -> Zcdp:
    """Return the rho that the classic conversion turns into (epsilon, delta)-DP, rounded down to whole farthings."""
    return Zcdp.of_amount(convert.zcdp_from_epsilon_classic(epsilon, delta))


__all__ = ["Remaining", "RogersConcurrentFilter", "RogersExPostFilter", "RogersUnifiedFilter", "RogersZcdpFilter"]
