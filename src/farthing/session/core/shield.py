"""What leaves a measurement besides its answer: no frame in which an exact number stood.

The frames of a traceback keep their local variables, which debuggers, error trackers and test runners print. So errors
leave with the frames of the asker's own code only: those above the measurement, and those of a callback that raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")
P = TypeVar("P")


def shielded(work: Callable[..., T], *given: object) -> T:
    """Return what some work on exact numbers returns; what it raises leaves without its frames, cause and context.

    Guarantee: no frame of the work is reachable from what is raised, but for those of a callback and, above it, frames
        that hold exact numbers in a `Sealed` box only.
    Proof: the error is raised again, outside of the handler and of the work; tests/unit/test_shield.py walks all of it.
    Assumes: callbacks are called by `hand_over`, and by functions that hold no exact number themselves.
    Rounds: nothing.
    """
    try:
        return work(*given)
    except BaseException as error:  # noqa: BLE001  # an interrupt has frames too
        problem = error
    raise _bare(problem)


def hand_over(callback: Callable[[P], None], seen: P) -> None:
    """Call the asker's own function: its frames, and those below it, stay in what it raises."""
    callback(seen)


def _bare(error: BaseException) -> BaseException:
    """Return an error with the frames of a callback only; without one, with no frames, no cause and no context."""
    trace = _after(error.__traceback__)
    if trace is None:
        error.__cause__ = error.__context__ = None
    return error.with_traceback(trace)


def _after(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that is the callback's."""
    while trace is not None:
        if trace.tb_frame.f_code is hand_over.__code__:
            return trace.tb_next
        trace = trace.tb_next
    return None
