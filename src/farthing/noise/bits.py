"""Random bits: the operating system's entropy, stretched by a stream cipher.

Noise is only as secret as its bits, so they come from AES-256 in counter mode under a key from `os.urandom`, never from
a statistical generator. One process-wide source serves every thread; after a fork the child takes a new key.
"""

from __future__ import annotations

import hashlib
import os
import threading
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS_PER_KEY: Final = 1 << 32
"""A key is replaced before it has made more 64-bit words than this: 2^31 cipher blocks.

An attacker tells n blocks of AES-CTR from true randomness by the absence of repeats with advantage at most n^2/2^129,
here 2^-67, on top of breaking AES itself. The 128-bit counter never comes near its end.
"""


class BitSource(Protocol):
    """Whatever can hand out uniform, independent 64-bit words."""

    def words(self, count: int, /) -> NDArray[np.uint64]:
        """Return `count` fresh words that no one else has seen or will see."""
        ...


def fork_safe_lock() -> threading.Lock:
    """Return a lock that every fork takes first, so that no child is born with it held by a thread it does not have."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


class _Forks:
    """How often this process and its ancestors have forked: a child counts one more than its parent did."""

    count = 0

    @classmethod
    def add(cls) -> None:
        """Count one fork, in the child."""
        cls.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forks.add)

_STREAMS: Final = fork_safe_lock()


def _this_process() -> tuple[int, int]:
    """Return what differs between parent and child: the fork count, and the pid for forks that Python did not see."""
    return _Forks.count, os.getpid()


class KeyStream:
    """The keystream of AES-256-CTR as 64-bit words; safe to share between threads and to fork.

    Args:
        key: 32 bytes that fix the stream, **for tests only**: whoever knows the key can subtract the noise. Left out,
            keys come from the operating system: one at the start, one after every fork, one every `WORDS_PER_KEY`.

    Guarantee: no word is handed out twice, to any thread or any forked process.
    Proof: docs/proofs/noise.gaussian.md, "Bits".
    Assumes: `os.urandom` is secret and AES-256 is a pseudo-random permutation. A snapshot of a running virtual machine
        that is resumed twice repeats its stream: no process can see that happen.
    Rounds: nothing.

    >>> KeyStream().words(3).shape
    (3,)
    """

    __slots__ = ("_encryptor", "_key", "_left", "_process")

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._start(os.urandom(32) if key is None else key)

    def words(self, count: int, /) -> NDArray[np.uint64]:
        """Return the next `count` words of the stream, at most `WORDS_PER_KEY` of them."""
        out = np.zeros(count, np.uint64)
        raw = out.view(np.uint8).data
        with _STREAMS:
            self._renew_if_due(count)
            self._encryptor.update_into(raw, raw)  # encrypting zeros in place writes the keystream itself
            self._left -= count
        return out

    def _renew_if_due(self, count: int) -> None:
        """Take a new key after a fork, or before this one has been used too long."""
        if self._key is not None:
            if count > self._left:
                self._key = hashlib.sha256(self._key).digest()
                self._start(self._key)
        elif count > self._left or self._process != _this_process():
            self._start(os.urandom(32))

    def _start(self, key: bytes) -> None:
        """Begin the stream of one key at counter zero: a key is never used twice, so no nonce is needed."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._left = WORDS_PER_KEY
        self._process = _this_process()


@cache
def system_bits() -> KeyStream:
    """Return this process's source of bits: what every mechanism draws from unless a test passes its own.

    >>> system_bits() is system_bits()
    True
    """
    return KeyStream()


def seeded(seed: int) -> KeyStream:
    """Return a stream that anyone can repeat: **for tests only**, its noise hides nothing.

    >>> bool((seeded(7).words(2) == seeded(7).words(2)).all())
    True
    """
    return KeyStream(hashlib.sha256(f"farthing test stream {seed}".encode()).digest())
