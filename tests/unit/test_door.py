"""The door to the engine: rows are read for a paid receipt only, and no question makes an engine fail on a row."""

import ast
import datetime as dt
import inspect
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import nodes

import farthing
from farthing import Bounds, Budget, DataError, Gdp, InvalidTarget, LedgerError, Session
from farthing.audit.ruins import ASKS
from farthing.engines import Engine
from farthing.session.core.door import Door

SOURCE = Path(farthing.__file__).parent
SESSION = SOURCE / "session"
ROWS = 400
TABLE = pa.table({
    "u": range(ROWS),
    "g": [row % 2 for row in range(ROWS)],
    "x": [0.5] * ROWS,
    "name": [f"person{row}" for row in range(ROWS)],
    "salary": [20_000 + row for row in range(ROWS)],
    "day": [dt.date(2024, 1, 1)] * ROWS,
    "time": pa.array([0] * ROWS, pa.timestamp("us")),
    "many": [[1, 2]] * ROWS,
    "yes": [True] * ROWS,
})  # fmt: skip
ABOUT_ROWS = ("measure", "histogram", "found", "spread", "crossed")
MORE = {
    "ranking": lambda s: s.ranking("g", k=1, keys={"g": [0, 1]}, cap="all"),
    "workload": lambda s: s.workload(["SELECT COUNT(*) FROM data", "SELECT SUM(x) FROM data"], absolute=50),
    "several": lambda s: s.sql("SELECT COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS q FROM data", absolute=50),
    "most_common": lambda s: s.most_common("g", k=1, keys={"g": [0, 1]}, relative=0.5, absolute=50),
    "ratio": lambda s: s.ratio("x > 0", "salary > 0", loss=Gdp(0.1)),
    "a part": lambda s: s.partition("g", [0, 1])[0].count(loss=Gdp(0.1)),
    "bounds": lambda s: s.sum("x", bounds=Bounds.auto(Gdp(0.1)), absolute=50),
}


def opened(table=TABLE, **options):
    """Open the table with a large budget."""
    given = {"unit": "u", "bounds": Bounds(1, 1, 0, 1), "budget": Budget(mu=10, delta=1e-3, keys_delta=1e-4)}
    return Session(table, **given | options)


@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("what", ["name", "day", "time", "many", "yes", "salary", "*"])
def test_counts_of_anything_have_bounds_of_their_own(what, unit):
    """What is no number has no spread of values, only of groups and rows: asked of an engine it never fails."""
    with opened(unit=unit) as session:
        answer = session.sql(f"SELECT COUNT({what}) AS n FROM data", bounds=Bounds.auto(Gdp(0.1)), absolute=80)

    assert ROWS == pytest.approx(float(answer.value), abs=200)


@pytest.mark.parametrize("held", [True, False])
def test_a_predicate_on_one_row_decides_no_error(held):
    """A text that is a number on all rows but one is counted like any other."""
    salary = 20_123 if held else 0
    text = f"CASE WHEN name='person123' AND salary={salary} THEN 'x' ELSE '1' END"
    with opened() as session:
        answer = session.sql(f"SELECT COUNT({text}) AS n FROM data", bounds=Bounds.auto(Gdp(0.1)), absolute=80)
        assert session.history(1)[0].state == "settled"

    assert answer.met


@pytest.mark.parametrize("mu", [1e-30, 1e-9])
def test_a_price_that_rounds_to_nothing_asks_nothing(mu, monkeypatch):
    """It is refused before the engine hears of it, and before anything stands in the books."""
    with opened() as session:
        for name in ABOUT_ROWS:
            monkeypatch.setattr(type(session._engine), name, lambda *_: pytest.fail("the engine was asked"))
        with pytest.raises(InvalidTarget, match="too small"):
            session.sql("SELECT COUNT(name) FROM data", bounds=Bounds.auto(Gdp(mu)), absolute=80)
        assert not session.history()


def test_every_way_to_the_rows_takes_a_receipt():
    """What an engine does is told to anybody by name, or goes through the door with a receipt."""
    public = {name for name in vars(Engine) if not name.startswith("_")}
    asked = {name for name in ABOUT_ROWS if "receipt" in inspect.signature(getattr(Door, name)).parameters}

    assert set(ABOUT_ROWS) == asked
    assert public == asked | {
        "name",
        "schema",
        "tables",
        "public",
        "check",
        "fingerprint",
        "identity",
        "listed",
        "close",
    }


