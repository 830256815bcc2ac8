"""What the refinements by name share: answers on a public grid, looks that are released, and who may stop on what."""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

import numpy as np

from farthing.errors import DataError, InvalidBudget, NoiseError
from farthing.mechanisms.scores import priced
from farthing.privacy.ex_post import positive
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.rounding import down, sqrt_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.numbers import Number

    Values = NDArray[Any] | float | int
    Level = Number | Pure | Gdp | Zcdp
    Stop = Callable[["Look[Any]"], bool]

L = TypeVar("L", Gdp, Pure)

GRID_BITS: Final = 12
"""Answers that are not whole numbers are rounded to a grid of at most 2^-12 of the sensitivity."""

_WIDEST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Gridded:
    """Exact answers as whole numbers of steps, and what one unit moves them by.

    Attributes:
        steps: int64[answers].
        step_log2: a step is 2^step_log2 in answer units; chosen from the sensitivity, the number and the type only.
        sensitivity: the most that one unit moves the steps, in the norm asked for: whole, rounding counted.
        single: whether one number was given rather than an array.
    """

    steps: NDArray[np.int64]
    step_log2: int
    sensitivity: int
    single: bool

    def shown(self, values: NDArray[Any]) -> Values:
        """Return values as they were given: an array, or one number."""
        return values[0].item() if self.single else values


def on_grid(true_values: ArrayLike, sensitivity: Number, *, norm: int, whole: bool) -> Gridded:
    """Return answers on a public grid.

    Args:
        true_values: a number, or numbers[answers]. Whole numbers are taken as they are; others are rounded to a grid.
        sensitivity: the most that one unit moves them, in the L1 (`norm` 1) or L2 norm (`norm` 2).
        norm: 1 or 2.
        whole: whether a step is 1; else it is at most 2^-12 of the sensitivity.

    Rounds: the sensitivity up. Rounding an answer to the grid may move it one step further from its neighbour, so of d
        rounded answers the sensitivity grows by d steps in L1 and by sqrt(d) in L2.
    """
    moves, given = positive(sensitivity, "sensitivity"), _numbers(true_values)
    exact_as_they_are = given.dtype.kind in "iu" and moves.denominator == 1
    if whole and not exact_as_they_are:
        raise InvalidBudget(
            "noise on whole numbers needs whole numbers",
            rule="integer answers and a whole sensitivity",
            got=f"{given.dtype}, sensitivity {sensitivity}",
            next_step="leave integer=True out: the noise then lies on a fine grid",
        )
    count = max(1, given.size)
    crowd = 0.0 if exact_as_they_are else float(count) if norm == 1 else sqrt_up(Fraction(count))
    step_log2 = 0 if whole else _exponent(moves / Fraction(crowd or 1.0)) - GRID_BITS
    step_log2 = min(step_log2, 0) if exact_as_they_are else step_log2
    scaled = np.rint(np.ldexp(given.reshape(-1).astype(np.float64), -step_log2))
    if scaled.size and max(abs(float(given.min())), abs(float(given.max()))) >= math.ldexp(_WIDEST, min(step_log2, 0)):
        raise _too_large()
    steps = math.ceil(moves / Fraction(2) ** step_log2 + Fraction(crowd))
    return Gridded(scaled.astype(np.int64), step_log2, steps, single=given.ndim == 0)


def _numbers(values: ArrayLike) -> NDArray[Any]:
    """Return answers as an array of numbers of 64 bits at most."""
    given = np.asarray(values)
    if given.size and given.dtype.kind == "O" and all(isinstance(each, int) for each in given.flat):
        raise _too_large()
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8 or given.ndim > 1 or not np.isfinite(given).all():
        raise DataError(
            "the answers are not numbers",
            rule="a finite number, or one line of them",
            got=f"{given.dtype}, {given.ndim} dimensions",
            next_step="give int64 or float64",
        )
    return given


def _too_large() -> DataError:
    """Return the refusal of answers that leave no room for their grid."""
    return DataError("the answers are too large", rule="below 2^53 steps", next_step="state them in larger units")


def _exponent(x: Fraction) -> int:
    """Return the exponent of the largest power of two that is at most x."""
    return math.frexp(down(x))[1] - 1


@dataclass(frozen=True, slots=True)
class Look(Generic[L]):
    """What a refinement has released: all that a stopping function is given.

    Attributes:
        values: the shown values, a number or numbers[answers].
        loss: what the looks so far have cost together.
        number: how many looks drew noise.
    """

    values: Any
    loss: L
    number: int


@dataclass(frozen=True, slots=True)
class PrivateTest:
    """A score that looks at the private data, with what one unit moves it by. It may stop a run only at its own price.

    Attributes:
        score: takes a `Look`, returns a number; large means good enough. It may use the data, and is never released.
        sensitivity: the most that one unit moves the score, whatever was shown.
        monotone: whether one unit moves the scores of all looks the same way.

    >>> PrivateTest(lambda look: -abs(look.values - 500), sensitivity=1).sensitivity
    1
    """

    score: Callable[[Look[Any]], Number]
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise InvalidBudget(
                "a private test has a score",
                rule="score is a function of what was shown",
                got=type(self.score).__name__,
                next_step="PrivateTest(lambda look: ..., sensitivity=1)",
            )
        positive(self.sensitivity, "sensitivity")


class ScoreStop(Protocol):
    """A mechanism that says when a private score passes, within what it allows for."""

    @property
    def sensitivity(self) -> Number:
        """The most that one unit moves a score."""

    @property
    def monotone(self) -> bool:
        """Whether one unit moves all scores the same way."""


