"""Questions as DuckDB SQL: one SELECT that returns (i, n), the group's place in the key list and its bounded count.

Written as text and not through ibis: compiling there costs several milliseconds a question, as much as a tenth of the
whole answer. Every name is quoted, every constant is a literal of its own type, and no expression can fail on a row.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from farthing.engines.engine import PARTS_SALT
from farthing.query.expressions import (
    And,
    Between,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    columns_of,
    operand_type,
)
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from farthing.query.query import Query

TABLE = "farthing_table"
KEYS = "farthing_keys"


def canonical_type(native: str) -> Type:
    """Return our type of a DuckDB type."""
    if native.startswith("DECIMAL"):
        return Type.DECIMAL
    if native.startswith("ENUM"):
        return Type.STRING
    return _TYPES.get(native, Type.OTHER)


_TYPES = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), Type.INTEGER
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Type.FLOAT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Type.TIMESTAMP),
    "VARCHAR": Type.STRING,
    "BOOLEAN": Type.BOOLEAN,
    "DATE": Type.DATE,
}


def quoted(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def reader(name: str, native: str) -> str:
    """Return the total expression that reads a column in the type in which it is compared and grouped.

    Floats are read as x + 0: a filter on the bare column may be handed to the reader of Arrow or Parquet, which can
    take -0.0 and 0.0 for different values; a filter on an expression stays with DuckDB, which does not. Coarse
    timestamps are cast only where the cast succeeds: TRY_CAST does raise there (DuckDB 1.5).
    """
    column = row(name)
    if native in ("FLOAT", "DOUBLE"):
        return f"({column} + 0::DOUBLE)"
    if native.startswith("DECIMAL"):
        return f"CAST({column} AS DOUBLE)"
    if native.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)"
    if native in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        first, last = (f"CAST('{moment}' AS {native})" for moment in _EDGES[native])
        return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN CAST({column} AS TIMESTAMP) END"
    return column


_COMMON_ERA = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
_EDGES = {
    "TIMESTAMP_S": _COMMON_ERA,
    "TIMESTAMP_MS": _COMMON_ERA,
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 00:00:00"),
}


def row(name: str) -> str:
    """Return a column of the table, told from names of our own."""
    return f"r.{quoted(name)}"


def columns_read(query: Query) -> tuple[str, ...]:
    """Return the columns a question reads, sorted."""
    where = frozenset[str]() if query.rows is None else columns_of(query.rows)
    unit = frozenset[str]() if query.unit.column is None else {query.unit.column}
    part = frozenset[str]() if query.part is None else {query.part.column}
    return tuple(sorted({*query.by, *where, *unit, *part}))


def counting(query: Query, hash_key: int, schema: Schema, read: Mapping[str, str]) -> str:
    """Return the SQL of a question.

    Args:
        query: the question.
        hash_key: chooses the kept groups of a unit.
        schema: the table's schema.
        read: the total reading expression of each column.
    """
    if query.unit.is_row:
        return _row_counts(query, schema, read)
    if query.part is not None:
        cells = _cells_of_part(query, hash_key, schema, read)
    elif query.keys is not None:
        cells = _cells(query, schema, read)
    else:
        found = f"FROM {TABLE} AS r WHERE {_rows(query, schema, read)} GROUP BY {_unit(query)}"
        return f"SELECT 0::INTEGER AS i, coalesce(sum(c), 0)::BIGINT AS n FROM (SELECT {_cut(query)} AS c {found})"
    if query.cuts_groups:
        # i breaks ties; without it DuckDB also picks a slower plan for the ranking.
        kept = f"row_number() OVER (PARTITION BY u ORDER BY {keyed_hash('u', 'i', hash_key)}, i) <= {query.max_groups}"
        cells = f"SELECT i, c FROM ({cells}) QUALIFY {kept}"
    return f"SELECT i, sum(c)::BIGINT AS n FROM ({cells}) GROUP BY i"


def keyed_hash(unit: str, place: str, hash_key: int) -> str:
    """Return the hash that ranks the groups of a unit.

    The outer hash matters: the inner ones are only combined by exclusive or, which would favour the same groups in
    every unit.
    """
    return f"hash(xor(hash({unit}, {place}), {hash_key}::UBIGINT))"


def hash_probe() -> str:
    """Return SQL for one text that tells hash functions apart."""
    values = (keyed_hash(unit, "3::INTEGER", 5) for unit in ("7::BIGINT", "'N14228'", "1.5::DOUBLE"))
    return "SELECT concat_ws(',', " + ", ".join(values) + ")"


def _row_counts(query: Query, schema: Schema, read: Mapping[str, str]) -> str:
    """Return SQL that groups first and then finds each group's place: the join sees one row a group."""
    rows = f"FROM {TABLE} AS r WHERE {_rows(query, schema, read)}"
    if query.keys is None:
        return f"SELECT 0::INTEGER AS i, count(*) AS n {rows}"
    keys = [f"k{place}" for place in range(len(query.by))]
    shown = ", ".join(f"{read[column]} AS {key}" for column, key in zip(query.by, keys, strict=True))
    places = ", ".join(str(place + 1) for place in range(len(keys)))
    groups = f"SELECT {shown}, count(*) AS n {rows} GROUP BY {places}"
    return f"SELECT k.i, g.n FROM ({groups}) AS g JOIN {KEYS} AS k ON {_same_key(query, [f'g.{key}' for key in keys])}"


