"""SQLite: values of any type in any column, reading alone, and that nothing that is sent can fail on a row."""

from __future__ import annotations

import sqlite3
import threading

import ibis
import pytest
import sqlglot
from backends import table_on
from sent import name_of
from sqlglot import exp

from farthing.engines import open_table
from farthing.engines.foreign import sqlite as backend
from farthing.engines.foreign.sqlite import SqliteBackend
from farthing.engines.foreign.total import SQLITE
from farthing.errors import DataError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Type, counting
from farthing.query.aggregates import Count, NamedAggregate, Sum
from farthing.query.expressions import Call, Column, Compare, FunctionName, IsNull, Literal, Not, Operator

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
KINDS = {"n": "integer", "x": "real", "word": "text", "yes": "boolean", "day": "date", "moment": "timestamp"}
ODD = ["a", 7, -2.5, b"\xff\xfe", None, "2020-02-30", 2**63 - 1, float("inf"), "", b""]
BAD_TEXT = b"\xff\xfe\x00secret"


def of(connection, name="data"):
    """Return the engine of a table of a connection."""
    return open_table(ibis.sqlite.from_connection(connection).table(name), name="data")


def odd():
    """Return a table in which every column has values of every type, and a text that is not UTF-8."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE data ({', '.join(f'{name} {kind}' for name, kind in KINDS.items())})")
    marks = ", ".join("?" for _ in KINDS)
    connection.executemany(f"INSERT INTO data VALUES ({marks})", [[each] * len(KINDS) for each in ODD])
    listed = ", ".join("CAST(? AS TEXT)" for _ in KINDS)
    connection.execute(f"INSERT INTO data VALUES ({listed})", [BAD_TEXT] * len(KINDS))
    return connection


def counted(engine, where=None, unit=None, bounds=None):
    """Return the rows of a condition."""
    query = Query("data", (), None, where, counting("n"), PrivacyUnit(unit), bounds or Bounds())
    engine.fingerprint(query)
    return int(engine.measure(query, 7)[0, 0])


@pytest.mark.parametrize(("name", "there"), [("n", 2), ("x", 4), ("word", 7), ("yes", 0), ("day", 0), ("moment", 0)])
def test_values_of_other_types_are_null(name, there):
    """A column holds values of its own type; any other, and text that is not UTF-8, is NULL and fails nothing."""
    engine = of(odd())

    assert there == counted(engine, Not(IsNull(Column(name))))
    assert len(ODD) + 1 - there == counted(engine, IsNull(Column(name)))


def test_a_text_that_is_read_as_it_is_fails_a_question(monkeypatch):
    """Planted: texts without the guard; one row decides between an answer and an error."""
    monkeypatch.setitem(backend._READ, Type.STRING, "{x}")
    where = Compare(Call(FunctionName.LENGTH, (Column("word"),)), Operator.GT, Literal(1))
    with pytest.raises(DataError, match="the engine could not finish the query"):
        counted(of(odd()), where)


def test_a_column_may_be_both_counted_and_a_key():
    """COUNT(n) by n: the key leaves the rows when its place is known, and the value stays."""
    engine = open_table(table_on("sqlite", [{"n": 1}, {"n": 2}, {"n": 2}], {"n": Type.INTEGER}), name="data")
    keys = Keys.of(("n",), {"n": [1, 2]}, engine.schema)
    outputs = (NamedAggregate("c", Count(Column("n"))),)
    query = Query("data", ("n",), keys, None, outputs, PrivacyUnit(), Bounds())
    with_unit = Query("data", ("n",), keys, None, outputs, PrivacyUnit("n"), Bounds(1, 2))
    for one in (query, with_unit):
        engine.fingerprint(one)

        assert [[1, 2]] == engine.measure(one, 7).tolist()


def test_infinite_values_are_larger_than_all():
    """A constant of infinity is infinite, where SQLite reads 'inf' as 0; sums see the positive values."""
    engine = open_table(table_on("sqlite", [{"x": 1.0}, {"x": float("inf")}], {"x": Type.FLOAT}), name="data")
    query = Query("data", (), None, None, (NamedAggregate("s", Sum(Column("x"), 0.0, 4.0)),), PrivacyUnit(), Bounds())

    assert 5.0 == engine.measure(query, 1)[0, 0] * query.measures[0].step


def test_a_file_is_only_read_and_from_any_thread(tmp_path):
    """Another thread is answered, nothing can be written, and the file stays as it was."""
    connection = sqlite3.connect(tmp_path / "rides.db")
    connection.execute("CREATE TABLE data (n integer)")
    connection.executemany("INSERT INTO data VALUES (?)", [(each,) for each in range(5)])
    connection.commit()
    before, found = (tmp_path / "rides.db").read_bytes(), []
    engine = of(connection)
    thread = threading.Thread(target=lambda: found.append(counted(engine)))
    thread.start()
    thread.join()

    assert [5] == found
    assert before == (tmp_path / "rides.db").read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        engine._backend._con.execute("DELETE FROM data")


def test_what_sqlite_cannot_prepare_is_refused_free():
    """A question that is too deep for SQLite is refused by name, before anything is charged."""
    engine = of(odd())
    engine._backend._con.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 2)
    where = Compare(Call(FunctionName.LENGTH, (Column("word"),)), Operator.GT, Literal(1))
    query = Query("data", (), None, where, counting("n"), PrivacyUnit(), Bounds())
    with pytest.raises(UnsupportedQuery, match="the sqlite backend cannot run this question"):
        engine.fingerprint(query)


def test_every_function_that_is_sent_is_listed(monkeypatch):
    """Beside the evaluator's own, only functions that no value makes fail."""
    sent, send = [], SqliteBackend._send
    monkeypatch.setattr(SqliteBackend, "_send", lambda self, sql, more: sent.append(sql) or send(self, sql, more))
    rows = [{"u": "a", "s": "x", "f": 1.0, "d": None}]
    kinds = {"u": Type.STRING, "s": Type.STRING, "f": Type.FLOAT, "d": Type.DATE}
    engine = open_table(table_on("sqlite", rows, kinds), name="data")
    keys = Keys.of(("s",), {"s": ["x", None]}, engine.schema)
    outputs = (*counting("n"), NamedAggregate("t", Sum(Column("f"), 0.0, 1.0)))
    query = Query("data", ("s",), keys, None, outputs, PrivacyUnit("u"), Bounds(1, 2))
    engine.measure(query, 3)
    engine.spread(query, Column("f"), 3)
    called = {name_of(each) for sql in sent for each in sqlglot.parse_one(sql, dialect="sqlite").find_all(exp.Func)}

    assert "SUM" in called
    assert set() == {name for name in called if not name.startswith("FARTHING_")} - {*SQLITE}
