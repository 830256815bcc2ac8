"""Which selection is the cheapest: accuracy first, then the price in the ledger's currency.

"The best, or within g of it, with 95 %" fixes how much noise each kind may have; what that costs differs by currency.
Exponential noise (permute and flip) is the best buy in a pure ledger, and for several options a joint choice of them;
Gumbel noise (the exponential mechanism) in zCDP where a unit moves many scores, Gaussian noise where it moves few, or
where many options or places are wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.errors import InvalidTarget
from farthing.mechanisms.exponential import Exponential
from farthing.mechanisms.joint_top_k import TAKEN, JointTopK, distance_jointly, serves
from farthing.mechanisms.noises import NOISES, Noise, epsilon_for, known
from farthing.mechanisms.noisy_max import NoisyMax, PermuteAndFlip
from farthing.mechanisms.refined_max import check_target
from farthing.mechanisms.scores import refused, spread_of, whole
from farthing.mechanisms.top_k import TopK
from farthing.mechanisms.winning import chance_within, distance_for
from farthing.privacy.loss import Pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from farthing.privacy.loss import Booked, Gdp, Zcdp
    from farthing.privacy.numbers import Number

Selection: TypeAlias = Exponential | JointTopK | PermuteAndFlip | NoisyMax | TopK


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection that was chosen for its price, with the others it was compared with.

    Attributes:
        mechanism: the cheapest.
        price: what it costs.
        compared: every mechanism that gives the same guarantee of accuracy, with its price, cheapest first.
    """

    mechanism: Selection
    price: Booked
    compared: tuple[tuple[Selection, Booked], ...]

    def __str__(self) -> str:
        lines = [f"{price!r} by {named(mechanism)}" for mechanism, price in self.compared]
        return "; ".join(lines)


def for_regret(
    noise: Noise,
    *,
    options: int,
    within: float,
    confidence: float = 0.95,
    k: int = 1,
    sensitivity: Number = 1,
    monotone: bool = False,
    moved: int | None = None,
) -> Selection:
    """Return the cheapest selection with this noise whose choice is good enough with the confidence.

    Good enough: all k options are within `within` of the true k-th best, whatever the scores.

    Args:
        noise: "gumbel", "exponential", "laplace" or "gaussian".
        options: how many there are, more than k.
        within: in the scores' unit, > 0.
        confidence: in (1/2, 1).
        k: how many are chosen.
        sensitivity: the most that one unit moves a score.
        monotone: whether one unit moves all scores the same way.
        moved: the most scores that one unit moves at all; None for all.

    Guarantee: P[all chosen are good] >= confidence for every row of that many scores.
    Proof: docs/proofs/mechanisms.select.md, "How good the choice is"; the chance at the worst scores is exact.
    Assumes: float64 integrals to 1e-9, which the confidence is raised by.
    Rounds: epsilon up.

    >>> for_regret("gumbel", options=100, within=50, sensitivity=1, monotone=True)
    Exponential(epsilon=0.15079...)
    """
    check_target(within, confidence)
    known(noise)
    _check_options(options, k)
    distance = distance_for(noise, k, options, confidence)
    epsilon = epsilon_for(noise, distance, within, options, sensitivity, monotone=monotone, moved=moved)
    if k > 1:
        return TopK(k, epsilon, noise)
    if noise == "gumbel":
        return Exponential(epsilon)
    return PermuteAndFlip(epsilon) if noise == "exponential" else NoisyMax(epsilon, noise)


def for_joint_regret(
    *,
    options: int,
    within: float,
    k: int,
    confidence: float = 0.95,
    sensitivity: Number = 1,
    monotone: bool = False,
) -> JointTopK:
    """Return the joint choice that is good enough with the confidence, as of `for_regret`.

    Guarantee: P[all chosen are within `within` of the true k-th, and nothing left out is more than three times that
        above it] >= confidence, at all scores.
    Proof: docs/proofs/mechanisms.select.md, "A joint choice".
    Assumes: what `JointTopK` does.
    Rounds: epsilon up.

    >>> for_joint_regret(options=1000, within=50, k=10, monotone=True)
    JointTopK(k=10, epsilon=1.51659...)
    """
    check_target(within, confidence)
    _check_options(options, k)
    size = float(spread_of(sensitivity, monotone=monotone)) * (1 + TAKEN) / TAKEN * (1 + 2.0**-40)
    return JointTopK(k, math.nextafter(distance_jointly(k, options, confidence) * size / within, math.inf))


