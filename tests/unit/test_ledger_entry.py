"""Terms of a ledger, and what tells two of them apart."""

import dataclasses
import os
import subprocess
import sys

import pytest

from farthing.errors import FarthingError, InvalidBudget, LedgerMismatch
from farthing.ledger.entry import Terms
from farthing.ledger.process import Process, this_process

TERMS = Terms("gdp", budget=100, delta=9, keys_delta=3, unit="column:tailnum", description="epsilon=1, delta=1e-06")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"currency": "rdp"}, "currency"),
        ({"budget": 0}, "budget"),
        ({"budget": -1}, "budget"),
        ({"budget": 1.0}, "budget"),
        ({"budget": True}, "budget"),
        ({"budget": 2**62 + 1}, "budget"),
        ({"delta": -1}, "delta"),
        ({"delta": 2**80}, "delta"),
        ({"keys_delta": 10}, "keys_delta"),
        ({"unit": ""}, "unit"),
        ({"unit": "tailnum"}, "unit"),
        ({"unit": "column:"}, "unit"),
    ],
)
def test_impossible_terms_are_refused(change, named):
    """Terms that promise nothing are refused, naming what is wrong and what to do."""
    with pytest.raises(FarthingError, match=named) as refused:
        dataclasses.replace(TERMS, **change)
    assert refused.value.rule
    assert refused.value.next_step


def test_largest_terms_are_accepted():
    """The largest budget and delta are legal."""
    assert 2**62 == dataclasses.replace(TERMS, budget=2**62, delta=2**80 - 1).budget
    with pytest.raises(InvalidBudget):
        dataclasses.replace(TERMS, delta=2)  # keys_delta is part of delta


@pytest.mark.parametrize(
    ("change", "both"),
    [
        ({"currency": "zcdp"}, "currency is gdp, asked for zcdp"),
        ({"budget": 101}, f"budget is {100 / 2**40:.6g}, asked for {101 / 2**40:.6g}"),
        ({"delta": 10}, f"delta is {9 / 2**80:.6g}, asked for {10 / 2**80:.6g}"),
        ({"keys_delta": 4}, f"keys_delta is {3 / 2**80:.6g}, asked for {4 / 2**80:.6g}"),
        ({"unit": "row"}, "unit is column:tailnum, asked for row"),
        ({"unit": "row", "budget": 7}, f"budget is {100 / 2**40:.6g}, asked for {7 / 2**40:.6g}; unit is"),
    ],
)
def test_mismatch_names_both_values(change, both):
    """Every difference is named, with both values."""
    with pytest.raises(LedgerMismatch, match=both):
        TERMS.require(dataclasses.replace(TERMS, **change))


def test_wording_is_no_mismatch():
    """The same budget in other words is the same budget."""
    TERMS.require(dataclasses.replace(TERMS, description="epsilon=1.0, delta=1e-6"))


def test_this_process_is_alive():
    """The process that asks is alive."""
    assert this_process().alive() is True
    assert os.getpid() == this_process().pid


def test_finished_process_is_dead():
    """A process that has ended is dead, also before its parent looks."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = dataclasses.replace(this_process(), pid=child.pid, started="")
    child.wait()

    assert process.alive() is False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs start times")  # noqa: PTH110  no fixture yet
def test_reused_number_is_another_process():
    """A running process with the same number but another start is not the one that reserved."""
    assert dataclasses.replace(this_process(), started="boot/1").alive() is False


def test_process_of_another_machine_is_unknown():
    """Nothing is claimed about processes of other machines."""
    assert Process(1, "another machine", "").alive() is None


def test_process_without_start_time_is_told_by_its_number():
    """Where start times are unknown, the number decides."""
    assert dataclasses.replace(this_process(), started="").alive() is True
    assert dataclasses.replace(this_process(), pid=2**80, started="").alive() is False
