"""Certified rounding, bit by bit: crafted words at the rounding boundaries, against mpmath at 100 digits."""

from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtri

from farthing.errors import NoiseError
from farthing.noise import (
    certified,
    gaussian,
    laplace,
    rounded_exponential,
    rounded_gaussian,
    rounded_gumbel,
    two_sided_geometric,
)
from farthing.noise.bits import seeded

MASK = (1 << 64) - 1
mp = mpmath.mp.clone()
mp.dps = 100


class Script:
    """A bit source that hands out chosen words, and fails when asked for more."""

    def __init__(self, *words):
        self.rest = list(words)

    def words(self, count, /):
        taken, self.rest = self.rest[:count], self.rest[count:]
        assert count == len(taken)
        return np.array(taken, np.uint64)


@dataclass(frozen=True)
class Case:
    """A sampler beside the exact law of its integers: P[X < k + 1/2] and P[X > k + 1/2]."""

    draw: object
    below: object
    above: object
    cells: tuple[int, ...]


def gaussian_case(sigma, offset, *cells):
    def standard(k):
        return (k + mp.mpf(0.5) - mp.mpf(offset)) / mp.mpf(sigma)

    return Case(
        lambda bits, **size: rounded_gaussian(sigma, offset=offset, bits=bits, **size),
        lambda k: mp.erfc(-standard(k) / mp.sqrt(2)) / 2,
        lambda k: mp.erfc(standard(k) / mp.sqrt(2)) / 2,
        cells,
    )


def geometric_case(rate, *cells):
    a = mp.exp(-mp.mpf(rate))

    def above(k):
        return a ** (k + 1) / (1 + a) if k >= -1 else 1 - a ** (-k) / (1 + a)

    return Case(
        lambda bits, **size: two_sided_geometric(rate, bits=bits, **({"size": 1} | size)),
        lambda k: above(-k - 1),
        above,
        cells,
    )


def exponential_case(scale, offset, *cells):
    def standard(k):
        return (k + mp.mpf(0.5) - mp.mpf(offset)) / mp.mpf(scale)

    return Case(
        lambda bits, **size: rounded_exponential(scale, offset=offset, bits=bits, **size),
        lambda k: -mp.expm1(-standard(k)),
        lambda k: mp.exp(-standard(k)),
        cells,
    )


def gumbel_case(scale, offset, *cells):
    def rate(k):
        return mp.exp(-(k + mp.mpf(0.5) - mp.mpf(offset)) / mp.mpf(scale))

    return Case(
        lambda bits, **size: rounded_gumbel(scale, offset=offset, bits=bits, **size),
        lambda k: mp.exp(-rate(k)),
        lambda k: -mp.expm1(-rate(k)),
        cells,
    )


CASES = {
    "gaussian": gaussian_case(10.0, 0.3, -40, -3, 0, 7, 55),
    "wide gaussian": gaussian_case(10_000.1, -0.875, -30_000, -2, 1, 12_345, 80_000),
    "huge gaussian": gaussian_case(3e14, 0.0, -(10**15), 3, 10**12 + 1),
    "narrow gaussian": gaussian_case(0.01, 0.5, 0),
    "geometric": geometric_case(0.1, -80, -2, 1, 30, 200),
    "steep geometric": geometric_case(3.0, -4, 1, 9),
    "flat geometric": geometric_case(1e-9, -(10**9), 5, 10**10),
    "exponential": exponential_case(20.0, 0.25, 0, 1, 30, 300),
    "gumbel": gumbel_case(20.0, -0.75, -60, -5, 0, 13, 500),
}


def boundary(case, k):
    """Return the side and 256 bits of the U at which the result turns from k to k + 1."""
    upper = case.above(k) <= 0.5
    threshold = case.above(k) if upper else case.below(k)
    return upper, int(mp.floor(threshold * mp.mpf(2) ** 256))


def spell(upper, u):
    """Return 256 bits of U as the four words that a draw reads, sign first."""
    first, *rest = [(u >> shift) & MASK for shift in (192, 128, 64, 0)]
    return [first if upper else first ^ MASK, *rest]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("nearness", [250, 192, 128, 120, 70])
def test_bits_beside_a_boundary_fall_on_their_own_side(name, nearness):
    """U a hair to either side of a boundary rounds to its own side, however thin the hair."""
    case = CASES[name]
    for k in case.cells:
        upper, u = boundary(case, k)
        step = 1 << (256 - nearness)
        for moved, expected in ((u - step, k + upper), (u + step, k + (not upper))):
            assert expected == case.draw(Script(*spell(upper, moved))).item()


