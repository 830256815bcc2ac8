"""Shares of a total: what they tell, pay and keep, and the interval of a group and its total."""

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.accuracy.group_guess import GroupGuess
from farthing.accuracy.running_sums import RunningSums
from farthing.accuracy.share_of_total import SharesOfTotal
from farthing.accuracy.total_state import TotalState
from farthing.errors import BudgetExceeded, InvalidKeys, InvalidTarget, LedgerError, OutOfReach, UnsupportedQuery
from farthing.session.answering.laplace_measures import state_of as laplace_state_of
from farthing.session.answering.share_of_total import blob_of, state_of

SIZES = {"centre": 5_000, "port": 3_000, "north": 1_500, "south": 500}
ROWS = pa.table({
    "zone": np.repeat(list(SIZES), list(SIZES.values())),
    "late": np.arange(10_000) % 5 == 0,
    "fare": np.arange(10_000) % 10 + 0.5,
    "rider": np.arange(10_000) % 2_000,
})  # fmt: skip
KEYS = {"zone": list(SIZES)}
SHARE = "SELECT zone, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM rides GROUP BY zone"
TRUTH = np.array(list(SIZES.values())) / 10_000
BUDGET = Budget(mu=20, delta=1e-6)


def opened(**how):
    """Open the rides."""
    return Session(ROWS, name="rides", **({"budget": BUDGET} | how))


def test_a_share_is_within_its_target_and_its_interval_holds():
    """At a confidence that leaves no doubt; values stay within the target of the truth; groups pay alike."""
    with opened() as session:
        answer = session.sql(SHARE, keys=KEYS, absolute=0.02, confidence=0.999999)

    assert answer.met.all()
    assert ((answer.lower <= TRUTH) & (answer.upper >= TRUTH)).all()
    assert np.abs(answer.value - TRUTH).max() <= 0.02
    assert 1 == len(set(answer.to_arrow()["paid"].to_pylist()))


def test_rows_outside_of_the_keys_are_in_no_total():
    """The total is that of the groups that are asked: SQL adds up the groups that it shows."""
    with opened() as session:
        answer = session.sql(SHARE, keys={"zone": ["north", "south"]}, absolute=0.02, confidence=0.999999)

    assert np.abs(answer.value - [0.75, 0.25]).max() <= 0.02
    assert "each share is of the total of the groups that are answered" in repr(answer)


def test_percent_and_the_count_beside_it():
    """A factor scales values, intervals and the target; what is asked beside it is measured beside it."""
    text = SHARE.replace("COUNT(*) /", "COUNT(*) AS n, 100.0 * COUNT(*) /")
    with opened() as session:
        answer = session.sql(text, keys=KEYS, absolute={"n": 200, "share": 2}, confidence=0.999999).to_arrow()

    assert np.abs(np.array(answer["share"]) - 100 * TRUTH).max() <= 2
    assert np.abs(np.array(answer["n"]) - 10_000 * TRUTH).max() <= 200


def test_shares_within_each_value_of_a_column():
    """PARTITION BY: each zone is a total; small zones pay more than large ones."""
    text = "SELECT zone, late, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY zone) AS share FROM rides GROUP BY 1, 2"
    with opened() as session:
        answer = session.sql(text, keys=KEYS | {"late": [False, True]}, absolute=0.04, confidence=0.999999)
        table = answer.to_arrow()

    truth = np.where(np.array(table["late"]), 0.2, 0.8)
    assert np.abs(np.array(table["share"]) - truth).max() <= 0.04
    paid = dict(zip(np.array(table["zone"]).tolist(), np.array(table["paid"]).tolist(), strict=True))
    assert paid["centre"] < paid["port"] < paid["north"] < paid["south"]


