"""FROM, JOIN and WITH: the protected table, subqueries of it, and the tables beside it that its owner declared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from farthing.query.expressions import And, Column, Compare, Expression, Operator, all_of, check
from farthing.query.joins import Join
from farthing.sql.names import Names, Place
from farthing.sql.per_unit import GATHERED, beside, makes_rows, named_rows, per_unit_rows
from farthing.sql.rows import Flat
from farthing.sql.subqueries import (
    MOST_MADE,
    aggregated,
    alias_of,
    asks,
    check_clauses,
    check_growth,
    check_question,
    check_subquery,
    named_subqueries,
    plain_table,
    projected,
    unwrapped,
)
from farthing.sql.translator import Translator
from farthing.sql.unions import selects, stacked_rows
from farthing.sql.windows import WINDOWED, has_windows, windowed_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.per_unit import Derived
    from farthing.sql.rows import Owned
    from farthing.sql.text import Node, SqlText


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads FROM, JOIN and WITH.

    Attributes:
        source: the text.
        owned: what the owner declared.
        known: the tables of WITH, by their names in one case.
        renamed: the names of their columns, where they are given.
        later: names of WITH that are not read yet, in one case: of what is read, and what comes after it.
        made: what each subquery with GROUP BY, windows or UNION ALL stands for, by its node: read once, however often
            it is named.
    """

    source: SqlText
    owned: Owned
    known: Mapping[str, Flat | Node] = field(default_factory=dict)
    renamed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    made: dict[int, Flat] = field(default_factory=dict)

    def scoped(self, select: Node) -> TableReader:
        """Return a reader that knows the tables of a SELECT's own WITH.

        A subquery with aggregates is known as its node: nothing but a question's answer comes of it.

        Raises:
            UnsupportedQuery: a recursive one, a name that a table has, or what no subquery may be.
        """
        reader = self
        tables = named_subqueries(select, self.source)
        for number, (name, node, renamed) in enumerate(tables):
            later = frozenset(other.casefold() for other, _, _ in tables[number:])
            own = {table.casefold() for table in (self.owned.table, *self.owned.tables)}
            if name.casefold() in own:
                raise self.source.refuse(
                    f"WITH of the name {name!r}", "a table has that name: choose another", _named(node)
                )
            if name.casefold() in reader.known:
                raise self.source.refuse(f"WITH of the name {name!r} twice", "choose another name", _named(node))
            found = replace(reader, later=later).of_with(node, name, renamed)
            names = {**reader.renamed, name.casefold(): renamed}
            reader = replace(reader, known={**reader.known, name.casefold(): found}, renamed=names)
        return reader

    def of_with(self, select: Node, name: str, renamed: tuple[str, ...]) -> Flat | Node:
        """Return what a table of WITH is: rows, or its SELECT if that is a question."""
        return select if self._asks(select) else self.subquery(select, name, renamed)

    def gathered(self, select: Node) -> Flat:
        """Return the rows of which a subquery makes rows of units: of any table that carries the unit."""
        clause = select.args.get("from_") or select.args.get("from")
        if clause is None or self.owned.unit.column is None:
            return self.rows(select, own=False)
        table = unwrapped(clause.this)
        if type(table).__name__ != "Table" or table.args.get("db"):
            return self.rows(select, own=False)
        folded = {name.casefold(): name for name in self.owned.tables if name not in self.owned.public}
        name = folded.get(str(table.name).casefold())
        if name is None or str(table.name).casefold() in self.known:
            return self.rows(select, own=False)
        plain_table(self.source, table, self.owned.table, "FROM")
        alias = str(clause.this.alias) or str(table.alias) or None
        base = Flat(name, Names((Place.of(name, alias, self.owned.tables[name]),)))
        return self._left(select, base)

    def rows(self, select: Node, *, own: bool = True) -> Flat:
        """Return the rows that a SELECT is of, as its WHERE leaves them.

        Args:
            select: the SELECT, whose WITH is known.
            own: whether only rows of the protected table will do.

        Raises:
            UnsupportedQuery: another table, a join that is none of the two kinds, or one without the unit column.
        """
        clause = select.args.get("from_") or select.args.get("from")
        if clause is None:
            raise self.source.refuse("SELECT without FROM", f"write FROM {self.owned.table}", select)
        joins = select.args.get("joins") or ()
        rows = self._source(clause.this, "FROM")
        if rows.table != self.owned.table and rows.source is None and (own or joins):
            named = f"table {rows.table!r}"
            raise self.source.refuse(named, f"the protected table is {self.owned.table!r}", clause.this)
        return self._left(select, rows)

    def _left(self, select: Node, rows: Flat) -> Flat:
        """Return the rows that the joins and the WHERE of a SELECT make of those of its FROM."""
        check_growth(select, rows.names, self.source)
        for node in select.args.get("joins") or ():
            rows = self._joined(rows, node)
        where = select.args.get("where")
        if where is None:
            return rows
        return replace(rows, where=self._both(rows, Translator(self.source, rows.names).whole(where.this), where.this))

    def subquery(self, select: Node, alias: str, renamed: tuple[str, ...] = ()) -> Flat:
        """Return the rows of a subquery: projections and filters of those of its FROM, each from one row.

        Raises:
            UnsupportedQuery: whatever makes one row of several, or drops rows for what others have.
        """
        if makes_rows(select) or has_windows(select) or type(select).__name__ == "Union":
            if id(select) not in self.made:
                self.made[id(select)] = self._made(select, renamed)
            return named_rows(self.made[id(select)], alias)
        check_subquery(select, self.source)
        rows = self.scoped(select).rows(select, own=False)
        columns = projected(select, Translator(self.source, rows.names, "a subquery"), renamed)
        place = Place(alias, None, rows.names.schema, columns, rows.names.places[0].own)
        return replace(rows, names=Names((place,)))

    def _made(self, select: Node, renamed: tuple[str, ...]) -> Flat:
        """Return the rows of a subquery that no flat question says: with GROUP BY, windows, or UNION ALL."""
        source, owned = self.source, self.owned
        if type(select).__name__ == "Union":
            reader = self.scoped(select)
            parts = [reader.branch(part, place) for place, part in enumerate(selects(select, source))]
            derived = tuple(each for rows in parts for each in rows.derived)
            return stacked_rows(select, source, owned, parts, (self._name(select, derived), renamed))
        windows = not makes_rows(select)
        check_clauses(select, source, WINDOWED if windows else GATHERED)
        below = self.scoped(select).gathered(select)
        make = windowed_rows if windows else per_unit_rows
        return make(select, source, owned, below, (self._name(select, below.derived), renamed))

    def _name(self, select: Node, derived: tuple[Derived, ...]) -> str:
        """Return a name for the rows that a subquery makes; refuse too many of them."""
        if len(self.made) >= MOST_MADE:
            found = f"more than {MOST_MADE} subqueries with GROUP BY, windows or UNION ALL"
            raise self.source.refuse(found, "ask for less", select)
        return self.owned.free(len(self.made) + 1, derived)

    def branch(self, select: Node, place: int) -> Flat:
        """Return the rows of one SELECT of UNION ALL, of any table that carries the unit; the first names columns."""
        if makes_rows(select) or has_windows(select):
            return self.subquery(select, "")
        check_subquery(select, self.source)
        rows = self.scoped(select).gathered(select)
        columns = projected(select, Translator(self.source, rows.names, "a subquery"), bare=place > 0)
        return replace(rows, names=Names((Place("", None, rows.names.schema, columns, rows.names.places[0].own),)))

    def question(self, select: Node) -> tuple[Node, str] | None:
        """Return the question that is all of a SELECT's FROM, and its name there; None where rows are.

        A subquery is a question where it has aggregates, or is of one that has: what is done to it is done to answers.
        """
        clause = select.args.get("from_") or select.args.get("from")
        if clause is None or select.args.get("joins"):
            return None
        node, alias = unwrapped(clause.this), str(clause.this.alias)
        if type(node).__name__ == "Table":
            found = None if node.args.get("db") else self.known.get(str(node.name).casefold())
            return None if found is None or isinstance(found, Flat) else (found, alias or str(node.alias_or_name))
        return (node, alias) if self._asks(node) else None

    def _asks(self, select: Node) -> bool:
        """Return whether a subquery is a question, or of one."""
        if type(select).__name__ != "Select":
            return False
        return aggregated(select) or self.question(select) is not None

    def _source(self, node: Node, word: str) -> Flat:
        """Return the rows of what FROM or JOIN names: a table, a table of WITH, or a subquery."""
        select = unwrapped(node)
        alias, renamed = alias_of(node, self.source)
        if type(select).__name__ != "Table":
            return self.subquery(select, alias or "", renamed)
        name = plain_table(self.source, select, self.owned.table, word)
        alias = alias or alias_of(select, self.source)[0]
        known = None if select.args.get("db") else self.known.get(name.casefold())
        if known is None:
            return self._table(name, alias, select, word)
        if not isinstance(known, Flat):
            before = dict(takewhile(lambda item: item[0] != name.casefold(), self.known.items()))
            later = frozenset(self.known) - frozenset(before)
            return replace(self, known=before, later=later).subquery(
                known, alias or name, self.renamed.get(name.casefold(), ())
            )
        place = known.names.places[0]
        return replace(known, names=Names((replace(place, table=alias or name),)))

    def _table(self, name: str, alias: str | None, node: Node, word: str) -> Flat:
        """Return the rows of a table that the owner declared."""
        schemas = {**self.owned.tables, self.owned.table: self.owned.schema}
        folded = {table.casefold(): table for table in schemas}
        table = name if name in schemas else folded.get(name.casefold(), "")
        if table == self.owned.table and word == "FROM":
            return Flat(table, Names((Place.of(table, alias, self.owned.schema),)))
        if table and table != self.owned.table:
            return Flat(table, Names((Place.of(table, alias, schemas[table], own=False),)))
        if name.casefold() in self.later:
            advice = "a table of WITH may read only those before it"
            raise self.source.refuse(f"WITH that reads {name!r}", advice, node)
        listed = ", ".join(sorted(self.owned.tables)[:20])
        if word == "FROM":
            raise self.source.refuse(f"table {name!r}", f"the protected table is {self.owned.table!r}", node)
        advice = f"the tables that may be joined are {listed}" if listed else "the owner declared no table to join"
        raise self.source.refuse(f"JOIN of table {name!r}", advice, node)

    def _joined(self, rows: Flat, node: Node) -> Flat:
        """Return rows after a join; what filters the joined table joins its condition, which is the same."""
        left = _side(self.source, node)
        right = beside(self._source(node.this, "JOIN"))
        self._check_right(rows, right, node, left=left)
        before, joined = rows.names, right.names.places[0]
        names = Names((*before.places, joined), before.merged)
        _check_names(self.source, node, names)
        using = node.args.get("using")
        if using:
            on = _using(self.source, using, (before, joined, names))
            names = Names(names.places, names.merged | {str(column.name).casefold() for column in using})
        else:
            on = _condition(self.source, node, names)
        if right.where is not None:
            on = self._both(replace(right, names=names), on, node.this)
        public = right.source is None and right.table in self.owned.public
        if not public:
            _check_unit(self.source, node, self.owned, on, (rows, right.table))
        join = Join(right.table, on, left=left, public=public)
        derived = (*rows.derived, *(each for each in right.derived if each not in rows.derived))
        return replace(rows, names=names, joins=(*rows.joins, join), derived=derived)

    def _check_right(self, rows: Flat, right: Flat, node: Node, *, left: bool) -> None:
        """Refuse what cannot stand on the right of a join: the protected table, a table twice, and joined tables."""
        refuse, place = self.source.refuse, right.names.places[0]
        if right.table == self.owned.table or right.joins:
            advice = "join tables that the owner declared, each by itself, to the protected table"
            raise refuse(f"JOIN of a subquery of {right.table!r}", advice, node.this)
        name = (place.alias or place.table).casefold()
        taken = [word.casefold() for place in rows.names.places for word in (place.table, place.alias) if word]
        if name in taken or right.table in (rows.table, *(join.table for join in rows.joins)):
            own = place.alias is None and (name in taken or right.source is not None)
            shown = place.table if own else right.table
            raise refuse(f"table {shown!r} twice", "join each table once; declare it under a second name", node.this)
        if left and any(not isinstance(scalar, Column) for _, scalar in place.columns):
            advice = "select columns there, and compute with them above the join"
            raise refuse("a value computed on the right of LEFT JOIN", advice, node.this)

    def _both(self, rows: Flat, condition: Expression, node: Node) -> Expression:
        """Return the condition that both hold: that of rows, and another one."""
        if rows.where is None:
            return condition
        parts = [part for one in (condition, rows.where) for part in (one.operands if isinstance(one, And) else (one,))]
        both = And(tuple(parts))
        with self.source.located(node):
            check(both, rows.names.schema)
        return both


