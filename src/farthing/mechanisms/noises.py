"""The noises of a noisy maximum: what each costs, and how it is laid on the scores."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from farthing.errors import InvalidOption
from farthing.mechanisms.scores import field_of, priced, rate_of, spread_of, whole
from farthing.privacy.loss import BoundedRange, Gdp, Pure
from farthing.rounding import down, sqrt_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.noise.races import Field
    from farthing.privacy.numbers import Number

Noise = Literal["exponential", "gaussian", "gumbel", "laplace"]

NOISES: Final[tuple[Noise, ...]] = get_args(Noise)


def known(noise: str) -> Noise:
    """Return the name of a noise, or refuse it."""
    for each in NOISES:
        if each == noise:
            return each
    raise InvalidOption(
        "the noise is unknown",
        rule=f"one of {', '.join(NOISES)}",
        got=repr(noise),
        next_step="gumbel is the exponential mechanism",
    )


def loss_of(noise: Noise, epsilon: Number) -> BoundedRange | Gdp | Pure:
    """Return the loss of the largest of scores with this noise.

    For Gaussian noise epsilon stands for 2 mu, so that like Gumbel noise of the same epsilon it is epsilon^2/8-zCDP.

    Guarantee: exponential and Laplace noise of size R/epsilon are epsilon-DP, Gumbel noise is epsilon-bounded range,
        Gaussian noise of sigma = 2 L/epsilon is (epsilon/2)-GDP, L as in `length_of`.
    Proof: docs/proofs/mechanisms.select.md, "Noisy maxima".
    Assumes: exact races.
    Rounds: nothing.

    >>> loss_of("laplace", 1), loss_of("gumbel", 1), loss_of("gaussian", 1)
    (Pure(epsilon=1), BoundedRange(eta=1), Gdp(mu=0.5))
    """
    if noise == "gaussian":
        return Gdp(priced(epsilon) / 2)
    return BoundedRange(priced(epsilon)) if noise == "gumbel" else Pure(priced(epsilon))


def length_of(options: int, sensitivity: Number, *, monotone: bool, moved: int | None) -> float:
    """Return L, how far one unit moves the differences of the scores in Euclidean distance, rounded up.

    A shift of all scores changes no difference, so the part of the change along (1, ..., 1) does not count.

    Args:
        options: how many scores there are.
        sensitivity: the most that one unit moves a score.
        monotone: whether one unit moves all scores the same way.
        moved: the most scores that one unit moves at all; None for all of them.

    >>> length_of(2, 1, monotone=True, moved=1) ** 2, length_of(10**6, 1, monotone=True, moved=1)
    (0.5000000000000001, 0.99999949999...)
    >>> length_of(100, 1, monotone=True, moved=None), length_of(100, 1, monotone=False, moved=None)
    (5.0, 10.0)
    """
    most = options if moved is None else min(whole(moved, "moved"), options)
    if monotone:  # j scores move by the sensitivity: j - j^2/options is largest at the middle
        j = min(most, options // 2)
        square = Fraction(j * (options - j), options)
    else:  # the scores move both ways, half of them each: only an odd one leaves a part along (1, ..., 1)
        square = Fraction(most) - Fraction(most % 2, options)
    return sqrt_up(square * spread_of(sensitivity, monotone=True) ** 2)


def noisy_field(
    table: NDArray[Any],
    noise: Noise,
    epsilon: Number,
    *,
    sensitivity: Number,
    monotone: bool,
    moved: int | None,
) -> Field:
    """Return the race whose noise costs epsilon: scores times the rate, standard noise on them."""
    return field_of(
        table, noise_rate(noise, epsilon, table.shape[-1], sensitivity, monotone=monotone, moved=moved), noise
    )


def noise_rate(
    noise: Noise, epsilon: Number, options: int, sensitivity: Number, *, monotone: bool, moved: int | None
) -> float:
    """Return what a score is multiplied by before standard noise is added, rounded down.

    >>> noise_rate("gumbel", 1, 9, 1, monotone=False, moved=None)
    0.5
    """
    if noise != "gaussian":
        return rate_of(epsilon, spread_of(sensitivity, monotone=monotone))
    length = length_of(options, sensitivity, monotone=monotone, moved=moved)
    if not length:  # one option, or none that moves
        return 0.0
    return down(priced(epsilon) / (2 * Fraction(length)))


def epsilon_for(
    noise: Noise,
    distance: float,
    within: float,
    options: int,
    sensitivity: Number,
    *,
    monotone: bool,
    moved: int | None,
) -> float:
    """Return the least epsilon, rounded up by 2^-40, at which a gap of `within` is `distance` of standard noise."""
    if noise == "gaussian":
        size = 2 * length_of(options, sensitivity, monotone=monotone, moved=moved)
    else:
        size = float(spread_of(sensitivity, monotone=monotone))
    return math.nextafter(distance * size / within * (1 + 2.0**-40), math.inf)
