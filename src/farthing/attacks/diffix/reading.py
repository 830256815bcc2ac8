"""The small SQL of the simulator: one aggregate of one table, under conditions that are joined by AND."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import sqlglot
from sqlglot import exp

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Kind = Literal["equal", "unequal", "in", "range", "bucket", "predicate"]
Constant = int | float | str
Aggregate = Literal["count", "count_distinct", "sum"]

_MOST_LEVELS: Final = 200
BUCKETS: Final = (exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Cast)
_FLIPPED: Final[Mapping[type[exp.Expression], type[exp.Expression]]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
}
_CLAUSES: Final = ("with_", "joins", "group", "having", "order", "limit", "offset", "distinct", "qualify", "laterals")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of WHERE; the two ends of a range are one.

    Attributes:
        kind: what it is. A `bucket` is a range in disguise, `floor(x) = 3`; a `predicate` is anything unclear.
        columns: the names in it, sorted.
        trees: what has to hold.
        constants: the values of a clear condition, which its static noise is seeded with.
    """

    kind: Kind
    columns: tuple[str, ...]
    trees: tuple[exp.Expression, ...]
    constants: tuple[Constant, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What tells a clear condition from others: the same for all ways to write it."""
        return (self.kind, self.columns, self.constants)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text asks: an aggregate under conditions.

    Attributes:
        table: the name behind FROM.
        aggregate: COUNT, COUNT(DISTINCT) or SUM.
        argument: what is counted or added; None for COUNT(*).
        conditions: what the counted rows fulfil.
    """

    table: str
    aggregate: Aggregate
    argument: exp.Expression | None
    conditions: tuple[Condition, ...]


def read(text: str) -> Reading:
    """Return what a text asks for.

    Raises:
        UnsupportedQuery: it is not of the subset, by name.

    >>> asked = read("SELECT COUNT(*) FROM loans WHERE status = 'C' AND client_id BETWEEN 2000 AND 3000")
    >>> [(condition.kind, condition.constants) for condition in asked.conditions]
    [('equal', ('C',)), ('range', (2000, '<=', 3000, '<='))]
    """
    select = _select(text)
    aggregate, argument = _aggregate(select)
    where = select.args.get("where")
    conjuncts = [] if where is None else [_bare(tree) for tree in _conjuncts(where.this)]
    return Reading(select.args["from_"].this.name.lower(), aggregate, argument, tuple(_conditions(conjuncts)))


def refused(construct: str, rule: str, got: str, next_step: str) -> UnsupportedQuery:
    """Return the refusal of a construct."""
    return UnsupportedQuery(f"refused: {construct}", construct=construct, rule=rule, got=got, next_step=next_step)


def columns_of(tree: exp.Expression) -> tuple[str, ...]:
    """Return the names of the columns in a tree, sorted."""
    return tuple(sorted({column.name.lower() for column in tree.find_all(exp.Column)}))


def constant_of(tree: exp.Expression) -> Constant | None:
    """Return the value of a constant; None if it is none."""
    match tree:
        case exp.Literal(is_string=True):
            return str(tree.this)
        case exp.Literal():
            return _number(tree.this)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return -_number(tree.this.this)
    return None


def _number(digits: str) -> int | float:
    """Return a number as it is written."""
    return int(digits) if digits.isdigit() else float(digits)


def _select(text: str) -> exp.Select:
    """Return the tree of the one SELECT from one table that a text is."""
    if text.count("(") > _MOST_LEVELS:
        raise refused("a deep text", f"at most {_MOST_LEVELS} brackets", "more", "ask less in one query")
    try:
        parsed = sqlglot.parse(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise refused("a text that is not SQL", "one SELECT", text[:80], "mend its syntax") from error
    tree = parsed[0] if len(parsed) == 1 else None
    if not isinstance(tree, exp.Select) or not isinstance(getattr(tree.args.get("from_"), "this", None), exp.Table):
        raise refused("a text that is not a question", "SELECT aggregate FROM table WHERE ...", text[:80], "ask that")
    for clause in _CLAUSES:
        if tree.args.get(clause):
            name = clause.strip("_").upper()
            raise refused(name, "one aggregate of one table, under conditions", name, "leave it out")
    return tree


def _aggregate(select: exp.Select) -> tuple[Aggregate, exp.Expression | None]:
    """Return the one aggregate of the SELECT list and its argument."""
    match [item.unalias() for item in select.expressions]:
        case [exp.Count(this=exp.Star() | exp.Literal())]:
            return "count", None
        case [exp.Count(this=exp.Distinct(expressions=[exp.Column() as column]))]:
            return "count_distinct", column
        case [exp.Count(this=exp.Column() as column)]:
            return "count", column
        case [exp.Sum(this=exp.Expression() as argument)] if not isinstance(argument, exp.Distinct):
            return "sum", argument
    got = ", ".join(item.sql() for item in select.expressions)[:80]
    raise refused("a SELECT list", "COUNT(*), COUNT(x), COUNT(DISTINCT unit) or SUM(x), and only one", got, "ask that")


def _conjuncts(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Yield what AND joins, from left to right."""
    tree = _bare(tree)
    while isinstance(tree, exp.And):
        yield from _conjuncts(tree.expression)
        tree = _bare(tree.this)
    yield tree


def _bare(tree: exp.Expression) -> exp.Expression:
    """Return a tree without the brackets around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _conditions(conjuncts: list[exp.Expression]) -> Iterator[Condition]:
    """Yield the conditions, in the order of the text; the two ends of a range are one."""
    ends: dict[str, list[exp.Expression]] = {}
    for tree in reversed(conjuncts):
        sided = _sided(tree)
        if isinstance(sided, exp.GT | exp.GTE | exp.LT | exp.LTE) and _clear(sided):
            ends.setdefault(sided.this.name.lower(), []).append(sided)
        else:
            yield _condition(sided)
    for column, trees in ends.items():
        yield _range(column, trees)


def _sided(tree: exp.Expression) -> exp.Expression:
    """Return a comparison with its constant on the right."""
    if type(tree) not in _FLIPPED or constant_of(_bare(tree.this)) is None:
        return tree
    return _FLIPPED[type(tree)](this=tree.expression, expression=tree.this)


def _clear(tree: exp.Expression) -> bool:
    """Tell whether a comparison is of a bare column with a constant."""
    return isinstance(_bare(tree.this), exp.Column) and constant_of(_bare(tree.expression)) is not None


def _condition(tree: exp.Expression) -> Condition:
    """Return one condition that is not the end of a range."""
    for kind, constants in _CLEAR.items():
        found = constants(tree)
        if found:
            return Condition(kind, columns_of(tree), (tree,), found)
    if isinstance(tree, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE) and columns_of(tree):
        return Condition("predicate", columns_of(tree), (tree,))
    raise refused(
        f"a condition ({tree.key.upper()})", "comparisons joined by AND", tree.sql()[:80], "write a comparison"
    )


def _equal(tree: exp.Expression) -> tuple[Constant, ...]:
    """Return the constant of `x = 3` and of `x IN (3)`, or nothing."""
    if isinstance(tree, exp.In):
        members = _members(tree)
        return members if len(members) == 1 else ()
    return (_constant(tree.expression),) if isinstance(tree, exp.EQ) and _clear(tree) else ()


def _unequal(tree: exp.Expression) -> tuple[Constant, ...]:
    """Return the constants of `x <> 3` and `x NOT IN (3, 4)`, or nothing."""
    if isinstance(tree, exp.Not) and isinstance(_bare(tree.this), exp.In):
        return _members(_bare(tree.this))
    return (_constant(tree.expression),) if isinstance(tree, exp.NEQ) and _clear(tree) else ()


def _members(tree: exp.Expression) -> tuple[Constant, ...]:
    """Return the constants of `x IN (3, 4)`, or nothing."""
    if not isinstance(tree, exp.In) or not isinstance(tree.this, exp.Column):
        return ()
    found = [constant_of(member) for member in tree.expressions]
    return tuple(sorted({value for value in found if value is not None}, key=str)) if None not in found else ()


def _bounds(tree: exp.Expression) -> tuple[Constant, ...]:
    """Return the ends of `x BETWEEN 3 AND 4`, or nothing."""
    if not isinstance(tree, exp.Between) or not isinstance(tree.this, exp.Column):
        return ()
    low, high = constant_of(tree.args["low"]), constant_of(tree.args["high"])
    return () if low is None or high is None else (low, "<=", high, "<=")


def _bucket(tree: exp.Expression) -> tuple[Constant, ...]:
    """Return what makes `floor(x) = 3` a range, or nothing."""
    side = _bare(tree.this) if isinstance(tree, exp.EQ) else None
    if not isinstance(side, BUCKETS) or not isinstance(_bare(side.this), exp.Column):
        return ()
    value = constant_of(_bare(tree.expression))
    return () if value is None else (side.sql().lower(), value)


def _constant(tree: exp.Expression) -> Constant:
    """Return the value of what is known to be a constant."""
    value = constant_of(_bare(tree))
    return "" if value is None else value


def _range(column: str, trees: list[exp.Expression]) -> Condition:
    """Return the range between two ends; one end alone leaves it open."""
    lows = [tree for tree in trees if isinstance(tree, exp.GT | exp.GTE)]
    highs = [tree for tree in trees if isinstance(tree, exp.LT | exp.LTE)]
    if len(lows) != 1 or len(highs) != 1:
        got = " AND ".join(tree.sql() for tree in trees)
        raise refused("a half-open range", "a column has one lower and one upper end", got, "write BETWEEN")
    (low,), (high,) = lows, highs
    ends = (_constant(low.expression), _mark(low), _constant(high.expression), _mark(high))
    return Condition("range", (column,), (low, high), ends)


def _mark(tree: exp.Expression) -> str:
    """Return whether an end belongs to its range."""
    return "<=" if isinstance(tree, exp.GTE | exp.LTE) else "<"


_CLEAR: Final[dict[Kind, Callable[[exp.Expression], tuple[Constant, ...]]]] = {
    "equal": _equal,
    "unequal": _unequal,
    "in": _members,
    "range": _bounds,
    "bucket": _bucket,
}
