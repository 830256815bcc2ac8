"""Partitions: disjoint parts of the data, charged in parallel; what is in no part; what is refused."""

# ruff: noqa: DTZ001  times in questions have no zone

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, BudgetExceeded, Gdp, InvalidKeys, Session, UnsupportedQuery
from farthing.engines import open_table
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Query, counting
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.part import QueryPart

BUDGET = Budget(mu=1)
REGIONS = ["east", "north", "south"]
SIZES = (3_000, 1_000, 2_000, 500, 700)
TABLE = pa.table({
    "region": np.repeat([*REGIONS, "elsewhere", None], SIZES),
    "x": np.arange(sum(SIZES)) % 10,
    "u": np.arange(sum(SIZES)) // 2,
})  # fmt: skip
TWO_HOMES = pa.table(
    {  # each of 3,000 units has two rows in two regions, and one row elsewhere
        "region": np.tile(["east", "east", "north", "north", "elsewhere"], 3_000),
        "u": np.repeat(np.arange(3_000), 5),
        "x": np.tile([0, 1, 0, 1, 0], 3_000),
    }
)


def opened(table=TABLE, **options):
    """Open a table, with a budget of mu = 1 unless told otherwise."""
    return Session(table, **({"budget": BUDGET} | options))


def test_parts_count_their_own_rows():
    """Every part answers for its region; NULL and what is not listed are in no part."""
    parts = opened().partition(by="region", keys=REGIONS)

    assert REGIONS == list(parts)
    for name, size in zip(REGIONS, SIZES, strict=False):
        assert size == pytest.approx(parts[name].count(absolute=20).value, abs=200)
        half = parts[name].sql("SELECT COUNT(*) FROM data WHERE x < 5", absolute=20)
        assert size / 2 == pytest.approx(half.value, abs=200)
        grouped = parts[name].count("x", keys={"x": [9, 0]}, absolute=20)
        assert [size / 10] * 2 == pytest.approx(grouped.value.tolist(), abs=200)


def test_parts_are_charged_in_parallel():
    """The whole ledger pays the most that any one part has spent; each part remembers its own."""
    session = opened()
    parts = session.partition(by="region", keys=REGIONS)
    prices = [Gdp(0.1), Gdp(0.3), Gdp(0.2)]
    for part, price in zip(parts.values(), prices, strict=True):
        part.count(loss=price)

    assert [pytest.approx(price.mu, rel=1e-6) for price in prices] == [part.spent.mu for part in parts.values()]
    assert session.spent == max(part.spent for part in parts.values())
    assert BUDGET.total - session.spent == session.remaining == parts["north"].remaining
    assert parts["east"].remaining > parts["north"].remaining


def test_two_partitions_add_up():
    """Parts of different partitions overlap: the maxima add, and so does what is asked of the whole."""
    session = opened()
    session.partition(by="region", keys=REGIONS)["east"].count(loss=Gdp(0.3))
    session.partition(by="region", keys=REGIONS[:2])["east"].count(loss=Gdp(0.4))
    session.partition(by="x", keys=range(3))[1].count(loss=Gdp(0.1))
    session.count(loss=Gdp(0.2))

    assert 0.3**2 + 0.4**2 + 0.1**2 + 0.2**2 == pytest.approx(session.spent.mu**2, rel=1e-6)


def test_the_order_of_the_parts_is_none_of_their_identity():
    """The same regions in another order are the same partition: asking again is free."""
    session = opened(unit="u", bounds=Bounds(max_rows=2))
    first = session.partition(by="region", keys=REGIONS)["east"].count(absolute=50)
    again = session.partition(by="region", keys=REGIONS[::-1])["east"].count(absolute=50)

    assert first.value == again.value
    assert not again.paid


def test_the_same_question_of_two_parts_is_two_questions():
    """What one part released is not the answer of another."""
    session = opened()
    parts = session.partition(by="region", keys=REGIONS)
    parts["east"].count(absolute=50)

    assert parts["north"].count(absolute=50).paid
    assert session.count(absolute=50).paid
    assert not parts["east"].count(absolute=60).paid


def test_parts_are_refined():
    """A part's answer is sharpened for the difference, by either name."""
    session = opened()
    part = session.partition(by="region", keys=REGIONS)["east"]
    coarse = part.count(absolute=100)
    fine = part.refine(coarse, absolute=50).refine(absolute=20)

    assert 3_000 == pytest.approx(fine.value, abs=200)
    assert 1.959964 / 20 == pytest.approx(part.spent.mu, rel=1e-4)
    assert part.spent == session.spent


def test_a_part_cannot_pass_what_the_whole_has_left():
    """The total binds parts too, whatever their own share of it."""
    session = opened()
    session.count(loss=Gdp(0.9))
    part = session.partition(by="region", keys=REGIONS)["east"]

    with pytest.raises(BudgetExceeded):
        part.count(loss=Gdp(0.5))
    assert part.plan(loss=Gdp(0.5)).fits is False
    assert part.count(loss=Gdp(0.4)).paid


def test_answers_of_parts_say_what_they_are_about():
    """The part, and with a unit column that each unit was first kept in one."""
    row = opened().partition(by="region", keys=REGIONS)["east"].count(absolute=50)
    unit = opened(unit="u", bounds=Bounds(max_rows=2)).partition(by="region", keys=REGIONS)["east"].count(absolute=50)

    assert "only the part of the data where region = 'east'" in row.about
    assert "only those in the one that a keyed hash chose" in unit.about


