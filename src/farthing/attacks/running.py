"""Several attacks on one target, and one verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from farthing.attacks.averaging import averaging
from farthing.attacks.differencing import differencing
from farthing.attacks.exhaustive import exhaustive
from farthing.attacks.linear import linear
from farthing.attacks.membership import membership
from farthing.attacks.noise_exploitation import noise_exploitation
from farthing.attacks.published import cohen_nissim, dick_joseph_schutzman
from farthing.attacks.result import BROKEN, HOLDS, UNDECIDED, AttackResult
from farthing.attacks.single import precision, single_target
from farthing.attacks.target import UNSTATED, AttackTarget, Claim
from farthing.attacks.verdict import CONFIDENCE, needed, shown_chance
from farthing.errors import InvalidOption
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from farthing.attacks.target import Verdict

EXIT_CODES: Final[dict[Verdict, int]] = {HOLDS: 0, BROKEN: 10, UNDECIDED: 11}
"""What the command line returns for a verdict."""

_VICTIMS: Final = 30


@dataclass(frozen=True, slots=True)
class Effort:
    """How an attack is run.

    Attributes:
        queries: how many questions it may send, about; None for the attack's own number.
        seed: of its choices.
        compiler: how subsets are said, for the linear attacks; None for what suits the target.
        column: what `dick-joseph-schutzman` hashes.
    """

    queries: int | None = None
    seed: int = 0
    compiler: str | None = None
    column: str = "pickup_latitude"

    def sent(self, target: AttackTarget) -> int:
        """Return how many questions are sent: by default eight a person."""
        return 8 * target.people.n if self.queries is None else self.queries

    def on_each(self, target: AttackTarget, questions: int = 1) -> tuple[int, int]:
        """Return how many victims there are, and how often each is asked about, with so many questions a turn.

        Twice as many as could refute the claim, were all of them guessed right: more would only be asked less often.
        """
        fewest = needed(target.claim or UNSTATED, prior=target.people.prior) or target.people.n
        victims = min(target.people.n, max(_VICTIMS, 2 * fewest))
        return victims, max(1, self.sent(target) // (questions * victims))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackReport(Tabular):
    """What several attacks on one target found, together.

    Attributes:
        target: its name.
        claim: what the verdict is about.
        stated: whether the target claims it.
        results: of each attack.
        verdict: "broken" if one of them refutes the claim, however many were tried; else "holds" if one could have;
            else "undecided".
        p_value: the chance that any of them finds as much on a target that keeps the claim is at most this.
        epsilon_lower: the true epsilon for a change of one bit is at least this, with `confidence`.
        confidence: of that bound, for all attacks at once. The verdict is wrong with probability at most 0.001.
        needs: what a decision would need, "" if there is one.
    """

    target: str
    claim: Claim
    stated: bool
    results: tuple[AttackResult, ...]
    verdict: Verdict
    p_value: float
    epsilon_lower: float
    confidence: float
    needs: str

    @classmethod
    def of(cls, results: Sequence[AttackResult]) -> AttackReport:
        """Return the report of attacks on one target, on the same secrets."""
        chance = min(1.0, min(result.p_value for result in results) * len(results))
        found = {result.verdict for result in results}
        if chance <= 1 - CONFIDENCE:
            verdict, needs = BROKEN, ""
        elif BROKEN in found:
            names = ", ".join(dict.fromkeys(result.attack for result in results if result.verdict == BROKEN))
            verdict, needs = UNDECIDED, f"new secrets, and this attack alone: {names}"
        elif HOLDS in found:
            verdict, needs = HOLDS, ""
        else:
            verdict, needs = UNDECIDED, _lacking(results)
        return cls(
            target=results[0].target,
            claim=results[0].claim,
            stated=results[0].stated,
            results=tuple(results),
            verdict=verdict,
            p_value=chance,
            epsilon_lower=max(result.epsilon_lower for result in results),
            confidence=1 - len(results) * (1 - CONFIDENCE),
            needs=needs,
        )

    @property
    def exit_code(self) -> int:
        """What the command line returns: 0 holds, 10 broken, 11 undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the target said where it refused, the first few."""
        said = (reason for result in self.results for reason in result.details.get("refusals", ()))
        return tuple(dict.fromkeys(said))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "target": self.target,
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta, "change": self.claim.change},
            "stated": self.stated,
            "verdict": self.verdict,
            "p_value": shown_chance(self.p_value),
            "epsilon_lower": self.epsilon_lower,
            "confidence": self.confidence,
            "needs": self.needs,
            "exit_code": self.exit_code,
            "attacks": [result.to_dict() for result in self.results],
        }

    def chart(self) -> Any:
        """Return a picture: what each attack guessed, between the baseline and the cap of the claim."""
        from farthing.attacks.picture import accuracy_chart
        from farthing.picture import still

        return still(accuracy_chart(self.results))

    def to_arrow(self) -> pa.Table:
        """Return one row an attack: what was asked, the share guessed right with its interval, and the verdict."""
        import pyarrow as pa

        one: dict[str, Callable[[AttackResult], Any]] = {
            "attack": lambda found: found.attack,
            "sent": lambda found: found.sent,
            "answered": lambda found: found.answered,
            "right": lambda found: found.accuracy,
            "right_lower": lambda found: found.interval[0],
            "right_upper": lambda found: found.interval[1],
            "claim_allows": lambda found: found.cap,
            "epsilon_lower": lambda found: found.epsilon_lower,
            "verdict": lambda found: found.verdict,
        }
        return pa.table({name: [read(found) for found in self.results] for name, read in one.items()})

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the attacks: the verdict, and what it lacks."""
        lines = (
            f"{self.target}: {self.verdict.upper()}, {len(self.results)} attack{'s' if len(self.results) > 1 else ''}",
        )
        return (*lines, f"needs {self.needs}") if self.needs else lines


