"""Reconstruction by linear algebra: random subset counts are a linear system in the secrets; noise does not hide it.

[DinurN03], [DworkMT07]: answers to a few times n random subset counts, with errors of less than about sqrt(n), give
nearly all secrets away. `expected_accuracy` is the law for least squares, constants and all.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from farthing.attacks.accepting import accepted
from farthing.attacks.coins import Coins
from farthing.attacks.compilers import compiler as compiler_of
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.target import Conversation
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.attacks.compilers import Compiler
    from farthing.attacks.target import AttackTarget, Claim

Method = Literal["l1", "box", "least_squares", "linf"]

Float64 = NDArray[np.float64]

UNSOLVED: Final = "the linear program was not solved"


def linear(
    target: AttackTarget | Callable[[NDArray[np.bool_]], Any],
    queries: int | None = None,
    seed: int | None = 0,
    *,
    method: Method = "l1",
    compiler: str | Compiler | None = None,
    intercept: bool = True,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Reconstruct all secrets from counts of random subsets.

    Args:
        target: a `Target`, or a function of a 0/1 vector, with `bits`.
        queries: how many; by default 4 n.
        seed: of the subsets.
        method: "l1" finds the least sum of absolute errors (a linear program [DworkMT07], best against Laplace noise
            and outliers); "box" least squares within [0, 1] (best against Gaussian and uniform noise); "least_squares"
            plain (instant, with a law); "linf" the least largest error ([DinurN03], for bounded noise only).
        compiler: how subsets are said: "vectors", "ids", "hashes", "equalities", "marginals", or a function.
        intercept: whether an error common to all answers is estimated too.
        bits: the secrets, where `target` is a function.
        claim: what a function promises.

    Returns:
        The verdict on at most n guesses. Refused questions are left out of the system.

    >>> from farthing.attacks import secrets
    >>> truth = secrets(60, seed=3).bits
    >>> linear(lambda chosen: int((chosen & truth).sum()) + 1, bits=truth).accuracy
    1.0
    """
    started, asked = time.perf_counter(), Conversation(accepted(target, bits, claim))
    people = asked.target.people
    count = _count(4 * people.n if queries is None else queries)
    design = compiler_of(asked.target, compiler)(people, count, Coins(seed, "linear"))
    answers = asked.all(design.questions)

    def solved(given: Float64) -> Guesses:
        return Guesses.from_scores(solve(design.rows, given, method=method, intercept=intercept))

    guesses, facts = _tried(solved, answers)
    return judged(
        "linear",
        asked,
        guesses,
        started=started,
        seed=seed,
        least=people.n + 1 + intercept,
        exact=lambda: solved(exact_answers(design.rows, people.bits, answers)),
        method=method,
        **facts,
    )


def expected_accuracy(sigma: float, n: int, m: int) -> float:
    """Return the accuracy of plain least squares on m random subset counts with independent noise.

    A coordinate of the estimate has variance 4 sigma^2 / (m - n), and a guess is wrong where its error passes 1/2. With
    sigma = c sqrt(n) and m = k n that is Phi(sqrt(k - 1) / (4 c)), whatever n is.

    Args:
        sigma: standard deviation of the noise, in people.
        n: people.
        m: answered questions.

    >>> f"{expected_accuracy(sigma=0.2 * 200**0.5, n=200, m=800):.3f}"
    '0.985'
    """
    from scipy.special import ndtr

    if m <= n:
        return 0.5
    return 1.0 if not sigma else float(ndtr(math.sqrt(m - n) / (4 * sigma)))


def solve(rows: NDArray[np.bool_], answers: Float64, *, method: Method = "l1", intercept: bool = True) -> Float64:
    """Return estimates of the secrets, float64[n], from subset counts; answers that are NaN are left out.

    Args:
        rows: bool[m, n], who is counted in each.
        answers: float64[m], in people.
        method: see `linear`.
        intercept: whether an error common to all answers is estimated too.

    >>> solve(np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool), np.array([1.2, 0.9, 0.1, 0.0])).round()
    array([1., 0.])
    """
    if method not in _METHODS:
        raise DataError(
            "unknown method", rule=", ".join(get_args(Method)), got=method, next_step='leave method= out for "l1"'
        )
    there = ~np.isnan(answers)
    matrix, known = rows[there].astype(np.float64), answers[there]
    if not known.size:
        return np.full(rows.shape[1], np.nan)
    return _METHODS[method](matrix, known, intercept)


