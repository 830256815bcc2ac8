"""Questions as DuckDB SQL: one SELECT each, every measure side by side, contributions cut last.

A *cell* is what one unit has in one group. Cells are computed first, each cut to the bound on rows; then a keyed hash
chooses the groups that a unit keeps; then they are added. Rows that are units themselves have nothing to cut and are
added at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines.duck.cells import INFINITY, DuckCells, bucket, leaf, log2, on_grid, present, same_key
from farthing.engines.duck.functions import Text
from farthing.engines.duck.rows import DuckCatalog, DuckRows
from farthing.engines.duck.terms import KEYS, keyed_hash
from farthing.query.measures import Distinct, Total, Units
from farthing.query.measures import Rows as Counted
from farthing.query.ranges import FINE_BITS
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.engine import Shares
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.keys import Keys
    from farthing.query.measures import Measure


_ABOVE: Final = 1 << 115
"""More than any total in fine steps, and a multiple of one step: with it added, whole quotients are rounded down."""

_SHORT: Final = 1 << 26
"""Below so many rows a unit, a cell's number fits 64 bits."""

MOST_ROWS: Final = 1 << 17
"""Rows of a cell whose numbers, each at most 2^36, have an exact sum in doubles."""


@dataclass(frozen=True, slots=True)
class SelectText:
    """SQL, the columns that it reads of each view, and the tables that travel with it."""

    sql: str
    columns: dict[str, set[str]]
    beside: Mapping[str, pa.Table] = field(default_factory=dict)


def measuring(
    query: BoundedQuery, catalog: DuckCatalog, hash_key: int, *, whole: bool = False, part: bool = False
) -> SelectText:
    """Return the SELECT of (i, m0, m1, ...): the group's place in the key list and its bounded measures.

    Totals are sums of whole numbers in 128 bits, rounded to steps once a group. Those of the many cells are sums in
    doubles, which is quicker, and exact up to MOST_ROWS rows: with them a column `most` tells the rows of the largest.

    Args:
        query: the question.
        catalog: the tables.
        hash_key: chooses the groups that a unit keeps.
        whole: add cells in integers, too, for larger ones.
        part: the list of keys is a part of the groups.
    """
    rows = DuckRows(query, catalog, hash_key, whole=whole)
    keys = rows.groups()
    if query.unit.is_row:
        sums = [_of_rows(query, rows, measure) for measure in query.measures]
        return SelectText(_listed(query, rows, keys, sums, part=part), rows.columns)
    if isinstance(query.measures[0], Distinct):
        return _told_apart(query, query.measures[0], rows, hash_key)
    cells = DuckCells(query, rows)
    cuts = [_cut(query, rows, cells, measure) for measure in query.measures if not isinstance(measure, Distinct)]
    valued = dict.fromkeys(measure.value for measure in query.measures if isinstance(measure, Total))
    counts = [_count(query, rows, cells, value) for value in valued]
    kept = cells.sql(keys, hash_key, listed=True, part=part)
    if query.max_groups is not None:
        kept = f"SELECT * FROM ({kept}) QUALIFY {_chosen(query, hash_key, 'row_number')}"
    sums = [
        f"{_rounded(f'sum({cut})') if isinstance(measure, Total) else f'coalesce(sum({cut}), 0)::BIGINT'} AS m{place}"
        for place, (measure, cut) in enumerate(zip(query.measures, cuts, strict=True))
    ]
    sums += [f"max(greatest({', '.join(counts)})) AS most"] if counts else []
    return SelectText(f"SELECT {', '.join(['i', *sums])} FROM ({kept}) GROUP BY i", rows.columns)


