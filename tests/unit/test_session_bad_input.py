"""Bad input: each is a clear error that names the rule and the next step, and nothing is charged."""

import json
import sqlite3
from inspect import signature

import numpy as np
import pyarrow as pa
import pytest
from rides import BUDGET, BY, KEYS, TABLE, opened

from farthing import (
    Bounds,
    Budget,
    Csv,
    DataError,
    FarthingError,
    Gdp,
    InvalidBounds,
    InvalidBudget,
    InvalidKeys,
    InvalidTarget,
    LedgerError,
    Session,
    UnsupportedQuery,
)
from farthing.query.expressions import Column, Compare, Literal, Operator

NAN, INF = float("nan"), float("inf")
GROUP_BY = "SELECT k, COUNT(*) FROM data GROUP BY k"


@pytest.fixture
def session():
    """A session on the rides, books in memory; a refused question must leave no trace in it."""
    with opened() as asked:
        yield asked
        assert not asked.spent
        assert [] == asked.history()


def refused(kind, ask):
    """Check that a question is refused with a message that has its rule or its next step."""
    with pytest.raises(kind) as error:
        ask()
    assert error.value.what
    assert error.value.rule or error.value.next_step
    return error.value


@pytest.mark.parametrize("how", [
    {},
    {"relative": 0.0}, {"absolute": 0}, {"relative": 0.0, "absolute": 0.0},
    {"relative": -0.1}, {"absolute": -1},
    {"relative": NAN}, {"absolute": NAN}, {"relative": INF}, {"absolute": INF},
    {"relative": 1}, {"relative": 5}, {"relative": 1.0, "absolute": 100},
    {"relative": "10%"}, {"absolute": "100"}, {"absolute": True}, {"absolute": [1]},
    {"absolute": 50, "confidence": 0}, {"absolute": 50, "confidence": 1}, {"absolute": 50, "confidence": 95},
    {"absolute": 50, "confidence": NAN}, {"absolute": 50, "confidence": "0.9"}, {"absolute": 50, "confidence": None},
    {"absolute": 50, "loss": Gdp(0.1)},
    {"loss": 0.1}, {"loss": Gdp(0)},
    {"absolute": 50, "cap": 0.1}, {"absolute": 50, "cap": "most"}, {"absolute": 50, "cap": Gdp(0)},
    {"absolute": 50, "cap": "all", "max_epsilon": 1},
    {"absolute": 50, "on_miss": "ignore"},
    {"absolute": 50, "progress": 3},
    *({"absolute": 50, name: "yes"} for name in ("simultaneous", "together", "nonnegative")),
    {"absolut": 50}, {"absolute": 50, "max_groups": 1},
], ids=repr)  # fmt: skip
def test_targets(session, how):
    """No target and no loss, impossible ones, ones of the wrong type, options that do not exist."""
    refused(InvalidTarget, lambda: session.count(**how))
    refused(InvalidTarget, lambda: session.count(**BY, **how))
    refused(InvalidTarget, lambda: session.plan(**how))


@pytest.mark.parametrize("most", [0, -1, NAN, INF, "1"])
def test_max_epsilon(session, most):
    """A limit in epsilon is a positive number."""
    refused(InvalidBudget, lambda: session.count(absolute=50, max_epsilon=most))


@pytest.mark.parametrize("how", [
    {"confidence": 1 - 1e-13},
    {"confidence": 1 - 1e-12, "simultaneous": True},
], ids=repr)  # fmt: skip
def test_confidence_too_close_to_one(how):
    """A chance of a miss that is not calibrated is refused."""
    refused(InvalidTarget, lambda: opened().count(**BY, absolute=50, **how))


@pytest.mark.parametrize("ask", [
    lambda s: s.count("dest", keys={"dest": ["a"]}, absolute=50),
    lambda s: s.count(where="dest = 'a'", absolute=50),
    lambda s: s.count(where="x <", absolute=50),
    lambda s: s.count(where="x", absolute=50),
    lambda s: s.sql("SELECT COUNT(*) FROM flights", absolute=50),
    lambda s: s.sql("SELECT COUNT(*) FROM data WHERE dest = 'a'", absolute=50),
    lambda s: s.sql("SELECT FIRST(x) FROM data", absolute=50),
    lambda s: s.sql("SELECT * FROM data", absolute=50),
    lambda s: s.sql("DROP TABLE data", absolute=50),
    lambda s: s.sql("", absolute=50),
    lambda s: s.plan("SELECT COUNT(*) FROM flights", absolute=50),
])  # fmt: skip
def test_questions(session, ask):
    """Unknown columns and tables, and everything outside the language, by name."""
    refused(UnsupportedQuery, lambda: ask(session))


def test_the_nearest_column_is_named(session):
    """A typing mistake is answered with the column that was meant."""
    assert "'k'" in refused(UnsupportedQuery, lambda: session.count("K", keys={"K": ["a"]}, absolute=50)).next_step


