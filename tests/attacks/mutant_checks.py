"""The checks that mutants are put to: oracles and lanes of the audit by name, and the doors of the engine.

    python tests/attacks/mutant_checks.py books accounts

runs checks in turn on the farthing that is imported, prints one JSON object a check, and stops at the first that fails.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Barrier
from traceback import extract_tb
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

import farthing
from farthing import audit
from farthing.audit import corpus, itself

sys.path.append(str(Path(__file__).parent))  # it is run as a script, and imported by tests
import formula_checks
import limit_checks
import outer_checks
import promise_checks
import quantile_checks
import ranking_checks
import release_checks
import share_checks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TRIALS = 20_000
CONFIDENCE = 1 - 1e-10

ATTACKS = (
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/leak.csv'",
    "EXPORT DATABASE '{folder}/leak'",
    "ATTACH '{folder}/other.db'",
    "ATTACH '{folder}/other.db' AS other (READ_ONLY)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM read_csv('https://127.0.0.1/x.csv')",
    "CREATE PERSISTENT SECRET s (TYPE http)",
    "SET threads = 1",
    "SET GLOBAL memory_limit = '1GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "RESET allowed_paths",
    "COPY (SELECT 1 AS x) TO '{rows}'",
    "SELECT * FROM secret_frame",
)
"""What a locked engine must refuse, past our SQL door."""


def lane(name: str) -> tuple[str, ...]:
    """Run one lane of the audit."""
    (one,) = (each for each in audit.lanes() if each.name == name)
    seen = itself.judged(one, TRIALS, CONFIDENCE)
    return (f"{name}: {seen.parameter} {seen.claimed:.4g} claimed, at least {seen.found:.4g} lost",) * seen.broken


def several_ranks() -> tuple[str, ...]:
    """Measure nine ranks at once beside a unit with rows in one bin, and in two; return what told them apart too well.

    The test is the best one for noise as it is booked: along C^-1 d, at the middle between both.
    """
    from scipy.stats import beta, norm

    from farthing.mechanisms.joint_ranks import JointRanks, directions, rank_strategy

    reach, grains, count, told = 4, 1 << 58, 4000, []
    steps, order = tuple((k << 20) // 10 for k in range(1, 10)), tuple(range(9))
    strategy, measuring = rank_strategy(steps, order, (1.0,) * 9), JointRanks(reach)
    base, mu = np.full(10, 50), np.sqrt(grains * 2.0**-56)
    for bins in ([0], [4], [9], [4, 5]):
        beside = base.copy()
        beside[bins] += reach // len(bins)
        moved = directions(steps, order) @ (beside - base) / 2.0**20
        along = np.array(strategy.mixed).T @ (np.array(strategy.mixed) @ moved)
        paid = np.full(count, grains)
        tables = [np.repeat(rows[:, None], count, axis=1) for rows in (base, beside)]
        each = [measuring.measure(strategy, table, paid) @ along for table in tables]
        middle = (np.mean(each[0]) + np.mean(each[1])) / 2
        hits = [int((one > middle).sum()) for one in each]
        false = (1 - CONFIDENCE) / 8
        most, least = beta.isf(false, hits[0] + 1, count - hits[0]), beta.ppf(false, hits[1], count - hits[1] + 1)
        lost = norm.ppf(least) - norm.ppf(most)
        if lost > mu:
            told.append(f"rows in bins {bins}: mu {mu:.3g} booked, at least {lost:.3g} lost")
    return tuple(told)


def keys() -> tuple[str, ...]:
    """Ask for the keys of lone units, in the one group that they may have and in one of four."""
    rows = (itself.lone_keys(TRIALS, CONFIDENCE), itself.lone_keys(TRIALS, CONFIDENCE, max_groups=4, found_above=4))
    return tuple(f"delta {seen.claimed:.4g} claimed, at least {seen.found:.4g} lost" for seen in rows if seen.broken)


def settled() -> tuple[str, ...]:
    """Choose of two groups that are all but tied; return whether leads settle the wrong one too often."""
    from scipy.stats import binom

    from farthing.mechanisms import PermuteAndFlip
    from farthing.mechanisms.leads import choose_with_leads

    count = 2500
    led = [choose_with_leads(PermuteAndFlip(1), [0.0, 1e-3], monotone=True) for _ in range(count)]
    wrong = sum(bool(each.settled[0]) and each.places[0] == 0 for each in led)
    return (f"{wrong} of {count} settled wrongly",) * bool(wrong > binom.isf(1 - CONFIDENCE, count, 0.05))


def gaps() -> tuple[str, ...]:
    """Let scores at the threshold pass; return whether gaps prove too much, or their noise is too small."""
    from scipy.stats import binom

    from farthing.mechanisms import AboveThreshold

    watch, count = AboveThreshold(0, 1), 1500
    runs = [watch.first_with_gap([0] * 100) for _ in range(count)]
    told = [each for each in runs if each is not None]
    proved = sum(each.at_least(0.9) > 0 for each in told)
    wide = sum(each.gap > 2.26 for each in told)  # log 2 over the rate of a score: half of epsilon's larger part
    rules = {
        f"{proved} of {len(told)} proved wrongly": proved > binom.isf(1 - CONFIDENCE, len(told), 0.1),
        f"{wide} of {len(told)} gaps above their median": wide < binom.ppf(1 - CONFIDENCE, len(told), 0.5),
    }
    return tuple(text for text, broken in rules.items() if broken)


def joint_choice() -> tuple[str, ...]:
    """Choose one of two options by a joint choice; return whether the better one comes too often for its price."""
    from scipy.stats import binom

    from farthing.mechanisms import JointTopK

    count, best = 1000, 1 / (1 + np.exp(-2))  # the losses are 4 apart, and may move by 4
    seen = sum(JointTopK(1, 2).choose([0, 1], monotone=True)[0] for _ in range(count))
    return (f"the better one {seen} times of {count}",) * bool(seen > binom.isf(1 - CONFIDENCE, count, best))


def best_of_many() -> tuple[str, ...]:
    """Make runs that raise every other time; return what was told of them beside the best, or paid too little."""
    calls: list[int] = []

    def run() -> tuple[int, int]:
        calls.append(1)
        if len(calls) % 2:
            raise ValueError
        return 1, 1

    with farthing.Session(pa.table({"x": [1]}), budget=farthing.Budget(epsilon=1)) as session:
        try:
            paid = session.best_of(run, loss=farthing.Pure(0.01), runs=90).paid
        except ValueError:
            return ("what a run raised",)
    rules = {"how many runs were made": len(calls) != 90, "less than two runs paid": paid < farthing.Pure(0.02)}
    return tuple(text for text, broken in rules.items() if broken)


def oracle(check: Callable[[], tuple[audit.Finding, ...]]) -> tuple[str, ...]:
    """Run one oracle of the audit."""
    return tuple(map(str, check()))


def lockdown() -> tuple[str, ...]:
    """Try every door of the engine of a session on a file and of one on a table; return what opened."""
    with tempfile.TemporaryDirectory() as folder:
        rows, file = Path(folder) / "rows.csv", Path(folder) / "secret.csv"
        rows.write_text("x\n1\n2\n")
        file.write_text("x\n1\n2\n")
        opened = []
        for table in (farthing.Csv(str(rows)), pa.table({"x": [1, 2]})):
            with farthing.Session(table, budget=farthing.Budget(mu=1)) as session:
                connection = session._engine._connection
                opened += [
                    text for text in ATTACKS if opens(connection, text.format(folder=folder, file=file, rows=rows))
                ]
        left = sorted(path.name for path in Path(folder).iterdir() if path not in {rows, file})
    return (*opened, *(f"wrote {name}" for name in left))


def opens(connection: object, text: str) -> bool:
    """Tell whether a statement runs on a cursor of a connection, with a table of the process in sight."""
    import duckdb

    secret_frame = pa.table({"x": [1]})
    cursor = connection.cursor()
    try:
        cursor.execute(text).fetchall()
    except duckdb.Error:
        return False
    finally:
        cursor.close()
    return secret_frame is not None


def twice() -> tuple[str, ...]:
    """Ask a count in two threads that start together: one of them is charged."""
    session = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    start = Barrier(2)

    def ask(_: int) -> float:
        """Ask, and return what it cost."""
        start.wait()
        return float(session.count(absolute=50).paid.amount)

    with ThreadPoolExecutor(2) as threads:
        found = sum(paid > 0 for paid in threads.map(ask, range(2)))
        charged = [entry for entry in session.history() if entry.charged]
    return ("both of two askers at once were charged",) * (found != 1 or len(charged) != 1)


def left_open() -> tuple[str, ...]:
    """Interrupt an ask in the middle: nothing stays open."""
    session = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))

    def interrupted(_: object) -> None:
        """Press Ctrl-C."""
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        session.count(absolute=50, progress=interrupted)
    return ("an ask that was interrupted is still open",) * bool(session.status()["open"])


def drained() -> tuple[str, ...]:
    """Ask again and again what fails: the third is charged nothing."""
    session = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    for _ in range(4):
        with suppress(ZeroDivisionError, farthing.DataError):
            session.count(absolute=50, progress=lambda _: 1 // 0)
    return ("failing asks were charged without end",) * (len(session.history()) != 2)


def hopeless() -> tuple[str, ...]:
    """Ask for what no group can meet under the cap: nothing is charged."""
    session = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    with suppress(farthing.BudgetExceeded):
        session.count(absolute=1)
    return ("a target out of reach was paid for",) * bool(session.spent)


def caps() -> tuple[str, ...]:
    """Ask more sharply than a cap allows from what stands, and with what rounding left of a budget."""
    zones = {"by": "zone", "keys": {"zone": ["a", "b", "none"]}}
    table = pa.table({"zone": ["a"] * 9000 + ["b"] * 900, "unit": [place // 2 for place in range(9900)]})
    bounds = farthing.Bounds(max_groups=2, max_rows=2)
    session = farthing.Session(table, unit="unit", bounds=bounds, budget=farthing.Budget(mu=1))
    session.count(**zones, relative=0.3, absolute=20, cap="all")
    spent, told = session.spent, []
    with suppress(farthing.InvalidTarget):
        session.count(**zones, relative=0.05, absolute=20, cap=farthing.Gdp(0.02))
    if session.spent.farthings - spent.farthings > farthing.Gdp(0.02).farthings:
        told.append("a sharper count was charged more than its cap")
    session = farthing.Session(table, budget=farthing.Budget(mu=0.001))
    session.count(absolute=10, cap="all", on_miss="spend")
    with suppress(farthing.BudgetExceeded):
        if session.count(relative=0.1, cap="all", where="unit > 9").paid:
            told.append("what rounding left was paid for nothing")
    return tuple(told)


def known() -> tuple[str, ...]:
    """Ask for groups that are known, in a process that has the books alone."""
    table = pa.table({"zone": ["a", "b", "c", "d"] * 5000})

    def listed(zones: list[str]) -> dict[str, object]:
        return {"by": "zone", "keys": {"zone": zones}}

    with tempfile.TemporaryDirectory() as folder:
        books = {"ledger": Path(folder) / "a.ledger", "name": "t"}
        with farthing.Session(table, budget=farthing.Budget(mu=4), **books) as session:
            session.count(absolute=200, **listed(["a", "b", "c"]))
        with farthing.Session(table, budget=farthing.Budget(mu=4), **books) as session:
            paid = [
                zones
                for zones in (["a"], ["b"], ["a", "b"], ["c"])
                if session.count(absolute=200, **listed(zones)).paid
            ]
            many = session.count(absolute=200, **listed(["a", "d"])).paid
    return tuple(f"known groups were paid for: {zones}" for zones in paid) + ("an unknown group was free",) * (not many)


def numbers() -> tuple[str, ...]:
    """Ask for sums whose truth is known, in ranges of all sizes: told within six half-widths."""
    found = []
    for power in (-40, 0, 12, 40):
        most = 10.0**power
        with farthing.Session(pa.table({"x": [most / 2] * 20_000}), budget=farthing.Budget(mu=4)) as session:
            answer = session.sum("x", lower=0, upper=most, relative=0.05)
        if not abs(answer.value - most * 10_000) < 3 * most * 1_000:
            found.append(f"a sum of {most * 10_000:g} is told as {answer.value:g}")
    return tuple(found)


def repeated() -> tuple[str, ...]:
    """Add up many equal values: a group's total is within a step of them, however many they are."""
    from farthing.engines import open_table
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Bounds, Query
    from farthing.query.aggregates import NamedAggregate, Sum
    from farthing.query.expressions import Column

    query = Query("data", (), None, None, (NamedAggregate("s", Sum(Column("x"), 0, 100)),), PrivacyUnit(), Bounds())
    engine = open_table(pa.table({"x": [19.95] * 200_000}), name="data")
    off = float(engine.measure(query, 1)[0, 0]) * query.measures[0].step - 19.95 * 200_000
    return (f"off by {off:g}",) if abs(off) > query.measures[0].step else ()


