"""How much a sweep tries: a sample of it in the gate, the whole where `FARTHING_SWEEPS=whole` asks for it."""

import os
from typing import TypeVar

WHOLE = os.environ.get("FARTHING_SWEEPS", "sample") == "whole"

T = TypeVar("T")


def sweep(sample: T, whole: T) -> T:
    """Return how much is tried."""
    return whole if WHOLE else sample