def test_shares_of_a_sum_with_a_unit_that_has_many_rows():
    """Bounds cut first: each rider counts in two zones, with two rows in each."""
    text = (
        "SELECT zone, SUM(CLAMP(fare, 0, 10)) / SUM(SUM(CLAMP(fare, 0, 10))) OVER () AS share FROM rides GROUP BY zone"
    )
    with opened(unit="rider", bounds=Bounds(4, 5)) as session:
        answer = session.sql(text, keys=KEYS, absolute=0.1, confidence=0.999999, cap="all")

    assert answer.met.all()
    assert np.abs(answer.value - TRUTH).max() <= 0.1


def test_what_was_paid_is_kept_and_sharpened_for_the_difference(tmp_path):
    """The same again and looser is free, in another session too; sharper in two steps costs little more."""
    ledger = tmp_path / "rides.ledger"
    with opened(ledger=ledger) as session:
        first = session.sql(SHARE, keys=KEYS, absolute=0.04)
        again = session.sql(SHARE, keys=KEYS, absolute=0.04)
        looser = session.sql(SHARE.replace("AS share", "AS s"), keys={"zone": list(SIZES)[::-1]}, absolute=0.05)
        percent = session.sql(SHARE.replace("COUNT(*) /", "100.0 * COUNT(*) /"), keys=KEYS, absolute=4)
        sharper = first.refine(absolute=0.01)
    with opened(ledger=ledger) as session:
        assert session.sql(f"EXPLAIN {SHARE}", keys=KEYS, absolute=0.02).free
        later = session.sql(SHARE, keys=KEYS, absolute=0.01)
    with opened() as session:
        once = session.sql(SHARE, keys=KEYS, absolute=0.01).paid

    assert not again.paid
    assert not looser.paid
    assert not percent.paid
    assert np.allclose(percent.value, 100 * first.value)
    assert not later.paid
    assert np.array_equal(later.value, sharper.value)
    assert sharper.met.all()
    assert first.paid.amount < 0.2 * once.amount
    assert first.paid.amount + sharper.paid.amount < 1.6 * once.amount


def test_the_price_is_at_most_the_plan_and_what_is_left():
    """A cap holds; what does not fit is refused free; a named loss is spent."""
    with opened() as session:
        capped = session.sql(SHARE, keys=KEYS, absolute=0.0001, cap=Gdp(0.05))
        assert capped.paid <= Gdp(0.05)
        assert not capped.met.any()
        assert ((capped.lower <= TRUTH + 0.2) & (capped.upper >= TRUTH - 0.2)).all()
        named = session.sql(SHARE, keys=KEYS, loss=Gdp(0.5))
        assert Gdp(0.45) < named.paid <= Gdp(0.5)
        assert named.met.all()
    with opened(budget=Budget(mu=0.01, delta=1e-6)) as session, pytest.raises(BudgetExceeded):
        session.sql(SHARE, keys=KEYS, absolute=0.01, cap=Gdp(0.05))


@pytest.mark.parametrize("factor", [1, 100])
def test_half_of_the_range_needs_no_data(factor):
    """A share lies between 0 and its factor: the middle is within half of that, whatever the rows are."""
    text = SHARE.replace("COUNT(*) /", f"{factor} * COUNT(*) /")
    with opened() as session:
        assert session.sql(f"EXPLAIN {text}", keys=KEYS, absolute=factor / 2).free
        loose = session.sql(text, keys=KEYS, absolute=factor / 2)
        assert not loose.paid
        assert loose.met.all()
        assert {(factor / 2, 0.0, float(factor))} == set(zip(loose.value, loose.lower, loose.upper, strict=True))
        nearer = session.sql(text, keys=KEYS, absolute=0.49 * factor)
        assert nearer.paid
        assert nearer.met.all()
        again = session.sql(text, keys=KEYS, absolute=0.6 * factor)
    assert np.array_equal(again.upper, nearer.upper)


