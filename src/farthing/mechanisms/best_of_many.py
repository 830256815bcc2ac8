"""Private selection among private candidates: run a private computation again and again, and release the best result.

How many of the runs count is drawn from a law that does not depend on the data, and is told to nobody. So the price is
two or three times that of one run, whatever the number of runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidBudget
from farthing.mechanisms.scores import B, restated, whole
from farthing.mechanisms.stopping import score_told
from farthing.noise.bits import system_bits
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.loss import Approx, BoundedRange, Pure, Zcdp
from farthing.privacy.numbers import exact
from farthing.privacy.renyi import Rdp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.noise.bits import BitSource
    from farthing.privacy.base import Loss
    from farthing.privacy.numbers import Number

    Candidate = Callable[[], tuple[Any, Any]]

MOST_RUNS: Final = 4096
"""Runs at most."""

LAWS: Final = {"uniform": Fraction(1), "logarithmic": Fraction(0), "steep": Fraction(-1, 2)}
"""The shapes of the law by name: a run's pure epsilon is paid 2 + shape times."""


_ONE: Final = 1 << 256


@dataclass(frozen=True, slots=True)
class Best:
    """The best result of those that counted.

    Attributes:
        score: its score.
        result: what the run returned beside it.
    """

    score: int | float
    result: Any


@dataclass(frozen=True, slots=True)
class BestOfMany:
    """Run a private computation `runs` times, count the first K of them, and release the best of these.

    K is drawn secretly from 1 ... `runs`, P[K = k] proportional to (1 - fading)^k Gamma(k + shape)/k!. All runs are
    made, whatever K is, so that neither time nor what a run leaves behind tells it. A run that raises, or whose
    score is not a finite number, counts as one without a result.

    Attributes:
        runs: how many runs are made, from 1 to `MOST_RUNS`; public.
        law: "uniform" (shape 1), "logarithmic" (shape 0) or "steep" (shape -1/2): a steeper law costs less, and lets
            fewer runs count.
        fading: how fast the law falls besides, in (0, 1); None for 1/runs. It matters for zCDP and Renyi prices only.

    Guarantee: `price` and `renyi`, for the score and the result together: pure (2 + shape) epsilon for runs of pure
        epsilon; whether there is a result is a part of it.
    Proof: docs/proofs/mechanisms.best_of_many.md; after [LiuT19; PapernotS22].
    Assumes: the runs are independent and alike, each with the stated loss for its score and its result together; no
        run raises KeyboardInterrupt by itself; what a run prints, writes, or takes in time is not in what is released.
    Rounds: prices up; K is drawn exactly.

    >>> from farthing.privacy import Pure
    >>> many = BestOfMany(100)
    >>> many.price(Pure(0.1), Pure), round(many.counted, 1)
    (Pure(epsilon=0.2), 14.3)
    >>> many.choose(lambda: (5, "found")).result
    'found'
    """

    runs: int
    law: str = "logarithmic"
    fading: Number | None = None

    def __post_init__(self) -> None:
        if whole(self.runs, "runs") > MOST_RUNS or self.law not in LAWS:
            raise InvalidBudget(
                "this many runs, or their law, are not served",
                rule=f"1 to {MOST_RUNS:,} runs; a law of {', '.join(LAWS)}",
                got=f"{self.runs!r} runs, {self.law!r}",
                next_step='runs=100, law="logarithmic"',
            )
        if self.fading is not None and not 0 < exact(self.fading, "fading") < 1:
            raise InvalidBudget(
                "fading is out of range", rule="0 < fading < 1", got=self.fading, next_step="leave it out: 1/runs"
            )

    @property
    def shape(self) -> Fraction:
        """The shape of the law, above -1."""
        return LAWS[self.law]

    @property
    def counted(self) -> float:
        """How many runs count in the mean."""
        return float(self._mean)

    @property
    def _mean(self) -> Fraction:
        return _mean(self.runs, self.shape, self._fading)

    @property
    def _fading(self) -> Fraction:
        if self.fading is None:
            return Fraction(1, self.runs) if self.runs > 1 else Fraction(1, 2)
        return exact(self.fading, "fading")

    def price(self, candidate: Loss, currency: type[B]) -> B:
        """Return the least price that a theorem gives in a ledger's currency, of all runs together.

        Args:
            candidate: the loss of one run, without delta.
            currency: Pure, Zcdp or Gdp.

        Raises:
            InvalidBudget: no theorem leads from the loss to the currency.

        >>> from farthing.privacy import Gdp, Pure, Zcdp
        >>> BestOfMany(200).price(Zcdp(0.0001), Zcdp) < BestOfMany(200).price(Pure(0.1), Zcdp)
        False
        >>> BestOfMany(5).price(Gdp(0.1), Gdp) == Gdp(0.1) * 5
        True
        """
        _require_whole(candidate)
        offers = []
        if isinstance(candidate, Pure | BoundedRange):
            offers.append(restated(Pure(candidate.amount * (2 + self.shape)), currency))
        offers.append(candidate.to(currency) * self.runs)
        if currency is Zcdp:
            offers.append(currency.of_amount(self._rho(candidate.to(Zcdp).amount)))
        return min(offers)

    def approximate(self, candidate: Approx) -> Approx:
        """Return the price of runs that are (epsilon, delta)-DP each.

        >>> BestOfMany(100).approximate(Approx(0.5, 1e-9)).epsilon()
        1.0
        """
        return Approx(candidate.amount * (2 + self.shape), min(candidate.slack * self._mean, Fraction(1)))

    def renyi(self, candidate: Loss) -> Rdp:
        """Return the price as a curve of Renyi divergences, which has an epsilon at each delta.

        >>> from farthing.privacy import Gdp
        >>> many, one = BestOfMany(1000), Gdp(0.05)
        >>> many.renyi(one).epsilon(1e-6) < Gdp.of_amount(one.amount * 1000).epsilon(1e-6)
        True
        """
        _require_whole(candidate)
        curve: Rdp = candidate if isinstance(candidate, Rdp) else candidate.to(Rdp)
        pure = candidate.amount * (2 + self.shape) if isinstance(candidate, Pure | BoundedRange) else None
        with working() as flint:
            fall, mean = -ball(flint, self._fading).log(), ball(flint, self._mean).log()
            more = [ball(flint, tau * (1 - 1 / order)) + fall / ball(flint, order) for order, tau in curve.curve]
            lifted = min(upper(each) for each in (*more, fall)) * (1 + self.shape)
            told = [(order, tau + lifted + upper(mean / ball(flint, order - 1))) for order, tau in curve.curve]
        together = {order: tau * self.runs for order, tau in curve.curve}
        return Rdp.of_curve((order, min(tau, together[order], tau if pure is None else pure)) for order, tau in told)

    def _rho(self, rho: Fraction) -> Fraction:
        """Return the zCDP of all runs, by the theorem on Renyi divergences, rounded up."""
        with working() as flint:
            one, fall, mean = ball(flint, rho), -ball(flint, self._fading).log(), ball(flint, self._mean).log()
            lifted = fall if bool(fall < one) else 2 * (one * fall).sqrt() - one
            return upper(one + 2 * (one * mean.max(flint.arb(0))).sqrt() + ball(flint, 1 + self.shape) * lifted)

    def choose(self, candidate: Candidate, *, bits: BitSource | None = None) -> Best | None:
        """Make all runs, and return the best of those that count, or None where none of these gave a result.

        Args:
            candidate: makes one run, and returns a score, larger is better, and a result. Its loss covers both.
            bits: where random bits come from; by default the operating system.

        Returns:
            the best, of equal scores the first. Nothing tells how many counted, or whether one raised.
        """
        found = [_run(candidate) for _ in range(self.runs)]
        return _best(found[: self._drawn(bits)])

    def _drawn(self, bits: BitSource | None) -> int:
        """Return how many runs count: secret. A uniform number is kept with its weight, by one coin for each factor."""
        while True:
            count = 1 + _below(self.runs, bits)
            if all(_heads(factor, bits) for factor in _factors(count, self.shape, self._fading)):
                return count


