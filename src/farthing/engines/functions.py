"""The functions of the language on Python values that are there: what has no value is None."""

from __future__ import annotations

import math
import operator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import FunctionName

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST: Final = 1e150
"""A real of a larger magnitude is NULL where it is computed with: so no product or quotient overflows."""

MOST_LETTERS: Final = 2**20
"""A concatenation of more code points is NULL."""

_MOST_EXPONENT: Final = 345.0
"""exp(345) is just below 10^150."""


def in_64_bits(value: Any) -> Any:
    """Return a value, an integer beyond 64 bits with sign as None."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def tame(value: float) -> float | None:
    """Return a number as a double that can be computed with: NaN, infinite and huge ones are None, tiny ones 0.

    >>> tame(float("inf")), tame(1e-200), tame(3)
    (None, 0.0, 3.0)
    """
    real = float(value)
    if math.isnan(real) or abs(real) > LARGEST:
        return None
    return 0.0 if abs(real) < 1 / LARGEST else real


def nearest(value: float) -> int:
    """Return the whole number next to a finite real, halves away from zero."""
    whole = math.trunc(value)
    return whole + (int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else 0)


def _real(compute: Callable[..., float | None]) -> Callable[..., float | None]:
    """Return a function of reals that computes with tame ones, and is None where there is none."""

    def computed(*values: float) -> float | None:
        tamed = [tame(value) for value in values]
        return None if None in tamed else compute(*tamed)

    return computed


def _whole(compute: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a function of integers that is None outside of 64 bits."""
    return lambda *values: in_64_bits(compute(*values))


def _number(exact: Callable[..., int], real: Callable[..., float]) -> Callable[..., float | None]:
    """Return a function that is exact where all values are integers, and computes with reals else."""

    def computed(*values: float) -> float | None:
        computation = _real(real) if any(isinstance(value, float) for value in values) else _whole(exact)
        return computation(*values)

    return computed


def _quotient(one: int, other: int) -> int | None:
    """Return the whole quotient, truncated towards zero."""
    if other == 0:
        return None
    return abs(one) // abs(other) * (1 if (one < 0) is (other < 0) else -1)


def _remainder(one: int, other: int) -> int | None:
    """Return what the whole quotient leaves: it has the sign of the dividend."""
    quotient = _quotient(one, other)
    return None if quotient is None else one - other * quotient


def _power(base: float, exponent: float) -> float | None:
    """Return a power; None where it is not real, or too large or too small to be computed with."""
    if exponent == 0:
        return 1.0
    if base == 0:
        return 0.0 if exponent > 0 else None
    if base < 0 and not exponent.is_integer():
        return None
    inside = abs(exponent * math.log(abs(base))) <= _MOST_EXPONENT
    return math.pow(base, exponent) if inside else None


def _exp(value: float) -> float | None:
    """Return e to a power."""
    if abs(value) <= _MOST_EXPONENT:
        return math.exp(value)
    return None if value > 0 else 0.0


