"""The functions of the language as DuckDB SQL: total, each the same as `engines.evaluate` tells it.

DuckDB raises where whole numbers leave their type or are divided by 0 (from DuckDB 2 on), on logarithms and roots out
of range, and on most bad casts; it has infinities and NaN where the language has NULL. So whole numbers are added and
multiplied with 128 bits and brought back by TRY_CAST behind `greatest`, real operands are tamed first, and what may
raise stands behind CASE, whose branches DuckDB runs on the rows that reach them only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.engines.duck.terms import double
from farthing.query.expressions import FunctionName
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_LETTERS: Final = 2**20
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FAR: Final = 2**32 - 1  # substring raises beyond


@dataclass(frozen=True, slots=True)
class Text:
    """SQL of a value, with what has to be known of it.

    Attributes:
        sql: the expression.
        type: its type; DECIMAL is a double like FLOAT.
        level: the first stage of intermediate columns that has all it names.
        plain: a name or a constant, which costs nothing to repeat.
        tame: a double that taming would not change.
        wide: a whole number that may be outside of int64 (from an unsigned column or constant).
    """

    sql: str
    type: Type
    level: int = 0
    plain: bool = False
    tame: bool = False
    wide: bool = False

    @property
    def narrow(self) -> Text:
        """The value inside another one, where an integer outside of int64 is NULL."""
        return replace(self, sql=f"TRY_CAST({self.sql} AS BIGINT)", plain=False, wide=False) if self.wide else self

    @property
    def real(self) -> bool:
        """Whether it is a double."""
        return self.type in (Type.FLOAT, Type.DECIMAL)

    @property
    def double(self) -> str:
        """The number as a double."""
        return self.sql if self.real else f"CAST({self.sql} AS DOUBLE)"


class DuckFunctions:
    """Calls and casts as text.

    Args:
        bind: gives a long text a name of its own, so that it can be repeated without being computed again.
    """

    def __init__(self, bind: Callable[[Text], Text]) -> None:
        self._bind = bind

    def tamed(self, number: Text) -> Text:
        """Return a number as a double that no operation can overflow: NULL where too large, 0 where too small."""
        if number.tame or not number.real:
            return Text(number.double, Type.FLOAT, number.level, number.plain and number.real, tame=True)
        x = self._bind(number)
        within = f"CASE WHEN abs({x.sql}) >= 1e-150 THEN {x.sql} ELSE 0::DOUBLE END"
        return Text(f"CASE WHEN abs({x.sql}) <= 1e150 THEN {within} END", Type.FLOAT, x.level, tame=True)

    def call(self, function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
        """Return the SQL of a call.

        Args:
            function: which.
            arguments: its arguments.
            constants: their values where they are constants, else None.
        """
        if function in _ARITHMETIC:
            return self._arithmetic(function, arguments, constants)
        if function in _ROUNDING:
            return self._rounding(function, arguments, constants)
        if function in _REAL:
            operands = [self._bind(self.tamed(argument)) for argument in arguments]
            sql = _REAL[function].format(*(operand.sql for operand in operands))
            return Text(sql, Type.FLOAT, _level(operands), tame=function is not FunctionName.POWER)
        if function in _CHOOSING:
            return self._choosing(function, arguments)
        if function in (FunctionName.DATE_TRUNC, FunctionName.EXTRACT, FunctionName.DAYS_BETWEEN):
            return _dated(function, arguments, constants)
        return self._textual(function, arguments, constants)

    def _arithmetic(self, function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
        """Return + - * / // % - abs sign."""
        if function is not FunctionName.DIVIDE and not any(argument.real for argument in arguments):
            return _whole(function, arguments, constants)
        operands = [self.tamed(argument) for argument in arguments]
        if function is FunctionName.DIVIDE:
            above, below = operands[0], self._bind(operands[1])
            quotient = f"CASE WHEN {below.sql} <> 0 THEN {above.sql} / {below.sql} END"
            return Text(quotient, Type.FLOAT, _level((above, below)))
        sql = _ARITHMETIC[function].format(*(operand.sql for operand in operands))
        return Text(sql, Type.FLOAT, _level(operands), tame=len(operands) == 1)

    def _rounding(self, function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
        """Return floor, ceil, trunc and round; whole numbers stay as they are."""
        number = arguments[0]
        digits = int(str(constants[1])) if len(arguments) > 1 else 0
        if not number.real and digits >= 0:
            return number
        unit = 10 ** abs(digits)
        if not number.real:
            x = f"CAST({number.sql} AS HUGEINT)"
            nearest = f"(abs({x}) + {unit // 2}) // {unit} * {unit} * sign({x})"
            return Text(_int64(nearest), Type.INTEGER, number.level)
        tamed = self.tamed(number)
        if digits == 0:
            return Text(f"{_ROUNDING[function]}({tamed.sql})", Type.FLOAT, tamed.level, tame=True)
        there, back = ("*", "/") if digits > 0 else ("/", "*")
        rounded = f"(round({tamed.sql} {there} {double(float(unit))}) {back} {double(float(unit))})"
        return Text(rounded, Type.FLOAT, tamed.level)

    def _choosing(self, function: FunctionName, arguments: Sequence[Text]) -> Text:
        """Return least, greatest, coalesce and nullif: numbers of both kinds are doubles."""
        if function is FunctionName.NULLIF:
            first, second = self._bind(arguments[0]), arguments[1]
            left, right = alike((first, second))
            sql = f"CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END"
            return Text(sql, first.type, max(first.level, second.level), tame=first.tame)
        same = alike(arguments)
        return chosen(f"{function.value}({', '.join(value.sql for value in same)})", same, same)

    def _textual(self, function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
        """Return the functions of texts."""
        level = _level(arguments)
        if function is FunctionName.SUBSTRING:
            return self._substring(arguments, constants)
        if function is FunctionName.CONCAT:
            parts = [self._bind(argument) for argument in arguments]
            letters = " + ".join(f"length({part.sql})" for part in parts)
            whole = " || ".join(part.sql for part in parts)
            return Text(f"CASE WHEN {letters} <= {MOST_LETTERS} THEN {whole} END", Type.STRING, _level(parts))
        if function is FunctionName.REPLACE:
            text, part, by = (self._bind(argument) for argument in arguments)
            few = f"length({text.sql}) * greatest(length({by.sql}), 1) <= {MOST_LETTERS}"
            made = f"CASE WHEN {few} THEN replace({text.sql}, {part.sql}, {by.sql}) END"
            return Text(made, Type.STRING, _level((text, part, by)))
        sql, kind = _TEXTUAL[function]
        return Text(sql.format(*(argument.sql for argument in arguments)), kind, level)

    def _substring(self, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
        """Return letters from a place on: 1 is the first; NULL for places below 1 and lengths below 0."""
        letters, *numbers = arguments
        checks = ["{} >= 1", "{} >= 0"]
        bound = [self._bind(number) for number in numbers]
        tests = [
            check.format(number.sql)
            for check, number, value in zip(checks, bound, constants[1:], strict=False)
            if not (isinstance(value, int) and value >= 1)
        ]
        places = "".join(f", CAST(least({number.sql}, {_FAR}) AS BIGINT)" for number in bound)
        sql = f"substring({letters.sql}{places})"
        present = " AND ".join([*tests, *(f"{number.sql} IS NOT NULL" for number in bound)])
        return Text(f"CASE WHEN {present} THEN {sql} END", Type.STRING, _level([letters, *bound]))

    def cast(self, operand: Text, kind: Type) -> Text:
        """Return a value as another type, NULL where it has none there."""
        if kind is operand.type or (kind in (Type.FLOAT, Type.DECIMAL) and operand.real):
            return operand
        if kind in (Type.FLOAT, Type.DECIMAL) and operand.type is Type.INTEGER:
            return Text(operand.double, Type.FLOAT, operand.level, tame=True)
        if operand.real and kind is Type.INTEGER:
            return Text(f"TRY_CAST(round({operand.sql}) AS BIGINT)", kind, operand.level)
        if operand.type is Type.STRING:
            x = self._bind(operand)
            pattern, native = _SPELLINGS[kind]
            parsed = f"TRY_CAST({x.sql} AS {native})"
            sql = f"CASE WHEN regexp_full_match({x.sql}, '{pattern}') THEN {parsed} END"
            return Text(sql, kind, x.level)
        return Text(f"CAST({operand.sql} AS {_NATIVE[kind]})", kind, operand.level)


def alike(values: Sequence[Text]) -> tuple[Text, ...]:
    """Return values in one type: doubles where numbers of both kinds meet."""
    if not any(value.real for value in values):
        return tuple(values)
    return tuple(value if value.real else Text(value.double, Type.FLOAT, value.level, tame=True) for value in values)


def chosen(sql: str, parts: Sequence[Text], values: Sequence[Text]) -> Text:
    """Return the text that chooses one of several values of one type; parts are all that it names."""
    return Text(sql, values[0].type, _level(parts), tame=all(value.tame for value in values))


def _level(texts: Sequence[Text]) -> int:
    """Return the first stage that has all that the texts name."""
    return max((each.level for each in texts), default=0)


def _whole(function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
    """Return arithmetic on whole numbers: exact in 128 bits, NULL outside int64."""
    level, divisor = _level(arguments), constants[-1]
    if function is FunctionName.SIGN:
        return Text(f"CAST(sign({arguments[0].sql}) AS BIGINT)", Type.INTEGER, level)
    divides = function in (FunctionName.INTEGER_DIVIDE, FunctionName.MODULO)
    if divides and isinstance(divisor, int) and divisor > 0:  # nothing can overflow: no need of 128 bits
        above, below = (f"CAST({argument.sql} AS BIGINT)" for argument in arguments)
        return Text(_ARITHMETIC[function].format(above, below), Type.INTEGER, level)
    operands = [f"CAST({argument.sql} AS HUGEINT)" for argument in arguments]
    if divides:  # by 0 DuckDB 1 gives NULL, and DuckDB 2 raises
        operands[1] = f"nullif({operands[1]}, 0)"
    return Text(_int64(_ARITHMETIC[function].format(*operands)), Type.INTEGER, level)


def _int64(wide: str) -> str:
    """Return a whole number of 128 bits in 64, NULL outside: bare, a comparison with a constant loses the cast."""
    return f"greatest(TRY_CAST({wide} AS BIGINT))"


def _dated(function: FunctionName, arguments: Sequence[Text], constants: Sequence[object]) -> Text:
    """Return the functions of days and times, all within the years 1 to 9999."""
    level = _level(arguments)
    if function is FunctionName.DAYS_BETWEEN:
        first, last = (f"CAST({argument.sql} AS DATE)" for argument in arguments)
        return Text(f"date_diff('day', {first}, {last})", Type.INTEGER, level)
    word, moment = str(constants[0]).lower(), arguments[1]
    if function is FunctionName.DATE_TRUNC:
        # Bare, its comparison with a constant off the grid is folded to TRUE or FALSE, of NULL too (DuckDB 1.5).
        kept = f"greatest(date_trunc('{word}', {moment.sql}))"
        return Text(f"CAST({kept} AS {_NATIVE[moment.type]})", moment.type, level)
    return Text(f"CAST(date_part('{_PARTS.get(word, word)}', {moment.sql}) AS BIGINT)", Type.INTEGER, level)


_PARTS: Final = {"dow": "isodow"}
_NATIVE: Final = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.DECIMAL: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_DAY: Final = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
_ARITHMETIC: Final = {
    FunctionName.NEGATE: "(-{})",
    FunctionName.ADD: "({} + {})",
    FunctionName.SUBTRACT: "({} - {})",
    FunctionName.MULTIPLY: "({} * {})",
    FunctionName.DIVIDE: "({} / {})",
    FunctionName.INTEGER_DIVIDE: "({} // {})",
    FunctionName.MODULO: "({} % {})",
    FunctionName.ABS: "abs({})",
    FunctionName.SIGN: "CAST(sign({}) AS DOUBLE)",
}
_ROUNDING: Final = {
    FunctionName.FLOOR: "floor",
    FunctionName.CEIL: "ceil",
    FunctionName.TRUNC: "trunc",
    FunctionName.ROUND: "round",
}
_REAL: Final = {
    FunctionName.SQRT: "CASE WHEN {0} >= 0 THEN sqrt({0}) END",
    FunctionName.LN: "CASE WHEN {0} > 0 THEN ln({0}) END",
    FunctionName.LOG10: "CASE WHEN {0} > 0 THEN log10({0}) END",
    FunctionName.EXP: "CASE WHEN {0} < -345 THEN 0::DOUBLE WHEN {0} <= 345 THEN exp({0}) END",
    FunctionName.POWER: "CASE WHEN {0} = 0 THEN CASE WHEN {1} > 0 THEN 0::DOUBLE WHEN {1} = 0 THEN 1::DOUBLE END "
    "WHEN {0} < 0 AND {1} <> trunc({1}) THEN NULL WHEN abs({1} * ln(abs({0}))) <= 345 THEN pow({0}, {1}) END",
}
_CHOOSING: Final = (FunctionName.LEAST, FunctionName.GREATEST, FunctionName.COALESCE, FunctionName.NULLIF)
_TEXTUAL: Final = {
    FunctionName.LOWER: (f"translate({{}}, '{_LETTERS}', '{_LETTERS.lower()}')", Type.STRING),
    FunctionName.UPPER: (f"translate({{}}, '{_LETTERS.lower()}', '{_LETTERS}')", Type.STRING),
    FunctionName.LENGTH: ("length({})", Type.INTEGER),
    FunctionName.TRIM: ("trim({}, ' ')", Type.STRING),
    FunctionName.LTRIM: ("ltrim({}, ' ')", Type.STRING),
    FunctionName.RTRIM: ("rtrim({}, ' ')", Type.STRING),
    FunctionName.STARTS_WITH: ("starts_with({}, {})", Type.BOOLEAN),
    FunctionName.ENDS_WITH: ("ends_with({}, {})", Type.BOOLEAN),
    FunctionName.CONTAINS: ("contains({}, {})", Type.BOOLEAN),
    FunctionName.LIKE: ("({} LIKE {})", Type.BOOLEAN),
}
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
_DIGITS: Final = "|".join(["[0-9]{1,15}", *(f"[0-9]{{{whole}}}[.][0-9]{{1,{15 - whole}}}" for whole in range(1, 15))])
_SPELLINGS: Final = {
    Type.INTEGER: ("[+-]?[0-9]{1,18}", "BIGINT"),
    Type.FLOAT: (f"[+-]?({_DIGITS})([eE][+-]?[0-9]{{1,2}})?", "DOUBLE"),
    Type.DATE: (_DAY, "DATE"),
    Type.TIMESTAMP: (f"{_DAY}[ T]{_CLOCK}", "TIMESTAMP"),
    Type.BOOLEAN: ("true|false", "BOOLEAN"),
}
