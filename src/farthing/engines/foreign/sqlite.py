"""SQLite: every function of the language is the evaluator's own, registered with a connection that can only read.

SQLite keeps values of any type in any column, has no NaN, reads 'inf' as 0 and adds reals to nothing that could be
relied on. So a column is read only where a value is of the column's type, days and times as texts of one length, and
what is computed of values is computed by `engines.functions`, whose functions have no argument at which they fail.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import threading
from datetime import date, datetime
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from farthing.engines.casts import cast
from farthing.engines.foreign.terms import call, canonical_type, real, whole
from farthing.engines.functions import FUNCTIONS, in_64_bits
from farthing.errors import DataError
from farthing.query.expressions import FunctionName
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm

_NUMBER: Final = "CASE WHEN typeof({x}) IN ('integer', 'real') THEN CAST({x} AS REAL) END"
_READ: Final = {
    Type.INTEGER: "CASE typeof({x}) WHEN 'integer' THEN {x} END",
    Type.BOOLEAN: "CASE WHEN typeof({x}) = 'integer' AND {x} IN (0, 1) THEN {x} END",
    Type.FLOAT: _NUMBER,
    Type.DECIMAL: _NUMBER,
    Type.STRING: "CASE typeof({x}) WHEN 'text' THEN farthing_text(CAST({x} AS BLOB)) END",
    Type.DATE: "CASE typeof({x}) WHEN 'text' THEN farthing_day(CAST({x} AS BLOB)) END",
    Type.TIMESTAMP: "CASE typeof({x}) WHEN 'text' THEN farthing_moment(CAST({x} AS BLOB)) END",
}
_BYTES: Final = "CASE WHEN typeof({x}) IN ('text', 'blob') THEN CAST(typeof({x}) || {x} AS BLOB) ELSE {x} END"
"""Values of other types, which units may have: no function of Python's can be given text that is not UTF-8."""


