"""Checks of rankings: the noise, price and proof of leads, lines that are begun again, and what any rule pays."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import permutations
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
import pyarrow as pa
from scipy.stats import binom

import farthing
from farthing.accuracy.ranking import RankingContest
from farthing.accuracy.ranking_places import RankingPlaces
from farthing.limits import ranking_limit, unknown_lead_limit
from farthing.mechanisms.gaussian import GRAIN, GaussianMeasurements, Measured
from farthing.noise.bits import seeded
from farthing.normal import ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUNS = 120


def lead_of_two() -> tuple[str, ...]:
    """Hold a lead to the noise that it pays for, to the books, to units that move one way, and to its chance."""
    return _noise() + _booked() + _both_ways() + _proved() + _beside_a_core()


def _noise() -> tuple[str, ...]:
    """Measure one lead many times: its spread is that of one group's value for the same grains."""
    mechanism = GaussianMeasurements(np.array([700, 200]), 3, bits=seeded(4))
    zeros = np.zeros(4_000, np.int64)
    shown = mechanism.fresh_leads(np.full(4_000, 1 << 52), zeros, zeros + 1)
    spread, right = float(np.std(shown - 500)), 3 * 4.0
    return (f"a lead has noise of {spread:.3g}, not {right:.3g}",) * (abs(math.log(spread / right)) > 0.1)