def faults() -> tuple[str, ...]:
    """Do to data and ledgers what a session has to notice; return what it did not."""
    tries = (another_file, file_in_between, versions_apart, changed_totals, changed_measurement, older_copy, no_commit)
    passed = []
    for each in tries:
        with tempfile.TemporaryDirectory() as folder:
            passed += [each.__name__] * each(Path(folder))
    return tuple(passed)


BUDGET = farthing.Budget(mu=4)


def asked(folder: Path, part: str = "a", **how: object) -> farthing.Session:
    """Return a session on a file, one question asked of one part."""
    path = folder / "rides.parquet"
    if part:
        pq.write_table(pa.table({"part": ["a", "b", part]}), path)
    session = farthing.Session(path, budget=BUDGET, ledger=folder / "a.ledger", **how)
    session.partition(by="part", keys=["a", "b"])[part or "a"].count(absolute=30)
    return session


def refused(work: Callable[[], object]) -> bool:
    """Tell whether work is refused."""
    try:
        work()
    except farthing.FarthingError:
        return True
    return False


def another_file(folder: Path) -> bool:
    """Open another file under the same version."""
    asked(folder).close()
    return not refused(lambda: asked(folder, "b"))


def file_in_between(folder: Path) -> bool:
    """Change the file of an open session."""
    with asked(folder) as session:
        pq.write_table(pa.table({"part": ["a", "b", "b"]}), folder / "rides.parquet")
        return not refused(lambda: session.count(absolute=30))


