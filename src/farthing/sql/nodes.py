"""What the rules of SQL know of their reader: how a node becomes a value or a condition, and how one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from farthing.query.expressions import Case, Compare, Expression, Literal, Not, Operator, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from farthing.query.schema import Schema, Type
    from farthing.sql.names import Names
    from farthing.sql.text import Node, SqlText

TRUE = Literal(value=True)
FALSE = Literal(value=False)


class NodeReader(Protocol):
    """Reads the nodes of one question; `sql.translator` is what does."""

    @property
    def source(self) -> SqlText:
        """The text, for places in messages."""

    @property
    def where(self) -> str:
        """The part of the question that is read, for messages."""

    @property
    def schema(self) -> Schema:
        """The columns under their names in expressions."""

    def within(self, where: str) -> Self:
        """Return the reader of another part of the question."""

    def naming(self, names: Names, known: Callable[[Node], Scalar | None]) -> Self:
        """Return a reader to which names mean something else, and for which some whole nodes stand for a value."""

    def predicate(self, node: Node) -> Expression:
        """Return a checked predicate: TRUE, FALSE or unknown on every row."""

    def whole(self, node: Node) -> Expression:
        """Return a predicate that is checked as one: its size, too."""

    def scalar(self, node: Node) -> Scalar:
        """Return a scalar; a predicate is the truth value that it has."""

    def typed(self, node: Node) -> tuple[Scalar, Type]:
        """Return a scalar with its type, checked as a whole."""

    def type(self, scalar: Scalar) -> Type:
        """Return the type of a scalar; DECIMAL for a column of decimals."""

    def column(self, node: Node) -> Scalar:
        """Return what a column of the text is."""

    def named(self, node: Node) -> tuple[str, Scalar]:
        """Return the name that a column has in its table or subquery, and what it is."""

    def only(self, node: Node, *expected: str) -> None:
        """Refuse a node that carries more than the parts that are understood."""


Rule: TypeAlias = "Callable[[NodeReader, Any], Any]"
"""What a node is in the language."""


def truth(predicate: Expression) -> Scalar:
    """Return the truth value of a predicate as a scalar: NULL where it is unknown.

    >>> from farthing.query.expressions import Column
    >>> str(truth(Compare(Column("x"), Operator.GT, Literal(1))))
    'CASE WHEN x > 1 THEN TRUE WHEN NOT (x > 1) THEN FALSE END'
    """
    match predicate:
        case Compare(scalar, Operator.EQ, Literal(True)):
            return scalar
        case _:
            return Case(((predicate, TRUE), (Not(predicate), FALSE)))


def holds(scalar: Scalar) -> Expression:
    """Return the predicate that a truth value stands for.

    >>> from farthing.query.expressions import Column
    >>> str(holds(truth(Compare(Column("x"), Operator.GT, Literal(1)))))
    'x > 1'
    """
    match scalar:
        case Case(((found, Literal(True)), (Not(other), Literal(False))), None) if found is other:
            return found
        case _:
            return Compare(scalar, Operator.EQ, TRUE)


def surely(predicate: Expression) -> Scalar:
    """Return TRUE where a predicate is, and FALSE where it is FALSE or unknown."""
    return Case(((predicate, TRUE),), FALSE)
