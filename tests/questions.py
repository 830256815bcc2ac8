"""One generator of tables and questions for every backend, and what holds of each: the slow engine's answer, the FLOOR.

What is drawn is all of a partition at once: one question of each part, each with joins, a condition, groups and bounds
of its own, since an attacker asks the parts what he likes. `worlds` draws rows, `asked` the questions of one request,
out of REQUESTS; `told` asks an engine; `broken` says where removing a unit did more than the sensitivities say.
"""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from farthing.engines.memory.engine import Beside, MemoryEngine
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import (
    Count,
    CountUnits,
    Formula,
    Mean,
    NamedAggregate,
    Quantile,
    Ratio,
    Sum,
    Variance,
)
from farthing.query.counts import CountValues
from farthing.query.expressions import (
    And,
    Call,
    Case,
    Column,
    Compare,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
)
from farthing.query.joins import Join
from farthing.query.pairs import Pair
from farthing.query.part import QueryPart

KINDS = {"u": Type.STRING, "v": Type.INTEGER, "s": Type.STRING, "i": Type.INTEGER, "f": Type.FLOAT, "d": Type.DATE,
         "t": Type.TIMESTAMP, "z": Type.TIMESTAMP, "b": Type.BOOLEAN}  # fmt: skip
SCHEMA = Schema.of(KINDS)
TIMES = [dt.datetime(1, 1, 1), dt.datetime(2013, 3, 31, 2, 30, 1, 5), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
VALUES: dict[str, list[Any]] = {
    "u": ["", "ann", "bob", "cy", "Ann"],
    "v": [1, 2, 3, 2**63 - 1, -(2**63)],
    "s": ["", "a", "A", "é", "日本", "'", "%", "\\", " a"],
    "i": [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)],
    "f": [0.0, -0.0, 1.5, -2.5, 99.0, math.inf, -math.inf, math.nan, 1e300, 5e-324],
    "d": [dt.date(1, 1, 1), dt.date(2013, 1, 31), dt.date(9999, 12, 31)],
    "t": TIMES,
    "z": TIMES,
    "b": [True, False],
}
ZONES = {"id": Type.INTEGER, "name": Type.STRING}
SIDES = {"side": Type.BOOLEAN, "w": Type.FLOAT}
VISITS = {"u": Type.STRING, "v": Type.INTEGER, "cost": Type.FLOAT}
ZONE_ROWS = [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}, {"id": 1, "name": "c"}, {"id": None, "name": "d"}]
SIDE_ROWS = [{"side": True, "w": 1.0}, {"side": True, "w": None}, {"side": False, "w": math.nan}]
VISIT_ROWS = [
    {"u": u, "v": v, "cost": cost}
    for u, v, cost in [
        *(("ann", 1, 1.5), ("ann", 2, 2.0), ("bob", 1, math.nan), (None, 3, 3.0)),
        *(("cy", None, 4.0), ("", 2**63 - 1, math.inf), ("Ann", 3, None)),
    ]
]
PUBLIC = {"zones": (ZONES, ZONE_ROWS), "sides": (SIDES, SIDE_ROWS)}
GROUPED = {"tens": Type.INTEGER, "sign": Type.STRING}
SCOPE = Schema.of(
    KINDS
    | {f"zones.{name}": kind for name, kind in ZONES.items()}
    | {f"sides.{name}": kind for name, kind in SIDES.items()}
    | {f"visits.{name}": kind for name, kind in VISITS.items()}
    | GROUPED
)
F, WHOLE, COST = Column("f"), Column("i"), Column("visits.cost")
GROUPINGS = {
    "tens": Call(FunctionName.INTEGER_DIVIDE, (WHOLE, Literal(10))),
    "sign": Case(((Compare(F, Operator.LT, Literal(0.0)), Literal("low")),), Literal("high")),
}
LISTED = VALUES | {
    "tens": [0, -1, 900719925474099],
    "sign": ["low", "high"],
    "zones.name": ["a", "b", "c"],
}
QUANTILES = (Quantile(F, 0.5, -5.0, 100.0, 4), Quantile.of(WHOLE, Type.INTEGER, 0.5, -5.0, 100.0))
AGGREGATES = (
    *(Count(), Count(F), CountUnits(), CountValues(Column("s")), CountValues(F)),
    *(
        Sum(F, -3.0, 10.0),
        Mean(F, -1.0, 5.0),
        Variance(WHOLE, 0, 5),
    ),
    Ratio(Sum(WHOLE, 0, 3), Count(WHOLE)),
    *(Pair(kind, F, WHOLE, (-1.5, 5.0), (0, 5)) for kind in ("correlation", "slope")),
    Formula(Mean(F, -1.0, 5.0), Formula(-1.0, Mean(WHOLE, 0, 4), product=True)),
)
REQUESTS = ("measure", "histogram", "found", "spread")
EVERYTHING = 10**6
SHARES = ((1, 7), (2, 4), (EVERYTHING, 2))
"""What a unit counts by in each of the groups that it keeps, where groups are to be found."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of one request, one for each part of a partition (or one, of all rows).

    Attributes:
        ask: which request.
        queries: the questions.
        value: whose spread is asked.
        key: the hash key.
    """

    ask: str
    queries: tuple[Query, ...]
    value: Any
    key: int

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """By how much units count in the groups that are found: with an even hash key by 1."""
        return SHARES if self.key % 2 else ()


