"""Membership inference: its law, its verdict, what it is refused for, and several attacks under one verdict."""

import json
import math

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom
from sweeps import sweep

from farthing import Budget, Gdp, Pure, Session, attacks
from farthing.attacks import Claim, People, targets
from farthing.attacks.running import Report
from farthing.errors import DataError, InvalidOption

pytestmark = pytest.mark.thorough

CROWD = attacks.secrets(200, seed=3, attributes=1_000)


def with_shares(n, shares, seed):
    """Return people whose attributes have chances of their own."""
    coins = attacks.Coins(seed, "shares")
    rows = coins.uniform(len(shares), n) < np.asarray(shares)[:, None]
    columns = {"id": np.arange(n)} | {f"a{place}": row.astype(int) for place, row in enumerate(rows)}
    return People(attacks.secrets(n, seed).bits, columns)


@pytest.mark.statistical
def test_the_law_of_tracing():
    """The share of members found is Phi(sqrt(d/n) - z); a law with a tenth more people is told apart."""
    found = members = 0
    expected, wrong = [], []
    for seed in range(16):
        people = attacks.secrets(200, seed=seed, attributes=300)
        result = attacks.membership(targets.Exact(people), seed=seed, draws=2_000)
        found += round(result.details["true_positives"] * result.details["members"])
        members += result.details["members"]
        expected.append(result.details["members"] * attacks.tracing_power(300, result.details["members"]))
        wrong.append(result.details["members"] * attacks.tracing_power(300, round(1.4 * result.details["members"])))
    low, high = (binom.ppf(level, members, sum(expected) / members) for level in (ALPHA / 2, 1 - ALPHA / 2))

    assert low <= found <= high
    assert not low <= sum(wrong) <= high


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (targets.Exact, attacks.tracing_power(1_000, 100)),
        (lambda people: targets.Rounded(people, 5), attacks.tracing_power(1_000, 100, sigma=5 / math.sqrt(12))),
        (lambda people: targets.FreshGaussian(people, 5), attacks.tracing_power(1_000, 100, sigma=5)),
        (targets.Subsample, 0.5),
    ],
)
def test_aggregates_give_members_away(make, expected):
    """Exact, rounded, noisy and sampled means are all broken, as often as the law says."""
    result = attacks.membership(make(CROWD))

    assert "broken" == result.verdict
    assert result.epsilon_lower > 1
    assert expected == pytest.approx(result.details["true_positives"], abs=5 * math.sqrt(0.25 / 100))
    assert result.details["false_positives"] <= 0.01 < result.details["false_positives_at_most"] < 0.015


def test_attributes_of_any_shares():
    """The law does not depend on the shares of the population, as long as the attacker knows them."""
    shares = np.linspace(0.1, 0.9, 1_000)
    people = with_shares(200, shares, seed=5)
    known = attacks.membership(targets.Exact(people), population=shares)
    reference = attacks.membership(targets.Exact(people), population=shares, knowing="reference")

    assert 0.7 < known.details["true_positives"]
    assert reference.details["true_positives"] < known.details["true_positives"]
    assert 0.15 < reference.details["true_positives"]


def test_one_record_and_the_theorem():
    """With one record of the population the threshold of the theorem finds members only over very many attributes."""
    people = attacks.secrets(16, seed=3, attributes=8_000)
    many = attacks.membership(targets.Exact(people), knowing="record")
    few = attacks.membership(targets.Exact(CROWD), knowing="record")

    assert 0.5 < many.details["true_positives"]
    assert 0 == few.details["true_positives"]
    assert 0.01 == few.details["false_positives_at_most"]


def test_a_budget_holds():
    """Neither a textbook mechanism at its own epsilon nor a farthing session is called broken."""
    small = attacks.secrets(100, seed=4, attributes=60)
    session = Session(small.to_arrow(), budget=Budget(epsilon=1, delta=1e-6), name="people")
    for target in (
        targets.Honest(CROWD, 1, 1_001),
        targets.FarthingSession(session, small, loss=targets.equal_share(session, 61)),
        targets.FarthingSession.over(small, Budget(epsilon=1), loss=Pure(0.05)),
    ):
        result = attacks.membership(target)
        assert result.verdict == ("holds" if isinstance(target, targets.Honest) else "undecided")
        assert result.details["true_positives"] < 0.2
        assert 0 < result.answered


