"""What is made of several rows of one unit, as ibis expressions: aggregates of groups, or of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.foreign.cells import present
from farthing.engines.foreign.terms import IbisTerm, real, whole
from farthing.query.per_unit import COARSEST, FINEST, FURTHEST, FeatureKind
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.engines.foreign.rows import IbisRows
    from farthing.query.expressions import Scalar
    from farthing.query.per_unit import Feature

_HALF: Any = 1 << 32


@dataclass(frozen=True, slots=True)
class _Best:
    """The least or greatest key of the rows of a unit that have a value."""

    word: str
    key: str
    value: str


class IbisFeatures:
    """The features of one subquery: aggregates of shown columns, and what is made of these.

    Guarantee: each is a function of the rows of its group, whatever their order.
    Proof: docs/proofs/query.per_unit.md.
    Assumes: fewer than 2^31 rows of one unit.
    Rounds: reals that are added, each to 2^-32.
    """

    def __init__(self, rows: IbisRows, keys: list[str]) -> None:
        self._rows = rows
        self._keys = keys
        self._best: dict[_Best, str] = {}
        self.aggregates: dict[str, Callable[[Any], Any]] = {}

    def over(self, table: Any) -> Any:
        """Return the rows with what windows tell of them."""
        import ibis

        for best, name in self._best.items():
            window = ibis.window(group_by=[table[key] for key in ("u", *self._keys)])
            there = ibis.cases((table[best.value].notnull(), table[best.key]))
            table = table.mutate(**{name: getattr(there, best.word)().over(window)})
        return table

    def told(self, one: Feature) -> tuple[Callable[[Any], Any], Type]:  # noqa: PLR0911  # one return a case
        """Return what is made of a unit's aggregates, and its type."""
        if one.value is None:
            return self._aggregate(lambda table: table.count()), Type.INTEGER
        value = self.value(one.value)
        name = self._rows.show(value.expr, "v")
        kind = Type.FLOAT if value.real else value.type
        match one.kind:
            case FeatureKind.COUNT:
                seen = self._rows.show(present(self._rows, one.value), "v")
                return self._aggregate(lambda table: table[seen].count()), Type.INTEGER
            case FeatureKind.DISTINCT:
                return self._aggregate(lambda table: self._rows.backend.different(table[name])), Type.INTEGER
            case FeatureKind.SUM:
                return (self._added(value), Type.FLOAT) if value.real else (self._whole_sum(value), Type.INTEGER)
            case FeatureKind.MEAN:
                count, added = self._aggregate(lambda table: table[name].count()), self._added(value)
                return lambda cells: _quotient(added(cells), count(cells)), Type.FLOAT
            case FeatureKind.MIN | FeatureKind.MAX:
                return self._aggregate(lambda table: getattr(table[name], one.kind.value)()), kind
            case FeatureKind.FIRST | FeatureKind.LAST:
                return self._chosen(one, name), kind
            case _:
                assert_never(one.kind)

    def of_any(self, scalar: Scalar, build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return what is built where there is a value, else NULL: DataFusion's MIN keeps what has left its frame."""
        import ibis

        name = self._rows.show(self.value(scalar).expr, "v")
        many = self._aggregate(lambda table: table[name].count())
        return lambda cells: ibis.cases((many(cells) > whole(0), build(cells)))

    def _aggregate(self, build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Add an aggregate; return what reads it."""
        name = f"{self._rows.prefix}a{len(self.aggregates)}"
        self.aggregates[name] = build
        return lambda cells: cells[name]

    def _total(self, expr: Any, name: str) -> Callable[[Any], Any]:
        """Add the sum of whole numbers that fit 33 bits; return what reads it."""
        shown = self._rows.show(expr, name)
        return self._aggregate(lambda table: table[shown].sum().cast("decimal(38, 0)").cast("int64"))

    def value(self, scalar: Scalar) -> IbisTerm:
        """Return a value that is NULL where it is NaN or beyond 64 bits, with one zero."""
        import ibis

        value = self._rows.scalars.group(scalar)
        if not value.real:
            return replace(value, expr=value.narrow.expr)
        x = self._rows.scalars.bind(value).expr
        return IbisTerm(ibis.cases((x <= real(float("inf")), x)), Type.FLOAT)

    def _added(self, value: IbisTerm) -> Callable[[Any], Any]:
        """Return a sum of reals: of three whole numbers each, that add up in any order to the same."""
        import ibis

        bind, rounded = self._rows.scalars.bind, self._rows.backend.rounded
        x = bind(IbisTerm(value.double, Type.FLOAT)).expr
        inside = ibis.cases((x.notnull(), ibis.least(ibis.greatest(x, real(-FURTHEST)), real(FURTHEST))))
        inside = ibis.ifelse(inside.abs() >= real(2.0**-100), inside, ibis.ifelse(x.notnull(), real(0), x))
        x = bind(IbisTerm(inside, Type.FLOAT)).expr
        above = bind(IbisTerm(rounded("floor", x * real(2.0**-COARSEST)), Type.FLOAT)).expr
        rest = bind(IbisTerm(x - above * real(2.0**COARSEST), Type.FLOAT)).expr
        middle = bind(IbisTerm(rounded("floor", rest), Type.FLOAT)).expr
        left = bind(IbisTerm((rest - middle) * real(2.0**FINEST) + real(0.5), Type.FLOAT)).expr
        low = bind(IbisTerm(rounded("floor", left), Type.FLOAT)).expr
        parts = [self._total(part.cast("int64"), "p") for part in (above, middle, low)]

        def summed(cells: Any) -> Any:
            high, unit, fine = (part(cells).cast("float64") for part in parts)
            return high * real(2.0**COARSEST) + unit + fine * real(2.0**-FINEST)

        return summed

    def _whole_sum(self, value: IbisTerm) -> Callable[[Any], Any]:
        """Return a sum of whole numbers, NULL beyond 64 bits: of two halves each, which fit 33 bits."""
        import ibis

        divided = self._rows.backend.divided
        x = self._rows.scalars.bind(IbisTerm(value.expr.cast("int64"), Type.INTEGER)).expr
        parts = [self._total(divided(word, x, whole(_HALF)), "p") for word in ("div", "mod")]

        def summed(cells: Any) -> Any:
            high, low = (part(cells) for part in parts)
            carried, rest = (divided(word, low, whole(_HALF)) for word in ("div", "mod"))
            below = ibis.ifelse(rest < whole(0), whole(1), whole(0))
            top, bottom = high + carried - below, rest + below * whole(_HALF)
            return ibis.cases((top.between(whole(-(2**31)), whole(2**31 - 1)), top * whole(_HALF) + bottom))

        return summed

    def _chosen(self, one: Feature, name: str) -> Callable[[Any], Any]:
        """Return the least value of the rows with the least or greatest key, among those that have both."""
        import ibis

        assert one.key is not None, "it has a key"  # noqa: S101
        key = self._rows.show(self.value(one.key).expr, "v")
        best = _Best("min" if one.kind is FeatureKind.FIRST else "max", key, name)
        told = self._best.setdefault(best, f"{self._rows.prefix}b{len(self._best)}")
        return self._aggregate(lambda table: ibis.cases((table[key] == table[told], table[name])).min())


def _quotient(total: Any, count: Any) -> Any:
    """Return a mean, NULL of nothing."""
    import ibis

    return ibis.cases((count > whole(0), total / ibis.greatest(count, whole(1)).cast("float64")))
