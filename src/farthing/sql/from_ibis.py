"""ibis expressions into the closed expression language, by the same whitelist as SQL; what has no rule is refused.

An expression is written with `ibis._` or with columns of an ibis table: only the names of columns are taken from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import UnsupportedQuery
from farthing.query.expressions import Compare, Expression, Operator, Scalar, check, operand_type, type_of
from farthing.query.schema import Type
from farthing.sql.ibis_rules import RULE, predicates, refused, scalars
from farthing.sql.nodes import TRUE, truth
from farthing.sql.text import SqlText

if TYPE_CHECKING:
    from farthing.query.schema import Schema

_DEEPEST: Final = 150


def is_ibis(value: object) -> bool:
    """Return whether a value is an ibis expression or a deferred one, without importing ibis.

    >>> is_ibis("dest = 'ORD'")
    False
    """
    return type(value).__module__.partition(".")[0] == "ibis"


def from_ibis(expression: Any, schema: Schema) -> Scalar | Expression:
    """Return an ibis expression as a scalar, or as a predicate where it is a condition.

    Args:
        expression: an ibis value expression, or a deferred one (`ibis._`).
        schema: the columns it may name.

    Raises:
        UnsupportedQuery: anything outside of the expression language, by name.

    >>> import ibis
    >>> from farthing.query.schema import Schema, Type
    >>> str(from_ibis((ibis._.fare / 10).floor() * 10, Schema.of({"fare": Type.FLOAT})))
    '(floor((fare / 10)) * 10)'
    """
    reader, root = IbisReader(schema), _operation(expression, schema)
    if type(root).__name__ in predicates():
        return reader.whole(root)
    scalar = reader.scalar(root, 0)
    type_of(scalar, schema)
    return scalar


def ibis_predicate(expression: Any, schema: Schema) -> Expression:
    """Return an ibis expression as a predicate; a column of truth values is one.

    Raises:
        UnsupportedQuery: no condition, or anything outside of the expression language.
    """
    return IbisReader(schema).whole(_operation(expression, schema))


def _operation(expression: Any, schema: Schema) -> Any:
    """Return the root of an expression, its columns bound to the names of a schema."""
    import ibis
    from ibis.common.deferred import Deferred
    from ibis.common.exceptions import IbisError

    deep = False
    if isinstance(expression, Deferred):
        table = ibis.table({name: _DTYPES[kind] for name, kind in schema.columns}, name="the table")
        try:
            expression = table.bind(expression)[0]
        except RecursionError:
            deep = True
        except (IbisError, AttributeError, TypeError, ValueError) as problem:
            raise UnsupportedQuery(
                "an ibis expression that does not fit the table",
                construct="ibis expression",
                rule=RULE,
                got=str(problem).split("\n", maxsplit=1)[0][:200],
                next_step="name columns of the table: " + ", ".join(schema.names[:20]),
            ) from None
    if deep:
        raise _too_deep()
    if not isinstance(expression, ibis.expr.types.Value):
        raise refused(type(expression).__name__, "pass a column expression, as in ibis._.fare > 10")
    return expression.op()


_DTYPES: Final = {
    Type.INTEGER: "int64",
    Type.FLOAT: "float64",
    Type.DECIMAL: "float64",
    Type.STRING: "string",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
    Type.OTHER: "binary",
}


@dataclass(frozen=True, slots=True)
class IbisReader:
    """Reads the operations of one expression."""

    schema: Schema

    @property
    def source(self) -> SqlText:
        """No text: refusals of ibis expressions have no place."""
        return SqlText("")

    def type(self, scalar: Scalar) -> Type:
        """Return the type of a scalar."""
        return operand_type(scalar, self.schema)

    def whole(self, operation: Any) -> Expression:
        """Return a checked predicate."""
        predicate = self.predicate(operation, 0)
        check(predicate, self.schema)
        return predicate

    def predicate(self, operation: Any, depth: int) -> Expression:
        """Return a predicate."""
        rule = predicates().get(type(operation).__name__)
        if rule is None:
            return Compare(self.scalar(operation, depth), Operator.EQ, TRUE)
        expression: Expression = rule(self, operation, _deeper(depth))
        return expression

    def scalar(self, operation: Any, depth: int) -> Scalar:
        """Return a scalar."""
        name = type(operation).__name__
        if name in predicates():
            return truth(self.predicate(operation, depth))
        rule = scalars().get(name)
        if rule is None:
            raise _unknown(operation)
        scalar: Scalar = rule(self, operation, _deeper(depth))
        return scalar

    def arguments(self, operation: Any, depth: int) -> tuple[Scalar, ...]:
        """Return every argument of an operation, a list of them in their place."""
        flat: list[Any] = []
        for argument in operation.__args__:
            flat += argument if isinstance(argument, tuple) else [argument]
        return tuple(self.scalar(argument, depth) for argument in flat if argument is not None)


def _deeper(depth: int) -> int:
    """Return the next depth; refuse one that is not safe to recurse into."""
    if depth >= _DEEPEST:
        raise _too_deep()
    return depth + 1


def _too_deep() -> UnsupportedQuery:
    """Return the refusal of nesting that nobody wrote by hand."""
    return refused("deep nesting", "write it in shorter parts")


def _unknown(operation: Any) -> UnsupportedQuery:
    """Return the refusal of an operation by its name."""
    import ibis.expr.operations as ops

    name = type(operation).__name__
    if isinstance(operation, ops.Analytic | ops.Reduction | ops.WindowFunction):
        return refused(f"aggregate or window {name}", "write the value itself: aggregates come last")
    if isinstance(operation, ops.Subquery):
        return refused(f"a subquery ({name})", "compare with constants")
    return refused(f"ibis operation {name}", "see the functions in docs/reference/sql.md")
