"""Every target with every attack that tells something about it: what `farthing attack demo` runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing import Budget
from farthing.attacks import tables, targets
from farthing.attacks.averaging import averaging
from farthing.attacks.coins import Coins
from farthing.attacks.differencing import differencing
from farthing.attacks.drawing import secrets
from farthing.attacks.linear import linear, solve
from farthing.attacks.membership import membership
from farthing.attacks.noise_exploitation import noise_exploitation
from farthing.attacks.published import HASHES, cohen_nissim, dick_joseph_schutzman, hash_condition, hashed
from farthing.attacks.single import precision, single_target
from farthing.attacks.target import Conversation, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.attacks.result import AttackResult
    from farthing.attacks.target import AttackTarget

N: Final = 150
ATTRIBUTES: Final = 1_500
FRESH: Final = 1_000
SIGMA: Final = 3.0
DELTA: Final = 1e-6
BUDGETS: Final = (1.0, 5.0, 20.0)
"""The epsilons, each at DELTA, that farthing is attacked with; more than 5 is for the picture, not for data."""


@dataclass(frozen=True, slots=True)
class AttackCase:
    """One target and one attack on it.

    Attributes:
        target: its short name.
        attack: its name.
        honest: whether the target keeps what it claims, so that no attack may call it broken.
        run: attacks, and returns the result.
    """

    target: str
    attack: str
    honest: bool
    run: Callable[[], AttackResult]


Case = AttackCase
"""The name by which users know it."""


def cases(seed: int = 0) -> list[AttackCase]:
    """Return all of them, broken targets first; the targets are made when they are attacked.

    Args:
        seed: of the secrets, the attacks and the noise of toy targets; farthing's noise has none.
    """
    return [*_toys(seed), *_diffix(seed), *_claiming(seed), *_honest(seed), *_ours(seed)]


def _toys(seed: int) -> list[AttackCase]:
    """Return the targets with a defence that is not privacy."""
    bits = secrets(N, seed).bits
    crowd = secrets(2 * N, seed, attributes=ATTRIBUTES)
    made: dict[str, Callable[[Any], AttackTarget]] = {
        "exact answers": targets.Exact,
        "rounding to 5": lambda those: targets.Rounded(those, 5),
        "suppression below 10": lambda those: targets.Suppressed(those, 10),
        "a sample of half": lambda those: targets.Subsample(those, seed),
        "fresh noise": lambda those: targets.FreshGaussian(those, SIGMA, seed),
    }
    tried: dict[str, Callable[[AttackTarget], AttackResult]] = {
        "linear": lambda target: linear(target, 8 * N, seed, method="least_squares"),
        "differencing": lambda target: differencing(target, 1, seed),
        "averaging": lambda target: averaging(target, 400, seed, victims=30),
    }
    rows = [_case(name, attack, make, run, bits) for name, make in made.items() for attack, run in tried.items()]
    found = [_case(name, "membership", make, lambda target: membership(target, seed=seed), crowd)
             for name, make in made.items()]  # fmt: skip
    return sorted([*rows, *found], key=lambda case: list(made).index(case.target))


def _case(
    name: str, attack: str, make: Callable[[Any], AttackTarget], run: Callable[[AttackTarget], AttackResult], of: Any
) -> AttackCase:
    """Return a case over some people."""
    return AttackCase(name, attack, honest=False, run=lambda: run(make(of)))


def _diffix(seed: int) -> list[AttackCase]:
    """Return the versions of Diffix: each was an answer to an attack."""
    loans, rides, town = tables.loans(seed), tables.rides(seed, known=90, rows=5_000), tables.town(seed, victims=N)
    return [
        AttackCase(
            "Diffix Birch", "cohen-nissim", honest=False, run=lambda: cohen_nissim(targets.Diffix(loans), seed=seed)
        ),
        AttackCase(
            "Diffix Cedar",
            "cohen-nissim",
            honest=False,
            run=lambda: cohen_nissim(targets.Diffix(loans, "cedar"), seed=seed),
        ),
        AttackCase(
            "Diffix Cedar",
            "dick-joseph-schutzman",
            honest=False,
            run=lambda: dick_joseph_schutzman(targets.Diffix(rides, "cedar"), seed=seed),
        ),
        AttackCase(
            "Diffix Dogwood",
            "dick-joseph-schutzman",
            honest=False,
            run=lambda: dick_joseph_schutzman(targets.Diffix(rides, "dogwood"), seed=seed),
        ),
        AttackCase(
            "Diffix Dogwood",
            "noise-exploitation",
            honest=False,
            run=lambda: noise_exploitation(targets.Diffix(town, "dogwood")),
        ),
    ]


def _claiming(seed: int) -> list[AttackCase]:
    """Return the targets that claim epsilon 1 and do not keep it."""
    bits, fresh = secrets(N, seed).bits, secrets(FRESH, seed).bits
    return [
        AttackCase(
            "leaky ledger",
            "single-target",
            honest=False,
            run=lambda: single_target(targets.LeakyLedger(bits, 1, seed=seed)),
        ),
        AttackCase(
            "float noise",
            "precision",
            honest=False,
            run=lambda: precision(targets.each(targets.Floats, fresh, epsilon=1)),
        ),
        AttackCase(
            "sensitivity off by two",
            "single-target",
            honest=False,
            run=lambda: single_target(targets.each(targets.OffByTwo, fresh, epsilon=1), 2),
        ),
    ]


def _honest(seed: int) -> list[AttackCase]:
    """Return the textbook mechanism that keeps its claim."""
    name, bits, fresh = "honest mechanism", secrets(N, seed).bits, secrets(FRESH, seed).bits
    crowd = secrets(2 * N, seed, attributes=ATTRIBUTES)

    def asked(questions: int, of: Any = bits) -> AttackTarget:
        return targets.Honest(of, 1, questions, seed)

    return [
        AttackCase(name, "linear", honest=True, run=lambda: linear(asked(8 * N), 8 * N, seed, method="least_squares")),
        AttackCase(name, "differencing", honest=True, run=lambda: differencing(asked(2 * N), 1, seed)),
        AttackCase(name, "averaging", honest=True, run=lambda: averaging(asked(30 * 40), 40, seed, victims=30)),
        AttackCase(
            name,
            "single-target",
            honest=True,
            run=lambda: single_target(targets.each(targets.Honest, fresh, epsilon=1), 2),
        ),
        AttackCase(
            name, "precision", honest=True, run=lambda: precision(targets.each(targets.Honest, fresh, epsilon=1))
        ),
        AttackCase(name, "membership", honest=True, run=lambda: membership(asked(ATTRIBUTES + 1, crowd), seed=seed)),
    ]


def _ours(seed: int) -> list[AttackCase]:
    """Return farthing, through its SQL door: the same questions, with an equal share of the budget for each."""
    people, small = secrets(N, seed), secrets(2 * N, seed, attributes=60)
    loans, rides = tables.loans(seed), tables.rides(seed, known=80, rows=4_000)
    budget = Budget(epsilon=1, delta=DELTA)

    def over(those: Any, questions: int, **how: Any) -> targets.FarthingSession:
        session = targets.FarthingSession.over(those, budget).session
        return targets.FarthingSession(session, those, loss=targets.equal_share(session, questions), **how)

    def of(table: tables.Generated, questions: int) -> targets.FarthingSession:
        return targets.FarthingSession.of_table(table, budget, questions)

    def case(attack: str, run: Callable[[], AttackResult]) -> AttackCase:
        return AttackCase("farthing, epsilon 1", attack, honest=True, run=run)

    def rewritten() -> AttackResult:
        return averaging(over(people, 160, lower=0, upper=1), 2, seed, words="rewritten", victims=80)

    return [
        case("cohen-nissim", lambda: cohen_nissim(of(loans, 150), queries=180, seed=seed)),
        case("dick-joseph-schutzman", lambda: dick_joseph_schutzman(of(rides, 100), queries=120, seed=seed)),
        case("differencing", lambda: differencing(over(people, 160), 1, seed, victims=80)),
        case("averaging", rewritten),
        case("single-target", lambda: single_target(over(people, 160), 2, seed, victims=80)),
        case("membership", lambda: membership(over(small, 61), seed=seed)),
    ]


def accuracy_curve(target: AttackTarget, marks: Sequence[int], seed: int = 0) -> dict[int, float]:
    """Return the share of secrets that the attack of Cohen and Nissim gets right after so many questions.

    Args:
        target: speaks SQL; it is asked `max(marks)` questions, in one go.
        marks: how many questions have been sent; those that were refused count, and tell nothing.
        seed: of the choice of conditions.

    >>> accuracy_curve(targets.Diffix(tables.loans(seed=1)), [8, 584])[584]
    1.0
    """
    people, asked = target.people, Conversation(target)
    chosen = [HASHES[place] for place in Coins(seed, "curve").order(len(HASHES))[: max(marks)]]
    rows = np.array([hashed(people.ids.astype(np.float64), *constants) for constants in chosen])
    answers = asked.all([Question(text=people.count(hash_condition(people.id, *one))) for one in chosen])
    found = {}
    for mark in marks:
        estimates = solve(rows[:mark], answers[:mark], method="box")
        found[mark] = float(np.mean((estimates > 0.5) == people.bits))
    return found


def curves(seed: int = 0, *, budgets: Sequence[float] = BUDGETS, most: int = 3) -> dict[str, dict[int, float]]:
    """Return the curves of Diffix and of farthing at several budgets, over the same loans.

    Args:
        seed: of the loans and the attack.
        budgets: epsilons, each at DELTA and divided equally over all questions.
        most: how many questions there are, for each of the 73 clients.
    """
    loans = tables.loans(seed)
    marks = [loans.people.n * part // 4 for part in (1, 2, 4, 6, *range(8, 4 * most + 1, 2))]
    found = {"Diffix Birch": accuracy_curve(targets.Diffix(loans), marks, seed)}
    for epsilon in budgets:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        ours = targets.FarthingSession.of_table(loans, budget, marks[-1])
        found[f"farthing, epsilon {epsilon:g}"] = accuracy_curve(ours, marks, seed)
    return found
