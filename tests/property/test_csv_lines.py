"""Each line of a CSV is read by itself: whatever another line is, a table is the rows of its lines, one by one."""

import csv
import gzip
import io
import itertools
import random
from datetime import datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sweeps import sweep

import farthing
from farthing.engines.opening import arrow_of, source_of
from farthing.engines.reading import lines as reader
from farthing.query.reading import MAX_LINE

COLUMNS = {"n": "integer", "x": "float", "day": "date", "at": "timestamp", "ok": "boolean"}
HEADER = b"name,n,x,day,at,ok\n"
GOOD = (
    b"ann,1,2.5,2013-01-02,2013-01-02 03:04:05,true\n",
    b"bob,,,,,\r\n",
    b'"o\'hara, ""kim""",-7,1e3,1999-12-31,2013-01-02T03:04:05.5Z,false\r\n',
    "zoë,9223372036854775807,-0.0,0001-01-01,9999-12-31 23:59:59,TRUE\n".encode(),
    b'"","12","12","2013-02-28","2013-02-28","f"\n',
    b"odd,1.5,much,2013-02-30,noon,perhaps\n",
)
HOSTILE = (
    b'"\n',
    b'"stray,1,2,2013-01-13,,\n',
    b'stray",1,2,2013-01-13,,\n',
    b'a"b,1,2,,,\n',
    b'"a"b,1,2,,,\n',
    b'"a""",1,2,,,"\n',
    b"\r\n",
    b"\n",
    b"a\rb,1,2,,,\n",
    b"\ra,1,2,,,\n",
    b"a,1,2,,,\r\r\n",
    b"\xff\xfe,1,2,,,\n",
    b"\xed\xa0\x80,1,2,,,\n",
    b"\xc3,1,2,,,\n",
    b"\xc3\xa9,\xf0\x9f,2,,,\n",
    b"a\x00b,1,2,,,\n",
    b"\x00\n",
    b"," * 5000 + b"\n",
    b"a,1\n",
    b"a,1,2,13/01/2013,13.01.2013 10:00,x\n",
    b"a,99999999999999999999,1e999,99999-01-01,infinity,2\n",
    b"a\\,1,2,,,\n",
    b"#,1,2,,,\n",
    b"NULL,NULL,nan,-infinity,epoch,null\n",
    b'""""""""\n',
    b"name,n,x,day,at,ok\n",
    b"\xef\xbb\xbfann,1,2,,,\n",
)
LONG = (b"a" * (3 << 20) + b",1,2,,,\n", b'"' * (3 << 20) + b"\n", b"a" * MAX_LINE + b"\n", b"\xff" * (2 << 20) + b"\n")
PIECES = st.sampled_from(
    [
        b'"',
        b'""',
        b",",
        b";",
        b"\r",
        b"\x00",
        b"\\",
        b"'",
        b"a",
        b"7",
        b"2013-01-13",
        b"\xff",
        b"\xc3",
        b"\xc3\xa9",
        b" ",
    ]
)
ANY = st.lists(PIECES, max_size=14).map(lambda parts: b"".join(parts) + b"\n") | st.binary(max_size=30).map(
    lambda data: data.replace(b"\n", b"") + b"\n"
)
LINES = st.lists(st.sampled_from(GOOD + HOSTILE) | ANY, max_size=8)


def read(folder, data, **reading):
    """Return the rows of a CSV of these bytes."""
    path = folder / "table.csv"
    path.write_bytes(data)
    return rows(farthing.Csv(path, **({"columns": COLUMNS} | reading)))


