"""Counts with relative noise, asked of a session: what is charged, what is free, what is refused, what is told."""

import math

import numpy as np
import pyarrow as pa
import pytest
from rides import BY, KEYS, SIZES, TABLE, same

from farthing import (
    Bounds,
    Budget,
    BudgetExceeded,
    Gdp,
    InvalidTarget,
    LedgerError,
    Pure,
    Session,
    UnsupportedQuery,
    Zcdp,
)
from farthing.planning.relative_count import KINDS, RelativeCountPricing, RelativeNoise
from farthing.privacy.policy import LARGEST_SIZE
from farthing.query.aggregates import Count
from farthing.session.answering import relative_count

pytestmark = pytest.mark.thorough

HOW = {"relative": 0.1, "absolute": 20, "cap": "all"}
TWO = Bounds(max_groups=2, max_rows=3)


def opened(budget=None, **options):
    """Open the table with much to spend."""
    return Session(TABLE, **({"budget": budget or Budget(mu=8)} | options))


def noise_of(session, mechanism, **options):
    """Return the noise that a question would be answered with."""
    pricing = session.plan(**BY, **(HOW | options), mechanism=mechanism).pricing
    assert isinstance(pricing, RelativeCountPricing)
    return pricing.noise


def at_zero(mechanism, moved):
    """Return the distance from an empty group to one that `moved` records joined, over sigma, from the formulas."""
    made = mechanism
    match type(made).__name__:
        case "Asinh":
            return math.asinh(moved / made.x0) / made.sigma
        case "LinearLog":
            return min(moved, made.x0) / made.x0 / made.sigma
        case "Log":
            return math.log(1 + moved / made.offset) / made.sigma
        case "Power":
            return (math.sqrt(moved + made.offset) - math.sqrt(made.offset)) / made.sigma
        case _:
            return moved / made.sigma


def check_price(mechanism):
    """Fail where a release is not charged at its worst size, in all groups that a unit may be in."""
    for budget, parameter in ((Budget(mu=8), "mu"), (Budget(rho=32), "rho")):
        with opened(budget, unit="u", bounds=TWO) as session:
            distance = at_zero(noise_of(session, mechanism).mechanism, TWO.max_rows)
            answer = session.count(**BY, **HOW, mechanism=mechanism)
            mu_squared = TWO.max_groups * distance**2
            worst = mu_squared if parameter == "mu" else mu_squared / 2

            assert worst == pytest.approx(float(answer.paid.amount), rel=1e-9)
            assert worst <= float(answer.paid.amount)
            assert [answer.paid] == [session._context.loss(entry.charged) for entry in session.history()]


@pytest.mark.parametrize("mechanism", KINDS)
def test_the_worst_case_is_charged(mechanism):
    """The ledger charges max_groups times the policy where it costs most: no data, and no released size, lowers it."""
    check_price(mechanism)


@pytest.mark.parametrize("planted", [
    lambda noise, currency: noise.policy.loss(4_000, currency) * noise.max_groups,
    lambda noise, currency: noise.policy.worst(currency),
    lambda noise, currency: noise.mechanism.policy.worst(currency) * noise.max_groups,
], ids=["at a released size", "in one group", "one record a unit"])  # fmt: skip
def test_planted_prices_are_caught(monkeypatch, planted):
    """A price at a released size, in one group, or of one record fails the test above."""
    monkeypatch.setattr(RelativeNoise, "worst", planted)

    with pytest.raises(AssertionError):
        check_price("asinh")


@pytest.mark.parametrize("mechanism", KINDS)
def test_the_price_is_the_same_whatever_the_data_are(mechanism):
    """Groups of a million are charged as empty ones: the charge tells nothing of the sizes."""
    prices = []
    for many in (0, 50_000):
        with Session(pa.table({"k": pa.array(["few"] * many, pa.string())}), budget=Budget(mu=8)) as session:
            prices.append(session.count("k", keys={"k": ["few"]}, **HOW, mechanism=mechanism).paid)

    assert prices[0] == prices[1]