def measured(session: farthing.Session, **asked: object) -> tuple[farthing.Ranking, NDArray[np.int64], int]:
    """Return a ranking, the grains that were measured of each of eight groups, and how many leads of them."""
    grains, leads = np.zeros(8, np.int64), np.zeros(1, np.int64)
    value, lead = GaussianMeasurements.measure, GaussianMeasurements.fresh_leads

    def one(
        self: GaussianMeasurements, state: Measured, cost: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> Measured:
        """Measure groups, and count their grains."""
        np.add.at(grains, groups, cost)
        return value(self, state, cost, groups)

    def two(self: GaussianMeasurements, cost: NDArray[np.int64], *pair: NDArray[np.int64]) -> NDArray[np.float64]:
        """Measure leads, and count the grains of both groups."""
        leads[0] += len(cost)
        for groups in pair:
            np.add.at(grains, groups, cost)
        return lead(self, cost, *pair)

    with mock.patch.multiple(GaussianMeasurements, measure=one, fresh_leads=two):
        ranking = session.ranking("g", keys={"g": list(range(8))}, **asked)
    return ranking, grains, int(leads[0])


def table(*, signed: bool = False) -> pa.Table:
    """Return eight groups of units who are in several each, of which two are the largest, and close."""
    sizes = np.array([5_050, 5_000, 2_000, 900, 800, 700, 600, 500])
    group = np.repeat(np.arange(8), sizes)
    unit = np.concatenate([np.arange(size) for size in sizes])
    value = np.where(group % 2, -1.0, 1.0) * (1.0 if signed else 0.0)
    return pa.table({"g": group, "u": unit, "v": value})


def _booked() -> tuple[str, ...]:
    """Rank close groups: no more of any of them is measured than its members are said to pay."""
    rows = table()
    for unit, bounds, most in ((None, {}, 1), ("u", {"bounds": farthing.Bounds(max_rows=1, max_groups=3)}, 3)):
        with farthing.Session(rows, unit=unit, budget=farthing.Budget(mu=8)) as session:
            ranking, grains, leads = measured(session, k=2, cap="all", **bounds)
            lost, booked = float(np.sort(grains)[-most:].sum() * GRAIN), float(ranking.paid.amount)
            if not leads:
                return ("the lead of two close groups was not measured",)
            if lost > booked:
                return (f"a ranking measured mu^2 {lost:.4g}, and booked {booked:.4g}",)
    return ()


def _both_ways() -> tuple[str, ...]:
    """Rank sums of both signs, of units in several groups: a lead would move by twice what a sum does."""
    bounds = farthing.Bounds(max_rows=1, max_groups=2)
    with farthing.Session(table(signed=True), unit="u", budget=farthing.Budget(mu=8)) as session:
        leads = measured(session, k=8, value="v", lower=-1, upper=1, bounds=bounds, cap=farthing.Gdp(0.5))[2]
    return ("a lead was measured where a unit may move it twice as far",) * bool(leads)


def _proved() -> tuple[str, ...]:
    """Rank two groups that are all but equal: the smaller one is seldom told to be the larger one."""
    wrong = sum(first_of_two(seed, cap=1 << 24) == 1 for seed in range(RUNS))
    said = f"the smaller of two groups was placed first in {wrong} of {RUNS} rankings"
    return (said,) * bool(wrong > binom.isf(1e-10, RUNS, 0.05))


def _beside_a_core() -> tuple[str, ...]:
    """Know two of three groups by their lead, well, and the third by its number, badly: its place is open."""
    rule = RankingPlaces(2, 0.05, 1.0, np.array([6.0, 4.0, 2.0]), 1, (2, 0.0))
    shown, core = np.array([6.0, 4.0, 2.0]), np.array([True, True, False])
    blocks = rule.cut_core(np.arange(3), core, (shown, 10_000), (shown, 1), rule.beside([np.arange(3)]))
    return (f"groups known by numbers with noise of 1.4 are told apart by 2: {blocks}",) * bool(len(blocks) > 1)


def lines_of_a_ranking() -> tuple[str, ...]:
    """Begin a pure ranking again after a failure, kept or not: all of its lines together err as seldom as is said."""
    parts, honest = list[float](), RankingContest.run

    def noted(self: RankingContest, *given: object, **options: object) -> object:
        """Run, and note which chance of an error the line has."""
        end = honest(self, *given, **options)
        parts.append(self.places(end).beta)
        return end

    rows = pa.table({"g": np.repeat(np.arange(5), [5_000, 4_990, 100, 100, 100])})
    asked = {"keys": {"g": list(range(5))}, "confidence": 1 - 1e-9}
    with (
        farthing.Session(rows, budget=farthing.Budget(epsilon=40)) as session,
        mock.patch.object(RankingContest, "run", noted),
    ):
        session.ranking("g", k=2, cap="all", **asked)
        with mock.patch.object(type(session._engine), "measure", side_effect=ZeroDivisionError), suppress(Exception):
            session.ranking("g", k=4, cap="all", **asked)
        for cap in (1, 1.5, 2):  # none of these is kept: the first one has cost more
            session.ranking("g", k=4, cap=farthing.Pure(cap), **asked)
    said = f"lines of a ranking err with {sum(parts):.4g} in all, of 1e-09: {parts}"
    return (said,) * (len(parts) != 4 or sum(parts) > 1e-9 * (1 + 1e-6))


def limit_of_a_ranking() -> tuple[str, ...]:
    """Hold the limit to what two rules pay that know all but which of two data sets there is, and err with beta."""
    said, beta = [], 0.05
    for counts, k in (([600, 500, 499], 1), ([9, 8], 2), ([7, 7, 4, 3], 2), ([5, 5, 5], 2), ([40, 10, 9, 8], 3)):
        rows, limit = fewest(counts, k), ranking_limit(counts, k, beta=beta, together=True)
        every_lead = limit.mu_squared * 2 * (len(counts) - 1) / len(counts)  # each as well as the closest one needs
        if limit.measured > every_lead * (1 + 1e-9):
            said.append(f"{counts}, {k} places: mu^2 {limit.measured:.3g}, where all leads cost {every_lead:.3g}")
        one_test = (2 * float(ndtri(1 - beta)) / rows) ** 2 if rows else 0.0
        one_coin = math.log((1 - beta) / beta) / rows if rows else 0.0
        if limit.mu_squared > one_test or limit.epsilon > one_coin:
            said.append(f"{counts}, {k} places: mu^2 {limit.mu_squared:.3g}, where one test pays {one_test:.3g}")
    walds = 2 * (1 - 2 * beta) * math.log((1 - beta) / beta)
    if (least := unknown_lead_limit(0, beta=beta)) > walds * (1 + 1e-9):
        said.append(f"one lead, which is known: mu^2 {least:.3g}, where Wald's test pays {walds:.3g}")
    return tuple(said)


def fewest(counts: list[int], k: int) -> int:
    """Return how many rows more in one group make every right order of the first k wrong; 0 if 1,000 do not."""

    def right(now: list[int]) -> set[tuple[int, ...]]:
        """Return the orders of the first k places that are right."""
        order = sorted(now, reverse=True)[:k]
        return {told for told in permutations(range(len(now)), k) if [now[group] for group in told] == order}

    for rows in range(1, 1_000):
        lumps = ([own + rows * (place == group) for place, own in enumerate(counts)] for group in range(len(counts)))
        if any(not right(lump) & right(counts) for lump in lumps):
            return rows
    return 0


def first_of_two(seed: int, *, cap: int) -> int | None:
    """Return which of two groups, the second of which is smaller by a hair, is placed first; None if neither is."""
    rng, truth, per_grain = np.random.default_rng(seed), np.array([1e-9, 0.0]), 2.0**-20

    def noise(grains: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the noise of so many grains."""
        return rng.standard_normal(len(grains)) / np.sqrt(grains * per_grain)

    end = RankingContest(1, 0.05, per_grain, cap).run(
        None,
        2,
        lambda grains, groups: truth[groups] + noise(grains),
        lead=lambda grains, first, second: truth[first] - truth[second] + noise(grains),
    )
    return int(end.blocks[0][0]) if len(end.blocks) == 2 else None
