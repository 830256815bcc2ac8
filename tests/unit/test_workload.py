"""Many questions under one budget: what is answered, what is not and why, and that nothing is half done."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rides import BY, KEYS, TABLE, opened

from farthing import Budget, DataError, Gdp, InvalidTarget, Session, UnsupportedQuery
from farthing.session.batches import workload

SQL = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"


DEAR = Gdp(0.5)
"""A cap that does not bind."""


def grains(losses):
    """Return a sum of losses in farthings of mu^2."""
    return sum(loss.farthings for loss in losses)


def test_every_kind_of_item_is_asked_by_its_name():
    """SQL, arguments of a method, pairs and mappings; the common target where an item has none of its own."""
    session = opened()
    done = session.workload(
        [
            "SELECT COUNT(*) AS n FROM data WHERE x < 5",
            {**BY, "absolute": 40},
            ("mean", {"ask": "mean", "value": "x", "lower": 0, "upper": 9, "absolute": 0.5}),
            ("shown", {"text": f"{SQL} HAVING n > 100", "keys": KEYS}),
            {"ask": "ratio", "top": "x > 3", "absolute": 0.05},
            {"ask": "difference", "by": "k", "groups": ("many", "some")},
        ],
        absolute=60,
    )

    assert ["q1", "q2", "mean", "shown", "q5", "q6"] == list(done)
    assert ["within 60", "within 40"] == [done[name].goal for name in ("q1", "q2")]
    assert done.complete
    assert 2 == done["shown"].keys.num_rows
    assert grains([session.spent]) == grains([done.paid]) == grains([answer.paid for answer in done.answers.values()])


def test_a_target_in_the_text_is_the_items_own():
    """OPTIONS of GoogleSQL count as an item's own target."""
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (absolute_error = 90) COUNT(*) AS n FROM data"
    done = opened().workload([text, {"where": "x < 5"}], absolute=50)

    assert ["within 90", "within 50"] == [answer.goal for answer in done.answers.values()]


def test_what_does_not_fit_is_told_with_its_price_and_what_would():
    """The expensive question is passed over, the ones after it are answered, and the ledger never passes its budget."""
    session = opened(budget=Budget(mu=0.1))
    done = session.workload({"expensive": {"absolute": 5, "cap": DEAR}, "cheap": {"where": "x < 5", "absolute": 80}})

    assert (["cheap"], ["expensive"]) == (list(done.answers), list(done.unanswered))
    assert done.unanswered["expensive"].worst_price > done.remaining
    assert "it would fit" in done.unanswered["expensive"].fitting
    assert "1 of 2 questions answered" in repr(done)
    assert not done.complete
    assert session.spent == done.paid


@pytest.mark.parametrize("limit", [{"cap": Gdp(0.1)}, {"max_epsilon": Gdp(0.1).epsilon(1e-6)}])
def test_the_cap_is_for_all_together(limit):
    """Questions stop where the cap of the workload is used, however much the ledger has left."""
    session = opened(budget=Budget(epsilon=4, delta=1e-6))
    items = [{"where": f"x < {place}"} for place in range(1, 9)]
    done = session.workload(items, absolute=40, **limit)

    assert 4 == len(done)  # mu^2 = 0.049^2 each
    assert done.paid <= Gdp(0.1) < session.remaining
    assert [f"q{place}" for place in (5, 6, 7, 8)] == list(done.unanswered)


def test_cheapest_first_answers_more():
    """In the given order the expensive one takes the room of the others; by price it waits."""
    dear = {"absolute": 21, "cap": DEAR}
    items = {"expensive": dear, **{f"c{x}": {"where": f"x = {x}", "absolute": 70} for x in range(5)}}
    given, cheapest = (opened(budget=Budget(mu=0.1)).workload(items, order=order) for order in ("given", "cheapest"))

    assert "expensive" == next(iter(given))
    assert ({"expensive"}, 5) == (set(cheapest.unanswered), len(cheapest))
    assert len(given) < len(cheapest)


def test_a_dry_run_prices_all_and_spends_nothing():
    """It says what would fit if each cost its worst price, in the order that would be taken."""
    session = opened(budget=Budget(mu=0.1))
    items = {"expensive": {"absolute": 21, "cap": DEAR}, "cheap": {"where": "x < 5", "absolute": 40, "cap": DEAR}}
    done = session.workload(items, dry_run=True)

    assert not session.spent
    assert not done.answers
    assert (["expensive", "cheap"], ["cheap"]) == (list(done.plans), list(done.unanswered))
    assert ["expensive"] == list(session.workload(items, dry_run=True, order="cheapest").unanswered)
    assert "1 of 2 questions fit" in repr(done)
    assert json.dumps(done.to_dict())