class Refinable(Protocol):
    """What every refinement by name can do."""

    @property
    def look(self) -> Look[Any]:
        """What was released so far."""

    def refine(self, level: Level, /) -> Any:
        """Release the values at a finer level."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where a private test stopped a run.

    Attributes:
        look: what was released.
        passed: whether the test stopped it, rather than the end of the schedule.
        own: what the test has cost.
    """

    look: Look[Pure]
    passed: bool
    own: Pure

    @property
    def loss(self) -> Pure:
        """What the run has cost: the test's own price and the ex-post loss of what was released."""
        return self.own + self.look.loss


def look_until(
    refinement: Refinable,
    levels: Sequence[Level],
    test: PrivateTest,
    mechanism: ScoreStop,
    passes: Callable[[Number, int], bool],
) -> tuple[Look[Pure], bool]:
    """Refine along a schedule until a private test passes; return the last look, and whether it did."""
    look = getattr(refinement, "look", None)
    if not isinstance(test, PrivateTest) or not isinstance(look, Look) or type(look.loss) is not Pure:
        raise InvalidBudget(
            "a private stop needs a private test, and a refinement with a pure ex-post loss",
            rule="PrivateTest(score, sensitivity) and a LaplaceRefinement",
            got=f"{type(test).__name__}, {type(refinement).__name__}",
            next_step="a stop that sees what was shown only is free: refinement.run(levels, stop)",
        )
    if Fraction(test.sensitivity) > Fraction(mechanism.sensitivity) or mechanism.monotone > test.monotone:
        raise InvalidBudget(
            "the score can move further than the mechanism allows for",
            rule=f"sensitivity at most {mechanism.sensitivity}, monotone if the mechanism says so",
            got=f"sensitivity {test.sensitivity}, monotone={test.monotone}",
            next_step="give the mechanism the test's sensitivity, and leave monotone out",
        )
    for number, level in enumerate(rising(levels)):
        refinement.refine(level)
        if passes(test.score(refinement.look), number):
            return refinement.look, True
    return refinement.look, False


def epsilon_of(level: Level) -> Fraction:
    """Return a level told as epsilon, or as a `Pure` loss, exactly."""
    return priced(level.amount if isinstance(level, Pure) else cast("Number", level))


def mu_squared_of(level: Level) -> Fraction:
    """Return a level told as mu, or as a `Gdp` or a `Zcdp` loss, as mu^2, exactly."""
    if isinstance(level, Gdp):
        return priced(level.amount, "mu")
    if isinstance(level, Zcdp) and not level.slack:
        return 2 * priced(level.amount, "rho")
    return priced(cast("Number", level), "mu") ** 2


def schedule(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return levels, or prices, as a row of them; refuse what is none."""
    with suppress(TypeError):
        return tuple(levels)
    raise InvalidBudget(
        "a run needs a schedule", rule="a list of levels", got=repr(levels), next_step="run([0.1, 0.2, 0.4])"
    )


def rising(levels: Sequence[Level], worth: Callable[[Level], Fraction] = epsilon_of) -> tuple[Level, ...]:
    """Return a schedule that rises strictly in what its levels are worth, or refuse it."""
    given = schedule(levels)
    exact = [worth(level) for level in given]
    if not exact or any(late <= early for early, late in pairwise(exact)):
        raise InvalidBudget(
            "the schedule does not rise",
            rule="at least one level, each above the one before it",
            got=", ".join(str(level) for level in given) or "no level",
            next_step="sort the levels, and leave out repeated ones",
        )
    return given


def run_until(
    refinement: Refinable, levels: Sequence[Level], stop: Stop | None, worth: Callable[[Level], Fraction]
) -> Look[Any]:
    """Refine along a schedule until `stop` likes what was shown; return the last look."""
    require_public(stop)
    for level in rising(levels, worth):
        refinement.refine(level)
        if likes(stop, refinement.look):
            break
    return refinement.look


def require_public(stop: object) -> None:
    """Refuse a stop that is not a function of what was shown."""
    if isinstance(stop, PrivateTest) or not (stop is None or callable(stop)):
        raise InvalidBudget(
            "this run stops on what was shown only",
            rule="stop is a function of the look; a test of the private data has a price of its own",
            got=type(stop).__name__,
            next_step="ReducedAboveThreshold(...).run(LaplaceRefinement(...), levels, prices, test) takes private ones",
        )


def likes(stop: Stop | None, look: Look[Any]) -> bool:
    """Tell whether a stop says that this look is enough; one answer for all values, or none."""
    said = stop is not None and stop(look)
    with suppress(ValueError):
        return bool(said)
    raise InvalidBudget(
        "the stop gave many answers",
        rule="stop returns True or False for the whole look",
        got=type(said).__name__,
        next_step="stop=lambda look: (look.values > 3).all(), say",
    )


def score_told(score: Any) -> int | float:
    """Return what a private test gave as a number; the refusal does not tell it."""
    with suppress(TypeError, ValueError, OverflowError):
        if hasattr(score, "__index__"):  # whole numbers of any kind stay whole: a float would lose units above 2^53
            return operator.index(score)
        if not isinstance(score, str | bytes):
            return float(score)
    raise NoiseError(
        "the score is not a number",
        rule="a score is one finite number",
        got="something else",
        next_step="let the score return a number, as in -abs(look.values - truth)",
    )
