"""What choices cost: how many fit a budget, which noise is the best buy, what an oracle that knows the gap would pay.

    python bench/accuracy/selection.py [--json FILE] [--docs docs/explanation/bounded-range.md] [--runs 4000]

The number of choices is the exact quotient of a filter's total and a price. The refined maximum is
simulated in float64, with the schedule of the library and numpy's noise.
"""

from __future__ import annotations

import argparse
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.mechanisms import Exponential, PermuteAndFlip, RefinedMax, TopK, choose_mechanism
from farthing.mechanisms.leads import reach
from farthing.mechanisms.select import named
from farthing.mechanisms.winning import distance_for
from farthing.privacy import Gdp, Pure, Zcdp, convert

EPSILON, DELTA, CHOICE = 1, 1e-6, Fraction(1, 100)
BEGIN, END = "<!-- printed by bench/accuracy/selection.py: do not edit -->", "<!-- end of what was printed -->"


def together(total):
    """Return how many choices of one question are within a total of mu^2."""
    low, high = 1, int(total / (CHOICE**2 / 4))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if TopK(middle, CHOICE).price(Gdp).amount <= total else (low, middle)
    return low


def choices():
    """Return how many choices at CHOICE each route allows under (EPSILON, DELTA)."""
    classic = convert.zcdp_from_epsilon_classic(EPSILON, DELTA)
    zcdp, gdp = Zcdp.from_epsilon(EPSILON, delta=DELTA), Gdp.from_epsilon(EPSILON, delta=DELTA)
    mechanism = Exponential(CHOICE)
    return {
        "eps^2/2 zCDP each, classic conversion": int(Fraction(classic) / (CHOICE**2 / 2)),
        "eps^2/8 zCDP each, classic conversion": int(Fraction(classic) / (CHOICE**2 / 8)),
        "farthing, a GDP ledger, one by one": int(gdp.amount / mechanism.price(Gdp).amount),
        "farthing, a GDP ledger, in one question": together(gdp.amount),
        "farthing, a zCDP ledger": int(zcdp.amount / mechanism.price(Zcdp).amount),
    }


def regrets(cases):
    """Return the least and largest ratio of the exponential mechanism's expected regret to permute and flip's."""
    rng, ratios = np.random.default_rng(7), []
    for _ in range(cases):
        scores = -rng.exponential(10 ** rng.uniform(-1, 1.5), rng.integers(2, 30))
        scores[0] = 0
        epsilon = float(10 ** rng.uniform(-1, 1))
        flip, exponential = (kind(epsilon).probabilities(scores) @ -scores for kind in (PermuteAndFlip, Exponential))
        ratios.append(exponential / flip)
    return min(ratios), max(ratios)


def refined(options, gap, runs, confidence=0.95):
    """Return the mean mu^2 of a refined maximum for `within` 1, all others `gap` behind, and how often it was wrong."""
    plan = RefinedMax(within=1.0, confidence=confidence).schedule(options)
    rng = np.random.default_rng(int(1000 * gap) + options)
    scores = np.append(0.0, np.full(options - 1, -gap))
    state, reached = np.zeros((runs, options)), 0.0
    paid, wrong, live = np.zeros(runs), np.zeros(runs, bool), np.ones(runs, bool)
    for information, lead in zip(plan.information, plan.leads, strict=True):
        fresh = information - reached
        seen = scores + rng.normal(size=state.shape) / math.sqrt(fresh)
        state, reached = (state * reached + seen * fresh) / information, information
        top = np.partition(state, options - 2, axis=1)
        stop = live & (top[:, -1] - top[:, -2] >= lead)
        paid[stop], wrong[stop] = information, (scores[state.argmax(axis=1)] < -1)[stop]
        live &= ~stop
    return paid.mean(), wrong.mean()


def oracles(options, gap, confidence=0.95):
    """Return the mu^2 of one look by an oracle that knows the gap: if its answer must hold at every truth, and if not.

    To hold at every truth it either needs no lead, at the information for `within`, or it needs the lead that proves
    its answer, with the information at which the lead shows up with the confidence.
    """
    distance = distance_for("gaussian", 1, options, confidence)
    return min(distance**2, (2 * distance / (gap + 1)) ** 2), (distance / max(gap, 1.0)) ** 2


