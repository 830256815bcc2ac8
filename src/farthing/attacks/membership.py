"""Who is in the group? Membership inference from its means, the attack that no count escapes by being an aggregate.

Each candidate has public attributes, zeros and ones, and was put into the group by a fair coin. The target says how
many of the group have each attribute. Whoever is in the group has moved all these counts a little towards themselves;
over many attributes that adds up.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from farthing.attacks.accepting import accepted
from farthing.attacks.coins import Coins
from farthing.attacks.result import AttackResult, Guesses, exact_interval, judged
from farthing.attacks.target import Conversation, Question, quoted
from farthing.attacks.verdict import CONFIDENCE
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from farthing.attacks.target import AttackTarget, People

Knowing = Literal["population", "reference", "record"]

LEAST_DRAWS: Final = 1_000
"""With fewer draws from the population nothing is known about a false-positive rate of a hundredth."""

_RATE_SHARE: Final = 0.1
"""The share of the level that goes to the false-positive rate; the rest goes to the members that were found."""

_FEW: Final = 0.35
"""The share of the candidates below which those who stand apart are guessed alone."""

_REFERENCE: Final = 50
_CHUNK: Final = 500


def membership(
    target: AttackTarget | Callable[[NDArray[np.bool_]], Any],
    queries: int | None = None,
    seed: int | None = 0,
    *,
    population: ArrayLike = 0.5,
    rate: float = 0.01,
    draws: int = 10_000,
    knowing: Knowing = "population",
) -> AttackResult:
    """Tell who is in the group from the share of it that has each attribute.

    [DworkSSUV15]: the score of a candidate y is the sum of (y_j - p_j)(q_j - p_j)/(p_j (1 - p_j)) over the attributes,
    for answers q, clipped to [0, 1], and shares p of the population. Whoever scores above a threshold that only `rate`
    of the population passes is called a member. The secret bits of the people are who is in the group, and their
    columns of zeros and ones the attributes: `secrets(n, attributes=1000)` draws both.

    Args:
        target: a Target whose people have attributes, such as `targets.Exact(people)`.
        queries: how many attributes are asked about at most, the first ones; by default all.
        seed: of the draws from the population.
        population: the chance of each attribute in the population: one number, or float64[attributes].
        rate: the false-positive rate, in (0, 1).
        draws: how many people are drawn from the population to find the threshold, at least 1,000.
        knowing: what the attacker knows: "population": all p_j. "reference": 50 other people of the population, in
            place of the p_j. "record": one of them; then the threshold is the theorem's, sqrt(8 d log(1/rate)), which
            needs no draws and finds little.

    Returns:
        The verdict rests on guesses for everybody: the half of the candidates with the higher scores is in, the others
        are not, and the further from the middle the surer. Against a target that keeps its claim each is right with
        odds of at most e^epsilon, whatever the attributes are: correlated, copied, or of other shares than `population`
        says. `details` has the rates of the classical test, which do rest on the population.

    >>> from farthing.attacks import secrets, targets
    >>> people = secrets(100, seed=1, attributes=800)
    >>> result = membership(targets.Rounded(people, 5))
    >>> result.verdict, result.details["true_positives"] > 0.5, result.details["false_positives"] < 0.02
    ('broken', True, True)
    """
    started, asked = time.perf_counter(), Conversation(accepted(target))
    people = asked.target.people
    names, rows = _attributes(people, queries)
    _check(people, rate, draws, knowing)
    shares = _shares(population, len(names))
    everybody = asked.ask(_question(asked.target, "1 = 1", np.ones(people.n, dtype=bool)))
    answers = asked.all([
        _question(asked.target, f"{quoted(name)} = 1", row) for name, row in zip(names, rows, strict=True)
    ])  # fmt: skip
    known = ~np.isnan(answers)

    def scored(counts: NDArray[np.float64], size: float) -> tuple[Guesses, NDArray[np.bool_], Scored]:
        published = np.clip(counts[known] / size, 0.0, 1.0)
        test = _TESTS[knowing](published, shares[known], Tried(rate, draws, Coins(seed, "membership", knowing)))
        scores = test.score(rows[known].T) if known.any() else np.full(people.n, np.nan)
        guesses = _split(_among(rows[known], published) if known.any() and knowing == "population" else scores)
        return guesses, scores > test.threshold, test

    def exact() -> Guesses:
        counts = np.count_nonzero(rows & people.bits, axis=1).astype(np.float64)
        return scored(counts, max(int(people.bits.sum()), 1))[0]

    guesses, called, test = scored(answers, everybody if everybody >= 1 else people.n * people.prior)
    members, found = int(people.bits.sum()), int((called & people.bits).sum())
    return judged(
        "membership",
        asked,
        guesses,
        started=started,
        seed=seed,
        least=2,  # the size of the group, and one share
        exact=exact,
        members=members,
        true_positives=found / max(members, 1),
        false_positives=test.false,
        false_positives_at_most=test.false_upper,
        expected=tracing_power(max(asked.answered - 1, 0), max(members, 1), rate),
    )


def tracing_power(attributes: int, members: int, rate: float = 0.01, sigma: float = 0.0) -> float:
    """Return the share of members that are expected to be found: Phi(sqrt(d/(n + 4 sigma^2)) - z), z of the rate.

    Args:
        attributes: d, how many, each with chance 1/2 in the population.
        members: n, how many are in the group.
        rate: the false-positive rate.
        sigma: the standard deviation of noise on each count, in people.

    >>> [f"{tracing_power(attributes, 100):.2f}" for attributes in (100, 400, 1000, 2000)]
    ['0.09', '0.37', '0.80', '0.98']
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(math.sqrt(attributes / (members + 4 * sigma**2)) + ndtri(rate)))


