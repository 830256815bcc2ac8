"""What contribution bounds cut, and which bounds to choose, from noisy histograms of how units spread.

Four histograms, each unit in one place of each: by the number of groups it is in, by its most rows in one group, by its
least and by its greatest value. Places are powers of two, so every figure here is known to within a factor of two at
best, besides the noise; intervals count both. All of it is computed from released numbers: it costs nothing more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.errors import InvalidTarget
from farthing.normal import ndtri
from farthing.privacy.loss import Gdp, Pure

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.target import Target

    Float64 = NDArray[np.float64]
    Ends = tuple[Float64, Float64]

HISTOGRAMS: Final = 4
PLACES: Final = 32
BUCKETS: Final = 129
_ZERO: Final = 64
_BEYOND: Final = 8.0  # units may be so many times as large as all that stand out, and the intervals still hold
_CLEAR: Final = 5.0  # a place stands out from so many noises on: of 322 empty ones none does, but for a chance of 10^-4
_CLEAR_SCALES: Final = 14.3  # the same of Laplace noise, in its scales


def powers() -> tuple[Float64, Float64]:
    """Return the least and greatest count of each of the 32 places, 2^k and 2^(k+1) - 1."""
    least: Float64 = np.ldexp(1.0, np.arange(PLACES))
    return least, 2 * least - 1


def magnitudes() -> tuple[Float64, Float64]:
    """Return the least and greatest value of each of the 129 places: [2^(k-33), 2^(k-32)) and its mirror image.

    >>> low, high = magnitudes()
    >>> float(low[64]), float(low[64 + 33]), float(high[64 + 33]), float(low[64 - 33]), float(high[64 - 33])
    (0.0, 1.0, 2.0, -2.0, -1.0)
    """
    k = np.arange(1, _ZERO + 1)
    near, far = 2.0 ** (k - 33), 2.0 ** (k - 32)
    return np.concatenate([-far[::-1], [0.0], near]), np.concatenate([-near[::-1], [0.0], far])


class SpreadNoise(NamedTuple):
    """The noise of one place: its standard deviation, and whether it is two-sided geometric."""

    sigma: float
    geometric: bool

    @property
    def clear(self) -> float:
        """From how many units on a place stands out from the noise."""
        return _CLEAR_SCALES * self.sigma / math.sqrt(2) + 1 if self.geometric else _CLEAR * self.sigma

    def reach(self, chance: float) -> float:
        """Return how far it goes beyond zero, on one side, with this chance; geometric noise a step further."""
        if self.geometric:
            return self.sigma / math.sqrt(2) * math.log(1 / (2 * chance)) + 1
        return self.sigma * float(-ndtri(chance))


@dataclass(frozen=True, slots=True, eq=False)
class NoisySpread:
    """The four histograms with noise on every place: Gaussian, or two-sided geometric under a pure budget. Released.

    Attributes:
        groups: float64[32], units by floor(log2) of the number of groups they are in.
        rows: float64[32], units by floor(log2) of their most rows in one group.
        least, greatest: float64[129], units by the place of their least and greatest value.
        sigma: the standard deviation of the noise of each number.
        geometric: whether the noise is two-sided geometric.

    Guarantee: measured together, the four cost mu^2 = 4/sigma^2, or epsilon = 4 sqrt(2)/sigma: `loss`.
    Proof: [DongRS22, Cor. 3.3] and [GhoshRS12]; one unit moves one place of each histogram by 1, so the L2 sensitivity
        is 2, and that of the L1 norm 4.
    Assumes: add/remove one unit; exact noise of at least that sigma.
    Rounds: the loss up.

    >>> nothing = NoisySpread(np.zeros(32), np.zeros(32), np.zeros(129), np.zeros(129), sigma=10.0)
    >>> nothing.loss
    Gdp(mu=0.2)
    """

    groups: Float64
    rows: Float64
    least: Float64
    greatest: Float64
    sigma: float
    geometric: bool = False

    def __post_init__(self) -> None:
        sizes = tuple(len(each) for each in (self.groups, self.rows, self.least, self.greatest))
        if sizes != (PLACES, PLACES, BUCKETS, BUCKETS) or not self.sigma > 0:
            raise InvalidTarget(
                "the noisy numbers do not have the right shape",
                rule="32, 32, 129 and 129 noisy numbers, sigma > 0",
                got=f"{sizes}, sigma={self.sigma}",
                next_step="add the noise to all four histograms of the engine's spread",
            )

    @property
    def loss(self) -> Gdp | Pure:
        """What the measurement cost."""
        return Pure(HISTOGRAMS * math.sqrt(2) / self.sigma) if self.geometric else Gdp(2 / self.sigma)

    @property
    def noise(self) -> SpreadNoise:
        """The noise of one place."""
        return SpreadNoise(self.sigma, self.geometric)

    @property
    def units(self) -> float:
        """How many units there are, at least one, from the histogram of groups."""
        return max(float(_used(self.groups, self.noise).sum()), 1.0)


class Share(NamedTuple):
    """A share with its interval, all in [0, 1]."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{_percent(self.value)} ({_percent(self.lower)} to {_percent(self.upper)})"


