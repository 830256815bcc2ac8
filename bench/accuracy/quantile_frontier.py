"""What a search for a quantile by rank would pay that is told the rows and how steeply ranks rise, over one test.

A search by rank learns where the quantile lies, and proves that the place it tells is neither too low nor too high.
Here it is told all but the place itself: the rows, that ranks rise by one slack for each unit of length, and the place
give or take one slack (or exactly). It follows the posterior mean, and moves on where that is off by more than a
constant and a multiple of its standard deviation. What differs is the proof:

- product: bets at all places multiply, as `farthing.accuracy.quantile_rank_run` makes them, three quarters staked;
- whole stakes: the same, with nearly everything staked at each place;
- one by one: looks that explore are not bet on; then each place that is tried has bets of its own, on fresh looks, and
  a falling share of beta (.6, .24, .096, ...) by the union bound;
- information: no proof, but a yardstick. The search is stopped, by somebody who knows the truth, when the looks at and
  above a place, and those at and below it, hold 2 kl(1 - beta, beta) over the squared margin to what is wrong. A rule
  that tells one place almost always needs as much in the mean (docs/proofs/limits.quantiles.md).

The last table is of one place that is never left, without stakes, where D is off by 0, .2 and .4 slacks: bets that are
not capped, and straight boundaries for looks of one size that reach the chance exactly (by simulation). All in
information times the squared slack; one test is 10.8.

    python bench/accuracy/quantile_frontier.py [--quick]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.special import ndtri

from farthing.accuracy import quantile_bets
from farthing.accuracy.quantile_bets import Ladder, Places, partly, wholly, won_at_most
from farthing.accuracy.quantile_rank_run import FADE, INTERVAL_SHARE, PRIOR, RATE

BETA = 0.05
ODDS = -np.log(BETA * (1 - INTERVAL_SHARE))
ONE_TEST = (2 * float(ndtri(1 - BETA))) ** 2
STEPS = 100  # places in one slack
OFFSET = 10 * STEPS
GROWTH, LEAST = 0.12, 0.25  # a look adds this part of what is known, and at least so much
FIRST, NEXT = 0.6, 0.4  # the share of beta of the first place, and that of each next one over the last
NEAR = (0.1, 0.2, 0.3, 0.4, 0.5)
DEVIATIONS = (0.3, 0.5, 0.7, 1.0)
EXPLORED = (0.0, 2.0, 4.0, 6.0)


class Bets:
    """Proofs by bets: those at all places multiply, or each place has a share of beta of its own."""

    def __init__(self, runs: int, *, one_by_one: bool = False, explored: float = 0.0) -> None:
        self.places, self.tried = Places.none(runs), np.zeros(runs, np.int64)
        self.one_by_one, self.explored = one_by_one, explored
        self.most, self.least = np.full(runs, -1), np.full(runs, 1 << 40)
        self.candidate, self.odds = np.full(runs, -1), np.full(runs, ODDS)

    def look(self, at, place, seen, size, spent):
        """Settle the bets on a look; return which runs have told a place."""
        row, places = self.places.at(place, at), self.places
        bets = spent > self.explored
        if self.one_by_one:
            fresh = bets & (self.candidate[at] != place)
            self.odds[at[fresh]] = ODDS - np.log(FIRST) - self.tried[at[fresh]] * np.log(NEXT)
            self.tried[at[fresh]] += 1
            self.candidate[at[fresh]] = place[fresh]
            for won in (places.above, places.below):
                won[row[fresh], at[fresh]] = 0.0
        held, shown = places.information[row, at], Ladder.of(places, at).at(place)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(held > 0, places.totals[row, at] / held, 0.0) * held / (held + PRIOR)
        for won, side, claimed in ((places.above, 1, shown[0]), (places.below, -1, shown[1])):
            rate = np.where(bets, RATE * np.clip(FADE * (1 - side * part), 0, 1), 0.0)
            mine, stake = won[row, at], quantile_bets.STAKE
            needs = wholly(stake, partly(stake, mine) + self.odds[at] * (1 + 1e-9) - claimed) - mine
            needs = self.odds[at] * (1 + 1e-9) - mine if self.one_by_one else needs
            won[row, at] += won_at_most(needs, side * seen - 1, size, rate)
        places.information[row, at] += size
        places.totals[row, at] += size * seen
        self._claim(at, place, row)
        return self.least[at] <= self.most[at]

    def _claim(self, at, place, row):
        """Keep what is proved by now."""
        if self.one_by_one:
            most = np.where(self.places.above[row, at] >= self.odds[at], place, -1)
            least = np.where(self.places.below[row, at] >= self.odds[at], place, 1 << 40)
        else:
            ladder = Ladder.of(self.places, at)
            most = np.where(ladder.seen & (ladder.high >= self.odds[at]), ladder.thresholds, -1).max(axis=0)
            least = np.where(ladder.seen & (ladder.low >= self.odds[at]), ladder.thresholds, 1 << 40).min(axis=0)
        self.most[at], self.least[at] = np.maximum(self.most[at], most), np.minimum(self.least[at], least)


@dataclass
class Information:
    """No proof: what looks hold at the least, with the true place told."""

    truth: np.ndarray
    held: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.held = np.zeros((len(self.truth), 2 * OFFSET // 5 + 1))

    def look(self, at, place, _seen, size, _spent):
        """Return which runs hold enough on both sides of any place."""
        self.held[at, np.clip((place + 2) // 5, 0, self.held.shape[1] - 1)] += size
        off = (5 * np.arange(self.held.shape[1]) - OFFSET) / STEPS - self.truth[at][:, None]
        needed = 2 * (1 - 2 * BETA) * np.log((1 - BETA) / BETA)
        above = np.cumsum((self.held[at] * np.clip(1 - off, 0, None) ** 2)[:, ::-1], axis=1)[:, ::-1]
        below = np.cumsum(self.held[at] * np.clip(1 + off, 0, None) ** 2, axis=1)
        return ((above >= needed) & (below >= needed)).any(axis=1)


def searched(runs, known, pace, proof, *, seed=1):
    """Return what each search pays, and how far off the place is that it tells, in slacks; `known`: of the place."""
    (near, deviations), rng = pace, np.random.default_rng(seed)
    truth = np.round(rng.normal(0, 1 / np.sqrt(known), runs) * STEPS) / STEPS
    sure, guess, place = np.full(runs, float(known)), np.zeros(runs), np.zeros(runs)
    spent, active, rule = np.zeros(runs), np.ones(runs, bool), proof(truth)
    while (at := np.flatnonzero(active)).size:
        far = np.abs(guess[at] - place[at]) > near + deviations / np.sqrt(sure[at])
        place[at[far]] = np.round(guess[at[far]] * STEPS) / STEPS
        size = np.clip(GROWTH * np.minimum(sure[at], 1 + spent[at]), LEAST, None)
        seen = place[at] - truth[at] + rng.normal(size=at.size) / np.sqrt(size)
        spent[at] += size
        done = rule.look(at, np.rint(place[at] * STEPS).astype(np.int64) + OFFSET, seen, size, spent[at])
        guess[at] = (sure[at] * guess[at] + size * (place[at] - seen)) / (sure[at] + size)
        sure[at] += size
        active[at[done]] = False
    told = (rule.least - OFFSET) / STEPS - truth if isinstance(rule, Bets) else np.zeros(runs)
    return spent, told


def best_of(name, runs, known, proof, *, stake=quantile_bets.STAKE, explored=(0.0,)):
    """Print the cheapest pace of a proof, chosen with half of the runs and measured with the others."""
    usual, quantile_bets.STAKE = quantile_bets.STAKE, stake
    try:
        paces = list(product(NEAR, DEVIATIONS, explored))
        paces = paces if known < 1e6 else [(NEAR[-1], DEVIATIONS[-1], each) for each in explored]
        costs = [searched(runs // 2, known, (n, d), proof(e))[0].mean() for n, d, e in paces]
        near, deviations, chosen = paces[int(np.argmin(costs))]
        spent, told = searched(runs, known, (near, deviations), proof(chosen), seed=2)
    finally:
        quantile_bets.STAKE = usual
    error = spent.std() / np.sqrt(runs) / ONE_TEST
    print(
        f"{name:13} {spent.mean():5.1f} = {spent.mean() / ONE_TEST:.2f} +- {error:.2f} of one test, "
        f"misses {(np.abs(told) > 1).mean():.4f} "
        f"(moves on from {near} slacks and {deviations} deviations, explores {chosen:g})",
        flush=True,
    )


def boundaries(runs, size=0.5, looks=160):
    """Print what two one-sided tests at one place need until both are through."""
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(size=(runs, looks)) * np.sqrt(size), axis=1)
    held = size * np.arange(1, looks + 1)
    for name, slope, start in (
        ("bets", RATE / 2, ODDS / RATE),
        ("boundary as steep", RATE / 2, None),
        ("the best boundary", 0.40, None),
    ):
        from_ = np.quantile((walk - slope * held).max(axis=1), 1 - np.exp(-ODDS)) if start is None else start
        needs = []
        for off in (0.0, 0.2, 0.4):
            high = np.logical_or.accumulate(held * (1 - off) - walk >= from_ + slope * held, axis=1)
            low = np.logical_or.accumulate(held * (1 + off) + walk >= from_ + slope * held, axis=1)
            both = high & low
            needs.append(held[np.where(both.any(axis=1), both.argmax(axis=1), looks - 1)].mean())
        print(f"{name:18} " + ", ".join(f"{each:5.2f}" for each in needs) + "  (off by 0, .2, .4 slacks)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    runs = 200 if parser.parse_args().quick else 1500

    def bets(explored):
        return lambda truth: Bets(len(truth), explored=explored)

    def singly(explored):
        return lambda truth: Bets(len(truth), one_by_one=True, explored=explored)

    for known, told in ((1.0, "the place is told give or take one slack"), (1e8, "the place is told")):
        print(told)
        best_of("product", runs, known, bets)
        best_of("whole stakes", runs, known, bets, stake=0.99)
        best_of("one by one", runs, known, singly, explored=EXPLORED if known < 1e6 else (0.0,))
        best_of("information", runs, known, lambda _explored: Information)
    print("two one-sided tests at one place")
    boundaries(20 * runs)


if __name__ == "__main__":
    main()
