"""Rows that stay rows, in plain Python: the definition of every window, and of the rows of several tables."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from farthing.engines.evaluate import evaluate
from farthing.engines.functions import in_64_bits
from farthing.engines.memory.per_unit import feature, value_of
from farthing.engines.memory.rows import key_of, order_of
from farthing.query.expressions import explicit
from farthing.query.per_row import WindowFrame, WindowKind
from farthing.query.per_unit import Feature, FeatureKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from farthing.query.expressions import Scalar
    from farthing.query.per_row import Stacked, Window, Windowed
    from farthing.query.schema import Schema


def windowed(
    each: Windowed, rows: Iterable[tuple[Any, Mapping[str, Any]]], unit: str, scope: Schema
) -> list[dict[str, Any]]:
    """Return rows, each with its unit, beside what windows tell of them."""
    read = [scalar for _, one in each.windows for scalar in one.scalars]
    columns = [scalar for _, scalar in each.columns]
    sort = [*columns, *read]
    units: defaultdict[Any, list[tuple[Any, Mapping[str, Any]]]] = defaultdict(list)
    for own, row in rows:
        units[key_of(own, exact=True)].append((own, row))
    made = []
    for found in units.values():
        mine = sorted(found, key=lambda pair: order_of(_keys(sort, pair[1], scope)))
        told = [windows(one, [row for _, row in mine], scope) for _, one in each.windows]
        for place, (own, row) in enumerate(mine):
            kept = zip((name for name, _ in each.columns), _keys(columns, row, scope), strict=True)
            beside = {name: values[place] for (name, _), values in zip(each.windows, told, strict=True)}
            made.append({unit: own, **dict(kept), **beside})
    return made


def windows(one: Window, rows: Sequence[Mapping[str, Any]], scope: Schema) -> list[Any]:
    """Return what a window tells of each row of one unit; rows with equal keys come in the order in which they are."""
    keys: list[Any] = [tuple(value_of(key.value, row, scope) for key in one.order) for row in rows]
    parts: defaultdict[Any, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        parts[_keys(list(one.by), row, scope)].append(place)
    told: list[Any] = [None] * len(rows)
    for part in parts.values():
        places = _sorted(one, part, keys)
        for at, place in enumerate(places):
            told[place] = _told(one, [rows[other] for other in places], [keys[other] for other in places], at, scope)
    return told


def _told(one: Window, rows: list[Mapping[str, Any]], keys: list[Any], at: int, scope: Schema) -> Any:
    """Return what a window tells of one of its rows, which are in order."""
    match one.kind:
        case WindowKind.ROW_NUMBER:
            return at + 1
        case WindowKind.RANK:
            return keys.index(keys[at]) + 1
        case WindowKind.DENSE_RANK:
            return len(set(keys[: at + 1]))
        case WindowKind.LAG | WindowKind.LEAD:
            there = at + (one.offset if one.kind is WindowKind.LEAD else -one.offset)
            return _of(one, rows[there], scope) if 0 <= there < len(rows) else None
        case WindowKind.FIRST_VALUE | WindowKind.LAST_VALUE:
            seen = _framed(one.rows or WindowFrame(None, None), rows, at)
            return _of(one, seen[0 if one.kind is WindowKind.FIRST_VALUE else -1], scope) if seen else None
        case _:
            equals = max(place for place, key in enumerate(keys) if key == keys[at]) - at
            seen = _framed(one.rows or WindowFrame(None, equals), rows, at)
            return feature(Feature(FeatureKind(one.kind.value), one.value), seen, scope)


def _of(one: Window, row: Mapping[str, Any], scope: Schema) -> Any:
    """Return the value of one row."""
    assert one.value is not None, "it has a value"  # noqa: S101
    return value_of(one.value, row, scope)


def _framed(frame: WindowFrame, rows: list[Mapping[str, Any]], at: int) -> list[Mapping[str, Any]]:
    """Return the rows of a frame."""
    start = 0 if frame.start is None else max(0, at + frame.start)
    end = len(rows) if frame.end is None else max(0, at + frame.end + 1)
    return rows[start:end]


def _sorted(one: Window, places: list[int], keys: list[Any]) -> list[int]:
    """Return the places of rows in the order of a window; those with equal keys stay as they come."""
    for number, key in reversed(list(enumerate(one.order))):
        there = [place for place in places if keys[place][number] is not None]
        there.sort(key=partial(_one, keys, number), reverse=key.descending)
        missing = [place for place in places if keys[place][number] is None]
        places = [*missing, *there] if key.nulls_first else [*there, *missing]
    return places


def _one(keys: list[Any], number: int, place: int) -> Any:
    """Return one key of a row."""
    return keys[place][number]


def stacked(
    each: Stacked, parts: list[list[tuple[Any, dict[str, Any]]]], unit: str, scopes: list[Schema]
) -> list[dict[str, Any]]:
    """Return the rows of several sources, each with the unit that it has there."""
    return [
        {unit: own, **dict(zip(each.columns, map(in_64_bits, _keys(list(branch.values), row, scope)), strict=True))}
        for branch, rows, scope in zip(each.branches, parts, scopes, strict=True)
        for own, row in rows
    ]


def _keys(scalars: list[Scalar], row: Mapping[str, Any], scope: Schema) -> tuple[Any, ...]:
    """Return values of a row in the form in which they are grouped."""
    return tuple(key_of(evaluate(explicit(scalar, scope), row)) for scalar in scalars)