def _percent(share: float) -> str:
    """Return a share in percent, of two figures and at least a hundredth."""
    shown = 100 * share
    return f"{shown:.0f} %" if shown >= 10 or shown < 0.005 else f"{float(f'{shown:.2g}'):g} %"


@dataclass(frozen=True, slots=True, repr=False)
class ContributionReport:
    """What bounds cut, as estimated from a noisy spread.

    Attributes:
        units_groups: share of units that are in more than max_groups groups.
        groups: share of all (unit, group) pairs that are cut by max_groups.
        rows: share of rows, in each unit's fullest group, that are cut by max_rows.
        units_value: share of units with a value outside [lower, upper]; None without clamps.
        value: share of the size of the units' extreme values that clamping changes; None without clamps.
        total_rows: about how many rows all units have: units * mean groups * mean rows in the fullest group.
        confidence: of each interval.
        hidden: how many units a place must have to stand out from the noise.
    """

    units_groups: Share
    groups: Share
    rows: Share
    units_value: Share | None
    value: Share | None
    total_rows: float
    confidence: float
    hidden: float

    @property
    def kept(self) -> Share:
        """The share of rows that is kept, as estimated, taking each unit's rows to lie as in its fullest group."""
        groups, rows = self.groups, self.rows
        ends = ((groups.value, rows.value), (groups.upper, rows.upper), (groups.lower, rows.lower))
        return Share(*((1 - each) * (1 - other) for each, other in ends))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [
            f"max_groups cuts {self.groups} of the pairs of unit and group; {self.units_groups} of the units lose some",
            f"max_rows cuts {self.rows} of the rows in each unit's fullest group",
        ]
        if self.units_value is not None and self.value is not None:
            lines.append(
                f"lower and upper cut {self.value} of the size of the units' extreme values; {self.units_value} of the "
                "units have a value outside"
            )
        hidden = f"sizes of fewer than about {self.hidden:,.3g} units do not stand out from the noise"
        sure = f"intervals allow for these, and hold with {100 * self.confidence:.4g} %"
        notes = [
            "estimated from noisy counts in powers of two: a bound inside such a step is known to a factor of two",
            hidden,
            f"{sure} unless units are more than {_BEYOND:.0f} times as large as all that stand out",
        ]
        return "\n".join([*lines, f"({'; '.join(notes)})"])


