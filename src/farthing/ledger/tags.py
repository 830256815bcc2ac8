"""Which stored questions hold which groups, found without reading them all: tags beside the measurements.

A tag is a number that the caller makes of one group and of all that questions must share to answer one another. What is
found by it is a hint: the caller reads what the question really holds. A tag that is lost costs a free answer, and no
privacy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from farthing.ledger import tables

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tags(NamedTuple):
    """What a stored question is found by.

    Attributes:
        tags: one for each of its groups, or one for all where there are too many; none where it answers no other.
        rank: how sharp it is; the sharpest is the least.
        groups: how many it holds.
        bits: those of all its groups.
    """

    tags: tuple[int, ...] = ()
    rank: int = 0
    groups: int = 0
    bits: int = 0


NONE: Final = Tags()

UNTAGGED: Final = (
    sa.select(tables.MEASUREMENTS.c.question)
    .where(tables.MEASUREMENTS.c.question >= sa.bindparam("first", type_=sa.Text))
    .where(tables.MEASUREMENTS.c.question < sa.bindparam("end", type_=sa.Text), sa.text("tagged = 0"))
    .order_by(tables.MEASUREMENTS.c.question)
)
"""The stored measurements of older formats that nobody has tagged yet."""

TAGGED: Final = (
    sa.update(tables.MEASUREMENTS)
    .where(tables.MEASUREMENTS.c.question == sa.bindparam("key"), sa.text("tagged = 0"))
    .values(tagged=1)
)

UNTAG: Final = sa.delete(tables.TAGS).where(tables.TAGS.c.question == sa.bindparam("key"))

MOST_TAGGED: Final = 4096
"""So many questions with one tag are looked at, the sharpest."""

_tagged = (
    sa.select(tables.TAGS.c.question, tables.TAGS.c.groups, tables.TAGS.c.bits)
    .where(tables.TAGS.c.tag == sa.bindparam("tag"))
    .order_by(tables.TAGS.c.tag, tables.TAGS.c.rank)
    .limit(MOST_TAGGED)
    .subquery()
)

MANY_TAGGED: Final = sa.select(sa.func.count()).select_from(_tagged)

HOLDING: Final = (
    sa.select(_tagged.c.question)
    .where(_tagged.c.groups >= sa.bindparam("least"))
    .where(_tagged.c.bits.op("&")(sa.bindparam("wanted", type_=sa.BigInteger)) == sa.bindparam("wanted"))
    .limit(sa.bindparam("most"))
)
"""The questions with a tag that hold at least so many groups, all of those with these bits among them."""


def write(connection: sa.Connection, question: str, found: Tags, *, noted: bool = False) -> None:
    """Write a question's tags in the place of those that it had; `noted` where its measurement says so already."""
    connection.execute(UNTAG, {"key": question})
    if found.tags:
        row = {"rank": found.rank, "groups": found.groups, "bits": found.bits, "question": question}
        connection.execute(sa.insert(tables.TAGS), [row | {"tag": tag} for tag in found.tags])
    if not noted:
        connection.execute(TAGGED, {"key": question})


def holding(connection: sa.Connection, sought: Sequence[Tags], most: int) -> list[str]:
    """Return the sharpest questions that may hold all groups that are sought; the work does not grow with the books.

    Args:
        connection: a reader's.
        sought: ways to look, all of the same groups: by some of the groups, of which the rarest is followed; each way
            that has one tag only is followed, too.
        most: how many questions at most, of each way.
    """
    found: list[str] = []
    for way in sought:
        rarest = way.tags[0]
        if len(way.tags) > 1:
            rarest = min((connection.execute(MANY_TAGGED, {"tag": tag}).scalar_one(), tag) for tag in way.tags)[1]
        facts: dict[str, Any] = {"tag": rarest, "least": way.groups, "wanted": way.bits, "most": most}
        found += connection.execute(HOLDING, facts).scalars()
    return found


def untagged(connection: sa.Connection, first: str) -> list[str]:
    """Return the stored questions that begin so and were never tagged: those of older formats."""
    return list(connection.execute(UNTAGGED, {"first": first, "end": first + chr(sys.maxunicode)}).scalars())