@pytest.mark.parametrize("name", CASES)
def test_results_agree_with_mpmath_on_random_bits(name):
    """On any bits the result is the cell that mpmath puts them in."""
    case = CASES[name]
    words = seeded(5).words(40)
    for word, result in zip(words.tolist(), case.draw(seeded(5), size=40).tolist(), strict=True):
        upper = word < 1 << 63
        v = word if upper else word ^ MASK
        tail = case.above if upper else case.below
        outer, inner = (tail(result), tail(result - 1)) if upper else (tail(result - 1), tail(result))
        assert outer <= mp.mpf(v + 1) / mp.mpf(2) ** 64
        assert mp.mpf(v) / mp.mpf(2) ** 64 <= inner


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("word", [0, MASK])
def test_zero_prefixes_are_read_on(name, word):
    """A prefix of all zeros says nothing about the tail: the next bits of the same U decide."""
    case = CASES[name]
    upper = word == 0
    far, near = [case.draw(Script(word, *rest)).item() for rest in ((1 << 20, 5, 5), (1 << 63, 5, 5))]
    tail = case.above if upper else case.below
    outer = far if upper else far - 1

    assert far >= near if upper else far <= near
    assert tail(outer) <= mp.mpf((1 << 20) + 1) / mp.mpf(2) ** 128


class Repeat:
    """The blocks of one stream; the draws that read on take words of another."""

    def __init__(self, seed):
        self.blocks, self.more = seeded(seed), seeded(-seed)

    def words(self, count, /):
        return (self.blocks if count > 64 else self.more).words(count)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_the_fast_path_never_differs_from_the_slow_path(name, size, monkeypatch):
    """With every draw sent to ball arithmetic, the same bits give the same integers."""
    case = CASES[name]
    quick = case.draw(Repeat(6), size=size)
    monkeypatch.setattr(certified, "TAIL", 1.0)
    slow = case.draw(Repeat(6), size=size)

    assert slow.tolist() == quick.tolist()


def test_the_hard_draws_are_few(monkeypatch):
    """About one draw in a million is too near a boundary or too far out for float64."""
    hard, settle = [], certified._settle_one

    def counted(*args):
        hard.append(args)
        return settle(*args)

    monkeypatch.setattr(certified, "_settle_one", counted)
    rounded_gaussian(1e4, size=1_000_000, bits=seeded(8))

    assert len(hard) < 12


def test_only_the_undecided_read_more_bits():
    """A draw in the middle of its cell uses one word; one on a boundary uses as many as it needs, in order."""
    upper, u = boundary(CASES["gaussian"], 7)
    words = spell(upper, u + 1)
    script = Script(1 << 62, words[0], 1 << 62, *words[1:], 77)

    assert rounded_gaussian(10.0, offset=0.3, size=3, bits=script).tolist() == [7, 7, 7]
    assert script.rest == [77]


class Stubborn:
    """A law that never makes up its mind."""

    def floats(self, beyond, _side, _at):
        beyond.fill(np.nan)

    def slack(self, _at):
        return 0.0

    def ball(self, _beyond, **_):
        return arb(0.5, 1)


def test_endless_doubt_fails_closed():
    """NaN is never an answer, and a draw that no number of bits settles raises."""
    with pytest.raises(NoiseError, match="no number of random bits"):
        certified.draw(Stubborn(), (1,), seeded(1))


def test_a_draw_beyond_64_bits_fails_closed():
    """A result that int64 cannot hold raises; it never wraps."""
    largest = certified.SCALES[1]
    assert float(rounded_exponential(largest, bits=Script(0, 0, 1 << 63, 0))) == pytest.approx(
        129 * np.log(2) * largest
    )
    with pytest.raises(NoiseError, match="64 bits"):
        rounded_exponential(largest, bits=Script(0, 0, 0, 1 << 20, 0, 0, 0, 0))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], "10", True, 1j, None, np.longdouble(1)])
@pytest.mark.parametrize("draw", [rounded_gaussian, two_sided_geometric, rounded_exponential, rounded_gumbel])
def test_scales_that_are_none_are_refused(draw, scale):
    """A scale is a finite float64 above zero, exactly; anything else is an error before any bit is read."""
    with pytest.raises(NoiseError):
        draw(scale, size=2, bits=Script())


@pytest.mark.parametrize(
    "draw",
    [
        lambda: rounded_gaussian(2.0**57, bits=Script()),
        lambda: rounded_gaussian(1 << 54, bits=Script()),
        lambda: rounded_gumbel([1.0, 1e308], bits=Script()),
        lambda: rounded_exponential(1e30, bits=Script()),
        lambda: two_sided_geometric(1e-18, bits=Script()),
    ],
)
def test_scales_whose_noise_may_not_fit_are_refused(draw):
    """Whether noise fits in 64 bits is settled by its scale, which is public, not by the draw."""
    with pytest.raises(NoiseError, match="out of range"):
        draw()


@pytest.mark.parametrize("offset", [1.5, -1.01, np.nan, "x", [0.0, 2.0]])
def test_offsets_out_of_range_are_refused(offset):
    """The offset is the fractional part of the mean; whole parts are added afterwards, as integers."""
    with pytest.raises(NoiseError, match="offset"):
        rounded_gaussian(1.0, offset=offset, size=2, bits=Script())