@pytest.mark.parametrize("ask", [
    lambda s: s.count(5, keys={"k": ["few"]}, absolute=50),
    lambda s: s.count([5], keys={"k": ["few"]}, absolute=50),
    lambda s: s.count(where=5, absolute=50),
    lambda s: s.count(name=[], absolute=50),
    lambda s: s.sql(5, absolute=50),
    lambda s: s.count(bounds="one", absolute=50),
])  # fmt: skip
def test_wrong_python_types(session, ask):
    """A number for a column, a predicate, a name, SQL or bounds is refused in our own words."""
    refused(FarthingError, lambda: ask(session))


WITH_BOUNDS = {
    "bounds_report": lambda s, **how: s.bounds_report(loss=Gdp(0.1), **how),
    "correlation": lambda s, **how: s.correlation("x", "x", absolute=0.1, **how),
    "covariance": lambda s, **how: s.covariance("x", "x", absolute=1, **how),
    "difference": lambda s, **how: s.difference("k", ("few", "many"), absolute=50, **how),
    "most_common": lambda s, **how: s.most_common("k", k=1, keys=KEYS, absolute=50, **how),
    "online": lambda s, **how: s.online(keys=KEYS, absolute=50, queries=3, rows=100, **how),
    "ranking": lambda s, **how: s.ranking("k", k=1, keys=KEYS, **how),
    "ratio": lambda s, **how: s.ratio("x", "x", relative=0.1, **how),
    "slope": lambda s, **how: s.slope("x", "x", absolute=1, **how),
    "sql": lambda s, **how: s.sql("SELECT SUM(x) FROM data", lower=0, upper=1, absolute=50, **how),
    "top_k": lambda s, **how: s.top_k("k", k=1, keys=KEYS, within=50, **how),
}  # fmt: skip
"""Every method with its own `bounds=`, with all else that it needs."""


@pytest.mark.parametrize(
    "bounds", [{"x": (0, 1)}, 3, "auto", (0, 1), Bounds.auto], ids=["mapping", "number", "text", "pair", "function"]
)
@pytest.mark.parametrize("method", WITH_BOUNDS)
def test_bounds_of_another_type(session, method, bounds):
    """What is no `Bounds` is refused as that by every method, with or without clamps beside it."""
    problem = refused(InvalidBounds, lambda: WITH_BOUNDS[method](session, bounds=bounds))

    assert "is not a farthing.Bounds" in problem.what
    assert "Bounds(" in problem.next_step


def test_every_method_with_bounds_is_asked():
    """The list above is whole."""
    methods = {name: getattr(Session, name) for name in dir(Session) if name[0] != "_"}
    assert {*WITH_BOUNDS} == {
        name for name, each in methods.items() if callable(each) and "bounds" in signature(each).parameters
    }


def test_an_option_of_the_bounds_is_named_as_such(session):
    """`max_groups=` beside the target belongs into `bounds=`; a typing mistake names the option that was meant."""
    assert (
        "bounds=Bounds(max_groups=)"
        in refused(InvalidTarget, lambda: session.count(absolute=50, max_groups=1)).next_step
    )
    assert "absolute=" in refused(InvalidTarget, lambda: session.count(absolut=50)).next_step


@pytest.mark.parametrize("where", [
    Compare(Column("nope"), Operator.GT, Literal(5)),
    Compare(Column("x"), Operator.GT, Literal("a")),
], ids=["unknown column", "wrong type"])  # fmt: skip
def test_expressions(session, where):
    """A predicate that is handed over as an expression is checked as its text would be."""
    refused(UnsupportedQuery, lambda: session.count(where=where, absolute=50))


@pytest.mark.parametrize("keys", [
    None,
    {},
    {"k": []},
    {"k": ["few", "few"]},
    {"k": [1, 2]},
    {"k": ["few", 2]},
    {"k": "few"},
    {"x": [1]},
    {"k": ["few"], "x": [1]},
    ["few", "many"],
    3,
    pa.table({"x": [1]}),
    pa.table({"k": ["few", "few"]}),
], ids=repr)  # fmt: skip
def test_keys(session, keys):
    """Missing, empty, repeated, of the wrong type, for another column."""
    refused(InvalidKeys, lambda: session.count("k", keys=keys, absolute=50))
    refused(InvalidKeys, lambda: session.sql(GROUP_BY, keys=keys, absolute=50))


def test_group_by_without_keys_says_how(session):
    """The message has the call that would work."""
    error = refused(InvalidKeys, lambda: session.sql(GROUP_BY, absolute=50))

    assert "keys={'k': [...]}" in error.next_step


def test_keys_without_group_by(session):
    """Keys for a single number are a mistake."""
    refused(InvalidKeys, lambda: session.count(keys=KEYS, absolute=50))