def _told_apart(query: BoundedQuery, measure: Distinct, rows: DuckRows, hash_key: int) -> SelectText:
    """Return the SELECT of (i, m0): the different values of each group, of each unit those that a hash puts first.

    Guarantee: one unit adds at most `measure.sensitivity(query.max_rows)` to one group.
    Proof: docs/proofs/engines.bounded.md, "Different values".
    Assumes: a hash that is a function of its arguments.
    Rounds: nothing.
    """
    keys, cells = rows.groups(), DuckCells(query, rows)
    value = rows.scalars.group(measure.value)
    name = cells.value(value)
    kept = f"SELECT u, i, {name} AS v FROM ({cells.sql([*keys, name], hash_key, listed=True)})"
    if query.max_groups is not None:
        kept = f"{kept} QUALIFY {_chosen(query, hash_key, 'dense_rank')}"
    there = f"v <= {INFINITY}" if value.real else "v IS NOT NULL"
    first = f"ORDER BY {keyed_hash('u', 'i, v', hash_key)}, v"
    cut = f"row_number() OVER (PARTITION BY u, i {first}) <= {query.max_rows}"
    few = f"SELECT i, v FROM ({kept}) WHERE {there} QUALIFY {cut}"
    return SelectText(f"SELECT i, count(DISTINCT v) AS m0 FROM ({few}) GROUP BY i", rows.columns)


def histogram(query: BoundedQuery, quantile: Quantile, catalog: DuckCatalog, hash_key: int) -> SelectText:
    """Return the SELECT of (i, leaf, n): the bounded rows of each group and leaf."""
    rows = DuckRows(query, catalog, hash_key)
    keys = rows.groups()
    if query.unit.is_row:
        place = rows.show(leaf(rows, quantile), "v")
        found = _listed(query, rows, keys, ["count(*) AS n"], also=place)
        return SelectText(f"SELECT i, {place} AS leaf, n FROM ({found}) WHERE {place} IS NOT NULL", rows.columns)
    cells = DuckCells(query, rows)
    place = cells.value(leaf(rows, quantile))
    kept = f"SELECT u, i, {place} AS leaf, {cells.found} AS c FROM ({cells.sql([*keys, place], hash_key, listed=True)})"
    if query.max_groups is not None:
        kept = f"{kept} QUALIFY {_chosen(query, hash_key, 'dense_rank')}"
    # A hash chooses which rows of a unit count beyond max_rows; rows of one leaf are all alike.
    rank = keyed_hash("u", "i, leaf", hash_key)
    before = f"sum(c) OVER (PARTITION BY u, i ORDER BY {rank}, leaf ROWS UNBOUNDED PRECEDING) - c"
    cut = f"SELECT i, leaf, least(c, {query.max_rows} - ({before})) AS c FROM ({kept}) WHERE leaf IS NOT NULL"
    return SelectText(f"SELECT i, leaf, sum(c)::BIGINT AS n FROM ({cut}) WHERE c > 0 GROUP BY i, leaf", rows.columns)


def found(query: BoundedQuery, catalog: DuckCatalog, hash_key: int, shares: Shares = ()) -> SelectText:
    """Return the SELECT of (key columns, n): the groups that exist, and their units that count; NaN is not a key."""
    rows = DuckRows(query, catalog, hash_key)
    keys = rows.groups()
    shown = ", ".join(keys)
    number = " AND ".join(f"({key} IS NULL OR {key} <= {INFINITY})" for key in keys if rows.is_real(key)) or "TRUE"
    if query.unit.is_row and not shares:
        units = f"count(DISTINCT {rows.number()})" if query.joins else "count(*)"
        sql = f"SELECT {shown}, {units} AS n FROM ({rows.sql()}) WHERE {number} GROUP BY ALL"
        return SelectText(sql, rows.columns)
    cells = DuckCells(query, rows).sql(keys, hash_key, listed=False)
    kept = f"SELECT {', '.join([shown, *_many(query, shares)])} FROM ({cells}) WHERE {number}"
    if query.max_groups is not None:
        rank = f"ORDER BY {keyed_hash('u', shown, hash_key)}, {shown}"
        kept = f"{kept} QUALIFY row_number() OVER (PARTITION BY u {rank}) <= {query.max_groups}"
    return SelectText(f"SELECT {shown}, {_shared(shares)} AS n FROM ({kept}) GROUP BY ALL", rows.columns)


