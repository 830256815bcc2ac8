"""Which column a name means: the tables of a question, their aliases and their columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from farthing.query.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.sql.text import Node, SqlText


@dataclass(frozen=True, slots=True)
class Place:
    """One table of a question.

    Attributes:
        table: its name.
        alias: its name in this question, or None.
        schema: its columns.
        own: whether it is the protected table that is asked; the columns of others are named "table.column".
    """

    table: str
    alias: str | None
    schema: Schema
    own: bool = True

    def full(self, column: str) -> str:
        """Return the name of a column in expressions."""
        return column if self.own else f"{self.table}.{column}"

    def answers_to(self, word: str) -> bool:
        """Return whether a qualifier means this table; names differ in case, as SQL has it."""
        return word.casefold() in (self.table.casefold(), (self.alias or self.table).casefold())


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that the expressions of a question may name.

    Attributes:
        places: the tables, the protected one first.
        merged: columns that JOIN ... USING made one; unqualified, they are those of the first table.
        schema: the columns under their names in expressions.
    """

    places: tuple[Place, ...]
    merged: frozenset[str] = frozenset()
    schema: Schema = field(init=False, repr=False, compare=False)
    _found: Mapping[str, list[tuple[Place, str]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = ((place.full(name), kind) for place in self.places for name, kind in place.schema.columns)
        object.__setattr__(self, "schema", Schema(tuple(columns)))
        found: defaultdict[str, list[tuple[Place, str]]] = defaultdict(list)
        for place in self.places:
            for name in place.schema.names:
                found[name.casefold()].append((place, name))
        object.__setattr__(self, "_found", found)

    def column(self, source: SqlText, node: Node) -> str:
        """Return the name, in expressions, of a column of the text; unquoted names may differ in case.

        Raises:
            UnsupportedQuery: an unknown column, with the nearest match; an unknown table; a name of several columns.
        """
        identifier, table = node.this, node.args.get("table")
        wanted = str(identifier.name)
        if table is not None and not any(place.answers_to(table.name) for place in self.places):
            known = ", ".join(repr(place.table) for place in self.places)
            raise source.refuse(f"table {table.name!r}", f"columns belong to {known}", node)
        same = [
            (place, name)
            for place, name in self._found.get(wanted.casefold(), ())
            if table is None or place.answers_to(table.name)
        ]
        exact = [(place, name) for place, name in same if name == wanted]
        chosen = exact or ([] if identifier.args.get("quoted") else same)
        if len({id(place) for place, _ in chosen}) > 1 and wanted.casefold() in self.merged:
            chosen = chosen[:1]
        if len(chosen) > 1:
            written = " or ".join(f"{place.alias or place.table}.{name}" for place, name in chosen)
            raise source.refuse(f"ambiguous column {wanted!r}", f"write {written}", node)
        if not chosen:
            raise self._unknown(source, node, wanted)
        place, name = chosen[0]
        return place.full(name)

    def _unknown(self, source: SqlText, node: Node, wanted: str) -> Exception:
        """Return the refusal of an unknown column, with the nearest match."""
        names = [name for place in self.places for name in place.schema.names]
        near = get_close_matches(wanted[:100], names, n=1, cutoff=0.5) or [
            name for name in names if name.casefold() == wanted.casefold()
        ]
        advice = f"did you mean {near[0]!r}?" if near else "the columns are " + ", ".join(names[:20])
        if node.this.args.get("quoted"):
            advice += "; texts are written in single quotes"
        return source.refuse("unknown column", advice, node, got=wanted[:100])
