"""What people type: numbers, losses, keys."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.cli.input import keys, typed
from farthing.errors import DataError, FarthingError, InvalidBudget, InvalidKeys, InvalidOption, InvalidTarget
from farthing.folders import shares_files
from farthing.privacy.loss import Gdp, Pure, Zcdp


@pytest.mark.parametrize(
    ("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 5 % ", 0.05), ("95%", 0.95), ("0.1%", 0.001), ("0", 0.0)]
)
def test_a_fraction_is_written_with_or_without_percent(text, value):
    """5% and 0.05 are the same number, to the last bit."""
    assert value == typed.fraction("--relative", text)


@pytest.mark.parametrize(("text", "advice"), [("5", "5%"), ("95", "0.95"), ("1", "1%")])
def test_a_number_that_forgot_its_percent_is_refused_with_advice(text, advice):
    """5 is neither 5 % nor 0.05; the error says how to write it."""
    with pytest.raises(InvalidTarget, match="must be below 1") as refused:
        typed.fraction("--relative", text)
    assert advice in refused.value.next_step


@pytest.mark.parametrize("text", ["", "five", "5 percent", "%", "1,5"])
def test_what_is_no_number_is_refused_by_the_name_of_its_option(text):
    """Each kind of number names its option when it cannot be read."""
    readers = (
        (lambda: typed.fraction("--confidence", text), InvalidTarget, "--confidence"),
        (lambda: typed.absolute(text), InvalidTarget, "--absolute"),
        (lambda: typed.amount("--epsilon", text), InvalidBudget, "--epsilon"),
    )
    for read, kind, name in readers:
        with pytest.raises(kind, match=name):
            read()


def test_an_absolute_error_is_no_percentage():
    """--absolute 5% is refused, and percentages sent to --relative."""
    with pytest.raises(InvalidTarget, match="--relative"):
        typed.absolute("5%")


@pytest.mark.parametrize(
    ("text", "value"), [("mu=0.05", Gdp(0.05)), ("rho=0.001", Zcdp(0.001)), ("epsilon=0.5", Pure(0.5))]
)
def test_a_loss_names_its_currency(text, value):
    """mu, rho and epsilon are three kinds of loss."""
    assert value == typed.loss("--loss", text)
    assert value == typed.cap(text)


def test_a_cap_may_be_all():
    """The cap "all" stays a word."""
    assert typed.cap("all") == "all"


@pytest.mark.parametrize("text", ["0.05", "sigma=2", "=1", "everything"])
def test_a_loss_without_currency_is_refused(text):
    """A bare number does not say what it measures."""
    with pytest.raises(InvalidTarget, match="not a loss"):
        typed.loss("--cap", text)


@pytest.mark.parametrize(("text", "value"), [("all", None), ("7", 7)])
def test_rows_are_a_number_or_all(text, value):
    """--rows takes a whole number, or all."""
    assert value == typed.rows(text)


@pytest.mark.parametrize("text", ["0", "-3", "many", "1.5"])
def test_other_rows_are_refused(text):
    """--rows takes nothing else."""
    with pytest.raises(InvalidOption, match="--rows"):
        typed.rows(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "ATL,ORD", ["ATL", "ORD"]),
        ("string", '"New York, NY",NULL', ["New York, NY", None]),
        ("string", "1..3", ["1..3"]),
        ("integer", "1, 2,NULL", [1, 2, None]),
        ("integer", "1..3", range(1, 4)),
        ("integer", "-2..0", range(-2, 1)),
        ("integer", "0..90..10", range(0, 91, 10)),
        ("float", "0..2", range(3)),
        ("float", "0.5,1", [0.5, 1.0]),
        ("boolean", "true,FALSE", [True, False]),
        ("date", "2013-01-31", [date(2013, 1, 31)]),
        ("date", "2013-01-31..2013-02-01", [date(2013, 1, 31), date(2013, 2, 1)]),
        ("date", "2013-12..2014-01", [date(2013, 12, 1), date(2014, 1, 1)]),
        ("date", "2013-Q4..2014-Q1", [date(2013, 10, 1), date(2014, 1, 1)]),
        ("date", "2013..2014", [date(2013, 1, 1), date(2014, 1, 1)]),
        ("timestamp", "2013-W01..2013-W02", [date(2012, 12, 31), date(2013, 1, 7)]),
        ("timestamp", "2013-01-31T12:00", [datetime(2013, 1, 31, 12)]),  # noqa: DTZ001  a column without a zone
        ("timestamp", "2013-01-31T23..2013-02-01T00", [datetime(2013, 1, 31, 23), datetime(2013, 2, 1)]),  # noqa: DTZ001
    ],
)
def test_keys_take_the_type_of_their_column(kind, text, value):
    """The same words are other keys for another column."""
    assert value == keys.typed("column", text, kind)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "a"),
        ("integer", "1.5"),
        ("float", "x"),
        ("boolean", "yes"),
        ("date", "31.1.2013"),
        ("date", "2013-01-01..2013-02"),
        ("integer", "0..9..0"),
    ],
)
def test_keys_of_another_type_are_refused(kind, text):
    """A word that is no value of the column's type is an error that names the type."""
    with pytest.raises(InvalidKeys, match=f"its type, {kind}"):
        keys.typed("column", text, kind)


