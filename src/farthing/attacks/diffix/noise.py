"""Sticky noise: numbers that are a function of what they hide, so that asking again gains nothing."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from statistics import NormalDist
from typing import Final

_STANDARD: Final = NormalDist()
_BITS: Final = 53


@dataclass(frozen=True, slots=True)
class StickyNoise:
    """A keyed hash, read as random numbers: the same parts always give the same number.

    Attributes:
        key: the secret of the system, at most 64 bytes.

    >>> noise = StickyNoise(b"secret")
    >>> noise.normal("loans.status", "C") == noise.normal("loans.status", "C")
    True
    >>> noise.normal("loans.status", "C") == noise.normal("loans.status", "D")
    False
    >>> noise.whole(1, 3, "outliers") in {1, 2, 3}
    True
    """

    key: bytes

    def normal(self, *parts: object) -> float:
        """Return the standard normal of these parts: text, numbers, bytes and tuples of them."""
        return _STANDARD.inv_cdf((self._step(parts) + 0.5) / 2.0**_BITS)

    def whole(self, low: int, high: int, *parts: object) -> int:
        """Return the whole number of low, ..., high of these parts, each as likely."""
        return low + ((self._step(parts) * (high - low + 1)) >> _BITS)

    def _step(self, parts: tuple[object, ...]) -> int:
        """Return the number of 53 bits that these parts hash to; `repr` spells no two lists of parts alike."""
        digest = blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8, key=self.key).digest()
        return int.from_bytes(digest, "big") >> (64 - _BITS)


def fingerprint(content: bytes) -> bytes:
    """Return a short name of a set that is too long to be part of a seed."""
    return blake2b(content, digest_size=16).digest()
