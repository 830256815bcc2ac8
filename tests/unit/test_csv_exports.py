"""CSV files as they come: other encodings, decimal commas, words for nothing, and what `init` proposes for them."""

from __future__ import annotations

import math

import pytest
from typer.testing import CliRunner

import farthing
from farthing.cli.app import app
from farthing.engines.opening import source_of
from farthing.engines.reading.guess import guess
from farthing.errors import DataError
from farthing.query.reading import ENCODINGS

NUMBERS = {"1,5": 1.5, "1.234,56": 1234.56, "-0,25": -0.25, "12": 12.0, "1.234": 1234.0, ",5": 0.5, "2,": 2.0,
           "1e3": 1e3, "1.5": None, "1,5,6": None, "1.23,4": None, "12.34.567": None, "inf": None,
           "": None, "x": None}  # fmt: skip
WHOLE = {"1.234": 1234, "-7": -7, "12": 12, "1,5": None, "1.5": None, "12.34": None, "99999999999999999999": None}


def column(path, name="x", **how):
    """Return the values of a column."""
    return source_of(farthing.Csv(path, **how)).load((name,)).read_all().column(name).to_pylist()


@pytest.mark.parametrize(("kind", "told"), [("float", NUMBERS), ("integer", WHOLE)])
def test_decimal_commas(tmp_path, kind, told):
    """A comma before the decimals, points between thousands alone: what is neither is NULL, and 1.5 is not 15."""
    file = tmp_path / "a.csv"
    file.write_text("y;x\n" + "".join(f"a;{text}\n" for text in told))

    assert list(told.values()) == column(file, delimiter=";", decimal=",", columns={"x": kind})


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"thousands": ","}, {"1,234": 1234.0, "1,234.5": 1234.5, "12": 12.0, "1,5": None, "1,23,456": None}),
        ({"thousands": "'"}, {"1'234.50": 1234.5, "-12'345'678": -12345678.0, "1,5": None, "1'5": None}),
        ({"thousands": " ", "decimal": ","}, {"1 234,5": 1234.5, "1\u202f234\u00a0567": 1234567.0, "1.234": None}),
        ({"thousands": "", "decimal": ","}, {"1.234": None, "1,25": 1.25}),
        ({}, {"1,234": None, "1.234": 1.234}),
    ],
)
def test_marks_between_thousands(tmp_path, how, told):
    """Only in their places: before each three digits that are followed by three more, the decimals or nothing."""
    file = tmp_path / "a.csv"
    file.write_text("x\ty\n" + "".join(f"{text}\t1\n" for text in told), encoding="utf-8")

    assert list(told.values()) == column(file, delimiter="\t", columns={"x": "float"}, **how)


@pytest.mark.parametrize(
    ("texts", "kind", "marks"),
    [
        (["1,234", "500", "12,345"], "integer", (".", ",")),
        (["1,234", "7,250", "3,125"], "string", (".", None)),  # thousands, or decimals: nobody can tell
        (["1,234", "7,25", "3,125"], "float", (",", None)),
        (["1.234", "500", "12.345"], "integer", (",", None)),
        (["1.234", "2.5", "12.345"], "float", (".", None)),
        (["1.234,50", "2,5", "12"], "float", (",", None)),
        (["1,234.50", "2.5", "12"], "float", (".", ",")),
        (["1'234.50", "2.5", "12"], "float", (".", "'")),
        (["1 234,50", "2,5", "12"], "float", (",", " ")),
        (["0123", "4567", "8901"], "string", (".", None)),  # codes
        (["x", "1,234.50", "2"], "string", (".", None)),
        (["13/01/20", "1/2/21"], "date", (".", None)),
        (["01/02/2020", "03/04/2020"], "string", (".", None)),  # day or month first
        (["1/13/2020 7:05", "12/1/2020 11:00"], "timestamp", (".", None)),
        (["13.1.2020 7:05:01", "1.12.2020 11:00:00"], "timestamp", (".", None)),
    ],
)
def test_numbers_and_times_are_proposed_where_they_are_sure(tmp_path, texts, kind, marks):
    """What could be meant otherwise is text; a header that is repeated among the rows changes nothing."""
    file = tmp_path / "a.csv"
    file.write_text(
        "value\tplain\n" + "".join(f"{text}\t1\n" for text in texts * 70) + "value\tplain\n", encoding="utf-8"
    )
    reading = guess(file, str(file))
    found = column(file, "value", **reading.settings())

    assert (kind, "integer") == tuple(reading.columns.values())
    assert marks == (reading.decimal, reading.thousands)
    assert 70 * len(texts) + (kind == "string") == sum(each is not None for each in found)


