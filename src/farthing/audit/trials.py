"""Thousands of trials of one neighbouring pair, side by side in the groups of one question.

Each trial has groups of its own and its unit touches no others, so with independent noise every group of the answer is
one run: D holds the rows of all groups, D' one unit more in each. What the ledger promises holds for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.audit.bounds import LowerBound, two_samples
from farthing.errors import InvalidTarget
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.audit.bounds import Aim
    from farthing.privacy.loss import Loss

Scores = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Transcript:
    """Scores of all trials on D and on D', and what one unit was promised to lose at most.

    Attributes:
        without, present: one score a trial.
        claim: the loss that the books charged, or that is promised.
    """

    without: Scores
    present: Scores
    claim: Loss

    def bound(self, confidence: float) -> LowerBound:
        """Return what a unit surely lost."""
        aims: dict[str, Aim] = {"mu": "mu", "rho": "rho", "epsilon": "epsilon"}
        return two_samples(self.without, self.present, confidence=confidence, aim=aims[self.claim.parameter])

    def claiming(self, factor: float) -> Transcript:
        """Return the transcript of a mechanism that books as if its noise was `factor` times as wide as it is."""
        return Transcript(self.without, self.present, scaled(self.claim, 1 / factor))


def scaled(claim: Loss, factor: float) -> Loss:
    """Return the loss of noise that is `factor` times narrower.

    >>> scaled(Gdp(1), 2), scaled(Zcdp(1), 2), scaled(Pure(1), 2)
    (Gdp(mu=2), Zcdp(rho=4), Pure(epsilon=2))
    """
    match claim:
        case Gdp():
            return Gdp(claim.value * factor)
        case Zcdp():
            return Zcdp(claim.value * factor * factor)
        case Pure():
            return Pure(claim.value * factor)
    raise InvalidTarget(
        "this loss cannot be scaled",
        rule="Pure, Zcdp or Gdp",
        got=repr(claim),
        next_step="audit in the ledger's currency",
    )


def factor_of(claim: Loss, found: float) -> float:
    """Return by what factor noise may be too narrow, or books too cheap, until a bound like this one tells."""
    if found <= 0:
        return float("inf")
    ratio = claim.value / found
    return sqrt(ratio) if claim.parameter == "rho" else ratio


def side_by_side(
    ask: Callable[[Session, dict[str, Any]], Scores],
    table: Callable[[int, int], Any],
    trials: int,
    *,
    claim: Callable[[Session], Loss] | None = None,
    width: int = 1,
    **options: Any,
) -> Transcript:
    """Ask one session on D and one on D', and return one score a trial.

    Args:
        ask: asks for all groups, given a session and their keys; returns a score a trial.
        table: makes the table of so many trials with 0 or 1 units more in each.
        trials: how many.
        claim: what is promised, of a session that was asked; by default all that it spent.
        width: groups of a trial.
        **options: of the sessions.
    """
    keys = {"k": range(trials * width)}
    scores, claims = [], []
    for units in (0, 1):
        with Session(table(trials, units), **options) as session:
            scores.append(np.asarray(ask(session, keys)))
            claims.append(session.spent if claim is None else claim(session))
    return Transcript(scores[0], scores[1], max(claims, key=lambda loss: loss.value))


def rows(values: tuple[float, ...], added: float, times: int = 1) -> Callable[[int, int], Any]:
    """Return tables where each group k has rows with these x, and one more (or several) with another x for the unit.

    Column t is 1 in the unit's rows and 0 in the others.
    """
    import pyarrow as pa

    def table(trials: int, units: int) -> Any:
        """Return the table of so many trials."""
        groups, more = np.arange(trials), units * times
        k = np.concatenate([np.repeat(groups, len(values)), np.tile(groups, more)])
        x = np.concatenate([np.tile(np.asarray(values, float), trials), np.full(trials * more, added, float)])
        t = np.concatenate([np.zeros(trials * len(values), np.int64), np.ones(trials * more, np.int64)])
        return pa.table({"k": k, "x": x, "t": t})

    return table


def units(width: int, depth: int) -> Callable[[int, int], Any]:
    """Return tables where each trial owns `width` groups; its unit u has `depth` rows in each, or is gone."""
    import pyarrow as pa

    def table(trials: int, present: int) -> Any:
        """Return the table of so many trials; one row more, of a group not listed, keeps it from being empty."""
        trial = np.repeat(np.arange(trials * present), width * depth)
        place = np.tile(np.repeat(np.arange(width), depth), trials * present)
        return pa.table({"k": np.append(trial * width + place, -1), "u": np.append(trial, -1)})

    return table
