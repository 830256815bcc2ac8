"""Questions made at random over the town: wild ones for neighbour equality, plain ones whose truth any engine knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.audit.oracles import NOISY, AuditQuestion, compared, price_floor
from farthing.audit.tables import HEAVY, MANY, PEOPLE, STATES, SeededChoices, Town, town
from farthing.query import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.audit.findings import Finding
    from farthing.session import Session

DEEP: Final = 2
COMPARED: Final = (">=", "<", "<>", "=")
_NUMBERS: Final = ("x", "g", "u.uid", "y")
_WILD: Final = (
    "1 // ({n} - {k})",
    "{n} % ({n} - {k})",
    "1 / ({n} - {k})",
    "SQRT({k} - {n})",
    "LN({n} - {k})",
    "EXP({n} * {n})",
    "POWER({n}, {n})",
    "9223372036854775807 + {n}",
    "CAST(s AS INTEGER) + {n}",
    "CAST({n} * 1e300 AS INTEGER)",
    "CASE WHEN u.uid = {k} THEN 0 ELSE 1 END // CASE WHEN u.uid = {k} THEN 0 ELSE 1 END",
    "ROUND({n} / {k}, 3)",
    "LENGTH(SUBSTRING(s, {k}))",
    "NULLIF({n}, {k})",
    "COALESCE(NULLIF({n}, {k}), 1e308 * 10)",
)
_PLAIN: Final = ("{n} + {k}", "{n} - {k}", "{n} * {k}", "ABS({n} - {k})", "LEAST({n}, {k})", "{n}")


@dataclass(frozen=True, slots=True)
class Made:
    """A question that was made at random.

    Attributes:
        text: the SQL.
        keys: its public groups, or None.
        refined: whether it stops by what it sees, so that its price is noisy.
    """

    text: str
    keys: dict[str, Any] | None
    refined: bool

    def ask(self, session: Session, **how: Any) -> Any:
        """Ask a session."""
        usual = {"relative": 0.2, "absolute": 5, "cap": "all"} if self.refined else {"absolute": 3, "cap": "all"}
        options = (how or usual) | {"on_miss": "spend"}
        return session.sql(self.text, keys=self.keys, lower=0, upper=100, **options)


def fuzz(
    *,
    questions: int = 20,
    seed: int = 0,
    make_session: Callable[[Town], Session] = Town.session,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Finding, ...]:
    """Ask random questions about the town and its neighbours, and judge all of them by both oracles.

    Of every four questions three are wild: errors, overflows, casts, joins, groups, HAVING; they are asked with the
    heavy person or another one gone. One is plain: its truth is counted by brute force with each chain of people gone.

    Args:
        questions: how many.
        seed: the same questions again for the same seed.
        make_session: opens a session on a town, with new books.
        progress: called with ("fuzz", done, of) after each question.

    Returns:
        What was found; nothing where the promises hold.
    """
    here = town()
    found: list[Finding] = []
    pairs: dict[int, tuple[Session, Session]] = {}
    for place in range(questions):
        choices = SeededChoices(seed, f"question {place}")
        if place % 4 < 3:
            gone, made = choices.of((HEAVY, 3)), wild(choices)
            pair = pairs.pop(gone, None) or (make_session(here), make_session(here.without(gone)))
            differing = compared(pair, AuditQuestion(made.text, made.ask, NOISY if made.refined else frozenset()))[1]
            found += differing
            if not (differing or made.refined):  # else their books may differ from now on
                pairs[gone] = pair
        else:
            found += _floored(make_session, here, plain(choices))
        if progress is not None:
            progress("fuzz", place + 1, questions)
    return tuple(found)


def wild(choices: SeededChoices) -> Made:
    """Return a question of any shape of the language, with expressions that other systems fail on."""
    grouped = choices.below(3) == 0
    joined = choices.of(("", "", " JOIN o USING (uid)", " JOIN cat ON u.g = cat.g", " LEFT JOIN o ON u.uid = o.uid"))
    number = _expression(choices, (*_WILD, *_PLAIN), DEEP, joined)
    units = "COUNT(DISTINCT uid)" if not joined else "COUNT(*)"
    count = ("COUNT(*)", f"COUNT({number})", f"SUM({number})", units, f"COUNT(DISTINCT {number})")
    aggregate = choices.of(count)
    refined = aggregate.startswith("COUNT(*") and choices.below(4) == 0
    condition = _condition(choices, (*_WILD, *_PLAIN), joined)
    select = f"SELECT s, {aggregate} AS n" if grouped else f"SELECT {aggregate} AS n"
    tail = " GROUP BY s" + choices.of(("", "", " ORDER BY s")) if grouped else ""
    return Made(f"{select} FROM u{joined} WHERE {condition}{tail}", {"s": list(STATES)} if grouped else None, refined)


def plain(choices: SeededChoices) -> Made:
    """Return a question whose expressions mean the same in every engine and never fail."""
    joined = choices.of(("", "", " JOIN o USING (uid)"))
    number = _expression(choices, _PLAIN, 1, joined, columns=("x", "g"))
    aggregate = choices.of(("COUNT(*)", "COUNT(*)", f"SUM(LEAST(GREATEST({number}, 0), 100))"))
    text = f"SELECT {aggregate} AS n FROM u{joined} WHERE {_condition(choices, _PLAIN, joined)}"
    return Made(text, None, refined=False)


def _floored(make_session: Callable[[Town], Session], here: Town, made: Made) -> tuple[Finding, ...]:
    """Judge a plain question by its price, on every single neighbour and on chains of the people who count most."""

    def truth(place: Town) -> float:
        """Return the exact answer."""
        return float(place.raw(made.text)[0][0] or 0)

    kept = dict(here.raw(f"SELECT u.uid, {made.text[len('SELECT ') :]} GROUP BY u.uid"))
    ranked = sorted(range(PEOPLE), key=lambda person: -abs(kept.get(person) or 0))
    smaller = [(k, here.without(*ranked[:k])) for k in (1, 2, 3, 5, 8, 13, 21, 34)]
    moved = abs(kept.get(ranked[0]) or 0)
    if not moved:
        return ()

    bounds = Bounds(max_groups=1, max_rows=MANY if "JOIN" in made.text else 1)  # these cut nothing

    def ask(session: Session) -> Any:
        """Ask with an interval that the first person on the list moves the truth out of."""
        return made.ask(session, absolute=0.49 * moved, bounds=bounds, cap="all")

    return price_floor(make_session, here, smaller, ask, truth, question=made.text)


def _expression(
    choices: SeededChoices, forms: tuple[str, ...], depth: int, joined: str, columns: tuple[str, ...] = _NUMBERS
) -> str:
    """Return a number of nested forms; with a join every column names its table."""
    inner = (
        _expression(choices, forms, depth - 1, joined, columns)
        if depth > 1 and choices.below(2)
        else _named(choices.of(columns), joined)
    )
    constant = choices.of((0, 1, 2, HEAVY, 50, choices.below(PEOPLE)))
    text: str = choices.of(forms).format(n=f"({inner})" if " " in inner else inner, k=constant)
    return text.replace("(s AS", "(u.s AS").replace("(s,", "(u.s,") if joined else text


def _named(column: str, joined: str) -> str:
    """Return a column by its name; with its table where there is a join."""
    return column if "." in column or not joined else f"u.{column}"


def _condition(choices: SeededChoices, forms: tuple[str, ...], joined: str) -> str:
    """Return a condition of one or two comparisons."""
    columns = ("x", "g") if forms is _PLAIN else _NUMBERS
    one, two = (
        f"{_expression(choices, forms, DEEP, joined, columns)} {choices.of(COMPARED)} {choices.below(100)}"
        for _ in range(2)
    )
    where = choices.of((one, f"{one} OR {two}", f"NOT ({one}) AND {two}", f"u.s = '{choices.of(STATES)}' OR {one}"))
    return str(where)
