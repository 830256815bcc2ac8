"""The rerun of the paper's experiment: its tasks, its accounting, its seeds and what it prints."""

import ast
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sources import nodes
from typer.testing import CliRunner

from farthing.accuracy.baselines import doubling_cost
from farthing.accuracy.stop_rule import two_sided
from farthing.cli.app import app
from farthing.errors import InvalidOption
from farthing.experiments import METHODS, Plan, chains, compare, laws, tables
from farthing.experiments.chance import stream
from farthing.experiments.choice import PublicChoice
from farthing.experiments.picking import Pace, follow, in_order, race
from farthing.experiments.runner import played, tuned
from farthing.experiments.setting import GRID, Played, Setting, Side, amount, on_grid, pick_prices, residue_prices
from farthing.experiments.tuned import STORED, store, stored
from farthing.privacy.filters import (
    BrownianRun,
    ExPost,
    GdpFilter,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
    ZcdpFilter,
)
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.residue import choice_cost

pytestmark = pytest.mark.thorough

BY_NAME = {method.name: method for method in METHODS}
SOURCE = Path(__file__).parents[2] / "src" / "farthing"


def setting(name="equal", epsilon=1.0, relative=0.1):
    """Return a cell at 95 % and delta 1e-6."""
    return Setting(laws.task(name), epsilon, 1e-6, relative, 0.95)


def mean(name, where, choice=None, trials=40):
    """Return what a method returns on average."""
    method = BY_NAME[name]
    chosen = choice or method.choices(where)[0]
    return played(where, method, chosen, trials, seed=5, role="test").returned.mean()


def test_the_zipf_counts_follow_their_law():
    """The k-th count is the largest times k^-0.75, rounded, and none is below 1."""
    task = laws.zipf("zipf300", 300, 5_000)

    assert [300, round(300 * 2**-0.75), round(300 * 10**-0.75)] == task.counts[[0, 1, 9]].tolist()
    assert task.counts.min() == 1
    assert (np.diff(task.counts) <= 0).all()
    assert [1000] * 4 == laws.equal().sorted_counts(4).tolist()


def test_an_unknown_task_is_refused_with_the_names_of_all():
    """The refusal lists what there is."""
    with pytest.raises(InvalidOption, match="zipf1e6"):
        laws.task("pareto")


def test_flights_without_their_data_are_skipped(monkeypatch):
    """A task whose data are not installed is named, and the others run."""
    monkeypatch.setattr(laws, "_data_folder", lambda: None)
    found = compare(Plan(tasks=("flights", "equal"), epsilons=(0.1,), trials=2))

    assert ("flights",) == found.skipped
    assert ["equal"] == list(found.cells)


def test_the_oracle_returns_what_a_pocket_calculator_does():
    """Its number on equal counts is the budget over the price of one count, in the better currency."""
    one = (two_sided(0.05) / 100) ** 2
    mu_squared = float(Gdp.from_epsilon(1, delta=1e-6).amount)

    assert math.floor(mu_squared / one) == mean("oracle", setting(), trials=2)
    assert math.floor(0.1 * 100 / math.log(20)) == mean("oracle", setting(epsilon=0.1), trials=2)


@pytest.mark.parametrize(
    ("name", "total", "over"),
    [
        ("unified", "classic", 1.008),
        ("unified-zcdp", "sharper", 1.008),
        ("unified-gdp", "exact", 1.008),
        ("farthing", "exact", 1.035),
    ],
)
def test_equal_counts_are_returned_in_proportion_to_the_budget(name, total, over):
    """The budget over the price of one release, give or take the last count."""
    where = setting()
    budgets = {
        "classic": 2 * amount(RogersZcdpFilter.from_epsilon(1, delta=1e-6).remaining),
        "sharper": 2 * amount(ZcdpFilter.from_epsilon(1, delta=1e-6).remaining),
        "exact": amount(GdpFilter.from_epsilon(1, delta=1e-6).remaining),
    }
    expected = budgets[total] / (two_sided(0.05) / 100) ** 2 / over

    assert expected == pytest.approx(mean(name, where) + 0.5, rel=0.01)


