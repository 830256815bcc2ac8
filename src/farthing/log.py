"""What Python's `logging` is told, on the logger "farthing": what became of entries of the books, and nothing else.

No question, key, value, interval or price is logged, so a log may go where answers may not. `log` is the one door.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Final

LOGGER: Final = logging.getLogger("farthing")
LOGGER.addHandler(logging.NullHandler())


class Event(Enum):
    """What is logged: at which level, in which words; %d is the number of an entry, as `farthing history` shows it.

    Guarantee: whatever is asked, a record of the log is one of these texts, with the number of an entry.
    Proof: [design, errors are outputs] an entry is charged for before its rows are read, so that there is one, and
        whether it ended in an answer, are in the books already, for all who may read them.
    Assumes: nothing else of the library logs, but the server, on "farthing.server".
    Rounds: nothing.
    """

    OPENED = (logging.DEBUG, "a session was opened")
    FREE = (logging.INFO, "answered free of charge")
    WAITED = (logging.INFO, "waited for another who asks the same")
    BOOKED = (logging.INFO, "entry %d was answered and charged")
    ENDED = (logging.WARNING, "entry %d ended without an answer")

    @property
    def level(self) -> int:
        """How much it matters."""
        return self.value[0]

    @property
    def words(self) -> str:
        """What is logged."""
        return self.value[1]


def log(event: Event, *entry: int) -> None:
    """Log what happened, with the number of the entry that it happened to.

    >>> log(Event.BOOKED, 3)
    """
    LOGGER.log(event.level, event.words, *entry)
