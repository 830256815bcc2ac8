"""Rows that stay rows, as ibis tables: beside what windows by the unit tell of them, and those of several tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from farthing.engines.foreign.features import IbisFeatures
from farthing.engines.foreign.rows import IbisRelation
from farthing.engines.foreign.terms import IbisTerm, null, real, whole
from farthing.query.per_row import AGGREGATES, PLACES, WindowFrame, WindowKind
from farthing.query.per_unit import Feature, FeatureKind
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.engines.foreign.rows import IbisRows
    from farthing.query.expressions import Scalar
    from farthing.query.per_row import Stacked, Window, Windowed


def windowed(each: Windowed, unit: str, rows: IbisRows) -> IbisRelation:
    """Return rows with what windows tell of them."""
    import ibis

    windows = IbisWindows(rows)
    terms = [windows.kept(scalar) for _, scalar in each.columns]
    names = [rows.show(term.expr, "k") for term in terms]
    read = [scalar for _, one in each.windows for scalar in one.scalars]
    ties = any(one.ties for _, one in each.windows)
    sorted_by = (*(scalar for _, scalar in each.columns), *read) if ties else ()
    order = dict.fromkeys(name for scalar in sorted_by for name in windows.sorts(scalar))
    told = [windows.told(one) for _, one in each.windows]
    table = rows.table()
    if ties:
        place = ibis.row_number().over(ibis.window(group_by=[table["u"]], order_by=[table[name] for name in order]))
        table = table.mutate(**{windows.place: place})
    table = windows.over(table)
    shown = {unit: table["u"]}
    shown |= {name: table[key] for (name, _), key in zip(each.columns, names, strict=True)}
    shown |= {name: build(table) for (name, _), (build, _) in zip(each.windows, told, strict=True)}
    kinds = [(unit, rows.own.schema.require(unit))]
    kinds += [(name, _kind(term)) for (name, _), term in zip(each.columns, terms, strict=True)]
    kinds += [(name, kind) for (name, _), (_, kind) in zip(each.windows, told, strict=True)]
    return IbisRelation(table.select(**shown), Schema(tuple(kinds)))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A window, and the names of the columns that it is parted and ordered by."""

    window: Window
    by: list[str]
    keys: list[tuple[str, bool]]


