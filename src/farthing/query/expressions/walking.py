"""Walks over expressions of any shape."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from farthing.query.expressions.tree import And, Between, Call, Case, Cast, Compare, In, IsNull, Node, Not, Or
from farthing.query.expressions.values import Column, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def children(node: Node) -> tuple[Node, ...]:  # noqa: PLR0911  # one return a case
    """Return the nodes right below a node.

    The constants of IN are a list, no nodes. BETWEEN stands for its two comparisons, so its operand counts twice.
    """
    match node:
        case Column() | Literal():
            return ()
        case Call(_, arguments):
            return arguments
        case Case(branches, otherwise):
            below = tuple(part for branch in branches for part in branch)
            return below if otherwise is None else (*below, otherwise)
        case Compare(left, _, right):
            return left, right
        case And(operands) | Or(operands):
            return operands
        case Not(operand) | IsNull(operand) | In(operand, _) | Cast(operand, _):
            return (operand,)
        case Between():
            return node.comparisons
        case _:
            assert_never(node)


def walk(*nodes: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node of some trees with its depth, the roots at 1; without recursion, so at any depth.

    >>> from farthing.query.expressions import FunctionName
    >>> [(str(node), depth) for node, depth in walk(Call(FunctionName.ADD, (Column("x"), Literal(1))))]
    [('(x + 1)', 1), ('x', 2), ('1', 2)]
    """
    left = [(node, 1) for node in reversed(nodes)]
    while left:
        node, depth = left.pop()
        yield node, depth
        left += [(child, depth + 1) for child in reversed(children(node))]


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a tree with every node changed, from the leaves up; BETWEEN becomes its two comparisons.

    >>> from farthing.query.expressions import Operator
    >>> tree = Compare(Column("x"), Operator.EQ, Literal(1))
    >>> str(rewrite(tree, lambda node: Column("y") if isinstance(node, Column) else node))
    'y = 1'
    """
    below: list[Any] = [rewrite(child, change) for child in children(node)]
    return change(_with_children(node, below))


def columns_of(*nodes: Node) -> frozenset[str]:
    """Return the names of the columns that scalars and predicates read."""
    return frozenset(node.name for node, _ in walk(*nodes) if isinstance(node, Column))


def _with_children(node: Node, below: list[Any]) -> Node:  # noqa: PLR0911  # one return a case
    """Return a node with other nodes below it."""
    match node:
        case Column() | Literal():
            return node
        case Call():
            return replace(node, arguments=tuple(below))
        case Case(branches, otherwise):
            pairs = tuple(zip(below[: 2 * len(branches) : 2], below[1 : 2 * len(branches) : 2], strict=True))
            return Case(pairs, None if otherwise is None else below[-1])
        case Compare(_, operator, _):
            return Compare(below[0], operator, below[1])
        case And() | Or():
            return replace(node, operands=tuple(below))
        case Not() | IsNull() | In() | Cast():
            return replace(node, operand=below[0])
        case Between():
            return And(tuple(below))
        case _:
            assert_never(node)
