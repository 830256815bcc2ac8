"""Whole numbers of 128 bits in DuckDB relations: no value decides between an answer and an error."""

import duckdb
import pytest

from farthing import Bounds, Budget, Session
from farthing.engines.opening import arrow_of, open_table, source_of
from farthing.query.schema import Type

LARGEST = {"UHUGEINT": 2**128 - 1, "HUGEINT": 2**127 - 1, "DECIMAL(38,0)": 10**38 - 1}


def relation(value, kind="UHUGEINT"):
    """Return a hundred rows of one to three, and one of this value."""
    sql = f"SELECT (1 + i % 3)::{kind} AS q, i AS who FROM range(100) t(i) UNION ALL SELECT '{value}'::{kind}, 100"
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS {sql}")
    return connection.table("t")


@pytest.mark.parametrize("kind", LARGEST)
@pytest.mark.parametrize("largest", [True, False], ids=["largest", "five"])
def test_one_large_value_changes_no_outcome(kind, largest):
    """Counts, conditions, sums and units: an answer, whatever the value."""
    data = relation(LARGEST[kind] if largest else 5, kind)
    with Session(data, budget=Budget(mu=1000)) as session:
        assert session.count(absolute=5, cap="all").value == pytest.approx(101, abs=20)
        assert session.count(where="q > 3", absolute=0.4, cap="all").value == pytest.approx(1, abs=2)
        assert session.count(where="q < 0", absolute=0.4, cap="all").value == pytest.approx(0, abs=2)
        assert session.sum("q", lower=0, upper=3, absolute=5, cap="all").value == pytest.approx(202, abs=20)
    with Session(data, budget=Budget(mu=1000), unit="q", bounds=Bounds(max_rows=50)) as session:
        assert session.count(absolute=20, cap="all").value == pytest.approx(101, abs=80)


def test_unsigned_numbers_of_128_bits_are_read_as_doubles():
    """Values from 2^127 on came as negative ones; other columns stay as they are."""
    data = relation(2**128 - 1)
    assert {"q": Type.FLOAT, "who": Type.INTEGER} == dict(open_table(data).schema.columns)
    assert max(arrow_of(source_of(data)).column("q").to_pylist()) == float(2**128 - 1)