@pytest.mark.parametrize("name", ABOUT_ROWS)
def test_the_door_is_closed_without_a_price(name):
    """A receipt that cost nothing, one that is closed, and one of another ledger open nothing."""
    with opened() as session, opened() as other:
        door, ledger = session._context.engine, session._ledger
        method = getattr(door, name)
        rest = [None] * (len(inspect.signature(method).parameters) - 1)
        kept = {"question": "q", "version": 0, "label": "q"}
        free = ledger.reserve(increase=0, fresh=0, **kept)
        closed = ledger.reserve(increase=5, fresh=5, **kept)
        ledger.settle(closed, 5, None)
        failed = ledger.reserve(increase=5, fresh=5, **kept)
        ledger.fail(failed)
        foreign = other._ledger.reserve(increase=5, fresh=5, **kept)
        for receipt in (free, closed, failed, foreign):
            with pytest.raises(LedgerError):
                method(*rest, receipt)


@pytest.mark.xdist_group("syntax")
def test_only_the_door_knows_the_engine():
    """No module of the session but the door has the hash key, without which an engine answers nothing."""
    known = {
        path.name
        for path in SESSION.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "hash_key"
    }

    assert {"door.py"} == known


@pytest.mark.parametrize("name", [*ASKS, *MORE])
def test_rows_are_read_for_an_open_reservation(name, monkeypatch):
    """Whatever is asked, when the engine hears of it a positive price stands in the books."""
    with opened() as session:
        heard = []
        for way in ABOUT_ROWS:
            asked = getattr(type(session._engine), way)

            def listening(*given, asked=asked):
                """Note what is reserved while the engine is asked."""
                heard.append(max((entry.reserved for entry in session._ledger.open_reservations), default=0))
                return asked(*given)

            monkeypatch.setattr(type(session._engine), way, listening)
        (ASKS | MORE)[name](session)

    assert heard
    assert min(heard) > 0


OPENED = {
    "engines/duck/database.py _locked connect": "the engine: the table's own files and nothing else, settings locked",
    "engines/duck/database.py _locked default_connection": "taken from it, so that a forked child does not wait for it",
    "engines/reading/records.py converter connect": "casts text of CSV files; reads nothing, settings locked",
    "engines/opening.py arrow_of connect": "reads a public table once, in the owner's process; SQL of ours alone",
    "server/wire/catalog.py __init__ connect": "empty tables: little memory, one thread, listed functions, interrupted",
    "audit/tables.py raw connect": "the truth of a made-up table, for the audit",
}
"""Every place that opens a DuckDB, and what it can do."""

WAYS_IN = frozenset(
    {"connect", "default_connection", "sql", "query", "execute", "from_arrow", "from_df", "from_query", "read_csv"}
)


def opened_databases(source):
    """Yield the functions of a module that open a DuckDB, with how, by what they call of the package itself."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                way = call.func if isinstance(call, ast.Call) else None
                if isinstance(way, ast.Attribute) and way.attr in WAYS_IN:
                    owner = ast.unparse(way.value)
                    if owner in {"duckdb", "ibis.duckdb", "_duckdb"}:
                        yield f"{function.name} {way.attr}"


def test_every_database_that_is_opened_has_a_reason():
    """A DuckDB that a stranger's text or a private row could reach is opened in these places only."""
    found = {
        f"{path.relative_to(SOURCE)} {where}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "duckdb" in (source := path.read_text())
        for where in opened_databases(source)
    }

    assert set(OPENED) == found
    assert not [path for path in SOURCE.rglob("*.py") if "from duckdb import" in path.read_text()]
    assert ["f connect"] == list(opened_databases("def f():\n    import duckdb\n    return duckdb.connect()\n"))


NEAR_ROWS = ("engines", "session", "models", "mechanisms", "cli")
EXCUSED = {
    "cli/failing.py explained": "an exit code, raised where the process ends",
    "cli/run/export.py _written": "about a file of the books, which hold no row",
}