def versions_apart(folder: Path) -> bool:
    """Ask another part of another version, from memory: charges add up."""
    spent = []
    for version, part in (("1", "a"), ("2", "b")):
        table = pa.table({"part": ["a", "b", part]})
        with farthing.Session(table, budget=BUDGET, ledger=folder / "a.ledger", version=version) as session:
            session.partition(by="part", keys=["a", "b"])[part].count(absolute=30)
            spent.append(session.spent.farthings)
    return spent[1] < 2 * spent[0]


def changed(folder: Path, statement: str, *values: object) -> None:
    """Change a ledger by hand."""
    with sqlite3.connect(folder / "a.ledger") as hand:
        hand.execute(statement, values)
    hand.close()


def changed_totals(folder: Path) -> bool:
    """Change the running total while the ledger is open."""
    with asked(folder) as session:
        changed(folder, "UPDATE totals SET spent = 0")
        return not refused(lambda: session.spent)


def changed_measurement(folder: Path) -> bool:
    """Change one bit of a stored measurement."""
    with asked(folder) as session:
        ((blob,),) = sqlite3.connect(folder / "a.ledger").execute("SELECT blob FROM measurements").fetchall()
        changed(folder, "UPDATE measurements SET blob = ?", bytes([*blob[:-1], blob[-1] ^ 1]))
        question = session.history()[0].question
        return not refused(lambda: session._ledger.load(question))


