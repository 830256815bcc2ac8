"""Shares of the groups, ratios, differences and rankings, through sessions, SQL and the command line."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import farthing
from farthing.accuracy.ranking import FEWEST_GRAINS, RankingContest
from farthing.accuracy.ranking_bounds import _AROUND, _PARTS, proved_leads
from farthing.accuracy.ranking_places import PILOT, RankingPlaces, looks
from farthing.cli.app import app
from farthing.errors import InvalidBounds, InvalidKeys, InvalidTarget, LedgerMismatch, UnsupportedQuery
from farthing.normal import ndtri
from farthing.query.aggregates import Count, Mean, Ratio, Sum, ratio_of
from farthing.query.expressions import Case, Column, Compare, Literal, Operator
from farthing.session.answering.laplace_count import chain_of
from farthing.session.choosing import ranking_noise

SIZES = (40_000, 20_000, 9_000, 4_000, 1_500, 500, 90, 10)
ZONES = {"zone": list(range(len(SIZES)))}
LATE = Case(((Compare(Column("delay"), Operator.GT, Literal(15)), Literal(1)),))


@pytest.fixture(scope="module")
def rides():
    """Return rides by zone, with delays, tips and fares; some are missing."""
    rng = np.random.default_rng(5)
    zone = np.repeat(np.arange(len(SIZES)), SIZES)
    tip = rng.uniform(0, 20, len(zone))
    tip[rng.random(len(zone)) < 0.1] = np.nan
    fare = pa.array(rng.uniform(0, 100, len(zone)), mask=rng.random(len(zone)) < 0.05)
    return pa.table({"zone": zone, "delay": rng.normal(10, 20, len(zone)), "tip": tip, "fare": fare})


def opened(rides, *, mu=20, **options):
    """Return a session with much to spend."""
    return farthing.Session(rides, budget=farthing.Budget(mu=mu), **options)


def test_a_share_of_the_groups_costs_less_than_all(rides):
    """Three of four groups are within 10 %; the smallest are not, and what they would have cost is not paid."""
    asked = {"by": "zone", "keys": ZONES, "relative": 0.1, "cap": "all"}
    whole = opened(rides).count(**asked, absolute=2)
    part = opened(rides).count(**asked, absolute=2, share=0.75)

    assert whole.met.all()
    assert 0.75 <= part.met.mean() < 1
    assert part.paid.amount < whole.paid.amount / 10
    assert (part.group_paid[~part.met] >= part.group_paid[part.met].max() * 0.99).all()
    assert "within 10 % or 2 for 75 % of the groups" in part.caption
    assert ((part.lower < part.value) & (part.value < part.upper)).all()


def test_a_share_is_refined_for_the_difference(rides):
    """The rest is measured later for what it costs beyond; looser asks and larger shares that are there are free."""
    session = opened(rides)
    asked = {"by": "zone", "keys": ZONES, "relative": 0.1, "absolute": 2, "cap": "all"}
    part = session.count(**asked, share=0.6)
    reached = float(part.met.mean())

    assert not part.refine(share=reached).paid
    assert not part.refine(share=0.3).paid
    assert not part.refine(relative=0.2, absolute=50).paid
    whole = part.refine(share=1)
    assert whole.met.all()
    assert whole.paid
    alone = opened(rides).count(**asked)
    assert float(whole.paid.amount + part.paid.amount) < 1.1 * float(alone.paid.amount)
    assert not session.count(**asked).paid


def test_a_share_under_a_pure_budget(rides):
    """It costs less than all, the chain goes on from where it stopped for the difference, and what is there is free."""
    asked = {"by": "zone", "keys": ZONES, "relative": 0.1, "absolute": 2, "cap": "all"}
    session, other = (farthing.Session(rides, budget=farthing.Budget(epsilon=50)) for _ in range(2))
    part = session.count(**asked, share=0.75)
    reached = float(part.met.mean())

    assert 0.75 <= reached < 1
    assert part.paid.amount * 8 < other.count(**asked).paid.amount
    assert (part.group_paid[~part.met] >= part.group_paid[part.met].max()).all()
    assert "as soon as 90 % of the groups" in session.plan(**asked, share=0.9).steps[-1]
    assert not part.refine(share=reached).paid
    again = part.refine(share=0.9)
    assert again.met.mean() >= 0.9
    whole = again.refine(share=1)
    assert whole.met.all()
    assert part.paid + again.paid + whole.paid == session.spent
    assert session.spent.amount <= other.spent.amount * 1.2
    session.verify()


def test_groups_that_were_stopped_with_others_answer_nothing_else(rides):
    """A question on the group that was stopped is not told from there; one on a group that was done is."""
    session = opened(rides)
    part = session.count(by="zone", keys=ZONES, relative=0.1, absolute=2, share=0.6, cap="all")
    done, left = int(np.flatnonzero(part.met)[0]), int(np.flatnonzero(~part.met)[-1])

    assert not session.count(by="zone", keys={"zone": [done]}, relative=0.1, absolute=2).paid
    assert session.plan(by="zone", keys={"zone": [left]}, relative=0.1, absolute=2, cap="all").worst_price


def test_the_plan_tells_of_a_share(rides):
    """Its steps and its target say so; the reservation is that of all groups, and a refusal says the price."""
    session = opened(rides, mu=1)
    plan = session.plan(by="zone", keys=ZONES, relative=0.1, absolute=2, share=0.9)

    assert "for 90 % of the groups" in plan.goal
    assert "as soon as 90 % of the groups" in plan.steps[-1]
    assert "times the cap" in plan.advice
    assert plan.worst_price == session.plan(by="zone", keys=ZONES, relative=0.1, absolute=2).worst_price


@pytest.mark.parametrize("share", [0, -0.1, 1.5, "95%", True])
def test_a_share_that_is_none_is_refused(rides, share):
    """It lies above 0 and is at most 1."""
    with pytest.raises(InvalidTarget, match="share"):
        opened(rides).count(by="zone", keys=ZONES, relative=0.1, absolute=5, share=share)


def test_a_share_is_refused_where_it_means_nothing(rides):
    """Without groups, for means, quantiles, several aggregates, a named loss, and relative noise."""
    session = opened(rides)
    groups = {"by": "zone", "keys": ZONES, "share": 0.9}
    for ask in (
        lambda: session.count(absolute=5, share=0.9),
        lambda: session.mean("delay", lower=0, upper=60, absolute=5, **groups),
        lambda: session.quantile("delay", 0.5, lower=0, upper=60, absolute=5, **groups),
        lambda: session.quantile("delay", 0.5, lower=0, upper=60, rank=0.1, **groups),
        lambda: session.count(loss=farthing.Gdp(0.1), **groups),
        lambda: session.count(relative=0.1, absolute=5, mechanism="asinh", **groups),
        lambda: farthing.Session(rides, budget=farthing.Budget(epsilon=1)).mean(
            "delay", lower=0, upper=9, absolute=5, **groups
        ),
    ):
        with pytest.raises(InvalidTarget, match="share"):
            ask()
    assert not session.spent


def test_a_simultaneous_rank_is_shared_among_groups(rides):
    """For all groups at once a quantile takes a smaller chance of error in each."""
    session = opened(rides)
    text = "SELECT zone, MEDIAN(CLAMP(delay, 0, 60)) FROM data GROUP BY zone"
    chance = [
        session.plan(text, keys={"zone": [0, 1]}, rank=0.05, simultaneous=at_once).pricing.descent.beta
        for at_once in (False, True)
    ]

    assert [0.05, 0.025] == chance
    assert session.sql(text, keys={"zone": [0, 1]}, rank=0.05, simultaneous=True).met.all()


def test_the_part_of_the_rows_is_a_mean(rides):
    """The ratio of a condition is the mean of 0 and 1, in Python, in SQL and as AVG(CASE ...): one measurement."""
    session = opened(rides)
    truth = float(np.mean(rides["delay"].to_numpy() > 15))
    ratio = session.ratio("delay > 15", absolute=0.01)

    assert truth == pytest.approx(ratio.value, abs=0.035)
    sql = "SELECT COUNT(*) FILTER (WHERE delay > 15) / COUNT(*) AS late FROM data"
    assert not session.sql(sql, absolute=0.01).paid
    mean = "SELECT AVG(CASE WHEN delay > 15 THEN 1 ELSE 0 END) AS late FROM data"
    assert not session.sql(mean, absolute=0.01, lower=0, upper=1).paid
    assert session.sql(sql, absolute=0.01).name == "late"


def test_a_part_of_a_part(rides):
    """With a condition below the line only its rows count, above it too."""
    delay = rides["delay"].to_numpy()
    answer = opened(rides).ratio("delay > 30", "delay > 15", absolute=0.02)

    assert float((delay > 30).sum() / (delay > 15).sum()) == pytest.approx(answer.value, abs=0.07)


def test_a_ratio_of_sums_by_group(rides):
    """SUM / SUM with clamps of each; missing values do not count; SQL is the same question."""
    session = opened(rides)
    asked = {"by": "zone", "keys": {"zone": [0, 1, 2]}, "relative": 0.05, "cap": "all"}
    answer = session.ratio("tip", "fare", top_range=(0, 15), bottom_range=(0, 80), **asked)
    frame = rides.to_pandas()
    for place in range(3):
        mine = frame[frame["zone"] == place]
        truth = mine["tip"].clip(0, 15).sum() / mine["fare"].clip(0, 80).sum()
        assert truth == pytest.approx(answer.value[place], rel=0.2)
    assert answer.met.all()
    text = "SELECT zone, SUM(CLAMP(tip, 0, 15)) / SUM(CLAMP(fare, 0, 80)) AS rate FROM data GROUP BY zone"
    assert not session.sql(text, keys={"zone": [0, 1, 2]}, relative=0.05, cap="all").paid
    assert answer.refine(relative=0.03).paid
    assert not answer.refine(relative=0.2).paid


def test_a_sum_per_row_and_rows_per_sum(rides):
    """A value over all rows, also those where it is missing; a count over a sum; a plan names what is measured."""
    session, frame = opened(rides), rides.to_pandas()
    tips = session.ratio("tip", top_range=(0, 20), absolute=0.3)
    rows = session.ratio("delay > 15", "fare", bottom_range=(0, 100), absolute=0.002)

    assert frame["tip"].sum() / len(frame) == pytest.approx(tips.value, abs=1.1)
    assert (frame["delay"] > 15).sum() / frame["fare"].sum() == pytest.approx(rows.value, abs=0.007)
    plan = session.ratio("tip", top_range=(0, 20), absolute=0.3, explain=True)
    assert plan.free
    assert "rows, sum of (tip)" in plan.steps[0]


def test_ratios_that_are_none_are_refused(rides):
    """A number over itself, a bottom that may be negative, a mean above the line, three numbers."""
    session = opened(rides)
    with pytest.raises(UnsupportedQuery, match="ratio"):
        session.ratio(None, absolute=0.1)
    with pytest.raises(InvalidBounds, match="negative"):
        session.ratio("tip", "delay", top_range=(0, 20), bottom_range=(-5, 60), absolute=0.1)
    for text in ("AVG(CLAMP(tip, 0, 9)) / COUNT(*)", "COUNT(*) / COUNT(tip) / COUNT(*)"):
        with pytest.raises(UnsupportedQuery):
            session.sql(f"SELECT {text} FROM data", absolute=0.1)
    assert not session.spent


def test_ratio_of_says_what_is_a_part():
    """A filtered count over all rows is a mean; a count of values over another is a ratio."""
    assert isinstance(ratio_of(Count(LATE), Count()), Mean)
    assert isinstance(ratio_of(Count(Column("tip")), Count()), Ratio)
    assert -np.inf == Ratio(Sum(Column("tip"), -5, 5), Count()).least
    assert (1.0, 2.5) == Ratio(Sum(Column("tip"), -5, 5), Count()).typical


def test_having_and_order_by_know_a_ratio(rides):
    """A ratio of the SELECT list may be named again, by its words or its alias."""
    part = "COUNT(*) FILTER (WHERE delay > 15) / COUNT(*)"
    text = f"SELECT zone, {part} FROM data GROUP BY zone HAVING {part} > 0.01 ORDER BY {part} DESC LIMIT 2"
    answer = opened(rides).sql(text, keys=ZONES, absolute=0.05, cap="all")

    assert "ratio" == answer.name
    assert 2 == len(answer.value)
    assert answer.value[0] >= answer.value[1]


def test_a_difference_of_two_groups(rides):
    """The signed sum is the difference of counts, and costs what one count of that accuracy does."""
    session = opened(rides)
    answer = session.difference("zone", (2, 3), absolute=100)

    assert 5_000 == pytest.approx(answer.value, abs=350)
    assert answer.paid == session.count(absolute=100).paid
    assert answer.refine(absolute=50).paid
    assert not answer.refine(absolute=200).paid
    assert -5_000 == pytest.approx(session.difference("zone", (3, 2), absolute=100).value, abs=350)
    assert "SUM(CASE" in session.difference("zone", (2, 3), absolute=100, explain=True).question


@pytest.mark.parametrize("ends", [(0, 20), (2, 15), (-15, 3), (-20, 0)])
def test_a_difference_of_sums_clamps_first(rides, ends):
    """Values are clamped before the sign is put on; missing values and NaN count in neither group."""
    frame = rides.to_pandas()
    value = {name: (frame["tip"] - 5).where(frame["zone"] == name).clip(*ends).sum() for name in (1, 2)}
    answer = opened(rides, mu=200).difference(
        "zone", (1, 2), value="tip - 5", lower=ends[0], upper=ends[1], absolute=200, cap="all"
    )

    assert value[1] - value[2] == pytest.approx(answer.value, abs=700)


def test_a_relative_difference_and_several_columns(rides):
    """The target may be a part of the difference; groups of several columns are tuples, missing values are None."""
    session = opened(rides)
    by = {"zone": "zone", "late": "delay > 15"}
    answer = session.difference(by, ((0, True), (0, False)), relative=0.1, absolute=50)
    delay, zone = rides["delay"].to_numpy(), rides["zone"].to_numpy()

    truth = ((delay > 15) & (zone == 0)).sum() - ((delay <= 15) & (zone == 0)).sum()
    assert float(truth) == pytest.approx(answer.value, rel=0.35)
    assert answer.met
    assert session.difference("zone", (7, None), absolute=50).met


@pytest.mark.parametrize("groups", [(1,), (1, 1), (1, 2, 3), "ab", ("x", 1), 5])
def test_groups_that_are_no_two_are_refused(rides, groups):
    """Two different values of the column."""
    with pytest.raises((InvalidKeys, UnsupportedQuery)):
        opened(rides).difference("zone", groups, absolute=5)


def test_a_difference_needs_a_column(rides):
    """Without a grouping column there are no groups."""
    with pytest.raises(UnsupportedQuery, match="grouping column"):
        opened(rides).difference((), (1, 2), absolute=5)


def test_a_difference_under_a_pure_budget(rides):
    """It is a sum, which a pure ledger answers too."""
    session = farthing.Session(rides, budget=farthing.Budget(epsilon=1))

    assert 20_000 == pytest.approx(session.difference("zone", (0, 1), absolute=500, cap="all").value, abs=2_500)


def test_a_ranking_settles_its_places(rides):
    """The first places come out right, with intervals; groups far down the list pay less than those near the top."""
    ranking = opened(rides).ranking("zone", k=5, keys=ZONES)

    assert [0, 1, 2, 3, 4] == list(ranking)
    assert ranking.settled.all()
    assert [1, 2, 3, 4, 5] == ranking.place.tolist()
    assert not ranking.tied.any()
    assert ((ranking.lower < np.array(SIZES[:5])) & (np.array(SIZES[:5]) < ranking.upper)).sum() >= 4
    assert ["place", "zone", "value", "lower", "upper", "settled", "tied"] == ranking.to_arrow().column_names
    assert "5 of 5 places settled" in ranking.caption
    assert "all places are settled" in repr(ranking)
    assert 5 == len(ranking.to_pandas())


def test_a_ranking_goes_on_where_it_stopped(rides):
    """Asking again, fewer places and a smaller cap are free; more places and a larger cap pay the difference."""
    session = opened(rides)
    asked = {"by": "zone", "keys": ZONES}
    first = session.ranking(**asked, k=6, cap=farthing.Gdp(0.0008))
    spent = session.spent

    assert spent <= farthing.Gdp(0.0008)
    assert not session.ranking(**asked, k=6, cap=farthing.Gdp(0.0008)).paid
    assert not first.refine(k=1, cap=farthing.Gdp(0.0004)).paid
    whole = first.refine(cap="all")
    assert whole.settled.all()
    assert whole.paid
    assert first.settled.sum() < 6
    assert "not settled" in first.about
    assert session.ranking(**asked, k=6, confidence=0.99, cap="all").paid


def test_equal_groups_end_as_ties_or_at_the_cap():
    """Equal groups are told as tied where that is allowed, share a place, and else stay unsettled at the cap."""
    table = pa.table({"zone": [*range(4)] * 1_000 + [9] * 8_000})
    keys = {"zone": [*range(4), 9]}
    session = farthing.Session(table, budget=farthing.Budget(mu=3))
    tied = session.ranking("zone", k=3, keys=keys, apart=200, cap=farthing.Gdp(1))
    near = session.ranking("zone", k=3, keys=keys, apart_relative=0.2, cap=farthing.Gdp(1))
    open_end = session.ranking("zone", k=3, keys=keys, cap=farthing.Gdp(1))

    for ranking in (tied, near):
        assert [1, 2, 2] == ranking.place.tolist()
        assert [False, True, True] == ranking.tied.tolist()
        assert ranking.settled.all()
    assert [True, False, False] == open_end.settled.tolist()
    assert open_end.paid > tied.paid
    assert "in the right order, but for ties: wrong by less than 200" in tied.caption
    assert "the last place is shared with 2 groups that are not shown" in tied.about
    assert "the last place is shared with 1 group that is not shown" in tied.refine(k=4).about
    assert "shared" not in tied.refine(k=5).about
    assert "apart=" in open_end.about
    assert not tied.refine(apart=500).paid


def test_a_distance_that_the_cap_cannot_reach_tells_its_price():
    """Where ties need more than the cap, the ranking says about how much."""
    table = pa.table({"zone": [*range(4)] * 1_000})
    session = farthing.Session(table, budget=farthing.Budget(mu=3))
    ranking = session.ranking("zone", k=2, keys={"zone": [0, 1, 2, 3]}, apart=5, cap=farthing.Gdp(0.01))

    assert not ranking.settled.any()
    assert "an order wrong by less than 5 would take at most about Gdp" in ranking.about


@pytest.mark.parametrize(
    ("budget", "small"), [({"mu": 50}, farthing.Gdp(0.01)), ({"epsilon": 60}, farthing.Pure(0.01))]
)
def test_the_price_of_a_distance_settles_equal_groups(budget, small):
    """Of groups that are equally large, all places are settled at the price that was told, as it was told."""
    table = pa.table({"zone": [*range(4)] * 1_000})
    session = farthing.Session(table, budget=farthing.Budget(**budget))
    keys = {"zone": [*range(4)]}
    first = session.ranking("zone", k=2, keys=keys, apart=50, cap=small, confidence=1 - 1e-9)
    told = float(re.search(r"would take at most about \w+\(\w+=([\d.]+)\)", first.about)[1])

    assert not first.settled.all()
    assert first.refine(cap=type(small)(told)).settled.all()


def test_a_cap_that_is_enough_is_so_after_any_pilot():
    """Equal groups are settled at it, wherever a pilot ended by chance; far below it they are not."""
    rng = np.random.default_rng(3)

    def shown(grains, _):
        """Return fresh noise around the same number."""
        return rng.normal(1_000, 2.0**28 / grains**0.5)

    for _ in range(2):
        contest = RankingContest(1, 0.05, 2.0**-56, 1 << 43, apart=50.0)
        first = contest.run(None, 4, shown)
        enough = contest.enough(first)
        assert contest.unsettled(replace(contest, cap_grains=enough // 8).run(first, 4, shown))
        assert not contest.unsettled(replace(contest, cap_grains=enough).run(first, 4, shown))


def test_the_fewest_grains_buy_a_look(rides):
    """A cap below them is refused free, at them a look is told beside the pilot."""
    for cap, many in ((FEWEST_GRAINS - 1, 0), (FEWEST_GRAINS, 1)):
        assert len(looks(int(cap * PILOT), cap - int(cap * PILOT))) == many
    session = opened(rides)
    with pytest.raises(InvalidTarget, match=r"1\.125 \* 2\^-36 of mu"):
        session.ranking("zone", k=2, keys=ZONES, cap=farthing.Gdp(2.0**-18))
    assert not session.spent
    assert np.isfinite(session.ranking("zone", k=2, keys=ZONES, cap=farthing.Gdp(1.0625 * 2.0**-18)).lower).all()


@pytest.mark.parametrize("budget", [{"mu": 1}, {"epsilon": 1}])
def test_a_ranking_that_stands_is_free_when_nothing_is_left(rides, budget):
    """Whatever the cap: it buys no look, so there is nothing to refuse."""
    session = farthing.Session(rides, budget=farthing.Budget(**budget))
    first = session.ranking("zone", k=1, keys=ZONES, confidence=1 - 1e-9)
    session.count(loss=session.remaining)

    for again in (first.refine(cap="all"), session.ranking("zone", k=1, keys=ZONES, confidence=1 - 1e-9, cap="all")):
        assert not again.paid
        assert again.value.tolist() == first.value.tolist()


def test_a_ranking_of_sums_and_in_a_part(rides):
    """A value may be added up; a part of a partition ranks its own rows, and its ledger pays."""
    session = opened(rides)
    summed = session.ranking("zone", k=2, value="fare", lower=0, upper=100, keys=ZONES, confidence=1 - 1e-9)
    part = session.partition(by="zone", keys=[0, 1])[0]
    alone = part.ranking({"late": "delay > 15"}, k=1, keys={"late": [True, False]}, confidence=1 - 1e-9)

    assert [0, 1] == list(summed)
    assert [False] == list(alone)
    assert part.spent == alone.paid


def test_units_in_several_groups_pay_the_sum():
    """A unit in two groups pays for both: the price is that of the two most expensive."""
    who = np.repeat(np.arange(3_000), 2)
    table = pa.table({"who": who, "zone": np.tile([0, 1], 3_000)})
    table = pa.concat_tables([table, pa.table({"who": np.arange(3_000, 9_000), "zone": np.zeros(6_000, int)})])
    bounds = farthing.Bounds(max_groups=2, max_rows=1)
    session = farthing.Session(table, unit="who", budget=farthing.Budget(mu=2), bounds=bounds)
    ranking = session.ranking("zone", k=1, keys={"zone": [0, 1]})

    assert [0] == list(ranking)
    assert session.spent == ranking.paid


def test_rankings_that_cannot_be_are_refused(rides):
    """Too many places, no groups, unlisted groups, a wrong distance, a cap that buys nothing."""
    session = opened(rides)
    for wrong in ({"k": 0}, {"k": 9}, {"apart": -1}, {"apart_relative": 1.0}, {"apart": 5, "apart_relative": 0.1},
                  {"confidence": 2}, {"cap": farthing.Gdp(1e-9)}):  # fmt: skip
        with pytest.raises(InvalidTarget):
            session.ranking(**{"by": "zone", "keys": ZONES, "k": 3} | wrong)
    with pytest.raises(InvalidTarget, match="negative"):
        session.ranking("zone", k=2, value="delay", lower=-5, upper=60, keys=ZONES, apart_relative=0.1)
    with pytest.raises(UnsupportedQuery, match="ranked"):
        session.ranking("zone", k=2, keys="private")
    assert not session.spent
    with pytest.raises(farthing.BudgetExceeded, match="does not fit"):
        opened(rides, mu=1).ranking("zone", k=3, keys=ZONES, cap=farthing.Gdp(2))


def test_a_ranking_has_no_error_and_needs_two_groups(rides):
    """An unknown option, clamps without a value and a single key are refused; so is a refine without a change."""
    session = opened(rides)
    for wrong in ({"relative": 0.1}, {"absolute": 50}):
        with pytest.raises(InvalidTarget, match="apart_relative"):
            session.ranking("zone", k=2, keys=ZONES, **wrong)
    with pytest.raises(InvalidBounds, match="without a value"):
        session.ranking("zone", k=2, keys=ZONES, lower=0)
    with pytest.raises(InvalidTarget, match="no order"):
        session.ranking("zone", k=1, keys={"zone": [0]})
    assert not session.spent
    ranking = session.ranking("zone", k=2, keys=ZONES)
    with pytest.raises(InvalidTarget, match="not told what to change"):
        ranking.refine(3)
    with pytest.raises(InvalidTarget, match="unknown option absolute"):
        ranking.refine(absolute=50)


def test_a_ranking_under_a_pure_budget(rides, monkeypatch):
    """Its places and its numbers are right, each chain pays its last level, and a finer one the difference."""
    paid = np.zeros(len(SIZES), np.int64)

    def recorded(*given):
        """Return a chain that adds up by how much its looks raise each group."""
        chain = chain_of(*given)

        def measure(state, levels, groups):
            paid[groups] += levels - state.farthings
            return chain.measure(state, levels, groups)

        return SimpleNamespace(measure=measure)

    monkeypatch.setattr(ranking_noise, "chain_of", recorded)
    session = farthing.Session(rides, budget=farthing.Budget(epsilon=30))
    first = session.ranking("zone", k=2, keys=ZONES)
    assert paid.max() == first.paid.farthings
    assert list(first.keys["zone"].to_pylist()) == [0, 1]
    assert first.settled.all()
    assert not session.ranking("zone", k=2, keys=ZONES).paid
    whole = first.refine(k=7, cap="all")
    assert paid.max() == session.spent.farthings == (first.paid + whole.paid).farthings
    assert whole.place.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert ((whole.lower <= SIZES[:7]) & (whole.upper >= SIZES[:7])).all()
    tied = session.ranking("zone", k=8, keys=ZONES, apart=200)
    assert tied.settled.all()
    with pytest.raises(InvalidTarget, match="2\\^-14 of epsilon"):
        session.ranking("zone", k=3, keys=ZONES, confidence=0.9, cap=farthing.Pure(1e-6))
    session.verify()


def test_tied_groups_may_be_apart_but_not_in_the_wrong_order():
    """A lead that is clearly above the distance may stay tied; a later group that is larger by it may not."""
    rule = RankingPlaces(2, 0.05, 2.0**-56, np.array([860.0, 600.0]), 1 << 40, (2, 100.0), apart=100.0)
    block = np.arange(2)
    grains = 1 << 44

    assert rule.tied(block, 0, np.array([860.0, 600.0]), grains)
    assert not rule.tied(block, 0, np.array([600.0, 600.0]), grains)
    assert rule.tied(block, 0, np.array([600.0, 600.0]), 64 * grains)
    assert not rule.tied(block, 0, np.array([600.0, 860.0]), 64 * grains)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({"top": "delay"}, "top is a value without a range"),
        ({"top": "delay > 15", "bottom": "fare"}, "bottom is a value without a range"),
        ({"top": "delay > 15", "top_range": (0, 1)}, "drop top_range="),
        ({"top": "delay > 15", "bottom_range": (0, 1)}, "drop bottom_range="),
        ({"top": 5}, "neither a condition nor a value"),
        ({"top": "tip", "top_range": "0..60"}, "top_range is not a range"),
        ({"top": "tip", "top_range": "06"}, "top_range is not a range"),
        ({"top": "tip", "top_range": (60,)}, "top_range is not a range"),
        ({"top": "tip", "top_range": 60}, "top_range is not a range"),
        ({"top": "tip", "top_range": (0, float("inf"))}, "top_range is not a range"),
    ],
)
def test_sides_of_a_ratio_that_are_none_say_what_is_missing(rides, sides, message):
    """A value needs its range, a condition has none, and a range is two numbers."""
    session = opened(rides)
    with pytest.raises((InvalidBounds, UnsupportedQuery), match=message):
        session.ratio(**sides, absolute=0.5)
    assert not session.spent


def test_a_ratio_in_a_pure_ledger(rides):
    """A share is answered without a delta, in epsilon."""
    with farthing.Session(rides, budget=farthing.Budget(epsilon=40)) as session:
        answer = session.ratio("delay > 15", absolute=0.1, cap="all")
        assert answer.met
        assert isinstance(answer.paid, farthing.Pure)


def test_a_difference_says_which_groups(rides):
    """Beside its numbers stands the first less the second; keys and clamps without a value are refused."""
    session = opened(rides)
    fares = session.difference("zone", (2, 3), value="fare", lower=0, upper=100, absolute=5_000)

    assert "2 less 3;" in session.difference("zone", (2, 3), absolute=100).about
    assert "2 less 3, each fare clamped into [0, 100]" in fares.about
    with pytest.raises(InvalidKeys, match="groups="):
        session.difference("zone", (2, 3), absolute=100, keys=ZONES)
    with pytest.raises(InvalidBounds, match="without a value"):
        session.difference("zone", (2, 3), absolute=100, lower=0, upper=5)


@pytest.mark.parametrize(
    "asked",
    [
        lambda session, **how: session.difference("zone", (3, 2), absolute=100, **how),
        lambda session, **how: session.sum("delay", lower=-30, upper=30, absolute=3_000, **how),
        lambda session, **how: session.mean("delay", lower=-30, upper=30, absolute=5, **how),
        lambda session, **how: session.quantile("delay", 0.5, lower=-30, upper=30, absolute=5, **how),
        lambda session, **how: session.ratio(
            "delay", "tip", top_range=(-30, 30), bottom_range=(0, 20), absolute=0.5, **how
        ),
        lambda session, **how: session.sum(
            "delay", lower=-30, upper=30, absolute=3_000, by="zone", keys="private", **how
        ),
        lambda session, **how: session.sql(
            "SELECT COUNT(*) AS n, SUM(CLAMP(delay, -9, 9)) FROM data", absolute=900, **how
        ),
    ],
)
def test_what_may_be_negative_is_not_shown_as_zero(rides, asked):
    """Its interval would leave the truth out, so that nonnegative=True is refused before anything is charged."""
    session = opened(rides)
    with pytest.raises(InvalidTarget, match="may be negative"):
        asked(session, nonnegative=True)
    assert not session.spent


def test_what_is_not_negative_may_be_shown_as_zero(rides):
    """Sums, means, ratios and quantiles of values that are not negative, and conditions."""
    session = opened(rides)
    tips = {"lower": 0, "upper": 20, "absolute": 5_000, "nonnegative": True}

    assert "shown as zero" in session.sum("tip", **tips).about
    assert session.ratio("delay > 15", absolute=0.05, nonnegative=True).lower >= 0
    with pytest.raises(InvalidTarget, match="may be negative"):
        session.count(absolute=100).refine(absolute=80) and session.sum(
            "delay", lower=-30, upper=30, absolute=3_000
        ).refine(nonnegative=True)


def test_a_refine_says_that_the_cap_stopped_it(rides):
    """Where all groups are wanted and the cap is used up nothing is measured, and the answer says why."""
    session = opened(rides, mu=1)
    asked = {"by": "zone", "keys": ZONES, "relative": 0.05, "absolute": 1, "cap": farthing.Gdp(0.05)}
    first = session.count(**asked)
    again = first.refine()

    assert not first.met.all()
    assert not again.paid
    assert "nothing was measured" in again.about
    assert 'cap="all"' in again.about
    assert "nothing was measured" not in first.about
    assert "nothing was measured" not in session.count(**asked | {"relative": 0.9, "absolute": 9_000}).about
    part = session.count(**asked | {"where": "delay > 15"}, share=0.25)
    assert "nothing was measured" not in part.about
    whole = part.refine(share=1)
    assert "nothing was measured" in whole.refine().about
    with pytest.raises(InvalidTarget, match="not told what to change"):
        first.refine(0.1)
    with pytest.raises(InvalidTarget, match="not told what to change"):
        session.refine(first, 0.1)


@pytest.mark.parametrize("budget", [farthing.Budget(mu=1), farthing.Budget(epsilon=3)])
def test_measuring_under_what_another_group_has_cost_is_told(budget):
    """A large group pays more, the question does not: that nothing was measured is said where it is so."""
    sizes = (100, 10_000)
    session = farthing.Session(pa.table({"g": np.repeat(list("ab"), sizes)}), budget=budget, ledger=None)
    asked = {"by": "g", "keys": {"g": list("ab")}}
    first = session.count(**asked, relative=0.1, absolute=30, cap="all")
    sharper = session.count(**asked, relative=0.001, absolute=2, cap=type(first.paid)(0.02))

    assert (True, False) == (sharper.paid_by_group.any(), bool(sharper.paid))
    assert "nothing more was charged: the groups" in sharper.about
    assert "nothing was measured" not in sharper.about


def test_a_confidence_below_one_half_is_not_advised(rides):
    """For 2 there is no percentage that would be taken; for 95 there is."""
    session = opened(rides)
    with pytest.raises(InvalidTarget, match=r"write 0\.95 for 95 %"):
        session.ranking("zone", k=2, keys=ZONES, confidence=2)
    with pytest.raises(InvalidTarget, match=r"confidence=0\.95"):
        session.count(absolute=100, confidence=95)


def test_a_ratio_that_does_not_fit_says_what_would(rides):
    """Where something is left, the refusal says how to spend at most that."""
    session = opened(rides, mu=1)
    session.count(loss=farthing.Gdp(0.999))

    with pytest.raises(farthing.BudgetExceeded, match="stops at what is left"):
        session.ratio("delay > 15", absolute=0.001, cap=farthing.Gdp(0.5))


def test_arithmetic_with_aggregates_points_to_what_there_is(rides):
    """A median in arithmetic, a division by what may be below zero: the words say which arithmetic there is."""
    session = opened(rides)
    for text in (
        "COUNT(*) - MEDIAN(CLAMP(fare, 0, 9))",
        "AVG(CLAMP(tip, 0, 9)) / VARIANCE(CLAMP(fare, 0, 9))",
        "COUNT(*) % 2",
    ):
        with pytest.raises(UnsupportedQuery, match=r"compute with the answer|divide counts and sums"):
            session.sql(f"SELECT {text} FROM data", absolute=0.1)
    assert not session.history()


def test_chances_add_up_to_at_most_one():
    """Over all groups, whatever the pilot shows, with fewer places than groups or as many."""
    for pilot in (np.array([900.0, 899.0, 40.0]), np.linspace(0, 1, 50), np.zeros(7), np.array([3.0, 9e5])):
        for k in range(1, len(pilot) + 1):
            rule = RankingPlaces(k, 0.05, 2.0**-56, pilot, 1 << 40, (k, 0.0))
            chances = rule.weights().alone

            assert 0.9 < chances.sum() <= 1
            assert chances.min() > 0
            assert rule.likely().min() > 0


def test_a_close_pair_has_most_of_the_chance():
    """The larger of the only two that are close may err most: the others are told apart at a small chance, too."""
    pilot = np.array([3_000.0, 10_500.0, 10_000.0, *[2_000.0] * 40])
    chances = RankingPlaces(2, 0.05, 2.0**-56, pilot, 1 << 41, (2, 0.0)).weights().alone

    assert chances[1] > 0.7
    assert chances[3:].sum() < 0.05


def test_a_lucky_pilot_is_not_believed_for_good():
    """Of three groups, two of which are close, pilots that end far too early show large leads: all are settled."""
    truth, per_grain = np.array([5_020.0, 5_000.0, 100.0]), 2.0**-56
    contest, paid = RankingContest(2, 0.05, per_grain, 1 << 62), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        end = contest.run(
            None,
            3,
            lambda grains, groups, rng=rng: rng.normal(truth[groups], 2.0**28 / grains**0.5),
            lead=lambda grains, one, two, rng=rng: rng.normal(truth[one] - truth[two], 2.0**28 / grains**0.5),
        )
        assert not contest.unsettled(end)
        paid.append(end.paid.max() * per_grain * 20**2)

    assert np.mean(paid) < 60  # it was a ten thousand times that; 28 in the mean of many


def test_a_lead_that_is_proved_has_its_likelihood_ratio():
    """At the bound the mixture of likelihood ratios is one over the chance; a single look would take less."""
    chances, likely, information = np.array([0.05, 0.001, 1e-9]), np.array([1.0, 30.0, 0.2]), 7.0
    found = proved_leads(chances, likely, information)
    leads = likely[:, None] * 2.0**_AROUND
    ratios = np.exp(leads * (found * information)[:, None] / 2 - leads**2 * information / 4) @ np.exp(_PARTS)

    assert 1 / chances == pytest.approx(ratios, rel=1e-6)
    assert (found > -ndtri(chances) * np.sqrt(2 / information)).all()
    assert 1 == pytest.approx(np.exp(_PARTS).sum())


def test_the_looks_are_the_same_for_all_questions():
    """A larger cap, or a finer pilot, only takes another stretch of them."""
    whole = looks(1 << 20, 1 << 62).tolist()

    assert looks(1 << 30, 1 << 40).tolist() == [look for look in whole if 1 << 30 <= look <= 1 << 40]
    assert np.diff(np.log(whole)) == pytest.approx(np.log(1.05), abs=2e-6)


def test_refining_an_answer_of_another_version_is_refused(rides):
    """A session refines answers of its own data; of another declared version it refuses them, uncharged."""
    mine, other = opened(rides), opened(rides, version="2")
    answer = mine.count(absolute=100)

    assert mine.refine(answer, absolute=50).paid
    assert not mine.refine(answer, absolute=200).paid
    with pytest.raises(LedgerMismatch, match="another state of the data"):
        other.refine(answer, absolute=50)
    assert not other.spent


def test_a_share_on_the_command_line(tmp_path, monkeypatch):
    """--share 75% stops early; --share of 150 % is refused with exit code 2."""
    monkeypatch.chdir(tmp_path)
    zone = np.repeat(["a", "b", "c", "d"], [9_000, 4_000, 2_000, 30])
    (tmp_path / "rides.csv").write_text("zone\n" + "\n".join(zone) + "\n", encoding="utf-8")
    runner = CliRunner()
    assert 0 == runner.invoke(app, ["init", "rides.csv", "--mu", "5", "--keys", "zone=a,b,c,d"]).exit_code
    ask = ["ask", "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone", "--relative", "10%", "--absolute", "3"]
    found = runner.invoke(app, [*ask, "--share", "75%", "--json"])

    assert 0 == found.exit_code, found.output
    rows = json.loads(found.stdout)["answers"]
    assert [True, True, True, False] == [row["met"] for row in rows]
    assert 2 == runner.invoke(app, [*ask, "--share", "150%"]).exit_code


def test_a_named_loss_is_no_more_than_its_limit():
    """A limit that was named holds for a named loss too: more is refused, free, by plan and ask alike."""
    session = farthing.Session(pa.table({"k": [1] * 50}), budget=farthing.Budget(mu=1))
    text = "SELECT COUNT(*) FROM data"
    for limit in ({"cap": farthing.Gdp(0.01)}, {"max_epsilon": 0.001}):
        for ask in (session.sql, session.plan):
            with pytest.raises(InvalidTarget, match="more than the question may cost"):
                ask(text, loss=farthing.Gdp(0.5), **limit)
    assert not session.spent
    assert session.sql(text, loss=farthing.Gdp(0.1), cap=farthing.Gdp(0.1)).paid <= farthing.Gdp(0.1)
