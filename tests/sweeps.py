"""How much a sweep tries: a sample of it in the gate, the whole where `FARTHING_SWEEPS=whole` asks for it.

`FARTHING_SEED=7` has the one generator of questions make others than the gate's.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from hypothesis import seed

WHOLE = os.environ.get("FARTHING_SWEEPS", "sample") == "whole"
SEED = os.environ.get("FARTHING_SEED")

T = TypeVar("T")


def sweep(sample: T, whole: T) -> T:
    """Return how much is tried."""
    return whole if WHOLE else sample


def seeded(test: Callable[[], None]) -> Callable[[], None]:
    """Return a test with the seed of the environment, or as it is."""
    return test if SEED is None else seed(int(SEED))(test)