def test_all_shares_of_a_session_fit():
    """A session that is divided by so many questions answers all of them, in every currency."""
    small = attacks.secrets(40, seed=4, attributes=12)
    for budget in (Budget(epsilon=1, delta=1e-6), Budget(epsilon=1), Budget(rho=0.5)):
        session = Session(small.to_arrow(), budget=budget, name="people")
        ours = targets.FarthingSession(session, small, loss=targets.equal_share(session, 13))
        assert 13 == attacks.membership(ours).answered
    with pytest.raises(DataError, match="no questions"):
        targets.equal_share(session, 0)


def test_the_p_value_of_members_found():
    """It is the binomial tail of the theorem, grows with epsilon, and a delta only makes it larger."""
    odds = math.exp(2) / (1 + math.exp(1))

    assert binom.sf(19, 200, 0.01 * odds) == pytest.approx(attacks.found_p_value(20, 200, 0.01, 1.0))
    assert 1.0 == attacks.found_p_value(0, 200, 0.01, 1.0)
    assert 1.0 == attacks.found_p_value(50, 200, 0.01, 1_000.0)
    plain, loose = (attacks.found_p_value(80, 200, 0.014, 1.0, delta=delta) for delta in (1e-12, 1e-3))
    assert attacks.found_p_value(80, 200, 0.014, 1.0) < plain < loose <= 200 * 1e-3
    growing = [attacks.found_p_value(60, 200, 0.014, epsilon) for epsilon in np.linspace(0, 6, 25)]
    assert np.all(np.diff(growing) >= 0)


@pytest.mark.statistical
def test_honest_means_hold_and_exact_ones_do_not():
    """Of all runs at the claimed epsilon no more are called broken than chance allows; without noise all are."""
    broken = {"honest": 0, "exact": 0}
    runs = sweep(30, 60)
    for seed in range(runs):
        people = attacks.secrets(100, seed=seed, attributes=250)
        honest, exact = targets.Honest(people, 1, 251, seed), targets.Claimed(targets.Exact(people), Claim(0.5))
        for name, target in (("honest", honest), ("exact", exact))[: 1 + (seed < 10)]:
            broken[name] += attacks.membership(target, seed=seed, draws=1_000).verdict == "broken"

    assert broken["honest"] <= binom.isf(ALPHA, runs, 1e-3)
    assert 10 == broken["exact"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"rate": 0}, "the test is out of range"),
        ({"draws": 10}, "the test is out of range"),
        ({"knowing": "nothing"}, "the test is out of range"),
        ({"population": 1.0}, "the population is out of range"),
        ({"population": [0.5, 0.5]}, "the population is out of range"),
        ({"queries": 0}, "that many attributes"),
    ],
)
def test_impossible_tests_are_refused(how, said):
    """Rates, draws, shares and numbers of attributes that are none."""
    with pytest.raises(DataError, match=said):
        attacks.membership(targets.Exact(CROWD), **how)


def test_people_without_attributes_are_refused():
    """There is nothing to ask about, and no group by coins."""
    with pytest.raises(DataError, match="that many attributes"):
        attacks.membership(targets.Exact([0, 1, 1]))
    loaded = People(CROWD.bits, CROWD.columns, prior=0.3)
    with pytest.raises(DataError, match="fair coins"):
        attacks.membership(targets.Exact(loaded))


def test_too_little_is_undecided():
    """Refusals of everything, too few people or too few answers to refute anything, decide nothing."""
    silent = targets.Function(lambda _: attacks.Refused("no"), CROWD)
    tiny = attacks.secrets(4, seed=1, attributes=50)

    assert ("undecided", True) == (attacks.membership(silent).verdict, "2 answers" in attacks.membership(silent).needs)
    assert "undecided" == attacks.membership(targets.Exact(tiny)).verdict
    few = attacks.membership(targets.Honest(CROWD, 1, 20))
    assert ("undecided", True) == (few.verdict, "not even exact answers" in few.needs)


def test_several_attacks_have_one_verdict():
    """The level is shared by the attacks; one that refutes is enough, and all of them are told."""
    people = attacks.secrets(100, seed=5, attributes=800)
    broken = attacks.run(targets.Rounded(people, 5), ["membership", "averaging", "tracker"])
    holds = attacks.run(targets.Honest(people, 1, 800), ["linear", "differencing", "single-target"])
    silent = attacks.run(targets.Function(lambda _: attacks.Refused("no"), people))

    assert ("broken", 10) == (broken.verdict, broken.exit_code)
    assert ("holds", 0) == (holds.verdict, holds.exit_code)
    assert ("undecided", 11) == (silent.verdict, silent.exit_code)
    assert ["membership", "averaging", "tracker"] == [result.attack for result in broken.results]
    assert ("no",) == silent.reasons
    assert "answers" in silent.needs
    assert broken.p_value < 1e-3 < holds.p_value
    assert 0.997 == pytest.approx(broken.confidence)
    assert "broken" == json.loads(json.dumps(broken.to_dict()))["verdict"]
    assert "BROKEN, 3 attacks" in repr(broken)