def _check_options(options: int, k: int) -> None:
    """Refuse a choice of all options, or of more."""
    if whole(options, "options") <= whole(k, "k"):
        raise InvalidTarget(
            "there is nothing to choose", rule="options > k", got=f"{options} options, k={k}", next_step="take them all"
        )


def choose_mechanism(
    currency: type[Gdp | Pure | Zcdp],
    *,
    options: int,
    within: float,
    confidence: float = 0.95,
    k: int = 1,
    sensitivity: Number = 1,
    monotone: bool = False,
    moved: int | None = None,
) -> Choice:
    """Return the selection that is cheapest in a currency for a guarantee of accuracy, and what others would cost.

    >>> from farthing.privacy import Gdp, Pure, Zcdp
    >>> named(choose_mechanism(Pure, options=20, within=50).mechanism)
    'permute and flip'
    >>> named(choose_mechanism(Zcdp, options=20, within=50).mechanism)
    'the exponential mechanism'
    >>> named(choose_mechanism(Gdp, options=10_000, within=50, monotone=True, moved=1).mechanism)
    'noisy maximum (gaussian)'
    """
    offers: list[tuple[Selection, Booked]] = []
    for noise in NOISES:
        if currency is Pure and noise == "gaussian":
            continue
        mechanism = for_regret(
            noise,
            options=options,
            within=within,
            confidence=confidence,
            k=k,
            sensitivity=sensitivity,
            monotone=monotone,
            moved=moved,
        )
        offers.append((mechanism, mechanism.price(currency)))
    if k > 1 and serves(k, options):
        joint = for_joint_regret(
            options=options, within=within, k=k, confidence=confidence, sensitivity=sensitivity, monotone=monotone
        )
        offers.append((joint, joint.price(currency)))
    offers.sort(key=lambda offer: offer[1].amount)
    return Choice(*offers[0], tuple(offers))


def confidence_of(
    noise: Noise, epsilon: Number, *, options: int, within: float, k: int = 1, spread: float = 2.0
) -> float:
    """Return the chance that all k chosen are within `within` of the k-th best, at the worst scores.

    Args:
        noise: "gumbel", "exponential" or "laplace", of size spread/epsilon.
        epsilon: the price of one choice.
        options: how many there are.
        within: in the scores' unit.
        k: how many are chosen.
        spread: R, the range of the score change.

    >>> round(confidence_of("gumbel", 0.15079, options=100, within=50, spread=1.0), 4)
    0.95
    """
    return chance_within(noise, k, options, float(epsilon) * within / spread)


def named(mechanism: Selection) -> str:
    """Return what people call a selection.

    >>> named(JointTopK(10, 1))
    'joint top-10'

    >>> named(TopK(10, 1))
    'top-10 (gumbel)'
    """
    if isinstance(mechanism, JointTopK):
        return f"joint top-{mechanism.k}"
    if isinstance(mechanism, TopK):
        return f"top-{mechanism.k} ({mechanism.noise})"
    if isinstance(mechanism, NoisyMax):
        return f"noisy maximum ({mechanism.noise})"
    return "permute and flip" if isinstance(mechanism, PermuteAndFlip) else "the exponential mechanism"


def choose_from(
    mechanism: Selection, options: Sequence[Any], scores: ArrayLike, sensitivity: Number = 1, **how: Any
) -> Any:
    """Return the chosen option itself, or the list of k of them; options may be anything, hashable or not.

    >>> choose_from(Exponential(1), [["JFK"], ["LGA"]], [0, 2000])
    ['LGA']
    """
    import numpy as np

    if np.ndim(scores) != 1 or len(options) != np.size(scores):
        raise refused(f"one score for each of the {len(options)} options", f"shape {np.shape(scores)}")
    chosen = mechanism.choose(scores, sensitivity, **how)
    if isinstance(mechanism, JointTopK | TopK):
        return [options[place] for place in np.asarray(chosen).tolist()]
    return options[int(chosen)]
