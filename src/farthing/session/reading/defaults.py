"""The keys of grouping columns for which a question lists none: those declared, or what an expression can only be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.evaluate import evaluate
from farthing.query import Keys
from farthing.query.expressions import Case, Column, Literal, Scalar, columns_of, explicit

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.query.schema import Schema

MOST_IMAGES: Final = 100_000
"""The most declared keys that an expression is computed of."""


def with_defaults(
    given: Any,
    by: tuple[str, ...],
    groupings: Mapping[str, Scalar],
    declared: Mapping[str, Any],
    *,
    listed: Callable[[str, Any], Any],
    schema: Schema,
) -> Any:
    """Return the keys of a question, and the declared ones of the grouping columns that it lists none for.

    A column has its declared keys, and so has one of a subquery that makes rows, or of another table, of that name; a
    name that is not a column of the table has those declared for that name. An
    expression of one column with declared keys has its values on these: public, as the keys are. So are the constants
    of a CASE that has no other values.

    Args:
        given: the keys of the question, in any form.
        by: its grouping columns.
        groupings: what those are that the table does not have.
        declared: keys by name.
        listed: gives the list that declared keys of a name refer to.
        schema: the columns of the table.
    """
    if not (given is None or isinstance(given, Mapping)):
        return given
    found: dict[str, Any] = {}
    for name in by:
        scalar = groupings.get(name, Column(name))
        if name in (given or {}):
            continue
        elsewhere = name not in schema.names or (isinstance(scalar, Column) and scalar.name not in schema.names)
        if name in declared and (scalar == Column(name) or elsewhere):
            found[name] = declared[name]
            continue
        columns = columns_of(scalar)
        column = next(iter(columns)) if len(columns) == 1 else ""
        if column in declared and column in schema.names:
            keys = Keys.of((column,), {column: listed(column, declared[column])}, schema)
            if keys is not None and len(keys) <= MOST_IMAGES:
                found[name] = images(scalar, column, keys.column(column).to_pylist(), schema)
        elif constants := outcomes(scalar):
            found[name] = constants
    return {**(given or {}), **found} if found else given


def outcomes(scalar: Scalar) -> list[Any]:
    """Return the constants that a CASE chooses among, each once, with NULL where it has no ELSE; nothing of others.

    >>> from farthing.query.expressions import Compare, Operator
    >>> outcomes(Case(((Compare(Column("fare"), Operator.LT, Literal(10)), Literal("low")),), Literal("high")))
    ['low', 'high']
    """
    if not isinstance(scalar, Case):
        return []
    values = [value for _, value in scalar.branches] + ([] if scalar.otherwise is None else [scalar.otherwise])
    constants: list[Any] = [value.value for value in values if isinstance(value, Literal)]
    if len(constants) < len(values) or any(isinstance(one, int) and one.bit_length() > 63 for one in constants):
        return []
    return list(dict.fromkeys([*constants, None] if scalar.otherwise is None else constants))


def images(scalar: Scalar, column: str, keys: list[Any], schema: Schema) -> list[Any]:
    """Return the values that an expression of one column has on some keys, each once.

    >>> from farthing.query.expressions import Call, FunctionName
    >>> from farthing.query.schema import Schema, Type
    >>> upper = Call(FunctionName.UPPER, (Column("zone"),))
    >>> images(upper, "zone", ["a", "b", "A"], Schema.of({"zone": Type.STRING}))
    ['A', 'B']
    """
    exact = explicit(scalar, schema)
    values = (evaluate(exact, {column: key}) for key in keys)
    return list(dict.fromkeys(value for value in values if not (isinstance(value, float) and value != value)))  # noqa: PLR0124
