"""Which column a name means: the tables of a question, their aliases and their columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.query.expressions import Column, Scalar
from farthing.query.rounding import UNROUNDED
from farthing.query.schema import COLUMNS, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.sql.text import Node, SqlText

OWN_SCHEMAS: Final = ("public", "main")
"""What may stand before the name of a table, as servers have it."""

OWN_DATABASE: Final = "farthing"
"""What may stand before that: the database that clients of a server see."""

Found: TypeAlias = "tuple[Place, str, Scalar]"
"""A column: its table, its name there, and what it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """One table of a question, or a subquery.

    Attributes:
        table: its name; that of a subquery is its alias, "" without one.
        alias: the alias of a table in this question, or None.
        scope: the columns that expressions may have because of it, under their names there.
        columns: what each of its own columns is, by name; a name of several columns cannot be written.
        own: the columns of the protected table, if it is that or a subquery of it.
    """

    table: str
    alias: str | None
    scope: Schema
    columns: tuple[tuple[str, Scalar], ...]
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: str, alias: str | None, schema: Schema, *, own: bool = True) -> Place:
        """Return the place of a table.

        Args:
            table: its name.
            alias: its name in this question, or None.
            schema: its columns.
            own: whether it is the protected table that is asked; the columns of others are named "table.column".
        """
        full = {name: name if own else f"{table}.{name}" for name in schema.names}
        scope = Schema(tuple((full[name], kind) for name, kind in schema.columns))
        columns = tuple((name, Column(full[name])) for name in schema.names)
        return cls(table, alias, scope, columns, schema.names if own else ())

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
    _found: Mapping[str, list[Found]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", Schema(tuple(c for place in self.places for c in place.scope.columns)))
        found: defaultdict[str, list[Found]] = defaultdict(list)
        for place in self.places:
            for name, scalar in place.columns:
                found[name.casefold()].append((place, name, scalar))
        object.__setattr__(self, "_found", found)

    @property
    def taken(self) -> set[str]:
        """The names of all columns, in one case."""
        return set(self._found)

    def column(self, source: SqlText, node: Node) -> Scalar:
        """Return what a column of the text is; unquoted names may differ in case.

        Raises:
            UnsupportedQuery: an unknown column, with the nearest match; an unknown table; a name of several columns.
        """
        return self.found(source, node)[1]

    def found(self, source: SqlText, node: Node) -> tuple[str, Scalar]:
        """Return the name that a column of the text has in its table, and what it is.

        Raises:
            UnsupportedQuery: an unknown column, with the nearest match; an unknown table; a name of several columns.
        """
        identifier, table = node.this, node.args.get("table")
        wanted = str(identifier.name)
        if table is not None and not any(place.answers_to(table.name) for place in self.places):
            known = ", ".join(repr(place.table) for place in self.places)
            raise source.refuse(f"table {table.name!r}", f"columns belong to {known}", node)
        same = [one for one in self._found.get(wanted.casefold(), ()) if table is None or one[0].answers_to(table.name)]
        exact = [one for one in same if one[1] == wanted]
        chosen = exact or ([] if identifier.args.get("quoted") else same)
        if len({id(place) for place, _, _ in chosen}) > 1 and wanted.casefold() in self.merged:
            chosen = chosen[:1]
        if len(chosen) > 1:
            written = " or ".join(dict.fromkeys(f"{place.alias or place.table}.{name}" for place, name, _ in chosen))
            advice = f"write {written}" if " or " in written else f"two columns are called {wanted[:60]}: rename one"
            raise source.refuse(f"ambiguous column {wanted!r}", advice, node)
        if not chosen:
            raise self._unknown(source, node, wanted)
        return chosen[0][1], chosen[0][2]

    def _unknown(self, source: SqlText, node: Node, wanted: str) -> Exception:
        """Return the refusal of an unknown column, with the nearest match."""
        names = [name for place in self.places for name, _ in place.columns if not name.endswith(UNROUNDED)]
        near = get_close_matches(wanted[:100], names, n=1, cutoff=0.5) or [
            name for name in names if name.casefold() == wanted.casefold()
        ]
        advice = f"did you mean {near[0]!r}?" if near else "the columns are " + ", ".join(names[:20])
        if node.this.args.get("quoted"):
            advice += "; texts are written in single quotes"
        return source.refuse("unknown column", advice, node, got=wanted[:100], rule=COLUMNS)
