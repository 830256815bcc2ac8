"""What the further kinds of targets cost: a share of the groups, a ratio, a ranking.

Share: the price of counts until that share of 1,000 groups is within 10 % or 5, over that of an oracle who knows
every count and pays for the cheapest groups only. Ratio: a part of the rows within one in a hundred, as two counts
and as a mean of 0 and 1. Ranking: over someone who knows the gaps and measures all groups once, just finely enough
for the first places to come out right as often as asked; over one who also has to prove it by that one look; and over
what any rule pays that is right as often as asked whatever the truth: docs/proofs/limits.ranking.md. In GDP as mu^2,
under a pure budget as epsilon, there also of a line that begins again after a failed ask. Ranking parts: the same of
somebody who is told what the pilot only shows. Ranking sizes: a close pair at several leads, as mu^2 times the squared
lead and one, and what any rule pays at one of leads that it does not know.

    python bench/accuracy/targets.py [--quick] [--only KIND] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE
from farthing.accuracy.ranking import RankingContest, RankingState
from farthing.accuracy.ranking_chances import Weights
from farthing.accuracy.ranking_places import RankingPlaces
from farthing.accuracy.schedule import Schedule
from farthing.accuracy.statistics import RatioStatistic
from farthing.accuracy.stop_rule import two_sided
from farthing.limits import ranking_limit, unknown_lead_limit
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.mechanisms.laplace import LaplaceChain, Shown
from farthing.noise.bits import seeded
from farthing.session.answering.share_of_groups import refine_share

GRAIN, FARTHING, BETA = 2.0**-56, 2.0**-40, 0.05
STEPS = 1 << 12
"""Of Laplace noise, in a unit: a chain is on whole numbers of steps."""

ZIPF = np.maximum(1, (300_000 / np.arange(1, 1001) ** 1.1)).astype(np.int64)
RANKED = {
    "zipf, n=100, k=10": (200_000 / np.arange(1, 101), 10),
    "zipf^0.75, n=1000, k=10": (1e6 / np.arange(1, 1001) ** 0.75, 10),
    "even gaps, n=20, k=5": (10_000 - 300.0 * np.arange(20), 5),
    "one close pair, n=100, k=2": (np.concatenate([[10_500.0, 10_000.0], np.full(98, 3_000.0)]), 2),
}
LEADS = (15, 31, 63, 127, 255, 511, 1_023, 2_047, 4_095)
"""Of a close pair: each and one is twice the one before and one."""

LARGEST = 60
"""The oracles look at so many of the largest groups: no other one comes near the places that are ranked."""

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


def share_prices() -> list[dict[str, float]]:
    """Return the mean price of each share in 20 runs, and what the oracle who pays for the cheapest groups pays."""
    found = []
    relative, absolute = 0.1, 5.0
    widths = np.sort(np.maximum(relative * ZIPF, absolute))[::-1]
    for share in SHARES:
        schedule = Schedule.plan(relative, absolute, BETA, per_grain=GRAIN, cap_grains=1 << 60, meets=int(share < 1))
        paid, met = np.mean([share_paid(schedule, share) for _ in range(20)], axis=0)
        last = widths[math.ceil(share * len(ZIPF)) - 1]
        found.append({"share": share, "mu": math.sqrt(paid), "met": float(met),
                      "paid_over_oracle": float(paid) / (two_sided(BETA) / last) ** 2})  # fmt: skip
    return found


def share_paid(schedule: Schedule, share: float) -> tuple[float, float]:
    """Return what counts paid until a share of the groups was done, as mu^2, and the share that met the target."""
    end = refine_share(GaussianMeasurements(ZIPF), schedule, share, Measured.nothing(len(ZIPF)))
    return float(end.information.max()) * GRAIN, float(schedule.stopped(end.information, end.values).mean())


def ratio_price(part: float, rows: float, rng: np.random.Generator, runs: int) -> dict[str, float]:
    """Return the cost of a part of the rows within one in a hundred: of two counts, and as a mean of 0 and 1."""
    found = {"part": part, "rows": rows}
    for name, ratio, lanes, per_grain in (
        ("two_counts", RatioStatistic(0, 1, 0.0, 0.0, 1.0, (1.0, 0.5)), (rows, rows * part), (GRAIN, GRAIN)),
        ("mean", RatioStatistic(0, 1, 0.5, 0.0, 1.0), (rows, rows * (part - 0.5)), (GRAIN, GRAIN / 0.25)),
    ):
        question = JointMeasures((ratio,), ((0.0, 0.01),), BETA, per_grain, 1 << 60)
        truth = np.repeat(np.array(lanes)[:, None], runs, axis=1)
        scale = np.sqrt(np.array(per_grain))[:, None]

        def measure(grains, groups, truth=truth, scale=scale):
            return truth[:, groups] + rng.standard_normal(grains.shape) / (scale * np.sqrt(np.maximum(grains, 1)))

        state = question.run(JointState.nothing(2, 1, runs), measure)
        found[f"{name}_mu"] = math.sqrt(float(state.paid.mean()) * GRAIN)
        found[f"{name}_missed"] = float(((state.lower[0] > part) | (state.upper[0] < part)).mean())
    return found


def leads(shown: np.ndarray, truth: np.ndarray, k: int) -> np.ndarray:
    """Return the least lead, float64[runs], of the first k places over their next ones, in the order of the truth."""
    order = np.argsort(-truth, kind="stable")
    ranked = shown[:, order]
    after = np.maximum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    return (ranked[:, :k] - after[:, 1 : k + 1]).min(axis=1)


def oracle_precision(truth: np.ndarray, k: int, noise: np.ndarray, proved: float = 0.0) -> float:
    """Return the least precision, one over the scale, of one look at all groups after which the k places are right.

    Args:
        truth: the numbers, which the oracle knows.
        k: how many places.
        noise: float64[runs, groups], of scale 1.
        proved: leads have to be larger than so many scales; 0 where it is enough that the order comes out right.
            Both at 95 of 100.
    """
    low, high = -30.0, 30.0
    for _ in range(40):
        middle = (low + high) / 2
        scale = 2.0**-middle
        good = (leads(truth + noise * scale, truth, k) > proved * scale).mean()
        low, high = (low, middle) if good >= 1 - BETA else (middle, high)
    return 2.0**high


def gaussian(truth: np.ndarray, rng: np.random.Generator):
    """Return measurements of groups, and of leads, with Gaussian noise."""

    def noise(grains):
        """Return noise of so much information."""
        return rng.standard_normal(len(grains)) / np.sqrt(grains * GRAIN)

    return {
        "measure": lambda grains, groups: truth[groups] + noise(grains),
        "lead": lambda grains, first, second: truth[first] - truth[second] + noise(grains),
    }


def chains(truth: np.ndarray, rng: np.random.Generator):
    """Return two chains of Laplace noise: that of the looks, and that of the pilot."""

    def chain():
        """Return a chain."""
        mechanism = LaplaceChain(
            np.rint(truth * STEPS).astype(np.int64), STEPS, bits=seeded(int(rng.integers(1 << 62)))
        )
        value, level = np.zeros(len(truth), np.int64), np.zeros(len(truth), np.int64)

        def measure(farthings, groups):
            """Return what is shown of some groups once each has paid so many farthings more."""
            now = mechanism.measure(Shown(value[groups], level[groups]), level[groups] + farthings, groups)
            value[groups], level[groups] = now.value, now.farthings
            return now.value / STEPS

        return measure

    return {"measure": chain(), "pilot": chain()}


def ranking_price(name: str, rng: np.random.Generator, runs: int, *, pure: bool) -> dict[str, float | str]:
    """Return what a ranking costs, over two oracles and any rule, and how often it is wrong."""
    truth, k = np.rint(RANKED[name][0]), RANKED[name][1]
    unit, law, noise_of = (FARTHING, LAPLACE, chains) if pure else (GRAIN, GAUSSIAN, gaussian)
    contest = RankingContest(k, BETA, unit, 1 << 58, law=law)
    paid, total, wrong, left = [], [], 0, 0
    for _ in range(runs):
        end = contest.run(None, len(truth), **noise_of(truth, rng))
        order = np.concatenate(end.blocks)
        wrong += bool((truth[order[:k]] != np.sort(truth)[::-1][:k]).any())
        left += bool(contest.unsettled(end))
        paid.append(end.paid.max() * unit)
        total.append(np.sort(end.paid)[-5:].sum() * unit)
    near = np.sort(truth)[::-1][:LARGEST]
    shape = (20_000, len(near))
    noise = rng.laplace(size=shape) if pure else rng.standard_normal(shape)
    surely = laplace_lead(BETA / k) if pure else two_sided(2 * BETA / k) * math.sqrt(2)
    power = 1 if pure else 2
    knows, proves = (oracle_precision(near, k, noise, needed) ** power for needed in (0.0, surely))
    least = ranking_limit(truth.astype(np.int64), k, beta=BETA, together=not pure)
    any_rule = least.epsilon if pure else least.measured
    mean = float(np.mean(paid))
    ends = [contest.run(None, len(truth), **noise_of(truth, rng), line=1) for _ in range(runs // 5 * pure)]
    again = float(np.mean([end.paid.max() for end in ends])) * unit / mean if pure else 1.0
    return {
        "groups": name,
        "wrong": wrong / runs,
        "unsettled": left / runs,
        "epsilon" if pure else "mu": mean if pure else math.sqrt(mean),
        "over_one_who_knows": mean / knows,
        "over_one_who_proves": mean / proves,
        "over_any_rule": mean / any_rule,
        "one_who_knows_over_any_rule": knows / any_rule,
        "leads_together": 1.0 if pure else least.measured / least.mu_squared,
        "begun_again_over_first": again,
        "five_groups_a_unit": float(np.mean(total) / knows / 5),
    }


def told_places(truth: np.ndarray, k: int, *, chances: bool, likely: bool) -> type[RankingContest]:
    """Return the contest of somebody who is told what a pilot only shows: the true leads, for one thing or for both.

    Args:
        truth: the numbers.
        k: how many places.
        chances: whether the chance of an error is shared by the true order and leads, steeply.
        likely: whether bounds are made for the true leads.
    """
    order = np.argsort(-truth, kind="stable")
    ranked = truth[order]
    lead = np.maximum(np.concatenate([ranked[:k] - ranked[1 : k + 1], ranked[k - 1] - ranked[k:]]), 1.0)
    lead[k:] = np.maximum(lead[k:], lead[k - 1])
    part, even = np.where(np.arange(len(truth)) < k, lead[: len(truth)] ** -4.0, 0), np.full(len(truth), 1e-4)
    part, back = part / part.sum() + even, np.argsort(order)

    class Places(RankingPlaces):
        """How places are settled, with what is told."""

        def weights(self) -> Weights:
            """Return how the chance of an error is shared."""
            return Weights(back, part[back], even) if chances else super().weights()

        def likely(self) -> np.ndarray:
            """Return how far each group leads the next one."""
            return lead[: len(truth)][back] if likely else super().likely()

    class Contest(RankingContest):
        """A contest with these."""

        def places(self, now: RankingState) -> RankingPlaces:
            """Return the rule."""
            foreseen = (now.pilot, now.pilot_grains, now.foreseen)
            return Places(self.k, self.beta, self.per_grain, *foreseen, law=self.law)

    return Contest


def ranking_parts(name: str, rng: np.random.Generator, runs: int) -> dict[str, float | str]:
    """Return what a ranking costs that is told what the pilot only shows, over somebody who knows the gaps."""
    truth, k = np.rint(RANKED[name][0]), RANKED[name][1]
    near = np.sort(truth)[::-1][:LARGEST]
    knows = oracle_precision(near, k, rng.standard_normal((20_000, len(near)))) ** 2
    found: dict[str, float | str] = {"groups": name}
    for words, told in (
        ("nothing", {"chances": False, "likely": False}),
        ("shares", {"chances": True, "likely": False}),
        ("leads", {"chances": False, "likely": True}),
        ("both", {"chances": True, "likely": True}),
    ):
        contest = told_places(truth, k, **told)(k, BETA, GRAIN, 1 << 58)
        ends = [contest.run(None, len(truth), **gaussian(truth, rng)) for _ in range(runs)]
        found[f"told_{words}"] = float(np.mean([end.paid.max() for end in ends])) * GRAIN / knows
        if words == "nothing":
            found["pilot"] = float(np.mean([end.pilot_grains for end in ends])) * GRAIN / knows
            paid = [int(end.paid.argmax()) for end in ends]
            known = [end.clocks[top] / end.held[top] for end, top in zip(ends, paid, strict=True)]
            found["known_by_leads"] = float(np.mean(known))
    return found


def ranking_sizes(rng: np.random.Generator, runs: int) -> list[dict[str, float]]:
    """Return what a close pair costs, as mu^2 times the squared lead and one, at leads that are doubled."""
    found = []
    least = unknown_lead_limit(len(LEADS) - 1, beta=BETA)
    knows = 2 * (two_sided(2 * BETA)) ** 2  # by one look at both groups
    for lead in LEADS:
        truth = np.concatenate([[20_000.0 + lead, 20_000.0], np.full(98, 3_000.0)])
        contest = RankingContest(2, BETA, GRAIN, 1 << 58)
        ends = [contest.run(None, len(truth), **gaussian(truth, rng)) for _ in range(runs)]
        paid = float(np.mean([end.paid.max() for end in ends])) * GRAIN * (lead + 1) ** 2
        wrong = float(np.mean([np.concatenate(end.blocks)[0] != 0 for end in ends]))
        found.append({"lead": lead, "times_squared_lead": paid, "wrong": wrong, "over_one_who_knows": paid / knows,
                      "over_any_rule_at_one_of_them": paid / least})  # fmt: skip
    return found


def laplace_lead(chance: float) -> float:
    """Return what the difference of two draws of Laplace noise of scale 1 passes with that chance."""
    return brentq(lambda lead: (1 + lead / 2) * math.exp(-lead) / 2 - chance, 0, 100)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    parser.add_argument(
        "--only",
        choices=("share", "ratio", "ranking", "ranking parts", "ranking sizes", "pure ranking"),
        help="one table alone",
    )
    options = parser.parse_args()
    rng, runs = np.random.default_rng(20_240_801), 100 if options.quick else 1_000
    tables = {
        "share": share_prices,
        "ratio": lambda: [ratio_price(part, 10_000.0, rng, runs) for part in (0.05, 0.2, 0.5, 0.8)],
        "ranking": lambda: [ranking_price(name, rng, runs // 2, pure=False) for name in RANKED],
        "ranking parts": lambda: [ranking_parts(name, rng, runs // 10) for name in RANKED],
        "ranking sizes": lambda: ranking_sizes(rng, runs // 2),
        "pure ranking": lambda: [ranking_price(name, rng, runs // 4, pure=True) for name in RANKED],
    }
    records = {name: table() for name, table in tables.items() if options.only in (None, name)}
    for name, rows in records.items():
        print(name)
        for row in rows:
            print(
                "  "
                + "  ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in row.items()
                )
            )
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