@pytest.mark.parametrize("mechanism", KINDS)
def test_answers_are_within_their_target(mechanism):
    """Values are near the exact counts, every group is within its target, and the interval is around the value."""
    with opened() as session:
        answer = session.count(**BY, **HOW, mechanism=mechanism)

    assert answer.met.all()
    assert 3 <= (np.abs(answer.value - SIZES) <= np.maximum(0.1 * np.array(SIZES), 20) * 1.5).sum()
    assert (answer.lower < answer.value).all()
    assert (answer.value < answer.upper).all()
    assert "priced at the size where it costs most" in answer.about


def test_a_looser_question_is_free_and_a_sharper_one_is_a_release_of_its_own():
    """What was released serves whatever it meets; anything else is drawn and charged whole, and all are kept."""
    with opened() as session:
        first = session.count(**BY, **HOW, mechanism="asinh")
        again = session.count(**BY, **HOW, mechanism="asinh")
        looser = first.refine(relative=0.2, absolute=20, confidence=0.9)
        sharper = first.refine(relative=0.05)
        other = first.refine(mechanism="linear-log")
        spent = session.spent
        third = session.count(**BY, **HOW, mechanism="asinh")

        assert not again.paid
        assert same(first, again)
        assert not looser.paid
        assert looser.value.tolist() == first.value.tolist()
        assert (looser.upper - looser.lower < first.upper - first.lower).all()
        assert first.paid + sharper.paid + other.paid == spent
        assert sharper.paid == noise_of(session, "asinh", relative=0.05).worst(Gdp)
        assert third.value.tolist() == sharper.value.tolist()
        assert session.count(**BY, absolute=20).paid  # a refined count is another question


def test_what_was_released_is_kept_in_the_books(tmp_path):
    """Another session on the same ledger reads the same numbers free of charge."""
    path = tmp_path / "books.ledger"
    with opened(ledger=path) as session:
        first = session.count(**BY, **HOW, mechanism="two-stage")
    with opened(ledger=path) as session:
        again = session.count(**BY, **HOW, mechanism="two-stage")

    assert not again.paid
    assert same(first, again)


def test_keys_in_another_order_are_the_same_release():
    """The order of the keys changes the order of the numbers and no number."""
    turned = {"by": "k", "keys": {"k": KEYS["k"][::-1]}}
    with opened() as session:
        first = session.count(**BY, **HOW, mechanism="log")
        again = session.count(**turned, **HOW, mechanism="log")

    assert not again.paid
    assert first.value.tolist() == again.value[::-1].tolist()
    assert first.group_loss.strict.tolist() == again.group_loss.strict[::-1].tolist()


def test_two_releases_at_once_are_both_kept():
    """If another process released meanwhile, the books keep both: each was paid for whole."""
    with opened() as session:
        query = session._reader.call(Count(), "count", **BY).query.arranged()
        noise = noise_of(session, "asinh")
        counts = np.array(SIZES, dtype=np.int64)
        mine, theirs = (relative_count.blob_of({n: relative_count.RelativeRelease.draw(noise, counts)}) for n in (1, 2))
        method = relative_count.RelativeCountMethod.of(query, "asinh", None)
        outcome = relative_count.AskOutcome((), np.zeros(4), Gdp(0), mine)

    assert {1} == set(relative_count.releases(method.merged(None, outcome, None)))
    assert {1, 2} == set(relative_count.releases(method.merged(theirs, outcome, None)))


@pytest.mark.parametrize(("budget", "parameter"), [(Budget(mu=8), "mu"), (Budget(rho=32), "rho")])
def test_groups_lose_by_their_released_size(budget, parameter):
    """With a mechanism, group_loss is the policy at the released size, in the ledger's parameter: larger, less."""
    with opened(budget) as session:
        answer = session.count(**BY, **HOW, mechanism="linear-log")
        policy = noise_of(session, "linear-log").policy
        sizes = np.maximum(np.floor(answer.value), 0).astype(int)
        loss = answer.group_loss

        assert (parameter, True) == (loss.parameter, loss.by_size)
        assert getattr(policy, parameter)(sizes).tolist() == loss.strict.tolist()
        assert loss.strict.tolist() == loss.ex_post.tolist() == answer.group_paid.tolist()
        assert loss.strict[-1] < loss.strict[0] / 10
        assert answer.paid.value >= loss.strict.max()
        assert "each group's own, by the policy at its released size" in str(loss)
        again = session.count(**BY, **HOW, mechanism="linear-log").group_loss
        assert loss.strict.tolist() == again.strict.tolist()
        assert 0 == again.ex_post.max()