def test_equal_counts_reach_the_figures():
    """Ours over the unified filter, doubling and the oracle, at epsilon 1 and 0.1."""
    at = {e: {name: mean(name, setting(epsilon=e), tuned(setting(epsilon=e), BY_NAME[name], 1)) for name in BY_NAME}
          for e in (0.1, 1.0)}  # fmt: skip

    assert at[1.0]["farthing"] > 1.5 * at[1.0]["unified"]
    assert at[1.0]["farthing"] > 3.5 * at[1.0]["doubling"]
    assert at[1.0]["farthing"] > 0.95 * at[1.0]["oracle"]
    assert at[0.1]["farthing"] > 1.9 * at[0.1]["unified"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("task", ["equal", "zipf300"])
def test_accountings_of_one_mechanism_differ_in_how_many_of_the_same_releases_fit(task, epsilon):
    """One choice and one stream of draws: session by session a sharper accounting returns what the others do, or more.

    Picks are cheaper in zCDP than in GDP, so where counts are picked only the two in zCDP are in that order.
    """
    where = setting(task, epsilon)
    methods = [BY_NAME[name] for name in tables.ACCOUNTED[:-1]]
    choices = {tuned(where, method, 1) for method in methods}
    classic, sharper, exact = (
        played(where, method, next(iter(choices)), 50, seed=5, role="test").returned for method in methods
    )

    assert 1 == len(choices)
    assert (classic <= sharper).all()
    assert task != "equal" or (sharper <= exact).all()
    assert epsilon != 1.0 or classic.sum() < sharper.sum()


def test_most_of_the_gain_on_equal_counts_is_accounting():
    """Under GDP the plain rule returns a few more counts than ours, whose calibration keeps the confidence."""
    found = compare(Plan(tasks=("equal",), epsilons=(1.0,), trials=200))
    cells = found.cells["equal"][1.0]
    returned = [cells[name].returned for name in tables.ACCOUNTED]

    assert returned == pytest.approx([90, 125.6, 144.5, 140.5], abs=1)
    assert cells["unified-gdp"].within < cells["farthing"].within
    assert "| epsilon | unified | unified-zcdp | unified-gdp | farthing |" in tables.accounting(found, "equal")


@pytest.mark.parametrize("name", BY_NAME)
def test_more_budget_returns_more(name):
    """The number returned rises with epsilon."""
    few, many = (mean(name, setting(epsilon=e), BY_NAME[name].choices(setting())[-1]) for e in (1.0, 5.0))

    assert few < many


def test_the_same_seed_plays_the_same_sessions():
    """One seed, one result; another seed, another."""

    def run(seed):
        found = compare(Plan(tasks=("equal",), epsilons=(1.0,), trials=20, seed=seed))
        return tables.plain(found)["tasks"]

    assert run(3) == run(3)
    assert run(3) != run(4)


def through(books, steps):
    """Return how many counts a filter lets through; a step is the losses of one count, with what is settled after."""
    for done, (losses, settled) in enumerate(steps):
        for loss in losses:
            if not books.can_spend(loss):
                return done
            books = books.spend(loss)
        if settled is not None:
            books = books.settle(settled)
    return len(steps)


def rough(value):
    """Return a float with few bits, exact as a fraction."""
    return float(Fraction(value).limit_denominator(1 << 20))


def test_sums_of_floats_return_what_the_filters_let_through():
    """Every accounting replayed, count by count, through the filter that it stands for."""
    rng = np.random.default_rng(8)
    yes = np.ones((1, 40), bool)
    _, exponent = on_grid(np.array([0.01]))
    pick = BoundedRange(1.02 ** int(exponent[0]))
    for _ in range(5):
        paid = np.array([[rough(x) for x in rng.uniform(0.01, 0.08, 40)]])
        zcdp = RogersZcdpFilter.from_epsilon(2, delta=1e-6)
        sums = Side(paid / 20 + pick_prices(exponent, Zcdp)[0], amount(zcdp.remaining))
        runs = [([pick, Zcdp(Fraction(x) / 20)], None) for x in paid[0]]
        assert through(zcdp, runs) == Played.of([sums], yes, yes).returned[0]

        unified = RogersUnifiedFilter.from_epsilon(2, delta=1e-6)
        stretch = [([pick, BrownianRun(stop=Fraction(x) / 10)], None) for x in paid[0]]
        assert through(unified, stretch) == Played.of([sums], yes, yes).returned[0]

        ex_post = RogersExPostFilter.from_epsilon(1, delta=1e-6)
        settled = [([pick.to(Pure), ExPost(Pure(Fraction(x)))], Pure(Fraction(x))) for x in paid[0]]
        pure = Side(paid + pick_prices(exponent, Pure)[0], 1.0)
        assert through(ex_post, settled) == Played.of([pure], yes, yes).returned[0]

        both = RogersConcurrentFilter.from_epsilon(1, delta=1e-6)
        sides = [
            Side(paid, amount(both.remaining.ex_post)),
            Side(np.full_like(paid, pick_prices(exponent, Zcdp)[0]), amount(both.remaining.zcdp)),
        ]
        beside = [([pick, ExPost(Pure(Fraction(x)))], Pure(Fraction(x))) for x in paid[0]]
        assert through(both, beside) == Played.of(sides, yes, yes).returned[0]

        gdp = GdpFilter.from_epsilon(2, delta=1e-6)
        ours = Side(paid / 10 + pick_prices(exponent, Gdp)[0], amount(gdp.remaining))
        squares = [([pick, Gdp.of_amount(Fraction(x) / 10)], None) for x in paid[0]]
        assert through(gdp, squares) == Played.of([ours], yes, yes).returned[0]


def test_what_was_given_up_is_paid_but_not_returned():
    """A count that is given up leaves less for the others."""
    paid, hit = np.array([[0.25, 0.25, 0.25, 0.25, 0.25]]), np.ones((1, 5), bool)
    kept = np.array([[True, False, True, True, True]])

    assert [3] == Played.of([Side(paid, 1.0)], hit, kept).returned.tolist()


def chain_oracle(runs, boundary, squared):
    """Tell whether no release has paid less than what its stop needs."""
    signal = runs.value**2 * runs.cost if squared else runs.value * runs.cost
    return bool((signal >= boundary ** (2 if squared else 1) * (1 - 1e-12)).all())


def test_an_uncharged_look_is_caught():
    """Each run pays at least the information at which it stopped; one look less is too little."""
    truth, where = np.full(2000, 1000.0), setting()
    looks = chains.plain_schedule(0.1, 0.05, where.mu_squared)
    honest = chains.refined(looks, truth, stream(1), centred=False)
    grains = np.rint(honest.cost / chains.PER_GRAIN).astype(np.int64)
    before = looks.looks[np.searchsorted(looks.looks, grains) - 1] * chains.PER_GRAIN
    stop = chains.ReleaseStop(0.1, math.log(20))
    sharpened, _ = chains.laplace_runs(stop, truth, np.full(2000, 1e-3), math.inf, stream(2))

    assert chain_oracle(honest, looks.jumps.boundary, squared=True)
    assert not chain_oracle(chains.Runs(before, honest.value, honest.kept), looks.jumps.boundary, squared=True)
    assert chain_oracle(sharpened, stop.boundary, squared=False)


def test_doubling_pays_all_its_levels():
    """Cost is first (2^k - 1), and on average what the exact sum over levels says; only the last level is far less."""
    first, truth = 1e-6, np.full(20_000, 1000.0)
    runs = chains.doubled(chains.ReleaseStop(0.1, two_sided(0.05)), truth, np.full(20_000, first), math.inf, stream(3))
    levels = np.log2(runs.cost / first + 1)
    expected = float(doubling_cost(1000, 0.1, 0.0, first=first, last=1.0))
    last_only = (runs.cost + first) / 2

    np.testing.assert_allclose(np.rint(levels), levels, atol=1e-9)
    assert expected == pytest.approx(runs.cost.mean(), rel=0.01)
    assert expected != pytest.approx(last_only.mean(), rel=0.2)


def test_every_filter_total_is_the_one_of_its_theorem():
    """Ours is the exact Gaussian conversion, theirs the classic one: 1.60 and 2.10 times apart."""
    for epsilon, factor in ((1, 1.604), (0.1, 2.104)):
        ours = amount(GdpFilter.from_epsilon(epsilon, delta=1e-6).remaining)
        theirs = 2 * amount(RogersUnifiedFilter.from_epsilon(epsilon, delta=1e-6).remaining)
        assert factor == pytest.approx(ours / theirs, abs=1e-3)


def test_picks_come_in_order_where_epsilon_is_large():
    """With next to no noise the picks are the counts in falling order; without picks they are all alike."""
    task = laws.zipf("zipf300", 300, 50)
    near = race(task.counts, np.array([50.0]), 10, stream(1))
    eager = Pace(eagerness=1e4)

    def release(truth, _expected, _least):
        return chains.Runs(np.ones_like(truth), truth, np.ones(len(truth), bool))

    followed = follow(task, eager, 10, 3, stream(2), release=release)

    assert list(range(10)) == near[0].tolist()
    assert [task.counts[:10].tolist()] * 3 == followed.sizes.tolist()
    assert (in_order(laws.equal(), 0.0, 3, 2, stream(3)) == 1000).all()


def test_counts_that_were_given_up_are_picked_again_and_then_released():
    """What goes back comes again, without a floor; when all is returned nothing more is to be had."""
    task = laws.zipf("zipf300", 300, 4)

    def release(truth, _expected, least):
        return chains.Runs(np.ones_like(truth), truth, (truth < 300) | (least == -np.inf))

    followed = follow(task, Pace(1e4), 6, 1, stream(2), release=release)

    assert [300, 300, 178, 132, 106] == followed.sizes[0][:5].tolist()
    assert [False, True, True, True, True, False] == followed.runs.kept[0].tolist()
    assert 0 == followed.runs.cost[0, 5]
    assert [True] * 5 + [False] == followed.made[0].tolist()


def test_the_numbers_of_a_method_are_those_of_the_sweep():
    """At other targets than the standard one the choices are swept; a method without any has one."""
    where = setting("zipf300", 1.0, 0.2)

    assert isinstance(tuned(where, BY_NAME["unified"], 1), PublicChoice)
    assert tuned(setting(), BY_NAME["oracle"], 1) == PublicChoice()


def test_only_one_module_draws_from_a_statistical_generator():
    """numpy.random is imported in the chance of the experiments, whose counts are made up or public."""
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "experiments").glob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numpy.random")
    }

    assert {"experiments/chance.py"} == users


