"""The joint law of the chains, drawn in either direction: inside the band; with the known bugs planted, outside."""

import math

import numpy as np
import pytest
from levels import ALPHA, dkw_band

from farthing.mechanisms import LaplaceChain, LaplaceRefinement, Shown
from farthing.noise.bits import seeded
from farthing.noise.gradual import coarser_geometric, finer_geometric
from farthing.noise.laplace import two_sided_geometric

N = 1_000_000
OLD, NEW = 0.3, 0.8
REACH = 150
K = np.arange(-REACH, REACH + 1)
CLIP = 60.0


def law(rate, k):
    """Return P[k] of the two-sided geometric law."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


def joint(old=OLD, new=NEW):
    """Return P[X = x, N = n], rows x, columns n, by the step from fine to coarse."""
    w = (math.sinh(old / 2) / math.sinh(new / 2)) ** 2
    x, n = np.meshgrid(K, K, indexing="ij")
    return law(new, n) * (w * (x == n) + (1 - w) * law(old, x - n))


def views(x, n):
    """Return what is compared: the fine noise, its product with the coarse, and what was added."""
    return {"fine": n, "product": n * x, "added": x - n}


def gap(sample, values, chances):
    """Return the largest distance between the CDF of a sample and that of a law on whole numbers."""
    low, high = int(min(values.min(), sample.min())), int(max(values.max(), sample.max()))
    exact = np.bincount((values - low).ravel(), chances.ravel(), high - low + 1).cumsum()
    seen = np.bincount(sample - low, minlength=high - low + 1).cumsum() / len(sample)
    return np.abs(seen - exact).max()


def gaps(x, n, chances):
    """Return the gap of each view of a joint sample."""
    rows, columns = np.meshgrid(K, K, indexing="ij")
    exact = views(rows, columns)
    return {name: gap(sample, exact[name], chances) for name, sample in views(x, n).items()}


def product_off(x, n, chances):
    """Return how far the mean of N X, clipped, is from the truth, in units of its Hoeffding bound at this level."""
    rows, columns = np.meshgrid(K, K, indexing="ij")
    expected = (np.clip(rows * columns, -CLIP, CLIP) * chances).sum()
    bound = CLIP * math.sqrt(2 * math.log(2 / ALPHA) / len(x))
    return abs(np.clip(x * n, -CLIP, CLIP).mean() - expected) / bound


def with_the_branch_reused(x, old, new, rng, *, forget_sign=True):
    """Draw the finer noise as a published implementation does: the branch's uniform is used again as it is."""
    m, u = np.abs(x), rng.random(len(x))
    q, c = math.exp(-(new - old)), math.exp(-(new + old))
    below = c * (1 - q) / (1 - c * q)
    inside = below + (1 - c) * (1 - q**m) / (1 - c * q)
    stay = inside + q**m * (1 - 2 * c + c * q) / (1 - c * q)
    geometric = np.floor(np.log(u) / math.log(c))
    within = np.minimum(np.floor(np.log1p(-u * (1 - q**m)) / math.log(q)), m - 1)
    n = np.where(u < below, -1 - geometric, np.where(u < inside, within, np.where(u < stay, m, m + 1 + geometric)))
    return (n * (1 if forget_sign else np.where(x < 0, -1, 1))).astype(np.int64)


@pytest.mark.statistical
def test_the_forward_draw_has_the_joint_law():
    """The law of N, of N X and of X - N, and the mean of N X, fit at n = 1e6; rates 5 % off do not."""
    bits = seeded(41)
    x = two_sided_geometric(OLD, N, bits)
    n = finer_geometric(x, OLD, NEW, bits)
    band = dkw_band(N, ALPHA / 4)

    assert max(gaps(x, n, joint()).values()) < band
    assert product_off(x, n, joint()) < 1
    assert min(max(gaps(x, n, joint(OLD, NEW * k)).values()) for k in (0.95, 1.05)) > band
    assert min(max(gaps(x, n, joint(OLD * k, NEW)).values()) for k in (0.95, 1.05)) > band


@pytest.mark.statistical
def test_the_backward_draw_has_the_joint_law():
    """From the fine end the joint law is the same; forgetting to keep the noise, or its other weight, is seen."""
    old, new, bits = 1.0, 2.5, seeded(42)
    n = two_sided_geometric(new, N, bits)
    x = coarser_geometric(n, new, old, bits)
    always = n + two_sided_geometric(old, N, bits)
    on_the_line = np.where(np.random.default_rng(1).random(N) < (old / new) ** 2, n, always)
    exact, band = joint(old, new), dkw_band(N, ALPHA / 4)

    assert max(gaps(x, n, exact).values()) < band
    assert product_off(x, n, exact) < 1
    assert min(max(gaps(bug, n, exact).values()) for bug in (always, on_the_line)) > band


