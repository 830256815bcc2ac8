"""Read SQL that is sent to DuckDB: which casts and functions it holds, with the types of what is cast."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from farthing.engines.duck.total import BOUNDED, FUNCTIONS, TOTAL_CASTS, WHOLE

SPELLED = {
    "HUGEINT": "INT128",
    "INTEGER": "INT",
    "TEXT": "VARCHAR",
    "UINTEGER": "UINT",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}
GIVES = {
    "DOUBLE": ("FLOOR", "CEIL", "TRUNC", "ROUND", "SQRT", "LN", "LOG", "EXP", "POWER", "DIV", "RAND"),
    "BIGINT": ("COUNT", "LENGTH", "ROWNUMBER", "ROW_NUMBER", "DENSE_RANK", "DENSERANK", "RANK", "GROUPING", "DATE_PART",
               "DATEDIFF", "EPOCH_US", "EPOCH_NS", "INTDIV"),
    "UBIGINT": ("HASH", "XOR"),
    "VARCHAR": ("TRIM", "LTRIM", "RTRIM", "TRANSLATE", "SUBSTRING", "BIN", "DPIPE", "CONCAT", "DECODE"),
    "TINYINT": ("SIGN",),
    "BOOLEAN": ("CONTAINS", "STARTS_WITH", "ENDS_WITH", "REGEXP_FULL_MATCH"),
    "TIMESTAMP": ("MAKE_TIMESTAMP", "TIMESTAMP_TRUNC", "DATE_TRUNC"),
    "TIMESTAMP_NS": ("MAKE_TIMESTAMP_NS",),
}  # fmt: skip
RETURNS = {name: kind for kind, names in GIVES.items() for name in names}
NUMBERS = (
    "DOUBLE",
    "FLOAT",
    "DECIMAL",
    "INT128",
    "UBIGINT",
    "BIGINT",
    "UINT",
    "INT",
    "USMALLINT",
    "SMALLINT",
    "UTINYINT",
    "TINYINT",
)


def branches(tree):
    """Return the SELECTs of UNION ALL, or the one there is."""
    return [*branches(tree.this), *branches(tree.expression)] if isinstance(tree, exp.Union) else [tree]


class Sent:
    """One SQL text: names of its own stand for one expression each; columns of tables have native types.

    Args:
        sql: the text.
        native: DuckDB's type of every column, by view and name.
        tree: the text read already: a part of it, named by WITH or below that, has names of its own.
    """

    def __init__(self, sql, native, tree=None):
        self.sql = sql
        self.tree = sqlglot.parse_one(sql, dialect="duckdb") if tree is None else tree
        self._native = native
        self._views = {scan.alias: scan.name for scan in self.tree.find_all(exp.Table) if scan.alias == "r"}
        self._named = {}
        for alias in self.tree.find_all(exp.Alias):
            self._named.setdefault(alias.alias, []).append(alias.this)

    def parts(self):
        """Return the relations that WITH names and the question below, each with the types of all columns."""
        clause, native, found = self.tree.args.get("with_") or self.tree.args.get("with"), dict(self._native), []
        for named in () if clause is None else clause.expressions:
            ones = [Sent("", native, select) for select in branches(named.this)]
            found += ones
            native[named.alias] = {item.alias: ones[0].type(item.this) for item in ones[0].tree.expressions}
        if clause is None:
            return [self]
        clause.pop()
        return [*found, Sent("", native, self.tree)]

    def faults(self):
        """Yield what could fail on a row: casts that are not total, functions that are not listed, divisors of 0."""
        parts = self.parts()
        if len(parts) > 1:
            for part in parts:
                yield from part.faults()
            return
        for cast in self.tree.find_all(exp.Cast):
            if not isinstance(cast, exp.TryCast) and not self._total(cast):
                yield f"CAST({self.type(cast.this)} {name_of(cast.this)} AS {spelled(cast.to)})"
        for function in self.tree.find_all(exp.Func):
            if name_of(function) not in FUNCTIONS:
                yield f"function {name_of(function)}"
        for division in self.tree.find_all(exp.IntDiv, exp.Mod):
            if not _divides(division):
                yield f"{name_of(division)} by {division.right.sql('duckdb')}"

    def _total(self, cast):
        """Tell whether a bare cast is one that is listed."""
        operand, kind = cast.this.unnest(), spelled(cast.to)
        if isinstance(operand, exp.Literal | exp.Null | exp.Boolean) or (
            isinstance(operand, exp.Neg) and isinstance(operand.this, exp.Literal)
        ):
            return True  # a constant
        source = self.type(operand)
        if any(source in froms and kind in to for froms, to in TOTAL_CASTS):
            return True
        if isinstance(operand, exp.Column) and operand.name in self._named:
            return all(self._narrow(found.unnest(), source, kind) for found in self._named[operand.name])
        return self._narrow(operand, source, kind)

    @staticmethod
    def _narrow(operand, source, kind):
        """Tell whether a number is made narrower that is small anyway, less a constant or not."""
        if isinstance(operand, exp.Sub) and isinstance(operand.right.unnest(), exp.Literal | exp.Cast):
            operand = operand.left.unnest() if isinstance(operand.left.unnest(), exp.BitwiseRightShift) else operand
        return kind in WHOLE and source in NUMBERS and name_of(operand) in BOUNDED

    def type(self, node, seen=()):  # noqa: C901, PLR0911, PLR0912  # one return a case
        """Return the type of an expression, or "?"."""
        node = node.unnest()
        match node:
            case exp.Cast():
                return spelled(node.to)
            case exp.Null():
                return "NULL"
            case exp.Literal():
                return "VARCHAR" if node.is_string else "INT" if node.is_int else "DECIMAL"
            case exp.Column() if node.table == "r":
                kinds = {SPELLED.get(kind, kind.partition("(")[0]) for kind in self._columns(node.name)}
                return kinds.pop() if len(kinds) == 1 else "?"
            case exp.Column() if node.name in seen:
                return "NULL"  # whatever the other definitions are
            case exp.Column() if node.name in self._named:
                return self._one([self.type(found, (*seen, node.name)) for found in self._named[node.name]])
            case exp.Column() if node.name == "v":  # of list_transform
                return self._one([self.type(found.expressions[0], seen) for found in self.tree.find_all(exp.Array)])
            case exp.Predicate() | exp.Not() | exp.And() | exp.Or() | exp.Boolean() | exp.In() | exp.Between():
                return "BOOLEAN"
            case exp.Case():
                values = [branch.args["true"] for branch in node.args["ifs"]]
                values += [node.args["default"]] if node.args.get("default") is not None else []
                return self._one([self.type(value, seen) for value in values])
            case exp.Sum():
                inner = self.type(node.this, seen)
                return "INT128" if inner in WHOLE else inner
            case exp.Coalesce() | exp.Least() | exp.Greatest():
                return self._one([self.type(value, seen) for value in (node.this, *node.expressions)])
            case exp.Neg() | exp.Min() | exp.Max() | exp.Abs() | exp.Window() | exp.FirstValue() | exp.LastValue():
                return self.type(node.this, seen)
            case exp.Lag() | exp.Lead():
                return self.type(node.this, seen)
            case exp.BitwiseRightShift() if isinstance(node.right, exp.Literal):
                return self.type(node.left, seen)
            case exp.IntDiv() | exp.Mod() | exp.Add() | exp.Sub() | exp.Mul():
                return self._one([self.type(node.left, seen), self.type(node.right, seen)])
            case _:
                return RETURNS.get(name_of(node), "?")

    def _columns(self, name):
        """Return the native types of a column in the views that have it."""
        return {kinds[name] for kinds in self._native.values() if name in kinds}

    @staticmethod
    def _one(kinds):
        """Return the one type of several, the widest of numbers; NULL has any."""
        left = {kind for kind in kinds if kind != "NULL"}
        if left <= set(NUMBERS) and left:
            return next(kind for kind in NUMBERS if kind in left)
        return left.pop() if len(left) == 1 else "?" if left else "NULL"


def _divides(division):
    """Tell whether a divisor is a constant, NULL in place of 0, or a count that is above a constant there."""
    divisor, case = division.right.unnest(), division.find_ancestor(exp.Case)
    divisor = divisor.this if isinstance(divisor, exp.Cast) else divisor
    if isinstance(divisor.unnest(), exp.Literal):
        return float(divisor.unnest().this) != 0
    if isinstance(divisor, exp.Nullif):
        return divisor.expression == exp.Literal.number(0)
    first = None if case is None else case.args["ifs"][0].this
    return isinstance(first, exp.LTE) and (first.left, first.right.is_int) == (divisor, True)


def spelled(kind):
    """Return a type without its parameters."""
    text = kind.sql("duckdb").partition("(")[0]
    return SPELLED.get(text, text)


def name_of(node):
    """Return the name of a function, or of an operator, in capitals."""
    node = node.unnest()
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    if isinstance(node, exp.Column):
        return "COLUMN"
    if isinstance(node, exp.TryCast):
        return "TRY_CAST"
    known = {exp.Trim: "TRIM", exp.StartsWith: "STARTS_WITH", exp.If: "IF"}
    if isinstance(node, exp.JSONExtractScalar):  # as newer versions of sqlglot read SQLite's function
        return "JSON_EXTRACT"
    if type(node) in known:
        return known[type(node)]
    return node.sql_name().upper() if isinstance(node, exp.Func) else type(node).__name__.upper()