def test_refined_groups_lose_ex_post():
    """Without a mechanism, everybody was promised the worst price, and larger groups paid less in the end."""
    with opened() as session:
        plan = session.plan(**BY, **HOW)
        loss = session.count(**BY, **HOW).group_loss

    assert [plan.worst_price.value] * 4 == loss.strict.tolist()
    assert (loss.ex_post <= loss.strict * (1 + 1e-12)).all()
    assert loss.ex_post[-1] < loss.ex_post[0]
    assert "promised to everybody before anything was drawn" in str(loss)


def test_group_loss_follows_its_rows():
    """HAVING, ORDER BY and dropped groups keep each group with its own loss."""
    text = "SELECT k, COUNT(*) AS n FROM data GROUP BY k HAVING n > 200 ORDER BY n DESC"
    with opened() as session:
        answer = session.sql(text, keys=KEYS, **HOW, mechanism="asinh")

    assert ["many", "some"] == answer.keys.column("k").to_pylist()
    assert answer.group_loss.strict[0] < answer.group_loss.strict[1]
    assert 2 == len(answer.group_loss.ex_post)


def test_the_plan_shows_that_larger_groups_pay_less():
    """Its table falls with the size, its worst price is what is then paid, and it spends nothing."""
    with opened() as session:
        plan = session.plan(**BY, **HOW, mechanism="linear-log")
        paid = [row["paid"] for row in plan.prices]
        widths = [row["half_width"] for row in plan.prices]

        assert not session.spent
        assert paid == sorted(paid, reverse=True)
        assert paid[-1] < paid[0] / 1_000
        assert all(width <= max(0.1 * row["size"], 20) for width, row in zip(widths, plan.prices, strict=True))
        assert session.count(**BY, **HOW, mechanism="linear-log").paid == plan.worst_price
        assert session.plan(**BY, **HOW, mechanism="linear-log").free
        assert "linear-log noise" in plan.steps[0]


@pytest.mark.parametrize("mechanism", KINDS)
def test_a_release_over_the_cap_is_refused_with_what_would_fit(mechanism):
    """It cannot be made in part: the refusal tells the price, and the absolute error that it names fits."""
    with opened(Budget(mu=0.2)) as session:
        with pytest.raises(InvalidTarget, match="costs more than the question may") as refused:
            session.count(**BY, relative=0.1, absolute=5, mechanism=mechanism)
        fits = float(str(refused.value).split("at +/-")[1].split()[0].replace(",", ""))
        answer = session.count(**BY, relative=0.1, absolute=fits, mechanism=mechanism)

    assert "mu=" in str(refused.value)
    assert 5 < fits
    assert answer.paid <= Gdp.of_amount(Gdp(0.2).amount / 10)
    assert float(answer.paid.amount) > 0.9 * 0.2**2 / 10 or mechanism in {"asinh", "log"}


def test_without_an_absolute_error_the_price_is_told():
    """x0 is 1 then, which costs far more than anybody has; the refusal says how much."""
    with opened() as session:
        with pytest.raises(InvalidTarget, match="costs more than") as no:
            session.count(**BY, relative=0.1, mechanism="asinh", cap="all")
        about = Session(TABLE, budget=Budget(mu=1_000)).plan(**BY, relative=0.3, mechanism="gaussian", cap="all").about

    assert "Gdp(mu=" in str(no.value)
    assert "down to groups of 1" in about


def test_a_release_that_does_not_fit_charges_nothing():
    """What is left is too little: BudgetExceeded with what would fit."""
    with opened(Budget(mu=0.2)) as session:
        session.count(**BY, loss=Gdp(0.19), cap=None)
        spent = session.spent
        with pytest.raises(BudgetExceeded, match="it would fit"):
            session.count(**BY, relative=0.1, absolute=20, cap="all", mechanism="linear-log")

        assert spent == session.spent


