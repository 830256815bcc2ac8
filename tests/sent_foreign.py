"""Read SQL that is sent to PostgreSQL and Spark: which casts and functions it holds, with the types of what is cast."""

from __future__ import annotations

import sqlglot
from sent import NUMBERS, SPELLED, Sent, name_of, spelled
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from farthing.engines.foreign.functions import SPELLINGS
from farthing.engines.foreign.total import BOUNDED, MOMENTS, POSTGRES, SPARK, TEXT, TOTAL_CASTS
from farthing.query import Type

PATTERNS = {"BIGINT": Type.INTEGER, "DOUBLE": Type.FLOAT, "DATE": Type.DATE, "TIMESTAMP": Type.TIMESTAMP}
GIVES = {
    "DOUBLE": ("PG_CATALOG.FLOOR", "PG_CATALOG.CEIL", "PG_CATALOG.TRUNC", "PG_CATALOG.DATE_PART", "PG_CATALOG.LOG10",
               "SQRT", "LN", "LOG", "EXP", "POWER", "POW", "DIV_"),
    "BIGINT": ("PG_CATALOG.INT8DIV", "PG_CATALOG.INT8MOD", "DIV", "COUNT",
               "FLOOR", "CEIL", "ROW_NUMBER", "DENSE_RANK", "UNIX_MICROS", "XXHASH64", "MONOTONICALLY_INCREASING_ID",
               *(f"PG_CATALOG.HASH{kind}EXTENDED" for kind in ("INT8", "TEXT", "FLOAT8", "_ARRAY_"))),
    "INT": ("PG_CATALOG.CHAR_LENGTH", "PG_CATALOG.STRPOS", "PG_CATALOG.DATE_MI", "LENGTH", "DATEDIFF", "DATE_DIFF",
            "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER", "DAYOFYEAR", "DAY_OF_YEAR", "WEEKDAY",
            "WEEK_OF_YEAR"),
    "DATE": ("MAKE_DATE", "DATE_TRUNC", "TRUNC", "TS_OR_DS_TO_DATE", "DATE"),
    "TIMESTAMP": ("PG_CATALOG.DATE_TRUNC", "TO_TIMESTAMP_NTZ", "MAKE_TIMESTAMP_NTZ", "TIMESTAMP_TRUNC"),
    "VARCHAR": ("COLLATE", "TRIM", "TRANSLATE", "SUBSTRING", "REGEXP_EXTRACT", "CONCAT", "DPIPE",
                *(f"PG_CATALOG.{name}" for name in ("TRANSLATE", "BTRIM", "LTRIM", "RTRIM", "SUBSTR", "SUBSTRING",
                                                    "RIGHT", "TO_CHAR"))),
}  # fmt: skip
RETURNS = {name: kind for kind, names in GIVES.items() for name in names}


class Strict(Spark):
    """Spark's SQL with DIV as a function, which it is too, and with a CAST that is no TRY_CAST."""

    class Tokenizer(Spark.Tokenizer):
        """Words without the operator DIV."""

        KEYWORDS = {word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word != "DIV"}  # noqa: RUF012

    class Parser(Spark.Parser):
        """A bare CAST fails, with ANSI mode on."""

        STRICT_CAST = True


DIALECTS = {"postgres": ("postgres", POSTGRES), "spark": (Strict, SPARK)}