def report(
    spread: NoisySpread,
    *,
    max_groups: int,
    max_rows: int,
    lower: float | None = None,
    upper: float | None = None,
    confidence: float = 0.95,
) -> ContributionReport:
    """Return what these bounds cut.

    Guarantee: each interval holds its share with probability at least `confidence`, provided that no unit lies in a
        place more than three above all those that stand out from the noise (8 times as large), and values below 2^-32
        count as 0.
    Proof: docs/proofs/accuracy.quantile_bisection.md, "Shares".
    Assumes: independent noise of the stated law and sigma.
    Rounds: nothing.

    >>> units = np.zeros(32); units[0], units[3] = 9_000, 1_000
    >>> spread = NoisySpread(units, units, np.zeros(129), np.zeros(129), sigma=1.0)
    >>> print(report(spread, max_groups=4, max_rows=100).units_groups)
    10 % (10 % to 11 %)
    """
    beta, noise = 1 - confidence, spread.noise
    many = powers()
    value = units_value = None
    if lower is not None and upper is not None:
        value, units_value = _clamped(spread, lower, upper, beta)
    groups, pairs = _cut(spread.groups, noise, many, float(max_groups), beta)
    rows, fullest = _cut(spread.rows, noise, many, float(max_rows), beta)
    least, most = many
    over = (least > max_groups).astype(np.float64), (most > max_groups).astype(np.float64)
    units_groups = _share(spread.groups, noise, over, _each(PLACES), beta)
    total = pairs * fullest / spread.units
    return ContributionReport(units_groups, groups, rows, units_value, value, total, confidence, noise.clear)


def _cut(cells: Float64, noise: SpreadNoise, sizes: Ends, bound: float, beta: float) -> tuple[Share, float]:
    """Return the share that is above a bound, of sizes known to their places, and about how much there is in all."""
    shares = 1 - np.minimum(bound / sizes[0], 1.0), 1 - np.minimum(bound / sizes[1], 1.0)
    all_of_it = max(float(_used(cells, noise) @ (sizes[0] + sizes[1])) / 2, 1.0)
    return _share(cells, noise, shares, sizes, beta), all_of_it


def _clamped(spread: NoisySpread, lower: float, upper: float, beta: float) -> tuple[Share, Share]:
    """Return the share of the extreme values' size that clamping changes, and the share of units it touches."""
    # Both histograms side by side: the least values below `lower`, the greatest above `upper`.
    ends = np.stack(magnitudes())
    beyond = np.concatenate([np.maximum(lower - ends, 0.0), np.maximum(ends - upper, 0.0)], axis=1)
    size = np.abs(np.concatenate([ends, ends], axis=1))
    share = np.sort(np.divide(np.minimum(beyond, size), size, out=np.zeros_like(size), where=size > 0), axis=0)
    size.sort(axis=0)
    cells = np.concatenate([spread.least, spread.greatest])
    value = _share(cells, spread.noise, (share[0], share[1]), (size[0], size[1]), beta)
    touched = np.sort((beyond > 0).astype(np.float64), axis=0)
    left, right = (
        _share(each, spread.noise, (touched[0, at], touched[1, at]), _each(BUCKETS), beta / 2)
        for each, at in ((spread.least, slice(BUCKETS)), (spread.greatest, slice(BUCKETS, None)))
    )
    either = Share(max(left.value, right.value), max(left.lower, right.lower), min(left.upper + right.upper, 1.0))
    return value, either


def _each(places: int) -> Ends:
    """Return sizes of one for each unit."""
    return np.ones(places), np.ones(places)


def _share(cells: Float64, noise: SpreadNoise, shares: Ends, sizes: Ends, beta: float) -> Share:
    """Return sum(share * size)/sum(size) over units with an interval, both known to lie between their place's ends."""
    seen = _used(cells, noise) * (sizes[0] + sizes[1])
    value = float(seen @ (shares[0] + shares[1])) / 2 / max(float(seen.sum()), 1e-300)
    lower = 1 - _most(cells, noise, 1 - shares[0], sizes, beta)
    upper = _most(cells, noise, shares[1], sizes, beta)
    return Share(min(max(value, lower), upper), lower, upper)


