"""Once noise may have been drawn, an ask waits for books whose server was lost: what was paid for is not given up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from farthing.errors import LedgerLost

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""How long an ask that has begun to measure waits for the server of its books to come back."""

_PAUSE_S: Final = 0.25
"""How long it sleeps between two tries."""


def patiently(work: Callable[[], T]) -> T:
    """Return what some work on the books comes to; where their server is lost, try again until it is back.

    Args:
        work: something that may be done twice: it writes nothing that is there already.

    Raises:
        LedgerLost: the server stayed away.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return work()
        except LedgerLost as error:
            lost = error
        if time.monotonic() >= deadline:
            raise lost
        time.sleep(_PAUSE_S)
