"""An audit that may be looked at after each batch, and stopped when it has seen enough."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final

from farthing.audit.bounds import CONFIDENCE, LowerBound, checked
from farthing.audit.rates import Rates
from farthing.errors import InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

STEPS: Final = 60


class Looks:
    """Rates of one event, bounded at all times at once: looking early or often costs nothing in validity.

    Args:
        event: tells of an array of outputs which are in the event, one truth value an output; it is fixed before the
            first of them is drawn.
        delta: the delta at which epsilon is bounded.
        confidence: the chance that every bound, after every batch, is one.

    Guarantee: with the confidence, all bounds ever returned hold together.
    Proof: docs/proofs/audit.bounds.md: a beta mixture of likelihood ratios is a martingale, and Ville's inequality
        [HowardRMS21].
    Assumes: independent runs; how many are drawn next may depend on all that was seen.
    Rounds: the search stops outside of the interval.

    >>> import numpy as np
    >>> looks = Looks(lambda outputs: outputs > 0.5)
    >>> for _ in range(3):
    ...     found = looks.add(np.zeros(200), np.ones(200))
    >>> bool(found.epsilon_lower > 3)
    True
    """

    __slots__ = ("_confidence", "_counts", "_delta", "_event")

    def __init__(
        self,
        event: Callable[[NDArray[Any]], NDArray[np.bool_]],
        *,
        delta: float = 0.0,
        confidence: float = CONFIDENCE,
    ) -> None:
        self._confidence = checked(confidence, delta)
        self._delta = delta
        self._event = event
        self._counts = [0, 0, 0, 0]

    def add(self, without: Any, present: Any) -> LowerBound:
        """Count a batch of outputs on D and on D', and return what all batches so far tell."""
        import numpy as np

        pair = np.asarray(without), np.asarray(present)
        counted = [(self._inside(outputs), len(outputs)) for outputs in pair]
        for place, (inside, drawn) in enumerate(counted):
            self._counts[2 * place] += inside
            self._counts[2 * place + 1] += drawn
        alarms, absent, hits, there = self._counts
        significance = (1 - self._confidence) / 2
        rates = Rates(always_lower(hits, there, significance), always_upper(alarms, absent, significance))
        return LowerBound(
            rates.epsilon(self._delta),
            self._delta,
            self._confidence,
            (absent, there),
            "the event that was fixed",
            rates,
        )

    def _inside(self, outputs: NDArray[Any]) -> int:
        """Return how many outputs are in the event; refuse an event that does not say so of each."""
        import numpy as np

        found = np.asarray(self._event(outputs))
        if outputs.ndim == 0 or found.shape != outputs.shape[:1] or found.dtype != np.bool_:
            raise InvalidTarget(
                "this is not an event",
                rule="one truth value an output",
                got=f"{found.dtype} of shape {found.shape} for outputs of shape {outputs.shape}",
                next_step="Looks(lambda outputs: outputs > 0)",
            )
        return int(np.count_nonzero(found))


def always_lower(hits: int, runs: int, significance: float) -> float:
    """Return a bound that is ever above the chance, over all numbers of runs, with at most this significance."""
    if not hits:
        return 0.0
    low, high = 0.0, hits / runs
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _evidence(hits, runs, middle) >= -log(significance):
            low = middle
        else:
            high = middle
    return low


def always_upper(hits: int, runs: int, significance: float) -> float:
    """Return a bound that is ever below the chance, over all numbers of runs, with at most this significance."""
    return 1 - always_lower(runs - hits, runs, significance)


def _evidence(hits: int, runs: int, rate: float) -> float:
    """Return the log of the evidence against a rate: all rates mixed evenly, over this one."""
    from scipy.special import betaln

    if rate <= 0:
        return float("inf")
    return (
        float(betaln(1 + hits, 1 + runs - hits)) - hits * log(rate) - (runs - hits) * (log(1 - rate) if rate < 1 else 0)
    )