def test_counts_of_values_and_units():
    """COUNT(value) and COUNT(DISTINCT unit) take mechanisms too; a unit is one, whatever max_rows is."""
    with opened(unit="u", bounds=Bounds(max_groups=1, max_rows=3)) as session:
        units = session.count_distinct(**BY, **HOW, mechanism="asinh")
        rows = session.count(**BY, **HOW, value="x", mechanism="asinh")

    assert units.paid < rows.paid
    assert abs(units.value[-1] - 1_000) < 300
    assert abs(rows.value[-1] - 3_000) < 900


REFUSED = {
    "a sum": (UnsupportedQuery, lambda s: s.sum("x", lower=0, upper=9, **BY, **HOW, mechanism="asinh")),
    "a mean": (UnsupportedQuery, lambda s: s.mean("x", lower=0, upper=9, **BY, **HOW, mechanism="asinh")),
    "a quantile": (UnsupportedQuery, lambda s: s.quantile("x", 0.5, lower=0, upper=9, **BY, **HOW, mechanism="log")),
    "several": (UnsupportedQuery, lambda s: s.sql("SELECT COUNT(*) AS n, COUNT(x) AS m FROM data", **HOW,
                                                  mechanism="asinh")),
    "several kinds": (UnsupportedQuery, lambda s: s.sql("SELECT COUNT(*) AS n, MEDIAN(CLAMP(x, 0, 9)) AS m FROM data",
                                                        **HOW, mechanism="asinh")),
    "private keys": (UnsupportedQuery, lambda s: s.count("k", keys="private", **HOW, found_above=99,
                                                         mechanism="asinh")),
    "auto bounds": (UnsupportedQuery, lambda s: s.sum("x", **BY, **HOW, bounds=Bounds.auto(), mechanism="asinh")),
    "no such one": (InvalidTarget, lambda s: s.count(**BY, **HOW, mechanism="laplace")),
    "no text": (InvalidTarget, lambda s: s.count(**BY, **HOW, mechanism=["asinh"])),
    "no relative": (InvalidTarget, lambda s: s.count(**BY, absolute=50, mechanism="asinh")),
    "relative 0": (InvalidTarget, lambda s: s.count(**BY, relative=0.0, absolute=50, mechanism="asinh")),
    "a loss": (InvalidTarget, lambda s: s.count(**BY, loss=Gdp(0.1), mechanism="asinh")),
    "a rank": (InvalidTarget, lambda s: s.count(**BY, **HOW, rank=0.1, mechanism="asinh")),
    "too sure": (InvalidTarget, lambda s: s.count(**BY, **HOW, confidence=1 - 1e-10, mechanism="asinh")),
    "another currency": (InvalidTarget, lambda s: s.count(**BY, relative=0.1, absolute=50, cap=Zcdp(1),
                                                          mechanism="asinh")),
    "x0 too large": (InvalidTarget, lambda s: s.count(**BY, relative=1e-9, absolute=1e9, mechanism="asinh")),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "asking"), REFUSED.values(), ids=REFUSED)
def test_refused_before_anything_is_charged(kind, asking):
    """What a mechanism cannot release is refused by name, with what to do instead, free of charge."""
    with opened(Budget(epsilon=20, delta=1e-6, keys_delta=1e-7)) as session:
        with pytest.raises(kind) as refused:
            asking(session)

        assert not session.spent
        assert not session.history()
    assert refused.value.rule
    assert refused.value.next_step


def test_a_pure_ledger_books_no_relative_noise():
    """Gaussian noise on a transform has no pure loss."""
    with Session(TABLE, budget=Budget(epsilon=5)) as session:
        with pytest.raises(InvalidTarget, match="pure budget"):
            session.count(**BY, relative=0.1, absolute=50, mechanism="asinh")

        assert Pure(0) == session.spent


