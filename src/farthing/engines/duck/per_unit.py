"""Rows that are made of one unit's rows each, as DuckDB SQL: named relations in front of a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines import joining
from farthing.engines.bounded import gathering
from farthing.engines.duck.features import NATIVE, DuckFeatures, native_of
from farthing.engines.duck.per_row import stacked, windowed
from farthing.engines.duck.rows import DuckCatalog, DuckRelation, DuckRows
from farthing.engines.duck.rows import check as check_joins
from farthing.engines.duck.terms import quoted
from farthing.query.per_row import Stacked, Windowed
from farthing.query.per_unit import PerUnit, parts_of
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.duck.measures import SelectText
    from farthing.query.per_unit import Derived

MADE: Final = "farthing_made"


@dataclass(frozen=True, slots=True)
class DuckMade:
    """A question's derived rows.

    Attributes:
        catalog: the tables that the question itself sees, derived ones among them.
        named: the names and the SQL of derived ones, in order.
        columns: the columns that these read of each view.
    """

    catalog: DuckCatalog
    named: tuple[tuple[str, str], ...]
    columns: dict[str, set[str]]

    def around(self, question: SelectText) -> SelectText:
        """Return a question with its derived rows in front of it."""
        if not self.named:
            return question
        derived = ", ".join(f"{name} AS ({sql})" for name, sql in self.named)
        columns = _merged(self.columns, question.columns, {name for name, _ in self.named})
        return replace(question, sql=f"WITH {derived} {question.sql}", columns=columns)


def made(query: BoundedQuery, catalog: DuckCatalog) -> DuckMade:
    """Return the derived rows of a question."""
    named: list[tuple[str, str]] = []
    columns: dict[str, set[str]] = {}
    joined = dict(catalog.joined)
    known: dict[str | None, DuckRelation] = {name: table for name, table in joined.items() if not table.public}
    known[None] = catalog.own
    for place, each in enumerate(query.derived):
        view = f"{MADE}_{place}"
        seen = dict(joined)
        parts = [DuckRows(gathering(part, query), DuckCatalog(known[part.source], seen)) for part in parts_of(each)]
        sql, relation = _derived(each, query.unit.column or "", parts, view)
        named.append((view, sql))
        for rows in parts:
            columns = _merged(columns, rows.columns, {name for name, _ in named})
        known[each.name] = joined[each.name] = relation
    return DuckMade(DuckCatalog(known[query.source], joined), tuple(named), columns)


def check(query: BoundedQuery, catalog: DuckCatalog) -> None:
    """Refuse joins that the engine cannot run, of a question and of its derived rows; see `engines.joining`."""
    found = made(query, catalog)
    unit = query.unit.column or ""
    for each in query.derived:
        owns = [catalog.own if part.source is None else found.catalog.joined[part.source] for part in parts_of(each)]
        joining.check_units([own.native.get(unit) for own in owns], unit)
        for part, own in zip(parts_of(each), owns, strict=True):
            check_joins(gathering(part, query), DuckCatalog(own, found.catalog.joined))
    check_joins(query, found.catalog)


def _derived(each: Derived, unit: str, parts: list[DuckRows], view: str) -> tuple[str, DuckRelation]:
    """Return the SQL of derived rows of some rows, and the relation that they are."""
    match each:
        case PerUnit():
            return _gathered(each, unit, parts[0], view)
        case Windowed():
            return windowed(each, unit, parts[0], view)
        case Stacked():
            return stacked(each, unit, parts, view)
        case _:
            assert_never(each)


def _gathered(each: PerUnit, unit: str, rows: DuckRows, view: str) -> tuple[str, DuckRelation]:
    """Return the SQL of the rows that are made of one unit's rows each, and the relation that they are."""
    own = rows.own
    keys = [rows.show(rows.scalars.group(scalar), "k") for _, scalar in each.by]
    kinds = [rows.scalars.scalar(scalar) for _, scalar in each.by]
    features = DuckFeatures(rows, [*keys])
    aggregates = [features.sql(one) for _, one in each.features]
    told = {unit: own.native[unit]}
    shown = [f"t.u AS {quoted(unit)}"]
    schema = [(unit, own.schema.require(unit))]
    for (name, _), key, text in zip(each.by, keys, kinds, strict=True):
        told[name] = native_of(text)
        shown.append(f"t.{key} AS {quoted(name)}")
        schema.append((name, Type.FLOAT if text.real else text.type))
    for (name, _), (sql, kind) in zip(each.features, aggregates, strict=True):
        told[name] = NATIVE[kind]
        shown.append(f"{sql} AS {quoted(name)}")
        schema.append((name, kind))
    grouped = ", ".join(["t.u", *(f"t.{key}" for key in keys)])
    sql = f"SELECT {', '.join(shown)} FROM {features.over(rows.sql())} AS t GROUP BY {grouped}"
    return sql, DuckRelation(view, told, Schema(tuple(schema)))


def _merged(one: dict[str, set[str]], other: dict[str, set[str]], made: set[str]) -> dict[str, set[str]]:
    """Return the columns that two texts read of tables, without those of derived rows."""
    views = {*one, *other} - made
    return {view: one.get(view, set()) | other.get(view, set()) for view in views}
