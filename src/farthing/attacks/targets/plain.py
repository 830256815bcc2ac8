"""Targets with a defence that is not privacy, to be broken: exact, rounded, suppressed, subsampled, noisy without end.

Each answers how many of the chosen people have the secret, as `Target` says, and claims nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.attacks.coins import Coins
from farthing.attacks.target import Claim, People, Question, Refused, Speaks
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

Chosen = NDArray[np.bool_]


class Counting(Protocol):
    """A target that is asked with 0/1 vectors and says how it answers one."""

    people: People
    name: str
    claim: Claim | None = None
    speaks: Speaks = "vector"

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return what is said about the chosen people, bool[n]."""

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question about a 0/1 vector."""
        return self.answer(vector_of(question, self.people))

    def exact(self, chosen: Chosen) -> int:
        """Return how many of the chosen have the secret."""
        return int(np.count_nonzero(chosen & self.people.bits))


def vector_of(question: Question, people: People) -> Chosen:
    """Return who is asked about, or refuse a vector that is none."""
    chosen = None if question.chosen is None else np.asarray(question.chosen)
    if chosen is None or chosen.shape != (people.n,):
        raise DataError(
            "this is not a question about the known people",
            rule=f"a 0/1 vector of length {people.n}",
            got="SQL" if chosen is None else f"shape {chosen.shape}",
            next_step="Question(chosen=...), one entry for each known person",
        )
    return chosen.astype(bool)


class Exact(Counting):
    """Say the truth.

    >>> Exact([1, 0, 1]).ask(Question(chosen=np.array([True, True, False])))
    1
    """

    def __init__(self, bits: Any) -> None:
        self.people, self.name = People.of(bits), "exact answers"

    def answer(self, chosen: Chosen, /) -> float:
        """Return the exact count."""
        return self.exact(chosen)


class Rounded(Counting):
    """Round to a multiple.

    Args:
        bits: the secrets.
        to: what answers are multiples of, >= 1.
    """

    def __init__(self, bits: Any, to: int = 5) -> None:
        self.people, self.to, self.name = People.of(bits), to, f"rounding to {to}"

    def answer(self, chosen: Chosen, /) -> float:
        """Return the nearest multiple, the upper one of two."""
        return self.to * math.floor(self.exact(chosen) / self.to + 0.5)


class Suppressed(Counting):
    """Suppress small counts, and say the others exactly.

    Args:
        bits: the secrets.
        least: the least count that is said.
    """

    def __init__(self, bits: Any, least: int = 10) -> None:
        self.people, self.least, self.name = People.of(bits), least, f"suppression below {least}"

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return the exact count, or refuse a small one."""
        count = self.exact(chosen)
        return count if count >= self.least else Refused("fewer people than are shown")


class Subsample(Counting):
    """Count in a secret half of the people, and double.

    Nobody outside of the half can be found out, so that less than all is reconstructed. Whoever is in it is.

    Args:
        bits: the secrets.
        seed: of the half.
    """

    def __init__(self, bits: Any, seed: int | None = 0) -> None:
        self.people, self.name = People.of(bits), "a sample of half the rows"
        self._kept = Coins(seed, "subsample").bits(self.people.n)

    def answer(self, chosen: Chosen, /) -> float:
        """Return twice the count within the half."""
        return 2 * self.exact(chosen & self._kept)


class FreshGaussian(Counting):
    """Add Gaussian noise, new for every question, and answer for ever.

    Args:
        bits: the secrets.
        sigma: standard deviation of the noise, in people.
        seed: of the noise.
    """

    def __init__(self, bits: Any, sigma: float, seed: int | None = 0) -> None:
        self.people, self.sigma, self.name = People.of(bits), sigma, f"fresh noise of sigma {sigma:g}, no budget"
        self._coins = Coins(seed, "fresh")

    def answer(self, chosen: Chosen, /) -> float:
        """Return the count with noise."""
        return self.exact(chosen) + self.sigma * float(self._coins.normal(1)[0])


class Adversarial(Counting):
    """Answer as misleadingly as an error bound allows: midway between the truth and a lie.

    The lie differs from the truth in 2 `error` ones and 2 `error` zeros, and no answer is off by more than `error`. The
    lie fits all answers as well as the truth does, so that nobody can be sure of less than 4 `error` wrong
    secrets: the bound of [DinurN03] for the exhaustive attack is tight.

    Args:
        bits: the secrets, with at least 2 `error` ones and 2 `error` zeros.
        error: the largest error of an answer, in people: alpha n in the paper.
    """

    def __init__(self, bits: Any, error: int) -> None:
        self.people, self.error, self.name = People.of(bits), error, f"the worst answers within {error}"
        ones, zeros = np.flatnonzero(self.people.bits), np.flatnonzero(~self.people.bits)
        if error < 0 or min(len(ones), len(zeros)) < 2 * error:
            raise DataError(
                "too few people for a lie of this size",
                rule="at least 2 error ones and 2 error zeros among the secrets, error >= 0",
                got=f"{len(ones)} ones, {len(zeros)} zeros, error {error}",
                next_step="more people, or a smaller error",
            )
        self._lie = self.people.bits.copy()
        self._lie[[*ones[: 2 * error], *zeros[: 2 * error]]] ^= True

    def answer(self, chosen: Chosen, /) -> float:
        """Return the mean of the truth and the lie."""
        return (self.exact(chosen) + int(np.count_nonzero(chosen & self._lie))) / 2


def each(kind: Any, bits: Any, **options: Any) -> Iterable[Any]:
    """Return one target a person, each new and about that person alone: what a fresh session is to an attacker.

    Args:
        kind: a class of target that takes bits and a seed, such as `Honest`.
        bits: the secrets, one a target.
        **options: of the class.
    """
    return [kind([bit], seed=number, **options) for number, bit in enumerate(People.of(bits).bits)]
