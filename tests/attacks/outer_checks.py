"""Checks of the edges of farthing: how files come in, how text goes out, and whom an attack calls guilty."""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import farthing
from farthing import attacks, models
from farthing.attacks import targets
from farthing.engines import addresses, open_table
from farthing.engines.addresses import Addresses, _Kind
from farthing.mechanisms import FiniteClassLearner, Thresholds
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, counting
from farthing.query.expressions import Column, Compare, Operator
from farthing.query.joins import Join
from farthing.sql import parse_predicate

ROWS = 300
HOSTILE = (
    *(b'"', b'9,"x,', b'9"x,"007,', b"9\r9,1,", b"9,x,y,z", b"9,x,01/13/2020", b"9,007,01/13/2020"),
    *(b"9,007,2020-01-31", b"x,007,1", b"\xff,007,", b"9,1.5,", b"\x00", b",,", b"9;007;31/01/2020"),
)
"""Lines of which none is a row that is counted."""

BARE = "\x1b\x07\u202e"
"""Characters that no line for a terminal may have."""


def lines() -> tuple[str, ...]:
    """Count the good lines of a CSV with one hostile line in the middle: it changes the reading of no other."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        kinds = {"id": "integer", "day": "date"}
        for odd in HOSTILE:
            good = [b"1,007,31/01/2020"] * ROWS
            file.write_bytes(b"\n".join([b"id,code,day", *good[: ROWS // 2], odd, *good[ROWS // 2 :]]) + b"\n")
            engine = open_table(farthing.Csv(str(file), columns=kinds, dates="%d/%m/%Y"), name="t")
            where = parse_predicate("code = '007' AND id > 0 AND day IS NOT NULL", engine.schema)
            query = Query("t", (), None, where, counting("n"), PrivacyUnit(), Bounds())
            found = int(engine.measure(query, 1)[0, 0])
            if found != ROWS:
                said.append(f"{found} of {ROWS} rows beside the line {odd!r}")
    return tuple(said)


def undeclared() -> tuple[str, ...]:
    """Open a CSV of which nothing says how it is read; return whether that was done."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        file.write_bytes(b"id,word\n1,a\n2,caf\xe9\n")
        with suppress(farthing.FarthingError):
            open_table(str(file))
            return ("a CSV read although nothing says how",)
    return ()


def spelled() -> tuple[str, ...]:
    """Name a protected table as a public one, by other spellings of its address; return those that are let through."""
    tables, said = Addresses(dict.fromkeys(("test://a", "TEST://a", "test://a:5432"))), []
    kind = _Kind(
        lambda _: None, lambda _, table: table, lambda _, table: frozenset([table]), lambda table: table,
        lambda _, table: (table,),
    )  # fmt: skip
    with mock.patch.dict(addresses._OPENED, {"test": kind}), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        file.touch()
        for mine, other in ((str(file), f"test://a#{file}"), (f"test://a#{file}", f"{folder}/*.parquet")):
            with suppress(farthing.DataError):
                tables.refuse_exposed([mine], {"pub": other})
                said.append("a protected file is public")
        for other in ("test://a#t", "TEST://a#t", "test://a:5432#t", "test://a#%74"):
            with suppress(farthing.DataError):
                tables.refuse_exposed(["test://a#t"], {"pub": other})
                said.append(f"{other} is public")
        tables.refuse_exposed(["test://a#t"], {"pub": "test://a#u"})
    return tuple(said)


def relations() -> tuple[str, ...]:
    """Join a relation with two others of its connection; return what became of its rows."""
    connection, said = duckdb.connect(), []
    connection.execute("CREATE TABLE t AS SELECT i % 7 AS k FROM range(30000) AS t(i)")
    connection.execute("CREATE TABLE s AS SELECT i AS k FROM range(7) AS t(i)")
    names = ("a", "b")
    engine = open_table(connection.table("t"), name="t", public={name: connection.table("s") for name in names})
    joins = tuple(Join(name, Compare(Column("k"), Operator.EQ, Column(f"{name}.k")), fan_out=1) for name in names)
    for some in (joins[:1], joins):
        found = engine.measure(Query("t", (), None, None, counting("n"), PrivacyUnit(), Bounds(), joins=some), 1)
        said += [f"{int(found[0, 0])} of 30000 rows"] * (int(found[0, 0]) != 30_000)
    return tuple(said)


