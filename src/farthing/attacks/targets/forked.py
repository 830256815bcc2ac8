"""A target in a process that was forked: what a web server with several workers is to an attacker.

Noise that comes from a generator in the memory of the process is the same in every fork. An attacker who is served by
two workers subtracts two answers, and no noise is left.
"""

from __future__ import annotations

import json
import os
import select
import signal
import warnings
from typing import TYPE_CHECKING, NoReturn

from farthing.attacks.target import AttackTarget, Claim, People, Question, Refused, Speaks
from farthing.attacks.targets.adapters import said_by
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

_BYTES = 1 << 16


class Forked:
    """Answer every question in a new fork of this process, with the state that the target has now.

    POSIX only. A budget is not carried back from the fork either: for a ledger in memory that is a finding of its own.

    Args:
        target: what is asked in the fork.
        timeout_s: how long an answer may take; then the fork is ended.
    """

    def __init__(self, target: AttackTarget, timeout_s: float = 30.0) -> None:
        if not hasattr(os, "fork"):
            raise DataError(
                "this system has no fork", rule="POSIX", got=os.name, next_step="attack the target as it is"
            )
        self.target, self.timeout_s, self.name = target, timeout_s, f"{target.name}, forked"

    @property
    def people(self) -> People:
        """The target's people."""
        return self.target.people

    @property
    def claim(self) -> Claim | None:
        """The target's claim."""
        return self.target.claim

    @property
    def speaks(self) -> Speaks:
        """The target's language."""
        return self.target.speaks

    def ask(self, question: Question, /) -> float | Refused:
        """Ask in a fork."""
        return in_fork(lambda: self.target.ask(question), self.timeout_s)


def in_fork(answer: Callable[[], float | Refused], timeout_s: float) -> float | Refused:
    """Return what a call says in a fork of this process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process: the fork only asks
        child = os.fork()
    if not child:
        _speak(answer, writing)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], timeout_s)
    said = os.read(reading, _BYTES) if ready else b""
    os.close(reading)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not said:
        return Refused(f"no answer in {timeout_s:g} s" if not ready else "the fork died", "failure")
    kind, value = json.loads(said)
    return float(value) if kind == "answer" else Refused(value, kind)


def _speak(answer: Callable[[], float | Refused], writing: int) -> NoReturn:
    """Say the answer into the pipe, and end the fork without running what the parent would run at its end."""
    try:
        said = said_by(answer)
        facts = [said.why, said.reason] if isinstance(said, Refused) else ["answer", said]
        os.write(writing, json.dumps(facts).encode())
    finally:
        os._exit(0)