def _lacking(results: Sequence[AttackResult]) -> str:
    """Return what a decision would need: what each attack lacks, the same thing said once."""
    if not any(result.answered for result in results):
        return f"answers; none of {sum(result.sent for result in results):,} questions got one"
    said: dict[str, str] = {}
    for result in (result for result in results if result.answered):
        said.setdefault(result.needs.partition(";")[0], result.needs)
    return "; or ".join(said.values())


def _one_each(target: Any, effort: Effort) -> AttackResult:
    """Ask about some people, once each: all that it takes where answers are exact, however few there are."""
    return averaging(target, 1, effort.seed, victims=effort.on_each(target)[0])


def _averaging(target: Any, effort: Effort) -> AttackResult:
    """Ask about some people again and again."""
    victims, turns = effort.on_each(target)
    return averaging(target, turns, effort.seed, victims=victims)


def _differencing(target: Any, effort: Effort) -> AttackResult:
    """Ask two questions that differ by a person."""
    victims, turns = effort.on_each(target, 2)
    return differencing(target, turns, effort.seed, victims=victims)


def _tracker(target: Any, effort: Effort) -> AttackResult:
    """Ask three questions that count one person once too often."""
    victims, turns = effort.on_each(target, 3)
    return differencing(target, turns, effort.seed, trick="tracker", victims=victims)


def _single(target: Any, effort: Effort) -> AttackResult:
    """Spend everything on one person, then on the next; or a fresh target on each."""
    if not isinstance(target, AttackTarget):
        return single_target(target, 2, effort.seed)
    victims, turns = effort.on_each(target)
    return single_target(target, turns, effort.seed, victims=victims)


def _linear(target: Any, effort: Effort) -> AttackResult:
    """Solve random subset counts, for the least sum of absolute errors."""
    return linear(target, effort.sent(target), effort.seed, compiler=effort.compiler)


def _least_squares(target: Any, effort: Effort) -> AttackResult:
    """Solve random subset counts by least squares."""
    return linear(target, effort.sent(target), effort.seed, method="least_squares", compiler=effort.compiler)


ATTACKS: Final[dict[str, Callable[[Any, Effort], AttackResult]]] = {
    "one-each": _one_each,
    "linear": _linear,
    "least-squares": _least_squares,
    "averaging": _averaging,
    "differencing": _differencing,
    "tracker": _tracker,
    "single-target": _single,
    "precision": lambda target, effort: precision(target, effort.seed),
    "membership": lambda target, effort: membership(target, effort.queries, effort.seed),
    "exhaustive": lambda target, effort: exhaustive(target, queries=effort.queries, seed=effort.seed),
    "cohen-nissim": lambda target, effort: cohen_nissim(target, queries=effort.queries, seed=effort.seed),
    "dick-joseph-schutzman": lambda target, effort: dick_joseph_schutzman(
        target, column=effort.column, queries=effort.queries, seed=effort.seed
    ),
    "noise-exploitation": lambda target, _: noise_exploitation(target),
}
"""The attacks by name, as the command line runs them."""

USUAL: Final = ("one-each", "linear", "least-squares", "averaging", "differencing", "single-target")
"""What is run unless something is named."""

USUAL_OF_MANY: Final = ("single-target", "precision")
"""The same for many fresh targets, with one person each."""


def run(
    target: AttackTarget | Sequence[AttackTarget],
    names: Sequence[str] | None = None,
    effort: Effort | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> AttackReport:
    """Run several attacks on a target, one after the other, and return one verdict on it.

    They share the target and so its budget: what the first one has spent is not there for the second one. So the usual
    ones begin with one question about each of some people, before subsets take what is left.

    Args:
        target: a Target; or several fresh ones with one person each, as `targets.each` makes them.
        names: of `ATTACKS`; by default `USUAL`.
        effort: how many questions, and the seed.
        progress: told the name of each attack before it starts.

    >>> from farthing.attacks import secrets, targets
    >>> run(targets.Rounded(secrets(100, seed=1).bits, 5), ["linear", "tracker"]).verdict
    'broken'
    """
    chosen = tuple(names or (USUAL if isinstance(target, AttackTarget) else USUAL_OF_MANY))
    unknown = [name for name in chosen if name not in ATTACKS]
    if unknown or len(set(chosen)) < len(chosen):
        raise InvalidOption(
            "the attack is unknown" if unknown else "an attack was named twice",
            rule=", ".join(ATTACKS),
            got=", ".join(unknown or chosen),
            next_step="leave it out for " + ", ".join(USUAL),
        )
    results = []
    for name in chosen:
        if progress is not None:
            progress(name)
        results.append(replace(ATTACKS[name](target, effort or Effort()), attack=name))
    return AttackReport.of(results)


Report = AttackReport
"""The name by which users know it."""
