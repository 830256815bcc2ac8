"""How long an answer takes, with a person and without: a stated limit, measured and not judged."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.audit.tables import HEAVY, Town, town
from farthing.privacy.loss import Gdp

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.session import Session

RUNS: Final = 30
QUESTION: Final = "SELECT COUNT(*) AS n FROM u JOIN o USING (uid) WHERE o.amt > {place}"


@dataclass(frozen=True, slots=True)
class Timing:
    """Latencies of the same questions on a town with its heavy person and without.

    Attributes:
        with_ms, without_ms: median latencies, milliseconds.
        p_value: of the Mann-Whitney test that both have one law; small where a clock tells the person.
        runs: how many questions on each.
    """

    with_ms: float
    without_ms: float
    p_value: float
    runs: int

    def __str__(self) -> str:
        tells = "a clock may tell a person" if self.p_value < 1e-3 else "nothing seen here"
        return (
            f"median {self.with_ms:.2f} ms with the heavy person, {self.without_ms:.2f} ms without, "
            f"p = {self.p_value:.2g} over {self.runs} runs: {tells}; time is not hidden"
        )


def timing(runs: int = RUNS, make_session: Callable[[Town], Session] = Town.session) -> Timing:
    """Measure the latency of the same fresh questions on two neighbours, in turns."""
    from scipy.stats import mannwhitneyu

    here = town()
    sessions = make_session(here), make_session(here.without(HEAVY))
    took: tuple[list[float], list[float]] = ([], [])
    for place in range(runs + 2):
        for session, seconds in zip(sessions, took, strict=True):
            begun = time.perf_counter()
            _ask(session, place)
            seconds.append(time.perf_counter() - begun)
    present, absent = (np.asarray(seconds[2:]) * 1000 for seconds in took)  # the first two warm up
    p_value = float(mannwhitneyu(present, absent).pvalue)
    return Timing(float(np.median(present)), float(np.median(absent)), p_value, runs)


def _ask(session: Session, place: int) -> Any:
    """Ask a question that was not asked before."""
    return session.sql(QUESTION.format(place=place - 100), loss=Gdp(1))
