"""What differs between backends: a small class each, for its guards, its hash and the way its answers come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm
    from farthing.query.schema import Type


class Backend(Protocol):
    """The guarded primitives of one backend. All are total: none may raise, whatever a row holds.

    Integers are int64 on both sides, doubles are tame ones unless said otherwise, NULL in is NULL out.
    """

    @property
    def name(self) -> str:
        """The backend's name, for messages and hashes."""

    @property
    def version(self) -> str:
        """The version of its hash function, as far as it can be told without asking rows."""

    @property
    def plans(self) -> bool:
        """Whether the backend itself plans what is `prepared`, and so refuses what it cannot do."""

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Type]]:
        """Return a table as it is read, and our type of every column."""

    def beside(self, table: pa.Table, name: str) -> Any:
        """Return the ibis table under which Arrow rows can be named in a question."""

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question; Arrow rows that it names travel with it."""

    def prepared(self, question: Any, beside: Mapping[str, pa.Table]) -> Callable[[], None]:
        """Print a question once; return what has the backend prepare it, as often as that is wanted.

        Both find out whether it can, with the Arrow rows that the question names; no row is read.
        """

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared, computed with and grouped."""

    def require(self, function: str) -> None:
        """Refuse a function of the language that the backend does not compute as it is told."""

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return int64 that depend on unit, place and key alike: what ranks the groups of a unit."""

    def copies(self, node: Any) -> int:
        """Return how often the text of an operation holds what it is of."""

    def numbered(self) -> Any:
        """Return a number that tells the rows of one table apart."""

    def fence(self) -> Any:
        """Return TRUE in a way that no optimizer sees through, so that what is beside it stays where it is."""

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL, NaN being a value."""

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group, to the last one: NULL is none of them."""

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts by code points; sign is one of < <= > >=."""

    def integers(self, sign: str, left: Any, right: Any) -> Any:
        """Return left sign right for + - * of integers, NULL outside int64."""

    def divided(self, word: str, left: Any, right: Any) -> Any:
        """Return the whole quotient ("div") or what it leaves ("mod"), truncated; right is neither 0 nor -1."""

    def rounded(self, word: str, value: Any) -> Any:
        """Return floor, ceil or trunc of a double, as a double."""

    def textual(self, word: str, *values: Any) -> Any:
        """Return lower, upper, trim, ltrim, rtrim, length, starts_with, ends_with or contains of texts."""

    def substring(self, text: Any, start: Any, length: Any | None) -> Any:
        """Return letters from a place on, both numbers from 0 to 2^30."""

    def logarithm(self, value: Any) -> Any:
        """Return the logarithm to base ten of a positive double."""

    def truncated(self, unit: str, moment: IbisTerm) -> Any:
        """Return the first moment of a unit."""

    def part(self, part: str, moment: IbisTerm) -> Any:
        """Return a part of a date or time as an integer."""

    def days(self, first: Any, last: Any) -> Any:
        """Return the days from one date to another."""

    def midnight(self, day: Any) -> Any:
        """Return a date as a time."""

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""

    def parsed(self, text: Any, pattern: str, kind: Type) -> Any:
        """Return a text that matches a pattern as a value of a type, else NULL."""

    def spelled(self, value: IbisTerm) -> Any:
        """Return an integer, truth value, date or time as text."""


def nothing() -> None:
    """Do nothing: printing was all, or there is nothing to close."""