def test_a_verdict_that_only_one_of_many_attacks_supports_is_undecided():
    """Broken by itself but not beside the others: new secrets and that attack alone."""
    bits = attacks.secrets(33, seed=7).bits
    found = [attacks.run(targets.Exact(bits), ["single-target"]).results[0] for _ in range(2)]
    borderline = Report.of([attacks.run(targets.Exact(attacks.secrets(24, seed=7).bits), ["averaging"]).results[0]])
    many = Report.of([*borderline.results] * 50)

    assert "broken" == borderline.verdict == Report.of(found).verdict
    assert ("undecided", "new secrets, and") == (many.verdict, many.needs[:16])


def test_many_fresh_targets_are_attacked_together():
    """A list of targets has its own usual attacks, and each may be given another claim."""
    fresh = targets.each(targets.OffByTwo, attacks.secrets(600, seed=2).bits, epsilon=1)
    claimed = [targets.Claimed(one, Claim(3)) for one in fresh]

    assert "broken" == attacks.run(list(fresh)).verdict
    fresh = targets.each(targets.OffByTwo, attacks.secrets(600, seed=2).bits, epsilon=1)
    claimed = [targets.Claimed(one, Claim(3)) for one in fresh]
    assert "holds" == attacks.run(claimed, ["single-target"]).verdict


def test_unknown_attacks_are_refused():
    """By name, and named once."""
    for names in (["linnear"], ["linear", "linear"]):
        with pytest.raises(InvalidOption, match="attack"):
            attacks.run(targets.Exact([0, 1]), names)


def test_every_named_attack_runs():
    """Each name of the command line is an attack on something."""
    loans = targets.Diffix(attacks.tables.loans(seed=1))
    rides = targets.Diffix(attacks.tables.rides(seed=1, known=60, rows=4_000), "cedar")
    town = targets.Diffix(attacks.tables.town(seed=1, victims=40))
    special = {"cohen-nissim": loans, "dick-joseph-schutzman": rides, "noise-exploitation": town}
    few = attacks.secrets(10, seed=1, attributes=30)
    for name in attacks.ATTACKS:
        result = attacks.run(special.get(name, targets.Exact(few)), [name]).results[0]
        assert name == result.attack
        assert 0 < result.answered


def test_gdp_shares_add_up():
    """The squares of equal shares are the square of the whole, but for a part in a billion."""
    session = Session(attacks.secrets(10, seed=1).to_arrow(), budget=Budget(mu=1), name="people")
    share = targets.equal_share(session, 400)

    assert isinstance(share, Gdp)
    assert 1 - 1e-8 < 400 * share.mu**2 < 1


def with_copies(n, seed):
    """Return people with few attributes, each of them in many columns."""
    rows = np.repeat(attacks.Coins(seed, "copies").bits(5, n), 50, axis=0)
    columns = {"id": np.arange(n)} | {f"a{place}": row.astype(int) for place, row in enumerate(rows)}
    return People(attacks.secrets(n, seed).bits, columns)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["shares of 0.3", "copied"])
def test_attributes_that_are_no_fair_coins_make_nobody_guilty(kind):
    """Honest means of such attributes hold 24 times in 24, where the members found alone would call some broken."""
    broken = found = exact = 0
    for seed in range(24):
        people = with_copies(200, seed) if kind == "copied" else with_shares(200, np.full(250, 0.3), seed)
        result = attacks.membership(targets.Honest(people, 1, 251, seed), seed=seed, draws=1_000)
        broken += result.verdict == "broken"
        members = round(result.details["true_positives"] * result.details["members"])
        found += attacks.found_p_value(members, 200, result.details["false_positives_at_most"], 1.0) <= 9e-4
        if kind != "copied" and seed < 3:
            plain = targets.Claimed(targets.Exact(people), Claim(0.5))
            exact += attacks.membership(plain, seed=seed, draws=1_000).verdict == "broken"

    assert broken <= binom.isf(ALPHA, 24, 1e-3)
    assert found > binom.isf(1e-3, 24, 1e-3)
    assert exact == (0 if kind == "copied" else 3)


def test_no_p_value_is_told_below_the_level():
    """A verdict is sure to one in a thousand, and no number says more."""
    report = attacks.run(targets.Exact(CROWD), ["membership"])

    assert report.p_value < 1e-6
    assert 0.001 == report.to_dict()["p_value"] == report.results[0].to_dict()["p_value"]
