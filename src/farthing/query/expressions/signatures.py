"""What every function takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from farthing.query.expressions.values import FunctionName
from farthing.query.schema import Type

Kinds: TypeAlias = frozenset[Type]

WHOLE: Final[Kinds] = frozenset({Type.INTEGER})
NUMBER: Final[Kinds] = frozenset({Type.INTEGER, Type.FLOAT})
TEXT: Final[Kinds] = frozenset({Type.STRING})
MOMENT: Final[Kinds] = frozenset({Type.DATE, Type.TIMESTAMP})
ORDERED: Final[Kinds] = NUMBER | TEXT | MOMENT
ANY: Final[Kinds] = ORDERED | {Type.BOOLEAN}

DAY_UNITS: Final = ("year", "quarter", "month", "week", "day")
DAY_PARTS: Final = ("year", "quarter", "month", "day", "dow", "doy", "week")
CLOCK_UNITS: Final = ("hour", "minute", "second")
MOST_DIGITS: Final = 15
"""round(x, d) takes d from -15 to 15: 10^15 and all powers below are doubles."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function.

    Attributes:
        takes: the types that each argument may have.
        gives: the type of the result; or the place of the argument that has it; None for the common type of all.
        optional: how many of the last arguments may be left out.
        repeats: whether the last argument may be repeated.
        constant: the place of the argument that must be a constant, if there is one.
    """

    takes: tuple[Kinds, ...]
    gives: Type | int | None = None
    optional: int = 0
    repeats: bool = False
    constant: int | None = None

    def accepts(self, count: int) -> bool:
        """Return whether there may be this many arguments."""
        return count >= len(self.takes) - self.optional and (self.repeats or count <= len(self.takes))

    def kinds(self, place: int) -> Kinds:
        """Return the types that one argument may have."""
        return self.takes[min(place, len(self.takes) - 1)]


_ARITHMETIC = Signature((NUMBER, NUMBER))
_DIVISION = Signature((WHOLE, WHOLE))
_ONE_NUMBER = Signature((NUMBER,))
_REAL = Signature((NUMBER,), Type.FLOAT)
_FIRST_OF = Signature((ORDERED, ORDERED), repeats=True)
_TEXT = Signature((TEXT,), Type.STRING)
_TEST = Signature((TEXT, TEXT), Type.BOOLEAN)

SIGNATURES: Final[dict[FunctionName, Signature]] = {
    **dict.fromkeys((FunctionName.ADD, FunctionName.SUBTRACT, FunctionName.MULTIPLY), _ARITHMETIC),
    **dict.fromkeys((FunctionName.INTEGER_DIVIDE, FunctionName.MODULO), _DIVISION),
    **dict.fromkeys(
        (
            FunctionName.NEGATE,
            FunctionName.ABS,
            FunctionName.SIGN,
            FunctionName.FLOOR,
            FunctionName.CEIL,
            FunctionName.TRUNC,
        ),
        _ONE_NUMBER,
    ),
    **dict.fromkeys((FunctionName.SQRT, FunctionName.EXP, FunctionName.LN, FunctionName.LOG10), _REAL),
    **dict.fromkeys((FunctionName.DIVIDE, FunctionName.POWER), Signature((NUMBER, NUMBER), Type.FLOAT)),
    FunctionName.ROUND: Signature((NUMBER, WHOLE), 0, optional=1, constant=1),
    **dict.fromkeys((FunctionName.LEAST, FunctionName.GREATEST), _FIRST_OF),
    FunctionName.COALESCE: Signature((ANY, ANY), repeats=True),
    FunctionName.NULLIF: Signature((ANY, ANY), 0),
    **dict.fromkeys(
        (FunctionName.LOWER, FunctionName.UPPER, FunctionName.TRIM, FunctionName.LTRIM, FunctionName.RTRIM), _TEXT
    ),
    FunctionName.LENGTH: Signature((TEXT,), Type.INTEGER),
    FunctionName.SUBSTRING: Signature((TEXT, WHOLE, WHOLE), Type.STRING, optional=1),
    FunctionName.CONCAT: Signature((TEXT, TEXT), Type.STRING, repeats=True),
    FunctionName.REPLACE: Signature((TEXT, TEXT, TEXT), Type.STRING),
    **dict.fromkeys((FunctionName.STARTS_WITH, FunctionName.ENDS_WITH, FunctionName.CONTAINS), _TEST),
    FunctionName.LIKE: Signature((TEXT, TEXT), Type.BOOLEAN, constant=1),
    FunctionName.DATE_TRUNC: Signature((TEXT, MOMENT), 1, constant=0),
    FunctionName.EXTRACT: Signature((TEXT, MOMENT), Type.INTEGER, constant=0),
    FunctionName.DAYS_BETWEEN: Signature((MOMENT, MOMENT), Type.INTEGER),
}
"""Every function, by name: one that is not here is refused."""

CASTS: Final[dict[Type, Kinds]] = {
    Type.INTEGER: NUMBER | TEXT | {Type.BOOLEAN},
    Type.FLOAT: NUMBER | TEXT,
    Type.STRING: ANY - {Type.FLOAT},
    Type.BOOLEAN: TEXT | {Type.BOOLEAN},
    Type.DATE: MOMENT | TEXT,
    Type.TIMESTAMP: MOMENT | TEXT,
}
"""What each type can be cast from."""
