"""Noise reduction by name: what a refinement shows, what it has cost, what stops it, and what it refuses."""

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from farthing.errors import DataError, InvalidBudget
from farthing.mechanisms import (
    AboveThreshold,
    BrownianMechanism,
    Doubling,
    GaussianRefinement,
    LaplaceRefinement,
    PrivateTest,
    ReducedAboveThreshold,
)
from farthing.mechanisms.stopping import on_grid
from farthing.noise.bits import seeded
from farthing.privacy.filters import ExPost, RogersExPostFilter
from farthing.privacy.loss import Gdp, Pure, Zcdp


def always(_look):
    """Return a score of one, whatever was shown."""
    return 1.0


KINDS = [
    lambda **options: GaussianRefinement([500, 20], **options),
    lambda **options: LaplaceRefinement([500, 20], **options),
    lambda **options: LaplaceRefinement([500, 20], integer=True, **options),
    lambda **options: Doubling([500, 20], **options),
    lambda **options: Doubling([500, 20], noise="laplace", **options),
]
kinds = pytest.mark.parametrize("make", KINDS, ids=["gaussian", "laplace", "integer", "doubling", "doubling-laplace"])


def test_the_last_look_is_paid():
    """Refining costs the finest level only; doubling costs every look."""
    gaussian, laplace = GaussianRefinement(500), LaplaceRefinement(500)
    squares, sums = Doubling(500), Doubling(500, noise="laplace")
    for level in (0.25, 0.5):
        gaussian.refine(mu=level)
        laplace.refine(epsilon=level)
        squares.refine(level)
        sums.refine(level)

    assert (Gdp(0.5), Pure(0.5)) == (gaussian.loss, laplace.loss)
    assert (Gdp.of_amount(0.3125), Pure(0.75)) == (squares.loss, sums.loss)


@kinds
def test_a_looser_level_is_free(make):
    """A level not above the last draws nothing, costs nothing, and returns what is stored."""
    refinement = make(bits=seeded(1))
    fine = refinement.refine(0.5)
    look = refinement.look

    assert fine.tolist() == refinement.refine(0.5).tolist()
    assert fine.tolist() == refinement.refine(0.1).tolist()
    assert fine.tolist() == refinement.values.tolist()
    assert (look.loss, 1) == (refinement.loss, refinement.looks)


@kinds
def test_nothing_is_shown_or_paid_at_first(make):
    """Before the first look the values are 0, and nothing is spent; nothing tells the truth."""
    refinement = make()

    assert ([0, 0], 0, 0) == (refinement.values.tolist(), refinement.loss.amount, refinement.looks)
    assert "500" not in repr(refinement)


@kinds
@pytest.mark.parametrize("level", [0, -1, math.nan, math.inf, "0.1", True, 1e-30, 1e6])
def test_levels_are_finite_and_positive(make, level):
    """A level that has no noise is refused, and changes nothing."""
    refinement = make()
    with pytest.raises(InvalidBudget, match="next"):
        refinement.refine(level)

    assert 0 == refinement.looks


def test_one_level_in_one_currency():
    """Gaussian levels may be named by rho; naming both or none is refused."""
    refinement = GaussianRefinement(500)
    refinement.refine(rho=0.125)

    assert Zcdp(0.125) == refinement.loss.to(Zcdp)
    assert Gdp(0.5) == refinement.loss
    for levels in ({}, {"mu": 1, "rho": 1}):
        with pytest.raises(InvalidBudget, match="one level"):
            refinement.refine(**levels)


def test_numbers_come_back_as_they_were_given():
    """A number for a number, whole where the noise is whole; an array for an array; on the grid."""
    assert isinstance(LaplaceRefinement(500, integer=True).refine(1), int)
    assert isinstance(LaplaceRefinement(500).refine(1), float)
    assert isinstance(GaussianRefinement(500.5).refine(1), float)
    assert np.int64 == LaplaceRefinement([500], integer=True).refine(1).dtype
    assert 0 == LaplaceRefinement([500.3] * 9).refine(1)[3] * 2**16 % 1


@kinds
def test_a_run_stops_on_what_was_shown(make):
    """The stop is given the look; the schedule ends where it says so, else at its end."""
    seen = []
    end = make().run([0.1, 0.2, 0.4], lambda look: seen.append(look) or look.number == 2)

    assert [1, 2] == [look.number for look in seen]
    assert seen[-1].loss == end.loss
    assert 3 == make().run([0.1, 0.2, 0.4]).number


@kinds
@pytest.mark.parametrize("levels", [[], [0.2, 0.2], [0.2, 0.1], [0.1, math.nan], [0, 0.1]])
def test_schedules_that_do_not_rise_are_refused(make, levels):
    """Before anything is drawn."""
    refinement = make()
    with pytest.raises(InvalidBudget):
        refinement.run(levels)

    assert 0 == refinement.looks


