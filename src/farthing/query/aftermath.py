"""What is done to a released answer: HAVING, ORDER BY, LIMIT, ROUND, LAG. It sees released columns only: free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import UnsupportedQuery
from farthing.query.expressions import (
    And,
    Between,
    Call,
    Column,
    Compare,
    Expression,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Scalar,
    all_of,
    columns_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.query.comparison import ComputedNumber
    from farthing.query.rounding import Rounding


@dataclass(frozen=True, slots=True)
class Order:
    """One key of ORDER BY.

    Attributes:
        key: a scalar of answer columns.
        descending: the greatest first.
        nulls_first: groups without a value first; last by default, as DuckDB has it.
    """

    key: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Which groups of a released answer are shown, and in which order.

    Guarantee: what is shown is a function of the released columns and the keys alone.
    Proof: [design, charge look speak] post-processing of what was released: `arranged` is given nothing else.
    Assumes: the columns it is given were released.
    Rounds: nothing.

    Attributes:
        having: the groups that are shown, or None for all; NULL is not shown.
        order: the keys of the order, first key first; ties keep the order of the answer.
        limit: the most groups that are shown, or None.
        offset: how many are left out before the first.
        rounded: the columns that are shown in fewer digits, with how.
        comparisons: the columns that are computed of others, as LAG is, before they are rounded.

    >>> import pyarrow as pa
    >>> least = Compare(Column("n"), Operator.GE, Literal(3))
    >>> aftermath = Aftermath(least, (Order(Column("n"), descending=True),), limit=2)
    >>> aftermath.arranged({"n": np.array([3, 9, 1, 5])}, pa.table({"dest": ["a", "b", "c", "d"]})).tolist()
    [1, 3]
    """

    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    rounded: tuple[tuple[str, Rounding], ...] = ()
    comparisons: tuple[ComputedNumber, ...] = ()

    def __post_init__(self) -> None:
        roots = [key.key for key in self.order] + ([] if self.having is None else [self.having])
        for node, _ in walk(*roots):
            if not isinstance(node, _UNDERSTOOD) and not (isinstance(node, Call) and node.function in _FUNCTIONS):
                raise UnsupportedQuery(
                    f"{str(node)[:60]} of an answer",
                    construct=node.function.name if isinstance(node, Call) else type(node).__name__,
                    rule="HAVING and ORDER BY compare answer columns, with + - * /, ABS, ROUND, FLOOR and CEIL",
                    next_step="filter or sort the answer in your own program: that is free",
                )

    @property
    def cuts(self) -> bool:
        """Whether groups are left out by their place."""
        return self.limit is not None or self.offset > 0

    def then(self, having: Expression | None, order: tuple[Order, ...], limit: int | None, offset: int) -> Aftermath:
        """Return what is done by it, and then by a SELECT above: its order, what both keep, the smaller limit."""
        parts = [part for part in (self.having, having) if part is not None]
        kept = all_of(*parts) if parts else None
        most = min((one for one in (self.limit, limit) if one is not None), default=None)
        return replace(self, having=kept, order=order or self.order, limit=most, offset=offset or self.offset)

    @property
    def shows_all(self) -> bool:
        """Whether every group is shown, in the order of the answer."""
        return self.having is None and not self.order and self.limit is None and self.offset == 0

    @property
    def columns(self) -> frozenset[str]:
        """The answer columns that it reads."""
        roots = [key.key for key in self.order] + ([] if self.having is None else [self.having])
        return columns_of(*roots)

    def arranged(
        self, columns: Mapping[str, Any], keys: pa.Table | None, estimates: Mapping[str, Any] | None = None
    ) -> NDArray[np.int64]:
        """Return the places of the groups to show, in order.

        Args:
            columns: the released columns by name, each with one number a group; NaN is not a value.
            keys: the key columns, None for an answer without groups.
            estimates: what ORDER BY reads in place of columns of these names.
        """
        reader = _Reader(_answer(columns, keys))
        ranking = _Reader(_answer({**columns, **(estimates or {})}, keys))
        shown = np.arange(reader.groups, dtype=np.int64)
        if self.having is not None:
            kept = reader.predicate(self.having).fill_null(fill_value=False)
            shown = np.flatnonzero(kept.to_numpy(zero_copy_only=False)).astype(np.int64)
        for key in reversed(self.order):
            shown = shown[_sorted(ranking.scalar(key.key).take(_indices(shown)), key)]
        last = None if self.limit is None else self.offset + self.limit
        return shown[self.offset : last]