@pytest.mark.parametrize("size", [3, (2, 3), -1])
def test_sizes_that_do_not_fit_are_refused(size):
    """Parameters must broadcast to the size."""
    with pytest.raises(NoiseError, match="shapes"):
        rounded_gaussian([1.0, 2.0], size=size, bits=Script())


@pytest.mark.parametrize(
    ("shape", "sigma", "offset", "size"),
    [
        ((), 2.0, 0.0, None),
        ((), 2, 0, ()),
        ((0,), 2.0, 0.0, 0),
        ((0,), [], 0.0, None),
        ((5,), 2.0, 0.5, np.int64(5)),
        ((2, 3), [1.0, 2.0, 3.0], [[0.0], [0.5]], None),
        ((4, 2), [1.0, 2.0], 0.0, (4, 2)),
        ((2, 2), np.array([[1, 2], [3, 4]], np.float32).T, 0.0, None),
    ],
)
def test_shapes_follow_numpy(shape, sigma, offset, size):
    """The result has the size asked for, or the parameters' own."""
    result = rounded_gaussian(sigma, offset=offset, size=size, bits=seeded(1))

    assert (shape, np.int64) == (result.shape, result.dtype)


def test_every_sample_has_its_own_parameters_across_blocks():
    """With one sigma and offset for each sample, sample i is what a scalar draw makes of the same word."""
    n = certified.BLOCK * 2 + 37
    sigma, offset = np.geomspace(0.1, 1e12, n), np.linspace(-1, 1, n)
    result = rounded_gaussian(sigma, offset=offset, bits=Repeat(9))
    words = Repeat(9).words(n)

    alone = [rounded_gaussian(sigma[i], offset=offset[i], bits=Script(words[i], 1)).item() for i in range(0, n, 499)]

    assert alone == result[::499].tolist()


LAWS = {
    "gaussian": (gaussian.Gaussian(1.0, 0.0), gaussian.SLACK),
    "offset gaussian": (gaussian.Gaussian(1000.7, -0.9), gaussian.SLACK * 1000.7),
    "exponential": (laplace.ExponentialLaw(1.0, 0.0), laplace.SLACK),
    "gumbel": (laplace.Gumbel(1.0, 0.0), laplace.SLACK),
    "geometric": (laplace.Geometric(0.001), laplace.SLACK * 1000),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_slack_covers_both_ends_of_the_bit_interval(name):
    """float64 is nearer to the exact Y than its slack, at both ends of the bits, from the tail to the middle."""
    law, least = LAWS[name]
    prefixes = [*np.geomspace(2.0**42, 2.0**63 - 2048, 300).astype(np.uint64).tolist(), (1 << 42) - 1, (1 << 63) - 1]
    for sign in (0, MASK):
        words = np.array([v ^ sign for v in prefixes], np.uint64).view(np.int64)
        side = words * 2.0**-64
        places, at = np.abs(side), slice(0, len(words))
        law.floats(places, side, at)
        with ctx.workprec(200):
            ends = [[law.ball(arb(v + end) / (1 << 64), upper=not sign, index=0) for end in (0, 1)] for v in prefixes]
            worst = max(abs(arb(place) - end) for place, pair in zip(places, ends, strict=True) for end in pair)
        assert least < law.slack(at) < least * 1.01 + 2.0**-49
        assert worst < law.slack(at) * 0.5


def test_the_slack_adds_up():
    """The slack is at least the sum of what the proof pages allow each error of the fast path."""
    interval = 2.0**-42 + 2.0**-52

    assert 2.0**-40 * (1 + 5.1) + 1.26 * interval + 2.0**-51 * 5.1 <= gaussian.SLACK
    assert 2.0**-40 * (1 + 16) + 1.5 * interval + 2.0**-50 * 16 <= laplace.SLACK
    assert -ndtri(certified.TAIL) < 5.1
    assert -np.log(certified.TAIL) + np.log(2) < 16


def standard_normal(u):
    """Return what the fast path makes of tail probabilities."""
    places = u.copy()
    gaussian.Gaussian(1.0, 0.0).floats(places, u, slice(0, len(u)))
    return places


@pytest.mark.parametrize("function", ["normal", "log", "log1p"])
def test_the_float_functions_are_as_good_as_assumed(function):
    """The float64 functions of the fast path err by less than a sixtieth of the 2^-40 (1 + |t|) they are allowed."""
    u = np.concatenate([np.geomspace(2.0**-22, 0.5, 4000), 0.5 - np.geomspace(1e-16, 0.4, 2000)])
    run, exact = {
        "normal": (standard_normal, lambda x: arb(2).sqrt() * (2 * x).erfcinv()),
        "log": (np.log, lambda x: x.log()),
        "log1p": (lambda x: np.log1p(-x), lambda x: (-x).log1p()),
    }[function]
    with ctx.workprec(200):
        pairs = [(arb(float(got)), exact(arb(float(x)))) for x, got in zip(u, run(u), strict=True)]
        worst = max(abs(got - true) / (1 + abs(true)) for got, true in pairs)

    assert worst < 2.0**-46
