"""Subqueries: what may stand in one, the columns that it projects, and its name; each row is made of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import Column, walk
from farthing.sql.aggregates import inner
from farthing.sql.names import OWN_DATABASE, OWN_SCHEMAS

if TYPE_CHECKING:
    from farthing.query.expressions import Scalar
    from farthing.sql.names import Names
    from farthing.sql.text import Node, SqlText
    from farthing.sql.translator import Translator

MOST_SELECTS: Final = 60
"""The most SELECTs of one question."""

MOST_MADE: Final = 12
"""The most subqueries of one question with GROUP BY, windows or UNION ALL."""

MOST_GROWN: Final = 10_000
"""The most parts that the columns of one SELECT may stand for, all of them together."""

MOST_COLUMNS: Final = 1_000
"""The most columns of a subquery that are written out."""

READ: Final = ("expressions", "from", "joins", "where", "with", "order")
"""The clauses that a subquery may have."""

QUESTION: Final = (*READ, "group", "having", "limit", "offset")
"""The clauses that a question in a subquery may have."""

_OTHERS: Final = "which rows are left would depend on rows of other units"
_ROW: Final = "each row of a subquery is made of one row, so that it belongs to one unit"
_CLAUSES: Final = {
    "group": ("GROUP BY in a subquery", f"group in the outermost SELECT: {_ROW}"),
    "having": ("HAVING in a subquery", "filter the answer in the outermost SELECT"),
    "distinct": ("DISTINCT in a subquery", f"leave DISTINCT out: {_OTHERS}"),
    "limit": ("LIMIT in a subquery", f"write LIMIT in the outermost SELECT: {_OTHERS}"),
    "offset": ("OFFSET in a subquery", f"write OFFSET in the outermost SELECT: {_OTHERS}"),
    "qualify": ("QUALIFY", f"leave QUALIFY out: {_OTHERS}"),
    "windows": ("WINDOW", "ask aggregates with GROUP BY"),
    "sample": ("SAMPLE", "ask the whole table"),
    "laterals": ("LATERAL", "ask one table"),
    "hint": ("WITH DIFFERENTIAL_PRIVACY in a subquery", "write the options in the outermost SELECT"),
}


def check_many(tree: Node, source: SqlText) -> None:
    """Refuse a question of more SELECTs than anybody writes."""
    from sqlglot import exp

    for many, select in enumerate(tree.find_all(exp.Select)):
        if many >= MOST_SELECTS:
            raise source.refuse(f"more than {MOST_SELECTS} subqueries", "ask for less at a time", select)


def unwrapped(node: Node) -> Node:
    """Return what stands in brackets in FROM or behind WITH: a table, a SELECT, or what else it is."""
    while type(node).__name__ == "Subquery" and not any(value for part, value in node.args.items() if part not in _OWN):
        node = node.this
    return node


_OWN: Final = ("this", "alias")


def aggregated(select: Node) -> bool:
    """Return whether a subquery has aggregates or groups: it is a question, not rows."""
    if type(select).__name__ != "Select":
        return False
    return bool(select.args.get("group")) or any(
        inner(part) is not None for item in select.expressions for part in item.walk()
    )


def asks(select: Node) -> bool:
    """Return whether a SELECT is a question itself, and does not only compute with the answer of one below it.

    Windows and subqueries may add up the columns of an answer, as `SUM(n) OVER ()` does.
    """
    if type(select).__name__ != "Select":
        return False
    apart = ("Window", "Subquery")
    parts = (part for item in select.expressions for part in item.walk(prune=lambda one: type(one).__name__ in apart))
    return bool(select.args.get("group")) or any(type(one).__name__ not in apart and inner(one) for one in parts)


def named_subqueries(select: Node, source: SqlText) -> list[tuple[str, Node, tuple[str, ...]]]:
    """Return the name, the SELECT and the names of the columns of each table of WITH, in order.

    Raises:
        UnsupportedQuery: WITH RECURSIVE.
    """
    clause = select.args.get("with_") or select.args.get("with")
    if clause is None:
        return []
    if clause.args.get("recursive"):
        raise source.refuse("WITH RECURSIVE", "write each step as a table of its own", clause, "RECURSIVE")
    found = []
    for node in clause.expressions:
        for part, value in node.args.items():
            if value and part not in ("this", "alias", "materialized"):
                raise source.refuse(f"WITH with {part.strip('_')}", "write WITH name AS (SELECT ...)", node)
        alias, renamed = alias_of(node, source)
        found.append((alias or "", unwrapped(node.this), renamed))
    return found


def alias_of(node: Node, source: SqlText) -> tuple[str | None, tuple[str, ...]]:
    """Return the alias of a table, and the new names of its columns; a table itself keeps its own."""
    alias = node.args.get("alias")
    if alias is None:
        return None, ()
    renamed = tuple(str(column.name) for column in alias.args.get("columns") or ())
    if renamed and type(node).__name__ == "Table":
        raise source.refuse("renamed columns", "use the table's own column names", node)
    return str(alias.name), renamed


def plain_table(source: SqlText, named: Node, own: str, word: str) -> str:
    """Return the name of a table; refuse whatever else may stand there."""
    from sqlglot import exp

    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise source.refuse("a table function", f"write FROM {own}", named, word)
    for part, value in named.args.items():
        if not value or part in ("this", "alias") or (part == "db" and value.name.casefold() in OWN_SCHEMAS):
            continue
        if part == "catalog" and value.name.casefold() == OWN_DATABASE:
            continue
        found, advice = _TABLE_PARTS.get(part.strip("_"), (f"a table with {part.strip('_')}", f"write FROM {own}"))
        raise source.refuse(found, advice, named)
    return str(named.name)


_TABLE_PARTS: Final = {
    "sample": ("SAMPLE", "ask the whole table"),
    "joins": ("JOIN", "join without brackets: FROM t JOIN u ON ... JOIN v ON ..."),
    "laterals": ("LATERAL", "ask one table"),
    "pivots": ("PIVOT", "write one aggregate with FILTER (WHERE ...) for each column"),
    "db": ("a table of another schema", "leave the schema out"),
    "catalog": (
        "a table of another database",
        f"leave the database out, or write {OWN_DATABASE}.public before the table",
    ),
}


def check_subquery(select: Node, source: SqlText) -> None:
    """Refuse whatever makes one row of several, or drops rows for what others have.

    Raises:
        UnsupportedQuery: aggregates, windows, DISTINCT, LIMIT, UNION and all else, by name.
    """
    kind = type(select).__name__
    if kind in ("Union", "Intersect", "Except"):
        advice = "write UNION ALL, or joins on the unit: which rows are left would depend on rows of other units"
        raise source.refuse(f"{kind.upper()} in a subquery", advice, select, kind.upper())
    if kind != "Select":
        raise source.refuse("a table function", "write FROM (SELECT ... FROM table)", select, "FROM")
    check_clauses(select, source, READ)
    for item in select.expressions:
        for node in item.walk():
            if inner(node) is not None and type(node).__name__ == "Anonymous":
                advice = f"aggregate in the outermost SELECT: {_ROW}"
                raise source.refuse("an aggregate in a subquery", advice, node)


def check_clauses(select: Node, source: SqlText, read: tuple[str, ...]) -> None:
    """Refuse the clauses of a subquery that are not among some, and too many columns."""
    for part, value in select.args.items():
        clause = part.strip("_")
        if value and clause not in read:
            name, advice = _CLAUSES.get(clause, (f"{clause.upper()} in a subquery", "leave that clause out"))
            first = value[0] if isinstance(value, list) else value
            known = hasattr(first, "walk") and source.position(first) is not None
            raise source.refuse(name, advice, first if known else select, "" if known else name)
    if len(select.expressions) > MOST_COLUMNS:
        raise source.refuse(f"more than {MOST_COLUMNS:,} columns", "name fewer", select.expressions[-1])


def check_question(select: Node, source: SqlText) -> None:
    """Refuse what a question in a subquery may not have."""
    for part, value in select.args.items():
        clause = part.strip("_")
        if value and clause not in QUESTION:
            name, advice = _CLAUSES.get(clause, (f"{clause.upper()} in a subquery", "leave that clause out"))
            raise source.refuse(name, advice, select, name)


def check_growth(select: Node, names: Names, source: SqlText) -> None:
    """Refuse a SELECT whose columns stand for more than anybody wrote by hand: values of values of values."""
    from sqlglot import exp

    sizes: dict[str, int] = {}
    for place in names.places:
        for name, scalar in place.columns:
            many = 1 if isinstance(scalar, Column) else sum(1 for _ in walk(scalar))
            sizes[name.casefold()] = max(many, sizes.get(name.casefold(), 0))
    if max(sizes.values(), default=1) == 1:
        return
    grown = sum(sizes.get(str(node.name).casefold(), 1) for node in select.find_all(exp.Column))
    if grown > MOST_GROWN:
        raise source.refuse("subqueries that grow this large", "name fewer values of values", select)


def projected(
    select: Node, reader: Translator, renamed: tuple[str, ...] = (), *, bare: bool = False
) -> tuple[tuple[str, Scalar], ...]:
    """Return the columns of a subquery: their names, and what they are of the row below; with `bare` some have none."""
    columns: list[tuple[str, Scalar]] = []
    for node in select.expressions:
        columns += _item(node, reader, bare=bare)
    if len(renamed) > len(columns):
        raise reader.source.refuse("more names than columns", f"there are {len(columns)} columns", select)
    columns = [(new, scalar) for new, (_, scalar) in zip(renamed, columns, strict=False)] + columns[len(renamed) :]
    _check_order(select, reader, columns)
    return tuple(columns)


def _item(node: Node, reader: Translator, *, bare: bool) -> list[tuple[str, Scalar]]:
    """Return the columns that one item of a subquery's SELECT list is."""
    kind = type(node).__name__
    if is_star(node):
        return every_column(node, reader)
    if kind == "Column":
        return [reader.named(node)]
    if kind != "Alias" and bare:
        return [("", reader.typed(node)[0])]
    if kind != "Alias":
        raise reader.source.refuse("a value without a name in a subquery", "give it one: value AS name", node)
    body = node.this
    scalar = reader.scalar(body) if type(body).__name__ == "Column" else reader.typed(body)[0]
    return [(str(node.alias), scalar)]