def exact_answers(rows: NDArray[np.bool_], bits: NDArray[np.bool_], answers: Float64) -> Float64:
    """Return what an exact system would have said to the questions that were answered, NaN to the others."""
    return np.where(np.isnan(answers), np.nan, np.count_nonzero(rows & bits, axis=1))


def _tried(solved: Callable[[Float64], Guesses], answers: Float64) -> tuple[Guesses, dict[str, Any]]:
    """Return the guesses; none, and why, where the answers are so odd that nothing is a solution."""
    try:
        return solved(answers), {}
    except DataError as error:
        if error.what != UNSOLVED:
            raise
        return solved(np.full(len(answers), np.nan)), {"unsolved": error.got}


def _least_squares(matrix: Float64, answers: Float64, intercept: bool) -> Float64:
    """Return the plain least squares, of least norm where there are several; an intercept is taken out by centring."""
    if intercept:
        matrix, answers = matrix - matrix.mean(axis=0), answers - answers.mean()
    centred = np.full(matrix.shape[1], 0.5)  # of several solutions the one that is nearest to knowing nothing
    return np.asarray(centred + np.linalg.lstsq(matrix, answers - matrix @ centred)[0], dtype=np.float64)


def _box(matrix: Float64, answers: Float64, intercept: bool) -> Float64:
    """Return the least squares within [0, 1]."""
    from scipy.optimize import lsq_linear

    n = matrix.shape[1]
    if intercept:  # the best intercept of any x centres both sides, so that it needs no column
        matrix, answers = matrix - matrix.mean(axis=0), answers - answers.mean()
    return np.asarray(lsq_linear(matrix, answers, bounds=(np.zeros(n), np.ones(n)), method="trf").x, dtype=np.float64)


def _l1(matrix: Float64, answers: Float64, intercept: bool) -> Float64:
    """Return the least sum of absolute errors within [0, 1], by the dual program, which has n rows instead of m.

    Primal: min sum |A x + c - a| over 0 <= x <= 1 and c. Dual: max a.y - sum(w) over |y| <= 1, A^T y <= w, w >= 0, and
    sum(y) = 0 for the intercept; x are the multipliers of the n rows.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    m, n = matrix.shape
    solved = linprog(
        np.concatenate([-answers, np.ones(n)]),
        A_ub=hstack([csr_array(matrix.T), -eye_array(n)], format="csr"),
        b_ub=np.zeros(n),
        A_eq=np.concatenate([np.ones(m), np.zeros(n)])[None] if intercept else None,
        b_eq=np.zeros(1) if intercept else None,
        bounds=[(-1, 1)] * m + [(0, None)] * n,
        method="highs-ipm",
        options={"presolve": False},  # a dense program: nothing to simplify
    )
    return _multipliers(-solved.ineqlin.marginals if solved.status == 0 else None, solved.message)


def _linf(matrix: Float64, answers: Float64, intercept: bool) -> Float64:
    """Return secrets within [0, 1] of the least largest error."""
    from scipy.optimize import linprog

    m, n = matrix.shape
    ones, bound = np.ones((m, 1)), (None, None) if intercept else (0, 0)
    solved = linprog(
        np.concatenate([np.zeros(n + 1), [1.0]]),
        A_ub=np.block([[matrix, ones, -ones], [-matrix, -ones, -ones]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * n + [bound, (0, None)],
        method="highs-ipm",
    )
    return _multipliers(solved.x[:n] if solved.status == 0 else None, solved.message)


_METHODS: Final[dict[str, Callable[[Float64, Float64, bool], Float64]]] = {
    "l1": _l1,
    "box": _box,
    "least_squares": _least_squares,
    "linf": _linf,
}


def _multipliers(found: Any, message: str) -> Float64:
    """Return a solution, or say that there is none."""
    if found is None:
        raise DataError(
            UNSOLVED,
            rule="the answers are numbers of people",
            got=message,
            next_step='method="least_squares"',
        )
    return np.asarray(found, dtype=np.float64)


def _count(queries: int) -> int:
    """Refuse a number of queries that is none."""
    if queries < 1:
        raise DataError("no queries", rule="queries >= 1", got=queries, next_step="leave queries= out for 4 n")
    return int(queries)
