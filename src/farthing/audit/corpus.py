"""Questions that other systems were broken with, each with what must come of it here.

Shapes that stretch what one person can change, predicates that fail on one row, odd values in one row, ways out of the
sandbox, and keys that only data could know. `refused` questions name a rule and charge nothing; `bounded` ones are
answered, at a price that their bounded truth is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from farthing.audit.findings import Finding
from farthing.audit.oracles import NOISY, AuditQuestion, all_neighbours, compared, price_floor
from farthing.audit.tables import HEAVY, ONCE, STATES, Town, town

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from farthing.query import Bounds
    from farthing.session import Session

Expected: TypeAlias = Literal["refused", "bounded"]

REFUSALS: Final = frozenset({"UnsupportedQuery", "InvalidKeys", "InvalidBounds", "InvalidTarget"})


@dataclass(frozen=True, slots=True)
class CorpusCase:
    """One question of the corpus.

    Attributes:
        name: the weakness it tries.
        text: the SQL, over `u`, `o` and `cat`.
        expected: "refused" or "bounded".
        truth: for bounded ones, SQL for the bounded answer, whose price is judged; "" where only equality is.
        keys: the public groups.
        absolute: the error that is asked for: for priced ones a little less than half of what one person moves.
        noisy: whether its price is decided by what it sees, as that of a quotient is.
        bounds: those of the question, or None for the session's.
        moves: by how much one person moves the raw answer, as a count of what a careless engine would tell; 0 unknown.
    """

    name: str
    text: str
    expected: Expected = "refused"
    truth: str = ""
    keys: Any = None
    absolute: float = 1
    noisy: bool = False
    bounds: Bounds | None = None
    moves: int = 0

    def ask(self, session: Session) -> Any:
        """Ask a session, values clamped into [0, 100]."""
        options: dict[str, Any] = {"keys": self.keys, "bounds": self.bounds, "absolute": self.absolute}
        options["on_miss"] = "spend"  # whatever is out of reach is to be answered as well
        return session.sql(self.text, lower=0, upper=100, cap="all", **options)


Case = CorpusCase
"""The name by which users know it."""


def _guess(bad: str, good: str) -> str:
    """Return an expression that takes a bad branch only for the right guess about the heavy person."""
    return f"CASE WHEN uid = {HEAVY} AND x >= 0 THEN {bad} ELSE {good} END"


def _counted(condition: str) -> str:
    """Return a count of people under a condition."""
    return f"SELECT COUNT(*) AS n FROM u WHERE {condition}"


_JOINED: Final = "SELECT COUNT(*) AS n FROM u JOIN o"
_PER_PERSON: Final = "SELECT SUM(LEAST(n, 3)) FROM (SELECT COUNT(*) AS n FROM u JOIN o USING (uid) GROUP BY uid)"

SHAPES: Final = (
    Case("plain count", _counted("s = 'A'"), "bounded", _counted("s = 'A'"), absolute=0.49, bounds=ONCE, moves=1),
    Case(
        "join fan-out",
        "SELECT COUNT(*) AS n FROM u JOIN o USING (uid)",
        "bounded",
        _PER_PERSON,
        absolute=1.47,
        moves=304,
    ),
    Case(
        "weight on one person",
        f"SELECT SUM(CASE WHEN uid = {HEAVY} THEN 1000000 ELSE 0 END) AS n FROM u",
        "bounded",
        f"SELECT SUM(CASE WHEN uid = {HEAVY} THEN 100 ELSE 0 END) FROM u",
        absolute=49,
        bounds=ONCE,
        moves=1_000_000,
    ),
    Case("row-number parity", _counted("ROW_NUMBER() OVER (ORDER BY uid) % 2 = 0"), moves=25),
    Case("EXISTS broadcast", _counted("EXISTS (SELECT 1 FROM u v WHERE v.uid = 7 AND v.s = 'C')"), moves=50),
    Case("scalar subquery broadcast", _counted("(SELECT s FROM u v WHERE v.uid = 7) = 'C'"), moves=50),
    Case("IN subquery", _counted("g IN (SELECT g FROM u v WHERE v.uid = 7)"), moves=50),
    Case("self join", f"{_JOINED} USING (uid) JOIN o b USING (uid)", moves=92_416),
    Case("join on another person's key", f"{_JOINED} ON u.uid = o.friend", moves=308),
    Case(
        "group threshold",
        "SELECT SUM(n) FROM (SELECT amt, COUNT(*) n FROM o GROUP BY amt HAVING COUNT(*) > 50)",
        moves=322,
    ),
    Case("cross join", "SELECT COUNT(*) AS n FROM u, cat", moves=10),
    Case("UNNEST", "SELECT COUNT(*) AS n FROM (SELECT uid, UNNEST(RANGE(100)) FROM u)", moves=100),
    Case(
        "UNION ALL",
        "SELECT COUNT(*) AS n FROM (SELECT uid FROM u UNION ALL SELECT uid FROM u)",
        "bounded",
        "SELECT 2 * COUNT(*) FROM u",
        absolute=1.47,
        moves=2,
    ),
    Case("CUBE", "SELECT SUM(n) FROM (SELECT COUNT(*) n FROM u GROUP BY CUBE (s, g))", moves=4),
    Case("window sum", "SELECT SUM(w) FROM (SELECT SUM(x) OVER () w FROM u)", moves=3_725),
    Case("string amplification", "SELECT SUM(LENGTH(REPEAT('x', uid * 1000))) AS n FROM u", moves=50_000),
    Case("seeded sample", "SELECT COUNT(*) AS n FROM u USING SAMPLE reservoir(25 ROWS) REPEATABLE (42)", moves=5),
    Case("asof join", "SELECT COUNT(*) AS n FROM u ASOF JOIN o ON u.uid >= o.uid", moves=2),
    Case("small average", "SELECT AVG(x) AS n FROM u WHERE uid IN (7, 8)", "bounded", noisy=True, moves=18),
    Case("quotient", "SELECT SUM(x) / COUNT(*) AS n FROM u WHERE uid IN (7, 8)", "bounded", noisy=True, moves=18),
    Case("average threshold", _counted("x >= (SELECT AVG(x) FROM u)"), moves=48),
    Case("forged unit", "SELECT COUNT(DISTINCT uid % 5) AS n FROM u", "bounded", moves=5),
    Case("distinct values", "SELECT COUNT(DISTINCT amt) AS n FROM u JOIN o USING (uid)", "bounded", moves=40),
    Case("shadowed private table", "WITH cat AS (SELECT * FROM u) SELECT COUNT(*) AS n FROM cat", moves=1),
)
"""Shapes, with how far one person moves the raw answer."""

ERRORS: Final = (
    Case("integer division by zero", _counted(f"1 // ({_guess('0', '1')}) >= 0"), "bounded"),
    Case("rest of a division by zero", _counted(f"1 % ({_guess('0', '1')}) >= 0"), "bounded"),
    Case("division by zero without a literal", _counted("100 // (ABS(uid - 7) + x - x) >= 0"), "bounded"),
    Case("real division by zero", _counted(f"1 / ({_guess('0', '1')}) > 0"), "bounded"),
    Case(
        "failing cast",
        _counted(f"CAST({_guess(chr(39) + 'x' + chr(39), chr(39) + '1' + chr(39))} AS INTEGER) = 1"),
        "bounded",
    ),
    Case("integer overflow", _counted(f"({_guess('9223372036854775807', '0')}) + uid > 0"), "bounded"),
    Case("overflow in a sum", f"SELECT SUM(({_guess('9223372036854775807', '0')}) + uid) AS n FROM u", "bounded"),
    Case(
        "overflowing cast",
        f"SELECT SUM(CAST({_guess(chr(39) + '9' * 30 + chr(39), chr(39) + '1' + chr(39))} AS INTEGER)) AS n FROM u",
        "bounded",
    ),
    Case(
        "no such day",
        _counted(
            f"CAST({_guess(chr(39) + '2023-02-30' + chr(39), chr(39) + '2023-01-01' + chr(39))} AS DATE) > '2000-01-01'"
        ),
        "bounded",
    ),
    Case("overflow in a product", _counted(f"({_guess('9223372036854775807', '0')}) * 3 > 0"), "bounded"),
    Case("root of a negative number", _counted(f"SQRT({_guess('-1', '1')}) >= 0"), "bounded"),
    Case("logarithm of zero", _counted(f"LN({_guess('0', '1')}) >= 0"), "bounded"),
    Case("overflowing exponential", f"SELECT SUM(EXP({_guess('1000', '1')})) AS n FROM u", "bounded"),
    Case("infinite quotient", f"SELECT SUM(1 / ({_guess('0', '1')})) AS n FROM u", "bounded"),
    Case("date out of range", _counted("MAKE_DATE(2024, x, 1) IS NOT NULL")),
    Case("error on demand", _counted(f"({_guess('error(s)', 's')}) = 'a'")),
    Case("bad pattern", _counted(f"REGEXP_MATCHES(s, {_guess(chr(39) + '(' + chr(39), chr(39) + 'a' + chr(39))})")),
    Case("factorial", _counted("FACTORIAL(x) > 0")),
    Case("shift too far", _counted("(1 << x) > 0")),
    Case("slow branch", _counted("LEN(RANGE(x * 100000)) >= 0")),
)
"""Predicates that fail, overflow or stall for a right guess about one person."""

ESCAPES: Final = tuple(
    Case(name, text)
    for name, text in (
        ("file as a table", "SELECT COUNT(*) AS n FROM read_csv('people.csv')"),
        ("quoted file as a table", "SELECT COUNT(*) AS n FROM 'people.csv'"),
        ("glob", "SELECT COUNT(*) AS n FROM glob('*')"),
        ("copy", "COPY u TO 'leak.csv'"),
        ("attach", "ATTACH 'other.db'"),
        ("second statement", "SELECT COUNT(*) AS n FROM u; SELECT COUNT(*) AS n FROM u"),
        ("query by text", "SELECT COUNT(*) AS n FROM query('SELECT * FROM u')"),
        ("table by text", "SELECT COUNT(*) AS n FROM query_table('u')"),
        ("macro", "CREATE MACRO count(a) AS 1"),
        ("temporary table", "CREATE TEMP TABLE t AS SELECT * FROM u"),
        ("update", "UPDATE u SET x = 1"),
        ("setting", "SET threads = 1"),
        ("variable", _counted("x > getvariable('v')")),
        ("pragma", "PRAGMA database_list"),
        ("replacement scan", "SELECT COUNT(*) AS n FROM secret_frame"),
        ("extension", "INSTALL httpfs"),
        ("settings", "SELECT COUNT(*) AS n FROM duckdb_settings()"),
        ("random", _counted("RANDOM() < 0.5")),
        ("clock", _counted("NOW() IS NOT NULL")),
        ("row identity", _counted("rowid < 5")),
    )
)
"""Ways out: files, settings, state, other tables, chance."""

_FACTS: Final = (
    ("rows", "SELECT * FROM u"),
    ("describe", "DESCRIBE u"),
    ("summarize", "SUMMARIZE u"),
    ("statistics", "SELECT stats(x) FROM u"),
    ("exact cardinality", "EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM u"),
    ("names of the largest", "SELECT ARG_MAX(s, x) AS n FROM u"),
    ("any value", "SELECT ANY_VALUE(s) AS n FROM u"),
    ("list", "SELECT LIST(s) AS n FROM u"),
    ("joined text", "SELECT STRING_AGG(s, ',') AS n FROM u"),
    ("mode", "SELECT MODE(s) AS n FROM u"),
    ("sketch", "SELECT APPROX_TOP_K(s, 2) AS n FROM u"),
    ("product", "SELECT PRODUCT(x) AS n FROM u"),
    ("bits", "SELECT BIT_XOR(x) AS n FROM u"),
    ("keys from data", "SELECT s, COUNT(*) AS n FROM u GROUP BY s"),
)

METADATA: Final = (
    *(Case(name, text) for name, text in _FACTS),
    Case("declared keys", "SELECT s, COUNT(*) AS n FROM u GROUP BY s", "bounded", keys={"s": [*STATES, "nobody"]}),
    Case(
        "threshold on the answer",
        "SELECT s, COUNT(*) AS n FROM u GROUP BY s HAVING COUNT(*) > -1000",
        "bounded",
        keys={"s": [*STATES, "nobody"]},
    ),
)
"""Aggregates and statements that hand out values or exact facts, and keys that only data could know."""

ODD: Final = {
    "x": (None, 0, -(2**62), 2**62, 2**63 - 1),
    "y": (None, nan, inf, -inf, -0.0, 5e-324, 1e308, -1e308),
}
"""What one person's row may hold."""