def test_quick_json_has_the_keys_of_the_contract():
    """Tasks, epsilons as text, methods, returned and within."""
    ended = CliRunner().invoke(app, ["compare", "--quick", "--json", "--task", "equal", "--trials", "5"])
    found = json.loads(ended.stdout)["tasks"]["equal"]

    assert 0 == ended.exit_code
    assert {"0.1", "1"} == set(found)
    assert set(BY_NAME) == set(found["1"])
    assert {"returned", "within"} <= set(found["1"]["farthing"])
    assert {"doubling", "unified", "lemma52", "concurrent", "ireduct", "farthing", "oracle"} == set(tables.NAMES)
    assert {"unified-zcdp", "unified-gdp"} == set(BY_NAME) - set(tables.NAMES)


def test_the_table_and_the_chart_are_written(tmp_path):
    """The table names every method, and the chart is a picture."""
    pytest.importorskip("altair")
    target = tmp_path / "returned.svg"
    ended = CliRunner().invoke(app, ["compare", "--quick", "--task", "equal", "--trials", "3", "--chart", str(target)])

    assert 0 == ended.exit_code
    assert all(name in ended.stdout for name in BY_NAME)
    assert target.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    "typed",
    [
        ["--task", "pareto"],
        ["--relative", "0"],
        ["--relative", "60%"],
        ["--relative", "ten"],
        ["--trials", "0"],
        ["--trials", "1e3"],
        ["--seed", "-1"],
        ["--chart", "returned.pdf"],
    ],
)
def test_bad_input_is_a_usage_error(typed):
    """Exit code 2, one line on stderr, nothing on stdout."""
    ended = CliRunner().invoke(app, ["compare", "--quick", *typed])

    assert 2 == ended.exit_code
    assert "" == ended.stdout
    assert 1 == len(ended.stderr.strip().splitlines())


