"""Disjoint parts of the data, charged in parallel: what is asked of one part costs nobody in the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from farthing.errors import InvalidKeys, UnsupportedQuery
from farthing.query.expressions import Literal
from farthing.query.keys import Keys
from farthing.query.part import QueryPart as Restriction
from farthing.session.batches.methods import Batches
from farthing.tabular import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.privacy.loss import Booked
    from farthing.query.schema import Schema
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader

MOST_PARTS: Final = 1_000
"""The most parts of one partition: with a unit column, every question reads the rows of all of them."""


class Part(Batches, Lines):
    """One part of a partition: the rows where a column has one value. Ask it as you ask a Session.

    Its answers, stored measurements and free answers are its own. What it spends is charged to the whole ledger only as
    far as it is the part of its partition that has spent most.

    Guarantee: everything that leaves all parts of a partition is together as private as the largest charge of a part.
    Proof: docs/proofs/session.partition.md.
    Assumes: one unit counts in at most one part (`query.part`); the ledger charges the increase of the maximum.
    Rounds: nothing.
    """

    def __init__(self, context: Context, reader: QuestionReader) -> None:
        self._context = context
        self._reader = reader

    @property
    def name(self) -> str:
        """What tells this part from the others, as in "region = 'north'"."""
        return str(self._reader.part)

    def partition(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a part is not divided again.

        Raises:
            UnsupportedQuery: always; says what to do instead.
        """
        raise UnsupportedQuery(
            "a part is not divided again",
            construct="nested partition",
            rule="a partition has one level",
            got=self.name,
            next_step="partition the session by a column that tells the smaller parts apart",
        )

    @property
    def spent(self) -> Booked:
        """What this part has spent."""
        return self._context.loss(self._context.ledger.spent)

    @property
    def remaining(self) -> Booked:
        """What this part may still spend."""
        return self._context.loss(self._context.ledger.remaining)

    def __repr__(self) -> str:
        return f"<farthing part {self.name} of {self._context.engine.name!r}; left {self.remaining!r}>"


class Partition(dict[Any, Part], Lines):
    """The parts of a partition, by their values. A value that is not listed is refused by name."""

    def __str__(self) -> str:
        return "\n".join(map(repr, self.values()))

    def __missing__(self, key: object) -> NoReturn:
        raise InvalidKeys(
            "the partition has no part of that value",
            rule="the parts are those that the partition was made with",
            got=repr(key),
            next_step="one of " + ", ".join(map(repr, list(self)[:20])),
        )


def partition(context: Context, by: Any, keys: Any, reader: QuestionReader) -> Partition:
    """Return the parts of a data set by the listed values of a column; see `Session.partition`."""
    values = list(_values(by, keys, context.engine.schema))
    choices = tuple(sorted((Literal(value) for value in values), key=Literal.canonical))
    restrictions = {choices[place].canonical(): Restriction(by, choices, place) for place in range(len(choices))}
    parts = Partition()
    for value in values:
        mine = restrictions[Literal(value).canonical()]
        books = context.ledger.part(partition=_identity(context.data_set, mine), name=str(value))
        door = context.engine.of(books)
        parts[value] = Part(replace(context, engine=door, ledger=books), replace(reader, part=mine))
    return parts


def _values(by: Any, keys: Any, schema: Schema) -> Iterator[Any]:
    """Give the checked values that tell the parts apart, in the order in which they were listed."""
    if not isinstance(by, str):
        raise UnsupportedQuery(
            "a partition is by one column",
            construct="partition",
            rule="by= is the name of a column",
            got=repr(by)[:80],
            next_step='session.partition(by="region", keys=["north", "south"])',
        )
    schema.require(by)
    given = keys if keys is None or isinstance(keys, Mapping) else {by: keys}
    listed = Keys.of((by,), given, schema)
    assert listed is not None  # noqa: S101  # there is a column
    if len(listed) > MOST_PARTS:
        raise InvalidKeys(
            "too many parts",
            rule=f"at most {MOST_PARTS} parts a partition",
            got=len(listed),
            next_step="group by the column instead: a GROUP BY is charged in parallel too",
        )
    column = listed.column(by)
    if column.null_count:
        raise InvalidKeys(
            "NULL cannot be a part",
            rule="rows without a value are in no part",
            got="None",
            next_step="leave None out; the whole session still counts these rows",
        )
    yield from column.to_pylist()


def _identity(data_set: str, restriction: Restriction) -> str:
    """Return the identity of a partition in the ledger."""
    return hashlib.sha256(f"{data_set} {restriction.partition}".encode()).hexdigest()