CORPUS: Final = (*SHAPES, *ERRORS, *ESCAPES, *METADATA)


def check_corpus(
    cases: Iterable[CorpusCase] = CORPUS, make_session: Callable[[Town], Session] | None = None
) -> tuple[Finding, ...]:
    """Judge questions of the corpus: outcome, equality on a neighbour, and where there is a truth the price.

    Args:
        cases: which; by default all.
        make_session: opens a session on a town; by default with bounds that cut.

    Returns:
        What was found; nothing where the promises hold.
    """
    opened = make_session or Town.session
    here = town()
    pair = opened(here), opened(here.without(HEAVY))
    found: list[Finding] = []
    for case in cases:
        before = pair[0].spent
        came, differing = compared(pair, AuditQuestion(case.text, case.ask, NOISY if case.noisy else frozenset()))
        found += differing
        free = pair[0].spent == before
        if differing or case.noisy:  # their books may differ from now on
            pair = opened(here), opened(here.without(HEAVY))
        if case.expected == "refused" and not (came.kind in REFUSALS and free):
            found.append(Finding("corpus", case.text, f"{case.name}: must be refused free of charge, was {came.kind}"))
        if case.expected == "bounded" and came.kind != "Answer":
            found.append(Finding("corpus", case.text, f"{case.name}: must be answered, was {came.kind}: {came.words}"))
        if case.truth and came.kind == "Answer":
            found += _priced(case, here, opened)
    return tuple(found)