def _cells(query: Query, schema: Schema, read: Mapping[str, str]) -> str:
    """Return SQL of one row (u, i, c) for each unit and group, cut to the bound on rows.

    Rows find their group before anything is aggregated, so that one unit has one cell in a group whatever the engine
    takes for equal.
    """
    found = _same_key(query, [f"t.k{place}" for place in range(len(query.by))])
    columns = ", ".join(f"{read[column]} AS k{place}" for place, column in enumerate(query.by))
    rows = f"SELECT {_unit(query)} AS u, {columns} FROM {TABLE} AS r WHERE {_rows(query, schema, read)}"
    return f"SELECT t.u, k.i, {_cut(query)} AS c FROM ({rows}) AS t JOIN {KEYS} AS k ON {found} GROUP BY t.u, k.i"


def _cells_of_part(query: Query, hash_key: int, schema: Schema, read: Mapping[str, str]) -> str:
    """Return SQL of the cells (u, i, c) of the units that are kept in the part that is asked.

    All listed parts are read, and only then is it chosen: where a unit is kept depends on all its rows and on nothing
    that is asked. It is chosen by a window over its own cells and not by a join, so that one unit is what GROUP BY
    takes for one.
    """
    part = query.part
    assert part is not None  # noqa: S101  # callers ask for a part
    kept = range(len(part.choices))
    placed = " ".join(f"WHEN {predicate(part.condition(place), schema, read)} THEN {place}" for place in kept)
    columns = "".join(f", {read[column]} AS k{place}" for place, column in enumerate(query.by))
    counted = "TRUE" if query.rows is None else predicate(query.rows, schema, read)
    rows = (
        f"SELECT {_unit(query)} AS u, (CASE {placed} END)::INTEGER AS p, {counted} AS w{columns} "
        f"FROM {TABLE} AS r WHERE {_unit(query)} IS NOT NULL"
    )
    group, found = "0::INTEGER", ""
    if query.keys is not None:
        same = _same_key(query, [f"t.k{place}" for place in range(len(query.by))])
        group, found = "k.i", f" LEFT JOIN {KEYS} AS k ON {same}"
    cut = f"least(count(*) FILTER (WHERE t.w), {query.max_rows})"
    every = (
        f"SELECT t.u AS u, t.p AS p, {group} AS i, {cut} AS c FROM ({rows}) AS t{found} "
        f"WHERE t.p IS NOT NULL GROUP BY t.u, t.p, {group}"
    )
    rank = keyed_hash("u", "p", hash_key ^ PARTS_SALT)
    home = f"first_value(p) OVER (PARTITION BY u ORDER BY {rank}, p)"
    marked = f"SELECT u, p, i, c, {home} AS home FROM ({every})"
    return f"SELECT u, i, c FROM ({marked}) WHERE p = home AND p = {part.place} AND i IS NOT NULL AND c > 0"