@st.composite
def worlds(draw: Any) -> tuple[dict[str, list[Any]], list[dict[str, Any]]]:
    """Return a few hostile values of each column, and rows of these: few, so that units, parts, keys and joins meet."""
    palette = {
        name: draw(st.lists(st.sampled_from(values), min_size=2, max_size=3, unique_by=repr))
        for name, values in VALUES.items()
    }
    palette["i"] = draw(st.sampled_from([[0, 1], [1], []])) + palette["i"]
    size = draw(st.sampled_from([16, 24, 12, 20, 8, 3, 1, 0]))
    chance = draw(st.randoms(use_true_random=True))  # drawn one by one, rows of one example are too much alike
    rows = [{name: chance.choice([*some, *some, None]) for name, some in palette.items()} for _ in range(size)]
    return palette, rows


@st.composite
def asked(draw: Any, ask: str, palette: dict[str, list[Any]]) -> Asked:
    """Return the questions of one request, one for each part of a partition."""
    unit = PrivacyUnit(draw(st.sampled_from(["u", "u", "u", "v", "v", None])))
    parts: list[QueryPart | None] = [None]
    if draw(st.integers(0, 5)) < 5:
        column = draw(st.sampled_from("bisfdtzv"))
        fit = _keys(column, palette)
        choices = draw(st.lists(st.sampled_from(fit), min_size=min(2, len(fit)), max_size=3, unique=True))
        parts = [QueryPart(column, tuple(map(Literal, choices)), place) for place in range(len(choices))]
    narrow = "" if parts == [None] else draw(st.sampled_from(["on", "on", "where", ""]))
    queries = tuple(draw(_query(ask, unit, part, (palette, narrow))) for part in parts)
    value = draw(st.sampled_from([None, F, WHOLE])) if ask == "spread" else None
    return Asked(ask, queries, value, draw(st.sampled_from([0, 7, 2**64 - 1])))


