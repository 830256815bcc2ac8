"""A target with another claim than its own: what its owner says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.attacks.target import AttackTarget, Claim, People, Question, Refused, Speaks


class Claimed:
    """Put a claim on a target, in place of its own.

    Args:
        target: what is asked.
        claim: what a verdict is about.

    >>> from farthing.attacks import Claim, targets
    >>> Claimed(targets.Exact([1, 0]), Claim(0.5)).claim.epsilon
    0.5
    """

    def __init__(self, target: AttackTarget, claim: Claim) -> None:
        self.target = target
        self.claim: Claim | None = claim

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    @property
    def people(self) -> People:
        """The target's people."""
        return self.target.people

    @property
    def speaks(self) -> Speaks:
        """The target's language."""
        return self.target.speaks

    def ask(self, question: Question, /) -> float | Refused:
        """Ask the target."""
        return self.target.ask(question)
