"""Windows in a subquery: OVER (PARTITION BY the unit ...), which reads rows of one unit alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import Column, Scalar, columns_of
from farthing.query.per_row import FRAMED, ONE_ROW, PLACES, SortKey, Window, Windowed, WindowFrame, WindowKind
from farthing.query.per_unit import scoped
from farthing.query.schema import Type
from farthing.sql.features import FeatureReader, is_window
from farthing.sql.names import Names, Place
from farthing.sql.subqueries import every_column, is_star
from farthing.sql.translator import Translator

if TYPE_CHECKING:
    from farthing.sql.rows import Flat, Owned
    from farthing.sql.text import Node, SqlText

WINDOWED: Final = ("expressions", "from", "joins", "where", "with", "order", "qualify", "windows")
"""The clauses of a subquery with windows."""

MOST_WINDOWS: Final = 50
"""The most windows of one subquery."""

FARTHEST: Final = 10_000
"""The most places away that LAG, LEAD and a frame may name."""

_NO_VALUES: Final = {name.value.upper(): name for name in PLACES}
_VALUES: Final = {name.value.upper(): name for name in ONE_ROW}
_ONE_UNIT: Final = "a window reads rows of one unit"


def has_windows(select: Node) -> bool:
    """Return whether a subquery has windows, or keeps rows by one."""
    if type(select).__name__ != "Select":
        return False
    return bool(select.args.get("qualify")) or any(
        is_window(part) for item in select.expressions for part in item.walk()
    )


def windowed_rows(select: Node, source: SqlText, owned: Owned, rows: Flat, named: tuple[str, tuple[str, ...]]) -> Flat:
    """Return the rows of a subquery with windows.

    Args:
        select: the subquery, of known clauses.
        source: the text.
        owned: what the owner declared.
        rows: the rows that it is of.
        named: what the rows are called, and the new names of its first columns.

    Raises:
        UnsupportedQuery: a window that reads rows of several units, or one without the order that it depends on.
    """
    return _Windows(select, source, owned, rows).rows(*named)


class _Windows:
    """Reads one subquery.

    Args:
        select: the subquery.
        source: the text.
        owned: what the owner declared.
        rows: what it is of.
    """

    def __init__(self, select: Node, source: SqlText, owned: Owned, rows: Flat) -> None:
        self._select = select
        self._source = source
        self._owned = owned
        self._rows = rows
        self._inside = Translator(source, rows.names, "a subquery")
        self._columns: dict[str, tuple[str, Scalar]] = {}
        self._windows: dict[str, tuple[str, Window]] = {}
        self._shared = {str(node.this.name).casefold(): node for node in select.args.get("windows") or ()}
        self._aliases: dict[str, Scalar] = {}
        self._units = rows.units(owned.unit.column)

    def rows(self, name: str, renamed: tuple[str, ...]) -> Flat:
        """Return the rows, each with the columns of the list."""
        qualify = self._select.args.get("qualify")
        for node in (*self._select.expressions, *(() if qualify is None else (qualify.this,))):
            self._gather(node)
        if not self._windows:
            raise self._source.refuse("QUALIFY without a window", "write WHERE", self._select, "QUALIFY")
        source = None if self._rows.table == self._owned.table else self._rows.table
        columns, windows = tuple(self._columns.values()), tuple(self._windows.values())
        made = Windowed(name, source, self._rows.joins, self._rows.where, columns, windows)
        derived = (*self._rows.derived, made)
        schema = scoped(self._owned.schema, self._owned.tables, self._owned.unit.column, derived)[name]
        own = Names((Place(name, None, schema, tuple((one, Column(one)) for one in schema.names)),))
        reader = Translator(self._source, own, "a subquery", self._known)
        shown = self._listed(reader, renamed)
        where = None if qualify is None else reader.within("QUALIFY").whole(qualify.this)
        return self._rows.made(Place(name, None, schema, shown, schema.names), derived, where)

    def _gather(self, node: Node) -> None:
        """Read every window and every column below a node of the list or of QUALIFY."""
        if is_star(node):
            for _, scalar in every_column(node, self._inside):
                self._column(scalar, node)
            return
        for part in node.walk(prune=is_window):
            if is_window(part):
                self._named(part)
            elif type(part).__name__ == "Column" and not self._is_alias(part):
                self._column(self._inside.column(part), part)

    def _column(self, scalar: Scalar, node: Node) -> Scalar:
        """Return the column of what is made that a value of a row below is."""
        if scalar in self._units:
            return self._units[0]
        if self._inside.type(scalar) is Type.OTHER:
            raise self._source.refuse(
                "a column of another type beside a window", "name the columns that you need", node
            )
        name, _ = self._columns.setdefault(scalar.canonical(), (self._free(f"c{len(self._columns)}"), scalar))
        return Column(name)

    def _named(self, node: Node) -> Scalar:
        """Return the column that a window is."""
        with self._source.located(node):
            window = self._window(node)
        if len(self._windows) >= MOST_WINDOWS:
            raise self._source.refuse(f"more than {MOST_WINDOWS} windows in a subquery", "name fewer", node)
        name, _ = self._windows.setdefault(window.canonical(), (self._free(f"w{len(self._windows)}"), window))
        return Column(name)

    def _window(self, node: Node) -> Window:
        """Return one window."""
        function = node.this
        while type(function).__name__ in ("RespectNulls", "Paren"):
            function = function.this
        over = self._shared_window(node)
        by, order = self._parted(over, node), self._ordered(over)
        plain = function.this if type(function).__name__ == "Filter" else function
        name = str(plain.name).upper() if type(plain).__name__ == "Anonymous" else type(plain).__name__.upper()
        if plain is function and name in _NO_VALUES:
            self._take(function, name, 0)
            self._needs_order(order, name, node)
            return Window(_NO_VALUES[name], None, by, order)
        if plain is function and name in _VALUES:
            self._needs_order(order, name, node)
            return self._of_one_row(function, _VALUES[name], (by, order, self._framed(over, order)))
        feature = FeatureReader(self._inside).window(function, name)
        return Window(WindowKind(feature.kind.value), feature.value, by, order, self._framed(over, order))

    def _of_one_row(self, node: Node, kind: WindowKind, over: tuple[Any, Any, WindowFrame | None]) -> Window:
        """Return a window that tells the value of one row."""
        by, order, frame = over
        shifts, name = kind not in FRAMED, kind.value.upper()
        arguments = self._take(node, name, 2 if shifts else 1)
        if kind is WindowKind.LAST_VALUE and frame is None:
            advice = "write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING: without it that is the row itself"
            raise self._source.refuse("LAST_VALUE without a frame", advice, node)
        scalar, found = self._inside.typed(arguments[0])
        if found is Type.OTHER:
            raise self._source.refuse(f"{name} of a {found}", "name a plain value", node)
        offset = self._places(arguments[1]) if len(arguments) > 1 else 1
        return Window(kind, scalar, by, order, None if shifts else frame, offset)

    def _take(self, node: Node, name: str, most: int) -> list[Node]:
        """Return the arguments of a function of windows; refuse more than it takes, and IGNORE NULLS."""
        arguments = list(node.expressions)
        if any(type(part).__name__ in ("IgnoreNulls", "Distinct", "Order") for part in node.walk()):
            raise self._source.refuse(f"{name} with IGNORE NULLS, DISTINCT or ORDER BY", "leave that out", node)
        if len(arguments) > most or (most and not arguments):
            default = ": a default is written COALESCE(..., default)" if most == 2 else ""
            written = {0: "()", 1: "(x)", 2: "(x) or (x, 2)"}[most]
            raise self._source.refuse(
                f"{name} with {len(arguments)} arguments", f"write {name}{written}{default}", node
            )
        return arguments

    def _needs_order(self, order: tuple[SortKey, ...], name: str, node: Node) -> None:
        """Refuse what means nothing without an order."""
        if not order:
            raise self._source.refuse(f"{name} without ORDER BY", "write OVER (PARTITION BY ... ORDER BY ...)", node)

    def _shared_window(self, node: Node) -> Node:
        """Return the node that says what a window is over: itself, or one that WINDOW names."""
        alias = node.args.get("alias")
        if alias is None:
            return node
        shared = self._shared.get(str(alias.name).casefold())
        extended = any(node.args.get(part) for part in ("partition_by", "order", "spec"))
        if shared is None or extended or shared.args.get("alias") is not None:
            raise self._source.refuse(f"the window {alias.name!r}", "write OVER (PARTITION BY ... ORDER BY ...)", node)
        return shared

    def _parted(self, over: Node, node: Node) -> tuple[Scalar, ...]:
        """Return what the rows of a window have in common beside the unit; refuse windows over several units."""
        unit = self._owned.unit.column
        found = [(one, self._inside.typed(one)[0]) for one in over.args.get("partition_by") or ()]
        if unit is None:
            raise self._source.refuse("a window (OVER) where each row is a unit", f"leave it out: {_ONE_UNIT}", node)
        if not any(scalar in self._units for _, scalar in found):
            advice = f"write OVER (PARTITION BY {unit}, ...), or ask an aggregate with GROUP BY: {_ONE_UNIT}"
            raise self._source.refuse("a window (OVER) of several units", advice, node)
        for one, scalar in found:
            if self._inside.type(scalar) is Type.OTHER:
                raise self._source.refuse("PARTITION BY of a column of another type", "name plain values", one)
        kept = {scalar.canonical(): scalar for _, scalar in found if scalar not in self._units and columns_of(scalar)}
        return tuple(kept.values())

    def _ordered(self, over: Node) -> tuple[SortKey, ...]:
        """Return the order of a window."""
        order, keys = over.args.get("order"), []
        for key in () if order is None else order.expressions:
            self._inside.only(key, "this", "desc", "nulls_first")
            scalar, kind = self._inside.typed(key.this)
            if kind is Type.OTHER or not columns_of(scalar):
                raise self._source.refuse(
                    "ORDER BY of a constant or of another type", "order by plain values", key.this
                )
            keys.append(SortKey(scalar, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))))
        return tuple(keys)

    def _framed(self, over: Node, order: tuple[SortKey, ...]) -> WindowFrame | None:
        """Return the frame of a window; None where none is named, and for the one that SQL has without."""
        spec = over.args.get("spec")
        if spec is None:
            return None
        self._inside.only(spec, "kind", "start", "start_side", "end", "end_side")
        start, end = (self._edge(spec, side) for side in ("start", "end"))
        if (start, end) == (None, None):
            return WindowFrame(None, None)
        if str(spec.args.get("kind")).upper() != "ROWS" and (start, end) != (None, 0):
            raise self._source.refuse("a frame by RANGE or GROUPS", "write ROWS BETWEEN ... AND ...", over)
        if not order:
            raise self._source.refuse(
                "a frame without ORDER BY", "write OVER (PARTITION BY ... ORDER BY ... ROWS ...)", over
            )
        if start is not None and end is not None and start > end:
            raise self._source.refuse("a frame that ends before it starts", "name the earlier row first", over)
        return None if str(spec.args.get("kind")).upper() != "ROWS" else WindowFrame(start, end)

    def _edge(self, spec: Node, side: str) -> int | None:
        """Return one end of a frame in places after the row; None for all."""
        edge, word = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
        if edge is None or str(edge).upper() == "CURRENT ROW":
            return 0
        if str(edge).upper() == "UNBOUNDED":
            if word != ("PRECEDING" if side == "start" else "FOLLOWING"):
                raise self._source.refuse(f"UNBOUNDED {word} there", "name the earlier row first", spec)
            return None
        return self._places(edge) * (-1 if word == "PRECEDING" else 1)

    def _places(self, node: Node) -> int:
        """Return a number of places."""
        digits = str(node.this) if type(node).__name__ == "Literal" and not node.is_string else ""
        if not digits.isdigit() or len(digits) > 5 or int(digits) > FARTHEST:
            raise self._source.refuse("a number of rows", f"write a whole number from 0 to {FARTHEST:,}", node)
        return int(digits)

    def _listed(self, reader: Translator, renamed: tuple[str, ...]) -> tuple[tuple[str, Scalar], ...]:
        """Return the columns of the list, by name."""
        columns: list[tuple[str, Scalar]] = []
        for item in self._select.expressions:
            if is_star(item):
                columns += [(name, self._column(scalar, item)) for name, scalar in every_column(item, self._inside)]
                continue
            alias = str(item.alias) if type(item).__name__ == "Alias" else None
            body = item.this if alias is not None else item
            if alias is None and type(body).__name__ != "Column":
                raise self._source.refuse("a value without a name in a subquery", "give it one: value AS name", item)
            columns.append((alias or self._inside.named(body)[0], reader.typed(body)[0]))
        self._aliases.update((name.casefold(), scalar) for name, scalar in columns)
        if len(renamed) > len(columns):
            raise self._source.refuse("more names than columns", f"there are {len(columns)} columns", self._select)
        named = [(new, scalar) for new, (_, scalar) in zip(renamed, columns, strict=False)]
        return (*named, *columns[len(renamed) :])

    def _known(self, node: Node) -> Scalar | None:
        """Return the column that a node is of what is made: a window, a column, or in QUALIFY a name of the list."""
        if is_window(node):
            return self._named(node)
        if type(node).__name__ != "Column":
            return None
        if self._is_alias(node) and str(node.name).casefold() in self._aliases:
            return self._aliases[str(node.name).casefold()]
        return self._column(self._inside.column(node), node)

    def _is_alias(self, node: Node) -> bool:
        """Return whether a column is a name of the list that no column of the rows below has."""
        name = str(node.name).casefold()
        given = {str(item.alias).casefold() for item in self._select.expressions if type(item).__name__ == "Alias"}
        return node.args.get("table") is None and name in given and name not in self._rows.names.taken

    def _free(self, name: str) -> str:
        """Return a name for a column of what is made that the unit does not have, in any case."""
        return f"{name}'" if name.casefold() == str(self._owned.unit.column).casefold() else name
