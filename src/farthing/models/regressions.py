"""Ridge and logistic regression to a target excess risk: the public faces, and the loop behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

import numpy as np

from farthing.errors import BudgetExceeded, InvalidBounds, InvalidTarget
from farthing.models.bounds import theory_coins
from farthing.models.fitted import Fitted, Promise
from farthing.models.looks import Method, VectorLooks, rising
from farthing.models.problems import Logistic, Ridge
from farthing.models.purses import Purse
from farthing.models.rows import MOST_ROWS, UnitBallFrame, positive, signs, together
from farthing.models.stops import FitLook, NoStop, PrivateStop, ReducedStop, ShownStop
from farthing.models.vectors import Output, Statistics
from farthing.privacy.loss import Gdp, Pure, Zcdp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from farthing.models.fitted import By
    from farthing.models.problems import Problem
    from farthing.models.purses import Price
    from farthing.models.rows import Norm
    from farthing.models.stops import Stop
    from farthing.models.vectors import Vector

W = TypeVar("W")
Where = Literal["statistics", "output"]
Stopping = Literal["test", "reduced", "shown"]

LOOKS: Final = 24
"""Levels of a fit, by default: each sqrt(2) of the one before, in epsilon or mu."""

LEAST_STRENGTH: Final = 1e-6
"""Below it the equations lose their last digits."""

COARSEST: Final = 2.0**50
"""Levels with more noise than this, in steps, are left out: they tell nothing, and need not fit 64 bits."""

THEORY_PART: Final = 0.1
"""The part of the chance to fail that the level of theory has, where a fit always ends."""


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What is asked of a fit, checked.

    Attributes:
        target: excess risk, in the problem's units.
        told: the same in the caller's.
        confidence: in (0, 1).
        purse: the cap.
        method: "reduction", "doubling" or "theory".
        levels: the caller's levels, or None.
        bits: where random bits come from.
    """

    target: float
    told: float
    confidence: float
    purse: Purse
    method: Method
    levels: Sequence[float] | None
    bits: Any

    def __post_init__(self) -> None:
        for name, value, most in (("target", self.told, math.inf), ("confidence", self.confidence, 1)):
            usable = isinstance(value, int | float) and not isinstance(value, bool)
            if not usable or not math.isfinite(value) or not 0 < value < most:
                raise InvalidTarget(
                    f"{name} is out of range",
                    rule="target > 0" if name == "target" else "0 < confidence < 1",
                    got=repr(value),
                    next_step="target=0.01, confidence=0.9, say",
                )
        one_of("method", self.method, get_args(Method))

    @property
    def failure(self) -> float:
        """The chance to fail."""
        return 1 - self.confidence