def innermost(select: Node, reader: TableReader) -> tuple[Node, tuple[tuple[Node, str], ...], TableReader]:
    """Return the SELECT that asks, the ones above it that only show its answer, inside out, and what reads its FROM."""
    above: list[tuple[Node, str]] = []
    while not asks(select):
        found = reader.question(select)
        if found is None:
            break
        above.append((select, found[1]))
        select = found[0]
        reader = reader.scoped(select)
    if above:
        check_question(select, reader.source)
    return select, tuple(reversed(above)), reader


def _side(source: SqlText, node: Node) -> bool:
    """Return whether rows without a match are kept; refuse all joins but JOIN and LEFT JOIN."""
    side, kind, method = (str(node.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    plain = side in ("", "LEFT") and kind in ("", "INNER", "OUTER") and not method
    bare = not node.args.get("on") and not node.args.get("using")
    if not plain:
        words = " ".join(word for word in (method, side, kind) if word)
        raise source.refuse(f"{words} JOIN", "write JOIN ... ON, or LEFT JOIN ... ON", node.this)
    if bare:
        raise source.refuse("JOIN without ON", "write JOIN table ON condition", node.this)
    for part, value in node.args.items():
        if value and part not in ("this", "side", "kind", "on", "using"):
            raise source.refuse(f"JOIN with {part}", "write JOIN table ON condition", node.this)
    return side == "LEFT"


def _check_names(source: SqlText, node: Node, names: Names) -> None:
    """Refuse a join after which a quoted column and a joined one would have one name."""
    every = names.schema.names
    if len(set(every)) < len(every):
        raise source.refuse("a column that is named like a joined one", "rename one of the two tables", node.this)


def _condition(source: SqlText, node: Node, names: Names) -> Expression:
    """Return the condition of ON."""
    return Translator(source, names, "ON").whole(node.args["on"])


def _named(select: Node) -> Node:
    """Return the name that WITH gives a subquery, for places."""
    node = select
    while type(node).__name__ != "CTE" and node.parent is not None:
        node = node.parent
    return node.args.get("alias") or select


def _using(source: SqlText, using: list[Any], of: tuple[Names, Place, Names]) -> Expression:
    """Return the equality of the columns of USING: of the names before a join, the joined table, and all names."""
    from sqlglot import exp

    before, joined, names = of
    parts = []
    for identifier in using:
        node = exp.Column(this=identifier.copy())
        equal = Compare(before.column(source, node), Operator.EQ, Names((joined,)).column(source, node))
        with source.located(node):
            check(equal, names.schema)
        parts.append(equal)
    return all_of(*parts)


def _check_unit(source: SqlText, node: Node, owned: Owned, on: Expression, of: tuple[Flat, str]) -> None:
    """Refuse a join of two protected tables that does not keep each unit's rows to itself.

    Guarantee: every joined row is of one unit: the rows of both tables that meet carry the same unit.
    Proof: [design, bound last] the equality of both unit columns is one of the conditions that must all hold.
    Assumes: tables that are not declared public carry the unit column.
    Rounds: nothing.
    """
    unit, (rows, table) = owned.unit.column, of
    if unit is None:
        raise source.refuse(
            f"JOIN of the protected table {table!r}", "with one row as the unit, join public tables only", node.this
        )
    mine = {Column(unit), *(Column(f"{join.table}.{unit}") for join in rows.joins if not join.public)}
    own = Column(f"{table}.{unit}")
    parts = on.operands if isinstance(on, And) else (on,)
    if not any(
        isinstance(part, Compare)
        and part.operator is Operator.EQ
        and ((part.left == own and part.right in mine) or (part.right == own and part.left in mine))
        for part in parts
    ):
        raise source.refuse(
            f"JOIN of {table!r} without the unit column",
            f"rows of both belong to units: write ON {owned.table}.{unit} = {table}.{unit}, and more with AND",
            node.this,
        )