@pytest.mark.parametrize(("target", "beta"), [((0.0, 0.49), 0.5), ((0.0, 0.4), 0.05), ((1.0, 0.0), 0.2)])
def test_loose_targets_cost_little_in_every_run(target, beta):
    """A total that seems clear by luck is looked at again: giving it up would cost hundreds of times as much."""
    runs, rng = 4_000, np.random.default_rng(0)
    truth, places = np.full(2 * runs, 1_500.0), np.repeat(np.arange(runs), 2)
    shares = SharesOfTotal(places, target, beta, 2.0**-56, 1, 40 << 56)

    def measure(grains, shared):
        own = rng.standard_normal(2 * runs) / np.sqrt(np.maximum(grains, 1) * 2.0**-56)
        total = rng.standard_normal(runs)[places] / np.sqrt(np.maximum(shared, 1) * 2.0**-56)
        return truth + own, 2 * truth + total

    state = shares.run(TotalState.nothing(2 * runs), measure)
    paid = np.sqrt(state.paid / 2.0**56)
    assert paid.max() < 0.05
    assert paid.max() < 10 * np.median(paid)


def test_zcdp_and_a_pure_budget():
    """Both answer shares; a running total over the whole needs Gaussian noise, and a pure budget refuses it, free."""
    with opened(budget=Budget(rho=2, delta=1e-6)) as session:
        assert session.sql(SHARE, keys=KEYS, absolute=0.05).met.all()
    with opened(budget=Budget(epsilon=400)) as session:
        with pytest.raises(UnsupportedQuery, match="pure budget"):
            session.sql(RUNNING.replace(" AS n", " / SUM(COUNT(*)) OVER () AS n"), keys=KEYS, absolute=0.1)
        assert not session.history()
        plan = session.plan(SHARE, keys=KEYS, absolute=0.05)
        for how in ({"absolute": 0.04}, {"absolute": 0.02}, {"relative": 0.3}, {"loss": Pure(3)}):
            answer = session.sql(SHARE, keys=KEYS, **how, confidence=0.999999)
            assert answer.met.all()
            assert ((answer.lower <= TRUTH) & (TRUTH <= answer.upper)).all()
            assert np.abs(answer.value - TRUTH).max() <= how.get("absolute", 0.05)
            assert answer.paid <= plan.cap
        assert not session.sql(SHARE, keys=KEYS, absolute=0.02, confidence=0.999999).paid
        known = session.sql(SHARE.replace("rides", "rides WHERE late"), keys=KEYS, absolute=0.5)
    assert not known.paid
    assert [0.5] * 4 == known.value.tolist()
    assert known.met.all()


def test_pure_units_pay_once_for_each_of_their_groups():
    """The price is that of all groups of a unit: of each its own last levels and those of its total, both chains."""
    with opened(unit="rider", bounds=Bounds(3, 5), budget=Budget(epsilon=400)) as session:
        paid = session.sql(SHARE, keys=KEYS, absolute=0.1).paid
        state, _ = laplace_state_of(session._ledger.load(session.history()[-1].question).blob)

    assert len(set(state.claimed.level[1])) == len(set(state.claimed.value[1])) == 1
    assert paid.farthings == np.sort(state.paid)[-3:].sum()


def test_a_group_that_is_alone_in_its_total_pays_nothing():
    """Beside totals of several groups: its share is 1, which needs no data."""
    text = "SELECT zone, late, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY zone) AS share FROM rides GROUP BY 1, 2"
    keys = pa.table({"zone": ["centre", "centre", "port"], "late": [False, True, True]})
    pure = Budget(epsilon=40)
    for how in (
        {"absolute": 0.04},
        {"loss": Gdp(0.2)},
        {"absolute": 0.04, "budget": pure},
        {"loss": Pure(1), "budget": pure},
    ):
        with opened(budget=how.pop("budget", BUDGET)) as session:
            rows = session.sql(text, keys=keys, **how, confidence=0.999999).to_arrow().to_pylist()
        (alone,) = (row for row in rows if row["zone"] == "port")
        assert [1.0, 1.0, 1.0, True, 0.0] == [
            alone[name] for name in ("share", "share_lower", "share_upper", "met", "paid")
        ]
        assert all(row["paid"] > 0 for row in rows if row["zone"] == "centre")


