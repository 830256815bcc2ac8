"""Losses as plain values and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.privacy.loss import Booked


def state(loss: Booked, delta: float) -> dict[str, float]:
    """Return a loss as plain values: its parameter, and its epsilon at delta.

    >>> from farthing.privacy.loss import Pure
    >>> state(Pure(0.5), 0.0)
    {'epsilon': 0.5, 'delta': 0.0}
    """
    epsilon = loss.epsilon(delta) if delta else loss.value
    return {loss.parameter: loss.value, "epsilon": epsilon, "delta": delta}


def said(loss: Booked, delta: float) -> str:
    """Return a loss in words: its parameter, and its epsilon at delta.

    >>> from farthing.privacy.loss import Pure
    >>> said(Pure(0.5), 0.0)
    'Pure(epsilon=0.5)'
    """
    return f"{loss!r}" + (f" = epsilon {loss.epsilon(delta):.4g} at delta {delta:g}" if delta else "")