def test_a_unit_in_two_regions_is_kept_in_one():
    """Each unit counts in exactly one listed part, about evenly, and in the same one whatever is asked."""
    session = opened(TWO_HOMES, unit="u", bounds=Bounds(max_rows=2))
    parts = session.partition(by="region", keys=["east", "north"])
    loss = {"loss": Gdp(0.3)}
    every = {name: part.count(**loss).value / 2 for name, part in parts.items()}
    some = {name: part.count(where="x = 0", **loss).value for name, part in parts.items()}

    assert 3_000 == pytest.approx(sum(every.values()), abs=100)
    assert 1_500 == pytest.approx(every["east"], abs=300)
    assert every["east"] == pytest.approx(some["east"], abs=100)


def cut(engine, unit, place, hash_key=7, where=None):
    """Return an engine's exact count of units in one part."""
    choices = tuple(Literal(name) for name in ("east", "north", "south"))
    query = Query(
        "data",
        (),
        None,
        where,
        counting("n"),
        PrivacyUnit(unit),
        Bounds(1, 1),
        part=QueryPart("region", choices, place),
    )
    return int(engine.measure(query, hash_key)[0][0])


def test_the_kept_part_depends_on_the_unit_and_the_key_only():
    """Parts hold each unit once, whatever WHERE says; another hash key chooses again."""
    engine = open_table(TWO_HOMES)
    zero = Compare(Column("x"), Operator.EQ, Literal(0))

    assert 3_000 == sum(cut(engine, "u", place) for place in range(3))
    assert all(cut(engine, "u", place) == cut(engine, "u", place, where=zero) for place in range(3))
    assert cut(engine, "u", 0, hash_key=7) != cut(engine, "u", 0, hash_key=8)
    assert 0 == cut(engine, "u", 2)


def test_removing_a_unit_leaves_all_parts_but_one():
    """Of all parts of a partition a unit moves one only."""
    keep = np.asarray(TWO_HOMES.column("u")) != 17
    full, less = open_table(TWO_HOMES), open_table(TWO_HOMES.filter(pa.array(keep)))

    moved = [cut(full, "u", place) - cut(less, "u", place) for place in range(3)]

    assert [0, 0, 1] == sorted(moved)


@pytest.mark.parametrize(("by", "keys", "error", "words"), [
    ("regoin", REGIONS, UnsupportedQuery, "did you mean 'region'"),
    (["region"], REGIONS, UnsupportedQuery, "by one column"),
    ("region", ["east", "east"], InvalidKeys, "repeated keys"),
    ("region", [], InvalidKeys, "empty"),
    ("region", None, InvalidKeys, "GROUP BY without keys|keys"),
    ("region", ["east", None], InvalidKeys, "NULL cannot be a part"),
    ("region", [1, 2], InvalidKeys, "wrong type"),
    ("region", "east", InvalidKeys, "not a list"),
    ("x", range(1_001), InvalidKeys, "too many parts"),
])  # fmt: skip
def test_refused_partitions(by, keys, error, words):
    """Unknown columns, repeated, missing or unfit keys are refused by name; nothing is charged."""
    session = opened()
    with pytest.raises(error, match=words):
        session.partition(by=by, keys=keys)

    assert not session.spent


@pytest.mark.parametrize("keys", [tuple(REGIONS), pd.Series(REGIONS), pa.array(REGIONS), {"region": REGIONS}])
def test_parts_are_listed_as_keys_are(keys):
    """Any list of values does, or the mapping that a question takes."""
    assert REGIONS == list(opened().partition(by="region", keys=keys))


def test_a_part_that_does_not_exist_is_refused_by_name():
    """The message lists the parts there are."""
    parts = opened().partition(by="region", keys=REGIONS)

    with pytest.raises(InvalidKeys, match=r"the partition has no part of that value.*'west'.*'east', 'north', 'south'"):
        parts["west"]


def test_a_part_is_not_divided_again():
    """Nested partitions are refused by name."""
    with pytest.raises(UnsupportedQuery, match="a part is not divided again") as error:
        opened().partition(by="region", keys=REGIONS)["east"].partition(by="x", keys=[1])

    assert "nested partition" == error.value.construct


@pytest.mark.parametrize("value", [True, 3, 1.5, "a'b", dt.date(2013, 1, 31), dt.datetime(2013, 1, 31, 12, 30)])
def test_parts_of_every_type(value):
    """Truth values, numbers, texts, dates and times tell parts apart."""
    column = pa.array([value] * 1_000 + [None] * 10)
    session = opened(pa.table({"c": column, "u": np.arange(1_010)}), unit="u", bounds=Bounds(max_rows=1))
    (part,) = session.partition(by="c", keys=column[:1]).values()

    assert 1_000 == pytest.approx(part.count(absolute=20).value, abs=100)
    assert "part c = " in repr(part)


def test_parts_outlive_the_session(tmp_path):
    """Another session on the ledger goes on where the parts were."""
    path = tmp_path / "a.ledger"
    opened(ledger=path).partition(by="region", keys=REGIONS)["east"].count(loss=Gdp(0.3))
    later = opened(ledger=path)
    parts = later.partition(by="region", keys=REGIONS)

    assert 0.3 == pytest.approx(parts["east"].spent.mu)
    assert not parts["north"].spent
    parts["north"].count(loss=Gdp(0.2))
    assert 0.3 == pytest.approx(later.spent.mu)
