"""Aggregates of one unit's rows in a subquery: their names, and what they are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import Case, Literal, Scalar
from farthing.query.per_row import AGGREGATES, WindowKind
from farthing.query.per_unit import Feature, FeatureKind
from farthing.query.schema import NUMBER_TYPES, Type
from farthing.sql.ranges import as_number

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText
    from farthing.sql.translator import Translator

KINDS: Final = {
    "COUNT": FeatureKind.COUNT,
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), FeatureKind.COUNT),
    "SUM": FeatureKind.SUM,
    **dict.fromkeys(("AVG", "MEAN"), FeatureKind.MEAN),
    **dict.fromkeys(("MIN", "ANY_VALUE", "ANY"), FeatureKind.MIN),
    "MAX": FeatureKind.MAX,
    **dict.fromkeys(("ARG_MIN", "MIN_BY", "ARGMIN"), FeatureKind.FIRST),
    **dict.fromkeys(("ARG_MAX", "MAX_BY", "ARGMAX"), FeatureKind.LAST),
}
"""The aggregates of a unit's rows, by their names in SQL."""


@dataclass(frozen=True, slots=True)
class FeatureReader:
    """Reads aggregates of the rows of a subquery.

    Attributes:
        inside: reads what is within them.
    """

    inside: Translator

    @property
    def _source(self) -> SqlText:
        """The text, for places in messages."""
        return self.inside.source

    def window(self, node: Node, name: str) -> Feature:
        """Return an aggregate that a window tells; refuse what none tells."""
        feature = self.feature(node) if is_feature(node) else None
        if feature is None:
            advice = f"there are {', '.join(kind.value.upper() for kind in WindowKind)}"
            raise self._source.refuse(f"the window {name}", advice, node)
        if feature.kind.value not in {kind.value for kind in AGGREGATES}:
            advice = "write it in a subquery that groups by the unit, and join that"
            raise self._source.refuse(f"{feature.kind.value.upper()} as a window", advice, node)
        return feature

    def feature(self, node: Node) -> Feature:
        """Return an aggregate of a unit's rows."""
        condition = None
        if type(node).__name__ == "Filter":
            condition, node = self.inside.within("FILTER").whole(node.expression.this), node.this
        name, arguments = str(node.name).upper(), list(node.expressions)
        kind = KINDS[name]
        if kind is FeatureKind.COUNT and len(arguments) == 1 and type(arguments[0]).__name__ == "Distinct":
            kind, arguments = FeatureKind.DISTINCT, list(arguments[0].expressions)
        wanted = 2 if kind in (FeatureKind.FIRST, FeatureKind.LAST) else 1
        if kind is FeatureKind.COUNT and (not arguments or type(arguments[0]).__name__ in ("Star", "Literal")):
            return Feature(kind, None if condition is None else _only(condition, Literal(1)))
        if len(arguments) != wanted or any(map(is_feature, (part for one in arguments for part in one.walk()))):
            written = "(x, y)" if wanted == 2 else "(x)"
            raise self._source.refuse(
                f"{name} with {len(arguments)} arguments", f"write {name}{written} of columns", node
            )
        if name in ("COUNT_IF", "COUNTIF"):
            return Feature(kind, self._kept(_only(self.inside.whole(arguments[0]), Literal(1)), condition))
        scalars = [self._argument(kind, name, argument) for argument in arguments]
        return Feature(kind, self._kept(scalars[0], condition), *scalars[1:])

    def _argument(self, kind: FeatureKind, name: str, node: Node) -> Scalar:
        """Return what an aggregate is of."""
        scalar = self.inside.scalar(node)
        found = self.inside.type(scalar)
        if kind is FeatureKind.COUNT:
            return scalar
        self.inside.typed(node)
        if kind in (FeatureKind.SUM, FeatureKind.MEAN) and found is Type.BOOLEAN:
            return as_number(scalar, self.inside)
        numbers = kind in (FeatureKind.SUM, FeatureKind.MEAN)
        if (numbers and found not in NUMBER_TYPES) or found is Type.OTHER:
            raise self._source.refuse(f"{name} of a {found}", "aggregate a number", node)
        if found is Type.BOOLEAN and kind is not FeatureKind.DISTINCT:
            raise self._source.refuse(f"{name} of a {found}", "count where it holds: COUNT_IF(x)", node)
        return scalar

    def _kept(self, value: Scalar, condition: Any) -> Scalar:
        """Return a value that is NULL where the condition of FILTER is not TRUE."""
        return value if condition is None else _only(condition, value)


def is_feature(node: Node) -> bool:
    """Return whether a node is an aggregate of a unit's rows, with its FILTER if it has one."""
    if type(node).__name__ == "Filter":
        node = node.this
    return type(node).__name__ == "Anonymous" and str(node.name).upper() in KINDS


def is_window(node: Node) -> bool:
    """Return whether a node is a window, of which no aggregate is one of groups."""
    return type(node).__name__ == "Window"


def _only(condition: Any, value: Scalar) -> Scalar:
    """Return a value where a condition is TRUE, else NULL."""
    return Case(((condition, value),))
