"""Lower bounds on a loss from samples of outputs on two neighbouring data sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from farthing.audit.cells import OutputCells, sample_of
from farthing.audit.rates import Rates
from farthing.errors import InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from farthing.audit.cells import Counts, Mask
    from farthing.privacy.loss import Loss

Aim: TypeAlias = Literal["epsilon", "mu", "rho", "delta"]

CONFIDENCE: Final = 0.999
SLACK: Final = 1e-9
"""By what part a bound must pass a claim to disprove it: room for rounding."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """What a mechanism surely loses, at least.

    Attributes:
        epsilon_lower: no (epsilon, delta)-DP below this epsilon, with the confidence.
        delta: the delta that goes with it.
        confidence: the chance, over the outputs, that the bound is one.
        samples: how many outputs on each of the two data sets, or (guesses,) of a single run.
        event: what told the two apart, in words.
        rates: the rates of that event, which bound every other currency as well; None after a single run.

    Guarantee: with the confidence, whatever the mechanism, its loss is at least what is said here.
    Proof: docs/proofs/audit.bounds.md.
    Assumes: outputs on each data set are independent runs of the one mechanism.
    Rounds: `exceeds` leaves a part in 10^9 for double precision.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    samples: tuple[int, ...]
    event: str
    rates: Rates | None = None

    @property
    def mu_lower(self) -> float:
        """The least mu of Gaussian DP."""
        return self._rates().mu

    @property
    def rho_lower(self) -> float:
        """The least rho of zCDP."""
        return self._rates().rho

    def delta_lower(self, epsilon: float) -> float:
        """Return the least delta at an epsilon."""
        return self._rates().delta(epsilon)

    def against(self, claim: Loss) -> float:
        """Return the lower bound in a claim's own parameter (epsilon, rho, mu)."""
        return self.epsilon_lower if self.rates is None else self.rates.against(claim)

    def exceeds(self, claim: Loss) -> bool:
        """Tell whether a claimed loss is disproved."""
        return self.against(claim) > claim.value * (1 + SLACK)

    def _rates(self) -> Rates:
        """Return the rates, or refuse where there are none."""
        if self.rates is None:
            raise InvalidTarget(
                "a single run bounds epsilon only",
                rule="mu, rho and delta are bounded from the rates of an event",
                next_step="draw two samples and use two_samples",
            )
        return self.rates


