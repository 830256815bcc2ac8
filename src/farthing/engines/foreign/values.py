"""Engines that are told by constants in the text: a keyed hash, and keys and public rows inside what is sent.

`dialect` adds every function. Units may have more groups than they keep, and nothing is written on the backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.plain import PlainBackend
from farthing.engines.foreign.terms import call
from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

MD5: Final[dict[str, tuple[str, ...]]] = {
    "bigquery": ("md5", "to_hex"),
    "clickhouse": ("MD5", "hex"),
    "databricks": ("md5",),
    "datafusion": ("md5",),
    "snowflake": ("md5_hex",),
    "trino": ("to_utf8", "md5", "to_hex"),
}
"""The functions that make a text its MD5 in hexadecimal letters, the first one first, by ibis' name of the backend."""

LONGEST: Final = 200_000
"""Letters of constants that travel with one question: the strictest of these engines reads texts up to 2^18."""

_TYPES: Final = (
    ("is_boolean", "boolean"),
    ("is_integer", "int64"),
    ("is_date", "date"),
    ("is_string", "string"),
    ("is_floating", "float64"),
    ("is_timestamp", "timestamp"),
)


class ValuesBackend(PlainBackend):
    """Counts of rows and units, where keys and public rows are constants of the text that is sent.

    Args:
        connection: the ibis backend, one of `MD5`.
    """

    def beside(self, table: pa.Table, name: str) -> Any:
        """Return the name of a table that travels with the question, without columns of types that do not travel."""
        import ibis

        _require_short(table, self.name)
        return ibis.table({column: kind for column, kind in _kinds(table).items() if kind}, name=name)

    def compile(self, question: Any) -> str:
        """Return the text of a question, without the constants that travel with it."""
        return self.text(question, {})

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question; tables beside it are constants of its text."""
        return self._connection.sql(self.text(question, beside), schema=question.schema()).to_pyarrow()

    def text(self, question: Any, beside: Mapping[str, pa.Table]) -> str:
        """Return the whole text of a question, in the dialect of the backend."""
        import sqlglot

        dialect = self._connection.compiler.dialect
        tree = sqlglot.parse_one(super().compile(question), dialect=dialect).transform(_signed)
        named = {table.name for table in tree.find_all(sqlglot.exp.Table)}
        made = sqlglot.select("*").from_(tree.subquery("answer"))
        for name, table in beside.items():
            if name in named:
                made = made.with_(sqlglot.to_identifier(name, quoted=True), as_=self._constants(table))
        return made.sql(dialect=dialect)

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group."""
        return column.nunique()

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return the hexadecimal letters of an MD5: of the unit, and of what came before, from the key on.

        Two values of one type never give one text, and what came before has a fixed length behind the unit.
        """
        seen = self._digest(_text(str(key)))
        for value in (*places, self.spelled_unit(unit)):
            seen = self._digest(_joined(_told(value), seen))
        return seen

    def spelled_unit(self, unit: Any) -> Any:
        """Return a unit as what has a spelling; refuse bytes and lists, which have none on some values."""
        if unit.type().is_binary() or unit.type().is_nested():
            self._refuse(f"a unit of type {type(unit.type()).__name__.lower()} that gives up groups")
        return unit

    def _digest(self, text: Any) -> Any:
        """Return the MD5 of a text, in letters."""
        *inner, last = MD5[self.name]
        for function in inner:
            text = call(function, "binary", text)
        return call(last, "string", text)

    def _constants(self, table: pa.Table) -> Any:
        """Return a SELECT of constant rows: texts, each column cast to its type once."""
        from sqlglot import exp, select

        kinds = {name: kind for name, kind in _kinds(table).items() if kind}
        rows = [tuple(map(exp.convert, row)) for row in _texts(table, kinds)]
        empty = tuple(exp.convert("") for _ in kinds)
        columns = [f"c{place}" for place in range(len(kinds))]
        made = [
            exp.alias_(self._typed(column, kind), name, quoted=True)
            for column, (name, kind) in zip(columns, kinds.items(), strict=True)
        ]
        found = select(*made).from_(self._rows_of(rows or [empty], columns))
        return found if rows else found.where(exp.false())

    def _rows_of(self, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> Any:
        """Return constant rows of texts as what a SELECT reads."""
        from sqlglot import exp

        return exp.values(rows, alias="k", columns=columns)

    def _typed(self, column: str, kind: str) -> Any:
        """Return a column of texts as one of an ibis type."""
        import ibis
        from sqlglot import exp

        return exp.cast(exp.column(column), self._connection.compiler.type_mapper.from_ibis(ibis.dtype(kind)))


def _kinds(table: pa.Table) -> dict[str, str]:
    """Return the ibis types of columns that travel, "" for others."""
    import ibis

    schema = ibis.Schema.from_pyarrow(table.schema)
    return {name: next((made for test, made in _TYPES if getattr(kind, test)()), "") for name, kind in schema.items()}


def _texts(table: pa.Table, kinds: Mapping[str, str]) -> list[tuple[str | None, ...]]:
    """Return rows as texts, as every engine reads them in a cast."""
    spelled = {bool: lambda value: "true" if value else "false"}
    columns = [
        [None if value is None else spelled.get(type(value), str)(value) for value in table.column(name).to_pylist()]
        for name in kinds
    ]
    return list(zip(*columns, strict=True))


def _require_short(table: pa.Table, backend: str) -> None:
    """Refuse constants that are too long for the text of a question."""
    letters = sum(len(text or "NULL") + 4 for row in _texts(table, _kinds(table)) for text in row)
    if letters > LONGEST:
        raise UnsupportedQuery(
            f"the keys and public rows of the question are too long for the {backend} backend",
            construct="keys",
            rule=f"they are constants of the text that is sent: at most {LONGEST:,} letters",
            got=f"{letters:,} letters in {table.num_rows:,} rows",
            next_step="list fewer keys, or export the table to Parquet",
        )


def _told(value: Any) -> Any:
    """Return a text that tells values of one type, and NULL, apart."""
    import ibis

    spelled = ibis.coalesce(value.cast("string"), _text(""))
    return ibis.ifelse(value.isnull(), _text("n"), _joined(_text("v"), spelled))


def _joined(first: Any, second: Any) -> Any:
    """Return two texts as one."""
    return call("concat", "string", first, second)


def _signed(node: Any) -> Any:
    """Return a count as an integer with sign: ClickHouse's has none, and meets no other integer."""
    from sqlglot import exp

    return exp.cast(node, "bigint") if isinstance(node, exp.Count) else node


def _text(value: str) -> Any:
    """Return a constant text."""
    import ibis

    return ibis.literal(value)
