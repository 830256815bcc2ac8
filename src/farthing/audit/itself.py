"""The audit of the farthing that is installed: every mechanism through a session, every oracle, one page."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from farthing.audit.battery import lanes
from farthing.audit.bookkeeping import books
from farthing.audit.bounding import bounded
from farthing.audit.bounds import SLACK, rate_lower
from farthing.audit.charging import accounts
from farthing.audit.clock import timing
from farthing.audit.corpus import CORPUS, check_corpus, odd_values
from farthing.audit.findings import Finding
from farthing.audit.fuzzing import fuzz
from farthing.audit.noises import fork_safe, on_grid, uncorrelated, unseeded
from farthing.audit.outcomes import failures
from farthing.audit.report import AuditReport, Check, Row
from farthing.audit.ruins import failing
from farthing.audit.trials import factor_of
from farthing.privacy.budget import Budget
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.audit.battery import Lane

Telling: TypeAlias = "Callable[[str, int, int], None]"

SIGNIFICANCE: Final = 1e-6
"""The chance that any bound of a page is wrong; the rows share it."""

TRIALS: Final = {True: 8_000, False: 200_000}
QUESTIONS: Final = {True: 16, False: 400}
KEYS_DELTA: Final = 0.4
SEARCHES: Final = 10
"""One search for keys uses this part of the delta that was set aside for keys."""


def self_audit(quick: bool = True, seed: int | None = None, progress: Telling | None = None) -> AuditReport:
    """Audit the installed farthing, as whoever may ask anything and knows everybody but one.

    Every mechanism that a session reaches is drawn thousands of times on two neighbours, and its loss is bounded from
    below; the same test is run on a planted bug, to show that it would have seen one. Then come the oracles that need
    no statistics: neighbour equality and price floors over a corpus of old weaknesses and over random questions, the
    order of the books, and the noise as it leaves.

    Args:
        quick: a minute at most; otherwise some minutes, with more of everything.
        seed: of the random questions; by default a new one, which the report names. Noise has no seed.
        progress: called with (what, done, of) after each step.

    >>> from farthing import audit
    >>> audit.self_audit.__name__
    'self_audit'
    """
    from farthing import __version__

    begun = time.perf_counter()
    seed = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    tell = progress or (lambda *_: None)
    batteries = lanes()
    each = 1 - SIGNIFICANCE / (len(batteries) + 1)
    oracles = _oracles(seed, quick=quick)
    steps = len(batteries) + len(oracles) + 2
    rows: list[Row] = []
    checks: list[Check] = []
    failed: list[Finding] = []
    for lane in batteries:
        try:
            rows.append(judged(lane, TRIALS[quick], each))
        except failures() as error:
            failed.append(Finding("mechanism", lane.name, f"{type(error).__name__}: {error}"))
        tell(lane.name, len(rows) + len(failed), steps)
    checks.append(Check("every mechanism answers", tuple(failed), 0.0))
    rows.append(lone_keys(TRIALS[quick], each))
    for name, oracle in oracles:
        tell(name, min(len(rows) + len(checks), steps), steps)
        checks.append(_checked(name, oracle))
    clock = timing()
    tell("timing", steps, steps)
    seconds = time.perf_counter() - begun
    return AuditReport(__version__, quick, seed, 1 - SIGNIFICANCE, tuple(rows), tuple(checks), clock, seconds)


def judged(lane: Lane, trials: int, confidence: float) -> Row:
    """Return what a mechanism's trials tell, and whether the same test sees its planted bug."""
    begun, count = time.perf_counter(), int(trials * lane.share)
    honest = lane.honest(count)
    planted = lane.planted(count, honest)
    found = honest.bound(confidence)
    told = found.against(honest.claim)
    return Row(
        lane.name,
        honest.claim.parameter,
        honest.claim.value,
        told,
        broken=found.exceeds(honest.claim),
        sees=factor_of(honest.claim, told),
        bug=lane.bug,
        caught=planted.bound(confidence).exceeds(planted.claim),
        event=found.event,
        samples=count,
        seconds=time.perf_counter() - begun,
    )


def lone_keys(trials: int, confidence: float, *, max_groups: int = 1, found_above: int = 20) -> Row:
    """Return what keys found privately tell of units that are alone in their group: that is the delta they are charged.

    Without the unit its key cannot be told at all, so how often it is told bounds delta from below.
    """
    import pyarrow as pa

    begun, alone = time.perf_counter(), np.arange(trials)
    with Session(
        pa.table({"u": alone, "g": alone}),
        unit="u",
        bounds=Bounds(max_groups=max_groups, max_rows=1),
        budget=Budget(mu=10, delta=0.5, keys_delta=KEYS_DELTA),
    ) as session:
        told = len(session.count("g", keys="private", found_above=found_above, absolute=5, cap="all").value)
    found, claimed = rate_lower(told, trials, 1 - confidence), KEYS_DELTA / SEARCHES
    return Row(
        "keys found privately, of lone units",
        "delta",
        claimed,
        found,
        broken=found > claimed * (1 + SLACK),
        sees=claimed / found if found else float("inf"),
        bug="half the delta booked",
        caught=found > claimed / 2,
        event="the key of a lone unit is told",
        samples=trials,
        seconds=time.perf_counter() - begun,
    )


def _oracles(seed: int, *, quick: bool) -> tuple[tuple[str, Callable[[], tuple[Finding, ...]]], ...]:
    """Return the oracles that need no statistics, and those on noise as it leaves, by what must hold."""
    many = QUESTIONS[quick]
    return (
        (f"neighbours get equal outcomes, at a fair price: {len(CORPUS)} old weaknesses", check_corpus),
        ("neighbours get equal outcomes: NULL, NaN, infinities and extremes in one row", odd_values),
        (
            f"neighbours get equal outcomes, at a fair price: {many} random questions",
            lambda: fuzz(questions=many, seed=seed),
        ),
        ("the books: charge, look, speak; no refund, no overdraft, nothing sold twice", books),
        ("answers, choices, searches and spreads are charged what they cost", accounts),
        ("contributions are cut, values clamped, and nothing else counts", bounded),
        ("an ask that fails stays charged, and tells nothing", failing),
        ("counts and sums leave on a public grid", on_grid),
        ("noises of two questions and of neighbouring groups are independent", uncorrelated),
        ("textbook seeds change nothing, and no noise comes twice", unseeded),
        ("forked workers never share a stream", fork_safe),
    )


def _checked(name: str, oracle: Callable[[], tuple[Finding, ...]]) -> Check:
    """Return what an oracle found, and how long it took; one that fails has found something."""
    begun = time.perf_counter()
    try:
        findings = oracle()
    except failures() as error:
        findings = (Finding("oracle", name, f"{type(error).__name__}: {error}"),)
    return Check(name, findings, time.perf_counter() - begun)