@pytest.mark.parametrize(("keys", "over"), [({"zone": ["port"]}, ""), (KEYS, "PARTITION BY zone")])
def test_a_group_that_is_the_whole_is_refused(keys, over):
    """A share of 1 needs no data."""
    with opened() as session, pytest.raises(InvalidKeys, match="the whole of its total"):
        session.sql(SHARE.replace("OVER ()", f"OVER ({over})"), keys=keys, absolute=0.05)


@pytest.mark.parametrize("most", [1, 2])
def test_the_first_groups_are_shown_with_their_shares_of_all(most):
    """ORDER BY n DESC LIMIT 1 chooses no groups before: the total is that of all."""
    text = SHARE.replace("COUNT(*) /", "COUNT(*) AS n, COUNT(*) /") + f" ORDER BY n DESC LIMIT {most}"
    for unit in ({}, {"unit": "rider", "bounds": Bounds(4, 5)}):
        with opened(**unit) as session:
            shown = session.sql(text, keys=KEYS, absolute={"n": 500, "share": 0.05}, confidence=0.999999).to_arrow()
        assert list(SIZES)[:most] == shown["zone"].to_pylist()
        assert np.abs(np.array(shown["share"]) - TRUTH[:most]).max() <= 0.05


def test_options_that_are_of_other_questions_are_refused():
    """A share of the groups, a mechanism and a rank are none of a share of a total."""
    with opened() as session:
        for how in ({"share": 0.5}, {"mechanism": "asinh", "relative": 0.2}, {"rank": 0.1}):
            with pytest.raises((InvalidTarget, UnsupportedQuery)):
                session.sql(SHARE, keys=KEYS, **({"absolute": 0.05} | how))
        assert not session.history()


def test_progress_is_told():
    """Each claim is told, with the groups that are within their target."""
    told = []
    with opened() as session:
        session.sql(SHARE, keys=KEYS, absolute=0.02, progress=told.append)
    assert told
    assert told[-1].groups == 4


def test_a_record_is_read_as_it_was_written_and_no_other():
    """Bytes of another kind are refused."""
    state = TotalState(*(np.arange(6.0).reshape(2, 3) + 1 for _ in range(2)),
                       *(np.arange(6).reshape(2, 3) for _ in range(2)), np.array([0, 1, 2]))  # fmt: skip
    read = state_of(blob_of(state))

    for name in TotalState.__slots__:
        assert np.array_equal(getattr(read, name), getattr(state, name))
    with pytest.raises(LedgerError, match="cannot be read"):
        state_of(b"something else")


def test_what_a_claim_is_to_hold_follows_from_the_pilot_alone():
    """Not from what was claimed: so what is claimed is plain Gaussian noise."""
    shares = SharesOfTotal(np.zeros(3, np.int64), (0.1, 0.02), 0.05, 2.0**-56, 1, 1 << 56)
    paid = np.array([[1 << 44] * 3, [0] * 3])
    pilot = TotalState(
        np.array([[300.0, 500, 200], [0] * 3]), np.array([[1000.0] * 3, [0] * 3]), paid, paid, np.zeros(3, np.int64)
    )
    wanted = shares.planned(pilot)
    for scale in (0.0, 1.0, 7.0):
        claimed = TotalState(pilot.own * np.array([[1], [scale]]), pilot.total * np.array([[1], [scale]]),
                             pilot.grains + np.array([[0], [1 << 40]]), pilot.shared, pilot.repairs)  # fmt: skip
        assert all(np.array_equal(one, other) for one, other in zip(shares.planned(claimed), wanted, strict=True))