def found_p_value(found: int, candidates: int, rate: float, epsilon: float, *, delta: float = 0.0) -> float:
    """Return the chance of finding at least so many members of a target that keeps (epsilon, delta) for one bit.

    Guarantee: an upper bound of that chance, for every such target, at every rate at least the true one.
    Proof: docs/proofs/attacks.membership.md.
    Assumes: candidates drawn independently from the population, and put into the group by fair coins; who is called a
        member depends on the answers and the candidate's own attributes only. Attributes of other shares than the
        attacker assumes, or copied from one candidate to the next, break this; `membership` does not rest on it.
    Rounds: nothing; floating-point error is far below any level in use.

    Args:
        found: how many members were called members.
        candidates: how many there are, members or not.
        rate: the chance that somebody of the population is called a member, given the answers.
        epsilon: of the promise about who is in the group.
        delta: of the promise.

    >>> found_p_value(80, 200, 0.014, 1.0) < 1e-6 < found_p_value(80, 200, 0.014, 4.0)
    True
    """
    from scipy.special import bdtrc

    if found < 1:
        return 1.0
    chance = min(1.0, rate * math.exp(min(2 * epsilon - math.log1p(math.exp(min(epsilon, 350.0))), 350.0)))
    if not delta:
        return float(bdtrc(found - 1, candidates, chance))
    extra = np.arange(found)  # so many of the found ones may be owed to delta
    tails = bdtrc(found - extra - 1, candidates, chance) + candidates * delta / (extra + 1)
    return min(1.0, float(np.min(tails)))


@dataclass(frozen=True, slots=True)
class Tried:
    """How a threshold is found.

    Attributes:
        rate: the false-positive rate that is wanted.
        draws: how many people are drawn for it.
        coins: what they are drawn with.
    """

    rate: float
    draws: int
    coins: Coins

    @property
    def above(self) -> int:
        """How many of the draws may pass."""
        return max(1, math.floor(self.rate * self.draws)) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A linear score, its threshold, and what is known of the false-positive rate.

    Attributes:
        weights: float64[attributes].
        centre: float64[attributes], what is taken off a candidate's attributes.
        threshold: whoever scores above it is called a member.
        false: the share of the draws that do, or the theorem's rate.
        false_upper: the rate is at most this, with the share of the level that is set aside for it.
    """

    weights: NDArray[np.float64]
    centre: NDArray[np.float64]
    threshold: float = math.inf
    false: float = 0.0
    false_upper: float = 1.0

    def score(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the scores of people: bool[people, attributes] to float64[people]."""
        return np.asarray((rows - self.centre) @ self.weights)

    def calibrated(self, shares: NDArray[np.float64], tried: Tried) -> Scored:
        """Return it with the threshold that only the wanted rate of the population passes."""
        if not len(shares):
            return self
        scores = np.concatenate([self.score(rows) for rows in _population(shares, tried.draws, tried.coins)])
        threshold = float(np.partition(scores, -tried.above - 1)[-tried.above - 1])
        share = (1 - CONFIDENCE) * _RATE_SHARE
        upper = exact_interval(tried.above, tried.draws, 1 - 2 * share)[1]
        return replace(self, threshold=threshold, false=tried.above / tried.draws, false_upper=upper)


def _by_population(published: NDArray[np.float64], shares: NDArray[np.float64], tried: Tried) -> Scored:
    """Score against the true shares of the population."""
    weights = (published - shares) / (shares * (1 - shares))
    return Scored(weights, shares).calibrated(shares, tried)


def _by_reference(published: NDArray[np.float64], shares: NDArray[np.float64], tried: Tried) -> Scored:
    """Score against the shares of a few people of the population, each counted as half a person more on both sides."""
    counts = sum((rows.sum(axis=0) for rows in _population(shares, _REFERENCE, tried.coins)), np.zeros(len(shares)))
    about = (counts + 0.5) / (_REFERENCE + 1)
    return Scored((published - about) / (about * (1 - about)), about).calibrated(shares, tried)


