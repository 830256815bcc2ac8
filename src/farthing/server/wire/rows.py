"""What a statement came to, as messages of the wire: its columns, its rows, and errors with their four facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pygwire import messages

from farthing.advice import Face
from farthing.server import shapes
from farthing.server.wire import values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from farthing.errors import FarthingError
    from farthing.server.wire.desk import Result

_CODES: Final = {
    401: "28P01",
    402: "53400",
    403: "42501",
    404: "42P01",
    409: "55000",
    422: "42601",
    424: "25P02",
    429: "53300",
}
"""PostgreSQL's codes of errors, by the status that HTTP has for them."""


def described(columns: Sequence[tuple[str, int]], formats: list[int]) -> messages.RowDescription:
    """Return the description of columns, by their names and the numbers of their types."""
    return messages.RowDescription(
        fields=[
            messages.FieldDescription(
                name=name,
                type_oid=oid,
                type_size=values.SIZES[oid],
                type_modifier=-1,
                format_code=values.format_of(formats, place),
            )
            for place, (name, oid) in enumerate(columns)
        ]
    )


def rows_of(
    result: Result, columns: Sequence[tuple[str, int]], formats: list[int], start: int, most: int
) -> Iterator[messages.DataRow]:
    """Yield rows from a place on, at most so many unless that is 0, as their columns were described.

    Raises:
        UnsupportedQuery: the columns are not those that were described before the parameters were known.
    """
    assert result.table is not None  # noqa: S101  # asked by the caller
    if len(columns) != result.table.num_columns:
        raise values.unsupported("a prepared statement whose columns are known only when it is asked")
    for row in zip(*(column.to_pylist() for column in result.table.slice(start, most or None).columns), strict=True):
        cells = [
            values.encoded(value, oid, binary=values.format_of(formats, place) == 1)
            for place, (value, (_, oid)) in enumerate(zip(row, columns, strict=True))
        ]
        yield messages.DataRow(columns=cells)


def notice(text: str) -> messages.NoticeResponse:
    """Return what else is to be said of an answer."""
    return messages.NoticeResponse(fields={"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": text})


def told(error: FarthingError) -> messages.ErrorResponse:
    """Return an error: what, the rule and what it got, the next step."""
    what, rule, step = (shapes.in_words(error, text, Face.WIRE) for text in (error.what, error.rule, error.next_step))
    facts: dict[str, Any] = {"S": "ERROR", "V": "ERROR", "C": _CODES.get(shapes.status_of(error), "XX000"), "M": what}
    detail = "; ".join(part for part in (rule and f"rule: {rule}", error.got and f"got: {error.got}") if part)
    facts |= {"D": detail} if detail else {}
    facts |= {"H": step} if step else {}
    return messages.ErrorResponse(fields={code: text.replace("\0", "") for code, text in facts.items()})
