"""What is made of several rows of one unit, as DuckDB SQL: aggregates of groups, or of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines.duck.cells import INFINITY, present
from farthing.engines.duck.functions import Text
from farthing.engines.duck.terms import double
from farthing.query.per_unit import COARSEST, FINEST, FURTHEST, FeatureKind
from farthing.query.schema import Type

if TYPE_CHECKING:
    from farthing.engines.duck.rows import DuckRows
    from farthing.query.expressions import Scalar
    from farthing.query.per_unit import Feature

NATIVE: Final = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.DECIMAL: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def native_of(text: Text) -> str:
    """Return DuckDB's type of a value that a relation shows."""
    return "UBIGINT" if text.wide else NATIVE[text.type]


class DuckFeatures:
    """The features of one SELECT: aggregates over shown columns, of which some are chosen by a window before.

    Guarantee: each is a function of the rows of its group, whatever their order.
    Proof: docs/proofs/query.per_unit.md.
    Assumes: fewer than 2^31 rows of one unit.
    Rounds: reals that are added, each to 2^-32.
    """

    def __init__(self, rows: DuckRows, keys: list[str]) -> None:
        self._rows = rows
        self._parted = ", ".join(["t.u", *(f"t.{key}" for key in keys)])
        self._best: dict[str, str] = {}

    def over(self, relation: str) -> str:
        """Return the rows with what windows tell of them."""
        told = "".join(f", {sql} AS {name}" for sql, name in self._best.items())
        return f"(SELECT t.*{told} FROM ({relation}) AS t)" if told else f"({relation})"

    def sql(self, one: Feature, window: str = "") -> tuple[str, Type]:  # noqa: PLR0911  # one return a case
        """Return a feature, and its type.

        Args:
            one: the feature.
            window: OVER (...), where it is told of each row.
        """
        if one.value is None:
            return f"count(*){window}", Type.INTEGER
        value = self.value(one.value)
        name = self._rows.show(value, "v")
        kind = Type.FLOAT if value.real else value.type
        match one.kind:
            case FeatureKind.COUNT:
                return f"count(t.{self._rows.show(present(self._rows, one.value), 'v')}){window}", Type.INTEGER
            case FeatureKind.DISTINCT:
                return f"count(DISTINCT t.{name})", Type.INTEGER
            case FeatureKind.SUM:
                if value.real:
                    return self._added(value, window), Type.FLOAT
                return f"TRY_CAST(sum(t.{name}){window} AS BIGINT)", Type.INTEGER
            case FeatureKind.MEAN:
                count = f"count(t.{name}){window}"
                return f"CASE WHEN {count} > 0 THEN {self._added(value, window)} / {count}::DOUBLE END", Type.FLOAT
            case FeatureKind.MIN | FeatureKind.MAX:
                return f"{one.kind.value}(t.{name}){window}", kind
            case FeatureKind.FIRST | FeatureKind.LAST:
                return self._chosen(one, name), kind
            case _:
                assert_never(one.kind)

    def value(self, scalar: Scalar) -> Text:
        """Return a value that is NULL where it is NaN or beyond 64 bits, with one zero."""
        value = self._rows.scalars.group(scalar).narrow
        if not value.real:
            return value
        x = self._rows.scalars.bind(value)
        return Text(f"CASE WHEN {x.sql} <= {INFINITY} THEN {x.sql} END", Type.FLOAT, x.level)

    def _added(self, value: Text, window: str) -> str:
        """Return a sum of reals: of three whole numbers each, that add up in any order to the same."""
        bind, show = self._rows.scalars.bind, self._rows.show
        x = bind(Text(value.double, Type.FLOAT, value.level))
        inside = f"least(greatest({x.sql}, {double(-FURTHEST)}), {double(FURTHEST)})"
        x = bind(Text(f"CASE WHEN {x.sql} IS NOT NULL THEN {inside} END", Type.FLOAT, x.level))
        above = f"floor({x.sql} * {double(2.0**-COARSEST)})"
        rest = bind(Text(f"({x.sql} - {above} * {double(2.0**COARSEST)})", Type.FLOAT, x.level))
        below = f"floor(({rest.sql} - floor({rest.sql})) * {double(2.0**FINEST)} + {double(0.5)})"
        texts = (
            Text(above, Type.FLOAT, x.level),
            *(Text(sql, Type.FLOAT, rest.level) for sql in (f"floor({rest.sql})", below)),
        )
        parts = [f"CAST(sum(CAST(t.{show(text, 'p')} AS BIGINT)){window} AS DOUBLE)" for text in texts]
        return f"({parts[0]} * {double(2.0**COARSEST)} + {parts[1]} + {parts[2]} * {double(2.0**-FINEST)})"

    def _chosen(self, one: Feature, name: str) -> str:
        """Return the least value of the rows with the least or greatest key, among those that have both."""
        assert one.key is not None, "it has a key"  # noqa: S101
        key = self._rows.show(self.value(one.key), "v")
        word = "min" if one.kind is FeatureKind.FIRST else "max"
        there = f"CASE WHEN t.{name} IS NOT NULL THEN t.{key} END"
        best = self._best.setdefault(f"{word}({there}) OVER (PARTITION BY {self._parted})", f"b{len(self._best)}")
        return f"min(CASE WHEN t.{key} = t.{best} THEN t.{name} END)"