def _most(cells: Float64, noise: SpreadNoise, shares: Float64, sizes: Ends, beta: float) -> float:
    """Return a bound that sum(share * size)/sum(size) exceeds with probability at most beta/2.

    It exceeds s only if the sum of (share - s) * size over units is positive, and that sum is bounded with each place's
    sizes at their worse end and its units as far from what was seen as the noise of all places together allows. Places
    more than three above any that stands out are taken as empty: a single unit of 2^31 rows would outweigh all others.
    """
    reach = noise.reach(beta / (2 * len(cells)))
    used = _used(cells, noise) > 0
    if not used.any():
        return 1.0
    seen = sizes[1] < 2 * _BEYOND * sizes[1].max(where=used, initial=0.0)
    few, many = seen * np.maximum(cells - reach, 0.0) * sizes[0], seen * np.maximum(cells + reach, 0.0) * sizes[1]
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        gain = shares - middle
        low, high = (low, middle) if (gain * np.where(gain > 0, many, few)).sum() <= 0 else (middle, high)
    return high


def _used(cells: Float64, noise: SpreadNoise) -> Float64:
    """Return the cells that stand clearly above the noise, zero elsewhere."""
    return np.where(cells > noise.clear, cells, 0.0)


class ChosenBounds(NamedTuple):
    """Bounds with the least estimated error; the fields of `query.Bounds`.

    Attributes:
        max_groups, max_rows: powers of two.
        lower, upper: 0 or signed powers of two; None where there is no value.
    """

    max_groups: int
    max_rows: int
    lower: float | None
    upper: float | None


def auto_bounds(
    spread: NoisySpread, noise: Callable[[ChosenBounds], float], *, groups: int = 1, of_values: bool = True
) -> ChosenBounds:
    """Return the bounds with the least total error, bias estimate and noise, in the units of the answer.

    Args:
        spread: how units spread; released.
        noise: the error that noise leaves in one group's answer under given bounds, at the price that is to be paid:
            usually proportional to sqrt(max_groups) * max_rows * max(|lower|, |upper|).
        groups: how many groups there are; the bias is shared among them.
        of_values: whether values are added (sums, means); False for counts.

    Bounds are tried one after the other, from the widest, until none of them gets better: every step lowers the
    estimated error, so the end is at least as good as no cut at all.

    >>> units = np.zeros(32); units[0], units[5] = 100_000, 20
    >>> spread = NoisySpread(units, units, np.zeros(129), np.zeros(129), sigma=2.0)
    >>> auto_bounds(spread, lambda b: 500 * b.max_groups**0.5 * b.max_rows, of_values=False)
    ChosenBounds(max_groups=1, max_rows=1, lower=None, upper=None)
    """
    tried: dict[ChosenBounds, float] = {}

    def error(bounds: ChosenBounds) -> float:
        if bounds not in tried:
            tried[bounds] = _bias(spread, bounds) / groups + noise(bounds)
        return tried[bounds]

    best = _widest(spread, of_values=of_values)
    while True:
        before = best
        for others in (_clamps, _row_bounds, _group_bounds):
            best = min([best, *others(best)], key=error)
        if best == before:
            return best


def _group_bounds(bounds: ChosenBounds) -> list[ChosenBounds]:
    """Return the same bounds with every max_groups."""
    return [bounds._replace(max_groups=1 << k) for k in range(31)]


def _row_bounds(bounds: ChosenBounds) -> list[ChosenBounds]:
    """Return the same bounds with every max_rows."""
    return [bounds._replace(max_rows=1 << k) for k in range(31)]


def _clamps(bounds: ChosenBounds) -> list[ChosenBounds]:
    """Return the same bounds with every other lower, and with every other upper; none for counts."""
    if bounds.lower is None or bounds.upper is None:
        return []
    edges = np.unique(np.concatenate(magnitudes())).tolist()
    raised = [bounds._replace(lower=edge) for edge in edges if edge < bounds.upper]
    return raised + [bounds._replace(upper=edge) for edge in edges if edge > bounds.lower]