def _require_whole(candidate: Loss) -> None:
    """Refuse a loss that leaves events out: these theorems are about all of it."""
    if candidate.slack:
        raise InvalidBudget(
            "a run leaves events out",
            rule="the loss of a run without delta",
            got=repr(candidate),
            next_step="approximate(Approx(epsilon, delta)) has a price with delta",
        )


def _run(candidate: Candidate) -> Best | None:
    """Make one run; one that raises has no result, and what it raised is told to nobody."""
    try:
        score, result = candidate()
        told = score_told(score)
        return Best(told, result) if math.isfinite(told) else None
    except KeyboardInterrupt:
        stopped = True
    except BaseException:  # noqa: BLE001  # whatever it raises, an exit too, is an output of the run: no result
        stopped = False
    if stopped:  # a bare one, since what the run's own says may tell of its rows
        raise KeyboardInterrupt
    return None


def _best(found: list[Best | None]) -> Best | None:
    """Return the first of the best results."""
    there = [each for each in found if each is not None]
    return max(there, key=lambda each: each.score) if there else None


def _factors(count: int, shape: Fraction, fading: Fraction) -> Iterator[Fraction]:
    """Give the factors, at most 1 each, of the weight with which so many runs count; 1 has weight 1."""
    return ((k + shape) / (k + 1) * (1 - fading) for k in range(1, count))


@lru_cache(maxsize=64)
def _mean(runs: int, shape: Fraction, fading: Fraction) -> Fraction:
    """Return how many runs count in the mean, rounded up: weights are held to 2^-256 of the first."""
    weight = whole_sum = first_sum = _ONE
    for k, factor in enumerate(_factors(runs, shape, fading), 2):
        weight = math.floor(weight * factor)
        whole_sum += weight
        first_sum += k * (weight + k)  # each was rounded down k times at most
    return Fraction(first_sum, whole_sum)


def _heads(chance: Fraction, bits: BitSource | None) -> bool:
    """Toss a coin with an exact chance of heads."""
    return _below(chance.denominator, bits) < chance.numerator


def _below(most: int, bits: BitSource | None) -> int:
    """Return a whole number that is exactly uniform on 0 ... most - 1, by redrawing."""
    source, width = system_bits() if bits is None else bits, max(1, (most - 1).bit_length())
    words = -(-width // 64)
    while True:
        drawn = 0
        for word in source.words(words).tolist():
            drawn = drawn << 64 | word
        drawn >>= 64 * words - width
        if drawn < most:
            return drawn