def odd_values(make_session: Callable[[Town], Session] | None = None) -> tuple[Finding, ...]:
    """Judge sums, counts and predicates where one person's row holds NULL, NaN, an infinity or an extreme."""
    found: list[Finding] = []
    opened = make_session or Town.people
    for column, values in ODD.items():
        texts = (
            f"SELECT SUM({column}) AS n FROM u",
            f"SELECT COUNT({column}) AS n, COUNT(*) AS m FROM u WHERE {column} + 1 > 0 OR {column} IS NULL",
            f"SELECT SUM(1 / ({column} - 5)) AS n FROM u",
        )
        for value in values:
            odd = town().changed(HEAVY, **{column: value})
            asks = [AuditQuestion(f"{text} where one {column} is {value}", Case("", text).ask) for text in texts]
            found += all_neighbours(opened, odd, odd.without(HEAVY), asks)
    return tuple(found)


def _priced(case: CorpusCase, here: Town, opened: Callable[[Town], Session]) -> tuple[Finding, ...]:
    """Judge the price of a case by its bounded truth."""
    smaller = [(1, here.without(person)) for person in range(HEAVY + 1)]
    return price_floor(opened, here, smaller, case.ask, lambda place: _truth(place, case), question=case.text)


def _truth(place: Town, case: CorpusCase) -> float:
    """Return the bounded answer by plain SQL."""
    return float(place.raw(case.truth)[0][0] or 0)
