"""Certified rounding: draw `round(Y)` exactly, for a real random variable Y, without ever drawing Y.

Y is a monotone function of one uniform number with infinitely many bits: a sign bit that picks a half of the law, and
U in (0, 1/2], the probability beyond Y on that side. We look at 63 bits of U. If every U that starts with those bits
lands in the same rounding cell, the cell is the answer; whole blocks are settled so in float64, with a margin for every
error on the way. For the few that are not, the *same* U is read further, in ball arithmetic, until its cell is certain.
Nothing is ever redrawn: to redraw what is hard to decide would shape the law by the float error.
"""

from __future__ import annotations

from math import prod
from operator import index as whole_number
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from farthing.errors import NoiseError
from farthing.noise.bits import BitSource, fork_safe_lock, system_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flint import arb
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]
    Words: TypeAlias = NDArray[np.uint64]
    Parameter: TypeAlias = float | Floats
    Size: TypeAlias = int | tuple[int, ...] | None
    Scratch: TypeAlias = tuple[Floats, Floats, Floats]

BLOCK: Final = 1 << 14
"""Samples settled at a time: words and three float buffers of 128 KiB each stay in the second-level cache."""

TAIL: Final = 2.0**-22
"""Below this the 2^-64 between the ends of the bit interval is more than 2^-42 of U, and float64 does not decide.

One draw in 2^21 falls here. Above it every U with the same 63 bits, and its float64, differ by less than
`U (2^-42 + 2^-52)`: so little that the slack of every law covers both ends of the interval.
"""

ULPS: Final = 2.0**-50
"""Covers float rounding that does not scale with the noise: adding an offset of at most 1, and the slack itself."""

MOST_BITS: Final = 1 << 13
"""Bits of one U that are read before the draw is given up. To be undecided there has probability below 2^-6000."""

GUARD: Final = 64
"""Working precision of the balls beyond the bits of U."""

SCALES: Final = (5e-324, 2.0**56)
"""Scales that are drawn. Noise of a larger one might not fit in 64 bits: refused beforehand, whatever the draw."""

RATES: Final = (2.0**-56, float(np.finfo(np.float64).max))
"""Rates that are drawn: the inverse of a scale."""

OFFSETS: Final = (-1.0, 1.0)
"""Fractional parts; the whole part of a location is added after the draw, as an integer."""

_BALLS: Final = fork_safe_lock()
_INT64: Final = np.iinfo(np.int64)


