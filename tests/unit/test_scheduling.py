"""Tests are handed out whole: each once, groups together, neighbours together, and single ones at the end."""

from itertools import groupby

import pytest
from scheduling import batches

NAMES = [f"a.py::test_{n}" for n in range(1_000)] + ["b.py::test_x[a@b]"] + [f"c.py::test_{n}@page" for n in range(5)]


@pytest.mark.parametrize("processes", [1, 2, 16])
def test_every_test_is_in_one_batch(processes):
    """Batches are runs of the collection, ever smaller; a group is one batch, whatever its size."""
    found = batches(NAMES, processes)
    sizes = [len(list(run)) for _, run in groupby(found[name] for name in NAMES)]

    assert set(found) == set(NAMES)
    assert len(sizes) == len(set(found.values()))
    assert sizes[-1] == 5
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert sizes[0] == 1_001 // (4 * processes)
    assert sizes[-2] == 1
    assert found["b.py::test_x[a@b]"] != "b]"