def older_copy(folder: Path) -> bool:
    """Put an older copy back."""
    asked(folder).close()
    older = (folder / "a.ledger").read_bytes()
    asked(folder, "", version="2").close()
    (folder / "a.ledger").write_bytes(older)
    return not refused(lambda: asked(folder, "", version="3"))


def no_commit(folder: Path) -> bool:
    """Let a commit fail, and open the honest ledger again."""
    asked(folder).close()
    wrote = []

    def denies(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("UPDATE totals"):
            wrote.append(statement)
        if wrote and statement == "COMMIT":
            raise MemoryError

    sa.event.listen(sa.Engine, "before_cursor_execute", denies)
    try:
        passed = not refused(lambda: asked(folder, "", version="2"))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", denies)
    return passed or refused(lambda: asked(folder, "", version="2"))


def door() -> tuple[str, ...]:
    """Ask for rows with a receipt that cost nothing."""
    from farthing.errors import LedgerError
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Query, counting

    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), farthing.Bounds())
    with farthing.Session(pa.table({"x": [1, 2]}), budget=farthing.Budget(mu=1)) as session:
        free = session._ledger.reserve(increase=0, fresh=0, question="q", version=0, label="q")
        try:
            session._context.engine.measure(query, free)
        except LedgerError:
            return ()
    return ("rows were read free of charge",)


