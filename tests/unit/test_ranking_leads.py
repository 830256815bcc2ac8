"""Two groups that a ranking left alone: their lead is measured as one number, paid by both, kept, and gone on from."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing.accuracy.ranking import OWN, RankingContest, RankingState
from farthing.mechanisms.gaussian import GRAIN, GaussianMeasurements
from farthing.session.choosing.ranking_record import blob_of, standing_of

GRAINS = 2.0**-56
KEYS = {"g": [0, 1, 2]}
SURE = 1 - 1e-9


def table(*sizes):
    """Return groups of these sizes."""
    return pa.table({"g": np.repeat(np.arange(len(sizes)), sizes)})


def opened(*sizes, mu=50):
    """Return a session about groups of these sizes, with much to spend."""
    return farthing.Session(table(*sizes), budget=farthing.Budget(mu=mu))


def exact(truth):
    """Return measurements of groups and of leads without noise, and a list of what was measured of each."""
    asked = []

    def measure(grains, groups):
        asked.append(("group", groups.tolist(), grains.tolist()))
        return truth[groups].astype(np.float64)

    def lead(grains, first, second):
        asked.append(("lead", [*first, *second], [*grains, *grains]))
        return (truth[first] - truth[second]).astype(np.float64)

    return measure, lead, asked


def test_what_is_measured_of_a_pair_is_what_it_holds():
    """A quarter of what two groups pay is for their own numbers; all that either pays is in what it holds."""
    truth = np.array([2.0**30, 2.0**30 - 2.0**16, 2.0**20, 0.0])
    measure, lead, asked = exact(truth)
    end = RankingContest(2, 0.05, GRAINS, 1 << 50).run(None, 4, measure, lead=lead)
    paid = np.zeros(4, np.int64)
    for _, groups, grains in asked:
        np.add.at(paid, groups, grains)

    assert paid.tolist() == end.paid.tolist()
    assert [[0], [1]] == [block.tolist() for block in end.blocks[:2]]
    assert [1, 0, -1, -1] == end.rivals.tolist()
    assert end.lead_information[:2].min() > (OWN - 2) * (end.information[0] - end.information[2])
    assert end.ordered.tolist() == pytest.approx(truth)
    assert not any(kind == "lead" for kind, *_ in exact_relative(truth))


def exact_relative(truth):
    """Return what is measured of the same groups where ties are relative, which a lead says nothing about."""
    measure, lead, asked = exact(truth)
    RankingContest(2, 0.05, GRAINS, 1 << 40, relative=0.01).run(None, 4, measure, lead=lead)
    return asked


def test_a_lead_is_worth_twice_the_same_price_of_both_groups():
    """Of one more grain of each group the lead is known with half a grain, of a grain for the lead with one."""
    state = replace(
        RankingState.begun(np.zeros(2), 1, (1, 0.0)),
        means=np.array([10.0, 20.0]),
        information=np.array([6, 6]),
        rivals=np.array([1, 0]),
        leads=np.array([30.0, -30.0]),
        lead_information=np.array([3, 3]),
    )

    assert [12, 12] == state.clocks.tolist()
    assert [10, 10] == state.paid.tolist()
    assert [20.0, 10.0] == state.ordered.tolist()  # the lead: half of -10, and half of 30
    assert 15.0 == state.ordered.mean()


def test_what_is_kept_of_a_lead_is_read_again():
    """The record of a ranking holds rivals, leads, and what was paid for them."""
    truth = np.array([2.0**30, 2.0**30 - 2.0**18, 2.0**20])
    measure, lead, _ = exact(truth)
    end = RankingContest(2, 0.05, GRAINS, 1 << 44).run(None, 3, measure, lead=lead)
    again = standing_of(blob_of(end))

    assert end.lead_information.any()
    for name in ("means", "information", "rivals", "leads", "lead_information", "paid", "ordered"):
        assert getattr(end, name).tolist() == getattr(again, name).tolist()
    assert [block.tolist() for block in end.blocks] == [block.tolist() for block in again.blocks]


def test_a_close_pair_is_settled_by_its_lead_and_gone_on_with():
    """What a small cap left open a larger one settles, for the difference; numbers stand in their intervals."""
    session, leads = opened(5_020, 5_000, 100), []
    measured = GaussianMeasurements.fresh_leads

    def counted(self, grains, first, second):
        leads.append(int(grains[0]))
        return measured(self, grains, first, second)

    with mock.patch.object(GaussianMeasurements, "fresh_leads", counted):
        first = session.ranking("g", k=2, keys=KEYS, confidence=SURE, cap=farthing.Gdp(0.1))
        before = sum(leads)
        whole = first.refine(cap="all")

    assert not first.settled.any()
    assert whole.settled.all()
    assert [0, 1] == whole.keys["g"].to_pylist()
    assert 0 < before < sum(leads)
    assert sum(leads) * GRAIN < session.spent.amount
    assert ((whole.lower <= whole.value) & (whole.value <= whole.upper)).all()
    assert (whole.lower <= np.array([5_020, 5_000])).all()
    assert (whole.upper >= np.array([5_020, 5_000])).all()
    assert not session.ranking("g", k=2, keys=KEYS, confidence=SURE, cap="all").paid
    session.verify()


def test_ties_by_a_share_go_on_after_leads():
    """They are judged by the two numbers, which are measured themselves from there on."""
    session = opened(5_000, 5_000, 100)
    first = session.ranking("g", k=2, keys=KEYS, apart=1, confidence=SURE, cap=farthing.Gdp(0.05))
    near = first.refine(apart=0, apart_relative=0.02, cap="all")

    assert not first.settled.any()
    assert near.tied.all()
    session.verify()


def test_leads_beyond_64_bits_are_held_at_the_ends():
    """A difference of numbers at both ends of what fits is about that; none turns round."""
    ends = np.array([(1 << 63) - 1, -(1 << 63)])
    mechanism = GaussianMeasurements(ends)
    shown = mechanism.fresh_leads(np.array([1 << 56, 1 << 56]), np.array([0, 1]), np.array([1, 0]))

    assert shown[0] > 2.0**50
    assert shown[1] < -(2.0**50)
