"""Expressions and conditions over columns: one array operation per node of the tree."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlglot import exp

from farthing.attacks.diffix.reading import constant_of, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.attacks.diffix.reading import Condition

Array = np.ndarray[Any, np.dtype[Any]]
Columns = dict[str, Array]


def holds(condition: Condition, columns: Columns) -> Array:
    """Return, for each row, whether a condition holds."""
    held = [_truth(tree, columns) for tree in condition.trees]
    return np.asarray(np.logical_and.reduce(held))


def value(tree: exp.Expression, columns: Columns) -> Array:
    """Return the value of an expression on each row; what has none is NaN.

    Raises:
        UnsupportedQuery: a name or a function that is not known, or text where a number is needed.
    """
    special = _SPECIAL.get(type(tree))
    if special is not None:
        return special(tree, columns)
    constant = constant_of(tree)
    return _numeric(tree, columns) if constant is None else np.asarray(constant)


def _inner(tree: exp.Expression, columns: Columns) -> Array:
    """Return what stands in brackets."""
    return value(tree.this, columns)


def _column(tree: exp.Expression, columns: Columns) -> Array:
    """Return a column by its name."""
    name = tree.name.lower()
    if name not in columns:
        raise refused("an unknown column", "one of the table", name, f"use one of {', '.join(sorted(columns))}")
    return columns[name]


def _numeric(tree: exp.Expression, columns: Columns) -> Array:
    """Return what a function of numbers gives."""
    function = FUNCTIONS.get(type(tree))
    if function is None:
        raise refused(f"a function ({tree.key.upper()})", "those of the simulator", tree.sql()[:80], "use another one")
    arguments = [tree.args[name] for name in ("this", "expression", "decimals") if tree.args.get(name) is not None]
    values = [value(argument, columns) for argument in arguments]
    if any(found.dtype.kind not in "biuf" for found in values):
        raise refused(f"text in {tree.key.upper()}", "numbers", tree.sql()[:80], "cast it")
    with np.errstate(all="ignore"):
        return np.asarray(function(*values))


def _truth(tree: exp.Expression, columns: Columns) -> Array:
    """Return, for each row, whether a comparison holds; never where a side has no value."""
    match tree:
        case exp.Paren():
            return _truth(tree.this, columns)
        case exp.Not():
            inner = value(tree.this.this, columns) if isinstance(tree.this, exp.In) else None
            known = np.True_ if inner is None else _known(inner)
            return np.asarray(~_truth(tree.this, columns) & known)
        case exp.In():
            return _among(value(tree.this, columns), [value(member, columns) for member in tree.expressions])
        case exp.Between():
            inner = value(tree.this, columns)
            ends = [_alike(inner, value(tree.args[end], columns)) for end in ("low", "high")]
            return np.asarray((inner >= ends[0]) & (inner <= ends[1]))
    left, right = value(tree.this, columns), value(tree.expression, columns)
    compare = COMPARISONS[type(tree)]
    return np.asarray(compare(left, _alike(left, right)) & _known(left) & _known(right))


def _among(left: Array, members: list[Array]) -> Array:
    """Return, for each row, whether its value is one of the members."""
    return np.isin(left, np.array([_alike(left, member) for member in members]))


def _known(array: Array) -> Array:
    """Return, for each row, whether it has a value."""
    return np.asarray(~np.isnan(array)) if array.dtype.kind == "f" else np.asarray(np.True_)


def _alike(left: Array, right: Array) -> Array:
    """Return the right side, read as what the left one is: numbers with numbers, text with text, times with times."""
    kinds = {_KINDS.get(left.dtype.kind, ""), _KINDS.get(right.dtype.kind, "")}
    if kinds == {"time", "text"} and right.ndim == 0:
        try:
            return np.asarray(right.astype("datetime64[us]"))
        except ValueError as error:
            raise refused("a time", "YYYY-MM-DD HH:MM:SS", str(right), "write it so") from error
    if len(kinds) != 1:
        raise refused("a comparison of two types", "of one type", " and ".join(sorted(kinds)), "cast one side")
    return right


def _cast(tree: exp.Expression, columns: Columns) -> Array:
    """Return values as another type; what is not a number becomes NaN."""
    array, to = value(tree.this, columns), tree.args["to"].sql(dialect="duckdb").upper()
    if to in _WHOLE:
        numbers = _numbers(array)
        return np.asarray(np.floor(np.abs(numbers) + 0.5) * np.sign(numbers))
    if to in _REAL:
        return _numbers(array)
    if to in _TEXT:
        return _text(array)
    raise refused("a cast", "to INTEGER, FLOAT or TEXT", to, "cast to one of them")


def _numbers(array: Array) -> Array:
    """Return values as doubles."""
    if array.dtype.kind != "U":
        return array.astype(np.float64)
    stripped = np.char.isdigit(array)
    return np.where(stripped, np.where(stripped, array, "0").astype(np.float64), np.nan)


def _text(array: Array) -> Array:
    """Return values as text, times as `YYYY-MM-DD HH:MM:SS`."""
    if array.dtype.kind == "M":
        return np.char.replace(np.datetime_as_string(array, unit="s"), "T", " ")
    return array.astype(np.str_)


def _substring(tree: exp.Expression, columns: Columns) -> Array:
    """Return `length` letters from the start-th on, counted from 1."""
    text, start = value(tree.this, columns), constant_of(tree.args["start"])
    length = constant_of(tree.args["length"]) if tree.args.get("length") else 2**20
    if text.dtype.kind != "U" or not isinstance(start, int) or not isinstance(length, int) or start < 1 or length < 1:
        raise refused("a SUBSTRING", "of text, from a whole number >= 1, of >= 1 letters", tree.sql()[:80], "cast it")
    letters = np.ascontiguousarray(text).reshape(-1, 1).view("U1") if text.dtype.itemsize else text.reshape(-1, 1)
    cut = np.ascontiguousarray(letters[:, start - 1 : start - 1 + length])
    return cut.view(f"U{cut.shape[1]}").reshape(-1) if cut.size else np.full(text.size, "")


def _extract(tree: exp.Expression, columns: Columns) -> Array:
    """Return a part of a time, as a whole number."""
    array, part = value(tree.expression, columns), tree.this.name.lower()
    if array.dtype.kind != "M" or part not in _PARTS:
        raise refused("an EXTRACT", f"{', '.join(_PARTS)} of a time", part, "ask one of them")
    unit, origin, offset = _PARTS[part]
    return np.asarray(
        (array.astype(f"M8[{unit}]") - array.astype(f"M8[{origin}]")).astype(f"m8[{unit}]").astype(np.int64) + offset
    )


def _rounded(numbers: Array, digits: Array | int = 0) -> Array:
    """Return numbers rounded to a number of digits, halves away from zero."""
    power = 10.0 ** np.asarray(digits)
    return np.asarray(np.sign(numbers) * np.floor(np.abs(numbers) * power + 0.5) / power)


def _raised(base: Array, power: Array) -> Array:
    """Return base to the power, in doubles."""
    return np.asarray(np.power(base.astype(np.float64), power))


_SPECIAL: Final[Mapping[type[exp.Expression], Callable[[exp.Expression, Columns], Array]]] = {
    exp.Paren: _inner,
    exp.Column: _column,
    exp.Cast: _cast,
    exp.Substring: _substring,
    exp.Extract: _extract,
}
FUNCTIONS: Final[Mapping[type[exp.Expression], Callable[..., Any]]] = {
    exp.Add: np.add,
    exp.Sub: np.subtract,
    exp.Mul: np.multiply,
    exp.Div: np.true_divide,
    exp.Mod: np.fmod,
    exp.Pow: _raised,
    exp.Neg: np.negative,
    exp.Floor: np.floor,
    exp.Ceil: np.ceil,
    exp.Trunc: np.trunc,
    exp.Round: _rounded,
    exp.Abs: np.abs,
    exp.Sqrt: np.sqrt,
    exp.Exp: np.exp,
    exp.Ln: np.log,
}
COMPARISONS: Final[Mapping[type[exp.Expression], Callable[[Any, Any], Any]]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_KINDS: Final = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "text", "M": "time"}
_WHOLE: Final = frozenset({"INT", "INTEGER", "BIGINT"})
_REAL: Final = frozenset({"DOUBLE", "FLOAT", "REAL"})
_TEXT: Final = frozenset({"TEXT", "VARCHAR"})
_PARTS: Final = {
    "month": ("M", "Y", 1),
    "day": ("D", "M", 1),
    "hour": ("h", "D", 0),
    "minute": ("m", "h", 0),
    "second": ("s", "m", 0),
}