def two_samples(
    without: Any,
    present: Any,
    *,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
    aim: Aim = "epsilon",
    epsilon: float = 0.0,
) -> LowerBound:
    """Bound a loss from below by outputs on D and on D' = D plus one unit.

    The first quarter of each sample suggests events and the second chooses the one that tells most; the second half
    measures its two rates, with exact (Clopper-Pearson) bounds. They bound epsilon, mu, rho and delta at once.

    Args:
        without: outputs on D: numbers (NaN is an output like any other) or names.
        present: outputs on D'.
        delta: the delta at which epsilon is bounded.
        confidence: the chance that the bound is one.
        aim: what the event is chosen for: "epsilon", "mu", "rho" or "delta".
        epsilon: with aim="delta", the epsilon at which delta is bounded.

    Raises:
        InvalidTarget: fewer than four outputs, or a confidence or delta out of range.

    >>> import numpy as np
    >>> noise = np.tile([-1, 0, 0, 1], 1000)
    >>> bool(two_samples(noise, noise + 3).epsilon_lower > 4)
    True
    """
    significance = 1 - checked(confidence, delta)
    samples = sample_of(without, "without"), sample_of(present, "present")
    if samples[0].dtype.kind == "U" or samples[1].dtype.kind == "U":
        samples = samples[0].astype(str), samples[1].astype(str)
    cells = OutputCells.of(*(sample[: len(sample) // 4] for sample in samples))
    parts = [[cells.counts(part) for part in _parts(sample)] for sample in samples]
    suggest, choose, measure = ((absent, there) for absent, there in zip(*parts, strict=True))

    def aimed(rates: Rates) -> float:
        """Return what the aim makes of two rates."""
        options = {"epsilon": lambda: rates.epsilon(delta), "delta": lambda: rates.delta(epsilon)}
        return options.get(aim, lambda: float(getattr(rates, aim)))()

    mask, flipped = _chosen(list(_suggested(cells, *suggest)), *choose, significance, aimed)
    rates = _rates(*measure, mask, flipped, significance)
    words = cells.words(mask) + (", without the unit" if flipped else "")
    return LowerBound(rates.epsilon(delta), delta, confidence, (len(samples[0]), len(samples[1])), words, rates)


def renyi_lower(
    without: Any, present: Any, *, order: float = 2.0, confidence: float = CONFIDENCE, cells: int = 8
) -> LowerBound:
    """Bound the Renyi divergence of an order from below, from D' to D, by a histogram.

    The first half of the samples cuts the outputs into cells; on the second half each cell has exact bounds, all at
    once. The divergence of the outputs is at least that of their cells. Its `epsilon_lower` is the bound on D_order
    itself, as D_order <= epsilon for every epsilon-DP mechanism.

    Args:
        without: outputs on D, numbers or names.
        present: outputs on D'.
        order: the order, > 1.
        confidence: the chance that the bound is one.
        cells: the most cells; fewer are surer, more are finer.

    Raises:
        InvalidTarget: fewer than four outputs, or a number out of range.
    """
    significance = 1 - checked(confidence, 0.0)
    if not order > 1 or cells < 2:
        raise InvalidTarget(
            "the order or the number of cells is out of range",
            rule="order > 1, cells >= 2",
            got=f"order={order}, cells={cells}",
            next_step="order=2",
        )
    samples = sample_of(without, "without"), sample_of(present, "present")
    partition = OutputCells.of(*(sample[: len(sample) // 2] for sample in samples))
    training = tuple(partition.counts(sample[: len(sample) // 2]) for sample in samples)
    held = tuple(partition.counts(sample[len(sample) // 2 :]) for sample in samples)
    groups = _grouped(training, cells)
    each = significance / (2 * len(groups))
    total = 0.0
    for group in groups:
        low = rate_lower(int(held[1][group].sum()), int(held[1].sum()), each)
        high = rate_upper(int(held[0][group].sum()), int(held[0].sum()), each)
        total += low**order * high ** (1 - order)
    value = max(0.0, log(total) / (order - 1)) if total > 0 else 0.0
    sizes = len(samples[0]), len(samples[1])
    return LowerBound(value, 0.0, confidence, sizes, f"D_{order:g} over {len(groups)} cells")


def rate_lower(hits: int, runs: int, significance: float) -> float:
    """Return a bound that is above the chance of an event with at most this significance (Clopper-Pearson)."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, runs - hits + 1, significance)) if hits else 0.0


def rate_upper(hits: int, runs: int, significance: float) -> float:
    """Return a bound that is below the chance of an event with at most this significance (Clopper-Pearson)."""
    return 1 - rate_lower(runs - hits, runs, significance)


def checked(confidence: float, delta: float) -> float:
    """Return the confidence, or refuse it and a delta that is none.

    Raises:
        InvalidTarget: out of range, or NaN.
    """
    if not 0.5 <= confidence < 1 or not 0 <= delta < 1:
        raise InvalidTarget(
            "an audit needs a confidence and a delta",
            rule="0.5 <= confidence < 1, 0 <= delta < 1",
            got=f"confidence={confidence}, delta={delta}",
            next_step="confidence=0.999, delta=0",
        )
    return confidence


def _parts(sample: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the first quarter of a sample, the second, and the second half."""
    quarter, half = len(sample) // 4, len(sample) // 2
    return sample[:quarter], sample[quarter:half], sample[half:]


def _suggested(cells: OutputCells, without: Counts, present: Counts) -> Iterator[tuple[Mask, bool]]:
    """Yield events that may tell, and whether they are likelier without the unit."""
    for mask in cells.events(without, present):
        yield mask, False
    for mask in cells.events(present, without):
        yield mask, True


def _chosen(
    events: list[tuple[Mask, bool]],
    without: Counts,
    present: Counts,
    significance: float,
    aimed: Callable[[Rates], float],
) -> tuple[Mask, bool]:
    """Return the event that tells most by counts of other outputs than suggested it."""
    scores = [aimed(_rates(without, present, *event, significance)) for event in events]
    return events[scores.index(max(scores))]


def _rates(without: Counts, present: Counts, mask: Mask, flipped: bool, significance: float) -> Rates:
    """Return sure rates of an event: at least with the unit, at most without it, or the other way round."""
    more, fewer = (without, present) if flipped else (present, without)
    hit = rate_lower(int(more[mask].sum()), int(more.sum()), significance / 2)
    return Rates(hit, rate_upper(int(fewer[mask].sum()), int(fewer.sum()), significance / 2))


def _grouped(training: tuple[Counts, ...], most: int) -> list[NDArray[np.int64]]:
    """Return cells joined into groups of alike ratio, of about equal weight on both data sets together."""
    import numpy as np

    without, present = training
    order = np.argsort((present + 0.5) / (without + 0.5), kind="stable")
    weight = np.cumsum((without + present)[order])
    place = np.minimum((weight - 1) * most // max(int(weight[-1]), 1), most - 1)
    return [order[place == group] for group in np.unique(place)]
