"""From the syntax tree into the closed expression language: what has no rule here is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from farthing.query.expressions import (
    And,
    Expression,
    Not,
    Or,
    Scalar,
    check,
    operand_type,
    type_of,
)
from farthing.sql import functions, predicates, scalars
from farthing.sql.names import OWN_DATABASE, OWN_SCHEMAS
from farthing.sql.nodes import holds, truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.query.schema import Schema, Type
    from farthing.sql.names import Names
    from farthing.sql.text import Node, SqlText


@dataclass(frozen=True, slots=True)
class Translator:
    """Reads the nodes of one question.

    Attributes:
        source: the text, for places in messages.
        names: what the names of columns mean.
        where: the part of the question that is read, for messages.
        known: what a whole node stands for in this part, if it does: an answer column in HAVING and ORDER BY.
    """

    source: SqlText
    names: Names
    where: str = "WHERE"
    known: Callable[[Node], Scalar | None] | None = None

    @property
    def schema(self) -> Schema:
        """The columns under their names in expressions."""
        return self.names.schema

    def within(self, where: str) -> Translator:
        """Return the reader of another part of the question."""
        return replace(self, where=where)

    def naming(self, names: Names, known: Callable[[Node], Scalar | None]) -> Translator:
        """Return a reader to which names mean something else, and for which some whole nodes stand for a value."""
        return replace(self, names=names, known=known)

    def predicate(self, node: Node) -> Expression:
        """Return a checked predicate: TRUE, FALSE or unknown on every row.

        Raises:
            UnsupportedQuery: anything outside of the language, by name.
        """
        rule = predicates.rules().get(type(node).__name__)
        with self.source.located(node):
            if rule is None:
                expression: Expression = holds(self.scalar(node))
            else:
                expression = rule(self, node)
            if not isinstance(expression, And | Or | Not):  # their parts are checked already
                check(expression, self.schema)
            return expression

    def whole(self, node: Node) -> Expression:
        """Return a predicate that is checked as one: its size, too."""
        expression = self.predicate(node)
        with self.source.located(node):
            check(expression, self.schema)
        return expression

    def scalar(self, node: Node) -> Scalar:
        """Return a scalar; a predicate is the truth value that it has.

        Raises:
            UnsupportedQuery: anything outside of the language, by name.
        """
        kind = type(node).__name__
        with self.source.located(node):
            found = None if self.known is None else self.known(node)
            if found is not None:
                return found
            rule = scalars.rules().get(kind)
            if rule is not None:
                scalar: Scalar = rule(self, node)
                return scalar
            if kind in predicates.rules():
                return truth(self.predicate(node))
        raise self.unknown(node)

    def typed(self, node: Node) -> tuple[Scalar, Type]:
        """Return a scalar with its type, checked as a whole."""
        scalar = self.scalar(node)
        with self.source.located(node):
            return scalar, type_of(scalar, self.schema)

    def type(self, scalar: Scalar) -> Type:
        """Return the type of a scalar; DECIMAL for a column of decimals."""
        return operand_type(scalar, self.schema)

    def column(self, node: Node) -> Scalar:
        """Return what a column of the text is."""
        return self.named(node)[1]

    def named(self, node: Node) -> tuple[str, Scalar]:
        """Return the name that a column has in its table or subquery, and what it is."""
        from sqlglot import exp

        self.only(node, "this", "table", "db", *self._catalog(node))
        if not isinstance(node.this, exp.Identifier):
            raise self.source.refuse("a column list", "name the columns", node)
        if node.args.get("db") is not None and node.args["db"].name.casefold() not in OWN_SCHEMAS:
            raise self.source.refuse(f"schema {node.args['db'].name[:60]!r}", "leave the schema out", node)
        return self.names.found(self.source, node)

    def _catalog(self, node: Node) -> tuple[str, ...]:
        """Return the part of a column's name that says the database, where it is the own one."""
        catalog = node.args.get("catalog")
        return ("catalog",) if catalog is not None and catalog.name.casefold() == OWN_DATABASE else ()

    def only(self, node: Node, *expected: str) -> None:
        """Refuse a node that carries more than the parts that are understood."""
        for part, value in node.args.items():
            if value and part not in expected:
                raise self.source.refuse(f"{type(node).__name__} with {part.strip('_')}", "leave that part out", node)

    def unknown(self, node: Node) -> Exception:
        """Return the refusal of a node, by the name SQL has for it."""
        return functions.instead(self, node)