def _many(query: BoundedQuery, shares: Shares) -> list[str]:
    """Return the columns beside a unit's cells of which its share is told: how many it keeps."""
    every = "count(*) OVER (PARTITION BY u)"  # before QUALIFY, so of all its cells
    kept = every if query.max_groups is None else f"least({every}, {query.max_groups})"
    return [f"{kept} AS many"] if shares else []


def _shared(shares: Shares) -> str:
    """Return SQL of what the units of a group count by, each by how many groups it keeps."""
    if not shares:
        return "count(*)"
    steps = " ".join(f"WHEN many <= {most} THEN {share}" for most, share in shares[:-1])
    share = f"CASE {steps} ELSE {shares[-1][1]} END" if steps else f"{shares[-1][1]}"
    return f"sum(({share})::BIGINT)::BIGINT"


def crossed(query: BoundedQuery, crossing: Crossing, catalog: DuckCatalog, hash_key: int) -> SelectText:
    """Return the SELECT of (s, i, n): the bounded rows of each cell, by its set and its place in the set's counts."""
    rows = DuckRows(query, catalog, hash_key)
    keys = rows.groups()
    beside = {f"{KEYS}_{place}": _numbered(values) for place, values in enumerate(crossing.lists)}
    joins = "".join(
        f" JOIN {view} AS k{place} ON t.{key} {_equal(values)} k{place}.key"
        for place, (key, values, view) in enumerate(zip(keys, crossing.lists, beside, strict=True))
    )
    names = [f"i{place}" for place in range(len(keys))]
    shown = ", ".join(f"k{place}.i AS {name}" for place, name in enumerate(names))
    if query.unit.is_row:
        placed, count = f"SELECT {shown} FROM ({rows.sql()}) AS t{joins}", "count(*)"
    else:
        cells = DuckCells(query, rows)
        found = f"least(t.{cells.found}, {query.max_rows})"
        placed = f"SELECT t.u, {shown}, {found} AS c FROM ({cells.sql(keys, hash_key, listed=False)}) AS t{joins}"
        if query.max_groups is not None:
            order = f"{keyed_hash('u', ', '.join(names), hash_key)}, {', '.join(names)}"
            best = f"row_number() OVER (PARTITION BY u ORDER BY {order}) <= {query.max_groups}"
            placed = f"SELECT * FROM ({placed}) QUALIFY {best}"
        count = "sum(c)::BIGINT"
    sets = ", ".join(f"({', '.join(names[place] for place in places)})" for places in crossing.sets)
    used = [name for place, name in enumerate(names) if any(place in places for places in crossing.sets)]
    told = f"{', '.join(used)}, grouping({', '.join(used)}) AS g" if used else "0 AS g"
    grouped = f"SELECT {told}, {count} AS n FROM ({placed}) GROUP BY GROUPING SETS ({sets})"
    which, cell = _places_of_sets(crossing)
    return SelectText(f"SELECT {which} AS s, {cell} AS i, n FROM ({grouped}) WHERE n IS NOT NULL", rows.columns, beside)


def _places_of_sets(crossing: Crossing) -> tuple[str, str]:
    """Return SQL of the number of a row's set, and of its place in the counts by that set."""
    used = sorted({place for places in crossing.sets for place in places}, reverse=True)
    which, cell = [], []
    for number, places in enumerate(crossing.sets):
        mask = sum(1 << bit for bit, place in enumerate(used) if place not in places)
        steps = [f"i{at}::BIGINT * {step}" for at, step in zip(places, crossing.strides(places), strict=True)]
        which.append(f"WHEN {mask} THEN {number}")
        cell.append(f"WHEN {mask} THEN {' + '.join(steps) or '0::BIGINT'}")
    return f"CASE g {' '.join(which)} END", f"CASE g {' '.join(cell)} END"