@pytest.mark.parametrize("numbers", [
    {},
    {"epsilon": 0}, {"epsilon": -1}, {"epsilon": INF}, {"epsilon": NAN}, {"epsilon": "1"},
    {"mu": 0}, {"mu": -1}, {"rho": 0}, {"rho": INF}, {"rho": NAN},
    {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": 2}, {"epsilon": 1, "delta": -1e-6},
    {"epsilon": 1, "delta": NAN},
    {"epsilon": 1, "rho": 1}, {"mu": 1, "delta": 1e-6, "keys_delta": 1e-6}, {"epsilon": 1e-30},
], ids=repr)  # fmt: skip
def test_budgets(numbers):
    """Negative, zero, infinite, not a number, delta of one or more, none or several."""
    refused(InvalidBudget, lambda: Budget(**numbers))


def test_a_budget_must_be_one():
    """A bare number is no budget."""
    refused(InvalidBudget, lambda: Session(TABLE, budget=1.0))


@pytest.mark.parametrize("bounds", [None, Bounds(), Bounds(max_rows=2), Bounds(max_groups=2)])
def test_a_unit_column_needs_bounds(bounds):
    """Both bounds with groups, max_rows without; what is missing is named."""
    session = opened(unit="u", bounds=bounds)
    refused(InvalidBounds, lambda: session.count(**BY, absolute=50))
    if bounds is None or bounds.max_rows is None:
        refused(InvalidBounds, lambda: session.count(absolute=50))

    assert not session.spent


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, "3", 2**31])
def test_bounds(bound):
    """A bound is a whole number of at least one."""
    refused(InvalidBounds, lambda: Bounds(max_groups=bound))
    refused(InvalidBounds, lambda: Bounds(max_rows=bound))


def test_an_unknown_unit():
    """The unit is a column of the table."""
    refused(UnsupportedQuery, lambda: opened(unit="tailnum"))


def test_tables(tmp_path):
    """Missing files, empty files, folders, formats we cannot read, and things that are no table."""
    (tmp_path / "empty.csv").touch()
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "notes.doc").write_text("not a table")
    bad = ["empty.csv", "empty.parquet", "torn.parquet", "notes.doc", "missing.csv", "missing.parquet", "*.csv.gz", "."]

    paths = [tmp_path / name for name in bad]
    declared = [Csv(path) if ".csv" in path.name else path for path in paths]

    for table in [*declared, {"k": [1]}, [1, 2], None, np.zeros(3)]:
        refused(DataError, lambda table=table: Session(table, budget=BUDGET))


def test_a_file_that_goes_away_is_not_charged(tmp_path):
    """A table that is gone when it is asked is found out before anything is reserved."""
    path = tmp_path / "rides.csv"
    path.write_text("k,x\nfew,1\n")
    session = Session(Csv(path), budget=BUDGET)
    path.unlink()

    refused(DataError, lambda: session.count(absolute=50))
    assert not session.spent


def a_ledger(folder):
    """Return the path of a sound ledger with one answer."""
    path = folder / "a.ledger"
    with opened(ledger=path) as session:
        session.count(absolute=50)
    return path


def test_ledgers_that_are_none(tmp_path):
    """Another file, a cut-off one, one of a newer version, a folder, a missing folder: refused, left as they were."""
    text, torn, newer = tmp_path / "text.ledger", tmp_path / "torn.ledger", tmp_path / "newer.ledger"
    text.write_text("not a ledger, but as long as one" * 200)
    sound = a_ledger(tmp_path)
    torn.write_bytes(sound.read_bytes()[:5000])
    newer.write_bytes(sound.read_bytes())
    with sqlite3.connect(newer) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()

    for path in (text, torn, newer, tmp_path, tmp_path / "no" / "a.ledger"):
        before = path.read_bytes() if path.is_file() else None
        refused(LedgerError, lambda path=path: opened(ledger=path))
        assert before == (path.read_bytes() if path.is_file() else None)


def test_a_locked_ledger(tmp_path, monkeypatch):
    """Another writer that never ends is a ledger error, not a hang, and nothing is answered."""
    from farthing.ledger import store

    monkeypatch.setitem(store.Ledger.open.__kwdefaults__, "timeout_s", 0.2)
    path = a_ledger(tmp_path)
    session = opened(ledger=path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert "locked" in refused(LedgerError, lambda: session.count(absolute=20)).what
    finally:
        other.close()


def test_exit_codes_and_facts():
    """Scripts read facts off an error: its fields, and the exit code of its kind."""
    error = refused(InvalidTarget, lambda: opened().count())

    assert 2 == error.exit_code
    assert json.dumps([error.what, error.rule, error.got, error.next_step])
    assert 4 == DataError("x").exit_code
    assert isinstance(error, ValueError)