def ridge(
    features: ArrayLike,
    responses: ArrayLike,
    *,
    target: float,
    cap: Price,
    rows: int,
    bound_x: float,
    bound_y: float,
    regularisation: float = 0.005,
    confidence: float = 0.9,
    where: Where = "statistics",
    stop: Stopping | None = None,
    norm: Norm | None = None,
    intercept: bool = True,
    method: Method = "reduction",
    levels: Sequence[float] | None = None,
    bits: Any = None,
) -> Fitted:
    """Return the ridge regression with the least loss found whose risk is within `target` of the best one's.

    The risk is (1/rows) sum (y - prediction)^2 / 2 + (regularisation/2) |theta|^2, over rows clamped to their
    bounds; in units of y^2. theta are the coefficients of the features divided by `bound_x` (with a
    constant: by sqrt(2) of it; in l1 by 2), the intercept among them.

    Args:
        features: float64[rows, columns]. A row with a value that is not a finite number is left out, by itself.
        responses: float64[rows]; infinite ones are clamped, rows with any other that is not a number are left out.
        target: how much larger than the least the risk may be, > 0, in units of y^2. From bound_y^2/2 up the
            coefficients 0 meet it: they are returned, free of charge.
        cap: the most that the fit may cost, and by its kind the noise: `Gdp`, `Zcdp` or `Approx` (Gaussian), `Pure`.
        rows: a public number of rows, at least as many as there are: with more rows than this the promise is void,
            privacy is not.
        bound_x: the norm that rows of features are clamped to; public, never taken from the data.
        bound_y: the size that responses are clamped to; public.
        regularisation: at least 1e-6.
        confidence: the chance that the fit does not end as met with an excess risk above the target.
        where: noise on the "statistics", or on the "output".
        stop: "shown" looks at released numbers only (statistics with Gaussian noise). "test" looks at the private
            excess risk, by AboveThreshold, for a price of its own; "reduced" by ReducedAboveThreshold, whose price
            rises with the levels (`Pure` and `Approx` only). By default "shown" where it can be, else "test".
        norm: "l2", or "l1", which suits the noise of a `Pure` cap; by default what suits the noise.
        intercept: whether there is one.
        method: "reduction", or the baselines "doubling" (fresh noise each time, all looks paid) and "theory" (one
            look, at the level that theory asks for).
        levels: epsilons (`Pure`), or mus, that rise; by default 24, each sqrt(2) of the one before.
        bits: where random bits come from; None is the system's stream cipher.

    Raises:
        BudgetExceeded: neither a test nor theory fits under the cap. Nothing was released.
        DataError, InvalidBounds, InvalidBudget, InvalidTarget: arguments that are none.

    Guarantee: `Fitted.loss`, in the meaning that `Fitted.statement` tells.
    Proof: docs/proofs/models.regressions.md.
    Assumes: add/remove one row; `rows`, bounds and all other arguments but features and responses are public.
    Rounds: prices up; data to a public grid.
    """
    purse = Purse(cap)
    frame = UnitBallFrame(bound_x, bound_y, norm or purse.norm, intercept)
    wanted = FitRequest(
        target / frame.bound_y**2 if _real(target) else 0, target, confidence, purse, method, levels, bits
    )
    one_of("where", where, get_args(Where))
    points = frame.points(features)
    points, clamped = together(points, frame.responses(responses, len(points)))
    problem = Ridge(points, clamped, checked_rows(rows), checked_strength(regularisation))
    vector: Vector = Output.of(problem) if where == "output" else Statistics.of(problem, frame.norm)
    return _fitted(wanted, frame, problem, vector, stop)


def logistic(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    target: float,
    cap: Price,
    rows: int,
    bound_x: float,
    regularisation: float = 0.005,
    confidence: float = 0.9,
    stop: Literal["test", "reduced"] = "test",
    intercept: bool = True,
    method: Method | None = None,
    levels: Sequence[float] | None = None,
    bits: Any = None,
) -> Fitted:
    """Return the logistic regression with the least loss found whose risk is within `target` of the best one's.

    The risk is (1/rows) sum log(1 + exp(-margin)) + (regularisation/2) |theta|^2, over rows clamped to their bound, in
    nats. theta are the coefficients of the features divided by `bound_x` (with the constant: by sqrt(2) of it). The
    minimiser is released at falling noise, and a test on the private excess risk ends it. `predict` of the model gives
    log odds of the label 1: its label is 1 where they are above 0, its chance 1/(1 + exp(-log odds)).

    Args:
        features: float64[rows, columns]. A row with a value that is not a finite number is left out, by itself.
        labels: 0 and 1, or -1 and 1, or bool; rows with any other label are left out, each by itself.
        target: how much larger than the least the risk may be, > 0, in nats. From log(2) up the coefficients 0 meet
            it: they are returned, free of charge.
        cap: as for `ridge`, like the others below.
        rows: a public number of rows, at least as many as there are, as for `ridge`.
        bound_x: the norm that rows of features are clamped to.
        regularisation: at least 1e-6.
        confidence: the chance that the fit does not end as met with an excess risk above the target.
        stop: "test", or "reduced".
        intercept: whether there is one.
        method: "reduction", "doubling" or "theory". By default "theory" where the noise is Gaussian and the cap pays
            for it, since for this loss it asks for less than a test would; else "reduction".
        levels: epsilons, or mus, that rise.
        bits: where random bits come from.

    Raises:
        BudgetExceeded: neither a test nor theory fits under the cap. Nothing was released.
        DataError, InvalidBounds, InvalidBudget, InvalidTarget: arguments that are none.

    Guarantee: `Fitted.loss`, in the meaning that `Fitted.statement` tells.
    Proof: docs/proofs/models.regressions.md; after [ChaudhuriMS11].
    Assumes: add/remove one row; `rows`, bounds and all other arguments but features and labels are public.
    Rounds: prices up; data to a public grid.

    >>> import numpy as np
    >>> from farthing.privacy import Pure
    >>> X = np.sin(np.outer(np.arange(30_000), [1.0, 2.3]))
    >>> fitted = logistic(X, X[:, 0] > 0, target=0.05, cap=Pure(4), rows=30_000, bound_x=1.5, regularisation=0.05)
    >>> fitted.met, fitted.test < fitted.loss
    (True, True)
    """
    wanted = FitRequest(target, target, confidence, Purse(cap), method or "reduction", levels, bits)
    frame = UnitBallFrame(bound_x, intercept=intercept)
    points = frame.points(features)
    points, signed = together(points, signs(labels, len(points)))
    problem = Logistic(points * signed[:, None], checked_rows(rows), checked_strength(regularisation))
    vector = Output.of(problem)
    if method is None and levels is None and wanted.purse.gaussian:
        theory = theory_coins(problem, vector, wanted.purse, target, wanted.failure)
        wanted = replace(wanted, method="theory" if theory and wanted.purse.holds(theory) else "reduction")
    return _fitted(wanted, frame, problem, vector, stop)