@st.composite
def _query(
    draw: Any, ask: str, unit: PrivacyUnit, part: QueryPart | None, how: tuple[dict[str, list[Any]], str]
) -> Query:
    """Return one question; a narrow one drops the rows of all other parts itself, by ON or by WHERE."""
    palette, narrow = how
    joins = draw(_joins(unit, part.condition() if part is not None and narrow == "on" else None))
    named = {join.table for join in joins}
    columns = [*"sifdtzb", *GROUPED, *(["zones.name"] if "zones" in named else [])]
    least = 1 if ask == "found" else draw(st.sampled_from([1, 1, 0]))
    by = tuple(draw(st.lists(st.sampled_from(columns), min_size=least, max_size=2, unique=True)))
    left = draw(st.sampled_from([0, 0, 0, 1, 2]))  # of each column so many keys are not listed
    lists = {name: draw(st.permutations([*_keys(name, palette), None]))[left:] for name in by}
    keys = None if ask == "found" else Keys.of(by, lists or None, SCOPE)
    most = st.sampled_from([1, 2, EVERYTHING]) if ask == "found" else st.sampled_from([1, 2, 3, 6])
    groupings = tuple((name, GROUPINGS[name]) for name in by if name in GROUPINGS)
    bounds = Bounds(draw(most), draw(st.integers(1, 3)))
    where = part.condition() if part is not None and narrow == "where" else draw(_where(named))
    return Query("data", by, keys, where, _outputs(draw, ask, named), unit, bounds, part, groupings, joins)


def _outputs(draw: Any, ask: str, named: set[str]) -> tuple[NamedAggregate, ...]:
    """Return what is asked of each group: all aggregates, beside values of joined tables."""
    match ask:
        case "measure":
            beside = (Sum(COST, 0.0, 3.0),) if "visits" in named else ()
            beside += (Count(Column("sides.w")),) if "sides" in named else ()
            return tuple(NamedAggregate(f"o{place}", one) for place, one in enumerate((*AGGREGATES, *beside)))
        case "histogram":
            beside = (replace(QUANTILES[0], value=COST),) if "visits" in named else ()
            return (NamedAggregate("q", draw(st.sampled_from(beside or QUANTILES))),)
        case "found":
            return ()
    return counting("n")


@st.composite
def _joins(draw: Any, unit: PrivacyUnit, here: Any) -> tuple[Join, ...]:
    """Return joins with public tables and with one of the same unit; ON may hold to some rows of the protected one."""
    found = []
    tables = st.sampled_from(["sides", "zones", *([] if unit.is_row else ["visits"])])
    for table in draw(st.lists(tables, min_size=here is not None, max_size=2, unique=True)):
        left, fan_out = here is None and draw(st.booleans()), draw(st.integers(1, 2)) if unit.is_row else None
        match table:
            case "zones":
                on: Any = Compare(WHOLE, Operator.EQ, Column("zones.id"))
                if not unit.is_row and draw(st.integers(0, 3)) == 0:
                    on = Compare(WHOLE, Operator.GE, Column("zones.id"))
            case "sides":
                on = Compare(Column("b"), Operator.EQ, Column("sides.side"))
            case _:
                on = Compare(Column(unit.column or ""), Operator.EQ, Column(f"visits.{unit.column}"))
        on = on if here is None else And((on, here))
        found.append(Join(table, on, left, public=table != "visits", fan_out=fan_out))
    return tuple(found)


def _where(named: set[str]) -> Any:
    """Return conditions, of rows and of what they meet."""
    root = Call(FunctionName.SQRT, (Call(FunctionName.ABS, (F,)),))
    choices: list[Any] = [
        *(None, None, None),
        Compare(WHOLE, Operator.GE, Literal(0)),
        Compare(root, Operator.LE, Literal(2.0)),
        Or((Compare(F, Operator.GT, Literal(0.0)), IsNull(F), In(Column("s"), (Literal("a"), Literal("%"))))),
        Compare(Column("d"), Operator.GE, Literal(dt.date(2013, 1, 1))),
    ]
    choices += [Not(Compare(Column("zones.name"), Operator.EQ, Literal("b")))] if "zones" in named else []
    choices += [Compare(COST, Operator.GT, Literal(1.5))] if "visits" in named else []
    return st.sampled_from(choices)


def _keys(column: str, palette: dict[str, list[Any]]) -> list[Any]:
    """Return values of a column that may be listed, the drawn ones first: no NaN, one zero, no infinity."""
    listed = [*palette.get(column, []), *LISTED[column]]
    fit = [x for x in listed if not (isinstance(x, float) and (not math.isfinite(x) or str(x) == "-0.0"))]
    return list(dict.fromkeys(fit))[:4]