def _widest(spread: NoisySpread, *, of_values: bool) -> ChosenBounds:
    """Return bounds that cut nothing that stands above the noise."""
    tops = [int(np.flatnonzero(_used(cells, spread.noise)).max(initial=0)) for cells in (spread.groups, spread.rows)]
    widest = ChosenBounds(2 ** min(tops[0] + 1, 30), 2 ** min(tops[1] + 1, 30), None, None)
    if not of_values:
        return widest
    low, high = magnitudes()
    used = np.flatnonzero(_used(spread.least, spread.noise) + _used(spread.greatest, spread.noise))
    lower, upper = (float(low[used[0]]), float(high[used[-1]])) if used.size else (0.0, 1.0)
    return widest._replace(lower=min(lower, 0.0), upper=max(upper, 2.0**-32))


def _bias(spread: NoisySpread, bounds: ChosenBounds) -> float:
    """Return about how much of all groups' answers together the bounds cut, rows or value."""
    noise, many = spread.noise, powers()
    groups, rows = _used(spread.groups, noise), _used(spread.rows, noise)
    middle = (many[0] + many[1]) / 2
    pairs, fullest = float(groups @ middle), float(rows @ middle)
    kept_pairs = float(groups @ np.minimum(middle, bounds.max_groups))
    kept_rows = float(rows @ np.minimum(middle, bounds.max_rows))
    total = pairs * fullest / spread.units
    kept = total * (kept_pairs / pairs if pairs else 1.0) * (kept_rows / fullest if fullest else 1.0)
    if bounds.lower is None or bounds.upper is None:
        return total - kept
    low, high = magnitudes()
    values = (low + high) / 2
    least, greatest = _used(spread.least, noise), _used(spread.greatest, noise)
    units = max(float(least.sum() + greatest.sum()), 1.0)
    mean = float((least + greatest) @ np.abs(values)) / units
    beyond = np.maximum(bounds.lower - values, 0.0), np.maximum(values - bounds.upper, 0.0)
    # A unit's extremes are two of its rows; its rows are taken to lie like its extremes do.
    clamped = float((least + greatest) @ (beyond[0] + beyond[1])) / units
    return (total - kept) * mean + kept * clamped


def warns(cut: ContributionReport, target: Target, *, groups: int = 1) -> str:
    """Return a warning where the cut is likely larger than the target, or "".

    Args:
        cut: the report on the bounds.
        target: of a count or a sum.
        groups: how many groups share the rows.

    >>> from farthing.accuracy import Target
    >>> units = np.zeros(32); units[0], units[3] = 9_000, 1_000
    >>> spread = NoisySpread(units, units, np.zeros(129), np.zeros(129), sigma=1.0)
    >>> print(warns(report(spread, max_groups=1, max_rows=1), Target(relative=0.05)))
    the bounds cut about 76 % of the rows, more than the target of 5 %: raise max_groups or max_rows, or allow more
    >>> warns(report(spread, max_groups=16, max_rows=16), Target(relative=0.05))
    ''
    """
    share = 1 - cut.kept.value
    if share > max(target.relative, target.absolute * groups / cut.total_rows):
        what, advice = f"{100 * share:.2g} % of the rows", "raise max_groups or max_rows"
    elif cut.value is not None and 0 < target.relative < cut.value.value:
        what, advice = f"{100 * cut.value.value:.2g} % of the size of the extreme values", "widen lower and upper"
    else:
        return ""
    return f"the bounds cut about {what}, more than the target of {target}: {advice}, or allow more"


def sigma_for(loss: Gdp) -> float:
    """Return the noise of the four histograms that a loss pays for, rounded up.

    >>> sigma_for(Gdp(0.2)) >= 10.0
    True
    """
    return math.sqrt(HISTOGRAMS / float(loss.amount)) * (1 + 2.0**-40)