@pytest.mark.statistical
@pytest.mark.parametrize("forget_sign", [True, False])
def test_the_reused_branch_is_caught(forget_sign):
    """The published bug, with the sign dropped or kept, fails on the integers; ours with the same eyes does not."""
    x = two_sided_geometric(OLD, N, seeded(43))
    bug = with_the_branch_reused(x, OLD, NEW, np.random.default_rng(2), forget_sign=forget_sign)
    ours = finer_geometric(x, OLD, NEW, seeded(44))
    band = dkw_band(N, ALPHA / 4)

    assert max(gaps(x, ours, joint()).values()) < band < max(gaps(x, bug, joint()).values())
    assert product_off(x, ours, joint()) < 1 < product_off(x, bug, joint())
    assert abs(ours.mean()) < 0.02 < abs(bug.mean()) or not forget_sign


def laplace_cdf(rate, t):
    """Return the CDF of Laplace noise."""
    return np.where(t < 0, np.exp(-rate * np.abs(t)) / 2, 1 - np.exp(-rate * np.abs(t)) / 2)


def line_gap(sample, rate):
    """Return the largest distance between the CDF of a sample on the line and that of Laplace noise."""
    ordered, place = np.sort(sample), np.arange(len(sample)) / len(sample)
    exact = laplace_cdf(rate, ordered)
    return max(np.abs(exact - place).max(), np.abs(exact - place - 1 / len(sample)).max())


@pytest.mark.statistical
def test_the_chain_on_a_grid_is_laplace():
    """On the default grid each look fits the Laplace law of its epsilon, and stays as often as the continuous one."""
    step = 2.0**-12
    refinement = LaplaceRefinement(np.zeros(N, np.int64), bits=seeded(45))
    x, n = refinement.refine(OLD), refinement.refine(NEW)
    band = dkw_band(N, ALPHA / 4)
    kept = (OLD / NEW) ** 2

    assert line_gap(x, OLD) < band + step
    assert line_gap(n, NEW) < band + step
    assert min(line_gap(n, NEW * k) for k in (0.95, 1.05)) > band + step
    assert abs((x == n).mean() - kept) < band + 1e-3


@pytest.mark.statistical
def test_the_reused_branch_is_caught_on_the_line():
    """The published bug of the continuous kernel fails against the Laplace law; the kernel as it should be fits."""
    rng = np.random.default_rng(3)
    x = rng.laplace(0, 1 / OLD, N)
    band = dkw_band(N, ALPHA / 4)

    assert line_gap(line_kernel(x, rng.random(N), rng.random(N), signed=True), NEW) < band
    u = rng.random(N)
    assert line_gap(line_kernel(x, u, u, signed=False), NEW) > band


def line_kernel(x, branch, place, *, signed):
    """Return finer Laplace noise given coarser, from the uniform of the branch and that of the place in it."""
    m, gone = np.abs(x), np.exp(-(NEW - OLD) * np.abs(x))
    below = (NEW - OLD) / (2 * NEW)
    inside = below + (OLD + NEW) / (2 * NEW) * (1 - gone)
    tail = np.log(place) / (NEW + OLD)
    within = -np.log1p(-place * (1 - gone)) / (NEW - OLD)
    stay = inside + OLD / NEW * gone
    n = np.where(branch < below, tail, np.where(branch < inside, within, np.where(branch < stay, m, m - tail)))
    return n * (np.where(x < 0, -1, 1) if signed else 1)


@pytest.mark.statistical
def test_a_path_is_as_many_looks():
    """A path of three levels, drawn from its fine end, and three looks have one law: first against last."""
    levels = np.array([int(level * 2**40) for level in (OLD, 0.5, NEW)])
    chain = LaplaceChain(np.zeros(N, np.int64), bits=seeded(46))
    path = chain.path(levels)
    state, looks = Shown.nothing(N), []
    for level in levels:
        state = chain.measure(state, np.full(N, level))
        looks.append(state)
    band = dkw_band(N, ALPHA / 6)

    assert max(gaps(path[0].value, path[2].value, joint()).values()) < band
    assert max(gaps(looks[0].value, looks[2].value, joint()).values()) < band
    assert max(gaps(path[0].value, path[1].value, joint(OLD, 0.5)).values()) < band
    assert max(gaps(looks[0].value, looks[1].value, joint(OLD, 0.525)).values()) > band
