"""A public clock: what the server says leaves at its ticks, so that nobody can measure how long it worked."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_WRITTEN: Final = re.compile(r"\s*(\d{1,5}(?:\.\d{1,3})?)\s*(ms|s)\s*")
_LEAST_S: Final = 0.01
_MOST_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PublicClock:
    """Ticks at multiples of a period.

    Guarantee: what waits for `tick` leaves at a multiple of the period, so that its time tells in which period the work
        ended, and no more.
    Proof: it sleeps until the next multiple, from a time that it reads after the work.
    Assumes: the event loop and the network are late by what does not depend on a row.
    Rounds: up, to the next tick.

    Attributes:
        period_s: seconds between two ticks; 0 for none, where nothing waits.
        now: the time in seconds.
        sleep: waits for seconds.

    >>> PublicClock.of("500ms").period_s
    0.5
    """

    period_s: float = 0.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @classmethod
    def of(cls, written: str) -> PublicClock:
        """Return the clock that a setting names, such as "1s" or "500ms"."""
        found = _WRITTEN.fullmatch(written)
        period_s = float(found[1]) * (0.001 if found[2] == "ms" else 1) if found else 0.0
        if not _LEAST_S <= period_s <= _MOST_S:
            raise InvalidOption(
                "the clock cannot be used",
                rule="a time from 10ms to 60s, in ms or s",
                got=repr(written)[:40],
                next_step='clock = "1s"',
            )
        return cls(period_s)

    async def tick(self) -> None:
        """Wait for the next tick."""
        if self.period_s:
            await self.sleep(self.period_s - self.now() % self.period_s)