class Law(Protocol):
    """A real random variable Y, written once in float64 and once in ball arithmetic.

    Both sides read the same bits: `beyond` in (0, 1/2] is the probability beyond Y on its side of the law, the upper
    side if `side` is positive (its sign bit is clear), else the lower.
    """

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite `beyond`, at least `TAIL`, by Y for the samples `at`."""
        ...

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can lie from Y, for any U with the same bits."""
        ...

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return a ball that holds Y for every U in the ball `beyond`; any precision, any radius."""
        ...


def draw(law: Law, shape: tuple[int, ...], bits: BitSource | None = None) -> Integers:
    """Return independent draws of round(Y), exactly.

    Guarantee: every draw has the law of Y rounded to the nearest integer, whatever float64 does.
    Proof: docs/proofs/noise.gaussian.md, "Certified rounding".
    Assumes: the words of `bits` are uniform and independent; `law.slack` bounds the error of `law.floats`.
    Rounds: to the nearest integer; a tie has probability zero.
    """
    bits = system_bits() if bits is None else bits
    out = np.empty(prod(shape), np.int64)
    buffers = np.empty((3, min(BLOCK, out.size)))
    for start in range(0, out.size, BLOCK):
        at = slice(start, min(start + BLOCK, out.size))
        words = bits.words(at.stop - at.start).view(np.int64)
        side, place, whole = buffers[:, : words.size]
        for hard in _settle_block(law, words, at, (side, place, whole), out[at]):
            out[start + hard] = _settle_one(law, int(words[hard]), start + int(hard), bits)
    return out.reshape(shape)


def _settle_block(law: Law, words: Integers, at: slice, scratch: Scratch, out: Integers) -> Integers | tuple[()]:
    """Write the rounded block to `out` and return where float64 could not decide."""
    side, place, whole = scratch
    with np.errstate(all="ignore"):  # an overflow or NaN is "not decided", never an answer
        np.multiply(words, 2.0**-64, out=side)
        np.abs(side, out=place)
        tails = place.min() < TAIL
        law.floats(place, side, at)
        np.rint(place, out=whole)
        out[...] = whole
        place -= whole
        np.abs(place, out=place)
        place += law.slack(at)
        decided = place < 0.5
        if decided.all() and not tails:
            return ()
        return np.flatnonzero(~decided | (np.abs(side) < TAIL))


def _settle_one(law: Law, word: int, index: int, bits: BitSource) -> int:
    """Round one draw in ball arithmetic, reading on in the same U for as long as it takes."""
    upper = word >= 0
    prefix = word if upper else ~word
    width = 64
    while width <= MOST_BITS:
        cell = _cell(law, prefix, width, upper=upper, index=index)
        if cell is not None:
            if not _INT64.min <= cell <= _INT64.max:
                raise NoiseError("the noise does not fit in 64 bits", rule="|noise| < 2^63", next_step="a coarser grid")
            return cell
        for fresh in bits.words(width // 64).tolist():
            prefix = prefix << 64 | fresh
        width *= 2
    raise NoiseError(
        "no number of random bits settles the rounding",
        rule=f"at most {MOST_BITS} bits a draw",
        next_step="report this: it should never happen",
    )


def _cell(law: Law, prefix: int, width: int, *, upper: bool, index: int) -> int | None:
    """Return the one integer that round(Y) can be for U in [prefix, prefix + 1] / 2^width, or None."""
    from flint import arb, ctx

    # The lock keeps our own threads from restoring each other's precision. Another user of flint who changes it under
    # our hands makes the balls wider or narrower, never wrong.
    with _BALLS, ctx.workprec(width + GUARD):
        beyond = arb(2 * prefix + 1, 1) / (1 << (width + 1))
        cell = (law.ball(beyond, upper=upper, index=index) + arb(0.5)).floor().unique_fmpz()
        return None if cell is None else int(cell)


def at_block(value: Parameter, at: slice) -> Parameter:
    """Return the part of a parameter that belongs to the samples `at`."""
    return value if isinstance(value, float) else value[at]


def at_index(value: Parameter, index: int) -> float:
    """Return the parameter of one sample."""
    return value if isinstance(value, float) else float(value[index])


def parameter(name: str, value: ArrayLike, *, within: tuple[float, float]) -> Floats:
    """Return a parameter as float64, exactly, or refuse it."""
    least, most = within
    rule = f"a float64, at least {least:g} and at most {most:g}"
    given = np.asarray(value)
    if given.dtype.kind not in "fiu" or given.dtype.itemsize > 8:
        raise NoiseError(
            f"{name} is not a float64", rule=rule, got=given.dtype, next_step="convert it, knowing what is lost"
        )
    exact = given.astype(np.float64, copy=False)
    fine = (exact >= least) & (exact <= most)
    if given.dtype.kind != "f":
        fine &= exact < 2.0**53  # beyond, an integer may have been rounded on its way in
    if not fine.all():
        raise NoiseError(
            f"{name} is out of range", rule=rule, got=exact[~fine].flat[0], next_step="choose another scale or grid"
        )
    return exact


def layout(size: Size, parameters: Sequence[Floats]) -> tuple[tuple[int, ...], list[Parameter]]:
    """Return the shape of the result, and each parameter as one float or one flat value a sample."""
    shapes = [each.shape for each in parameters]
    try:
        shape = (
            np.broadcast_shapes(*shapes) if size is None else size if isinstance(size, tuple) else (whole_number(size),)
        )
        spread = [np.broadcast_to(each, shape) for each in parameters]
    except ValueError as error:
        raise NoiseError(
            "shapes do not fit",
            rule="parameters broadcast to size",
            got=f"{shapes}, {size}",
            next_step="give one number, or one for each sample",
        ) from error
    flat = [float(each) if each.ndim == 0 else wide.ravel() for each, wide in zip(parameters, spread, strict=True)]
    return shape, flat
