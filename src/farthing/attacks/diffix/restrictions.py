"""Which questions each version of Diffix refuses: every version answered a published attack with a new rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from farthing.attacks.diffix.evaluation import COMPARISONS, FUNCTIONS
from farthing.attacks.diffix.reading import BUCKETS, columns_of, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from farthing.attacks.diffix.facts import DiffixFacts
    from farthing.attacks.diffix.reading import Reading

Version = Literal["birch", "cedar", "dogwood"]
Rule = Callable[["Reading", "DiffixFacts"], None]

MOST_FUNCTIONS: Final = 5
_MATHS: Final = tuple(kind for kind in FUNCTIONS if kind is not exp.Neg)


def own_table(reading: Reading, facts: DiffixFacts) -> None:
    """The table and its columns exist, and only users are counted as distinct."""
    if reading.table != facts.name:
        raise refused("an unknown table", "the table of this system", reading.table, f"ask {facts.name}")
    used = {name for tree in _expressions(reading) for name in columns_of(tree)}
    for name in sorted(used - set(facts.columns)):
        raise refused("an unknown column", "one of the table", name, f"use one of {', '.join(sorted(facts.columns))}")
    counted = columns_of(reading.argument) if reading.argument is not None else ()
    if reading.aggregate == "count_distinct" and counted != (facts.unit,):
        raise refused("COUNT(DISTINCT x)", "of the users", ", ".join(counted), f"COUNT(DISTINCT {facts.unit})")


def few_functions(reading: Reading, facts: DiffixFacts) -> None:  # noqa: ARG001 (all rules have one form)
    """At most five functions and operators of mathematics in one expression."""
    for tree in _expressions(reading):
        found = len(list(tree.find_all(*_MATHS)))
        if found > MOST_FUNCTIONS:
            rule = f"at most {MOST_FUNCTIONS} functions in one expression"
            raise refused("too much mathematics", rule, str(found), "shorten it")


def clear_where_isolating(reading: Reading, facts: DiffixFacts) -> None:
    """A column whose values point at single users stands alone, against constants: no mathematics (since Cedar)."""
    for condition in reading.conditions:
        isolating = [name for name in condition.columns if facts.isolating(name)]
        clear = condition.kind in {"equal", "in", "range"}
        if isolating and condition.kind == "unequal":
            clear = set(condition.constants) <= facts.frequent(isolating[0])
        if isolating and not clear:
            rule = "an isolating column needs a clear condition: the bare column =, IN or BETWEEN constants"
            raise refused("an isolating column in an unclear condition", rule, isolating[0], "use another column")


def clear_where_bucketed(reading: Reading, facts: DiffixFacts) -> None:  # noqa: ARG001 (all rules have one form)
    """FLOOR, CEIL, ROUND, TRUNC and CAST hide a range: of a bare column, against a constant (since Dogwood)."""
    for condition in reading.conditions:
        hidden = [tree.find(*BUCKETS) for tree in condition.trees]
        if condition.kind != "bucket" and any(hidden):
            rule = "a rounding function is an implicit range and needs a clear condition: floor(column) = constant"
            raise refused("a rounding function in an unclear condition", rule, _text(condition.trees), "use BETWEEN")
    for tree in () if reading.argument is None else reading.argument.find_all(*BUCKETS):
        if tree.find(*_PURE_MATHS):
            rule = "no arithmetic inside of a rounding function"
            raise refused("arithmetic in a rounding function", rule, tree.sql()[:80], "round the bare column")


def _expressions(reading: Reading) -> Iterator[exp.Expression]:
    """Yield the sides of the conditions and the argument of the aggregate."""
    for condition in reading.conditions:
        for tree in condition.trees:
            yield from (tree.this, tree.expression) if type(tree) in COMPARISONS else (tree,)
    if reading.argument is not None:
        yield reading.argument


def _text(trees: tuple[exp.Expression, ...]) -> str:
    """Return conditions as text."""
    return " AND ".join(tree.sql() for tree in trees)[:80]


_PURE_MATHS: Final = tuple(kind for kind in _MATHS if kind not in BUCKETS)
_BIRCH: Final[tuple[Rule, ...]] = (own_table, few_functions)
_CEDAR: Final = (*_BIRCH, clear_where_isolating)
_DOGWOOD: Final = (*_CEDAR, clear_where_bucketed)

RESTRICTIONS: Final[Mapping[Version, tuple[Rule, ...]]] = {"birch": _BIRCH, "cedar": _CEDAR, "dogwood": _DOGWOOD}
