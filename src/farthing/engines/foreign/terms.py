"""Values of a question as ibis expressions over short names: what relation has these names is decided later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.query.expressions import Literal

LEAST_INTEGER: Final = -(2**63)
GREATEST_INTEGER: Final = 2**63 - 1

_ARITIES: Final[tuple[Callable[..., None], ...]] = (
    lambda: None,
    lambda a: None,  # noqa: ARG005  # ibis reads the number of arguments from these
    lambda a, b: None,  # noqa: ARG005
    lambda a, b, c: None,  # noqa: ARG005
    lambda a, b, c, d: None,  # noqa: ARG005
    lambda a, b, c, d, e: None,  # noqa: ARG005
    lambda a, b, c, d, e, f: None,  # noqa: ARG005
)


@dataclass(frozen=True, slots=True)
class IbisTerm:
    """An ibis expression with what has to be known of it.

    Attributes:
        expr: the expression, over columns of `symbol`.
        type: its type; DECIMAL is a double like FLOAT.
        tame: a double that taming would not change.
    """

    expr: Any
    type: Type
    tame: bool = False

    @property
    def real(self) -> bool:
        """Whether it is a double."""
        return self.type in (Type.FLOAT, Type.DECIMAL)

    @property
    def double(self) -> Any:
        """The number as a double."""
        return self.expr if self.real else self.expr.cast("float64")

    @property
    def narrow(self) -> IbisTerm:
        """The value inside another one: integers are int64, NULL where they are outside of it."""
        import ibis

        kind = self.expr.type()
        if self.type is not Type.INTEGER or kind.is_int64():
            return self
        if kind.is_uint64():
            return replace(self, expr=ibis.cases((self.expr <= GREATEST_INTEGER, self.expr)).cast("int64"))
        return replace(self, expr=self.expr.cast("int64"))


def call(name: str, output: Any, *arguments: Any, database: str | None = None) -> Any:
    """Return a call of a function of the backend's own, which ibis need not know; with a database, as it is spelled."""
    import ibis

    values = [value if hasattr(value, "type") else ibis.literal(value) for value in arguments]
    return _builtin(name, database, tuple(value.type() for value in values), ibis.dtype(output))(*values)


@cache
def _builtin(name: str, database: str | None, inputs: tuple[Any, ...], output: Any) -> Any:
    """Return a function of a backend by its name."""
    import ibis

    return ibis.udf.scalar.builtin(_ARITIES[len(inputs)], name=name, database=database, signature=(inputs, output))


@cache
def symbol(name: str, kind: Any) -> Any:
    """Return a column that is known by its name and ibis type alone."""
    import ibis

    return ibis.table({name: kind}, name=f"symbol_{name}")[name]


def placed(expr: Any, *tables: Any) -> Any:
    """Return an expression with its symbols replaced by the columns of tables of the same names."""
    import ibis.expr.operations as ops

    columns = {name: table[name].op() for table in tables for name in table.columns}
    fields = expr.op().find(ops.Field)
    return expr.op().replace({field: columns[field.name] for field in fields}, filter=ops.Value).to_expr()


def weight(expr: Any, copies: Callable[[Any], int]) -> int:
    """Return how many operations an expression is, repetitions counted, and so often as an operation writes them."""
    import ibis.expr.operations as ops

    node = expr.op()
    return int(node.map_nodes(lambda one, *below: 1 + copies(one) * sum(filter(None, below)), filter=ops.Value)[node])


def real(value: float) -> Any:
    """Return a constant double; written as a number it might be read as a decimal."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def whole(value: int) -> Any:
    """Return a constant of 64 bits, or of 128 beyond."""
    import ibis

    return ibis.literal(value).cast("int64") if -(2**31) < value < 2**31 else ibis.literal(value)


def constant(literal: Literal) -> IbisTerm:
    """Return a constant of its own type."""
    import ibis

    value = literal.value
    match literal.type:
        case Type.FLOAT:
            number = float(str(value))
            return IbisTerm(real(number), Type.FLOAT, tame=1e-150 <= abs(number) <= 1e150)
        case Type.INTEGER:
            number = int(str(value))
            beyond = number > GREATEST_INTEGER
            return IbisTerm(ibis.literal(number, type="uint64") if beyond else whole(number), Type.INTEGER)
        case kind:
            return IbisTerm(ibis.literal(value), kind)


def null(kind: Any) -> Any:
    """Return NULL of an ibis type."""
    import ibis

    return ibis.null(kind)


def canonical_type(kind: Any) -> Type:
    """Return our type of an ibis type."""
    tests = (
        (kind.is_integer(), Type.INTEGER),
        (kind.is_floating(), Type.FLOAT),
        (kind.is_decimal(), Type.DECIMAL),
        (kind.is_string(), Type.STRING),
        (kind.is_boolean(), Type.BOOLEAN),
        (kind.is_date(), Type.DATE),
        (kind.is_timestamp() and kind.timezone is None, Type.TIMESTAMP),
    )
    return next((ours for found, ours in tests if found), Type.OTHER)
