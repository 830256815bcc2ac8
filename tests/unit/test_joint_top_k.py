"""Joint choices of k options: classes of sets, edges, refusals, prices, and what a session says of them."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.errors import FarthingError, InvalidBudget, InvalidTarget, NoiseError
from farthing.mechanisms import JointTopK, TopK, choose_mechanism, for_joint_regret
from farthing.mechanisms.joint_top_k import MOST_CLASSES, _classes, _members, chance_jointly, distance_jointly, serves
from farthing.mechanisms.select import choose_from, confidence_of, named
from farthing.noise.bits import seeded
from farthing.privacy import Gdp, Pure, Zcdp

ZONES = pa.table({"zone": np.repeat(np.arange(40), np.arange(40, 0, -1) * 60)})


@pytest.mark.parametrize(("k", "options"), [(1, 2), (1, 6), (3, 4), (3, 7), (5, 6)])
def test_classes_hold_every_set_once(k, options):
    """Their numbers add up to all sets of k, each member is in its class, and centres are the exact ones."""
    falling = np.sort(np.random.default_rng(k).integers(0, 50, options))[::-1]
    race = _classes(falling, k, 0.25)
    counts, seen = [race.many(0, place) for place in range(race.centres.size)], set()

    assert math.comb(options, k) == sum(counts)
    for place, many in enumerate(counts):
        exact = float(race.exact(0, place)) + math.log(many)
        assert race.centres[0, place] == pytest.approx(exact, abs=race.slack)
        out, low = divmod(place, options - k)
        one = _members(k, out, k + low, seeded(place)).tolist()
        assert k == len(set(one))
        assert out == k or (out not in one and max(one) == k + low and set(range(out)) <= set(one))
        seen.add((out, k + low) if out < k else None)
    assert race.centres.size == len(seen) == k * (options - k) + 1


def test_a_contender_that_stands_for_many_is_ahead_by_their_logarithm():
    """In balls, too: with the same bits, 20 sets are log 20 ahead of one."""
    race = _classes(np.array([9, 8, 7, 6, 5, 4, 3]), 4, 0.0)
    place = max(range(race.centres.size), key=lambda each: race.many(0, each))
    many, one = (race.contender(0, each, 1 << 60, seeded(1)) for each in (place, race.centres.size - 1))

    assert race.many(0, place) == 10
    assert float((many.ball() - one.ball()).mid()) == pytest.approx(math.log(10))


def test_members_are_uniform_over_the_sets_between():
    """Every set of a class comes, about as often as any other."""
    bits = seeded(5)
    seen = [tuple(_members(3, 1, 5, bits).tolist()) for _ in range(1200)]
    counts = [seen.count((0, middle, 5)) for middle in (2, 3, 4)]

    assert 1200 == sum(counts)
    assert min(counts) > 300


def test_clear_leads_are_chosen_and_no_order_is_told():
    """The best set comes whatever the order of options, in rising order of their places; of all options, all."""
    scores = [0, 9_000, 100, 8_000, 50, 8_500]
    for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 97):
        there = np.array(scores)[list(order)]
        chosen = JointTopK(3, 1).choose(there, bits=seeded(3)).tolist()
        assert sorted(np.argsort(-there)[:3].tolist()) == chosen
    assert [0, 1] == JointTopK(2, 1).choose([5, 3]).tolist()
    assert ["b", "d"] == choose_from(JointTopK(2, 1), "abcd", [0, 9e3, 1, 8e3])
    assert [0, 2] == JointTopK(2, 1).choose([1e3, -(2.0**61), 1e3]).tolist()


@pytest.mark.parametrize(
    "bad", [lambda: JointTopK(0, 1), lambda: JointTopK(2, 0), lambda: JointTopK(1.5, 1), lambda: JointTopK(2, -1)]
)
def test_what_is_no_joint_choice_is_refused(bad):
    """A price, and a number of options."""
    with pytest.raises(InvalidBudget):
        bad()


def test_scores_that_cannot_be_chosen_from_are_refused():
    """Fewer than k, several rows, no numbers; too many classes, by public numbers alone."""
    for scores in ([1], [[1, 2], [3, 4]], ["a", "b", "c"], [1.0, math.nan, 2.0]):
        with pytest.raises(NoiseError):
            JointTopK(2, 1).choose(scores)
    assert not serves(3000, 2 * MOST_CLASSES)
    with pytest.raises(NoiseError, match="classes"):
        JointTopK(3000, 1).choose(np.zeros(10_000))
    with pytest.raises(InvalidTarget, match="nothing to choose"):
        for_joint_regret(options=3, within=1, k=3)


def test_the_promise_fixes_the_price():
    """The distance has the confidence; a wider promise, fewer options and one way of moving cost less."""
    one = for_joint_regret(options=1000, within=50, k=10)

    assert 0.95 <= chance_jointly(10, 1000, distance_jointly(10, 1000, 0.95)) < 0.95 + 1e-8
    assert 0.95 <= chance_jointly(10, 1000, float(one.rate()) * 3 * 50) < 0.95 + 1e-8
    for cheaper in ({"within": 51}, {"options": 999}, {"k": 9}, {"monotone": True}, {"confidence": 0.9}):
        assert for_joint_regret(**({"options": 1000, "within": 50, "k": 10} | cheaper)).epsilon < one.epsilon
    assert one.price(Pure) == Pure(one.epsilon)
    assert one.price(Zcdp).rho == pytest.approx(one.epsilon**2 / 8, rel=0.3)
    assert float(one.loss.amount) == one.epsilon


def test_a_joint_choice_is_taken_where_it_is_the_cheapest():
    """Under a pure budget, at many places and few; never for one place; races stay the better buy in Gaussian DP."""
    pure = choose_mechanism(Pure, options=1000, within=50, k=10, monotone=True)
    race = next(price for one, price in pure.compared if one == TopK(10, one.epsilon, "exponential"))

    assert "joint top-10" == named(pure.mechanism)
    assert float(pure.price.amount) < 0.8 * float(race.amount)
    assert 0.94 < confidence_of("exponential", float(race.amount) / 10, options=1000, within=50, k=10, spread=1) < 0.96
    assert "joint" not in named(choose_mechanism(Gdp, options=1000, within=50, k=10, monotone=True, moved=1).mechanism)
    assert not any("joint" in named(one) for one, _ in choose_mechanism(Pure, options=9, within=5).compared)


def test_a_session_says_that_no_order_was_told():
    """Under a pure budget: groups in the order of their keys, no ranks, no leads, and the same when asked again."""
    with Session(ZONES, budget=Budget(epsilon=1)) as session:
        asked = {"by": "zone", "k": 10, "keys": {"zone": range(39, -1, -1)}, "within": 200, "cap": "all"}
        chosen, again = (session.top_k(**asked) for _ in range(2))

        assert "joint top-10" == chosen.compared[0][0]
        assert not chosen.ordered
        assert not again.ordered
        assert list(range(10)) == sorted(chosen) == sorted(again)
        assert [None] * 10 == chosen.to_arrow()["rank"].to_pylist()
        assert chosen.ahead is None is chosen.settled
        assert "in no order" in again.caption
        assert session.spent == chosen.paid == chosen.compared[0][1]
        assert not again.paid


def test_a_price_that_is_named_keeps_its_order():
    """epsilon= is the price of each choice of a race, which tells an order and leads."""
    with Session(ZONES, budget=Budget(epsilon=20)) as session:
        chosen = session.top_k("zone", 3, keys={"zone": range(40)}, epsilon=1, cap="all")

        assert chosen.ordered
        assert [1, 2, 3] == chosen.to_arrow()["rank"].to_pylist()


def test_groups_and_their_numbers_are_asked_through_a_joint_choice():
    """ORDER BY ... LIMIT under a pure budget: the choice is joint, the numbers put it in order."""
    with Session(ZONES, budget=Budget(epsilon=8)) as session:
        text = "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone ORDER BY n DESC LIMIT 12"
        answer = session.sql(text, keys={"zone": range(40)}, absolute=60, max_epsilon=6)

        assert set(range(10)) <= set(answer.keys["zone"].to_pylist())
        assert len(answer.value) == 12
        with pytest.raises(FarthingError):
            session.sql(text, keys={"zone": range(40)}, absolute=1e-9, max_epsilon=1e-9)