def is_star(node: Node) -> bool:
    """Return whether an item of a SELECT list is * or table.*."""
    kind = type(node).__name__
    return kind == "Star" or (kind == "Column" and type(node.this).__name__ == "Star")


def every_column(node: Node, reader: Translator) -> list[tuple[str, Scalar]]:
    """Return the columns that * or table.* stands for; those that USING made one are there once."""
    star, table = (node, None) if type(node).__name__ == "Star" else (node.this, node.args.get("table"))
    reader.only(star)
    if table is not None and not any(place.answers_to(table.name) for place in reader.names.places):
        raise reader.source.refuse(f"table {table.name!r}", "name a table of FROM", node)
    columns: list[tuple[str, Scalar]] = []
    for place in reader.names.places:
        if table is None or place.answers_to(table.name):
            seen = {name.casefold() for name, _ in columns} & reader.names.merged
            columns += [(name, scalar) for name, scalar in place.columns if name.casefold() not in seen]
    return columns


def _check_order(select: Node, reader: Translator, columns: list[tuple[str, Any]]) -> None:
    """Read ORDER BY of a subquery, which changes nothing: rows have no order."""
    order = select.args.get("order")
    named = {name.casefold() for name, _ in columns}
    for key in () if order is None else order.expressions:
        node = key.this
        if type(node).__name__ == "Literal" and _place(str(node.this)) <= len(columns):
            continue
        if type(node).__name__ != "Column" or str(node.name).casefold() not in named:
            reader.typed(node)


def _place(digits: str) -> int:
    """Return a place of the SELECT list; one that no list has for anything else."""
    return int(digits) if digits.isdigit() and 0 < len(digits) < 5 and int(digits) else MOST_COLUMNS + 1
