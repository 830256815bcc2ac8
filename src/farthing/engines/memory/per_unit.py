"""Rows that are made of one unit's rows each, in plain Python: the definition of every feature."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.contributions import number
from farthing.engines.evaluate import evaluate
from farthing.engines.functions import in_64_bits
from farthing.engines.memory.rows import key_of
from farthing.query.expressions import explicit, type_of
from farthing.query.per_unit import COARSEST, FINEST, FURTHEST, FeatureKind
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from farthing.query.expressions import Scalar
    from farthing.query.per_unit import Feature, PerUnit
    from farthing.query.schema import Schema


def gathered(
    each: PerUnit, rows: Iterable[tuple[Any, Mapping[str, Any]]], unit: str, scope: Schema
) -> list[dict[str, Any]]:
    """Return one row for every unit, and every combination of the other groups, of rows each with its unit."""
    scalars = [explicit(scalar, scope) for _, scalar in each.by]
    cells: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    units: dict[Any, Any] = {}
    for own, row in rows:
        key = tuple(key_of(evaluate(scalar, row)) for scalar in scalars)
        units.setdefault(key_of(own, exact=True), own)
        cells[key_of(own, exact=True), key].append(row)
    names = [name for name, _ in each.by]
    return [
        {unit: units[own]}
        | dict(zip(names, key, strict=True))
        | {name: feature(one, mine, scope) for name, one in each.features}
        for (own, key), mine in cells.items()
    ]


def feature(one: Feature, rows: list[Mapping[str, Any]], scope: Schema) -> Any:  # noqa: PLR0911  # one return a case
    """Return a feature of some rows of one unit; None is NULL."""
    if one.value is None:
        return len(rows)
    pairs = [
        (value_of(one.value, row, scope), None if one.key is None else value_of(one.key, row, scope)) for row in rows
    ]
    there = [value for value, _ in pairs if value is not None]
    match one.kind:
        case FeatureKind.COUNT:
            return sum(1 for row in rows if not missing(evaluate(explicit(one.value, scope), row)))
        case FeatureKind.DISTINCT:
            return len(set(there))
        case FeatureKind.SUM:
            return total(there, whole=type_of(one.value, scope) is Type.INTEGER)
        case FeatureKind.MEAN:
            added = total([float(value) for value in there], whole=False)
            return None if added is None else added / len(there)
        case FeatureKind.MIN | FeatureKind.MAX:
            return (min if one.kind is FeatureKind.MIN else max)(there, default=None)
        case FeatureKind.FIRST | FeatureKind.LAST:
            both = [(value, key) for value, key in pairs if value is not None and key is not None]
            best = (min if one.kind is FeatureKind.FIRST else max)((key for _, key in both), default=None)
            return min((value for value, key in both if key == best), default=None)
        case _:
            assert_never(one.kind)


def total(values: list[Any], *, whole: bool) -> Any:
    """Return a sum that does not depend on the order of adding: NULL of nothing, and of integers beyond 64 bits.

    >>> total([0.1] * 10, whole=False), total([1, 2], whole=True), total([2**63 - 1, 1], whole=True)
    (1.0000000009313226, 3, None)
    """
    if not values:
        return None
    if whole:
        return in_64_bits(sum(values))
    parts = [_parts(value) for value in values]
    high, middle, low = (float(sum(part)) for part in zip(*parts, strict=True))
    return high * 2.0**COARSEST + middle + low * 2.0**-FINEST


def _parts(value: float) -> tuple[int, int, int]:
    """Return a real as three whole numbers that fit 32 bits, the first in steps of 2^31, the last of 2^-32."""
    inside = min(max(value, -FURTHEST), FURTHEST)
    high = math.floor(inside * 2.0**-COARSEST)
    rest = inside - high * 2.0**COARSEST
    middle = math.floor(rest)
    return high, middle, math.floor((rest - middle) * 2.0**FINEST + 0.5)


def value_of(scalar: Scalar, row: Mapping[str, Any], scope: Schema) -> Any:
    """Return a value as features take it: NULL for NaN and for whole numbers beyond 64 bits, one zero."""
    value = evaluate(explicit(scalar, scope), row)
    if isinstance(value, float):
        return number(value) if number(value) is None else value + 0.0
    return in_64_bits(value)


def missing(value: Any) -> bool:
    """Return whether there is no value: NULL or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))