SIZES = (73_913, 4_021, 917)


def shown(frame: FrameType | None) -> bool:
    """Tell whether a local variable of a frame, or of those above, is the exact sizes, or shows them."""
    while frame is not None:
        for value in list(frame.f_locals.values()):
            exact = getattr(getattr(value, "mechanism", value), "truth", value)
            if isinstance(exact, np.ndarray) and exact.ravel().tolist() == list(SIZES):
                return True
        frame = frame.f_back
    return False


def frames() -> tuple[str, ...]:
    """Walk the frames above a callback, and those of an error in the middle of a measurement, for exact numbers."""
    from unittest import mock

    from farthing.mechanisms.gaussian import GaussianMeasurements

    table, found = pa.table({"g": np.repeat(list("abc"), SIZES)}), list[bool]()
    how = {"by": "g", "keys": {"g": list("abc")}, "absolute": 50}
    with farthing.Session(table, budget=farthing.Budget(mu=1)) as session:
        session.count(**how, progress=lambda _: found.append(shown(sys._getframe())))
    with (
        farthing.Session(table, budget=farthing.Budget(mu=1)) as session,
        mock.patch.object(GaussianMeasurements, "unit_for", None),  # fails once the numbers are there
    ):
        try:
            session.count(**how)
        except TypeError as error:
            measured = any(frame.name == "refine" for frame in extract_tb(error.__traceback__))
    return ("exact numbers above a callback",) * any(found) + ("the measurement's frames behind an error",) * measured


REALS = (((-26.63, 7.29), -9.67), ((0.0, 120.0), 57.5))
"""Clamps, and a value between them."""


def edges() -> tuple[str, ...]:
    """Hold numbers to their last digit: leaves of a quantile, whole scores, the promise of a relative error."""
    import numpy as np

    from farthing.engines.contributions import leaf
    from farthing.mechanisms.relative import LinearLog
    from farthing.mechanisms.stopping import score_told
    from farthing.planning.quantile_sought import goal_of
    from farthing.query.aggregates import Quantile
    from farthing.query.expressions import Column
    from farthing.query.schema import Type

    def ends(kind: Type, lower: float, upper: float, value: float) -> tuple[float, float]:
        """Return the ends of the leaf that a value is in."""
        quantile = Quantile.of(Column("x"), kind, 0.5, lower, upper)
        place = np.array([leaf(quantile, value)])
        low, high = goal_of(quantile, 1, None).ends(place, place)
        return float(low[0]), float(high[0])

    held = [(bounds, value, ends(Type.FLOAT, *bounds, value)) for bounds, value in REALS]
    sizes = np.geomspace(1, 1e6, 2_000)
    share = LinearLog.for_relative_error(0.6, x0=1, metric="mae").expected_error(sizes, "mae") / (0.6 * sizes)
    found = {
        "a value outside of its leaf": any(not low <= value <= high for _, value, (low, high) in held),
        "a whole number that is told as another": {ends(Type.INTEGER, -3.0, 96.0, n) == (n, n) for n in range(-3, 97)}
        != {True},
        "a score that lost a unit": score_told(2**53 + 1) != 2**53 + 1,
        "an error above its promise": share.max() > 1,
    }
    return tuple(what for what, wrong in found.items() if wrong)


