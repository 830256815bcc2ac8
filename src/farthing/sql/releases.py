"""HAVING, ORDER BY, LIMIT and OFFSET: what is done to the released answer, in terms of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from farthing.errors import FarthingError
from farthing.query.aftermath import Aftermath
from farthing.query.aggregates import NamedAggregate
from farthing.query.expressions import And, Column, Expression, Scalar, columns_of, rewrite
from farthing.query.rounding import UNROUNDED
from farthing.query.running_total import OverGroups, RunningTotal
from farthing.query.schema import Schema, Type
from farthing.sql.aggregates import Aggregates, Read, inner
from farthing.sql.arithmetic import is_arithmetic, read_arithmetic
from farthing.sql.computed import check_whole, computed
from farthing.sql.grouping_sets import is_level
from farthing.sql.limit import read_limit, read_orders
from farthing.sql.listing import level_of, read_number, within
from farthing.sql.names import Names, Place
from farthing.sql.rounded import peeled
from farthing.sql.total import read_share, total_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.query.aggregates import Aggregate
    from farthing.query.rounding import Rounding
    from farthing.sql.asked import Asked
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node, SqlText

ENDS = ("_lower", "_upper")
"""The ends of an interval are answer columns, too: n_lower and n_upper."""

EVERY = tuple(end + before for before in ("", UNROUNDED) for end in ("", *ENDS))
"""What is added to the name of an aggregate: for its number and its ends, as they are shown and before rounding."""


@dataclass(frozen=True, slots=True)
class ReleasedColumns:
    """The columns of an answer.

    Attributes:
        columns: the names of the SELECT list, in its order.
        groups: (name, scalar) of every grouping column.
        outputs: the aggregates.
        aggregates: reads an aggregate in HAVING or ORDER BY.
        levels: (name, columns) of each GROUPING.
        select: the question.
        bodies: what each column is in the text, by its name in small letters.
        first: (name, scalar) of every grouping column as the question itself names it: bodies have these names.
        rounded: what is done to columns that are shown in fewer digits, by their names.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[str, Scalar], ...]
    outputs: tuple[NamedAggregate, ...]
    aggregates: Aggregates
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    select: Node | None = None
    bodies: Mapping[str, Node] = field(default_factory=dict)
    first: tuple[tuple[str, Scalar], ...] = ()
    rounded: Mapping[str, Rounding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (*self.columns, *dict(self.groups), *(output.name for output in self.outputs))
        for name in names:
            if name.casefold().endswith(UNROUNDED):
                what, advice = f"a name that ends in {UNROUNDED.strip()!r}", "numbers that are rounded have such names"
                raise self.aggregates.reader.source.refuse(what, f"{advice}: choose another", self.select)

    @property
    def names(self) -> Names:
        """What names mean after the release."""
        reader = self.aggregates.reader
        kinds = {name: reader.type(scalar) for name, scalar in self.groups}
        kinds |= {name: Type.INTEGER for name, _ in self.levels}
        for output in self.outputs:
            kinds[output.name] = Type.FLOAT
            for end in EVERY if output.name in self.rounded else ENDS:
                kinds.setdefault(output.name + end, Type.FLOAT)
        return Names((Place.of("the answer", None, Schema.of(kinds)),))

    def stands_for(self, node: Node) -> Scalar | None:  # noqa: PLR0911  # one a kind of node
        """Return the answer column that a node is: an aggregate of the SELECT list, or a grouping expression.

        Raises:
            UnsupportedQuery: an aggregate that is not in the SELECT list.
        """
        body, rounding = peeled(node, self.aggregates.reader.source)
        if rounding is not None:
            return self._rounded(body, rounding)
        if self.select is not None and total_in(node) is not None:
            return self._share(node, self.select)
        if is_arithmetic(node):
            return self._computed(node)
        if inner(node) is not None:
            return self._aggregate(node)
        if is_level(node):
            return self._level(node)
        kind = type(node).__name__
        if kind in ("Literal", "Boolean", "Paren", "Null") or (kind == "Column" and self._is_answer(node)):
            return None
        try:
            scalar = self.aggregates.reader.scalar(node)
        except FarthingError:  # no expression of the table: its parts may be answer columns
            return None
        text = scalar.canonical()
        return next((Column(name) for name, group in self.groups if group.canonical() == text), None)

    def _is_answer(self, node: Node) -> bool:
        """Return whether a column is named as the answer names it."""
        known = {name.casefold() for name, _ in self.groups}
        known |= {name.casefold() for name, _ in self.levels}
        known |= {output.name.casefold() + end for output in self.outputs for end in ("", *ENDS)}
        return node.args.get("table") is None and str(node.name).casefold() in known

    def _level(self, node: Node) -> Scalar:
        """Return the column of a GROUPING(...)."""
        reader = self.aggregates.reader
        columns = level_of(node, reader, {scalar.canonical(): name for name, scalar in self.groups})
        found = next((name for name, of in self.levels if of == columns), None)
        if found is None:
            raise reader.source.refuse("GROUPING that is not selected", "put it in the SELECT list", node)
        return Column(found)

    def _rounded(self, body: Node, rounding: Rounding) -> Scalar | None:
        """Return the column of a rounded number of the SELECT list; None for another, which is rounded afterwards."""
        found = self.stands_for(body)
        name = found.name.removesuffix(UNROUNDED) if isinstance(found, Column) else ""
        return Column(name) if self.rounded.get(name) == rounding else None

    def _column(self, name: str) -> Column:
        """Return the column of an aggregate, as it was before it was rounded."""
        return Column(name + UNROUNDED if name in self.rounded else name)

    def _share(self, node: Node, select: Node) -> Scalar | None:
        """Return the column of a share of a total; None for other arithmetic, whose parts may be."""
        reader, named = self.aggregates.reader, {scalar.canonical(): name for name, scalar in self.groups}
        asked = within(read_share(node, self.aggregates, select), named, reader)
        same = (one.name for one in self.outputs if _told_alike(one.aggregate, asked))
        return next((self._column(name) for name in same), None)

    def _computed(self, node: Node) -> Scalar | None:
        """Return the column of arithmetic that is in the SELECT list; None for other arithmetic, whose parts may be."""
        try:
            text = read_arithmetic(node, self.aggregates).aggregate.canonical()
        except FarthingError:  # no one aggregate: it is computed of answer columns
            return None
        same = (output.name for output in self.outputs if output.aggregate.canonical() == text)
        return next((self._column(name) for name in same), None)

    def _aggregate(self, node: Node) -> Scalar | None:
        """Return the column of an aggregate; None for a ratio that is none, whose parts may be."""
        text = self.aggregates.read(node).aggregate.canonical()
        for output in self.outputs:
            if output.aggregate.canonical() == text:
                return self._column(output.name)
        if type(inner(node)).__name__ == "Div":
            return None
        raise self.aggregates.reader.source.refuse(
            "an aggregate that is not selected", "put it in the SELECT list, so that it is released", node
        )


def _told_alike(one: Aggregate, other: Aggregate) -> bool:
    """Return whether two aggregates are the same number: shares of a total times the same factor, too."""
    return one.canonical() == other.canonical() and getattr(one, "factor", 1) == getattr(other, "factor", 1)


def read_aftermath(select: Node, released: ReleasedColumns) -> Aftermath:
    """Return what a question does to its answer.

    Raises:
        UnsupportedQuery: anything that is not a function of the answer's columns.
    """
    reader = released.aggregates.reader.naming(released.names, released.stands_for)
    conditions: list[Expression] = []
    for clause in ("having", "qualify"):
        if (node := select.args.get(clause)) is not None:
            conditions.append(reader.within(clause.upper()).whole(node.this))
            with reader.source.located(node.this):
                Aftermath(conditions[-1])
    condition = And(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)
    order = select.args.get("order")
    keys = read_orders(order, reader, released.columns)
    limit, offset = read_limit(reader.source, select)
    return Aftermath(condition, keys, limit, offset, tuple(released.rounded.items()))


def shown(asked: Asked, select: Node, alias: str, released: ReleasedColumns) -> tuple[Asked, ReleasedColumns]:
    """Return a question whose answer a SELECT above it shows: some of its columns and groups, in an order.

    Args:
        asked: the question below.
        select: the SELECT above.
        alias: the name of the question there.
        released: the columns of its answer.

    Raises:
        UnsupportedQuery: anything that is not a column of the answer, a condition on it, or an order.
    """
    source = released.aggregates.reader.source
    _check_above(select, source)
    folded = [name.casefold() for name in released.columns]
    if len(set(folded)) < len(folded):
        alike = next(name for name in folded if folded.count(name) > 1)
        what = "columns whose names differ in capitals only"
        raise source.refuse(what, "give each a name of its own", released.bodies.get(alike, select))
    below = released
    asked, released, made = _computed_above(asked, released, select, alias)
    hidden = _hidden(below, released)
    meant = {name.casefold(): before for name, before in hidden.items()}
    reader = released.aggregates.reader.naming(
        _above(released, alias), lambda node: _called_above(node, meant, meant, alias)
    )
    items = _columns_above(select, reader, released, made)
    new_ones = [
        (name, new) for name, new in items if name in made.values() or new.casefold() not in reader.schema.names
    ]
    called = meant | {(new + end).casefold(): name + end for name, new in new_ones for end in ("", *ENDS)}
    sorts = reader.naming(_above(released, alias), lambda node: _called_above(node, called, meant, alias))
    columns = tuple(name for name, _ in items)
    above = replace(released, columns=columns)
    where, order = select.args.get("where"), select.args.get("order")
    condition = None if where is None else reader.within("WHERE").whole(where.this)
    keys = read_orders(order, sorts, above.columns)
    limit, offset = read_limit(source, select)
    before = _with_columns(asked.aftermath, hidden)
    read = columns_of(*(key.key for key in keys), *(() if condition is None else (condition,)))
    if _read_twice(asked.aftermath, read, below, hidden):
        advice = "round it once, or give the second one a name of its own"
        raise source.refuse("a condition on a number that is rounded twice", advice, select)
    cut = before.limit is not None or before.offset > 0
    if cut and (condition is not None or keys or offset):
        raise source.refuse("WHERE, ORDER BY or OFFSET of an answer that LIMIT cut", "write LIMIT above them", select)
    parts = tuple(part for part in (before.having, condition) if part is not None)
    having = And(parts) if len(parts) > 1 else next(iter(parts), None)
    most = [one for one in (before.limit, limit) if one is not None]
    with source.located(select):
        rounded = tuple(released.rounded.items())
        after = Aftermath(having, keys or before.order, min(most, default=None), offset or before.offset, rounded)
    told = replace(asked, aftermath=after, columns=columns), above
    new = {name: alias for name, alias in items if name != alias}
    return _renamed(*told, new, select) if new else told


def _renamed(
    asked: Asked, released: ReleasedColumns, new: dict[str, str], select: Node
) -> tuple[Asked, ReleasedColumns]:
    """Return a question whose columns have new names, and the columns of its answer."""
    moved = {name + end: alias + end for name, alias in new.items() for end in EVERY}

    def name(old: str) -> str:
        return moved.get(old, old)

    groups = tuple((name(old), scalar) for old, scalar in released.groups)
    outputs = tuple(
        replace(output, name=name(output.name), aggregate=_over(output.aggregate, name)) for output in asked.outputs
    )
    levels = tuple((name(old), tuple(map(name, of))) for old, of in asked.levels)
    every = [one.casefold() for one in (*dict(groups), *(output.name for output in outputs), *dict(levels))]
    if len(set(every)) < len(every):
        advice = "another column of the answer has that name: choose another"
        raise released.aggregates.reader.source.refuse("a new name that is taken", advice, select)
    rounded = tuple((name(old), how) for old, how in asked.aftermath.rounded)
    after = replace(_with_columns(asked.aftermath, moved), rounded=rounded)
    columns = tuple(map(name, asked.columns))
    made = replace(
        asked,
        by=tuple(map(name, asked.by)),
        groupings=tuple((one, scalar) for one, scalar in groups if scalar != Column(one)),
        outputs=outputs,
        levels=levels,
        sets=tuple(tuple(map(name, some)) for some in asked.sets),
        aftermath=after,
        columns=columns,
    )
    bodies = {name(old).casefold(): released.bodies[old.casefold()] for old in asked.columns}
    told = replace(
        released, columns=columns, groups=groups, outputs=outputs, levels=levels, bodies=bodies, rounded=dict(rounded)
    )
    return made, told


def _with_columns(aftermath: Aftermath, names: Mapping[str, str]) -> Aftermath:
    """Return an aftermath that reads columns of other names."""

    def written(node: Any) -> Any:
        return rewrite(node, lambda part: Column(names.get(part.name, part.name)) if isinstance(part, Column) else part)

    order = tuple(replace(key, key=written(key.key)) for key in aftermath.order)
    return replace(aftermath, having=None if aftermath.having is None else written(aftermath.having), order=order)


def _hidden(below: ReleasedColumns, released: ReleasedColumns) -> dict[str, str]:
    """Return the columns of an answer that a SELECT above it shows rounded, with what they were before."""
    names = {name for name, how in released.rounded.items() if how != below.rounded.get(name)}
    known = names & {output.name for output in below.outputs}
    return {name + end: name + end + UNROUNDED for name in known for end in ("", *ENDS)}


def _read_twice(before: Aftermath, above: frozenset[str], below: ReleasedColumns, hidden: Mapping[str, str]) -> bool:
    """Return whether a column is read as the question below rounded it, where the SELECT above rounds it once more."""
    known = {name + end for name in below.rounded for end in ("", *ENDS)}
    twice = {shown: was for shown, was in hidden.items() if shown in known}
    return bool(before.columns & twice.keys() or above & set(twice.values()))


def _over(aggregate: Aggregate, name: Callable[[str], str]) -> Aggregate:
    """Return an aggregate; what is told of several groups with the new names of the columns that it names."""
    if not isinstance(aggregate, OverGroups):
        return aggregate
    over = tuple(sorted(map(name, aggregate.over)))
    if isinstance(aggregate, RunningTotal):
        order = tuple(replace(key, column=name(key.column)) for key in aggregate.order)
        return replace(aggregate, over=over, order=order)
    return replace(aggregate, over=over)


def with_used(asked: Asked) -> Asked:
    """Return a question without the aggregates that a SELECT above it leaves out: nobody pays for them."""
    read = {*asked.columns, *asked.aftermath.columns}
    used = tuple(one for one in asked.outputs if read & {one.name + end for end in EVERY})
    return replace(asked, outputs=used or asked.outputs[:1])


def _above(released: ReleasedColumns, alias: str) -> Names:
    """Return what names mean above a question: the columns of its answer that are shown."""
    kinds = dict(released.names.schema.columns)
    seen = {name: kinds[name] for column in released.columns for end in EVERY if (name := column + end) in kinds}
    return Names((Place.of(alias, None, Schema.of(seen)),))


def _check_above(select: Node, source: SqlText) -> None:
    """Refuse clauses of a SELECT above a question that are not about its answer."""
    for part, value in select.args.items():
        clause = part.strip("_")
        if value and clause not in ("expressions", "from", "where", "with", "order", "limit", "offset", "hint"):
            advice = "show columns of the answer; compute with them afterwards"
            raise source.refuse(f"{clause.upper()} of an answer", advice, select)


def _computed_above(
    asked: Asked, released: ReleasedColumns, select: Node, alias: str
) -> tuple[Asked, ReleasedColumns, dict[int, str]]:
    """Return a question with what a SELECT above it computes of its columns, as aggregates of its own.

    Returns:
        the question, its columns, and the name of each item of the SELECT that is one of them now, by its identity.
    """
    source, found = released.aggregates.reader.source, dict[int, str]()
    outputs, bodies, rounded = list[NamedAggregate](), dict(released.bodies), dict(released.rounded)
    whole = {"*" if _is_star(node) else str(_body(node).name).casefold()
             for node in select.expressions if type(_body(node)).__name__ in ("Column", "Star")}  # fmt: skip
    for node in select.expressions:
        if type(node).__name__ != "Alias" or type(node.this).__name__ == "Column" or released.select is None:
            continue
        body = computed(node.this, released.bodies, select, alias, source)
        read = None if body is None else _number_above(body, released)
        if body is None or read is None:
            continue
        known = next((one.name for one in asked.outputs if _told_alike(one.aggregate, read.aggregate)), None)
        again = known in rounded and str(node.alias) != known
        if known is not None and read.rounding is not None and not again and not whole & {"*", known.casefold()}:
            found[id(node)], rounded[known] = known, read.rounding
            continue
        if known is None and total_in(body) is not None:
            check_whole(body, asked, select, source)
        name = str(node.alias)
        if name.casefold() in bodies:
            raise source.refuse("a new name that is taken", "choose another alias", node)
        outputs.append(NamedAggregate(name, read.aggregate))
        found[id(node)] = name
        bodies[name.casefold()] = body
        rounded |= {} if read.rounding is None else {name: read.rounding}
    every = (*asked.outputs, *outputs)
    columns = (*released.columns, *(output.name for output in outputs))
    made = replace(released, outputs=every, columns=columns, bodies=bodies, rounded=rounded)
    return replace(asked, outputs=every), made, found


def _number_above(body: Node, released: ReleasedColumns) -> Read | None:
    """Return what a SELECT above a question computes, in the words of the question; None where nothing is computed."""
    assert released.select is not None  # noqa: S101  # there is a question below
    reader, (plain, rounding) = released.aggregates.reader, peeled(body, released.aggregates.reader.source)
    total = total_in(plain) is not None
    if rounding is None and not total and not is_arithmetic(plain):
        return None
    read = read_number(body, released.aggregates, released.select)
    assert read is not None  # noqa: S101  # it has an aggregate
    if not total:
        return read
    named = {scalar.canonical(): group for group, scalar in released.first}
    now = {old: new for (old, _), (new, _) in zip(released.first, released.groups, strict=True)}
    return replace(read, aggregate=_over(within(read, named, reader), now.__getitem__))


def _called_above(node: Node, called: Mapping[str, str], below: Mapping[str, str], alias: str) -> Scalar | None:
    """Return the column that a name stands for: a new one, or one of the answer below that is shown rounded."""
    if type(node).__name__ != "Column":
        return None
    table, word = node.args.get("table"), str(node.name).casefold()
    if table is None:
        name = called.get(word)
    else:
        name = below.get(word) if str(table.name).casefold() == alias.casefold() else None
    return None if name is None else Column(name)


def _body(node: Node) -> Node:
    """Return an item of a SELECT list without its alias."""
    return node.this if type(node).__name__ == "Alias" else node


def _is_star(node: Node) -> bool:
    """Return whether an item of a SELECT list stands for all columns."""
    return type(node).__name__ == "Star" or (type(node).__name__ == "Column" and type(node.this).__name__ == "Star")


def _columns_above(
    select: Node, reader: NodeReader, released: ReleasedColumns, made: Mapping[int, str]
) -> list[tuple[str, str]]:
    """Return the columns of an answer that a SELECT above it names, with their names there."""
    found: list[tuple[str, str]] = []
    for node in select.expressions:
        body = _body(node)
        kind = type(body).__name__
        if _is_star(body):
            reader.only(body if kind == "Star" else body.this)
            found += [(name, name) for name in released.columns if name not in made.values()]
            continue
        if id(node) in made:
            found.append((made[id(node)], str(node.alias)))
            continue
        name = reader.named(body)[0] if kind == "Column" else ""
        if name not in released.columns:
            advice = (
                f"show columns of the answer, and compute with them afterwards: {', '.join(released.columns)[:200]}"
            )
            raise reader.source.refuse("a value computed of an answer", advice, node)
        found.append((name, name if body is node else str(node.alias)))
    if len({name for name, _ in found}) < len(found):
        raise reader.source.refuse("a column twice", "name each column once", select)
    return found
