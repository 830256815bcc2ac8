"""What an attack found: how much it asked, how much it guessed, and whether a promise is broken."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.attacks.picture import accuracy_chart
from farthing.attacks.target import UNSTATED, Claim, Verdict
from farthing.attacks.verdict import CONFIDENCE, LOOKS, best_look, innocent, needed, shown_chance
from farthing.picture import still
from farthing.tabular import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from farthing.attacks.target import Conversation

BROKEN: Final[Verdict] = "broken"
HOLDS: Final[Verdict] = "holds"
UNDECIDED: Final[Verdict] = "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class Guesses:
    """What an attack thinks the secrets are.

    Attributes:
        bits: bool[n], the guesses.
        surety: float64[n], how sure each is; NaN where it does not guess.
        of: bool[n], the secrets they are scored by; None for those of the target's people.
    """

    bits: NDArray[np.bool_]
    surety: NDArray[np.float64]
    of: NDArray[np.bool_] | None = None

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], of: NDArray[np.bool_] | None = None) -> Guesses:
        """Return the guesses of estimates: 1 above a half, the surer the farther from it, none for NaN."""
        return cls(scores > 0.5, np.abs(scores - 0.5), of)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackResult(Lines):
    """What one attack on one target found.

    Attributes:
        attack: its name.
        target: the target's name.
        n: how many secrets there were.
        sent, answered, refused: questions.
        accuracy: the share of right guesses, over all people that it guessed.
        baseline: the share that always guessing the more frequent secret gets.
        interval: the exact 95 % interval of the accuracy.
        attempted, right: the guesses that the verdict rests on: all of them, or the surest half or quarter.
        epsilon_lower: the true epsilon for a change of one bit is at least this, with `confidence`.
        confidence: of the verdict.
        p_value: the chance that guesses as good come from a target that keeps the claim is at most this.
        claim: what the verdict is about.
        stated: whether the target claims it; if not, it is `UNSTATED`: epsilon 1 for a change of one bit.
        cap: the accuracy that the claim allows at most, on average.
        verdict: "broken" if the claim is refuted; "holds" if it could have been and was not, by this attack;
            "undecided" if the attack got too little to refute it.
        needs: what a decision would need, "" if there is one.
        seconds: wall time, of questions and guessing.
        seed: of the attack's choices.
        details: what is particular to the attack.
        guesses: what it guessed; not part of `to_dict`.
    """

    attack: str
    target: str
    n: int
    sent: int
    answered: int
    refused: int
    accuracy: float
    baseline: float
    interval: tuple[float, float]
    attempted: int
    right: int
    epsilon_lower: float
    confidence: float
    p_value: float
    claim: Claim
    stated: bool
    cap: float
    verdict: Verdict
    needs: str
    seconds: float
    seed: int | None
    details: Mapping[str, Any] = field(default_factory=dict)
    guesses: Guesses | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the guesses, as plain values for JSON."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name not in ("guesses", "claim", "interval")}
        return facts | {
            "p_value": shown_chance(self.p_value),
            "interval": list(self.interval),
            "claim": asdict(self.claim),
            "details": {key: _plain(value) for key, value in self.details.items()},
        }

    def chart(self) -> Any:
        """Return a picture: the accuracy with its interval, between the baseline and the cap of the claim."""
        return still(accuracy_chart([self]))

    def __repr__(self) -> str:
        low, high = self.interval
        stated = "" if self.stated else " (none was stated)"
        lines = [
            f"<{self.attack} attack on {self.target}: {self.verdict.upper()}>",
            f"  asked    {self.sent:,} questions: {self.answered:,} answered, {self.refused:,} refused",
            f"  guessed  {self.accuracy:.1%} of the secrets right ({low:.1%} .. {high:.1%} at 95 %), of {self.n:,}",
            f"  beside   {self.baseline:.1%} by always guessing the more frequent one",
            f"  claim    {self.claim}{stated}: at most {self.cap:.1%} on average",
            f"  epsilon  at least {self.epsilon_lower:.3g} for a change of one bit, {self.confidence:.1%} sure",
            f"           by {self.right:,} right ones of {self.attempted:,} guesses",
        ]
        lines += [f"  needs    {self.needs}"] if self.needs else []
        return "\n".join([*lines, f"  took     {self.seconds:.2f} s, seed {self.seed}"])


def _refuted_by(guesses: Guesses, truth: NDArray[np.bool_], claim: Claim, prior: float) -> bool:
    """Tell whether such guesses refute the claim."""
    made = ~np.isnan(guesses.surety)
    right = (guesses.bits == truth)[made]
    return best_look(right, guesses.surety[made], claim, n=len(truth), prior=prior).broken


def judged(
    attack: str,
    asked: Conversation,
    guesses: Guesses,
    *,
    started: float,
    seed: int | None,
    least: int = 1,
    holds: str = "",
    exact: Callable[[], Guesses] | None = None,
    **details: Any,
) -> AttackResult:
    """Return the result of an attack: score the guesses, and decide.

    Args:
        attack: its name.
        asked: the conversation.
        guesses: what the attack makes of the answers.
        started: `time.perf_counter()` when it began.
        seed: of the attack's choices.
        least: how many answers the attack needs to know anything.
        holds: why the attack cannot work on this target, if its answers prove that; then guesses that could not decide
            count as a failed attack.
        exact: what the attack would have guessed, had the answers that it got been exact. Where not even that refutes
            the claim there is no verdict.
        **details: what is particular to the attack.
    """
    people, stated = asked.target.people, asked.target.claim is not None
    claim = asked.target.claim or UNSTATED
    truth = people.bits if guesses.of is None else guesses.of
    made = ~np.isnan(guesses.surety)
    right = (guesses.bits == truth)[made]
    look = best_look(right, guesses.surety[made], claim, n=len(truth), prior=people.prior)

    def able() -> bool:
        """Tell whether the answers that came could have refuted the claim."""
        return asked.answered >= least if exact is None else _refuted_by(exact(), truth, claim, people.prior)

    verdict, needs = BROKEN, ""
    if not look.broken:
        verdict, needs = _decide(asked, able, len(right), claim, least=least, holds=holds)
    good, tried = int(right.sum()), len(right)
    told = details | ({"holds": holds} if holds else {})
    told |= {"refusals": list(asked.reasons)} if asked.reasons else {}
    return AttackResult(
        attack=attack,
        target=asked.target.name,
        n=len(truth),
        sent=asked.sent,
        answered=asked.answered,
        refused=asked.refused,
        accuracy=good / tried if tried else 0.0,
        baseline=max(float(np.mean(truth)), 1 - float(np.mean(truth))),
        interval=exact_interval(good, tried),
        attempted=look.attempted,
        right=look.right,
        epsilon_lower=look.epsilon_lower,
        confidence=CONFIDENCE,
        p_value=look.p_value,
        claim=claim,
        stated=stated,
        cap=claim.cap,
        verdict=verdict,
        needs=needs,
        seconds=time.perf_counter() - started,
        seed=seed,
        details=told,
        guesses=guesses,
    )


def exact_interval(right: int, attempted: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval of a share.

    >>> exact_interval(0, 0)
    (0.0, 1.0)
    """
    from scipy.stats import binomtest

    if not attempted:
        return 0.0, 1.0
    found = binomtest(right, attempted).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def _decide(
    asked: Conversation, able: Callable[[], bool], attempted: int, claim: Claim, *, least: int, holds: str
) -> tuple[Verdict, str]:
    """Return the verdict on a claim that was not refuted, and what is lacking where there is none."""
    sure, prior = 1 - (1 - CONFIDENCE) * LOOKS[0][1], asked.target.people.prior
    enough = asked.answered > 0 and innocent(attempted, claim, confidence=sure, prior=prior) < attempted
    if not asked.alike and (holds or (enough and able())):
        return HOLDS, ""
    if enough or asked.answered < least:
        return UNDECIDED, _answers_lacking(asked, least)
    fewest = needed(claim, confidence=sure, prior=prior)
    if fewest is None:
        return UNDECIDED, f"a smaller claim: a million right guesses would not refute {claim}"
    return UNDECIDED, f"at least {fewest:,} guesses, were all of them right; it made {attempted:,}"


def _answers_lacking(asked: Conversation, least: int) -> str:
    """Return which answers a decision would need."""
    if asked.alike:
        return f"answers that differ; all {asked.answered:,} were {asked.first:g}"
    if asked.answered < least:
        return f"at least {least:,} answers; {asked.answered:,} of {asked.sent:,} questions got one"
    return f"other questions; not even exact answers to the {asked.answered:,} answered ones would refute the claim"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