class SentAbroad(Sent):
    """One SQL text of ibis.

    Args:
        sql: the text.
        native: the type of every column of the tables, by name.
        kind: the backend.
    """

    def __init__(self, sql, native, kind):
        dialect, self._functions = DIALECTS[kind]
        self.sql = sql
        self.tree = _qualified(sqlglot.parse_one(sql, dialect=dialect))
        self._native = native
        self._named = {}
        for alias in self.tree.find_all(exp.Alias):
            self._named.setdefault(alias.alias, []).append(alias.this)

    def faults(self):
        """Yield what could fail on a row: casts of types that are not total, functions that are not listed."""
        for cast in self.tree.find_all(exp.Cast):
            if not isinstance(cast, exp.TryCast) and not self._total(cast):
                yield f"CAST({self.type(cast.this)} {called(cast.this)} AS {spelled(cast.to)})"
        for function in self.tree.find_all(exp.Func, exp.Bracket):
            if called(function) not in self._functions:
                yield f"function {called(function)}"
            if called(function) == "TO_TIMESTAMP_NTZ" and not self._moment(function.expressions[0]):
                yield "TO_TIMESTAMP_NTZ of a value"

    def _total(self, cast):
        """Tell whether a bare cast is one that is listed."""
        operand, kind = cast.this.unnest(), spelled(cast.to)
        if _constant(operand):
            return True
        source = self.type(operand)
        if any(source in froms and kind in to for froms, to in TOTAL_CASTS):
            return True
        if called(operand) == "PG_CATALOG.SUBSTRING":
            return self._matched(operand.expressions[1], kind, "^({})$")
        if source == "DECIMAL" and kind in {"DOUBLE", *TEXT}:
            return kind != "DOUBLE" or self._short(operand) or _guarded(cast)
        return source in NUMBERS and self._narrow(operand, kind)

    def _narrow(self, operand, kind):  # noqa: PLR0911  # one return a case
        """Tell whether a number is made narrower that is small anyway."""
        if isinstance(operand, exp.Column):
            found = [one.unnest() for one in self._named.get(operand.name, ())]
            return bool(found) and all(self._narrow(one, kind) or _constant(one) for one in found)
        operand = _plain(operand)
        name = called(operand).removeprefix("PG_CATALOG.")
        if (name, kind) == ("CAST", "BIGINT"):
            return isinstance(_plain(operand.this.unnest()), exp.Sum)
        if (name, kind) == ("ADD", "BIGINT"):
            return "TRUNC" in operand.left.sql() or self._whole(operand.left.unnest())
        if (name, kind) == ("NULLIF", "BIGINT"):
            return operand.find(exp.Least) is not None and operand.find(exp.Greatest) is not None
        if (name, kind) == ("SUB", "INT"):
            return isinstance(operand.right.unnest(), exp.Mul)
        if (name, kind) == ("CAST", "INT"):
            return RETURNS.get(called(operand.this)) == "INT"
        if name == "IF" and kind in ("INT", "BIGINT"):
            return operand.find(exp.Floor) is not None
        if name == "LEAST":
            return any(map(_constant, (operand.this, *operand.expressions)))
        return (name, kind) in BOUNDED

    def _whole(self, operand):
        """Tell whether a name stands for a number that was cut to a whole one."""
        found = self._named.get(operand.name, ()) if isinstance(operand, exp.Column) else (operand,)
        return bool(found) and all("TRUNC" in one.sql() or one.find(exp.Cast) is not None for one in found)

    def _short(self, operand):
        """Tell whether a decimal is of a column, or a sum, of known precision."""
        return isinstance(operand, exp.Column) and all(
            "(" in self._native.get(one, "") for one in self._behind(operand.name)
        )

    def _behind(self, name):
        """Return the columns of tables that a name stands for."""
        found = [one for one in self._named.get(name, ()) if isinstance(one, exp.Column) and one.name != name]
        return {each for one in found for each in self._behind(one.name)} if found else {name}

    def _moment(self, operand):
        """Tell whether a text is a constant, or one that a pattern of moments leaves."""
        operand = operand.unnest()
        if isinstance(operand, exp.Nullif) and isinstance(operand.this, exp.RegexpExtract):
            return self._matched(operand.this.expression, "TIMESTAMP", r"^({})\z")
        return _constant(operand)

    @staticmethod
    def _matched(pattern, kind, frame):
        """Tell whether a constant is the pattern of a type."""
        spelling = PATTERNS.get(kind.removesuffix("_NTZ"))
        pattern = pattern.unnest()
        told = pattern.name.replace("\\\\", "\\") if isinstance(pattern, exp.Literal) else None
        return spelling is not None and told == frame.format(SPELLINGS[spelling])

    def type(self, node, seen=()):  # noqa: PLR0911  # one return a case
        """Return the type of an expression, or "?"."""
        node = node.unnest()
        match node:
            case exp.Column() if node.name in self._named and node.name not in seen:
                return self._one([self.type(found, (*seen, node.name)) for found in self._named[node.name]])
            case exp.Column() if node.name in self._native:
                native = self._native[node.name].partition("(")[0]
                return SPELLED.get(native, native)
            case exp.Column():
                return "NULL" if node.name in seen else "?"
            case exp.SafeAdd() | exp.SafeSubtract() | exp.SafeMultiply():
                return self.type(node.this, seen)  # of an interval and a moment, too
            case exp.AtTimeZone():
                return "TIMESTAMP"
            case exp.If() | exp.Nullif() if not isinstance(node.parent, exp.Case):
                values = [node.args.get("true"), node.args.get("false")] if isinstance(node, exp.If) else [node.this]
                return self._one([self.type(value, seen) for value in values if value is not None])
            case exp.Literal() | exp.Cast() | exp.Case() | exp.Sum():
                return super().type(node, seen)
            case exp.Func() | exp.Collate() if called(node) in RETURNS:
                return RETURNS[called(node)]
            case exp.Div():
                return "DOUBLE"
            case _:
                return super().type(node, seen)

    @classmethod
    def _one(cls, kinds):
        """Return the one type of several; moments of any kind are moments."""
        left = {kind for kind in kinds if kind != "NULL"}
        return "TIMESTAMP" if left and left <= MOMENTS else super()._one(kinds)


def _plain(node):
    """Return a window's function, or what else a node is."""
    return node.this if isinstance(node, exp.Window) else node


def called(node):
    """Return the name of a function with its schema, or of an operator, in capitals."""
    return f"{node.unnest().meta.get('schema', '')}{name_of(node)}"


def _qualified(tree):
    """Return a tree in which the schema of each call is noted on it instead of around it."""
    for dot in list(tree.find_all(exp.Dot)):
        if isinstance(dot.expression, exp.Func):
            dot.expression.meta["schema"] = f"{dot.this.name.upper()}."
            dot.replace(dot.expression)
    return tree


def _constant(operand):
    """Tell whether an operand is a constant, cast or with a sign, or NULL."""
    operand = operand.unnest()
    if isinstance(operand, exp.Neg | exp.Cast):
        return _constant(operand.this)
    return isinstance(operand, exp.Literal | exp.Null | exp.Boolean | exp.Placeholder)


def _guarded(cast):
    """Tell whether a cast is what CASE chooses where it has looked at the same value."""
    branch = cast.find_ancestor(exp.If)
    return branch is not None and cast.this.sql() in branch.this.sql()