def _fitted(
    wanted: FitRequest, frame: UnitBallFrame, problem: Problem, vector: Vector, stop: Stopping | None
) -> Fitted:
    """Return the model of the first look that is good enough, or of the last one that the cap allows."""
    stopping = _stopping(stop, vector, wanted.purse)
    if wanted.target >= problem.idle:
        return _idle(wanted, frame, vector, problem.rows)
    alone = wanted.failure if wanted.method == "theory" else wanted.failure * THEORY_PART
    theory = theory_coins(problem, vector, wanted.purse, wanted.target, alone)
    plan = _levels(wanted, theory, vector.sensitivity(wanted.purse.norm))
    rule = _rule(wanted, problem, vector, stopping, looks=len(plan), theory=theory)
    _affordable(wanted, rule, theory)
    looks = VectorLooks(vector, wanted.purse, wanted.method == "doubling", wanted.bits)
    tried: list[int] = []
    by: By = "nothing"
    for number, coins in enumerate(plan, 1):
        ends = theory is not None and coins >= theory
        if not wanted.purse.holds(looks.price(coins), rule.epsilon if ends else rule.worst(coins)):
            break
        values = looks.show(coins)
        theta = vector.hypothesis(values)
        tried.append(coins)
        if ends:
            by = "theory"
            break
        if rule.accepts(FitLook(number, len(plan) - number + 1, coins, looks.paid, values, theta)):
            by = stopping
            break
    if not tried:
        raise _refused(wanted.purse, wanted.purse.total(plan[0], rule.worst(plan[0])) if plan else None)
    coefficients, intercept = frame.coefficients(theta)
    return Fitted(
        coefficients,
        intercept,
        wanted.purse.total(looks.paid, rule.epsilon),
        Pure(rule.epsilon) if rule.epsilon else None,
        tuple(wanted.purse.level(coins) for coins in tried),
        wanted.purse.level(tried[-1]),
        Promise(wanted.told, wanted.confidence, by, problem.rows),
    )


def _idle(wanted: FitRequest, frame: UnitBallFrame, vector: Vector, rows: int) -> Fitted:
    """Return the hypothesis 0, which reads no row and is free: it meets every target from `Problem.idle` up.

    Guarantee: nothing private is read, so nothing is paid.
    Proof: docs/proofs/models.regressions.md, "Theory".
    Assumes: for the promise, at most N rows.
    Rounds: nothing.
    """
    if wanted.levels is not None:
        rising(wanted.levels, wanted.purse)
    coefficients, intercept = frame.coefficients(vector.hypothesis(np.zeros(len(vector.truth))))
    promise = Promise(wanted.told, wanted.confidence, "theory", rows)
    return Fitted(coefficients, intercept, wanted.purse.total(0, Fraction(0)), None, (), 0.0, promise)


def _stopping(stop: Stopping | None, vector: Vector, purse: Purse) -> Stopping:
    """Return how looks are judged; refuse a bound from shown numbers where there is none."""
    can = isinstance(vector, Statistics) and purse.gaussian
    found: Stopping = one_of("stop", stop or ("shown" if can else "test"), get_args(Stopping))
    if found == "shown" and not can:
        raise InvalidTarget(
            "no bound is known from what is shown here",
            rule='stop="shown" needs where="statistics" and a cap for Gaussian noise',
            got=f"{type(vector).__name__} under {type(purse.cap).__name__}",
            next_step='stop="test"',
        )
    if found == "reduced" and isinstance(purse.cap, Gdp | Zcdp):
        raise InvalidTarget(
            "a reduced test has no ex-post price in that currency",
            rule='stop="reduced" needs a Pure or an Approx cap',
            got=repr(purse.cap),
            next_step='stop="test", which is charged whole in every currency',
        )
    return found