def test_the_interval_is_that_of_the_joint_law():
    """By sampling: the estimates of group and total have the variances and the covariance that are told."""
    rng, runs = np.random.default_rng(0), 60_000
    places, truth = np.repeat(np.arange(runs), 3), np.tile([300.0, 500.0, 200.0], runs)
    shares = SharesOfTotal(places, (0.0, 0.02), 0.05, 2.0**-56, 2, 1 << 56)
    grains, shared = np.full(len(truth), 1 << 50), np.full(len(truth), 1 << 49)
    own = truth + rng.standard_normal(len(truth)) * 8
    total = 1000 + rng.standard_normal(runs)[places] * 16
    none = np.zeros_like(truth)
    state = TotalState(np.array([none, own]), np.array([none, total]), np.array([none, grains]).astype(np.int64),
                       np.array([none, shared]).astype(np.int64), np.zeros(len(truth), np.int64))  # fmt: skip
    part, whole, variance, covariance, spread = (one[::3] for one in shares._estimates(state, 1))

    seen = np.cov(part, whole)
    assert np.allclose([seen[0, 0], seen[0, 1], seen[1, 1]], [variance[0], covariance[0], spread[0]], rtol=0.05)
    assert np.allclose([part.mean(), whole.mean()], [300, 1000], atol=0.3)


RUNNING = "SELECT zone, SUM(COUNT(*)) OVER (ORDER BY zone DESC) AS n FROM rides GROUP BY zone"


def test_running_totals_and_what_they_cost():
    """In the order of the keys, whatever order they are listed in; their price is known, sharper ones pay the rest."""
    truth = np.array([sum(size for other, size in SIZES.items() if other >= zone) for zone in SIZES])
    sure = {"keys": KEYS, "confidence": 0.999999}
    with opened() as session:
        plan = session.plan(RUNNING, absolute=60, **sure)
        first = session.sql(RUNNING, absolute=60, **sure)
        sharper = first.refine(absolute=30)
        again = session.sql(RUNNING, absolute=40, **sure)
        parts = session.sql(RUNNING.replace(" AS n", " / SUM(COUNT(*)) OVER () AS n"), absolute=0.02, **sure)
        sums = session.sql(RUNNING.replace("COUNT(*)", "SUM(CLAMP(fare, 0, 10))"), relative=0.1, absolute=800, **sure)
    with opened() as session:
        fresh = session.sql(RUNNING, absolute=30, **sure)

    assert plan.reachable
    assert first.paid == plan.worst_price
    for answer, true in ((first, truth), (sharper, truth), (parts, truth / 10_000), (sums, truth * 5.0)):
        assert answer.met.all()
        assert ((answer.lower <= true) & (true <= answer.upper)).all()
    assert np.abs(sharper.value - truth).max() <= 30
    assert not again.paid
    assert fresh.paid.value**2 == pytest.approx(first.paid.value**2 + sharper.paid.value**2, rel=1e-3)


def test_pure_running_totals_are_sums_of_groups_that_are_measured_alike():
    """The price is known, whatever the groups hold; a sharper one pays the rest, refusals and repeats nothing."""
    sure, truth = {"keys": KEYS, "confidence": 0.999999}, np.array(
        [sum(size for other, size in SIZES.items() if other >= zone) for zone in SIZES]
    )  # fmt: skip
    with opened(budget=Budget(epsilon=20)) as session:
        plan = session.plan(RUNNING, absolute=200, **sure)
        first = session.sql(RUNNING, absolute=200, **sure)
        sharper, again = first.refine(absolute=100), session.sql(RUNNING, relative=0.1, absolute=150, **sure)
        scaled = session.sql(RUNNING.replace(" AS n", " / 60 AS n"), absolute=100 / 60, **sure)
        sums = session.sql(RUNNING.replace("COUNT(*)", "SUM(CLAMP(fare, 0, 10))"), absolute=2_000, **sure)
        whole = session.sql("SELECT zone, SUM(COUNT(*)) OVER () AS n FROM rides GROUP BY zone", absolute=300, **sure)
        spent = session.spent
        with pytest.raises(InvalidTarget, match="a relative target of a total over groups under a pure budget"):
            session.sql(RUNNING, relative=0.1, **sure)
        with pytest.raises(OutOfReach):
            session.sql(RUNNING, absolute=1e-3, **sure)
        with pytest.raises(UnsupportedQuery, match="a running total over the whole under a pure budget"):
            session.plan(RUNNING.replace(" AS n", " / SUM(COUNT(*)) OVER () AS n"), absolute=0.1, **sure)
        assert spent == session.spent
        named = session.sql(RUNNING, loss=Pure(2), cap=None, **sure)

    assert plan.reachable
    assert first.paid == plan.worst_price
    assert 0.5 * 200 < plan.half_width <= 200
    assert not again.paid
    assert not scaled.paid
    for answer, true in ((first, truth), (sharper, truth), (scaled, truth / 60), (sums, truth * 5.0), (named, truth)):
        assert answer.met.all()
        assert ((answer.lower <= true) & (true <= answer.upper)).all()
    assert ((whole.lower <= 10_000) & (10_000 <= whole.upper)).all()
    assert np.abs(sharper.value - truth).max() <= 100