def test_years_of_two_digits_are_of_these_centuries(tmp_path):
    """13/01/20 is in 2020, not in the year 20."""
    file = tmp_path / "a.csv"
    file.write_text("day\n" + "13/01/20\n1/2/21\n" * 20)

    assert {2020, 2021} == {day.year for day in column(file, "day", **guess(file, str(file)).settings())}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("x;y\n1;2\n".encode("utf-16"), "UTF-16"),
        ("x;y\n1;2\n".encode("utf-16-le"), "UTF-16"),
        (b"x,y\r1,2\r", "end with CR alone"),
        (b"PK\x03\x04\x14\x00", "a workbook"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PAR1\x15\x04\x00", "is Parquet"),
        (b"sep=;\nx;y\n1;2\n", "names the separator"),
    ],
)
def test_what_a_header_shows_to_be_no_csv(tmp_path, data, words):
    """The first line is public: what it shows the file to be is named, with what to do."""
    file = tmp_path / "a.csv"
    file.write_bytes(data)
    with pytest.raises(DataError, match=words):
        source_of(farthing.Csv(file))


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.xlsx", "workbook"), ("a.jsonl", "JSON"), ("a.feather", "Arrow"), ("a.zip", "archive"), ("a.db", "database")],
)
def test_other_formats_are_refused_by_name(tmp_path, name, words):
    """Whatever is in them."""
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(DataError, match=words):
        source_of(tmp_path / name)


@pytest.mark.parametrize("encoding", [each for each in ENCODINGS if each != "utf-8"])
def test_every_byte_is_a_letter(tmp_path, encoding):
    """No line is left out for a byte of its own, and each is read alone: all 250 bytes that do not structure lines."""
    bytes_ = [bytes([each]) for each in range(1, 256) if each not in b'\n\r",']
    file = tmp_path / "a.csv"
    file.write_bytes(b"x,y\n" + b"".join(each + b",1\n" for each in bytes_))
    found = column(file, encoding=encoding)

    assert len(bytes_) == len(found)
    assert all(each.decode(encoding.replace("windows-", "cp")) == text
               for each, text in zip(bytes_, found, strict=True)
               if each.decode(encoding.replace("windows-", "cp"), "ignore"))  # fmt: skip
    assert len(bytes_) > len(column(file))  # as UTF-8, lines are left out


def test_a_reading_changes_the_identity_only_where_it_is_said(tmp_path):
    """Books of files that are read as before go on; a file that is read otherwise holds other rows."""
    file = tmp_path / "a.csv"
    file.write_text("x\n1\n")
    plain, same, latin, comma = (
        source_of(farthing.Csv(file, **how)).identity()
        for how in ({}, {"encoding": "utf-8", "decimal": "."}, {"encoding": "latin-1"}, {"decimal": ","})
    )

    assert plain == same
    assert len({str(each) for each in (plain, latin, comma)}) == 3
    assert "encoding" not in repr(farthing.Csv(file))


def exported(folder):
    """Write what a German office exports."""
    file = folder / "export.csv"
    rows = "".join(
        f"u{n};{'Köln' if n % 2 else 'Bonn'};{n % 90},{n % 10}0;{'n/a' if n % 7 == 0 else n}\n" for n in range(400)
    )
    file.write_bytes(f"user_id;ort;größe;zahl\n{rows}".encode("latin-1"))
    return file


@pytest.mark.thorough
def test_a_proposal_reads_the_whole_file(tmp_path):
    """Encoding, separator, decimals and words for nothing; a byte beyond the first quarter of a megabyte counts too."""
    file = exported(tmp_path)
    reading = guess(file, str(file))
    late = tmp_path / "late.csv"
    late.write_bytes(b"x\n" + b"1\n" * 200_000 + b"\xf6\n")

    assert ("windows-1252", ",", ";", ("", "n/a")) == (
        reading.encoding, reading.decimal, reading.delimiter, reading.null)  # fmt: skip
    assert {"user_id": "string", "ort": "string", "größe": "float", "zahl": "integer"} == dict(reading.columns)
    assert 400 == len(column(file, "ort", **reading.settings()))
    assert math.isclose(sum(n % 90 + n % 10 / 10 for n in range(400)), sum(column(file, "größe", **reading.settings())))
    assert "windows-1252" == guess(late, str(late)).encoding


def test_words_for_nothing_are_proposed_for_numbers_alone(tmp_path):
    """NA may be a country: where it stands in text, it stays."""
    file = tmp_path / "a.csv"
    file.write_text("country,n\n" + "NA,1\n" * 50 + "DE,-\n" * 3)

    assert ("", "-") == guess(file, str(file)).null


@pytest.mark.parametrize("how", [{"encoding": "utf-16"}, {"decimal": ";"}])
def test_other_settings_are_refused(how):
    """Only encodings in which a line is a line, and the two marks."""
    with pytest.raises(DataError, match="wrong"):
        farthing.Csv("a.csv", **how)


@pytest.mark.thorough
def test_init_asks_whose_privacy(tmp_path, monkeypatch):
    """Beside a column that names people, rows are units only where that is said; then the file is read as proposed."""
    exported(tmp_path)
    monkeypatch.chdir(tmp_path)
    common = ["init", "export.csv", "--epsilon", "1", "--delta", "1e-6"]
    refused = CliRunner().invoke(app, common)
    done = CliRunner().invoke(app, [*common, "--unit", "row"])

    assert 2 == refused.exit_code
    assert "--unit user_id protects each of them" in " ".join(refused.output.split()) + str(refused.exception)
    assert 0 == done.exit_code, done.output
    text = (tmp_path / "farthing.toml").read_text()
    assert 'encoding = "windows-1252"' in text
    assert 'decimal = ","' in text