def _by_record(published: NDArray[np.float64], shares: NDArray[np.float64], tried: Tried) -> Scored:
    """Score against one person of the population, with a threshold that holds for every product population.

    In signs, the score of somebody who is not in the group is a sum of d independent terms of mean 0 within [-2, 2]
    once the answers are given, and passes sqrt(8 d log(1/rate)) with chance at most `rate` (Hoeffding).
    """
    other = next(_population(shares, 1, tried.coins))[0].astype(np.float64)
    threshold = math.sqrt(8 * len(shares) * math.log(1 / tried.rate))
    return Scored(2 * (2 * published - 1), other, threshold, tried.rate, tried.rate)


_TESTS: Final[dict[str, Callable[[NDArray[np.float64], NDArray[np.float64], Tried], Scored]]] = {
    "population": _by_population,
    "reference": _by_reference,
    "record": _by_record,
}


def _among(rows: NDArray[np.bool_], published: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return everybody's score against the shares among the candidates themselves, whatever the population is."""
    shares = (rows.sum(axis=1) + 0.5) / (rows.shape[1] + 1)
    return np.asarray((rows.T - shares) @ ((published - shares) / (shares * (1 - shares))))


def _split(scores: NDArray[np.float64]) -> Guesses:
    """Return guesses: the half with the higher scores is in; far from the middle is sure.

    Where few stand apart from the rest, as when a sample was published, only they are guessed, to be in.
    """
    if np.isnan(scores).any() or len(scores) < 2:
        return Guesses(np.zeros(len(scores), bool), np.full(len(scores), np.nan))
    ranked = np.sort(scores)
    below = np.arange(1, len(ranked))
    sums = np.cumsum(ranked - ranked.mean())[:-1]
    cut = int(np.argmax(sums**2 / (below * (len(ranked) - below))))  # the two groups that differ most
    if len(ranked) - 1 - cut < _FEW * len(ranked):
        apart = scores > ranked[cut]
        return Guesses(apart, np.where(apart, scores - ranked[cut], np.nan))
    middle = float(np.median(scores))
    return Guesses(scores > middle, np.abs(scores - middle))


def _question(target: AttackTarget, where: str, chosen: NDArray[np.bool_]) -> Question:
    """Return the question how many of the group have an attribute, in the target's language."""
    return Question(chosen=chosen) if target.speaks == "vector" else Question(text=target.people.count(where))


def _attributes(people: People, queries: int | None) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the columns of zeros and ones, bool[attributes, people]."""
    names = [
        name
        for name, column in people.columns.items()
        if name != people.id and column.dtype.kind in "biu" and np.isin(column, (0, 1)).all()
    ]
    if not names or (queries is not None and queries < 1):
        raise DataError(
            "the candidates do not have that many attributes",
            rule="people with columns of zeros and ones, and queries >= 1",
            got=f"{len(names)} such columns, queries={queries}",
            next_step="targets.Exact(attacks.secrets(200, attributes=1000))",
        )
    chosen = names[:queries]
    return chosen, np.array([people.columns[name] for name in chosen]).astype(bool)


def _shares(population: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return the chance of each attribute, in (0, 1)."""
    shares = np.asarray(population, dtype=np.float64)
    if shares.ndim == 0:
        shares = np.full(count, shares)
    if shares.ndim != 1 or len(shares) < count or not ((shares > 0) & (shares < 1)).all():
        raise DataError(
            "the population is out of range",
            rule=f"one chance in (0, 1), or one for each of {count} attributes",
            got=f"shape {shares.shape}",
            next_step="leave population= out for fair coins, as attacks.secrets tosses them",
        )
    return shares[:count]


def _population(shares: NDArray[np.float64], draws: int, coins: Coins) -> Iterator[NDArray[np.bool_]]:
    """Yield people of the population, some hundred at a time: bool[people, attributes]."""
    for start in range(0, draws, _CHUNK):
        yield coins.uniform(min(_CHUNK, draws - start), len(shares)) < shares


def _check(people: People, rate: float, draws: int, knowing: str) -> None:
    """Refuse what the theorem does not cover."""
    if knowing not in get_args(Knowing) or not 0 < rate < 1 or draws < LEAST_DRAWS:
        raise DataError(
            "the test is out of range",
            rule=f"knowing is one of {', '.join(get_args(Knowing))}; rate in (0, 1); draws >= {LEAST_DRAWS:,}",
            got=f"knowing={knowing}, rate={rate}, draws={draws}",
            next_step="leave them out",
        )
    if not math.isclose(people.prior, 0.5):
        raise DataError(
            "the group was not drawn by fair coins",
            rule="each candidate is in it with chance 1/2",
            got=f"prior={people.prior}",
            next_step="draw it with attacks.secrets(n, seed, attributes=1000)",
        )
