"""How much work a call is, counted and not timed: the same on every machine, however busy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions were called, Python's and those of C, while `work` ran in this thread.

    What is done for all numbers at once is a few calls; what is done for each is one call or more for each.
    """
    count = 0

    def seen(_frame: object, event: str, _what: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