@pytest.mark.xdist_group("syntax")
def test_no_error_is_raised_while_another_is_handled():
    """`raise ... from None` keeps the other error as its context: errors are raised after the handler."""
    found = set()
    for package in NEAR_ROWS:
        for path in sorted((SOURCE / package).rglob("*.py")):
            for function in nodes(path):
                if isinstance(function, ast.FunctionDef):
                    found |= {f"{path.relative_to(SOURCE)} {function.name}" for _ in raised_in_handlers(function)}

    assert set(EXCUSED) == found


def raised_in_handlers(function):
    """Yield the statements of a function that raise a new error inside of an except block."""
    for handler in ast.walk(function):
        if isinstance(handler, ast.ExceptHandler):
            yield from (node for node in ast.walk(handler) if isinstance(node, ast.Raise) and node.exc is not None)


def test_a_raise_in_a_handler_is_seen():
    """Planted: the usual form is found, a bare re-raise is none."""
    text = "def f():\n try: g()\n except E:\n  {}\n"

    assert [1, 0] == [
        len(list(raised_in_handlers(ast.parse(text.format(line))))) for line in ("raise X from None", "raise")
    ]


@pytest.mark.parametrize("fill", [0xFF, 0x00])
@pytest.mark.parametrize("name", [*ASKS, *MORE])
def test_a_failing_engine_leaves_nothing_behind_its_error(name, fill, tmp_path):
    """Whatever an engine says of a ruined file, the error that comes out has no cause and no context."""
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE.drop_columns(["many"]), path)
    with opened(str(path), name="data") as session:
        raw, about = path.read_bytes(), path.stat()
        footer = 8 + int.from_bytes(raw[-8:-4], "little")
        path.write_bytes(raw[:4] + bytes([fill]) * (len(raw) - footer - 4) + raw[-footer:])
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))  # a change that public metadata do not show
        error = failure(lambda: (ASKS | MORE)[name](session))

    assert "the engine could not finish" in str(error)
    assert (None, None) == (error.__cause__, error.__context__)


def failure(ask):
    """Return the error of an ask: raised, or told beside the answers of others."""
    try:
        made = ask()
    except DataError as error:
        return error
    return next(iter(made.failed.values()))


def written(folder, **columns):
    """Write a file for each list of values, each with a column `x`; return the pattern of all."""
    for name, values in columns.items():
        pq.write_table(pa.table({"x": values}), folder / f"{name}.parquet")
    return str(folder / "*.parquet")


@pytest.mark.parametrize("odd", [pa.array(["7", "seven"]), pa.array(["7", "7"]), pa.array([300, 3]), pa.array([3, 3])])
def test_no_file_is_read_as_another_ones_type(odd, tmp_path):
    """Planted: whether a text is a number, or a number fits, is never found out; the files are refused as they are."""
    with pytest.raises(DataError, match="two files of one table have different columns") as refused:
        opened(written(tmp_path, a=pa.array([1, 2], pa.int8()), b=odd), unit=None, name="data")
    assert "x" == refused.value.got


def test_files_without_a_column_are_refused(tmp_path):
    """A column that one file lacks would fail whatever is asked of it, and be charged."""
    pattern = written(tmp_path, a=pa.array([1, 2]))
    pq.write_table(pa.table({"y": [1, 2]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="different columns"):
        opened(pattern, unit=None, name="data")


CUTS = {
    "in half": lambda raw: raw[: len(raw) // 2],
    "by its end": lambda raw: raw[:-1],
    "in its middle": lambda raw: raw[:1000] + raw[3000:],
    "to its footer": lambda raw: raw[-(8 + int.from_bytes(raw[-8:-4], "little")) :],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("which", ["a", "b"])
def test_a_file_that_was_cut_is_refused_before_anything_is_charged(which, cut, tmp_path):
    """The footers of all files are read when a table is opened: one that promises more than there is is found there."""
    rows = pa.array(range(20_000))
    pattern = written(tmp_path, a=rows, b=rows)
    with opened(pattern, unit=None, name="data") as session:
        assert session.count(absolute=50).met
    path = tmp_path / f"{which}.parquet"
    path.write_bytes(CUTS[cut](path.read_bytes()))
    with pytest.raises(DataError, match="the table cannot be read"):
        opened(pattern, unit=None, name="data")
