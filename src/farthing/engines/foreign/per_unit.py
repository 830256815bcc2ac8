"""Rows that are made of one unit's rows each, as ibis tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from farthing.engines import joining
from farthing.engines.bounded import gathering
from farthing.engines.foreign.features import IbisFeatures
from farthing.engines.foreign.per_row import stacked, windowed
from farthing.engines.foreign.rows import IbisCatalog, IbisRelation, IbisRows
from farthing.engines.foreign.rows import check as check_joins
from farthing.query.per_row import Stacked, Windowed
from farthing.query.per_unit import PerUnit, parts_of
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.foreign.backend import Backend
    from farthing.query.per_unit import Derived


def made(query: BoundedQuery, catalog: IbisCatalog, backend: Backend) -> IbisCatalog:
    """Return the tables that a question itself sees: its derived rows among them, and what it is of."""
    joined = dict(catalog.joined)
    for place, each in enumerate(query.derived):
        parts = [
            IbisRows(gathering(part, query), _seen(catalog, joined, part.source), backend, prefix=f"g{place}_{number}")
            for number, part in enumerate(parts_of(each))
        ]
        joined[each.name] = _derived(each, query.unit.column or "", parts)
    return _seen(catalog, joined, query.source)


def check(query: BoundedQuery, catalog: IbisCatalog, backend: Backend) -> None:
    """Refuse joins that the engine cannot run, of a question and of its derived rows; see `engines.joining`."""
    found = made(query, catalog, backend)
    unit = query.unit.column or ""
    for each in query.derived:
        seen = [_seen(catalog, dict(found.joined), part.source) for part in parts_of(each)]
        joining.check_units([one.own.table.schema().get(unit) for one in seen], unit)
        for part, one in zip(parts_of(each), seen, strict=True):
            check_joins(gathering(part, query), one, backend)
    check_joins(query, found, backend)


def _seen(catalog: IbisCatalog, joined: dict[str, IbisRelation], source: str | None) -> IbisCatalog:
    """Return the tables that something sees that is of one of them."""
    return IbisCatalog(catalog.own if source is None else joined[source], joined)


def _derived(each: Derived, unit: str, parts: list[IbisRows]) -> IbisRelation:
    """Return derived rows of some rows."""
    match each:
        case PerUnit():
            return _gathered(each, unit, parts[0])
        case Windowed():
            return windowed(each, unit, parts[0])
        case Stacked():
            return stacked(each, unit, parts)
        case _:
            assert_never(each)


def _gathered(each: PerUnit, unit: str, rows: IbisRows) -> IbisRelation:
    """Return derived rows."""
    terms = [replace(rows.scalars.group(scalar), expr=rows.scalars.group(scalar).narrow.expr) for _, scalar in each.by]
    keys = [rows.show(term.expr, "k") for term in terms]
    features = IbisFeatures(rows, keys)
    told = [features.told(one) for _, one in each.features]
    table = features.over(rows.table())
    aggregates = {name: build(table) for name, build in features.aggregates.items()}
    cells = table.group_by(["u", *keys]).agg(**aggregates) if aggregates else table.select("u", *keys).distinct()
    shown = {unit: cells["u"]}
    shown |= {name: cells[key] for (name, _), key in zip(each.by, keys, strict=True)}
    shown |= {name: build(cells) for (name, _), (build, _) in zip(each.features, told, strict=True)}
    kinds = [(unit, rows.own.schema.require(unit))]
    kinds += [(name, Type.FLOAT if term.real else term.type) for (name, _), term in zip(each.by, terms, strict=True)]
    kinds += [(name, kind) for (name, _), (_, kind) in zip(each.features, told, strict=True)]
    return IbisRelation(cells.select(**shown), Schema(tuple(kinds)))