@pytest.mark.parametrize(
    ("items", "how", "said"),
    [
        ([SQL, SQL.replace("AS n", "AS m")], {}, "the same question"),
        ([("a", "SELECT COUNT(*) AS n FROM data"), ("b", {"absolute": 9})], {}, "'a' and 'b' are the same question"),
        ([("a", {"where": "x < 3"}), ("a", {"where": "x < 4"})], {}, "two questions are called 'a'"),
        (["SELECT COUNT(*) FROM data", "SELECT nothing"], {}, "in question 'q2'"),
        ([{"absolute": -3}], {}, "in question 'q1'"),
        ([{"ask": "top_k"}], {}, "this is not a question of a workload"),
        ([{"ask": "sum"}], {}, "missing a required argument"),
        ([{"ask": "ratio", "top": "x > 3", "explain": True}], {}, "this is not a question of a workload"),
        ([7], {}, "this is not a question of a workload"),
        ([], {}, "a workload without questions"),
        ("SELECT COUNT(*) FROM data", {}, "a workload is a list of questions"),
        ([("a", {"where": "x < 3"}), ("a", {"where": "x < 4"})], {}, "give one of them another name"),
        ([{"on_miss": "raise"}], {}, "in question 'q1': on_miss"),
        ([{}], {"dry_run": "yes"}, "dry_run is yes or no"),
        ([{"cap": Gdp(0.1)}], {"strategy": "together"}, "has a cap of its own"),
        ([{}], {"order": "most expensive"}, "unknown order"),
        ([{}], {"strategy": "apart"}, "unknown strategy"),
        ([{}], {"on_miss": "raise"}, 'on_miss="raise" in a workload'),
        ([{}], {"cap": Gdp(0.1), "max_epsilon": 0.1}, "one limit"),
    ],
)
def test_refused_before_anything_is_asked(items, how, said):
    """Nothing is charged where one item cannot be read, or stands there twice; the refusal says which."""
    session = opened()
    if items and items[0] == SQL:
        items = [{"text": text, "keys": KEYS} for text in items]
    with pytest.raises((UnsupportedQuery, InvalidTarget), match=said):
        session.workload(items, **({"absolute": 50} | how))

    assert [] == session.history()


def test_the_same_cells_shown_otherwise_are_no_duplicate():
    """HAVING and LIMIT show one measurement in two ways; the second is free."""
    session = opened()
    texts = [f"{SQL} HAVING n > 100", f"{SQL} ORDER BY n DESC LIMIT 1"]
    done = session.workload([{"text": text, "keys": KEYS} for text in texts], absolute=50)

    assert ["answered", "free"] == [row["state"] for row in done.rows()]


def test_an_engine_that_fails_midway_keeps_the_answers(monkeypatch):
    """What was answered stands, the failure is named and stays charged, the rest is told as unanswered."""
    session = opened()
    engine = type(session._engine)
    real, calls = engine.measure, []

    def failing(self, query, key):
        calls.append(query)
        if len(calls) == 2:
            raise DataError("the engine failed", rule="an engine answers", next_step="look at it")
        return real(self, query, key)

    monkeypatch.setattr(engine, "measure", failing)
    done = session.workload({name: {"where": f"k = '{name}'"} for name in ("few", "some", "many")}, absolute=50)

    assert (["few"], ["some"], ["many"]) == (list(done.answers), list(done.failed), list(done.unanswered))
    assert "ended by some: the engine failed" in repr(done)
    assert session.spent == done.paid  # no refund
    assert ["answered", "failed", "unanswered"] == [row["state"] for row in done.rows()]


def test_a_quicker_process_leaves_a_question_unanswered(tmp_path, monkeypatch):
    """If the budget goes to somebody else between plan and reservation, the question is told as unanswered."""
    books = tmp_path / "books"
    session = opened(budget=Budget(mu=0.1), ledger=books)
    other = opened(budget=Budget(mu=0.1), ledger=books)
    real = workload.Draft.ask

    def late(draft):
        if draft.name == "second":
            other.count(where="x > 7", loss=Gdp(0.08))
        return real(draft)

    monkeypatch.setattr(workload.Draft, "ask", late)
    items = {name: {"where": f"x = {x}", "cap": DEAR} for x, name in enumerate(("first", "second"))}
    done = session.workload(items, absolute=40)

    assert (["first"], ["second"], {}) == (list(done.answers), list(done.unanswered), dict(done.failed))
    assert session.spent > done.paid


def test_planted_an_answer_that_is_not_charged(monkeypatch):
    """A workload that answers from books of its own is caught: what it says it paid is not what the ledger charged."""
    items = [{}, {"where": "x < 5"}]
    session = opened()
    honest = session.workload(items, absolute=50)
    assert session.spent == honest.paid

    session, elsewhere = opened(), opened()._context
    real = workload.Draft.ask
    monkeypatch.setattr(workload.Draft, "ask", lambda draft: real(replace(draft, context=elsewhere)))
    cheating = session.workload(items, absolute=50)
    assert session.spent < cheating.paid


def test_a_part_has_workloads_too():
    """Parts of a partition are asked like sessions, and charged in parallel."""
    session = opened()
    parts = session.partition("k", ["some", "many"])
    paid = [parts[name].workload([{}, {"where": "x < 5"}], absolute=50).paid for name in parts]

    assert session.spent == max(paid)