def _numbered(values: Keys) -> pa.Table:
    """Return listed values with their places."""
    import numpy as np
    import pyarrow as pa

    return pa.table({"i": pa.array(np.arange(len(values), dtype=np.int32)), "key": values.column(values.names[0])})


def _equal(values: Keys) -> str:
    """Return the comparison with listed values; NULL matches a listed NULL only."""
    return "IS NOT DISTINCT FROM" if values.column(values.names[0]).null_count else "="


def spreading(query: BoundedQuery, value: Scalar | None, catalog: DuckCatalog, hash_key: int) -> SelectText:
    """Return the SELECT of (which, place, n): units by place in each of the four histograms of `Spread`."""
    rows = DuckRows(query, catalog, hash_key)
    keys = rows.groups()
    number = Text("NULL::DOUBLE", Type.FLOAT, plain=True) if value is None else rows.scalars.number(value)
    listed = query.keys is not None or not query.by
    if query.unit.is_row and not query.joins:
        name = rows.show(number, "v")
        inside = (
            f" JOIN {KEYS} AS k ON {same_key(query, [f't.{key}' for key in keys])}" if query.keys is not None else ""
        )
        there = "" if value is None else f" WHERE {rows.show(present(rows, value), 'v')} IS NOT NULL"
        units = f"SELECT 0 AS p0, 0 AS p1, {bucket(name)} AS p2, p2 AS p3 FROM ({rows.sql()}) AS t{inside}{there}"
    else:
        cells = DuckCells(query, rows)
        name = cells.value(number)
        least, greatest = cells.column(f"min({name})"), cells.column(f"max({name})")
        counted = cells.found if value is None else cells.column(f"count({cells.value(present(rows, value))})")
        each = (
            f"SELECT count(*) AS g, max({counted}) AS r, min({least}) AS low, max({greatest}) AS high "
            f"FROM ({cells.sql(keys, hash_key, listed=listed)}) GROUP BY u HAVING r > 0"
        )
        units = (
            f"SELECT {log2('g')} AS p0, {log2('r')} AS p1, {bucket('low')} AS p2, {bucket('high')} AS p3 FROM ({each})"
        )
    sql = (
        "SELECT 3 - CAST(log2(15 - grouping(p0, p1, p2, p3)) AS INTEGER) AS which, coalesce(p0, p1, p2, p3) AS place, "
        f"count(*) AS n FROM ({units}) GROUP BY GROUPING SETS ((p0), (p1), (p2), (p3))"
    )
    return SelectText(f"SELECT * FROM ({sql}) WHERE place IS NOT NULL", rows.columns)


def _chosen(query: BoundedQuery, hash_key: int, rank: str) -> str:
    """Return the condition of the groups that a unit keeps."""
    # i breaks ties; without it DuckDB also picks a slower plan for the ranking.
    return f"{rank}() OVER (PARTITION BY u ORDER BY {keyed_hash('u', 'i', hash_key)}, i) <= {query.max_groups}"


def _listed(
    query: BoundedQuery, rows: DuckRows, keys: Sequence[str], sums: Sequence[str], also: str = "", *, part: bool = False
) -> str:
    """Return SQL that groups first and then finds each group's place: the join sees one row per group.

    Where a part of the groups is asked, rows of others are left out before.
    """
    shown = [*keys, *([also] if also else [])]
    found = f"SELECT {', '.join([*shown, *sums])} FROM ({rows.sql()}) AS t"
    if query.keys is None:
        return f"SELECT 0::INTEGER AS i, * FROM ({found}{' GROUP BY ALL' if also else ''})"
    same = same_key(query, [f"g.{key}" for key in keys])
    if part:
        found += f" SEMI JOIN {KEYS} AS k ON {same_key(query, [f't.{key}' for key in keys])}"
    return f"SELECT k.i, g.* EXCLUDE ({', '.join(keys)}) FROM ({found} GROUP BY ALL) AS g JOIN {KEYS} AS k ON {same}"