@kinds
@pytest.mark.parametrize("stop", [PrivateTest(always), 3, "stop"])
def test_private_stops_are_refused_by_type(make, stop):
    """A test of the private data has a price of its own: a free run does not take it."""
    refinement = make()
    with pytest.raises(InvalidBudget, match="ReducedAboveThreshold"):
        refinement.run([0.1, 0.2], stop)
    with pytest.raises(InvalidBudget, match="stops on what was shown only"):
        BrownianMechanism(500).run([0.1, 0.2], PrivateTest(always))

    assert 0 == refinement.looks


def test_private_stops_have_their_price():
    """AboveThreshold adds its epsilon; ReducedAboveThreshold what a stop after the level before costs, or a share."""
    truth = 500
    near, never = PrivateTest(lambda look: -abs(look.values - truth)), PrivateTest(lambda _: -1e6)
    levels, prices = [0.5, 40, 80, 160], [1, 30, 60, 120]
    fixed = AboveThreshold(-5, 30).run(LaplaceRefinement(truth), levels, near)
    reduced = ReducedAboveThreshold(-5).run(LaplaceRefinement(truth), levels, prices, near)
    without = ReducedAboveThreshold(-5).run(LaplaceRefinement(truth), levels, prices, never)

    assert fixed.passed
    assert Pure(30) + fixed.look.loss == fixed.loss
    assert reduced.passed
    before, level = ([0, *prices][reduced.look.number + back] for back in (-1, 0))
    assert Pure(ReducedAboveThreshold(-5).price(Fraction(level), Fraction(before))) == reduced.own
    assert reduced.own + reduced.look.loss == reduced.loss
    assert not without.passed
    assert Pure(ReducedAboveThreshold(-5).share * 120) == without.own


def test_a_private_stop_takes_a_private_test_of_its_sensitivity():
    """Plain functions, wider scores, and answers without a pure price are refused, before anything is shown."""
    mechanism, refinement = ReducedAboveThreshold(0), LaplaceRefinement(5)
    wide, one_way = PrivateTest(always, sensitivity=2), ReducedAboveThreshold(0, monotone=True)
    with pytest.raises(InvalidBudget, match="needs a private test"):
        mechanism.run(refinement, [1], [1], always)
    with pytest.raises(InvalidBudget, match="needs a private test"):
        mechanism.run(GaussianRefinement(5), [1], [1], PrivateTest(always))
    with pytest.raises(InvalidBudget, match="further than the mechanism"):
        mechanism.run(refinement, [1], [1], wide)
    with pytest.raises(InvalidBudget, match="further than the mechanism"):
        AboveThreshold(0, 1).run(refinement, [1], wide)
    with pytest.raises(InvalidBudget, match="further than the mechanism"):
        one_way.run(refinement, [1], [1], PrivateTest(always))
    with pytest.raises(InvalidBudget, match="has a score"):
        PrivateTest(5)

    assert 0 == refinement.looks


def test_grids_depend_on_public_things_only():
    """The step comes from the sensitivity, the type and the number of answers; the price counts the rounding."""
    small, large = (on_grid([x], 1, norm=1, whole=False) for x in (0.25, 1e9))
    many = on_grid(np.zeros(100), 1, norm=1, whole=False)

    assert small.step_log2 == large.step_log2
    assert 2**12 + 1 == small.sensitivity
    assert many.sensitivity >= 2.0**-many.step_log2 + 100
    assert 3 * 2**11 == on_grid([7], 3, norm=1, whole=False).sensitivity
    assert (0, 3) == ((grid := on_grid([7], 3, norm=1, whole=True)).step_log2, grid.sensitivity)


@pytest.mark.parametrize("values", ["x", [math.nan], [[1, 2]], [True], [1j], [10**30]])
def test_answers_that_are_no_numbers_are_refused(values):
    """One line of finite numbers, small enough for their grid."""
    for kind in (GaussianRefinement, LaplaceRefinement, Doubling):
        with pytest.raises(DataError, match="rule"):
            kind(values)


def test_bad_sensitivities_and_kinds_are_refused():
    """A sensitivity is finite and above 0; whole noise needs whole answers; noise has a name."""
    for sensitivity in (0, -1, math.nan, math.inf):
        with pytest.raises(InvalidBudget):
            LaplaceRefinement(500, sensitivity)
    for values, sensitivity in (([0.5], 1), ([5], 0.5)):
        with pytest.raises(InvalidBudget, match="whole numbers"):
            LaplaceRefinement(values, sensitivity, integer=True)
    with pytest.raises(InvalidBudget, match="the noise is unknown"):
        Doubling(500, noise="uniform")
    with pytest.raises(InvalidBudget, match="do not rise"):
        Doubling.levels(0.1, 1, factor=1)


def test_answers_too_large_for_the_grid_are_refused():
    """2^53 steps are the most."""
    with pytest.raises(DataError, match="too large"):
        LaplaceRefinement(1e15)


