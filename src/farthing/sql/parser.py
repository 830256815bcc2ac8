"""SELECT: from SQL text to the parts of a question, or a refusal by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from farthing.sql.predicates import Translator
from farthing.sql.text import Source, syntax_tree

if TYPE_CHECKING:
    from farthing.query.expressions import Expression
    from farthing.query.schema import Schema
    from farthing.sql.text import Node


@dataclass(frozen=True, slots=True)
class Parsed:
    """What SQL text asks for.

    Attributes:
        by: the grouping columns, in the order of GROUP BY.
        where: the rows that count, or None for all.
        name: the name of the answer column.
    """

    by: tuple[str, ...]
    where: Expression | None
    name: str


def parse(text: str, *, table: str, schema: Schema) -> Parsed:
    """Return what `SELECT columns, COUNT(*) AS name FROM table WHERE ... GROUP BY columns` asks for.

    Args:
        text: the SQL.
        table: the name of the protected table.
        schema: its schema.

    Raises:
        UnsupportedQuery: anything else, by name, with its line and column and what to write instead.

    >>> from farthing.query.schema import Schema, Type
    >>> schema = Schema.of({"dest": Type.STRING})
    >>> parse("SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest", table="flights", schema=schema)
    Parsed(by=('dest',), where=None, name='n')
    """
    source = Source(text)
    select = _select(source, syntax_tree(source))
    translator = Translator(source, schema, _tables(source, select, table))
    by = _grouping(translator, select)
    where = select.args.get("where")
    return Parsed(
        by=by,
        where=None if where is None else translator.predicate(where.this),
        name=_answer_name(translator, select, by),
    )


def parse_predicate(text: str, schema: Schema) -> Expression:
    """Return a condition as it may follow WHERE.

    Raises:
        UnsupportedQuery: anything outside of the expression language, by name.

    >>> from farthing.query.schema import Schema, Type
    >>> parse_predicate("dep_delay > 15", Schema.of({"dep_delay": Type.FLOAT})).canonical()
    '(column "dep_delay" > integer 15)'
    """
    source = Source(text)
    return Translator(source, schema, ("the table",)).predicate(syntax_tree(source))


_CLAUSES: Final = {
    "with": ("WITH", "ask the protected table directly"),
    "joins": ("JOIN", "ask one table; join public tables into it before it is opened"),
    "laterals": ("LATERAL", "ask one table"),
    "distinct": ("DISTINCT", "leave DISTINCT out: groups are distinct already"),
    "having": ("HAVING", "filter the answer after it came: that is free"),
    "qualify": ("QUALIFY", "filter the answer after it came: that is free"),
    "windows": ("WINDOW", "ask COUNT(*) with GROUP BY"),
    "order": ("ORDER BY", "sort the answer after it came: that is free"),
    "limit": ("LIMIT", "cut the answer after it came: that is free"),
    "offset": ("OFFSET", "cut the answer after it came: that is free"),
    "sample": ("SAMPLE", "ask the whole table"),
    "into": ("INTO", "leave INTO out: questions write nothing"),
    "hint": ("a hint", "leave the hint out"),
}


def _select(source: Source, tree: Node) -> Node:
    """Return the tree as a plain SELECT with understood clauses only."""
    from sqlglot import exp

    if isinstance(tree, exp.SetOperation):
        raise source.refuse(type(tree).__name__.upper(), "ask each SELECT on its own", word=type(tree).__name__.upper())
    if not isinstance(tree, exp.Select):
        raise source.refuse(f"{type(tree).__name__.upper()} statement", "ask SELECT COUNT(*) FROM ...", tree)
    for part, value in tree.args.items():
        clause = part.strip("_")
        if not value or clause in ("expressions", "from", "where", "group"):
            continue
        name, advice = _CLAUSES.get(clause, (clause.upper(), "leave that clause out"))
        word = name if name.isupper() else ""
        inner = value[0] if isinstance(value, list) else value
        raise source.refuse(name, advice, inner if hasattr(inner, "walk") else None, word)
    return tree


def _tables(source: Source, select: Node, table: str) -> tuple[str, ...]:
    """Return the names of the one table that is asked: its own and its alias."""
    from sqlglot import exp

    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise source.refuse("SELECT without FROM", f"write FROM {table}", select)
    named = clause.this
    if isinstance(named, exp.Query):
        raise source.refuse("a subquery", f"ask FROM {table} directly", named)
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise source.refuse("a table function", f"write FROM {table}", named, "FROM")
    for part, value in named.args.items():
        if value and part not in ("this", "alias"):
            name, advice = _CLAUSES.get(part.strip("_"), (f"a table with {part.strip('_')}", f"write FROM {table}"))
            raise source.refuse(name, advice, named)
    if named.name != table and (named.this.args.get("quoted") or named.name.casefold() != table.casefold()):
        raise source.refuse(f"table {named.name!r}", f"the protected table is {table!r}", named)
    alias = named.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise source.refuse("renamed columns", "use the table's own column names", named)
    return (table,) if alias is None else (table, alias.name)


def _grouping(translator: Translator, select: Node) -> tuple[str, ...]:
    """Return the grouping columns; a number stands for a place in the SELECT list."""
    from sqlglot import exp

    group = select.args.get("group")
    if group is None:
        return ()
    refuse = translator.source.refuse
    for part, value in group.args.items():
        if value and part != "expressions":
            raise refuse(f"GROUP BY {part.upper().replace('_', ' ')}", "list the columns", group, part.upper())
    columns = []
    for item in group.expressions:
        node = _place(translator, select, item) if isinstance(item, exp.Literal) and not item.is_string else item
        if not isinstance(node, exp.Column):
            raise refuse("GROUP BY of an expression", "group by columns of the table", item)
        column = translator.column(node)
        if column in columns:
            raise refuse(f"GROUP BY {column} twice", "name each column once", item)
        columns.append(column)
    return tuple(columns)


def _place(translator: Translator, select: Node, item: Node) -> Node:
    """Return the item of the SELECT list that a number in GROUP BY stands for."""
    digits = str(item.this)
    place = int(digits) if digits.isdigit() and len(digits) < 5 else 0
    if not 1 <= place <= len(select.expressions):
        raise translator.source.refuse(f"GROUP BY {digits[:20]}", "name the column", item)
    chosen: Node = select.expressions[place - 1]
    return chosen


def _answer_name(translator: Translator, select: Node, by: tuple[str, ...]) -> str:
    """Return the name of the one COUNT(*) in the SELECT list; all else must be grouping columns."""
    from sqlglot import exp

    refuse = translator.source.refuse
    names = []
    for item in select.expressions:
        if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            column = translator.column(item)
            if column not in by:
                raise refuse(
                    f"column {column!r} outside of GROUP BY", "rows never leave; group by it, or drop it", item
                )
            continue
        if isinstance(item, exp.Star | exp.Column):
            raise refuse("SELECT *", "rows never leave: write SELECT COUNT(*)", item)
        names.append(_count_name(translator, item))
    if not names:
        raise refuse("SELECT without an aggregate", "rows never leave: add COUNT(*)", select, "SELECT")
    if len(names) > 1:
        raise refuse("two aggregates in one question", "ask them one after the other", select, "SELECT")
    if names[0] in by:
        raise refuse(
            f"alias {names[0]!r}", "the answer needs a name of its own: COUNT(*) AS n", select, names[0].upper()
        )
    return names[0]


def _count_name(translator: Translator, item: Node) -> str:
    """Return the name of a COUNT(*); refuse anything else by name."""
    from sqlglot import exp

    refuse = translator.source.refuse
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star) and not inner.expressions:
        translator.only(inner.this)
        return item.alias if isinstance(item, exp.Alias) else "count"
    if isinstance(inner, exp.Count):
        wanted = "COUNT(DISTINCT ...)" if isinstance(inner.this, exp.Distinct) else "COUNT of a column"
        raise refuse(wanted, "write COUNT(*); to leave out NULLs add WHERE column IS NOT NULL", inner)
    for kind, construct, advice in (
        (exp.Window, "a window (OVER)", "ask COUNT(*) with GROUP BY"),
        (exp.Filter, "FILTER", "put the condition in WHERE"),
        (exp.Query, "a subquery", "ask one SELECT at a time"),
        (exp.Column, "a renamed grouping column", "write the column without AS"),
        (exp.Anonymous, f"function {inner.name}", "write COUNT(*)"),
        (exp.AggFunc, f"aggregate {_function(inner)}", "write COUNT(*)"),
        (exp.Func, f"function {_function(inner)}", "write COUNT(*)"),
    ):
        if isinstance(inner, kind):
            raise refuse(construct, advice, inner)
    raise refuse(f"{type(inner).__name__} in the SELECT list", "write grouping columns and COUNT(*)", item)


def _function(node: Node) -> str:
    """Return the SQL name of a function, "" for anything else."""
    return str(getattr(node, "sql_name", str)())