@pytest.mark.parametrize(("kind", "text"), [("integer", "12..1"), ("float", "9..0..3"), ("integer", "-1..-2")])
def test_a_range_that_runs_backwards_is_refused(kind, text):
    """It holds no key; the error says how it is written."""
    with pytest.raises(InvalidKeys, match="runs backwards"):
        keys.typed("column", text, kind)


@pytest.mark.parametrize("text", ["dest", "=ATL", " =ATL"])
def test_an_option_without_a_column_is_refused(text):
    """--keys needs a column."""
    with pytest.raises(InvalidKeys, match="names no column"):
        keys.split(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with public keys as CSV and as Parquet, and a protected table."""
    (tmp_path / "zones.csv").write_text("\ufeffid,name,word\n007,NA,a\n010,,b\n", encoding="utf-8")
    pq.write_table(pa.table({"id": ["007", "010"]}), tmp_path / "zones.parquet")
    (tmp_path / "data.csv").write_text("zone\n007\n", encoding="utf-8")
    return tmp_path


def read(folder: Path, source: str, kind: str = "string") -> list[object]:
    """Return the keys of a file as Python values."""
    found = keys.from_file("zone", source, kind, keys.Sources(folder, (str(folder / "data.csv"),)))
    return found.to_pylist()


def test_keys_come_from_a_column_of_a_public_file(folder):
    """CSV values are read in the column's type: text keeps its zeros, and NA is a name like others."""
    assert read(folder, "zones.csv:id") == ["007", "010"]
    assert read(folder, "zones.csv:id", "integer") == [7, 10]
    assert read(folder, "zones.csv:name") == ["NA", ""]
    assert read(folder, "zones.parquet:id") == ["007", "010"]


@pytest.mark.parametrize(
    ("source", "kind", "error", "says"),
    [
        ("zones.csv", "string", InvalidKeys, "name no column"),
        ("zones.csv:city", "string", InvalidKeys, "no column 'city'"),
        ("zones.parquet:city", "string", InvalidKeys, "no column 'city'"),
        ("zones.csv:word", "integer", InvalidKeys, "wrong type"),
        ("nowhere.csv:id", "string", DataError, "the file of keys does not exist"),
        ("data.csv:zone", "string", InvalidKeys, "protected table"),
        ("broken.parquet:id", "string", DataError, "as Parquet"),
        ("broken.csv:id", "string", DataError, "as CSV"),
    ],
)
def test_files_that_give_no_keys_are_refused(folder, source, kind, error, says):
    """Every way in which a file of keys can be wrong has its own words, the protected table among them."""
    (folder / "broken.parquet").write_bytes(b"PAR1 not really")
    (folder / "broken.csv").write_bytes(b"id\n\xff\xfe\n")
    with pytest.raises(FarthingError, match=says) as refused:
        read(folder, source, kind)
    assert error is type(refused.value)


def test_the_protected_table_is_no_source_of_keys_by_a_pattern_either(folder):
    """A table named by a pattern is recognised too."""
    with pytest.raises(InvalidKeys, match="protected table"):
        keys.from_file("zone", "data.csv:zone", "string", keys.Sources(folder, (str(folder / "dat*.csv"),)))


def test_tables_that_share_a_file_are_known_by_any_name(tmp_path):
    """Patterns on both sides, links, a file in the folder of a table; others share none, nor does what is not there."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "odd[1]").mkdir()
    for name in ("rides.parquet", "zones.parquet", "lake/part.parquet", "odd[1]/a.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "link.parquet").symlink_to(tmp_path / "rides.parquet")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "rides.parquet")
    (tmp_path / "loop.parquet").symlink_to(tmp_path / "loop.parquet")
    rides = ("rides.parquet", "ri*.parquet", "r[i]des.parquet", "*/../rides.parquet", "link.parquet", "h*.parquet")
    others = ("zones.parquet", "z*.parquet", "lake", "lake/*", "nowhere.parquet", "no*", "loop.parquet", "odd[1]/*")
    for one in rides:
        for other in rides:
            assert shares_files(f"{tmp_path}/{one}", f"{tmp_path}/{other}"), (one, other)
        for other in others:
            assert not shares_files(f"{tmp_path}/{one}", f"{tmp_path}/{other}"), (one, other)
            assert not shares_files(f"{tmp_path}/{other}", f"{tmp_path}/{one}"), (one, other)
    for one, other in (("lake", "lake/part.parquet"), ("la*", "lake/*.parquet"), ("lake/part.parquet", "lake")):
        assert shares_files(f"{tmp_path}/{one}", f"{tmp_path}/{other}")
    assert shares_files(f"{tmp_path}/odd[1]/a.parquet", f"{tmp_path}/odd[[]1]/*.parquet")


PUBLIC = {"airports": {"faa": "string", "tz": "integer"}}


@pytest.mark.parametrize(("text", "value"), [("airports.faa", "airports.faa"), ("a.b,c", None), ("ATL", None)])
def test_keys_may_name_a_column_of_a_public_table(text, value):
    """TABLE.COLUMN of a declared table is left to the session; lists are lists."""
    assert value == keys.of_table("dest", text, PUBLIC)


@pytest.mark.parametrize(
    ("text", "advice"), [("airports.fa", "'faa'"), ("airport.faa", "'airports'"), ("elsewhere.x", "quote a value")]
)
def test_a_misspelt_table_is_no_key(text, advice):
    """What reads like a column of a table is never taken for a value unasked: it would be paid for."""
    with pytest.raises(InvalidKeys, match="unknown") as refused:
        keys.of_table("dest", text, PUBLIC)
    assert advice in refused.value.next_step


def test_a_quoted_key_is_a_value_whatever_it_reads_like():
    """Quotes make a value of what reads like a column of a public table."""
    sources = keys.Sources(Path(), (), PUBLIC)
    assert ["airports.faa"] == keys.read("dest", '"airports.faa"', "string", sources)


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (None, None),
        (["50"], 50.0),
        (["n=50"], {"n": 50.0}),
        (["50", "mean=2"], {"n": 50.0, "mean": 2.0}),
        (["mean=2", "n=50"], {"n": 50.0, "mean": 2.0}),
    ],
)
def test_errors_are_for_all_columns_or_by_name(texts, value):
    """A plain number is for the columns that have none of their own."""
    assert value == typed.widths("--absolute", texts, ["n", "mean"])


def test_a_plain_rank_is_for_quantiles_only():
    """Counts have no rank, so a plain rank is spread by name."""
    assert {"m": 0.01} == typed.widths("--rank", ["1%"], ["m"])


@pytest.mark.parametrize(
    ("texts", "says"),
    [(["50", "60"], "twice"), (["n=5", "n=6"], "twice for 'n'"), (["nn=5"], "names 'nn'"), (["n="], "not a number")],
)
def test_errors_for_nothing_or_twice_are_refused(texts, says):
    """Each column has one error, and only columns of the answer have any."""
    with pytest.raises(InvalidTarget, match=says):
        typed.widths("--absolute", texts, ["n", "mean"])


def test_bounds_are_chosen_at_a_price_or_the_usual_one():
    """auto, or auto with its loss; anything else is refused."""
    assert (None, Gdp(0.02)) == (typed.auto_bounds("auto").loss, typed.auto_bounds("auto:mu=0.02").loss)
    for text in ("manual", "auto:0.02", ""):
        with pytest.raises(FarthingError):
            typed.auto_bounds(text)


def test_all_of_the_groups_are_a_share():
    """A share may be everything, and no more."""
    assert 1.0 == typed.fraction("--share", "100%")
    with pytest.raises(InvalidTarget, match="at most 1"):
        typed.fraction("--share", "150%")