def memory(
    rows: list[dict[str, Any]], visits: list[dict[str, Any]], keyed_hash: Any = None, public: Any = None
) -> MemoryEngine:
    """Return the slow engine of rows, with a hash that is another engine's, and public rows as that one keeps them."""
    beside = {
        name: Beside((public or {}).get(name, found), Schema.of(kinds)) for name, (kinds, found) in PUBLIC.items()
    }
    beside["visits"] = Beside(visits, Schema.of(VISITS), public=False)
    return MemoryEngine(rows, SCHEMA, beside=beside, **({} if keyed_hash is None else {"keyed_hash": keyed_hash}))


def without(draw: Any, unit: PrivacyUnit, rows: list[Any], visits: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the tables without one unit, one of those with many rows first."""
    if unit.is_row:
        gone = draw(st.integers(0, max(0, len(rows) - 1)))
        return rows[:gone] + rows[gone + 1 :], visits
    name = unit.column or ""
    units = [one for one, _ in Counter(row[name] for row in rows).most_common() if one is not None]
    one = draw(st.sampled_from(units or [VALUES[name][0]]))
    rest, left = ([row for row in table if row[name] is None or row[name] != one] for table in (rows, visits))
    return rest, left


def told(engine: Any, one: Asked, query: Query) -> Counter[tuple[Any, Any]]:
    """Return what an engine says: a number for each (group, what is told of it); zeros are left out."""
    match one.ask:
        case "measure":
            found = engine.measure(query, one.key)
            cells = {(g, m): int(found[m, g]) for m in range(found.shape[0]) for g in range(found.shape[1])}
        case "histogram":
            leaves = engine.histogram(query, query.aggregate, one.key)
            pairs = zip(leaves.groups.tolist(), leaves.leaves.tolist(), strict=True)
            cells = dict(zip(pairs, leaves.counts.tolist(), strict=True))
        case "found":
            groups = engine.found(query, one.key, one.shares)
            keys = [(tuple(map(repr, key.values())), 0) for key in groups.keys.to_pylist()]
            cells = dict(zip(keys, groups.units.tolist(), strict=True))
        case _:
            spread = engine.spread(query, one.value, one.key)
            names = ("groups", "rows", "least", "greatest")
            cells = {(name, place): n for name in names for place, n in enumerate(getattr(spread, name).tolist())}
    return Counter({cell: n for cell, n in cells.items() if n})


def broken(one: Asked, before: list[Counter[Any]], after: list[Counter[Any]]) -> list[str]:
    """Say where removing a unit did more than it may, over all parts together: the FLOOR."""
    said, moved = [], 0
    for query, full, less in zip(one.queries, before, after, strict=True):
        apart = {cell: full[cell] - less[cell] for cell in {*full, *less} if full[cell] != less[cell]}
        moved += bool(apart)
        groups = {group for group, _ in apart}
        if one.ask != "spread" and len(groups) > query.max_groups:
            said.append(f"{len(groups)} groups moved, not {query.max_groups}: {query}")
        said += [f"{group} moved too much: {query}" for group in groups if not _within(one, query, group, apart)]
    return [*said, f"{moved} parts moved: {one}"] if moved > 1 else said


def _within(one: Asked, query: Query, group: Any, apart: dict[tuple[Any, Any], int]) -> bool:
    """Tell whether a group moved within the sensitivity of what is told of it."""
    mine = {what: abs(n) for (where, what), n in apart.items() if where == group}
    match one.ask:
        case "measure":
            return all(n <= query.measures[m].sensitivity(query.max_rows) for m, n in mine.items())
        case "histogram":
            return sum(mine.values()) <= query.max_rows
        case "found":
            return sum(mine.values()) == next((share for most, share in one.shares if len(apart) <= most), 1)
    return sum(mine.values()) <= 1


def expected(one: Asked, query: Query, truth: Counter[Any]) -> Any:
    """Return what has to be the same on all engines: all, or of keys that a hash chose, the units that were kept."""
    return sum(truth.values()) if one.ask == "found" and query.cuts_groups and query.max_groups < EVERYTHING else truth


class Hashes:
    """An engine's own hash, asked for in batches: what is not known yet is guessed, noted, and the run repeated."""

    def __init__(self, engine: Any, *, keys: bool = False) -> None:
        self.engine, self.known, self.missing, self.keys = engine, {}, [], keys

    def __call__(self, unit: Any, place: Any, key: int) -> int:
        if self.keys and isinstance(place, tuple):
            return 0  # of keys that are found only how many are kept is compared
        places = place if isinstance(place, tuple) else (place,)
        found = self.known.get((unit, places, key))
        if found is None:
            self.missing.append((unit, places, key))
        return found or 0

    def fetch(self) -> None:
        """Ask the engine for all that is missing."""
        for key, kinds in {(key, _kinds(places)) for _, places, key in self.missing}:
            pairs = sorted({(u, p) for u, p, k in self.missing if k == key and _kinds(p) == kinds}, key=repr)
            ranks = _duck_ranks if hasattr(self.engine, "_sources") else _ibis_ranks
            found = ranks(self.engine, pairs, kinds, key)
            self.known |= {(*pair, key): rank for pair, rank in zip(pairs, found, strict=True)}
        self.missing = []


VALUE_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), dt.date: pa.date32(),
               dt.datetime: pa.timestamp("us")}  # fmt: skip


