"""What people type: numbers, losses, keys."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.cli import keys, options
from farthing.errors import DataError, FarthingError, InvalidBudget, InvalidKeys, InvalidOption, InvalidTarget
from farthing.privacy.loss import Gdp, Pure, Zcdp

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "value"), [("5%", 0.05), ("0.05", 0.05), (" 5 % ", 0.05), ("95%", 0.95), ("0.1%", 0.001), ("0", 0.0)]
)
def test_a_fraction_is_written_with_or_without_percent(text, value):
    """5% and 0.05 are the same number, to the last bit."""
    assert value == options.fraction("--relative", text)


@pytest.mark.parametrize(("text", "advice"), [("5", "5%"), ("95", "0.95"), ("1", "1%")])
def test_a_number_that_forgot_its_percent_is_refused_with_advice(text, advice):
    """5 is neither 5 % nor 0.05; the error says how to write it."""
    with pytest.raises(InvalidTarget, match="must be below 1") as refused:
        options.fraction("--relative", text)
    assert advice in refused.value.next_step


@pytest.mark.parametrize("text", ["", "five", "5 percent", "%", "1,5"])
def test_what_is_no_number_is_refused_by_the_name_of_its_option(text):
    """Each kind of number names its option when it cannot be read."""
    readers = (
        (lambda: options.fraction("--confidence", text), InvalidTarget, "--confidence"),
        (lambda: options.absolute(text), InvalidTarget, "--absolute"),
        (lambda: options.amount("--epsilon", text), InvalidBudget, "--epsilon"),
    )
    for read, kind, name in readers:
        with pytest.raises(kind, match=name):
            read()


def test_an_absolute_error_is_no_percentage():
    """--absolute 5% is refused, and percentages sent to --relative."""
    with pytest.raises(InvalidTarget, match="--relative"):
        options.absolute("5%")


@pytest.mark.parametrize(
    ("text", "value"), [("mu=0.05", Gdp(0.05)), ("rho=0.001", Zcdp(0.001)), ("epsilon=0.5", Pure(0.5))]
)
def test_a_loss_names_its_currency(text, value):
    """mu, rho and epsilon are three kinds of loss."""
    assert value == options.loss("--loss", text)
    assert value == options.cap(text)


def test_a_cap_may_be_all():
    """The cap "all" stays a word."""
    assert options.cap("all") == "all"


@pytest.mark.parametrize("text", ["0.05", "sigma=2", "=1", "everything"])
def test_a_loss_without_currency_is_refused(text):
    """A bare number does not say what it measures."""
    with pytest.raises(InvalidTarget, match="no loss"):
        options.loss("--cap", text)


@pytest.mark.parametrize(("text", "value"), [("all", None), ("7", 7)])
def test_rows_are_a_number_or_all(text, value):
    """--rows takes a whole number, or all."""
    assert value == options.rows(text)


@pytest.mark.parametrize("text", ["0", "-3", "many", "1.5"])
def test_other_rows_are_refused(text):
    """--rows takes nothing else."""
    with pytest.raises(InvalidOption, match="--rows"):
        options.rows(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "ATL,ORD", ["ATL", "ORD"]),
        ("string", '"New York, NY",NULL', ["New York, NY", None]),
        ("string", "1..3", ["1..3"]),
        ("integer", "1, 2,NULL", [1, 2, None]),
        ("integer", "1..3", range(1, 4)),
        ("integer", "-2..0", range(-2, 1)),
        ("float", "0.5,1", [0.5, 1.0]),
        ("boolean", "true,FALSE", [True, False]),
        ("date", "2013-01-31", [date(2013, 1, 31)]),
        ("timestamp", "2013-01-31T12:00", [datetime(2013, 1, 31, 12)]),  # noqa: DTZ001  a column without a zone
    ],
)
def test_keys_take_the_type_of_their_column(kind, text, value):
    """The same words are other keys for another column."""
    assert value == keys.typed("column", text, kind)


@pytest.mark.parametrize(
    ("kind", "text"), [("integer", "a"), ("integer", "1.5"), ("float", "x"), ("boolean", "yes"), ("date", "31.1.2013")]
)
def test_keys_of_another_type_are_refused(kind, text):
    """A word that is no value of the column's type is an error that names the type."""
    with pytest.raises(InvalidKeys, match=f"its type, {kind}"):
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
    found = keys.from_file("zone", source, kind, folder=folder, table=str(folder / "data.csv"))
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
        ("nowhere.csv:id", "string", DataError, "no such file"),
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
        keys.from_file("zone", "data.csv:zone", "string", folder=folder, table=str(folder / "dat*.csv"))
