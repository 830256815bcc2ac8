"""The one place where the experiments draw chance: a statistical generator, seeded, so that figures can be repeated.

Nothing here protects anybody. The counts of the experiments are made up or public, and what is drawn about them is a
simulation of what a release would show. Releases draw their noise in `farthing.mechanisms`, never from here.
"""

from __future__ import annotations

from zlib import crc32

from numpy.random import PCG64, Generator, SeedSequence


def stream(seed: int, *labels: str) -> Generator:
    """Return the generator of one part of an experiment: the same for the same seed and labels, else independent.

    >>> float(stream(1, "equal").standard_normal()) == float(stream(1, "equal").standard_normal())
    True
    """
    return Generator(PCG64(SeedSequence([seed, *(crc32(label.encode()) for label in labels)])))


__all__ = ["Generator", "stream"]
