"""Counts by many sets of columns: every engine tells what the slow one tells, and no unit does more than its bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import combinations

import ibis
import numpy as np
import pytest
from backends import FOREIGN, arrow, table_on
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from questions import KINDS, SCHEMA, agreed, memory, without, worlds
from sweeps import sweep

from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.memory import engine
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query
from farthing.query.crossing import Crossing
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.part import QueryPart

pytestmark = pytest.mark.thorough

FEW = settings(max_examples=sweep(3, 60), deadline=None, derandomize=True,
               suppress_health_check=list(HealthCheck))  # fmt: skip
MANY = settings(FEW, max_examples=25)
COLUMNS = "sifdtb"


@st.composite
def crossings(draw):
    """Return rows, a question over some columns, the listed values of each, and sets of them."""
    palette, rows = draw(worlds())
    by = tuple(sorted(draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))))
    lists = []
    for name in by:
        values = [x for x in palette[name] if not (isinstance(x, float) and (not math.isfinite(x) or str(x) == "-0.0"))]
        listed = draw(st.permutations(list(dict.fromkeys([*values, None]))))[draw(st.sampled_from([0, 0, 1])) :]
        lists.append(Keys.of((name,), {name: listed or [None]}, SCHEMA).arranged())
    every = [part for many in range(len(by) + 1) for part in combinations(range(len(by)), many)]
    sets = tuple(draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True)))
    unit = PrivacyUnit(draw(st.sampled_from(["u", "u", "v", None])))
    where = draw(st.sampled_from([None, Compare(Column("i"), Operator.GE, Literal(0))]))
    part = draw(st.sampled_from([None, None, QueryPart("b", tuple(map(Literal, (True, False))), 0)]))
    bounds = Bounds(draw(st.sampled_from([1, 2, 10**6])), draw(st.integers(1, 3)))
    query = Query("data", by, None, where, (), unit, bounds, part)
    return rows, query, Crossing(tuple(lists), sets), draw(st.sampled_from([0, 7, 2**64 - 1]))


def told(asked, query, crossing, key):
    """Return what an engine says, as plain numbers."""
    return [counts.tolist() for counts in asked.crossed(query, crossing, key)]


def opened(kind, rows):
    """Return an engine of rows."""
    if kind == "ibis":
        return open_table(ibis.duckdb.connect().create_table("data", arrow(rows, KINDS)), name="data")
    return open_table(table_on(kind, rows, KINDS), name="data")


def agrees(kind, case):
    """Hold an engine against the slow one, with the same hash."""
    rows, query, crossing, key = case
    quick = opened(kind, rows)
    slow = agreed(quick, lambda hashes: memory(rows, [], hashes), lambda one: told(one, query, crossing, key))

    assert slow == told(quick, query, crossing, key)


@pytest.mark.parametrize("kind", ["duckdb", "ibis"])
@MANY
@given(case=crossings())
def test_the_embedded_engine_agrees_with_the_oracle(kind, case):
    """NULL, NaN, odd text, conditions, parts of a partition and every bound."""
    agrees(kind, case)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("kind", FOREIGN)
@FEW
@given(case=crossings())
def test_other_engines_agree_with_the_oracle(kind, case):
    """The same on PostgreSQL and Spark."""
    agrees(kind, case)


def reaches(engine_of, case, gone):
    """Say by how many rows a unit moves the counts by all columns, and that all other sets follow from these."""
    rows, query, crossing, key = case
    joint = tuple(range(len(query.by)))
    whole = Crossing(crossing.lists, (*(one for one in crossing.sets if one != joint), joint))
    before, after = (engine_of(table).crossed(query, whole, key) for table in (rows, gone(query.unit)))
    for places, counts in zip(whole.sets, before, strict=True):
        assert counts.tolist() == before[-1].sum(axis=tuple(set(joint) - set(places))).tolist()
    moved = before[-1] - after[-1]
    assert moved.min(initial=0) >= 0
    assert moved.max(initial=0) <= query.max_rows
    assert np.count_nonzero(moved) <= query.max_groups


@pytest.mark.parametrize("kind", ["memory", "duckdb"])
@MANY
@given(case=crossings(), data=st.data())
def test_one_unit_moves_few_combinations_by_few_rows(kind, case, data):
    """The FLOOR of a release: at most max_groups combinations of all columns, each by at most max_rows rows."""
    rows = case[0]
    engine_of = (lambda table: memory(table, [])) if kind == "memory" else partial(opened, kind)
    reaches(engine_of, case, lambda unit: without(data.draw, unit, rows, [])[0])


@pytest.mark.parametrize("bug", ["rows", "groups"])
def test_a_unit_that_is_not_cut_is_seen(bug, monkeypatch):
    """Planted: an engine that forgets one of the bounds moves too much."""
    rows = [dict.fromkeys(KINDS) | {"u": "ann", "i": i % 3} for i in range(30)]
    lists = (Keys.of(("i",), {"i": [0, 1, 2]}, SCHEMA),)
    query = Query("data", ("i",), None, None, (), PrivacyUnit("u"), Bounds(2, 1))
    case = (rows, query, Crossing(lists, ((0,),)), 7)
    reaches(lambda table: memory(table, []), case, lambda _: [])
    if bug == "rows":
        monkeypatch.setattr(engine, "min", lambda n, _: n, raising=False)
    else:
        monkeypatch.setattr(engine, "bounded", lambda asked: replace(bounded(asked), max_groups=None))
    with pytest.raises(AssertionError):
        reaches(lambda table: memory(table, []), case, lambda _: [])