def settled(noise, options, gap, runs, confidence=0.95):
    """Return how often a choice with `within` 1 is proved by its lead, all others `gap` behind, and how often wrongly.

    The noise is what `within` needs at the worst scores; the lead costs nothing beside the choice.
    """
    size = 1 / distance_for(noise, 1, options, confidence)
    rng = np.random.default_rng(int(1000 * gap) + options)
    draw = rng.exponential if noise == "exponential" else rng.normal
    raced = np.append(0.0, np.full(options - 1, -gap)) + size * draw(size=(runs, options))
    top = np.partition(raced, options - 2, axis=1)
    sure = top[:, -1] - top[:, -2] > size * reach(noise, 1, confidence)
    return float(np.mean(sure)), float(np.mean(sure & (raced.argmax(axis=1) != 0)))


def buys():
    """Return what "the best or within 50, with 95 %" costs by each noise, as printed by the planner."""
    cases = ((Pure, 100, None, 1), (Zcdp, 100, None, 1), (Zcdp, 10**6, 1, 1), (Gdp, 100, 1, 1), (Gdp, 10**6, 1, 10))
    for currency, options, moved, k in cases:
        choice = choose_mechanism(currency, options=options, within=50, k=k, monotone=True, moved=moved)
        yield currency.__name__, options, moved, k, named(choice.mechanism), str(choice)


def table(rows):
    """Return the number of choices as a table of Markdown."""
    least = rows["eps^2/2 zCDP each, classic conversion"]
    lines = ["| route | choices | |", "| --- | ---: | ---: |"]
    return "\n".join(lines + [f"| {name} | {count:,} | {count / least:.2f} |" for name, count in rows.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--runs", type=int, default=4000)
    flags = parser.parse_args()

    counted = choices()
    print(table(counted), "\n")
    low, high = regrets(500)
    print(f"expected regret, exponential mechanism over permute and flip: {low:.4f} to {high:.4f}\n")
    for currency, options, moved, k, best, text in buys():
        print(f"{currency}, {options:,} options, k={k}, one unit moves {moved or 'all'}: {best}\n    {text}")
    print("\nrefined maximum, mu^2 over that of an oracle that knows the gap (in units of `within`)")
    print("options   gap   its answer holds at every truth   it need not   wrong")
    rows = []
    for options in (2, 10, 100):
        for gap in (0.01, 1.001, 1.5, 2.0, 4.0, 8.0):
            (paid, wrong), (sure, blind) = refined(options, gap, flags.runs), oracles(options, gap)
            rows.append({"options": options, "gap": gap, "sure": paid / sure, "blind": paid / blind, "wrong": wrong})
            print(f"{options:7d} {gap:5.2f} {paid / sure:33.2f} {paid / blind:14.2f} {wrong:7.4f}")
    print("\nthe choice proved by its own lead, free of charge: how often, and how often wrongly (5 % are allowed)")
    print("options   gap   exponential noise   Gaussian noise")
    proved = []
    for options in (2, 10, 100):
        for gap in (0.01, 0.5, 1.0, 1.5, 2.0):
            told = {noise: settled(noise, options, gap, flags.runs) for noise in ("exponential", "gaussian")}
            proved.append({"options": options, "gap": gap} | told)
            cells = "  ".join(f"{sure:8.3f} {wrong:8.4f}" for sure, wrong in told.values())
            print(f"{options:7d} {gap:5.2f}  {cells}")
    if flags.json:
        flags.json.write_text(
            json.dumps({"choices": counted, "regret": [low, high], "refined": rows, "leads": proved}, indent=1)
        )
    if flags.docs:
        text = flags.docs.read_text(encoding="utf-8")
        head, rest = text.split(BEGIN)
        flags.docs.write_text(f"{head}{BEGIN}\n\n{table(counted)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
