"""One question in many words: SQL that means the same, so that noise that belongs to the text is drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.attacks.target import Question, literal, quoted

if TYPE_CHECKING:
    from farthing.attacks.target import People


def same_predicates(column: str, value: Any) -> list[str]:
    """Return predicates that are true for the same rows as `column = value`, a value that is not NULL.

    >>> same_predicates("age", 10)[:4]
    ['age = 10', '10 = age', 'age IN (10)', 'NOT (age <> 10)']
    """
    name, said = quoted(column), literal(value)
    forms = [
        f"{name} = {said}",
        f"{said} = {name}",
        f"{name} IN ({said})",
        f"NOT ({name} <> {said})",
        f"NOT (NOT ({name} = {said}))",
        f"{name} BETWEEN {said} AND {said}",
        f"({name} >= {said} AND {name} <= {said})",
        f"({name} <= {said} AND {name} >= {said})",
        f"({name} = {said} OR {name} = {said})",
        f"CASE WHEN {name} = {said} THEN TRUE ELSE FALSE END",
        f"(COALESCE({name}, {said}) = {said} AND {name} IS NOT NULL)",
    ]
    if isinstance(value, str):
        return forms
    arithmetic = [f"{name} + {k} = {said} + {k}" for k in range(1, 6)] + [
        f"{name} - {k} = {said} - {k}" for k in range(1, 6)
    ]
    return [*forms, f"{name} * 1 = {said}", f"{name} * 2 = {said} * 2", f"ABS({name} - {said}) = 0", *arithmetic]


def same_questions(people: People, predicate: str) -> list[Question]:
    """Return questions that count the same people: other aggregates, other orders of the conditions, a subquery."""
    table, secret = quoted(people.table), people.secret
    texts = [people.count(predicate), f"SELECT {people.counting} FROM {table} WHERE {secret} AND {predicate}"]
    if people.counting == "COUNT(*)":
        texts += [
            f"SELECT COUNT(1) FROM {table} WHERE {predicate} AND {secret}",
            f"SELECT SUM(CASE WHEN {predicate} AND {secret} THEN 1 ELSE 0 END) FROM {table}",
            f"SELECT COUNT(*) FILTER (WHERE {secret}) FROM {table} WHERE {predicate}",
            f"SELECT COUNT(*) FROM (SELECT * FROM {table} WHERE {secret}) AS a WHERE {predicate}",
            f"WITH a AS (SELECT * FROM {table} WHERE {predicate}) SELECT COUNT(*) FROM a WHERE {secret}",
        ]
    return [Question(text=text) for text in texts]


def rewrites(people: People, victim: int) -> list[Question]:
    """Return all the ways to ask about one person: every predicate in every question."""
    value = people.ids[victim]
    plain = value.item() if hasattr(value, "item") else value
    return [question for said in same_predicates(people.id, plain) for question in same_questions(people, said)]