def _rule(
    wanted: FitRequest, problem: Problem, vector: Vector, stopping: Stopping, *, looks: int, theory: int | None
) -> Stop:
    """Return the stop of a fit; it has what theory leaves of the chance to fail."""
    if wanted.method == "theory":
        return NoStop()
    failure = wanted.failure * (1 - THEORY_PART)
    if stopping == "shown" and isinstance(vector, Statistics):
        return ShownStop(vector, wanted.purse, wanted.target, failure, looks)
    if stopping == "reduced":
        return ReducedStop(problem, wanted.purse, wanted.target, failure, looks, wanted.bits)
    return PrivateStop(problem, wanted.purse, wanted.target, failure, theory, wanted.bits)


def _levels(wanted: FitRequest, theory: int | None, steps: int) -> tuple[int, ...]:
    """Return the levels of a fit, in coins, up to that of theory or to the cap."""
    if wanted.method == "theory":
        return () if theory is None else (theory,)
    if wanted.levels is not None:
        return rising(wanted.levels, wanted.purse)
    most = wanted.purse.most()
    top = most if theory is None else min(theory, most)
    slow = wanted.method == "reduction" and not wanted.purse.gaussian
    ratio = math.sqrt(2) if slow else 2.0
    found = {int(top / ratio**back) for back in range(1, LOOKS)} | {top}
    return tuple(coins for coins in sorted(found) if coins and wanted.purse.spread(coins, steps) <= COARSEST)


def _affordable(wanted: FitRequest, rule: Stop, theory: int | None) -> None:
    """Refuse, before anything is released, what no look under the cap could end; all that is read is public."""
    purse = wanted.purse
    by_theory = purse.total(theory, Fraction(0)) if theory is not None else None
    if by_theory is not None and by_theory.amount <= purse.cap.amount:
        return
    if isinstance(rule, ShownStop):
        return
    needed: Price | None = by_theory
    if isinstance(rule, PrivateStop | ReducedStop):
        price = rule.least
        if purse.holds(1, price):
            return
        needed = purse.total(1, price)
    raise _refused(purse, needed)


def _refused(purse: Purse, needed: Price | None) -> BudgetExceeded:
    """Return the refusal of a fit that cannot begin."""
    return BudgetExceeded(
        "the cap is below what that target takes",
        rule="the cap pays for a look and its test, or for the level that theory asks for",
        needed=needed,
        left=purse.cap,
        got=f"cap {purse.cap!r}, needed {needed!r}" if needed else f"cap {purse.cap!r}, and theory has no level",
        next_step="raise the target, the cap or the regularisation, or bring more rows",
    )


def checked_rows(rows: Any) -> int:
    """Return the public number of rows; refuse what is none."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InvalidBounds(
            "rows is not a number of rows",
            rule="a public whole number, at least as many as there are",
            got=repr(rows),
            next_step="rows=10_000, say; it is not read from the data",
        )
    if rows > MOST_ROWS:
        raise InvalidBounds(
            "rows is more than can be fitted", rule=f"at most {MOST_ROWS}", got=rows, next_step=f"rows={MOST_ROWS}"
        )
    return rows


def checked_strength(regularisation: Any) -> float:
    """Return the regularisation; refuse what leaves the problem nearly flat."""
    strength = positive("regularisation", regularisation)
    if strength < LEAST_STRENGTH:
        raise InvalidBounds(
            "the regularisation is too weak",
            rule=f"at least {LEAST_STRENGTH:g}",
            got=strength,
            next_step="regularisation=0.005 is usual",
        )
    return strength


def one_of(name: str, value: W, known: tuple[W, ...]) -> W:
    """Return a word that is known; refuse others."""
    if value not in known:
        raise InvalidTarget(
            f"{name} is unknown", rule=" or ".join(map(str, known)), got=repr(value), next_step=f"{name}={known[0]!r}"
        )
    return value


def _real(value: Any) -> bool:
    """Tell whether something can be divided as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
