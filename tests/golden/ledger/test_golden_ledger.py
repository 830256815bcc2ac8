"""A ledger file of every format that was ever released opens for ever."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from farthing.errors import LedgerError
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger

HERE = Path(__file__).parent
TERMS = Terms("gdp", 10**12, 10**21, 3, "column:tailnum", "epsilon=1, delta=1e-06")


def fill(ledger):
    """Write the entries of the golden files."""
    first = ledger.reserve(increase=600, fresh=600, question="question 1", version=0, label="COUNT(*)", request="r1")
    ledger.settle(first, 250, lambda _: b"released \x00\xff")
    second = ledger.reserve(increase=30, fresh=90, question="question 1", version=1, label="sharper", request="r2")
    ledger.settle(second, 20, lambda stored: stored + b" twice")
    ledger.fail(ledger.reserve(increase=5, fresh=5, question="question 2", version=0, label="failed", request="r3"))
    ledger.reserve(increase=1, fresh=7, question="question 2", version=0, label="died", request=None)


@pytest.fixture(params=["format_1.sqlite"])
def golden(request, tmp_path):
    return Path(shutil.copy(HERE / request.param, tmp_path / "old.ledger"))


@pytest.mark.parametrize("opened", [lambda path: Ledger.open(path, TERMS), Ledger.inspect], ids=["open", "inspect"])
def test_old_ledger_reads_as_written(golden, opened):
    """Terms, totals, entries and measurements of an old file are what was written."""
    with opened(golden) as ledger:
        ledger.verify()
        assert TERMS == ledger.terms
        assert 0 < ledger.hash_key < 2**64
        assert ledger.spent == 250 + 20 + 5 + 7
        assert Stored(2, b"released \x00\xff twice") == ledger.load("question 1")
        assert [
            ("died", None, "open", 7, None, False),
            ("failed", "r3", "failed", 5, 5, True),
            ("sharper", "r2", "settled", 30, 20, True),
            ("COUNT(*)", "r1", "settled", 600, 250, True),
        ] == [(e.label, e.request, e.state, e.reserved, e.settled, e.exclusive) for e in ledger.history()]
        assert all(datetime(2026, 1, 1, tzinfo=UTC) < entry.opened_at for entry in ledger.history())


def test_old_ledger_goes_on(golden):
    """An old file takes new entries, and keeps its promise."""
    with Ledger.open(golden, TERMS) as ledger:
        ledger.settle(
            ledger.reserve(increase=4, fresh=9, question="question 1", version=2, label="more"),
            4,
            lambda stored: stored,
        )
        assert 286 == ledger.spent
        ledger.verify()
        with pytest.raises(LedgerError):
            ledger.reserve(increase=1, fresh=1, question="question 3", version=0, label="again", request="r1")


if __name__ == "__main__":
    # How format_1.sqlite was made; a new format gets a new file, and the old ones stay.
    with Ledger.open(HERE / "new.sqlite", TERMS) as new, patch("farthing.ledger.rows.this_process") as process:
        process.return_value = Process(1, "golden", "")
        fill(new)