class SqliteBackend:
    """The guarded primitives of SQLite, and its hash: BLAKE2b with the ledger's key.

    Args:
        connection: the ibis backend. A database file is opened once more, to be read and by any thread; one in memory
            is asked by the connection itself, in the thread that made it.
    """

    name = "sqlite"
    plans = True
    version = "blake2b"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        file = next(path for _, name, path in connection.con.execute("PRAGMA database_list") if name == "main")
        self._con = connection.con if not file else _reader(file)
        self._turn = threading.Lock()
        _registered(self._con)
        (encoding,) = self._con.execute("PRAGMA encoding").fetchone()
        if encoding != "UTF-8":
            raise DataError(
                "the database is not in UTF-8",
                rule="texts are read from the bytes of UTF-8",
                got=encoding,
                next_step="export the table to Parquet",
            )

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return a table whose columns hold values of their own type, others as NULL."""
        import ibis

        schema, columns = dict(table.schema()), []
        for name, kind in schema.items():
            quoted = '"' + name.replace('"', '""') + '"'
            columns.append(f"{_READ.get(canonical_type(kind), _BYTES).format(x=quoted)} AS {quoted}")
        sql = f"SELECT {', '.join(columns)} FROM ({self._connection.compile(table)}) AS farthing_table"
        plain = {name: ibis.dtype("string") if kind.is_string() else kind for name, kind in schema.items()}
        return self._connection.sql(sql, schema=ibis.schema(plain)), plain

    def beside(self, table: pa.Table, name: str) -> Any:
        """Return the name of a table that travels with the question."""
        import ibis

        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

    def prepared(self, question: Any, beside: Mapping[str, pa.Table]) -> Callable[[], None]:
        """Return what lets SQLite prepare a question; it runs nothing."""
        sql = self._text(question, {name: table.schema for name, table in beside.items()})
        return lambda: self._prepare(sql, len(beside))

    def _prepare(self, sql: str, tables: int) -> None:
        """Let SQLite prepare a text beside so many tables."""
        from ibis.common.exceptions import IbisError

        failed = False
        with self._turn:
            try:
                self._con.execute(f"EXPLAIN {sql}", ["[]"] * tables)
            except sqlite3.Error:
                failed = True
        if failed:
            raise IbisError("SQLite cannot prepare the question")

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question; tables beside it travel as JSON: nothing is written."""
        import pyarrow as pa

        sql = self._text(question, {name: table.schema for name, table in beside.items()})
        rows = self._send(sql, [_packed(table) for table in beside.values()])
        kinds = question.schema()
        found = list(zip(*rows, strict=True)) or [() for _ in kinds]
        arrays = [
            pa.array([None if each is None else _shown(kind)(each) for each in column], field.type)
            for column, (_, kind), field in zip(found, kinds.items(), kinds.to_pyarrow(), strict=True)
        ]
        return pa.table(arrays, kinds.to_pyarrow())

    def _text(self, question: Any, beside: Mapping[str, pa.Schema]) -> str:
        """Return SQL in which constants, patterns and days are the evaluator's too."""
        tree = self._connection.compiler.to_sqlglot(question.unbind()).copy()  # so that no part has two places
        for node in reversed(list(tree.walk())):  # what is inside first
            told = _own(node)
            if told is not node:
                node.replace(told)
        sql = _flat(tree).sql(dialect="sqlite")
        if not beside:
            return str(sql)
        parts = []
        for name, schema in beside.items():
            columns = ", ".join(f'"{column}"' for column in schema.names)
            values = ", ".join(_unpacked(place, field.type) for place, field in enumerate(schema))
            parts.append(f'"{name}"({columns}) AS MATERIALIZED (SELECT {values} FROM json_each(?))')
        return f"WITH {', '.join(parts)} SELECT * FROM ({sql}) AS answer"

    def _send(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of an answer: the one place from which a text reaches rows."""
        with self._turn:
            return list(self._con.execute(sql, parameters).fetchall())

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared, computed with and grouped."""
        return column.cast("float64") + real(0) if kind in (Type.FLOAT, Type.DECIMAL) else column

    def require(self, function: str) -> None:
        """All functions are there."""

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return a keyed hash of a unit and places."""
        return call("farthing_hash", "int64", whole(key - 2**64 if key >= 2**63 else key), unit, *places)

    def copies(self, node: Any) -> int:  # noqa: ARG002  # as ibis prints it
        """Return how often the text of an operation holds what it is of: once."""
        return 1

    def numbered(self) -> Any:
        """Return a number that tells the rows of one table apart."""
        import ibis

        return ibis.row_number()

    def fence(self) -> Any:
        """Return TRUE by a window: a subquery that has one is not written out in place."""
        import ibis

        return ibis.row_number() >= whole(0)

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL."""
        return value.isnull()

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group."""
        return column.nunique()

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts: by bytes of UTF-8, which is by code points."""
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]

    def integers(self, sign: str, left: Any, right: Any) -> Any:
        """Return left sign right for + - *, NULL outside int64."""
        return _computed({"+": "add", "-": "subtract", "*": "multiply"}[sign], "int64", left, right)

    def divided(self, word: str, left: Any, right: Any) -> Any:
        """Return the whole quotient or what it leaves, truncated."""
        return _computed({"div": "integer_divide", "mod": "modulo"}[word], "int64", left, right)

    def rounded(self, word: str, value: Any) -> Any:
        """Return floor, ceil or trunc of a double, as a double."""
        return _computed(word, "float64", value)

    def textual(self, word: str, *values: Any) -> Any:
        """Return functions of texts."""
        kinds = {"length": "int64", "starts_with": "boolean", "ends_with": "boolean", "contains": "boolean"}
        return _computed(word, kinds.get(word, "string"), *values)

    def substring(self, text: Any, start: Any, length: Any | None) -> Any:
        """Return letters from a place on."""
        return _computed("substring", "string", text, start, *([] if length is None else [length]))

    def logarithm(self, value: Any) -> Any:
        """Return the logarithm to base ten."""
        return _computed("log10", "float64", value)

    def truncated(self, unit: str, moment: IbisTerm) -> Any:
        """Return the first moment of a unit."""
        return _computed("date_trunc", moment.expr.type(), unit, moment.expr)

    def part(self, part: str, moment: IbisTerm) -> Any:
        """Return a part of a date or time as an integer."""
        return _computed("extract", "int64", part, moment.expr)

    def days(self, first: Any, last: Any) -> Any:
        """Return the days from one date to another."""
        return _computed("days_between", "int64", first, last)

    def midnight(self, day: Any) -> Any:
        """Return a date as a time."""
        return call("farthing_midnight", "timestamp", day)

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""
        return call("farthing_same", "timestamp" if isinstance(value, datetime) else "date", _stored(value))

    def parsed(self, text: Any, pattern: str, kind: Type) -> Any:  # noqa: ARG002  # the evaluator has its own
        """Return a text as a value of a type, NULL where it has none."""
        return call(f"farthing_to_{kind.value}", _PARSED[kind], text)

    def spelled(self, value: IbisTerm) -> Any:
        """Return an integer, truth value, date or time as text."""
        return call(
            "farthing_spelled_truth" if value.type is Type.BOOLEAN else "farthing_spelled", "string", value.expr
        )