def test_rho_needed_is_interpolated_in_logarithms():
    """A method needs its own budget for its own number, and less where it returns more."""
    found = compare(Plan(tasks=("equal",), epsilons=(0.5, 1.0, 2.0), trials=10))
    own = tables.rho_needed(found, "equal", 1.0, "unified")

    assert Gdp.from_epsilon(1, delta=1e-6).mu ** 2 / 2 == pytest.approx(own, rel=1e-6)
    assert tables.rho_needed(found, "equal", 1.0, "farthing") < 0.7 * own
    assert tables.rho_needed(found, "equal", 0.5, "farthing") is None
    assert "| epsilon | doubling | unified |" in tables.markdown(found)


def test_the_stored_choices_are_a_table_that_is_read_and_written_alike(tmp_path):
    """tuned.csv has one line a cell, and writing what was read changes no letter of it."""
    before = STORED.read_text(encoding="utf-8")
    assert len(stored()) == before.count("\n") - 1 > 150
    store(stored().items(), tmp_path / "again.csv")
    assert before == (tmp_path / "again.csv").read_text(encoding="utf-8")


def test_residue_prices_are_the_library_s_prices():
    """Pick by pick, what a pick takes out of a total is what `choice_cost` says; slots without a pick take nothing."""
    exponent, cost = np.array([[-150, -120, -100, -90]]), np.array([[0.01, 0.02, 0.0, 0.02]])
    made, left = np.array([[True, True, False, True]]), Fraction(1, 10)
    found = residue_prices(exponent, cost, 0.1, made=made)[0]

    for price, at, spent, there in zip(found, exponent[0], cost[0], made[0], strict=True):
        exact = choice_cost(Fraction(GRID ** int(at)), left) if there else 0
        assert float(exact) * (1 - 1e-12) <= price <= float(exact) * 1.001
        left -= Fraction(price) + Fraction(spent)


def test_a_round_that_finds_too_few_open_counts_ends_no_session():
    """What a round cannot pick costs nothing: counts that were given up are picked again in the next round."""
    task = laws.zipf("steep", 100_000, 12)

    def release(truth, _expected, least):
        return chains.Runs(np.ones_like(truth), truth, truth >= least)

    followed = follow(task, Pace(1e4), 40, 2, stream(2), release=release)

    assert np.isfinite(followed.runs.cost).all()
    assert [12, 12] == (followed.runs.kept & followed.made).sum(axis=1).tolist()
    assert not followed.runs.cost[~followed.made].any()
    assert not followed.runs.kept[~followed.made].any()
