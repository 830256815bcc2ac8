"""Which process runs which tests: neighbours together, so that what a file sets up and caches is made once.

xdist's own `loadgroup` hands tests out one by one. Then every process sets up the fixtures of every file, waits for the
next name after each of thousands of tests, and the process that hands them out counts what is left anew each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE = 4
"""A batch is one of so many parts of what is left for each process, so that the last ones are single tests."""


def batches(names: Sequence[str], processes: int) -> dict[str, str]:
    """Return the batch of each test: those of one group together, the others by their order, in ever smaller parts.

    >>> list(batches(["test_page@page", *map(str, range(12)), "test_other@page"], 1).values())
    ['page', 'page', '0', '0', '0', '3', '3', '5', '6', '7', '8', '9', '10', '11']
    """
    groups = {name: name.rpartition("@")[2] for name in names if name.rfind("@") > name.rfind("]")}
    alone = [name for name in names if name not in groups]
    found = {}
    start = 0
    while start < len(alone):
        end = start + max(1, (len(alone) - start) // (SHARE * processes))
        found |= dict.fromkeys(alone[start:end], str(start))
        start = end
    return groups | found


class BatchScheduling(LoadGroupScheduling):
    """Hand out batches in the order of the collection, in which groups come first."""

    _batches: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        """Return the batch of a test."""
        if self._batches is None:
            self._batches = batches(next(iter(self.registered_collections.values())), self.numnodes)
        return self._batches[nodeid]