def test_a_failed_release_stays_charged(monkeypatch):
    """If anything goes wrong after the reservation, the whole price stays: noise may have been drawn."""
    with opened() as session:
        plan = session.plan(**BY, **HOW, mechanism="asinh")
        monkeypatch.setattr(relative_count.RelativeRelease, "draw", classmethod(lambda *_: 1 // 0))
        with pytest.raises(ZeroDivisionError):
            session.count(**BY, **HOW, mechanism="asinh")

        assert plan.worst_price == session.spent
        assert plan.worst_price == session.guarantee(size=10**6).loss  # nothing is known to have a policy


def test_progress_is_told_once():
    """One release is one look."""
    seen = []
    with opened() as session:
        answer = session.count(**BY, **HOW, mechanism="asinh", progress=seen.append)

    assert [(1, 4, 4)] == [(look.look, look.groups, look.done) for look in seen]
    assert seen[0].half_width == (answer.upper - answer.lower).max() / 2


@pytest.mark.parametrize("mechanism", [name for name in KINDS if name != "two-stage"])
def test_size_at_inverts_the_transform(mechanism):
    """The size at the level of a size is that size; below 0 it still rises, or stays."""
    with opened() as session:
        noise = noise_of(session, mechanism)
    sizes = np.array([0.0, 1, 7, 300, 1e6, 2.0**40])
    level = noise.mechanism.transform(sizes)
    around = relative_count.size_at(noise, np.linspace(level[0] - 3, level[0] + 3, 101))

    assert sizes == pytest.approx(relative_count.size_at(noise, level), rel=1e-9, abs=1e-6)
    assert (np.diff(around) >= 0).all()
    assert around[0] < 0


@pytest.mark.parametrize("mechanism", KINDS)
@pytest.mark.parametrize("times", [1.0, 3.7, 900.0])
def test_coarser_noise_is_the_same_on_larger_units(mechanism, times):
    """Errors at times * x are times the errors at x: what is said to fit has the error that is named."""
    with opened() as session:
        noise = noise_of(session, mechanism)
    coarse = noise.coarser(times)
    errors = [made.mechanism.expected_error(at, "rmse") for made, at in
              ((noise, [0, 30, 5_000]), (coarse, [0, 30 * times, 5_000 * times]))]  # fmt: skip

    assert (times * errors[0]).tolist() == pytest.approx(errors[1].tolist(), rel=1e-3)
    assert coarse.worst(Zcdp) <= noise.worst(Zcdp)
    assert times * 20 == pytest.approx(coarse.absolute)


def test_noise_survives_the_books_to_the_last_bit():
    """What is read back has equal parameters, and a blob of another form is refused."""
    with opened() as session:
        for mechanism in KINDS:
            noise = noise_of(session, mechanism)
            one = relative_count.RelativeRelease.draw(noise, np.array([0, 5, LARGEST_SIZE >> 12]))
            back = relative_count.releases(relative_count.blob_of({7: one}))[7]

            assert (noise, one.steps.tolist()) == (back.noise, back.steps.tolist())
    with pytest.raises(LedgerError):
        relative_count.releases(b"something else")


def test_the_history_names_the_mechanism():
    """Whoever reads the books sees what was released with relative noise."""
    with opened() as session:
        session.count(**BY, **HOW, mechanism="asinh")
        session.count(**BY, **HOW)

        assert ["within 10 % or 20, 0.95", "within 10 % or 20, 0.95, asinh noise"] == [
            entry.target for entry in session.history()
        ]


def test_all_groups_at_once_cost_more():
    """With simultaneous=True each of four groups may miss a quarter as often, and that is what the noise is set to."""
    with opened() as session:
        each, all_four = (noise_of(session, "asinh", simultaneous=both) for both in (False, True))

    assert (0.05, 0.0125) == (each.beta, all_four.beta)
    assert each.worst(Gdp) < all_four.worst(Gdp)
    assert all_four.covers(0.1, 20, 0.05)
    assert not each.covers(0.1, 20, 0.0125)


@pytest.mark.parametrize(("name", "times"), [("asinh", 26), ("log", 76), ("linear-log", None)])
def test_plans_tell_what_the_worst_size_costs_beside_linear_log(name, times):
    """The ledger books the worst size: asinh and log cost many times what linear-log does, and the plan says so."""
    import re

    with Session(pa.table({"x": [1, 2, 3]}), budget=Budget(mu=1_000)) as session:
        plan = session.plan(relative=0.1, absolute=5, mechanism=name, cap="all")
    found = re.search(r"the ledger books that size: ([0-9.]+) times", str(plan))

    assert (found is None) == (times is None)
    assert times is None or 0.8 * times < float(found[1]) < 1.25 * times
