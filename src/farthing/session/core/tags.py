"""By what a stored question is found by those that it may answer: its groups, as numbers.

A question answers another only of its own family, and only if it holds every group that the other asks for. So a tag is
a hash of a family and one group. What a tag finds is read and compared: tags are hints.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import LedgerError
from farthing.ledger.tags import NONE, Tags
from farthing.mechanisms.gaussian import MOST_GRAINS
from farthing.session.core.records import keys_from_bytes, listed_of

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY: Final = 32
"""How many letters of a question's identity tell its family."""

MOST_GROUPS: Final = 256
"""A question of more groups has one tag that says so."""

_ASKED: Final = 4  # so many groups are looked for, of which the rarest is followed
_BITS: Final = 62
_EVERY: Final = (1 << _BITS) - 1
_MANY: Final = "more groups than are listed"


def tags_of(question: str, blob: bytes) -> Tags:
    """Return the tags of what is stored of a question: none where other questions are not answered from it."""
    try:
        groups, least, listed = listed_of(blob)
    except LedgerError:  # of another kind
        return NONE
    if not listed:
        return NONE
    family, rank = question[:FAMILY], -min(least, MOST_GRAINS)
    if groups > MOST_GROUPS:
        return Tags((_hash(family, _MANY),), rank, groups, _EVERY)
    keys = keys_from_bytes(listed)
    tags = _tags(family, keys)
    return Tags(tuple(sorted(set(tags))), rank, len(keys), _bits(tags))


def sought(family: str, keys: pa.Table) -> list[Tags]:
    """Return the ways to look for what holds these groups: by a few of them, and among what holds many groups."""
    some = _tags(family, keys.slice(0, MOST_GROUPS))
    few = tuple(dict.fromkeys(some))[:_ASKED]
    many = Tags((_hash(family, _MANY),), groups=len(keys))
    return [Tags(few, groups=len(keys), bits=_bits(some)), many] if len(keys) <= MOST_GROUPS else [many]


def _tags(family: str, keys: pa.Table) -> list[int]:
    """Return the tag of each group."""
    names = sorted(keys.column_names)
    kinds = [f"{name} {keys.schema.field(name).type}" for name in names]
    columns = [keys.column(name).to_pylist() for name in names]
    return [_hash(family, kinds, [_plain(value) for value in row]) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> str:
    """Return a value as text, the same for values that are one key."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def _bits(tags: list[int]) -> int:
    """Return a set of small numbers, as bits, that holds that of every subset of the groups."""
    bits = 0
    for tag in tags:
        bits |= 1 << tag % _BITS
    return bits


def _hash(*facts: object) -> int:
    """Return a number below 2^60."""
    return int(hashlib.sha256(repr(facts).encode()).hexdigest()[:15], 16)
