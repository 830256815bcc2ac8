"""One rule of merging, whatever is asked: after a failure the next ask is paid and kept, and then it is free."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sources import parsed

import farthing.session
from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger
from farthing.session.choosing.ranking import _RankingJob
from farthing.session.choosing.ranking_record import standing_of
from farthing.session.core import transaction
from farthing.workloads import conditions, marginals, prefixes

pytestmark = pytest.mark.thorough

ROWS = 40_000
RNG = np.random.default_rng(11)
TABLE = pa.table({
    "unit": RNG.integers(0, 20_000, ROWS),
    "g": RNG.choice(4, ROWS, p=[0.5, 0.3, 0.15, 0.05]),
    "v": RNG.uniform(0, 100, ROWS),
})  # fmt: skip
BY = {"by": "g", "keys": {"g": [0, 1, 2, 3]}}
SEVERAL = "SELECT g, COUNT(*) AS n, AVG(CLAMP(v, 0, 100)) AS m, STDDEV(CLAMP(v, 0, 100)) AS s FROM data GROUP BY g"
CLAMPS = {"lower": 0, "upper": 100}
GAUSSIAN, PURE = Budget(epsilon=200, delta=1e-5, keys_delta=1e-6), Budget(epsilon=400)


def pair(method, *given, sharp, coarse, budget=GAUSSIAN, **options):
    """A coarse ask and a sharper one of the same question, or None in its place."""

    def with_(changes):
        return lambda session: getattr(session, method)(*given, **options, **changes)

    return budget, with_(coarse), None if sharp is None else with_(sharp)


def values(method, *given, by=BY, budget=GAUSSIAN, **sharper):
    """The same of values, where the coarse target is three times the sharp one."""
    coarse = {name: 3 * width for name, width in sharper.items()}
    return pair(method, "v", *given, **CLAMPS, **by, budget=budget, coarse=coarse, sharp=sharper)


SHARES = "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM data GROUP BY g"
RUNNING = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS n FROM data GROUP BY g"
KINDS = {
    "gaussian_count": [
        pair("count", **BY, coarse={"absolute": 200}, sharp={"absolute": 60}),
        pair("count", **BY, coarse={"relative": 0.2}, sharp={"relative": 0.1}),
        pair("count_distinct", **BY, coarse={"absolute": 200}, sharp={"absolute": 60}),
        values("sum", absolute=3_000),
    ],
    "laplace_count": [
        pair("count", **BY, budget=PURE, coarse={"absolute": 200}, sharp={"absolute": 60}),
        pair("count", **BY, absolute=50, budget=PURE, coarse={"relative": 0.2}, sharp={"relative": 0.1}),
        pair("sql", RUNNING, keys=BY["keys"], budget=PURE, coarse={"absolute": 300}, sharp={"absolute": 90}),
    ],
    "joint_measures": [
        values("mean", absolute=2),
        values("mean", by={}, relative=0.05),
        values("variance", by={}, absolute=30),
        values("variance", root=True, relative=0.1),
        pair("sql", SEVERAL, keys=BY["keys"], coarse={"relative": 0.2}, sharp={"relative": 0.1}),
    ],
    "laplace_measures": [
        values("mean", budget=PURE, absolute=2),
        pair("sql", SHARES, keys=BY["keys"], budget=PURE, coarse={"absolute": 0.1}, sharp={"absolute": 0.04}),
    ],
    "share_of_total": [
        pair("sql", SHARES, keys=BY["keys"], coarse={"absolute": 0.1}, sharp={"absolute": 0.04}),
        pair("sql", RUNNING, keys=BY["keys"], coarse={"absolute": 60}, sharp={"absolute": 20}),
    ],
    "quantile": [
        values("quantile", 0.5, rank=0.02),
        values("quantile", 0.5, by={}, absolute=3),
        values("quantile", 0.5, budget=PURE, rank=0.02),
        values("quantile", (0.25, 0.5, 0.75), rank=0.05),
        values("quantile", (0.25, 0.5, 0.75), budget=PURE, rank=0.05),
    ],
    "relative_count": [
        pair(
            "count", **BY, absolute=50, mechanism="linear-log", budget=Budget(rho=20),
            coarse={"relative": 0.2}, sharp={"relative": 0.1},
        ),
    ],
    "private_keys": [pair("count", by="g", keys="private", coarse={"absolute": 200}, sharp=None)],
    "top_k": [pair("top_k", "g", 2, keys=BY["keys"], coarse={"within": 2_000}, sharp=None)],
    "ranking": [
        pair("ranking", "g", 2, keys=BY["keys"], apart=300, coarse={"cap": Gdp(0.01)}, sharp={"cap": Gdp(2)}),
        pair(
            "ranking", "g", 2, keys=BY["keys"], apart=300, budget=PURE,
            coarse={"cap": Pure(0.004)}, sharp={"cap": Pure(2)},
        ),
    ],
    "contribution_report": [pair("bounds_report", coarse={"loss": Gdp(0.1)}, sharp={"loss": Gdp(0.3)})],
    "largest_counts": [
        pair(
            "workload", [{"where": "v > 50"}, {}], strategy="largest", relative=0.2,
            coarse={"cap": Gdp(2)}, sharp=None,
        ),
    ],
    "synthetic": [
        pair(
            "release", marginals(["g"], ways=1), keys=BY["keys"], mechanism="projection",
            coarse={"loss": Gdp(0.1)}, sharp=None,
        ),
    ],
    "release_booking": [
        pair("release", marginals(["g"], ways=1), keys=BY["keys"], coarse={"absolute": 80}, sharp={"absolute": 40}),
        pair("release", prefixes("v", [0, 30, 60, 101]), coarse={"absolute": 80}, sharp={"absolute": 40}),
        pair("release", conditions(["v > 50", "g = 1"]), coarse={"rms": 60}, sharp={"rms": 30}),
    ],
    "shared_loss": [
        pair(
            "workload", [{"where": "v > 50"}, {}], strategy="together", absolute=100,
            coarse={"cap": Gdp(2)}, sharp=None,
        ),
    ],
}  # fmt: skip
CASES = [pytest.param(case, id=f"{kind}-{n}") for kind, cases in KINDS.items() for n, case in enumerate(cases)]
SHARPER = [case for case in CASES if case.values[0][2] is not None]


def opened(budget, path=None):
    """A session of its own; given a path, on books that it shares."""
    return Session(TABLE, unit="unit", bounds=Bounds(max_groups=4, max_rows=8), budget=budget, ledger=path)


def trees():
    """Every module of the session, read as syntax."""
    for path in sorted(Path(farthing.session.__path__[0]).rglob("*.py")):
        yield path.stem, parsed(path)


@pytest.fixture
def engine(monkeypatch):
    """A switch: what it is set to is called each time that the engine is about to be asked."""
    hooks = []
    kind = type(opened(GAUSSIAN)._engine)

    def watched(honest):
        def asked(*arguments, **options):
            for hook in tuple(hooks):
                hook()
            return honest(*arguments, **options)

        return asked

    for name in ("measure", "histogram", "found", "spread", "crossed"):
        monkeypatch.setattr(kind, name, watched(getattr(kind, name)))
    return hooks


def broken():
    """What an engine that fails does."""
    raise ZeroDivisionError


def settles_down(session, ask_it):
    """The next identical ask is answered and kept; the one after it is the same free of charge."""
    answered, before = ask_it(session), session.spent
    again = ask_it(session)

    assert session.spent == before
    assert not getattr(again, "paid", 0)
    if hasattr(answered, "value"):
        assert np.array_equal(answered.value, again.value)
    session._ledger.verify()


@pytest.mark.parametrize("case", CASES)
def test_a_failed_first_ask(case, engine):
    """The first ask fails with its charge; each later target is paid once."""
    budget, coarse, sharp = case
    session = opened(budget)
    engine.append(broken)
    with pytest.raises(ZeroDivisionError):
        coarse(session)
    assert session.spent
    engine.clear()
    for ask_it in filter(None, (coarse, sharp)):
        settles_down(session, ask_it)


@pytest.mark.parametrize("case", SHARPER)
def test_a_failed_sharpening(case, engine):
    """What was released before the failure stays free as well."""
    budget, coarse, sharp = case
    session = opened(budget)
    coarse(session)
    engine.append(broken)
    with pytest.raises(ZeroDivisionError):
        sharp(session)
    engine.clear()
    settles_down(session, sharp)
    before = session.spent
    coarse(session)

    assert session.spent == before


def test_what_begins_again_leaves_a_better_ranking(engine, monkeypatch):
    """Under a pure budget, after a failure: what costs and settles less takes no other one's place; more does."""
    honest, kept = _RankingJob.merged, []

    def merged(*given):
        kept.append(standing_of(honest(*given)).paid.tolist())
        return honest(*given)

    monkeypatch.setattr(_RankingJob, "merged", merged)
    rows = pa.table({"g": np.repeat(np.arange(5), [5_000, 4_990, 100, 100, 100])})
    session = Session(rows, budget=Budget(epsilon=40))
    ask = {"by": "g", "keys": {"g": [*range(5)]}, "confidence": 1 - 1e-9}
    first = session.ranking(k=2, cap="all", **ask)
    engine.append(broken)
    with pytest.raises(ZeroDivisionError):
        session.ranking(k=4, cap=Pure(2), **ask)
    engine.clear()

    assert Pure(2) < first.paid
    assert session.ranking(k=4, cap=Pure(2), **ask).paid
    assert kept[0] == kept[1]
    assert not session.ranking(k=2, cap="all", **ask).paid
    assert session.ranking(k=4, cap="all", **ask).paid
    assert max(kept[0]) < max(kept[2])
    session._ledger.verify()