def test_a_pure_running_total_costs_no_more_than_its_largest_sum_needs():
    """The target's price is that of the least level that serves, not of the next whole distance of one group.

    A named loss of 1 % less is not enough; what no level reaches has no price, whatever the cap.
    """
    with opened(budget=Budget(epsilon=1000)) as session:
        for target in (20, 8, 4.5, 1, 0.4):
            plan = session.plan(RUNNING, absolute=target, keys=KEYS, cap="all")
            less = session.plan(RUNNING, loss=Pure(plan.worst_price.value * 0.99), cap=None, keys=KEYS)
            assert plan.reachable
            assert plan.target_price == plan.worst_price
            assert plan.half_width <= target < less.half_width
            assert plan.half_width >= np.floor(target)
        sums = RUNNING.replace("COUNT(*)", "SUM(CLAMP(fare, 0, 10))")
        beyond = session.plan(sums, absolute=1e-3, keys=KEYS, cap="all")
        small = session.plan(RUNNING, absolute=1, keys=KEYS, cap=Pure(2))
        whole = session.plan(RUNNING, absolute=1, keys=KEYS, cap="all")

    assert (None, True) == (beyond.target_price, beyond.hopeless)
    assert "the target would take" not in beyond.advice
    assert Pure(2) == small.worst_price
    assert small.hopeless
    assert whole.worst_price == small.target_price


def test_shares_of_groups_that_are_found_need_a_search_before():
    """Nothing is paid for groups that turn out to be one: shares are refused free, and answered of those found."""
    private = {"keys": "private", "found_above": 200}
    with opened(budget=Budget(mu=20, delta=1e-6, keys_delta=1e-8)) as session:
        for text in (SHARE, SHARE.replace("COUNT(*) /", "COUNT(*) AS n, 1 - COUNT(*) /")):
            for ask in (session.sql, session.plan):
                with pytest.raises(InvalidKeys, match="shares of a total of groups that were not found yet"):
                    ask(text, absolute=0.05, **private)
        assert not session.spent
        session.sql("SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone", absolute=200, **private)
        answer = session.sql(SHARE, absolute=0.05, **private)

    assert set(SIZES) >= set(answer.keys["zone"].to_pylist()) >= {"centre", "port", "north"}


