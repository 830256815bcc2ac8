"""Coins that can be tossed again: the attacker's choices, the drawn secrets and the noise of toy targets.

Nothing here protects anybody. An attack that cannot be repeated cannot be argued about, so all of its chance comes from
one seed, through a hash: the same seed is the same attack under every version of every library, and streams with
different labels are independent, so that the queries of seed 0 know nothing of the secrets of seed 0.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class Coins:
    """A stream of chance made of a seed and labels, by SHAKE-256 in counter mode.

    Args:
        seed: any whole number; None draws one from the operating system.
        labels: what the stream is for; streams with different labels are independent.

    >>> Coins(0, "queries").bits(6).tolist() == Coins(0, "queries").bits(6).tolist()
    True
    >>> Coins(0, "queries").bits(64).tolist() == Coins(0, "secrets").bits(64).tolist()
    False
    """

    seed: int | None
    labels: tuple[object, ...]
    _key: bytes = field(repr=False)
    _block: int = field(default=0, repr=False)

    def __init__(self, seed: int | None, *labels: object) -> None:
        self.seed, self.labels, self._block = seed, labels, 0
        start = os.urandom(32).hex() if seed is None else str(int(seed))
        self._key = hashlib.sha256(repr((start, *map(str, labels))).encode()).digest()

    def bytes(self, count: int) -> bytes:
        """Return the next bytes of the stream."""
        self._block += 1
        return hashlib.shake_256(self._key + self._block.to_bytes(16, "big")).digest(count)

    def bits(self, *shape: int) -> NDArray[np.bool_]:
        """Return fair bits, bool[shape]."""
        count = int(np.prod(shape))
        raw = np.frombuffer(self.bytes(-(-count // 8)), dtype=np.uint8)
        return np.unpackbits(raw, count=count).astype(bool).reshape(shape)

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Return numbers uniform in (0, 1), odd multiples of 2^-53: float64[shape]."""
        raw = np.frombuffer(self.bytes(8 * int(np.prod(shape))), dtype=np.uint64)
        return (((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Return standard normal numbers, float64[shape]."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(*shape)), dtype=np.float64)

    def integers(self, below: int, *shape: int) -> NDArray[np.int64]:
        """Return whole numbers uniform in 0 .. below - 1, int64[shape]."""
        return np.floor(self.uniform(*shape) * below).astype(np.int64)

    def order(self, count: int) -> NDArray[np.int64]:
        """Return a permutation of 0 .. count - 1, int64[count]."""
        return np.argsort(self.uniform(count), kind="stable").astype(np.int64)

    def laplace(self, b: float, *shape: int) -> NDArray[np.float64]:
        """Return Laplace noise as a textbook draws it, b times the logarithm of a uniform float: float64[shape]."""
        return np.where(self.bits(*shape), 1.0, -1.0) * b * np.log(self.uniform(*shape))

    def geometric(self, epsilon: float, *shape: int) -> NDArray[np.int64]:
        """Return two-sided geometric noise, P[k] proportional to exp(-epsilon |k|): int64[shape]."""
        once, again = (np.floor(np.log(self.uniform(*shape)) / -epsilon) for _ in range(2))
        return (once - again).astype(np.int64)