def _computed(name: str, output: Any, *arguments: Any) -> Any:
    """Return a call of a function of the evaluator's."""
    return call(f"farthing_{name}", output, *arguments)


def _reader(file: str) -> sqlite3.Connection:
    """Return a connection that reads a file."""
    from pathlib import Path

    return sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _registered(connection: sqlite3.Connection) -> None:
    """Give a connection the evaluator's functions."""
    from ibis.backends.sqlite.udf import register_all

    register_all(connection)
    moments = (FunctionName.DATE_TRUNC, FunctionName.EXTRACT, FunctionName.DAYS_BETWEEN)
    functions: dict[str, Callable[..., Any]] = {
        **{name.name.lower(): _of_values(function) for name, function in FUNCTIONS.items()},
        **{name.name.lower(): _of_values(_with_moments(FUNCTIONS[name])) for name in moments},
        **{word: _of_values(_whole_double(getattr(math, word))) for word in ("floor", "ceil", "trunc")},
        **{f"to_{kind.value}": _of_values(partial(cast, kind=kind)) for kind in _PARSED},
        "least": lambda *values: min((each for each in values if each is not None), default=None),
        "greatest": lambda *values: max((each for each in values if each is not None), default=None),
        "hash": _hashed,
        "text": _decoded,
        "day": lambda stored: _moment(stored, Type.DATE),
        "moment": lambda stored: _moment(stored, Type.TIMESTAMP),
        "midnight": lambda day: None if day is None else f"{day} 00:00:00.000000",
        "same": lambda value: value,
        "real": float,
        "spelled": _of_values(lambda value: cast(_as_moment(value), Type.STRING)),
        "spelled_truth": lambda value: None if value is None else ("false", "true")[value],
    }
    for name, function in functions.items():
        connection.create_function(f"farthing_{name}", -1, function, deterministic=True)


_PARSED: Final = {Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date", Type.TIMESTAMP: "timestamp"}
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})?")


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of what SQLite keeps; NULL of NULL."""
    return lambda *values: None if None in values else _stored(in_64_bits(function(*values)))


def _with_moments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of days and times as SQLite keeps them."""
    return lambda *values: function(*map(_as_moment, values))


def _whole_double(function: Callable[[float], int]) -> Callable[[float], float]:
    """Return floor, ceil or trunc of a double, as a double."""
    return lambda value: float(function(value)) if math.isfinite(value) else value


