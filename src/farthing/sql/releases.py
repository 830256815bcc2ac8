"""HAVING, ORDER BY, LIMIT, OFFSET, and a SELECT above: what is done to the released answer, by its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farthing.query.aftermath import Aftermath
from farthing.query.comparison import ComputedNumber
from farthing.query.expressions import Column, Expression, all_of, columns_of, rewrite
from farthing.query.schema import Schema
from farthing.sql.arithmetic import is_arithmetic
from farthing.sql.computed import check_whole, computed
from farthing.sql.limit import read_limit, read_orders
from farthing.sql.listing import free_name, read_number
from farthing.sql.names import Names, Place
from farthing.sql.released_columns import ENDS, EVERY
from farthing.sql.released_numbers import Numbers, renamed_over, told_alike
from farthing.sql.rounded import peeled
from farthing.sql.rounded_above import called_above, hidden, read_twice
from farthing.sql.total import total_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from farthing.query.aggregates import NamedAggregate
    from farthing.sql.asked import Asked
    from farthing.sql.asked_numbers import Read
    from farthing.sql.nodes import NodeReader
    from farthing.sql.released_columns import ReleasedColumns
    from farthing.sql.text import Node, SqlText


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
    condition = all_of(*conditions) if conditions else None
    order = select.args.get("order")
    keys = read_orders(order, reader, released.columns)
    limit, offset = read_limit(reader.source, select)
    return Aftermath(condition, keys, limit, offset, tuple(released.rounded.items()), released.comparisons)


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
    _check_names(released, select)
    hiding = _unseen(asked, released, [str(node.alias) for node in select.expressions])
    if hiding:
        asked, released = _renamed(asked, released, hiding, select)
    below = released
    asked, released, made = _computed_above(asked, released, select, alias)
    before_rounding = hidden(below, released)
    meant = {name.casefold(): before for name, before in before_rounding.items()}
    reader = released.aggregates.reader.naming(
        _above(released, alias), lambda node: called_above(node, meant, meant, alias)
    )
    items = _columns_above(select, reader, released, made)
    new_ones = [
        (name, new) for name, new in items if name in made.values() or new.casefold() not in reader.schema.names
    ]
    called = meant | _called_now(new_ones, released)
    sorts = reader.naming(_above(released, alias), lambda node: called_above(node, called, meant, alias))
    columns = tuple(name for name, _ in items)
    where, order = select.args.get("where"), select.args.get("order")
    condition = None if where is None else reader.within("WHERE").whole(where.this)
    keys = read_orders(order, sorts, columns)
    limit, offset = read_limit(source, select)
    before = _with_columns(asked.aftermath, before_rounding)
    read = columns_of(*(key.key for key in keys), *(() if condition is None else (condition,)))
    if read_twice(asked.aftermath, read, below, before_rounding):
        advice = "round it once, or give the second one a name of its own"
        raise source.refuse("a condition on a number that is rounded twice", advice, select)
    if before.cuts and (condition is not None or keys or offset):
        raise source.refuse("WHERE, ORDER BY or OFFSET of an answer that LIMIT cut", "write LIMIT above them", select)
    with source.located(select):
        both = before.then(condition, keys, limit, offset)
    after = replace(both, rounded=tuple(released.rounded.items()), comparisons=released.comparisons)
    told = replace(asked, aftermath=after, columns=columns), replace(released, columns=columns)
    new = {name: alias for name, alias in items if name != alias}
    return _renamed(*told, new, select) if new else told


def _check_names(released: ReleasedColumns, select: Node) -> None:
    """Refuse columns of an answer whose names differ in capitals only: a SELECT above could not tell them apart."""
    folded = [name.casefold() for name in released.columns]
    alike = next((name for name in folded if folded.count(name) > 1), None)
    if alike is not None:
        what, node = "columns whose names differ in capitals only", released.bodies.get(alike, select)
        raise released.aggregates.reader.source.refuse(what, "give each a name of its own", node)


def _called_now(items: Iterable[tuple[str, str]], released: ReleasedColumns) -> dict[str, str]:
    """Return the columns of an answer, and the ends of their intervals, by new names that a SELECT above gives them."""
    known = dict(released.names.schema.columns)
    ends = [(name + end, (new + end).casefold()) for name, new in items for end in ("", *ENDS)]
    return {new: name for name, new in ends if name in known}


def _renamed(
    asked: Asked, released: ReleasedColumns, new: dict[str, str], select: Node
) -> tuple[Asked, ReleasedColumns]:
    """Return a question whose columns have new names, and the columns of its answer.

    Numbers that are not shown make way: nobody sees their names.
    """
    new = new | _unseen(asked, released, new.values())
    moved = {name + end: alias + end for name, alias in new.items() for end in EVERY}

    def name(old: str) -> str:
        return moved.get(old, old)

    groups = tuple((name(old), scalar) for old, scalar in released.groups)
    outputs = tuple(
        replace(output, name=name(output.name), aggregate=renamed_over(output.aggregate, name))
        for output in asked.outputs
    )
    comparisons = tuple(one.renamed(name) for one in released.comparisons)
    levels = tuple((name(old), tuple(map(name, of))) for old, of in asked.levels)
    numbers = [*(one.name for one in outputs), *(one.name for one in comparisons)]
    every = [one.casefold() for one in (*dict(groups), *numbers, *dict(levels))]
    if len(set(every)) < len(every):
        advice = "another column of the answer has that name: choose another"
        raise released.aggregates.reader.source.refuse("a new name that is taken", advice, select)
    rounded = tuple((name(old), how) for old, how in asked.aftermath.rounded)
    after = replace(_with_columns(asked.aftermath, moved), rounded=rounded, comparisons=comparisons)
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
        released, columns=columns, groups=groups, outputs=outputs, levels=levels, bodies=bodies, rounded=dict(rounded),
        comparisons=comparisons,
    )  # fmt: skip
    return made, told


def _unseen(asked: Asked, released: ReleasedColumns, aliases: Iterable[str]) -> dict[str, str]:
    """Return free names for numbers that are not shown, where an alias is theirs or that of an end of theirs."""
    wanted = {alias.casefold() for alias in aliases}
    taken = wanted | {name.casefold() for name in (*asked.columns, *dict(released.groups), *released.numbers)}
    found: dict[str, str] = {}
    for name in released.numbers:
        if name not in asked.columns and wanted & {(name + end).casefold() for end in EVERY}:
            found[name] = free_name(f"{name}_2", taken)
            taken.add(found[name].casefold())
    return found


def _with_columns(aftermath: Aftermath, names: Mapping[str, str]) -> Aftermath:
    """Return an aftermath that reads columns of other names."""

    def written(node: Any) -> Any:
        return rewrite(node, lambda part: Column(names.get(part.name, part.name)) if isinstance(part, Column) else part)

    order = tuple(replace(key, key=written(key.key)) for key in aftermath.order)
    return replace(aftermath, having=None if aftermath.having is None else written(aftermath.having), order=order)


def with_used(asked: Asked) -> Asked:
    """Return a question without the aggregates that a SELECT above it leaves out: nobody pays for them."""
    read = {*asked.columns, *asked.aftermath.columns}
    made = tuple(one for one in asked.aftermath.comparisons if read & {one.name + end for end in EVERY})
    read |= {name for one in made for name, _ in one.cells}
    used = tuple(one for one in asked.outputs if read & {one.name + end for end in EVERY})
    return replace(asked, outputs=used or asked.outputs[:1], aftermath=replace(asked.aftermath, comparisons=made))


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
    bodies, rounded = dict(released.bodies), dict(released.rounded)
    numbers, comparisons = _numbers_above(asked, released, select), list(released.comparisons)
    whole = {"*" if _is_star(node) else str(_body(node).name).casefold()
             for node in select.expressions if type(_body(node)).__name__ in ("Column", "Star")}  # fmt: skip
    for node in select.expressions:
        if type(node).__name__ != "Alias" or type(node.this).__name__ == "Column" or released.select is None:
            continue
        body = computed(node.this, released.bodies, select, alias, source)
        read = None if body is None else _number_above(body, released)
        if body is None or read is None:
            continue
        check_whole(node.this, asked, select, source)
        made = numbers.made(read)
        known = _known(made, asked, released)
        again = known in rounded and str(node.alias) != known
        if known is not None and read.rounding is not None and not again and not whole & {"*", known.casefold()}:
            found[id(node)], rounded[known], bodies[known.casefold()] = known, read.rounding, body
            continue
        name = str(node.alias)
        if name.casefold() in bodies:
            raise source.refuse("a new name that is taken", "choose another alias", node)
        if isinstance(made, ComputedNumber):
            comparisons.append(replace(made, name=name))
        else:
            numbers.outputs.append(replace(made, name=name))
        found[id(node)] = name
        bodies[name.casefold()] = body
        rounded |= {} if read.rounding is None else {name: read.rounding}
    every, columns = tuple(numbers.outputs), tuple(dict.fromkeys((*released.columns, *found.values())))
    above = replace(
        released, outputs=every, columns=columns, bodies=bodies, rounded=rounded, comparisons=tuple(comparisons)
    )
    return replace(asked, outputs=every), above, found


def _known(made: NamedAggregate | ComputedNumber, asked: Asked, released: ReleasedColumns) -> str | None:
    """Return the name under which a number is there already, or None."""
    if isinstance(made, ComputedNumber):
        return next((one.name for one in released.comparisons if replace(one, name="") == made), None)
    return next((one.name for one in asked.outputs if told_alike(one.aggregate, made.aggregate)), None)


def _number_above(body: Node, released: ReleasedColumns) -> Read | None:
    """Return what a SELECT above a question computes, in the words of the question; None where nothing is computed."""
    assert released.select is not None  # noqa: S101  # there is a question below
    plain, rounding = peeled(body, released.aggregates.reader.source)
    if rounding is None and total_in(plain) is None and not is_arithmetic(plain):
        return None
    read = read_number(body, released.aggregates, released.select)
    assert read is not None  # noqa: S101  # it has an aggregate
    return read


def _numbers_above(asked: Asked, released: ReleasedColumns, select: Node) -> Numbers:
    """Return the numbers of a question, to which those join that a SELECT above it computes with."""
    taken = {name.casefold() for name in (*released.bodies, *dict(released.groups), *released.numbers)}
    taken |= {str(node.alias).casefold() for node in select.expressions}
    named = {scalar.canonical(): group for group, scalar in released.first}
    now = {old: new for (old, _), (new, _) in zip(released.first, released.groups, strict=True)}
    return Numbers(list(asked.outputs), taken, named, released.aggregates.reader, now)


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
