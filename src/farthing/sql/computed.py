"""What a SELECT computes of the columns of a question below it, written as that question would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.sql.asked import Asked
    from farthing.sql.text import Node, SqlText

MOST_NODES: Final = 2_000
"""The most nodes of what is computed, once columns stand for what they are."""


def computed(node: Node, bodies: Mapping[str, Node], above: Node, alias: str, source: SqlText) -> Node | None:
    """Return a value with the columns of an answer replaced by what they are; None where it has other columns.

    A subquery that adds up a column of the same answer, as `(SELECT SUM(n) FROM counts)`, is that sum over all groups:
    `counts` must be a name of WITH, since the alias of a subquery in FROM does not name a table. Columns of other
    subqueries are those of the tables there.

    Args:
        node: the value, which is left as it is.
        bodies: what the columns of the answer are, by their names in small letters.
        above: the SELECT that computes it.
        alias: the name of the answer there.
        source: the text, for places in messages.

    Raises:
        UnsupportedQuery: it grows too large.
    """
    from sqlglot import exp

    made = exp.Paren(this=node.copy())
    for part in list(made.find_all(exp.Subquery)):
        total = _alone(part, _table(above))
        if total is not None:
            part.replace(exp.Window(this=total.copy()))
    for column in list(made.find_all(exp.Column)):
        if column.find_ancestor(exp.Subquery) is not None:
            continue
        table, body = str(column.args.get("table") or "").strip('"'), bodies.get(str(column.name).casefold())
        if body is None or column.args.get("db") is not None or table.casefold() not in ("", alias.casefold()):
            return None
        column.replace(exp.Paren(this=body.copy()))
        if sum(1 for _ in made.walk()) > MOST_NODES:
            raise source.refuse("subqueries that grow this large", "name fewer values of values", node)
    return made.this


def check_whole(node: Node, asked: Asked, above: Node, source: SqlText) -> None:
    """Refuse a total over groups, or LAG, of which a SELECT between it and the question keeps some only.

    Args:
        node: what is computed, in the words of the SELECT above: what the columns below are was computed before.
        asked: the question.
        above: the SELECT.
        source: the text.
    """
    before = asked.aftermath
    cut = before.having is not None or before.limit is not None or before.offset > 0
    kinds = {type(part).__name__ for part in node.walk()}
    if kinds & {"Window", "Subquery", "Select"} and (cut or above.args.get("where") is not None):
        raise source.refuse(
            "a number of several groups of an answer that was cut",
            "compute shares, totals and LAG below HAVING, WHERE and LIMIT: they would choose which groups there are",
            above,
        )


def _table(select: Node) -> str:
    """Return the name of the table that a SELECT is from; "" for a subquery in its place."""
    table = select.args.get("from_") or select.args.get("from")
    return str(table.this.name) if table is not None and type(table.this).__name__ == "Table" else ""


def _alone(query: Node, name: str) -> Node | None:
    """Return the one value that a subquery selects of an answer, as it is; None for any other subquery."""
    select = query.this
    clauses = {name.rstrip("_") for name, value in select.args.items() if value}
    if clauses - {"expressions", "from", "kind"} or len(select.expressions) != 1:
        return None
    if not name or _table(select).casefold() != name.casefold():
        return None
    (one,) = select.expressions
    return one.this if type(one).__name__ == "Alias" else one