def _cut(query: Query) -> str:
    """Return the bounded number of rows of a cell."""
    return f"least(count(*), {query.max_rows})"


def _unit(query: Query) -> str:
    """Return the unit column as it is: reading it through a cast could merge two units."""
    return row(query.unit.column or "")


def _rows(query: Query, schema: Schema, read: Mapping[str, str]) -> str:
    """Return the condition of the rows that count."""
    parts = ["TRUE" if query.rows is None else predicate(query.rows, schema, read)]
    if not query.unit.is_row:
        parts.append(f"{_unit(query)} IS NOT NULL")
    return " AND ".join(parts)


def _same_key(query: Query, values: list[str]) -> str:
    """Return the join condition; NULL matches a listed NULL only."""
    assert query.keys is not None  # noqa: S101  # callers handle the question without groups
    parts = []
    for place, (column, value) in enumerate(zip(query.by, values, strict=True)):
        equal = "IS NOT DISTINCT FROM" if query.keys.column(column).null_count else "="
        parts.append(f"{value} {equal} k.k{place}")
    return " AND ".join(parts)


def predicate(expression: Expression, schema: Schema, read: Mapping[str, str]) -> str:
    """Return the SQL of a predicate, in parentheses."""
    match expression:
        case Compare(left, operator, right):
            first, second = _sides(left, right, schema, read)
            return f"({first} {operator.value} {second})"
        case And(operands) | Or(operands):
            word = " AND " if isinstance(expression, And) else " OR "
            return "(" + word.join(predicate(operand, schema, read) for operand in operands) + ")"
        case Not(operand):
            return f"(NOT {predicate(operand, schema, read)})"
        case IsNull(column):
            return f"({row(column.name)} IS NULL)"
        case In(column, choices):
            return _membership(column, choices, schema, read)
        case Between():
            return predicate(And(expression.comparisons), schema, read)
        case _:
            assert_never(expression)


def _membership(column: Column, choices: tuple[Literal, ...], schema: Schema, read: Mapping[str, str]) -> str:
    """Return the SQL of a membership test; as in comparisons, integers meet integers exactly."""
    kind = schema.require(column.name)
    tests = []
    for real in (False, True):
        alike = [choice for choice in choices if (kind in REAL_TYPES or choice.type is Type.FLOAT) is real]
        if alike:
            shown = ", ".join(_literal(choice, real=real) for choice in alike)
            tests.append(f"{_column(column, kind, read, real=real)} IN ({shown})")
    return f"({' OR '.join(tests)})"


def _sides(left: Operand, right: Operand, schema: Schema, read: Mapping[str, str]) -> tuple[str, str]:
    """Return both sides of a comparison, as doubles unless both are integers (or no numbers at all)."""
    kinds = operand_type(left, schema), operand_type(right, schema)
    real = bool(REAL_TYPES & set(kinds))
    first, second = (
        _literal(side, real=real) if isinstance(side, Literal) else _column(side, kind, read, real=real)
        for side, kind in zip((left, right), kinds, strict=True)
    )
    return first, second


def _column(column: Column, kind: Type, read: Mapping[str, str], *, real: bool) -> str:
    """Return a column as read, as a double where an integer meets one."""
    return f"CAST({read[column.name]} AS DOUBLE)" if real and kind is Type.INTEGER else read[column.name]


def _literal(literal: Literal, *, real: bool) -> str:
    """Return a constant of its own type."""
    value = literal.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return f"{float(value)!r}::DOUBLE" if real else str(value)
    if isinstance(value, str):
        return _text(value)
    return _moment(value)


def _text(value: str) -> str:
    """Return a text constant; a letter that SQL text might not carry travels as bytes."""
    if value.isascii() and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return "decode('" + "".join(f"\\x{byte:02X}" for byte in value.encode()) + "'::BLOB)"


def _moment(value: date) -> str:
    """Return a date or time constant."""
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"DATE '{value.isoformat()}'"
