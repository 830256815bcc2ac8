"""SELECT: from SQL text to the parts of a question, or a refusal by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from farthing.privacy.unit import PrivacyUnit
from farthing.query.aggregates import Count
from farthing.query.bounding import Bounds
from farthing.query.expressions import Column, Expression, Scalar
from farthing.sql.aggregates import Aggregates
from farthing.sql.asked import Asked, Options
from farthing.sql.google import read_options, refuse_others
from farthing.sql.listing import MOST_COLUMNS, Listed, groups_by_text, levels, read_grouping
from farthing.sql.names import Names, Place
from farthing.sql.released_columns import ReleasedColumns
from farthing.sql.released_numbers import Numbers, comparisons
from farthing.sql.releases import read_aftermath, shown, with_used
from farthing.sql.rows import Owned
from farthing.sql.subqueries import check_many
from farthing.sql.tables import TableReader, innermost
from farthing.sql.text import SqlText, sized, syntax_tree
from farthing.sql.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.schema import Schema
    from farthing.sql.rows import Flat
    from farthing.sql.text import Node


def parse(
    text: str,
    *,
    table: str,
    schema: Schema,
    tables: Mapping[str, Schema] | None = None,
    public: frozenset[str] = frozenset(),
    unit: PrivacyUnit | str | None = None,
    bounds: Bounds | None = None,
) -> Asked:
    """Return what one SELECT of aggregates over the protected table asks for.

    Args:
        text: the SQL.
        table: the name of the protected table.
        schema: its columns.
        tables: the columns of the tables that may be joined, by name.
        public: which of these are public; the others carry the unit column.
        unit: the privacy unit, or its column.
        bounds: the bounds of values that name none in the text.

    Raises:
        UnsupportedQuery: anything else, by name, with its line and column and what to write instead.
        InvalidBounds: a value without bounds, or with bounds that are not a range.

    >>> from farthing.query.schema import Schema, Type
    >>> schema = Schema.of({"dest": Type.STRING, "fare": Type.FLOAT})
    >>> asked = parse(
    ...     "SELECT dest, AVG(CLAMP(fare, 0, 100)) FROM rides WHERE fare > 2 GROUP BY dest ORDER BY 2",
    ...     table="rides", schema=schema,
    ... )
    >>> asked.by, str(asked.where), [(output.name, str(output.aggregate)) for output in asked.outputs]
    (('dest',), 'fare > 2', [('avg_fare', 'AVG(fare in [0, 100])')])
    """
    source = SqlText(text)
    privacy_unit = unit if isinstance(unit, PrivacyUnit) else PrivacyUnit(unit)
    refuse_others(source)
    select = _select(source, syntax_tree(source))
    options = read_options(source, select, privacy_unit)
    owned = Owned(table, schema, tables or {}, public, privacy_unit)
    core, above, reader = innermost(select, TableReader(source, owned).scoped(select))
    rows = reader.rows(core)
    aggregates = Aggregates(Translator(source, rows.names, "an aggregate"), privacy_unit, bounds or Bounds())
    asked, released, listed = _question(core, rows, aggregates)
    asked = replace(asked, explain=bool(select.meta.get("explain")), options=_with_rows(source, options, listed))
    for outer, alias in above:
        asked, released = shown(asked, outer, alias, released)
    return with_used(asked) if above else asked


def _question(select: Node, rows: Flat, aggregates: Aggregates) -> tuple[Asked, ReleasedColumns, Listed]:
    """Return what a SELECT of aggregates asks for of rows, its columns, and its list."""
    source, reader = aggregates.reader.source, Translator(aggregates.reader.source, rows.names)
    listed = Listed.of(select, reader.within("SELECT"), aggregates)
    groups, sets = read_grouping(select, reader.within("GROUP BY"), listed)
    outputs, columns = listed.named(groups, reader.within("PARTITION BY"))
    told = levels(listed, columns, groups, reader.within("GROUPING"))
    _check_sets(source, select, sets, listed, told, joined=bool(rows.joins or rows.derived))
    named = tuple((group.name, group.scalar) for group in groups)
    bodies = {name.casefold(): item.body for name, item in zip(columns, listed.items, strict=True)}
    numbers = Numbers(
        list(outputs), {name.casefold() for name in (*columns, *dict(named))}, groups_by_text(groups), reader
    )
    computed = comparisons(listed, columns, numbers)
    outputs, rounded = tuple(numbers.outputs), listed.rounded(columns)
    released = ReleasedColumns(columns, named, outputs, aggregates, told, select, bodies, named, rounded, computed)
    asked = Asked(
        by=tuple(group.name for group in groups),
        where=rows.where,
        outputs=outputs,
        groupings=tuple((group.name, group.scalar) for group in groups if group.scalar != Column(group.name)),
        joins=rows.joins,
        derived=rows.derived,
        source=rows.source,
        aftermath=read_aftermath(select, released),
        columns=columns,
        sets=sets,
        levels=told,
    )
    return asked, released, listed


def parse_predicate(text: str, schema: Schema) -> Expression:
    """Return a condition as it may follow WHERE.

    Raises:
        UnsupportedQuery: anything outside of the expression language, by name.

    >>> from farthing.query.schema import Schema, Type
    >>> parse_predicate("dep_delay > 15", Schema.of({"dep_delay": Type.FLOAT})).canonical()
    '(column "dep_delay" > integer 15)'
    """
    reader, tree = _alone(text, schema)
    return reader.whole(tree)


def parse_scalar(text: str, schema: Schema) -> Scalar:
    """Return a value as it may stand in GROUP BY or within an aggregate.

    Raises:
        UnsupportedQuery: anything outside of the expression language, by name.

    >>> from farthing.query.schema import Schema, Type
    >>> str(parse_scalar("floor(fare / 10) * 10", Schema.of({"fare": Type.FLOAT})))
    '(floor((fare / 10)) * 10)'
    """
    reader, tree = _alone(text, schema)
    return reader.typed(tree)[0]


def _alone(text: str, schema: Schema) -> tuple[Translator, Node]:
    """Return the tree of an expression on its own, and what reads it."""
    source = SqlText(text)
    sized(source)
    tree = syntax_tree(source)
    return Translator(source, Names((Place.of("the table", None, schema),))), tree


_CLAUSES: Final = {
    "laterals": ("LATERAL", "ask one table"),
    "distinct": (
        "DISTINCT",
        "leave DISTINCT out: groups are distinct already, and which values a table has is private",
    ),
    "windows": ("WINDOW", "write each window out where it is used: OVER (ORDER BY month)"),
    "sample": ("SAMPLE", "ask the whole table"),
    "into": ("INTO", "leave INTO out: questions write nothing"),
    "locks": ("FOR", "leave FOR out: questions write nothing"),
}
_READ: Final = (
    "expressions",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "offset",
    "hint",
    "with",
)


def _select(source: SqlText, tree: Node) -> Node:
    """Return the tree as a plain SELECT with understood clauses only."""
    from sqlglot import exp

    if isinstance(tree, exp.SetOperation):
        raise source.refuse(type(tree).__name__.upper(), "ask each SELECT on its own", word=type(tree).__name__.upper())
    check_many(tree, source)
    if not isinstance(tree, exp.Select):
        raise source.refuse(f"{type(tree).__name__.upper()} statement", "ask SELECT COUNT(*) FROM ...", tree)
    for part, value in tree.args.items():
        clause = part.strip("_")
        if not value or clause in _READ:
            continue
        name, advice = _CLAUSES.get(clause, (clause.upper(), "leave that clause out"))
        word = name if name.isupper() else ""
        inside = value[0] if isinstance(value, list) else value
        raise source.refuse(name, advice, inside if hasattr(inside, "walk") else None, word)
    if len(tree.expressions) > MOST_COLUMNS:
        raise source.refuse(f"more than {MOST_COLUMNS} columns", "ask for fewer at a time", tree.expressions[-1])
    return tree


def _check_sets(
    source: SqlText,
    select: Node,
    sets: tuple[tuple[str, ...], ...],
    listed: Listed,
    told: tuple[Any, ...],
    *,
    joined: bool,
) -> None:
    """Refuse GROUPING without grouping sets, and grouping sets of anything but one COUNT(*) of one table."""
    if not sets:
        if told:
            raise source.refuse("GROUPING without grouping sets", "group by CUBE, ROLLUP or GROUPING SETS", select)
        return
    read = [item.read for item in listed.items if item.read is not None]
    if len(read) > 1 or read[0].aggregate != Count() or read[0].compared is not None:
        raise source.refuse(
            "grouping sets of anything but COUNT(*)",
            "ask for COUNT(*) alone by grouping sets, and for the rest with a plain GROUP BY",
            select.args["group"],
            "GROUP",
        )
    if joined:
        raise source.refuse(
            "grouping sets beside a join or a subquery with GROUP BY",
            "ask for each set by itself with a plain GROUP BY",
            select,
            "JOIN",
        )


def _with_rows(source: SqlText, options: Options, listed: Listed) -> Options:
    """Return the options with the most rows that a count's own bounds name."""
    for item in listed.items:
        most = None if item.read is None else item.read.max_rows
        if most is None:
            continue
        if options.max_rows not in (None, most):
            raise source.refuse(
                "two bounds on rows", "one question has one bound on the rows of a unit in a group", item.node
            )
        options = replace(options, max_rows=most)
    return options
