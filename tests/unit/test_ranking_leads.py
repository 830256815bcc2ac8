"""Few groups of a ranking: their leads are measured as numbers, paid by both groups, kept, and gone on from."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing.accuracy.ranking import RankingContest, RankingState, _leading
from farthing.accuracy.ranking_cores import OWN, core_of
from farthing.accuracy.ranking_places import RankingPlaces
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
    """An eighth of what two groups pay is for their own numbers; all that either pays is in what it holds."""
    truth = np.array([2.0**30, 2.0**30 - 2.0**16, 2.0**20, 0.0])
    measure, lead, asked = exact(truth)
    end = RankingContest(2, 0.05, GRAINS, 1 << 50).run(None, 4, measure, lead=lead)
    paid = np.zeros(4, np.int64)
    for _, groups, grains in asked:
        np.add.at(paid, groups, grains)

    assert paid.tolist() == end.paid.tolist()
    assert [[0], [1]] == [block.tolist() for block in end.blocks[:2]]
    assert end.lead_grains[0] == end.lead_grains[1] > (OWN - 2) * (end.information[0] - end.information[2])
    assert not end.lead_grains[2:].any()
    assert end.ordered.tolist() == pytest.approx(truth)
    assert not any(kind == "lead" for kind, *_ in exact_relative(truth))


def exact_relative(truth):
    """Return what is measured of the same groups where ties are relative, which a lead says nothing about."""
    measure, lead, asked = exact(truth)
    RankingContest(2, 0.05, GRAINS, 1 << 40, relative=0.01).run(None, 4, measure, lead=lead)
    return asked


def test_leads_within_a_block_are_known_better_than_groups_by_themselves():
    """Of n groups that pay the same, by n/(n - 1): that of two, exactly twice as well."""
    for groups in (2, 3, 4):
        truth = np.arange(groups, 0, -1) * 2.0**10
        measure, lead, _ = exact(truth)
        end = RankingContest(groups, 0.05, GRAINS, 1 << 30).run(None, groups, measure, lead=lead)

        assert len(end.blocks) == 1
        assert (end.lead_information * (groups - 1)).tolist() == (end.lead_grains * groups).tolist()
        assert end.clocks.tolist() == (end.information + end.lead_information).tolist()
        assert end.ordered.tolist() == pytest.approx(truth)


def test_the_noise_of_leads_is_what_their_information_says():
    """Of a thousand blocks of four groups: the variance of a difference of two is two over what it is known with."""
    rng, blocks = np.random.default_rng(8), list(np.arange(4_000).reshape(-1, 4))
    each = np.full(4_000, 25)
    begun = RankingState.begun(np.zeros(4_000), 1, (4, 0.0))
    end = _leading(begun, blocks, each, lambda grains, first, _: rng.standard_normal(len(first)) / np.sqrt(grains))
    off = (end.leads[::2] - end.leads[1::2]) * np.sqrt(end.lead_information[::2] / 2)

    assert set(end.lead_grains.tolist()) == {75}
    assert np.std(off) == pytest.approx(1, abs=0.12)  # of 2,000: seven of its deviations


def test_others_pay_for_their_own_numbers_alone():
    """A close pair among many that are far behind: they are measured as coarsely as the pair's own numbers."""
    truth = np.concatenate([[2.0**20 + 2.0**15, 2.0**20], np.full(30, 2.0**18)])
    measure, lead, _ = exact(truth)
    end = RankingContest(1, 0.05, GRAINS, 1 << 50).run(None, 32, measure, lead=lead)

    assert [0] == end.blocks[0].tolist()
    assert end.lead_grains[:2].all()
    assert not end.lead_grains[2:].any()
    assert len(set(end.information.tolist())) <= 2
    assert end.paid[2:].max() < end.paid[:2].min() / 3


def test_a_core_once_begun_is_gone_on_with():
    """No group joins it, since its leads over the others were not measured; one that is left of it measures none."""
    block, values = np.arange(20), np.array([90.0, 80.0, 70.0, *np.zeros(17)])

    def chosen(begun, *, whole=False, noise=5.0):
        found = core_of(block, 2, values, noise, np.array(begun, np.int64), whole=whole)
        return None if found is None else found.groups.tolist()

    assert [0, 1, 2] == chosen([0, 1, 2])
    assert [5, 9] == chosen([5, 9])
    assert chosen([5]) is None
    assert chosen([], noise=90.0) is None
    assert chosen([], whole=True) is None
    assert chosen([]) in ([0, 1], [0, 1, 2])


def test_pairs_are_judged_by_what_they_are_known_with():
    """Beside a core the others are compared by their own numbers, with the noise of these."""
    rule = RankingPlaces(3, 0.05, 1.0, np.array([6.0, 4.0, 2.0, 0.0]), 1, (3, 0.0))
    core, shown = np.array([True, True, False, False]), np.array([6.5, 4.0, 2.0, 0.0])

    def cut(grains, own_grains, first=6.0):
        own = np.array([first, 4.5, 2.0, 0.0])
        blocks = rule.cut_core(np.arange(4), core, (shown, grains), (own, own_grains), rule.beside([np.arange(4)]))
        return [block.tolist() for block in blocks]

    assert [[0], [1], [2], [3]] == cut(100, 100)
    assert [[0, 1, 2, 3]] == cut(100, 1)
    assert [[0], [1, 2, 3]] == cut(100, 1, first=50.0)
    assert [[0, 1], [2], [3]] == cut(1, 100)
    assert [[0, 1], [2], [3]] == cut(1, 100, first=50.0)  # of the core its own numbers do not count


def test_what_is_kept_of_a_lead_is_read_again():
    """The record of a ranking holds leads, what was paid for them, and what they are known with."""
    truth = np.array([2.0**30, 2.0**30 - 2.0**18, 2.0**20])
    measure, lead, _ = exact(truth)
    end = RankingContest(2, 0.05, GRAINS, 1 << 44).run(None, 3, measure, lead=lead)
    again = standing_of(blob_of(end))

    assert end.lead_information.any()
    for name in ("means", "information", "leads", "lead_grains", "lead_information", "paid", "ordered"):
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
