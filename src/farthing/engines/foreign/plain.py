"""Any other backend of ibis: what ibis alone expresses alike everywhere, and no more."""

from __future__ import annotations

from functools import reduce
from operator import ge, gt, le, lt, xor
from typing import TYPE_CHECKING, Any, Final, NoReturn

from farthing.engines.foreign.backend import nothing
from farthing.errors import UnsupportedQuery
from farthing.query.schema import REAL_TYPES, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm

_ORDER: Final = {"<": lt, "<=": le, ">": gt, ">=": ge}


class PlainBackend:
    """Counts of rows by columns, constants, comparisons and logic; every function, and reals, are refused by name.

    Backends differ in what NaN and infinity are, and in how a constant of them is written: SQLite, say, reads 'inf'
    as 0. The backend's own order of texts applies.

    Args:
        connection: the ibis backend.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    plans = False

    @property
    def name(self) -> str:
        """The backend's name."""
        return str(self._connection.name)

    @property
    def version(self) -> str:
        """The backend's version: its hash is its own."""
        return str(self._connection.version)

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return the table and its types."""
        return table, table.schema()

    def beside(self, table: pa.Table, name: str) -> Any:  # noqa: ARG002  # ibis names it
        """Return Arrow rows as a table of ibis' own."""
        import ibis

        return ibis.memtable(table)

    def compile(self, question: Any) -> str:
        """Return the text of a question."""
        return str(self._connection.compile(question))

    def prepared(
        self,
        question: Any,
        beside: Mapping[str, pa.Table],  # noqa: ARG002  # names are enough
    ) -> Callable[[], None]:
        """Find out that ibis can print a question; the backend prepares nothing."""
        self.compile(question)
        return nothing

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002  # already inside
        """Return the answer of a question."""
        return self._connection.to_pyarrow(question)

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared and grouped."""
        if kind in REAL_TYPES:
            self._refuse("a real column")
        return column

    def require(self, function: str) -> None:
        """Refuse every function."""
        self._refuse(function)

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return ibis' own hash of hashes; many backends have none, which ibis tells by name."""
        signed = key - 2**64 if key >= 2**63 else key
        inner = reduce(xor, (place.hash() for place in places)) if len(places) == 1 else self._chain(places)
        return (unit.hash() ^ (inner ^ signed).hash()).hash()

    def _chain(self, places: Sequence[Any]) -> Any:
        """Return one hash of several values, in their order."""
        return reduce(lambda one, other: (one.hash() ^ other.hash()).hash(), places[1:], places[0].hash())

    def copies(self, node: Any) -> int:  # noqa: ARG002  # as ibis prints it
        """Return how often the text of an operation holds what it is of: once."""
        return 1

    def numbered(self) -> Any:
        """Return a number that tells the rows of one table apart."""
        import ibis

        return ibis.row_number()

    def fence(self) -> Any:
        """Return TRUE: no function runs here that a fence would hold back."""
        import ibis

        return ibis.literal(value=True)

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL."""
        return value.isnull()

    def different(self, column: Any) -> NoReturn:  # noqa: ARG002
        """Refuse: some backends estimate, and what an estimate is moved by nobody knows."""
        self._refuse("COUNT(DISTINCT)")

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts, in the backend's own order."""
        return _ORDER[sign](left, right)

    def integers(self, sign: str, left: Any, right: Any) -> NoReturn:  # noqa: ARG002
        """Refuse: overflow raises, wraps or widens, as the backend likes."""
        self._refuse(sign)

    def divided(self, word: str, left: Any, right: Any) -> NoReturn:  # noqa: ARG002
        """Refuse: quotients round as the backend likes."""
        self._refuse("//" if word == "div" else "%")

    def rounded(self, word: str, value: Any) -> NoReturn:  # noqa: ARG002
        """Refuse: some backends give integers, and raise."""
        self._refuse(word)

    def textual(self, word: str, *values: Any) -> NoReturn:  # noqa: ARG002
        """Refuse: letters, spaces and lengths are the backend's own."""
        self._refuse(word)

    def substring(self, text: Any, start: Any, length: Any | None) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("substring")

    def logarithm(self, value: Any) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("log10")

    def truncated(self, unit: str, moment: IbisTerm) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("date_trunc")

    def part(self, part: str, moment: IbisTerm) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("extract")

    def days(self, first: Any, last: Any) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("days_between")

    def midnight(self, day: Any) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("CAST")

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""
        import ibis

        return ibis.literal(value)

    def parsed(self, text: Any, pattern: str, kind: Type) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("CAST")

    def spelled(self, value: IbisTerm) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse("CAST")

    def _refuse(self, construct: str) -> NoReturn:
        """Refuse a function by its name."""
        raise UnsupportedQuery(
            f"{construct} on the {self.name} backend",
            construct=construct,
            rule="functions run where each has one meaning on every value: DuckDB, PostgreSQL, Spark, SQLite,"
            " ClickHouse, DataFusion, BigQuery, Databricks, Snowflake, Trino",
            next_step="compute the column in the table that you open, or export the table to Parquet",
        )