def _stored(value: Any) -> Any:
    """Return a value as SQLite keeps it: days and times as texts of one length, one zero."""
    match value:
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return value


def _as_moment(value: Any) -> Any:
    """Return a day or time of its text; others as they are."""
    if not (isinstance(value, str) and _MOMENT.fullmatch(value)):
        return value
    return date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)


def _decoded(stored: bytes) -> str | None:
    """Return a text of its bytes, NULL where they are not UTF-8."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return None


def _moment(stored: bytes, kind: Type) -> str | None:
    """Return a day or time of the bytes of its text as it is kept in a question."""
    text = _decoded(stored)
    return None if text is None else _stored(cast(text, kind))


def _hashed(key: int, *values: Any) -> int:
    """Return 64 bits of a keyed hash of values of any type."""
    digest = blake2b(digest_size=8, key=key.to_bytes(8, "little", signed=True))
    for value in values:
        told = b"n" if value is None else f"{type(value).__name__}{value!r}".encode("utf-8", "surrogatepass")
        digest.update(len(told).to_bytes(8, "little") + told)
    return int.from_bytes(digest.digest(), "little", signed=True)


def _own(node: exp.Expression) -> exp.Expression:
    """Return a part of a text with what SQLite reads otherwise in the evaluator's words."""
    match node:
        case exp.Cast(this=exp.Literal() as told) if told.is_string and node.to.is_type("double"):
            return exp.Anonymous(this="farthing_real", expressions=[told])
        case exp.Cast() if node.to.is_type("decimal"):  # SQLite's sums of whole numbers are whole
            return exp.Paren(this=node.this)
        case exp.Like():
            pattern = exp.Literal.string(node.expression.name.replace(r"\\", "\\"))  # as `IbisFunctions` doubled them
            return exp.Anonymous(this="farthing_like", expressions=[node.this, pattern])
        case exp.Min() | exp.Max() if node.expressions:
            word = "least" if isinstance(node, exp.Min) else "greatest"
            return exp.Anonymous(this=f"farthing_{word}", expressions=[node.this, *node.expressions])
        case exp.Date():
            return exp.Anonymous(this="substr", expressions=[node.this, exp.Literal.number(1), exp.Literal.number(10)])
        case _:
            return node


def _flat(tree: exp.Select) -> exp.Select:
    """Return a question without nested subqueries, each a WITH of its own: SQLite's parser is 100 words deep."""
    lifted: list[exp.CTE] = []
    for node in reversed(list(tree.find_all(exp.Subquery))):
        if isinstance(node.parent, exp.From | exp.Join):
            name = f"farthing_{len(lifted)}"
            lifted.append(exp.CTE(this=node.this, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True))))
            node.replace(exp.Table(this=exp.to_identifier(name, quoted=True), alias=node.args["alias"]))
    known = tree.args.get("with_")
    if lifted:
        tree.set("with_", exp.With(expressions=[*lifted, *([] if known is None else known.expressions)]))
    return tree


def _packed(table: pa.Table) -> str:
    """Return Arrow rows as JSON."""
    columns = [[_carried(value) for value in column.to_pylist()] for column in table.columns]
    return json.dumps(list(zip(*columns, strict=True)))


def _carried(value: Any) -> Any:
    """Return a value as JSON carries it: reals as texts of all their digits."""
    return _stored(repr(value) if isinstance(value, float) else value)


def _unpacked(place: int, kind: pa.DataType) -> str:
    """Return a column of rows that travel."""
    import pyarrow as pa

    value = f"json_extract(value, '$[{place}]')"
    return f"CASE WHEN {value} IS NOT NULL THEN farthing_real({value}) END" if pa.types.is_floating(kind) else value


def _shown(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a value of an ibis type of what SQLite gives."""
    if kind.is_boolean():
        return bool
    return _as_moment if kind.is_temporal() else float if kind.is_floating() else lambda value: value
