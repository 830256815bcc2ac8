"""The difference of two groups, as one signed sum: rows of the one count, rows of the other count against them.

Two numbers at information t each would cost a unit that may be in both twice t, and their difference would have the
variance 2/t. The signed sum is one number of the same sensitivity: it costs t and has the variance 1/t.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidBounds, InvalidKeys, UnsupportedQuery
from farthing.query import Bounds
from farthing.query.aggregates import Count, Sum
from farthing.query.expressions import And, Call, Case, Column, Compare, FunctionName, IsNull, Literal, Operator, all_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.query import Query
    from farthing.query.expressions import Expression, Scalar
    from farthing.session.reading.reader import QuestionReader


def signed_sum(
    reader: QuestionReader,
    by: Any,
    groups: Sequence[Any],
    value: Any,
    *,
    ends: tuple[float | None, float | None],
    bounds: Bounds,
) -> Sum:
    """Return the aggregate whose answer is the count, or the sum of a value, of the first group less the second.

    Guarantee: one unit moves it by at most max_rows times the largest magnitude of a clamped value.
    Proof: docs/proofs/session.reading.ratio.md.
    Assumes: as any sum.
    Rounds: values to the grid of the sum.

    Args:
        reader: reads values and columns.
        by: the grouping columns.
        groups: two values of them; tuples for several columns.
        value: what is added up, or None to count rows.
        ends: the clamps of the value, or None for those of the bounds.
        bounds: of the question.
    """
    first, second = _conditions(reader, by, groups)
    words = " less ".join(str(group) for group in groups)
    if value is None:
        return Sum(Case(((first, Literal(1)), (second, Literal(-1)))), -1.0, 1.0, words)
    scalar = reader.value(value)
    lower, upper = reader.range(*ends, bounds)
    most = max(abs(lower), abs(upper))
    branches = [*_clamped(first, scalar, (lower, upper), most, 1), *_clamped(second, scalar, (lower, upper), most, -1)]
    return Sum(Case(tuple(branches)), -most, most, f"{words}, each {scalar} clamped into [{lower:g}, {upper:g}]")


def refuse_clamps(value: Any, lower: float | None, upper: float | None) -> None:
    """Refuse the clamps of a value where rows are counted."""
    if value is None and (lower is not None or upper is not None):
        raise InvalidBounds(
            "lower and upper without a value",
            rule="they clamp the value that is added up; without value= rows are counted",
            got=f"lower={lower!r}, upper={upper!r}",
            next_step='value="minutes", or drop lower= and upper=',
        )


def _clamped(
    group: Expression, value: Scalar, ends: tuple[float, float], most: float, sign: int
) -> list[tuple[Expression, Scalar]]:
    """Return what rows of a group add: the end that clamps the value, or the value, with a sign.

    Clamps at the largest magnitude are left to the sum. NaN is below nothing, so that it stays and does not count.
    """
    lower, upper = ends
    minus = Call(FunctionName.NEGATE, (value,))
    found: list[tuple[Expression, Scalar]] = []
    if lower > -most:
        found.append((And((group, Compare(value, Operator.LT, Literal(lower)))), Literal(sign * lower)))
    if upper < most:
        found.append((And((group, Compare(minus, Operator.LT, Literal(-upper)))), Literal(sign * upper)))
    return [*found, (group, value if sign > 0 else minus)]


def _conditions(reader: QuestionReader, by: Any, groups: Sequence[Any]) -> tuple[Expression, Expression]:
    """Return the conditions of the rows of two groups, their values checked as keys are."""
    asked = reader.call(Count(), "n", by=by, keys=_listed(by, groups), bounds=Bounds(max_groups=1, max_rows=1))
    query = asked.query  # its bounds say nothing about its keys
    if query.keys is None or len(query.keys) != 2:
        raise _refused(by, groups)
    first, second = (_condition(query, row) for row in query.keys.table.to_pylist())
    return first, second


def _listed(by: Any, groups: Sequence[Any]) -> dict[str, list[Any]] | Any:
    """Return the two groups as a table of keys."""
    import pyarrow as pa

    names = [by] if isinstance(by, str) else list(by or ())
    if not names or isinstance(groups, str) or not isinstance(groups, list | tuple) or len(groups) != 2:
        raise _refused(by, groups)
    rows = [group if len(names) > 1 else (group,) for group in groups]
    if any(not isinstance(row, list | tuple) or len(row) != len(names) for row in rows):
        raise _refused(by, groups)
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    raise _refused(by, groups)


def _condition(query: Query, row: dict[str, Any]) -> Expression:
    """Return the condition that a row is in a group."""
    scalars = dict(query.groupings)
    parts: list[Expression] = []
    for name, value in row.items():
        scalar = scalars.get(name, Column(name))
        parts.append(IsNull(scalar) if value is None else Compare(scalar, Operator.EQ, Literal(value)))
    return all_of(*parts)


def _refused(by: Any, groups: object) -> UnsupportedQuery | InvalidKeys:
    """Return the refusal of what is not a pair of groups."""
    if not by:
        return UnsupportedQuery(
            "a difference without a grouping column",
            construct="difference",
            rule="the two groups are values of by=",
            got=repr(by),
            next_step='session.difference(by="dest", groups=("ORD", "ATL"), absolute=50)',
        )
    return InvalidKeys(
        "groups= does not name two groups",
        rule="two different values of by=; tuples of values for several columns",
        got=repr(groups)[:80],
        next_step='groups=("ORD", "ATL")',
    )