def _kinds(places: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the Arrow types of places in a list (None: a whole number), and of values that are told apart."""
    return tuple(VALUE_KINDS[type(place[0])] if isinstance(place, tuple) else None for place in places)


def _table(pairs: list[Any], kinds: tuple[Any, ...], whole: pa.DataType) -> pa.Table:
    """Return units and places as Arrow."""
    columns = {"n": pa.array(range(len(pairs)), pa.int64()), "u": pa.array([u for u, _ in pairs])}
    flat = [[one[0] if isinstance(one, tuple) else one for one in places] for _, places in pairs]
    return pa.table(
        columns | {f"p{at}": pa.array([p[at] for p in flat], kind or whole) for at, kind in enumerate(kinds)}
    )


def _ibis_ranks(engine: Any, pairs: list[Any], kinds: tuple[Any, ...], key: int) -> list[int]:
    """Return what a backend's own hash makes of (unit, places)."""
    backend, table = engine._backend, _table(pairs, kinds, pa.int64())
    named = backend.beside(table, "pairs")
    hashed = backend.hash(named.u, [named[f"p{at}"] for at in range(len(kinds))], key)
    answer = backend.run(named.select("n", h=hashed), {"pairs": table}).sort_by("n")
    return [int(rank, 16) if isinstance(rank, str) else rank + 2**63 + 1 for rank in answer["h"].to_pylist()]


def _duck_ranks(engine: Any, pairs: list[Any], kinds: tuple[Any, ...], key: int) -> list[int]:
    """Return what DuckDB's hash makes of (unit, places)."""
    from farthing.engines.duck.terms import keyed_hash

    cursor = engine._connection.cursor()
    cursor.register("pairs", _table(pairs, kinds, pa.int32()))
    shown = ", ".join(f"p{at}" for at in range(len(kinds)))
    found = cursor.execute(f"SELECT {keyed_hash('u', shown, key)} FROM pairs ORDER BY n").fetchall()
    return [rank + 1 for (rank,) in found]


def agreed(engine: Any, memory_of: Any, ask: Any, *, keys: bool = False) -> Any:
    """Return what the slow engine says with the hash of the fast one."""
    hashes = Hashes(engine, keys=keys)
    for _ in range(5):
        answer = ask(memory_of(hashes))
        if not hashes.missing:
            return answer
        hashes.fetch()
    raise AssertionError("the hash is asked for ever new values")