@pytest.mark.thorough
@pytest.mark.statistical
def test_every_pure_running_total_is_covered():
    """Sums of 1, 2, ... 30 groups in partitions of their own; of half the noise's scale they would be missed too often.

    Power: a sum of one group alone is then told at the width of P[|noise| > w/2], a miss in more than a fifth.
    """
    runs, many = 300, 30
    keys = pa.table({"run": np.repeat(np.arange(runs), many), "step": np.tile(np.arange(many), runs)})
    rows = pa.table({"run": [0], "step": [0]})
    text = "SELECT run, step, SUM(COUNT(*)) OVER (PARTITION BY run ORDER BY step) AS n FROM data GROUP BY 1, 2"
    with Session(rows, name="data", budget=Budget(epsilon=20)) as session:
        answer = session.sql(text, keys=keys, absolute=60, cap="all")
    truth = np.where(keys["run"].to_numpy() == 0, 1.0, 0.0)
    half, off = (answer.upper - answer.lower) / 2, np.abs(answer.value - truth)
    missed, caught = (
        (off > part * half).reshape(runs, many).sum(axis=0) for part in (1.0, 0.25)
    )  # fmt: skip
    allowed = binom.isf(ALPHA / many, runs, 0.05)

    assert answer.met.all()
    assert missed.max() <= allowed
    assert caught.min() > allowed


def test_running_totals_within_partitions_and_with_equals():
    """PARTITION BY begins anew; groups that are alike in the order count together; a total alone is that of all."""
    text = "SELECT zone, late, SUM(COUNT(*)) OVER ({}) AS n FROM rides GROUP BY zone, late"
    keys = {"zone": ["port", "centre"], "late": [True, False]}
    cells = {(zone, late): SIZES[zone] * (0.2 if late else 0.8) for zone in keys["zone"] for late in keys["late"]}
    adds = {
        "PARTITION BY zone ORDER BY late": lambda a, b: a[0] == b[0] and a[1] <= b[1],
        "ORDER BY zone": lambda a, b: a[0] <= b[0],
        "ORDER BY zone, late DESC ROWS UNBOUNDED PRECEDING": lambda a, b: (
            a[0] < b[0] or (a[0] == b[0] and a[1] >= b[1])
        ),
        "PARTITION BY late": lambda a, b: a[1] == b[1],
        "": lambda _a, _b: True,
    }
    with opened() as session:
        for over, counts in adds.items():
            rows = session.sql(text.format(over), keys=keys, absolute=100, confidence=0.999999).to_arrow().to_pylist()
            for row in rows:
                here = (row["zone"], row["late"])
                truth = sum(size for cell, size in cells.items() if counts(cell, here))
                assert row["n_lower"] <= truth <= row["n_upper"], (over, here)


def test_a_total_that_is_surely_too_small_pays_little():
    """No share of an empty total can be told: it is given up once that is plain, and goes on under a larger cap."""
    few = pa.table({"zone": np.repeat(["north", "south", "east"], [30, 30, 50])})
    cap = Gdp(0.3)
    many = [f"zone {number}" for number in range(12)]
    loose = ({"relative": 0.2}, many, 0.15), ({"relative": 0.3}, many, 0.25)
    fine = (({"absolute": absolute}, ["centre", "port"], most) for absolute, most in ((0.02, 0.03), (0.1, 0.15)))
    for target, zones, most in (*fine, *loose):
        with Session(few, name="rides", budget=BUDGET) as session:
            how = {"keys": {"zone": zones}, **target}
            first = session.sql(SHARE, cap=cap, **how)
            assert first.paid.value**2 <= most * cap.value**2
            assert not first.met.any()
            assert session.sql(SHARE, cap=cap, **how).paid.value <= 0
    with Session(few, name="rides", budget=BUDGET) as session:
        how = {"keys": {"zone": ["north", "south"]}, "absolute": 0.05, "confidence": 0.999999}
        assert not session.sql(SHARE, cap=Gdp(0.05), **how).met.any()
        later = session.sql(SHARE, cap=Gdp(12), **how)
        assert later.met.all()
        assert ((later.lower <= 0.5) & (later.upper >= 0.5)).all()


