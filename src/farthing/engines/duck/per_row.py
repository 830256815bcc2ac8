"""Rows that stay rows, as DuckDB SQL: beside what windows by the unit tell of them, and those of several tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.engines.duck.features import NATIVE, DuckFeatures, native_of
from farthing.engines.duck.rows import DuckRelation
from farthing.engines.duck.terms import quoted
from farthing.query.per_row import WindowKind
from farthing.query.per_unit import Feature, FeatureKind
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from farthing.engines.duck.functions import Text
    from farthing.engines.duck.rows import DuckRows
    from farthing.query.per_row import SortKey, Stacked, Window, Windowed

ORDER: Final = "farthing_order"
"""The place of a row among those of its unit, by all its columns."""


def windowed(each: Windowed, unit: str, rows: DuckRows, view: str) -> tuple[str, DuckRelation]:
    """Return the SQL of rows with what windows tell of them, and the relation that they are."""
    windows = DuckWindows(rows)
    texts = [rows.scalars.group(scalar) for _, scalar in each.columns]
    names = [rows.show(text, "k") for text in texts]
    read = [scalar for _, one in each.windows for scalar in one.scalars]
    order = list(dict.fromkeys([*names, *(rows.show(rows.scalars.group(scalar), "k") for scalar in read)]))
    told = [windows.sql(one) for _, one in each.windows]
    own = rows.own
    native, kinds = {unit: own.native[unit]}, [(unit, own.schema.require(unit))]
    shown = [f"t.u AS {quoted(unit)}"]
    for (name, _), text, key in zip(each.columns, texts, names, strict=True):
        native[name] = native_of(text)
        kinds.append((name, Type.FLOAT if text.real else text.type))
        shown.append(f"t.{key} AS {quoted(name)}")
    for (name, _), (sql, kind) in zip(each.windows, told, strict=True):
        native[name] = NATIVE[kind]
        kinds.append((name, kind))
        shown.append(f"{sql} AS {quoted(name)}")
    relation = f"({rows.sql()})"
    if any(one.ties for _, one in each.windows):
        ordered = ", ".join(f"t.{name} NULLS LAST" for name in order)
        by = f"PARTITION BY t.u{f' ORDER BY {ordered}' if order else ''}"
        relation = f"(SELECT t.*, row_number() OVER ({by}) AS {ORDER} FROM {relation} AS t)"
    return f"SELECT {', '.join(shown)} FROM {relation} AS t", DuckRelation(view, native, Schema(tuple(kinds)))


class DuckWindows:
    """The windows of one SELECT: each over the rows of one unit, in an order without ties where it needs one.

    Guarantee: each is a function of the rows of its unit, whatever their order in a table.
    Proof: docs/proofs/query.per_row.md.
    Assumes: fewer than 2^31 rows of one unit.
    Rounds: reals that are added, each to 2^-32.
    """

    def __init__(self, rows: DuckRows) -> None:
        self._rows = rows
        self._features = DuckFeatures(rows, [])

    def sql(self, one: Window) -> tuple[str, Type]:
        """Return a window, and its type."""
        over = f" OVER ({self._parted(one)}{self._ordered(one)}{one.rows or ''})"
        match one.kind:
            case WindowKind.ROW_NUMBER | WindowKind.RANK | WindowKind.DENSE_RANK:
                return f"{one.kind.value}(){over}", Type.INTEGER
            case WindowKind.LAG | WindowKind.LEAD:
                name, kind = self._value(one)
                return f"{one.kind.value}(t.{name}, {one.offset}){over}", kind
            case WindowKind.FIRST_VALUE | WindowKind.LAST_VALUE:
                name, kind = self._value(one)
                return f"{one.kind.value}(t.{name}){over}", kind
            case _:
                return self._features.sql(Feature(FeatureKind(one.kind.value), one.value), over)

    def _value(self, one: Window) -> tuple[str, Type]:
        """Return the name of what a window is of, and its type."""
        assert one.value is not None, "it has a value"  # noqa: S101
        value = self._features.value(one.value)
        return self._rows.show(value, "v"), Type.FLOAT if value.real else value.type

    def _parted(self, one: Window) -> str:
        """Return what the rows of a window have in common: the unit first."""
        names = ["u", *(self._rows.show(self._rows.scalars.group(scalar), "k") for scalar in one.by)]
        return "PARTITION BY " + ", ".join(f"t.{name}" for name in names)

    def _ordered(self, one: Window) -> str:
        """Return the order of a window, without ties where it needs one."""
        keys = [*map(self._key, one.order), *([f"t.{ORDER}"] if one.ties else [])]
        return f" ORDER BY {', '.join(keys)}" if keys else ""

    def _key(self, key: SortKey) -> str:
        """Return one key of an order."""
        name = self._rows.show(self._features.value(key.value), "v")
        return f"t.{name}{' DESC' if key.descending else ''} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def stacked(each: Stacked, unit: str, parts: list[DuckRows], view: str) -> tuple[str, DuckRelation]:
    """Return the SQL of the rows of several sources, and the relation that they are."""
    own, selects, texts = parts[0].own, [], list["Text"]()
    for branch, rows in zip(each.branches, parts, strict=True):
        texts = [rows.scalars.group(scalar).narrow for scalar in branch.values]
        names = [rows.show(text, "k") for text in texts]
        shown = [f"t.u AS {quoted(unit)}"]
        shown += [f"t.{name} AS {quoted(column)}" for name, column in zip(names, each.columns, strict=True)]
        selects.append(f"SELECT {', '.join(shown)} FROM ({rows.sql()}) AS t")
    native = {unit: own.native[unit]} | {
        column: native_of(text) for column, text in zip(each.columns, texts, strict=True)
    }
    kinds = [(unit, own.schema.require(unit))]
    kinds += [
        (column, Type.FLOAT if text.real else text.type) for column, text in zip(each.columns, texts, strict=True)
    ]
    return " UNION ALL ".join(selects), DuckRelation(view, native, Schema(tuple(kinds)))
