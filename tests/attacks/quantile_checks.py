"""Checks of what a pure budget's quantiles and reports on bounds hold, show and cost; see `mutant_checks`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import farthing
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.quantile_chain_run import LEVELS, ShownSides
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.session.answering import contribution_report, joint_chains, quantile

if TYPE_CHECKING:
    from types import ModuleType

GROUPS, ROWS, WORST = 400, 2_000, 0.15
TABLE = pa.table({"x": np.arange(4_000) % 100 / 100})
ASKED = {"lower": 0, "upper": 1}


def pure_quantiles() -> tuple[str, ...]:
    """Hold the chains of a pure quantile against its price, its noise and its misses; the same of a report's noise."""
    return (*_charged(), *_noise(), *_missed(), *_outside(), *_alone(quantile, 0.5), *_report())


def pure_together() -> tuple[str, ...]:
    """Return whether rounds of quartiles under a pure budget were charged less than their last levels, or changed, or
    carried on by two.
    """
    with farthing.Session(TABLE, budget=farthing.Budget(epsilon=20)) as session:
        paid = session.quantile("x", (0.25, 0.5, 0.75), rank=0.05, **ASKED).paid.farthings
        trail = joint_chains.standing_in(session._ledger.load(session.history()[-1].question).blob).trail
    assert trail is not None  # something was paid
    looks = list(zip(trail.rounds[:, 0].tolist(), trail.levels[:, 0].tolist(), strict=True))
    last = {number: int(LEVELS[level]) for number, level in looks if number >= 0}
    kept = {(number, *places) for (number, _), places in zip(looks, trail.places[:, :, 0].tolist(), strict=True)}
    moved = sum(number >= 0 for number, *_ in kept) - len(last)
    told = (f"{paid} farthings paid for rounds of {sum(last.values())}",) * (paid < sum(last.values()))
    told += (f"{moved} times another set of thresholds in a round",) * (moved > 0)
    return (*told, *_alone(joint_chains, (0.25, 0.5, 0.75)))


def _charged() -> tuple[str, ...]:
    """Return whether a quantile was charged less than the last levels of its chains."""
    with farthing.Session(TABLE, budget=farthing.Budget(epsilon=20)) as session:
        paid = session.quantile("x", 0.5, rank=0.05, **ASKED).paid.farthings
        trail = quantile.standing_in(session._ledger.load(session.history()[-1].question).blob).trail
    last: dict[int, int] = {}
    rows = zip(trail.thresholds[:, 0].tolist(), trail.starts[:, 0].tolist(), trail.places[:, 0].tolist(), strict=True)
    begun, at = 0, dict[int, int]()
    for place, level, goes_on in rows:
        if place < 0:
            break
        if not goes_on:
            begun, at[place] = begun + 1, begun
        last[at[place]] = int(LEVELS[level])
    return (f"{paid} farthings paid for chains of {sum(last.values())}",) * (paid < sum(last.values()))


def _noise() -> tuple[str, ...]:
    """Return whether a unit of four rows on one side of a threshold is hidden as if it had one."""
    groups = np.arange(GROUPS)
    ranks = Ranks.of(groups, 0 * groups, 0 * groups + ROWS, groups=GROUPS, leaves_log2=4)
    none = ShownSides(np.zeros(GROUPS), np.zeros(GROUPS), np.zeros(GROUPS, np.int64))
    below, above = ShownRanks(ranks, 4).show(0 * groups + 8, none, 0 * groups + (1 << 40), groups)
    size = float(np.mean([np.abs(below - ROWS).mean(), np.abs(above).mean()]))
    return (f"noise of {size:.2f} rows for a unit of four, at epsilon 1",) * (size < 3)


def _missed() -> tuple[str, ...]:
    """Return whether ranks beside a step, where every threshold is just off, are missed too often."""
    leaf, rows = np.array([100, 500, 900]), np.array([979, 42, 979])
    cells = np.arange(GROUPS).repeat(3), np.tile(leaf, GROUPS), np.tile(rows, GROUPS)
    ranks = Ranks.of(*cells, groups=GROUPS, leaves_log2=10)
    plan = QuantileChains(QuantileGoal(0.5, 0.0, 1024.0, 10, rank=0.01), 0.05, 1 << 46)
    value = plan.run(ShownRanks(ranks, 1).show, groups=GROUPS).value
    missed = float((np.ceil(value) - 1 != 500).mean())
    return (f"{missed:.1%} of ranks missed",) * (missed > WORST)


def _outside() -> tuple[str, ...]:
    """Return whether intervals of values that lie evenly miss too often."""
    cells = np.arange(GROUPS).repeat(1024), np.tile(np.arange(1024), GROUPS), np.full(1024 * GROUPS, 2)
    ranks = Ranks.of(*cells, groups=GROUPS, leaves_log2=10)
    plan = QuantileChains(QuantileGoal(0.5, 0.0, 1024.0, 10), 0.05, 1 << 46, absolute=40.0)
    state = plan.run(ShownJointRanks(ranks, 1).show, groups=GROUPS)
    missed = float(((state.lower > 511) | (state.upper < 512)).mean())
    return (f"{missed:.1%} of intervals missed",) * (missed > WORST)


def _alone(method: ModuleType, asked: float | tuple[float, ...]) -> tuple[str, ...]:
    """Return whether chains are carried on by one who does not hold them alone."""
    budget, held, searched = farthing.Budget(epsilon=40), [], method.searched
    with tempfile.TemporaryDirectory() as folder:
        books = Path(folder) / "books.ledger"
        with (
            farthing.Session(TABLE, budget=budget, ledger=books) as one,
            farthing.Session(TABLE, budget=budget, ledger=books) as two,
        ):
            one.quantile("x", asked, rank=0.2, **ASKED)

            def noted(pricing: object, *others: object) -> object:
                held.append(getattr(pricing, "held", None) is not None)
                if len(held) == 1:
                    two.quantile("x", asked, rank=0.1, **ASKED)
                return searched(pricing, *others)  # type: ignore[arg-type]

            method.searched = noted  # type: ignore[attr-defined]
            try:
                one.quantile("x", asked, rank=0.05, **ASKED)
            finally:
                method.searched = searched  # type: ignore[attr-defined]
    return ("two carry on the same chains",) * (sum(held) > 1)


def _report() -> tuple[str, ...]:
    """Return whether the noise of a report's histograms is smaller than what four of them cost."""
    with farthing.Session(TABLE, budget=farthing.Budget(epsilon=20)) as session:
        session.bounds_report("x", loss=farthing.Pure(1), bounds=farthing.Bounds(1, 1, 0, 1))
        spread = contribution_report._read(session._ledger.load(session.history()[-1].question).blob)
    empty = np.concatenate([spread.groups[2:], spread.rows[2:], spread.least[40:60], spread.greatest[40:60]])
    size = float(np.abs(empty).mean())
    return (f"noise of {size:.2f} units in four histograms, at epsilon 1",) * (size < 2)