_FUNCTIONS: Final = {
    FunctionName.NEGATE: "negate",
    FunctionName.ABS: "abs",
    FunctionName.ADD: "add",
    FunctionName.SUBTRACT: "subtract",
    FunctionName.MULTIPLY: "multiply",
    FunctionName.DIVIDE: "divide",
    FunctionName.ROUND: "round",
    FunctionName.FLOOR: "floor",
    FunctionName.CEIL: "ceil",
}
_UNDERSTOOD: Final = (Column, Literal, Compare, And, Or, Not, IsNull, In, Between)
_COMPARISONS: Final = {
    Operator.EQ: "equal",
    Operator.NE: "not_equal",
    Operator.LT: "less",
    Operator.LE: "less_equal",
    Operator.GT: "greater",
    Operator.GE: "greater_equal",
}


def _answer(columns: Mapping[str, Any], keys: pa.Table | None) -> dict[str, pa.Array]:
    """Return every column of an answer as an Arrow array, numbers as doubles."""
    import pyarrow as pa

    found = {name: pa.array(np.asarray(values, np.float64), from_pandas=True) for name, values in columns.items()}
    for name, column in () if keys is None else zip(keys.column_names, keys.columns, strict=True):
        values = column.combine_chunks()
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        found[name] = values.cast(pa.float64() if number else kind, safe=False)
    return found


def _indices(shown: NDArray[np.int64]) -> pa.Array:
    """Return places as an Arrow array."""
    import pyarrow as pa

    return pa.array(shown)


def _sorted(values: pa.Array, key: Order) -> NDArray[np.int64]:
    """Return the places of values in order; equal ones stay as they are."""
    import pyarrow.compute as pc

    direction = "descending" if key.descending else "ascending"
    placed = "at_start" if key.nulls_first else "at_end"
    order = pc.array_sort_indices(values, order=direction, null_placement=placed)
    return np.asarray(order.to_numpy(), np.int64)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Evaluates expressions on the columns of an answer, all groups at once."""

    columns: dict[str, pa.Array]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(next(iter(self.columns.values()), ()))

    def scalar(self, scalar: Scalar) -> pa.Array:
        """Return the value for every group."""
        import pyarrow as pa
        import pyarrow.compute as pc

        match scalar:
            case Column(name):
                return self.columns[name]
            case Literal(value):
                number = isinstance(value, int | float) and not isinstance(value, bool)
                return pa.array([float(value) if number else value] * self.groups)  # type: ignore[arg-type]
            case Call(FunctionName.ROUND, (operand, *rest)):
                (digits,) = rest or (Literal(0),)
                assert isinstance(digits, Literal)  # noqa: S101  # the language has no other
                whole = int(digits.value)  # type: ignore[arg-type]
                return pc.round(self.scalar(operand), ndigits=whole, round_mode="half_towards_infinity")
            case Call(function, arguments):
                values = [self.scalar(argument) for argument in arguments]
                if function is FunctionName.DIVIDE:
                    zero = pc.equal(values[1], 0.0)
                    values[1] = pc.if_else(zero, pa.scalar(None, pa.float64()), values[1])
                return getattr(pc, _FUNCTIONS[function])(*values)
            case _:
                raise AssertionError(scalar)

    def predicate(self, expression: Expression) -> pa.Array:  # noqa: PLR0911  # one for each kind of predicate
        """Return TRUE, FALSE or NULL for every group."""
        import pyarrow.compute as pc

        match expression:
            case Compare(left, operator, right):
                return self._compared(left, operator, right)
            case And(operands):
                return _folded(pc.and_kleene, [self.predicate(operand) for operand in operands])
            case Or(operands):
                return _folded(pc.or_kleene, [self.predicate(operand) for operand in operands])
            case In(operand, choices):
                return self.predicate(Or(tuple(Compare(operand, Operator.EQ, choice) for choice in choices)))
            case Between():
                return self.predicate(And(expression.comparisons))
            case Not(operand):
                return pc.invert(self.predicate(operand))
            case IsNull(operand):
                return pc.is_null(self.scalar(operand))

    def _compared(self, left: Scalar, operator: Operator, right: Scalar) -> pa.Array:
        """Return a comparison; a date meets a time as its midnight."""
        import pyarrow.compute as pc

        sides = [self.scalar(left), self.scalar(right)]
        if isinstance(right, Literal):
            sides[1] = sides[1].cast(sides[0].type)
        elif isinstance(left, Literal):
            sides[0] = sides[0].cast(sides[1].type)
        return getattr(pc, _COMPARISONS[operator])(*sides)


def _folded(both: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    """Return values joined two by two."""
    first, *rest = values
    for value in rest:
        first = both(first, value)
    return first