def _of_rows(query: BoundedQuery, rows: DuckRows, measure: Measure) -> str:
    """Return a measure where each row is a unit: nothing is cut."""
    name = f"m{query.measures.index(measure)}"
    match measure:
        case Total():
            value = rows.show(on_grid(rows, measure), "v")
            return f"{_rounded(f'sum({value})')} AS {name}"
        case Units(value) if query.joins:  # one row may be several by now
            there = "" if value is None else f" FILTER (WHERE {rows.show(present(rows, value), 'v')} IS NOT NULL)"
            return f"count(DISTINCT {rows.number()}){there} AS {name}"
        case Distinct(value):
            text = rows.scalars.group(value)
            name_of = rows.show(text, "v")
            there = f" FILTER (WHERE {name_of} <= {INFINITY})" if text.real else ""
            return f"count(DISTINCT {name_of}){there} AS {name}"
        case Counted(value) | Units(value):
            return f"count({'*' if value is None else rows.show(_there(query, rows, value), 'v')}) AS {name}"
        case _:
            assert_never(measure)


def _cut(query: BoundedQuery, rows: DuckRows, cells: DuckCells, measure: Counted | Units | Total) -> str:
    """Return what one cell adds to a measure, within its sensitivity.

    Guarantee: at most `measure.sensitivity(query.max_rows)` in magnitude; a total at most `finest` of as many rows.
    Proof: docs/proofs/engines.bounded.md.
    Assumes: each row adds at most `measure.sensitivity(1)`, to a total at most `measure.finest(1)`.
    Rounds: a total that is cut, down.
    """
    most = query.max_rows
    match measure:
        case Units(None):
            return "1"
        case Units(value):
            return f"least({_count(query, rows, cells, value)}, 1)"
        case Counted(value):
            return f"least({_count(query, rows, cells, value)}, {most})"
        case Total():
            n = _count(query, rows, cells, measure.value)
            name = cells.value(on_grid(rows, measure))
            s = cells.column(f"sum({name})" if rows.whole else f"sum({name}::DOUBLE)::BIGINT")
            down = f"({s}::HUGEINT * {most} + {_ABOVE >> 44}::HUGEINT * {n}) // {n} - {_ABOVE >> 44}::HUGEINT"
            cut = f"CASE WHEN {n} <= {most} THEN {s} ELSE {down} END"
            return f"TRY_CAST({cut} AS BIGINT)" if most < _SHORT else cut
        case _:
            assert_never(measure)


def _rounded(total: str) -> str:
    """Return a total of fine steps in steps, halves up; 0 of none. The one rounding that many rows share.

    What is shifted is never negative, so that a shift is the whole quotient: DuckDB divides numbers of 128 bits bit by
    bit, which takes forty times as long, and of a million groups longer than to add them.

    Guarantee: totals at most D steps apart, D whole, are so when rounded.
    Proof: docs/proofs/engines.bounded.md, "One rounding a group".
    Assumes: below 2^115 in magnitude.
    Rounds: to the nearest step, once.
    """
    above = f"coalesce({total}, 0)::HUGEINT + {_ABOVE + (1 << (FINE_BITS - 1))}::HUGEINT"
    return f"((({above}) >> {FINE_BITS}) - {_ABOVE >> FINE_BITS}::HUGEINT)::BIGINT"


def _count(query: BoundedQuery, rows: DuckRows, cells: DuckCells, value: Scalar | None) -> str:
    """Return the number of rows of a cell, or of those with a value."""
    return cells.found if value is None else cells.column(f"count({cells.value(_there(query, rows, value))})")


def _there(query: BoundedQuery, rows: DuckRows, value: Scalar) -> Text:
    """Return a text that is NULL where a value is not there: the same as a total's, to share one count."""
    totals = (measure for measure in query.measures if isinstance(measure, Total) and measure.value == value)
    total = next(totals, None)
    return present(rows, value) if total is None else on_grid(rows, total)