def test_a_pure_budget_answers_workloads():
    """Chains are asked one after the other under a pure budget."""
    session = Session(TABLE, budget=Budget(epsilon=1))
    done = session.workload([{**BY, "relative": 0.1}, {"where": "x < 5"}], absolute=50)

    assert done.complete
    assert session.spent == done.paid


def test_the_summary_is_a_table():
    """One row a question, as Arrow, pandas and in a notebook."""
    done = opened().workload([{}, {"where": "x < 5"}], absolute=50, dry_run=True)

    assert ["fits", "fits"] == done.to_arrow().column("state").to_pylist()
    assert ["q1", "q2"] == list(done.to_pandas()["name"])
    assert "<td>q2</td>" in done._repr_html_()


def test_together_spends_one_loss_on_all():
    """The cap is spent once, told in parts, and the same again is free."""
    session = opened()
    items = {"groups": {**BY}, "total": {"where": "x < 5"}}
    how = {"relative": 0.01, "absolute": 2, "strategy": "together", "cap": Gdp(0.2)}
    done, again = (session.workload(items, **how) for _ in range(2))

    assert Gdp(0.2) >= session.spent == done.paid > Gdp(0.19)
    assert not again.paid
    assert done["groups"].value.tolist() == again["groups"].value.tolist()
    assert abs(done["total"].value - 2220) < 6 * (done["total"].upper - done["total"].value) / 1.96
    assert done["groups"].trace().look.max() >= 2
    assert session.workload(items, **how, dry_run=True).dry
    assert done["total"].refine(absolute=30).met


def test_together_stops_where_all_are_met():
    """A loss that is more than enough is not spent."""
    session = opened()
    done = session.workload([{**BY}, {"where": "x < 5"}], absolute=60, strategy="together", cap=Gdp(0.8))

    assert all(np.all(answer.met) for answer in done.answers.values())
    assert done.paid < Gdp(0.1)


@pytest.mark.parametrize(
    ("items", "how", "said"),
    [
        ([{"ask": "mean", "value": "x", "lower": 0, "upper": 9}], {}, "cannot share a loss"),
        ([{"relative": 0.1}], {}, "cannot share a loss"),
        ([{**BY, "share": 0.5}], {}, "cannot share a loss"),
        ([{}], {"cap": Gdp(2)}, "does not fit"),
        ([{}], {"cap": Gdp(1e-7)}, "too small to look at every count"),
    ],
)
def test_together_refuses(items, how, said):
    """Only counts and sums with an absolute target share a loss, and only one that fits; nothing is charged."""
    session = opened()
    with pytest.raises(Exception, match=said):
        session.workload(items, **({"absolute": 50} | how), strategy="together")

    assert [] == session.history()


def test_together_needs_gaussian_noise():
    """A pure ledger refuses by name."""
    with pytest.raises(InvalidTarget, match="share a loss in Gaussian noise"):
        Session(TABLE, budget=Budget(epsilon=1)).workload([{}], absolute=50, strategy="together")


def test_a_target_out_of_reach_of_its_cap_is_told():
    """A dry run and the answers say how near such a question comes and what to do, beside one that is well."""
    session = opened()
    items = {"far": {"absolute": 0.1}, "near": {"where": "x < 5", "absolute": 60}}
    dry, done = session.workload(items, dry_run=True), session.workload(items)

    assert ["out of reach", "fits"] == [row["state"] for row in dry.rows()]
    assert ["far"] == list(dry.short) == list(done.short) == list(done.unanswered)
    assert session.spent == done["near"].paid
    assert "far" in session.workload({"far": {"absolute": 0.1, "on_miss": "spend"}})
    assert "far: out of reach, at best +/-" in repr(dry)
    assert dry.plans["far"].advice in repr(done)
    assert ["", dry.plans["far"].advice] == sorted(dry.to_arrow().column("short").to_pylist())
    assert "out of reach" in dry._repr_html_()


def test_the_answer_of_a_question_that_has_none():
    """It is refused, and says where the plan is, or which questions there are."""
    dry = opened().workload({"one": {}}, absolute=50, dry_run=True)

    with pytest.raises(UnsupportedQuery, match=r"plans\['one'\] is its plan"):
        dry["one"]
    with pytest.raises(UnsupportedQuery, match="the questions are one"):
        dry["two"]


def test_a_generator_is_a_list_of_questions():
    """Any iterable of items is read once."""
    assert 2 == len(opened().workload(({"where": f"x < {x}"} for x in (3, 4)), absolute=50))


def test_what_fits_of_a_ratio_where_little_is_left():
    """That nothing is left is said of an empty ledger only."""
    session = opened(budget=Budget(mu=0.051))
    session.count(loss=Gdp(0.05))

    dry = session.workload([{"ask": "ratio", "top": "x > 3"}], absolute=0.01, dry_run=True)
    assert dry.unanswered["q1"].fitting.startswith("a wider target may fit")
