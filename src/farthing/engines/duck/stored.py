"""Comparisons as a file's reader may see them: with the column as it is stored, so that whole row groups are skipped.

A reader of Parquet skips by the least and the greatest value of a row group, which NaN does not count among: under a
condition that NaN meets, a row with NaN would count or not depending on what other rows are beside it. So readers are
told that NaN may be there (`Files.scan`), and skip what they can as if it were; only where none of the reals that a
question reads holds any they are told nothing (`DuckDBEngine`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from farthing.engines.duck.terms import double, row
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.normal import conjuncts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.expressions import Expression

_ORDERS: Final = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
MOST_DIGITS: Final = 15
"""Decimals of no more digits are different doubles, each the nearest one."""


def compared(*conditions: Expression | None) -> frozenset[str]:
    """Return the columns that conditions compare with a number, each by itself."""
    found = (_number(part) for condition in conditions for part in conjuncts(condition))
    return frozenset(one[0] for one in found if one is not None)


def exactly(part: Expression, native: Mapping[str, str]) -> tuple[str, str] | None:
    """Return a part of a condition as a comparison of the stored column, with the column's name; None for others.

    Guarantee: a row meets the comparison, whatever rows are beside it, exactly if it meets the part.
    Proof: docs/proofs/engines.bounded.md, "What a reader may skip".
    Assumes: who skips rows takes NaN into account; decimals of at most 15 digits are cast to the nearest double.
    Rounds: the constant of a decimal to the next one that the column can hold, on the side that changes nothing.

    >>> exactly(Compare(Column("x"), Operator.GE, Literal(2)), {"x": "DOUBLE"})
    ('x', 'r."x" >= (2.0)::DOUBLE')
    """
    found = _number(part)
    if found is None:
        return None
    name, operator, value = found
    kind = native.get(name, "")
    if kind == "DOUBLE":
        return name, f"{row(name)} {operator.value} {double(value)}"
    digits = _DECIMAL.fullmatch(kind)
    if digits is not None and int(digits[1]) <= MOST_DIGITS:
        edge = _edge(operator, value, int(digits[1]), int(digits[2]))
        sign = ">=" if operator in (Operator.GE, Operator.GT) else "<="
        return None if edge is None else (name, f"{row(name)} {sign} CAST('{edge}' AS {kind})")
    return None


def _number(part: Expression) -> tuple[str, Operator, float] | None:
    """Return the column, the sign and the number of a comparison."""
    match part:
        case Compare(Column(name), operator, Literal(int() | float() as value)) if operator in _ORDERS:
            return None if isinstance(value, bool) or abs(value) > 2**53 else (name, operator, float(value))
        case _:
            return None


def _edge(operator: Operator, value: float, digits: int, places: int) -> str | None:
    """Return the least (or greatest) decimal whose double compares so; None where a column holds none such."""
    up, unit = operator in (Operator.GE, Operator.GT), 10**places
    near = int(Fraction(value) * unit)
    tests = {Operator.GE: float.__ge__, Operator.GT: float.__gt__, Operator.LE: float.__le__, Operator.LT: float.__lt__}
    meets = [each for each in range(near - 3, near + 4) if tests[operator](each / unit, value)]
    if len(meets) in (0, 7):  # not among these: steps that floats cannot tell apart
        return None
    edge = min(meets) if up else max(meets)
    if abs(edge) >= 10**digits:
        return None
    sign = "-" if edge < 0 else ""
    whole, left = divmod(abs(edge), unit)
    return f"{sign}{whole}.{left:0{places}d}" if places else f"{sign}{whole}"