@pytest.mark.parametrize("case", SHARPER)
def test_a_reservation_of_the_dead(case, engine, monkeypatch):
    """A process that died with its reservation open charges it, and nobody twice."""
    budget, coarse, sharp = case
    session = opened(budget)
    coarse(session)
    engine.append(broken)
    monkeypatch.setattr(Process, "alive", lambda _: False)
    with monkeypatch.context() as dying:
        dying.setattr(Ledger, "fail", lambda *_, **__: None)
        with pytest.raises(ZeroDivisionError):
            sharp(session)
    engine.clear()
    assert session._ledger.open_reservations
    settles_down(session, sharp)


@pytest.mark.parametrize("case", CASES)
def test_two_at_once(case, engine, tmp_path, monkeypatch):
    """Two ask the same sharper question at the same time, on what both have read; then it is free for each."""
    budget, coarse, sharp = case
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    slow, quick = (opened(budget, tmp_path / "a.ledger") for _ in range(2))
    if sharp is not None:
        coarse(slow)
    asked = coarse if sharp is None else sharp

    def between():
        engine.clear()
        asked(quick)

    engine.append(between)
    asked(slow)
    settles_down(slow, asked)
    settles_down(quick, asked)


def test_every_kind_of_question_is_tried():
    """Whoever stores what it measured does so by the one rule, and stands in the table above."""
    uses = {
        stem
        for stem, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "farthing.session.core.merging"
    }
    assert uses == set(KINDS)


def test_nobody_else_decides_what_is_kept():
    """Every function that is given what stands in the ledger hands it to the rule, or to a method that does."""
    for stem, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.Lambda) or stem == "merging":
                continue
            if isinstance(node, ast.FunctionDef) and all(isinstance(line, ast.Expr) for line in node.body):
                continue  # a protocol says what others do
            named = isinstance(node, ast.FunctionDef) and node.name == "merged"
            if named and "return _EMPTY" in ast.unparse(node):
                continue  # nothing is kept, whatever stands there
            if named or "current" in {argument.arg for argument in node.args.args}:
                calls = {ast.unparse(call.func).split(".")[-1] for call in ast.walk(node) if isinstance(call, ast.Call)}
                assert calls & {"merge", "merged", "_joined"}, (stem, node.lineno)


def test_a_planted_rule_is_caught(engine, monkeypatch):
    """Whoever paid in full leaves what stands there alone: then a mean is paid for ever after one failure."""
    monkeypatch.setattr(
        "farthing.session.answering.joint_measures.merge",
        lambda current, ours, receipt, **_: ours if receipt.exclusive or current is None else current,
    )
    with pytest.raises(AssertionError):
        test_a_failed_first_ask(KINDS["joint_measures"][0], engine)