@pytest.mark.parametrize("target", [(0.3, 0.0), (0.3, 0.05), (0.1, 0.08), (0.0, 0.2), (0.05, 0.2)])
def test_no_share_costs_less_than_the_least(target):
    """Whatever the share, and however the price is split: the least is below, and some share comes near."""
    for count, together in ((2, 1), (5, 3), (40, 1)):
        one = SharesOfTotal(np.zeros(count, np.int64), target, 0.05, 1.0, together, 1 << 58)
        least = float(one.least(np.full(count, 900.0), np.full(count, 2.0))[0])
        shares = np.append(np.linspace(1e-3, 1, 2_001), 1 / count)
        nothing = np.zeros(len(shares))
        wide = SharesOfTotal(np.zeros(len(shares), np.int64), target, 0.05, 1.0, together, 1 << 58)
        object.__setattr__(wide, "sizes", np.full(len(shares), float(count)))
        guess = GroupGuess(900 * shares, np.full(len(shares), 900.0), shares, nothing, nothing)
        costs = wide._costs(guess, np.full(len(shares), 2.0)).min(axis=0)

        assert least <= costs.min() * (1 + 1e-9)
        assert costs.min() <= 1.2 * least or 0 < target[1] < target[0]


def test_plans_say_why_nothing_is_paid():
    """Since it was paid before, or since nothing is measured."""
    with opened() as session:
        assert "(nothing is measured: free)" in str(session.plan(SHARE, keys=KEYS, absolute=0.5))
        session.sql(SHARE, keys=KEYS, absolute=0.1)
        assert "(already paid for: free)" in str(session.plan(SHARE, keys=KEYS, absolute=0.1))


@pytest.mark.parametrize(
    ("divided", "sizes"), [(None, [2400, *[60] * 39]), (False, [60, *[500] * 11]), (True, [60, *[500] * 11])]
)
def test_no_chain_of_targets_pays_more_than_its_plan_says(divided, sizes):
    """Of either kind, sharper and looser, under caps that grow and shrink, and with a loss that is named in between."""
    count, rng = len(sizes), np.random.default_rng(0)
    places, truth = np.zeros(count, np.int64), np.array(sizes, np.float64)
    running = None if divided is None else RunningSums.of(places, np.arange(count))
    unit, crowded = (400.0 if divided is False else 1.0), 0

    def measure(grains, shared):
        own = rng.standard_normal(count) / np.sqrt(np.maximum(grains, 1) * 2.0**-56)
        total = rng.standard_normal() / np.sqrt(np.maximum(shared, 1) * 2.0**-56)
        return truth + own, truth.sum() + total

    for _ in range(20):
        state, first = TotalState.nothing(count), int(rng.integers(1 << 50, 1 << 53))
        for target in [(0.3, 0.0), (0.0, 0.02), *rng.permutation([(0.4, 0.0), (0.05, 0.15), (0.0, 0.05), (0.0, 0.0)])]:
            cap, loose = int(first * rng.choice([1, 1, 1, 0.5, 4])), (float(target[0]), float(target[1]) * unit)
            shares = SharesOfTotal(
                places, loose, 0.05, 2.0**-56, 1, cap, bool(rng.integers(2)), running, divided is not False
            )
            worst, before = shares.worst(state), state
            crowded += bool(shares._crowded(state).any())
            state = shares.run(state, measure)
            assert shares.free(state)
            assert state.paid.max() <= worst <= max(cap, before.paid.max())
            assert (state.paid >= before.paid).all()
    assert crowded


def test_sums_to_a_distance_are_asked_at_the_price_of_their_plan():
    """The cap that a plan names is enough; a little less is refused, by the plan as by the ask."""
    for absolute in (30, 31.7, 100):
        with opened() as session:
            how = {"keys": KEYS, "absolute": absolute}
            price = session.plan(RUNNING, **how).worst_price
            less = Gdp(0.999 * price.mu)
            assert not session.plan(RUNNING, cap=less, **how).reachable
            with pytest.raises(OutOfReach):
                session.sql(RUNNING, cap=less, **how)
            answer = session.sql(RUNNING, cap=price, **how)
        assert answer.met.all()
        assert answer.paid == price