def rows(table):
    """Return the rows of a table as text: NaN is not itself."""
    return [repr(row) for row in arrow_of(source_of(table)).to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for all examples."""
    return tmp_path_factory.mktemp("lines")


@pytest.mark.thorough
@settings(max_examples=sweep(12, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(before=LINES, hostile=st.sampled_from(HOSTILE) | ANY, after=LINES, size=st.sampled_from([16, 61, 256, 1 << 22]))
@example(before=list(GOOD), hostile=HOSTILE[0], after=list(GOOD), size=64)
def test_a_line_adds_at_most_its_own_row(folder, before, hostile, after, size):
    """With a line and without it, and alone: the others are read the same, wherever blocks are cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK", size)
        own = read(folder, HEADER + hostile)
        first, last = (read(folder, HEADER + b"".join(part)) for part in (before, after))
        whole = read(folder, HEADER + b"".join([*before, hostile, *after]))

    assert len(own) <= 1
    assert first + own + last == whole


@pytest.mark.parametrize("hostile", [*HOSTILE, *LONG], ids=range(len(HOSTILE) + len(LONG)))
@pytest.mark.parametrize("place", sweep([3], [0, 3, 6]))
def test_a_hostile_line_anywhere(folder, hostile, place):
    """The good lines stay as they are, and in order, in every place of the hostile one."""
    kept = read(folder, HEADER + b"".join(GOOD))
    found = read(folder, HEADER + b"".join([*GOOD[:place], hostile, *GOOD[place:]]))

    assert len(kept) == len(GOOD)
    assert found in (kept, kept[:place] + read(folder, HEADER + hostile) + kept[place:])


@pytest.mark.parametrize("hostile", LONG, ids=range(len(LONG)))
def test_a_long_line_is_dropped_alone(folder, hostile):
    """Three megabytes in a field, quotes or no text at all, over several blocks or in one."""
    assert [] == read(folder, HEADER + hostile)
    assert read(folder, HEADER + GOOD[0]) * 2 == read(folder, HEADER + GOOD[0] + hostile + GOOD[0])


@settings(max_examples=sweep(25, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00")), min_size=3, max_size=3)
    ),
    style=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_csv_writers_write_is_read_back(folder, table, style, end, mark):
    """Any text without line breaks comes back from the standard library's writer; empty text is NULL."""
    text = io.StringIO()
    csv.writer(text, quoting=style, lineterminator=end, delimiter=mark).writerows([["a", "b", "c"], *table])
    found = read(folder, text.getvalue().encode(), columns={}, delimiter=mark)

    assert [repr(dict(zip("abc", (cell or None for cell in row), strict=True))) for row in table] == found


QUOTES, NULLS = ('"', "'", ""), (("",), ("", "NA"), ("-", "null", "0"))
DATES = (None, "%d/%m/%Y", "%m/%d/%y", "%Y%m%d")
TIMESTAMPS = (None, "%d/%m/%Y %H:%M", "%m/%d/%y %I:%M %p", "%Y%m%d%H%M%S")
KINDS = ("integer", "float", "boolean", "date", "timestamp", "string")
MOMENTS = (datetime(2013, 2, 3, 4, 5), datetime(2013, 1, 13, 16, 7, 8), datetime(2000, 2, 29))  # noqa: DTZ001  # no zone
ODD = ("", "NA", "-", "null", "0", "nan", "1e999", "2013-13-01", "31/02/2013", "x y")


def readings():
    """Yield every quote, null words and formats, and in turn every type in every column."""
    for number, (quote, null, dates, at) in enumerate(itertools.product(QUOTES, NULLS, DATES, TIMESTAMPS)):
        kinds = KINDS[number % 6 :] + KINDS[: number % 6]
        columns = dict(zip("abcdef", kinds, strict=True))
        yield {"quote": quote, "null": null, "dates": dates, "timestamps": at, "columns": columns}


def declared_lines(reading, draw):
    """Return lines of fields that fit their column, or are odd, some in quotes, some with a quote out of place."""
    quote, lines = reading["quote"], []
    for _ in range(24):
        moment = draw.choice(MOMENTS)
        fits = {"integer": "-7", "float": "2.5", "boolean": "true", "string": "a", "date": "", "timestamp": ""}
        fits["date"] = moment.strftime(reading["dates"] or "%Y-%m-%d")
        fits["timestamp"] = moment.strftime(reading["timestamps"] or "%Y-%m-%d %H:%M:%S")
        fields = [fits[kind] if draw.random() < 0.8 else draw.choice(ODD) for kind in reading["columns"].values()]
        fields = [quote + text + quote if draw.random() < 0.3 else text for text in fields]
        fields[draw.randrange(6)] += draw.choice(["", "", "", quote, "\r", '"', "'"])
        lines.append(",".join(fields).encode() + b"\n")
    return lines


@pytest.mark.thorough
def test_no_declared_reading_lets_a_line_change_another(folder):
    """Every quote, null words, format of dates and of timestamps, and every type: halves and the other way round."""
    draw, header, dates = random.Random(20_130_113), b"a,b,c,d,e,f\n", 0
    for reading in list(readings())[:: sweep(4, 1)]:
        lines = declared_lines(reading, draw)
        whole, first, last, turned = (
            read(folder, header + b"".join(part), **reading)
            for part in (lines, lines[:12], lines[12:], list(reversed(lines)))
        )
        assert whole == first + last == turned[::-1], reading
        dates += sum("datetime.date(" in row and "datetime.datetime(" in row for row in whole)

    assert dates > sweep(36, 144) * 8


def test_values_are_read_in_their_types_or_null(folder):
    """A value of another form is NULL, and its line stays."""
    found = read(folder, HEADER + GOOD[0] + GOOD[-1])

    assert found[0].startswith("{'name': 'ann', 'n': 1, 'x': 2.5, 'day': datetime.date(2013, 1, 2)")
    assert found[1] == "{'name': 'odd', 'n': None, 'x': None, 'day': None, 'at': None, 'ok': None}"


def test_declared_formats_nulls_and_marks(folder):
    """Days first, semicolons, single quotes and NA are read as they are declared, and not found out."""
    data = b"day;at;who\n03/02/2013;03/02/2013 10:30;'a;b'\nNA;;NA\n13/13/2013;;x\n"
    found = read(
        folder,
        data,
        columns={"day": "date", "at": "timestamp"},
        delimiter=";",
        quote="'",
        null=("", "NA"),
        dates="%d/%m/%Y",
        timestamps="%d/%m/%Y %H:%M",
    )

    assert found == [
        "{'day': datetime.date(2013, 2, 3), 'at': datetime.datetime(2013, 2, 3, 10, 30), 'who': 'a;b'}",
        "{'day': None, 'at': None, 'who': None}",
        "{'day': None, 'at': None, 'who': 'x'}",
    ]


def test_packed_files_marks_of_order_and_tabs(folder):
    """A gzip file, a byte order mark, and a tab for .tsv are told by the name or the first bytes."""
    (folder / "a.tsv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfa\tb\r\n1\t2\r\n3\t4"))

    assert rows(folder / "a.tsv.gz") == ["{'a': '1', 'b': '2'}", "{'a': '3', 'b': '4'}"]


def test_without_a_declaration_everything_is_text(folder):
    """No row decides a type, and so none changes one."""
    (folder / "plain.csv").write_bytes(b"n,day\n1,2013-01-02\n")

    assert rows(folder / "plain.csv") == ["{'n': '1', 'day': '2013-01-02'}"]


@pytest.mark.parametrize(
    ("data", "reading", "words"),
    [
        (b"\n1,2\n", {}, "no header"),
        (b'a,"b\n1,2\n', {}, "no header"),
        (b"\xff,b\n1,2\n", {}, "no header"),
        (b"a,A\n1,2\n", {}, "two columns have the same name"),
        (b"a,b\n1,2\n", {"columns": {"c": "integer"}}, "has no column 'c'"),
        (b"a,b\n", {"columns": {"a": "number"}}, "type of 'a'"),
        (b"a,b\n", {"delimiter": ",,"}, "delimiter"),
        (b"a,b\n", {"delimiter": '"'}, "quote"),
        (b"a,b\n", {"null": "NA"}, "null"),
        (b"a,b\n", {"dates": "day first"}, "dates"),
    ],
)
def test_what_is_no_reading_is_refused(folder, data, reading, words):
    """Headers and settings are public, so that errors may speak of them."""
    with pytest.raises(farthing.DataError, match=words):
        read(folder, data, **({"columns": {}} | reading))


def test_files_of_one_table_share_their_header(folder):
    """Two files with other columns are no table; with the same ones they are."""
    for name, text in (("p1.csv", "a,b\n1,2\n"), ("p2.csv", "a,b\n3,4\n"), ("q2.csv", "b,a\n3,4\n")):
        (folder / name).write_text(text)

    assert rows(folder / "p?.csv") == ["{'a': '1', 'b': '2'}", "{'a': '3', 'b': '4'}"]
    (folder / "q1.csv").write_text("a,b\n1,2\n")
    with pytest.raises(farthing.DataError, match="different headers"):
        rows(folder / "q?.csv")