def outward() -> tuple[str, ...]:
    """Print keys that a terminal or a spreadsheet would obey; return what came out as it is."""
    from farthing.cli.show import echo_csv

    said, names = [], ["a\x1b[31m", "b\x07", "\u202ec"]
    with farthing.Session(pa.table({"k": names * 9}), budget=farthing.Budget(mu=1), name="t") as session:
        shown = str(session.count(by="k", keys={"k": names}, loss=farthing.Gdp(0.1)))
    said += [f"{letter!r} on a terminal" for letter in BARE if letter in shown]
    kept, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO())
    try:
        echo_csv(pa.table({"=x": ["=1+1", "@SUM(A1)", "+1", "-2+3", "\t=1"]}))
        written = sys.stdout.buffer.getvalue().decode()
    finally:
        sys.stdout = kept
    said += [
        f"a formula in a CSV: {one!r}" for one in written.replace('"', "").splitlines() if one.lstrip()[:1] in "=@+-"
    ]
    return tuple(said)


def honest() -> tuple[str, ...]:
    """Attack honest means of attributes that are no fair coins, by membership: nobody is broken, but now and then."""
    broken = 0
    for seed in range(24):
        coins = attacks.Coins(seed, "honest")
        rows = np.repeat(coins.bits(5, 200), 50, axis=0) if seed % 2 else coins.uniform(250, 200) < 0.3
        columns = {"id": np.arange(200)} | {f"a{place}": row.astype(int) for place, row in enumerate(rows)}
        people = attacks.People(attacks.secrets(200, seed).bits, columns)
        result = attacks.membership(targets.Honest(people, 1, 251, seed), seed=seed, draws=1_000)
        broken += result.verdict == "broken"
    return (f"{broken} of 24 honest targets called broken",) * (broken > 2)


def claims() -> tuple[str, ...]:
    """Add up what the claims of one chain may miss with: all of it is beta at most."""
    from farthing.accuracy.joint_measures import JointMeasures

    missed = sum(JointMeasures._share(SimpleNamespace(beta=0.05), number) for number in range(60))
    return (f"claims that miss with {missed:g} in all, where 0.05 is told",) * (missed > 0.05 * (1 + 1e-9))


def odd_rows() -> tuple[str, ...]:
    """Fit, learn and count with one odd row; return what failed."""
    line: list[object] = [0.5] * 200
    rows = [[one] for one in line]
    with suppress(farthing.DataError):
        models.ridge([*rows, ["x"]], [*line, None], target=0.1, cap=farthing.Gdp(4), rows=200, bound_x=1.0, bound_y=1.0)
        FiniteClassLearner(Thresholds([0.0]), 1).fit([*line, "x"], [1] * 200 + [None])
        with tempfile.TemporaryDirectory() as folder:
            values = pa.array([b"a", b"\xff"], pa.binary())
            text = pa.Array.from_buffers(pa.string(), 2, values.buffers())
            lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), text)
            pq.write_table(pa.table({"c": lists}), Path(folder) / "t.parquet")
            engine = open_table(Path(folder) / "t.parquet", name="t")
            where = parse_predicate("c IS NOT NULL", engine.schema)
            engine.measure(Query("t", (), None, where, counting("n"), PrivacyUnit(), Bounds()), 1)
            for unit in ("us", "ms"):
                far = pa.array([0, -(2**63)], pa.int64()).view(pa.timestamp(unit))
                pq.write_table(pa.table({"c": far}), Path(folder) / "far.parquet")
                engine = open_table(Path(folder) / "far.parquet", name="t")
                engine.measure(Query("t", (), None, where, counting("n"), PrivacyUnit(), Bounds()), 1)
        large = pa.table({"u": pa.array([1, 2, 3, 2**64 - 1] * 20, pa.uint64())})
        engine = open_table(large, name="t", protected={"o": large.slice(0, 8)})
        beside = Join("o", Compare(Column("u"), Operator.EQ, Column("o.u")), public=False)
        engine.measure(Query("t", (), None, None, counting("n"), PrivacyUnit("u"), Bounds(1, 9), joins=(beside,)), 1)
        return ()
    return ("one odd row decided between an answer and an error",)