def _round(value: int, digits: int = 0) -> int:
    """Return an integer rounded to a power of ten, halves away from zero."""
    unit: int = 10 ** max(-digits, 0)
    return (abs(value) + unit // 2) // unit * unit * (-1 if value < 0 else 1)


def _round_real(value: float, digits: float = 0.0) -> float:
    """Return a real rounded to a number of decimal digits, halves away from zero; 10^-d divides by 10^d."""
    unit = float(10 ** int(abs(digits)))
    return float(nearest(value * unit)) / unit if digits >= 0 else float(nearest(value / unit)) * unit


def _substring(text: str, start: int, length: int | None = None) -> str | None:
    """Return `length` code points from place `start`, counted from 1; all that follow without a length."""
    if start < 1 or (length is not None and length < 0):
        return None
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _concat(*texts: str) -> str | None:
    """Return texts joined, if that is not too long."""
    return "".join(texts) if sum(map(len, texts)) <= MOST_LETTERS else None


def _replace(text: str, part: str, by: str) -> str | None:
    """Return a text with every part replaced, none where the part is empty, if what it could become is not too long."""
    if len(text) * max(len(by), 1) > MOST_LETTERS:
        return None
    return text.replace(part, by) if part else text


def _like(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern: % is any text, _ one code point; a longest-first search of no depth."""
    place = at = 0
    star, resume = -1, 0
    while place < len(text):
        if at < len(pattern) and pattern[at] == "%":
            star, resume, at = at, place, at + 1
        elif at < len(pattern) and pattern[at] in ("_", text[place]):
            place, at = place + 1, at + 1
        elif star >= 0:  # let the last % take one more
            resume, place, at = resume + 1, resume + 1, star + 1
        else:
            return False
    return not pattern[at:].strip("%")


def _ascii(lower: bool) -> dict[int, int]:
    """Return the table that changes the case of ASCII letters."""
    return {letter if lower else letter + 32: letter + 32 if lower else letter for letter in range(65, 91)}


_LOWER, _UPPER = _ascii(lower=True), _ascii(lower=False)


_DAYS: Final[dict[str, Callable[[date], date]]] = {
    "year": lambda day: day.replace(month=1, day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda day: day.replace(day=1),
    "week": lambda day: day - timedelta(days=day.weekday()),
    "day": lambda day: day,
}
_CLOCK: Final[dict[str, Callable[[datetime], datetime]]] = {
    "hour": lambda time: time.replace(minute=0, second=0, microsecond=0),
    "minute": lambda time: time.replace(second=0, microsecond=0),
    "second": lambda time: time.replace(microsecond=0),
}


def _date_trunc(unit: str, moment: date) -> date:
    """Return the first moment of the year, quarter, month, week (from Monday), day, hour, minute or second."""
    if not isinstance(moment, datetime):
        return _DAYS[unit](moment)
    if unit in _CLOCK:
        return _CLOCK[unit](moment)
    return datetime.combine(_DAYS[unit](moment.date()), datetime.min.time())


def _extract(part: str, moment: date) -> int:
    """Return a part of a date or time as a whole number; the week is that of ISO, 1 is Monday."""
    match part:
        case "quarter":
            return (moment.month - 1) // 3 + 1
        case "dow":
            return moment.isoweekday()
        case "doy":
            return moment.timetuple().tm_yday
        case "week":
            return moment.isocalendar().week
        case _:
            return int(getattr(moment, part))


FUNCTIONS: Final[dict[FunctionName, Callable[..., Any]]] = {
    FunctionName.NEGATE: _number(operator.neg, operator.neg),
    FunctionName.ADD: _number(operator.add, operator.add),
    FunctionName.SUBTRACT: _number(operator.sub, operator.sub),
    FunctionName.MULTIPLY: _number(operator.mul, operator.mul),
    FunctionName.DIVIDE: _real(lambda one, other: None if other == 0 else one / other),
    FunctionName.INTEGER_DIVIDE: _whole(_quotient),
    FunctionName.MODULO: _whole(_remainder),
    FunctionName.ABS: _number(abs, abs),
    FunctionName.SIGN: _number(lambda x: (x > 0) - (x < 0), lambda x: float((x > 0) - (x < 0))),
    FunctionName.FLOOR: _number(int, lambda x: float(math.floor(x))),
    FunctionName.CEIL: _number(int, lambda x: float(math.ceil(x))),
    FunctionName.TRUNC: _number(int, lambda x: float(math.trunc(x))),
    FunctionName.ROUND: _number(_round, _round_real),
    FunctionName.SQRT: _real(lambda x: None if x < 0 else math.sqrt(x)),
    FunctionName.EXP: _real(_exp),
    FunctionName.LN: _real(lambda x: None if x <= 0 else math.log(x)),
    FunctionName.LOG10: _real(lambda x: None if x <= 0 else math.log10(x)),
    FunctionName.POWER: _real(_power),
    FunctionName.LOWER: lambda text: text.translate(_LOWER),
    FunctionName.UPPER: lambda text: text.translate(_UPPER),
    FunctionName.LENGTH: len,
    FunctionName.SUBSTRING: _substring,
    FunctionName.TRIM: lambda text: text.strip(" "),
    FunctionName.LTRIM: lambda text: text.lstrip(" "),
    FunctionName.RTRIM: lambda text: text.rstrip(" "),
    FunctionName.CONCAT: _concat,
    FunctionName.REPLACE: _replace,
    FunctionName.STARTS_WITH: str.startswith,
    FunctionName.ENDS_WITH: str.endswith,
    FunctionName.CONTAINS: operator.contains,
    FunctionName.LIKE: _like,
    FunctionName.DATE_TRUNC: _date_trunc,
    FunctionName.EXTRACT: _extract,
    FunctionName.DAYS_BETWEEN: lambda one, other: other.toordinal() - one.toordinal(),
}
"""What each function gives where all its arguments are there; NULLs, and the functions that look at them, are the
evaluator's."""