class IbisWindows:
    """The windows of one subquery: each over the rows of one unit, in an order without ties where it needs one.

    Guarantee: each is a function of the rows of its unit, whatever their order in a table.
    Proof: docs/proofs/query.per_row.md.
    Assumes: fewer than 2^31 rows of one unit.
    Rounds: reals that are added, each to 2^-32.
    """

    def __init__(self, rows: IbisRows) -> None:
        self._rows = rows
        self._features = IbisFeatures(rows, [])
        self._told: dict[str, tuple[_Shown, Callable[[Any], Any]]] = {}
        self.place = f"{rows.prefix}order"

    def kept(self, scalar: Scalar) -> IbisTerm:
        """Return a value as it stays a column: in the form in which it is grouped."""
        term = self._rows.scalars.group(scalar)
        return replace(term, expr=term.narrow.expr)

    def sorts(self, scalar: Scalar) -> list[str]:
        """Show what rows are put in order by for a value: where it is missing, and the value; return the names."""
        import ibis

        term = self._rows.scalars.bind(self.kept(scalar))
        missing = self._rows.backend.is_null(term.expr)
        if not term.real:
            flag, value = ibis.ifelse(missing, whole(1), whole(0)), term.expr
        else:
            there = term.expr <= real(float("inf"))
            flag = ibis.cases((missing, whole(2)), (there, whole(0)), else_=whole(1))
            value = ibis.cases((there, term.expr), else_=null("float64"))
        return [self._rows.show(flag, "o"), self._rows.show(value, "o")]

    def told(self, one: Window) -> tuple[Callable[[Any], Any], Type]:
        """Return what is made of a window, and its type."""
        shown, features = _Shown(one, self._by(one), self._keys(one)), self._features
        if one.kind not in AGGREGATES:
            return self._placed(shown)
        before = set(features.aggregates)
        build, kind = features.told(Feature(FeatureKind(one.kind.value), one.value))
        if one.value is not None and one.kind in (WindowKind.MIN, WindowKind.MAX):
            build = features.of_any(one.value, build) if one.rows and one.rows.start is not None else build
        for name, aggregate in features.aggregates.items():
            if name not in before:
                self._told[name] = (shown, aggregate)
        return build, kind

    def over(self, table: Any) -> Any:
        """Return the rows with all windows as columns."""
        built = {
            name: aggregate(table).over(self._window(shown, table)) for name, (shown, aggregate) in self._told.items()
        }
        return table.mutate(**built) if built else table

    def _placed(self, shown: _Shown) -> tuple[Callable[[Any], Any], Type]:
        """Return a window that tells a place, or one row's value."""
        import ibis

        one, name = shown.window, f"{self._rows.prefix}w{len(self._told)}"
        places = {
            WindowKind.ROW_NUMBER: ibis.row_number,
            WindowKind.RANK: ibis.rank,
            WindowKind.DENSE_RANK: ibis.dense_rank,
        }
        if one.kind in PLACES:
            self._told[name] = (shown, lambda _: places[one.kind]())
            return lambda table: table[name] + whole(1), Type.INTEGER
        assert one.value is not None, "it has a value"  # noqa: S101
        value = self._features.value(one.value)
        column = self._rows.show(value.expr, "v")
        match one.kind:
            case WindowKind.LAG | WindowKind.LEAD:
                self._told[name] = (shown, lambda table: getattr(table[column], one.kind.value)(one.offset))
            case WindowKind.FIRST_VALUE:
                self._told[name] = (shown, lambda table: table[column].first(include_null=True))
            case _:
                self._told[name] = (shown, lambda table: table[column].last(include_null=True))
        return lambda table: table[name], Type.FLOAT if value.real else value.type

    def _by(self, one: Window) -> list[str]:
        """Show what the rows of a window have in common beside the unit; return the names."""
        return ["u", *(self._rows.show(self.kept(scalar).expr, "k") for scalar in one.by)]

    def _keys(self, one: Window) -> list[tuple[str, bool]]:
        """Show the keys of an order, each behind a mark of NULL; return the names, and whether each descends."""
        import ibis

        keys = []
        for key in one.order:
            value = self._features.value(key.value)
            first, last = (whole(0), whole(1)) if key.nulls_first else (whole(1), whole(0))
            flag = ibis.ifelse(self._rows.backend.is_null(value.expr), first, last)
            keys += [(self._rows.show(flag, "o"), False), (self._rows.show(value.expr, "v"), key.descending)]
        return keys

    def _window(self, shown: _Shown, table: Any) -> Any:
        """Return the rows that a window reads, of the table that has its columns."""
        import ibis

        one = shown.window
        keys = [ibis.desc(table[name]) if down else ibis.asc(table[name]) for name, down in shown.keys]
        keys += [ibis.asc(table[self.place])] if one.ties else []
        parted = {"group_by": [table[name] for name in shown.by], "order_by": keys}
        if one.rows is None and one.order and one.kind in AGGREGATES:
            return ibis.range_window(**parted, following=0)
        if one.rows in (None, WindowFrame(None, None)):
            return ibis.window(**parted)
        return ibis.window(**parted, rows=(one.rows.start, one.rows.end))


def stacked(each: Stacked, unit: str, parts: list[IbisRows]) -> IbisRelation:
    """Return the rows of several sources."""
    import ibis

    tables, kinds = [], list[Type]()
    for branch, rows in zip(each.branches, parts, strict=True):
        terms = [_plain(IbisWindows(rows).kept(scalar)) for scalar in branch.values]
        names = [rows.show(term.expr, "k") for term in terms]
        table, kinds = rows.table(), list(map(_kind, terms))
        shown = {column: table[name] for column, name in zip(each.columns, names, strict=True)}
        tables.append(table.select(**{unit: table["u"]}, **shown))
    schema = ((unit, parts[0].own.schema.require(unit)), *zip(each.columns, kinds, strict=True))
    return IbisRelation(ibis.union(tables[0], *tables[1:], distinct=False), Schema(schema))


def _plain(term: IbisTerm) -> IbisTerm:
    """Return a value in the one type that its kind has in all branches of UNION ALL."""
    native = {Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DECIMAL: "float64"}.get(term.type)
    return term if native is None or str(term.expr.type()) == native else replace(term, expr=term.expr.cast(native))


def _kind(term: IbisTerm) -> Type:
    """Return the type of a column that holds a value."""
    return Type.FLOAT if term.real else term.type