CHECKS: dict[str, Callable[[], tuple[str, ...]]] = {
    "forks": partial(oracle, audit.fork_safe),
    "grid": partial(oracle, audit.on_grid),
    "independent": partial(oracle, audit.uncorrelated),
    "books": partial(oracle, audit.books),
    "accounts": partial(oracle, audit.accounts),
    "bounded": partial(oracle, audit.bounded),
    "faults": faults,
    "failing": partial(oracle, audit.failing),
    "twice": twice,
    "left open": left_open,
    "drained": drained,
    "hopeless": hopeless,
    "caps": caps,
    "known": known,
    "corpus": partial(oracle, partial(audit.check_corpus, corpus.SHAPES)),
    "errors": partial(oracle, partial(audit.check_corpus, corpus.ERRORS)),
    "escapes": partial(oracle, partial(audit.check_corpus, corpus.ESCAPES)),
    "keys": keys,
    "best of many": best_of_many,
    "gaps": gaps,
    "joint choice": joint_choice,
    "settled": settled,
    "lockdown": lockdown,
    "numbers": numbers,
    "repeated": repeated,
    "door": door,
    "frames": frames,
    "edges": edges,
    "lines": outer_checks.lines,
    "outward": outer_checks.outward,
    "undeclared": outer_checks.undeclared,
    "spelled": outer_checks.spelled,
    "relations": outer_checks.relations,
    "honest": outer_checks.honest,
    "claims": outer_checks.claims,
    "odd rows": outer_checks.odd_rows,
    "tables": release_checks.tables,
    "products": release_checks.products,
    "models": release_checks.models,
    "formulas": formula_checks.formulas,
    "pure measures": formula_checks.pure_measures,
    "pure quantiles": quantile_checks.pure_quantiles,
    "pure quantiles together": quantile_checks.pure_together,
    "shares": share_checks.shares,
    "deciding": promise_checks.deciding,
    "kept": promise_checks.kept,
    "leads": promise_checks.leads,
    "lead of two": ranking_checks.lead_of_two,
    "lines of a ranking": ranking_checks.lines_of_a_ranking,
    "limits of any rule": limit_checks.any_rule,
    "ranking limit": ranking_checks.limit_of_a_ranking,
    "reduced": promise_checks.reduced,
    "refining": promise_checks.refining,
    "paused": promise_checks.paused,
    "reserved": promise_checks.reserved,
    "mean looks": promise_checks.mean_looks,
    "variance looks": promise_checks.variance_looks,
    "joint looks": promise_checks.joint_looks,
    "held": promise_checks.held,
    "work": promise_checks.bounded_work,
    "any target": promise_checks.any_target,
    "told near": promise_checks.told_near,
    "totals": promise_checks.stopped_totals,
    "searched": promise_checks.searched,
    "beside a step": promise_checks.beside_a_step,
    "searched together": promise_checks.searched_together,
    "several beside a step": promise_checks.several_beside_a_step,
    "sides at the edge": promise_checks.sides_at_the_edge,
    "out of reach": promise_checks.out_of_reach,
    "failures": promise_checks.failures,
    "converged": promise_checks.converged,
    "choices": promise_checks.choices,
    "count": partial(lane, "count, Gaussian noise"),
    "geometric": partial(lane, "count, geometric noise"),
    "asinh": partial(lane, 'count with mechanism="asinh"'),
    "chain": partial(lane, "count, a chain of four looks"),
    "mean": partial(lane, "mean"),
    "two at once": partial(lane, "count and sum at once"),
    "ranks": partial(lane, "quantile by noisy ranks"),
    "several ranks": several_ranks,
    "exponential": partial(lane, "quantile by the exponential mechanism"),
}


def say(facts: dict[str, object]) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main(names: list[str]) -> None:
    """Run checks in turn until one fails; an oracle that breaks off has failed as well."""
    say({"farthing": farthing.__file__})
    for name in names:
        begun = time.perf_counter()
        try:
            found = CHECKS[name]()
        except Exception as error:  # noqa: BLE001  # a bug may raise anything
            found = (f"{type(error).__name__}: {error}",)
        seconds = time.perf_counter() - begun
        say({"check": name, "found": [what[:300] for what in found[:3]], "seconds": seconds})
        if found:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
