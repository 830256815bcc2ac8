"""Targets that promise epsilon and keep a ledger: a correct one, and three with the mistakes that such systems have.

All answer `questions` questions, each at epsilon / `questions`, and then refuse. Their noise can be repeated from a
seed: they are for testing attacks, never for data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.attacks.coins import Coins
from farthing.attacks.target import Claim, People, Refused
from farthing.attacks.targets.plain import Counting

if TYPE_CHECKING:
    from farthing.attacks.targets.plain import Chosen

_SPENT = Refused("the budget is spent", "budget")


class Honest(Counting):
    """A correct textbook mechanism: two-sided geometric noise, and a ledger.

    Args:
        bits: the secrets.
        epsilon: of everything, for a change of one secret.
        questions: how many are answered, each at an equal share.
        seed: of the noise.

    >>> target = Honest([1, 0, 1], epsilon=1, questions=1)
    >>> first, second = (target.answer(target.people.bits) for _ in range(2))
    >>> second.reason
    'the budget is spent'
    """

    def __init__(self, bits: Any, epsilon: float = 1.0, questions: int = 1, seed: int | None = 0) -> None:
        self.people, self.claim, self.name = People.of(bits), Claim(epsilon), f"honest mechanism, epsilon {epsilon:g}"
        self._each, self._left, self._coins = epsilon / questions, questions, Coins(seed, "honest")

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return the count with noise, while the budget lasts."""
        if not self._left:
            return _SPENT
        self._left -= 1
        return self.exact(chosen) + int(self._coins.geometric(self._each, 1)[0])


class OffByTwo(Counting):
    """The honest mechanism with half the noise: somebody took the sensitivity for half of what it is.

    Args:
        bits, epsilon, questions, seed: as `Honest`.
    """

    def __init__(self, bits: Any, epsilon: float = 1.0, questions: int = 1, seed: int | None = 0) -> None:
        self.people, self.claim = People.of(bits), Claim(epsilon)
        self.name = f"sensitivity off by two, epsilon {epsilon:g}"
        self._each, self._left, self._coins = epsilon / questions, questions, Coins(seed, "off by two")

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return the count with half of the noise that its price pays for."""
        if not self._left:
            return _SPENT
        self._left -= 1
        return self.exact(chosen) + int(self._coins.geometric(2 * self._each, 1)[0])


class LeakyLedger(Counting):
    """The honest mechanism with a ledger that takes a new question for a cached one, and charges nothing for it.

    The key of its cache is too short: how many people are counted, not who. There is no answer in the cache either, and
    the noise is new.

    Args:
        bits, epsilon, questions, seed: as `Honest`.
    """

    def __init__(self, bits: Any, epsilon: float = 1.0, questions: int = 1, seed: int | None = 0) -> None:
        self.people, self.claim, self.name = People.of(bits), Claim(epsilon), f"leaky ledger, epsilon {epsilon:g}"
        self._each, self._left, self._coins = epsilon / questions, questions, Coins(seed, "leaky")
        self._seen: set[int] = set()

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return the count with new noise; only what looks new is charged."""
        key = int(chosen.sum())
        if key not in self._seen:
            if not self._left:
                return _SPENT
            self._left -= 1
            self._seen.add(key)
        return self.exact(chosen) + int(self._coins.geometric(self._each, 1)[0])


class Floats(Counting):
    """A correct ledger over textbook Laplace noise in floating point, whose last digits tell what it was added to.

    Args:
        bits, epsilon, questions, seed: as `Honest`.
    """

    def __init__(self, bits: Any, epsilon: float = 1.0, questions: int = 1, seed: int | None = 0) -> None:
        self.people, self.claim, self.name = People.of(bits), Claim(epsilon), f"float noise, epsilon {epsilon:g}"
        self._b, self._left, self._coins = questions / epsilon, questions, Coins(seed, "floats")

    def answer(self, chosen: Chosen, /) -> float | Refused:
        """Return the count plus a Laplace float."""
        if not self._left:
            return _SPENT
        self._left -= 1
        return self.exact(chosen) + float(self._coins.laplace(self._b, 1)[0])