def test_a_brownian_path_ends_at_its_last_level():
    """A path rises through its levels; a run shows a beginning of it and costs its last look."""
    mechanism = BrownianMechanism([500, 20], bits=seeded(5))

    assert [0.1, 0.2, 0.4] == [look.loss.mu for look in mechanism.path([0.1, 0.2, 0.4])]
    assert Gdp(0.2) == mechanism.run([0.1, 0.2, 0.4], lambda look: look.number == 2).loss
    assert Gdp(0.4) == mechanism.run([0.1, 0.2, 0.4], lambda _: False).loss
    with pytest.raises(InvalidBudget, match="rise"):
        mechanism.path([0.2, 0.1])
    with pytest.raises(InvalidBudget, match="the level is out of range"):
        mechanism.path([1, 9])


def test_the_ex_post_filter_books_the_last_level():
    """Reserve the cap of a chain, settle at its last level: what is left is what it did not use."""
    books = RogersExPostFilter(epsilon=1).spend(ExPost(cap=Pure(0.75)))
    end = LaplaceRefinement(500).run([0.125, 0.25, 0.75], lambda look: look.number == 2)

    assert Pure(0.75) == books.settle(end.loss).remaining


def test_what_is_returned_cannot_change_what_is_stored():
    """The next look conditions on what was shown, whatever became of the array that was returned."""
    refinement = LaplaceRefinement([500, 20], integer=True, bits=seeded(7))
    shown = refinement.refine(0.5)
    kept = shown.copy()
    shown += 1_000

    assert kept.tolist() == refinement.values.tolist()


@kinds
@pytest.mark.parametrize("levels", [None, 0.5, 3])
def test_a_schedule_is_a_list(make, levels):
    """One level, or none, where a schedule is needed is refused before anything is drawn."""
    refinement = make()
    with pytest.raises(InvalidBudget, match="list of levels"):
        refinement.run(levels)

    assert 0 == refinement.looks


@kinds
def test_a_stop_gives_one_answer(make):
    """An answer for each value is refused, and the way out is named; what was shown stays shown and paid."""
    refinement = make()
    with pytest.raises(InvalidBudget, match=r"\.all\(\)"):
        refinement.run([0.1, 0.2], lambda look: look.values > 3)

    assert 1 == refinement.looks


def test_levels_may_be_told_as_losses():
    """A loss of the noise's own kind is a level; one of another kind, or with a delta, is none."""
    pure, gaussian = LaplaceRefinement(500), GaussianRefinement(500)
    pure.run([Pure(0.1), 0.2])
    gaussian.run([Gdp(0.1), Zcdp(0.125), 0.75])
    doubling = Doubling(500, noise="laplace")
    doubling.run([Pure(0.25), Pure(0.5)])

    assert (Pure(0.2), Gdp(0.75), Pure(0.75)) == (pure.loss, gaussian.loss, doubling.loss)
    assert [Gdp(0.3)] == [look.loss for look in BrownianMechanism(500).path([Gdp(0.3)])]
    for refinement, level in ((pure, Gdp(1)), (gaussian, Pure(1)), (gaussian, Zcdp(1, 1e-6)), (doubling, Gdp(1))):
        with pytest.raises(InvalidBudget, match="is not a number"):
            refinement.refine(level)


def test_a_level_of_other_noise_is_refused_by_name():
    """Laplace noise has levels of epsilon, Gaussian noise of mu or rho; both refusals say which."""
    for refinement, level in ((LaplaceRefinement(5), {"mu": 1}), (GaussianRefinement(5), {"epsilon": 1})):
        with pytest.raises(InvalidBudget, match="Laplace noise has epsilon, Gaussian noise mu or rho"):
            refinement.refine(**level)
    with pytest.raises(InvalidBudget, match="no level"):
        LaplaceRefinement(5).refine()


def test_refusals_tell_what_would_do():
    """Zero levels, unknown noise, numbers beyond 64 bits, and private tests of a plain run."""
    with pytest.raises(InvalidBudget, match=r"epsilon=0\.5, say"):
        LaplaceRefinement(5).refine(epsilon=0)
    with pytest.raises(InvalidBudget, match='noise="laplace"'):
        Doubling(5, noise="cauchy")
    with pytest.raises(DataError, match="too large"):
        LaplaceRefinement(10**30)
    with pytest.raises(InvalidBudget, match="levels, prices, test"):
        LaplaceRefinement(5).run([1], PrivateTest(always))


def test_a_brownian_run_needs_no_stop():
    """Without a stop the whole path is shown; a stop that is no function is refused."""
    assert Gdp(0.4) == BrownianMechanism(500).run([0.2, 0.4]).loss
    with pytest.raises(InvalidBudget, match="shown only"):
        BrownianMechanism(500).run([0.2], 3)


@pytest.mark.parametrize("package", ["mechanisms", "models", "attacks", "audit", "experiments"])
def test_a_package_lists_its_public_names(package):
    """dir() shows what is public, loaded or not, and nothing else."""
    found = import_module(f"farthing.{package}")

    assert sorted(found.__all__) == dir(found)
