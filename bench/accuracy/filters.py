"""How many answers each filter allows under one (epsilon, delta): ours beside those of Rogers et al. 2023.

All answers have one size: a Gaussian count of sensitivity 1 with standard deviation 1000, and a selection by the
exponential mechanism of the same zCDP price (bounded range 0.002). "Mixed" asks for the two in turn. The table drives
the filters themselves, with exact fractions; n answers of one price are asked for as one loss n times as large.

    python bench/accuracy/filters.py [--json FILE] [--docs docs/reference/filters.md]
"""

from __future__ import annotations

import argparse
import json
import time
from fractions import Fraction
from pathlib import Path

from farthing.errors import InvalidBudget
from farthing.privacy import Rdp
from farthing.privacy.ex_post import LinearBoundary
from farthing.privacy.filters import (
    BrownianRun,
    ExPost,
    GdpFilter,
    PureFilter,
    RenyiFilter,
    ResidueFilter,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
    ZcdpFilter,
    priced,
)
from farthing.privacy.loss import BoundedRange, Gdp, Loss, Pure, Zcdp
from farthing.privacy.renyi import ORDERS
from farthing.privacy.residue import MOST_KAPPA, choice_price, choices_price

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
DELTAS = (1e-6, 1e-9)
SIGMA = 1000
GAUSSIAN = Gdp(Fraction(1, SIGMA))
SELECTION = BoundedRange(Fraction(2, SIGMA))
LARGER = (("1", "0.02"), ("1", "0.05"), ("5", "0.05"), ("5", "0.2"), ("10", "0.2"), ("10", "0.5"))
RUN = BrownianRun(stop=Fraction(1, SIGMA**2))
BEGIN, END = "<!-- printed by bench/accuracy/filters.py: do not edit -->", "<!-- end of what was printed -->"


def most(fits):
    """Return the largest n for which fits(n) holds, fits being true up to there."""
    high = 1
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def additive(books, kind):
    """Return how many Gaussian answers, selections and mixed answers a filter with one additive total allows."""
    prices = {}
    for name, loss in (("gaussian", GAUSSIAN), ("selection", SELECTION)):
        try:
            prices[name] = priced(loss, kind)
        except InvalidBudget:  # a Gaussian has no pure price
            prices[name] = None
    counts = {name: price and most(lambda n, price=price: books.can_spend(price * n)) for name, price in prices.items()}
    counts["mixed"] = None if None in prices.values() else mixed(books, prices["gaussian"], prices["selection"])
    return counts


def mixed(books, first: Loss, second: Loss):
    """Return how many answers fit when two prices take turns."""
    return most(lambda n: books.can_spend(first * ((n + 1) // 2) + second * (n // 2)))


def gaussian_runs(books):
    """Return how many Brownian runs, each stopped at variance SIGMA^2, fit in an ex-post filter.

    Each is stated by a linear boundary tight where it stops; delta is split evenly over as many runs as will fit.
    """

    def fits(n):
        psi = LinearBoundary(delta=Fraction(books.delta) / n, tight_at=SIGMA**2)
        return books.can_spend(ExPost(cap=psi.at(SIGMA**2) * n, delta=Fraction(books.delta)))

    return most(fits)


def ex_post(books):
    """Return the counts of the ex-post filter; a selection is a pure loss there."""
    price = Pure(SELECTION.amount)

    def fits(n):
        if n < 2:
            return books.can_spend(price * n)
        runs, delta = (n + 1) // 2, Fraction(books.delta)
        cap = LinearBoundary(delta=delta / runs, tight_at=SIGMA**2).at(SIGMA**2) * runs + price * (n // 2)
        return books.can_spend(ExPost(cap=cap, delta=delta))

    return {
        "gaussian": gaussian_runs(books),
        "selection": most(lambda n: books.can_spend(price * n)),
        "mixed": most(fits),
    }


def concurrent(books):
    """Return the counts of the concurrent filter: both sides are filled, mixed asks with their selections ex post."""
    zcdp, other = additive(books.zcdp, Zcdp), ex_post(books.ex_post)
    first, second = priced(GAUSSIAN, Zcdp), priced(SELECTION, Zcdp)
    spared = other["selection"]
    both = most(lambda n: books.zcdp.can_spend(first * ((n + 1) // 2) + second * max(0, n // 2 - spared)))
    return {name: zcdp[name] + other[name] for name in ("gaussian", "selection")} | {"mixed": both}


def residue(books, gaussian=GAUSSIAN, selection=SELECTION):
    """Return the counts of the residue filter: what n answers take, from the last one back."""
    total, eta, one = books.remaining.amount, selection.amount, gaussian.amount

    def turns(n):
        need, made = Fraction(0), 0
        while made < n and need < MOST_KAPPA * eta**2:  # the last answers, backward; before them prices are the same
            need, made = need + (choice_price(eta, need) if (n - made) % 2 == 0 else one), made + 1
        left = n - made
        return need + (left // 2) * choice_price(eta, need) + (left - left // 2) * one

    return {
        "gaussian": most(lambda n: books.can_spend(gaussian * n)),
        "selection": most(lambda n: choices_price(eta, n) <= total),
        "mixed": most(lambda n: turns(n) <= total),
    }


def renyi(epsilon, delta, gaussian=GAUSSIAN, selection=SELECTION):
    """Return the counts of the Renyi filter, each at the order that allows most of that kind, fixed beforehand."""
    best = {"gaussian": 0, "selection": 0, "mixed": 0}
    for order in ORDERS:
        total = RenyiFilter.from_epsilon(epsilon, delta=delta, order=order).remaining.amount
        first, second = (loss.to(Rdp).bound(order) for loss in (gaussian, selection))
        need = {"gaussian": lambda n, a=first: n * a, "selection": lambda n, b=second: n * b}
        need["mixed"] = lambda n, a=first, b=second: (n + 1) // 2 * a + n // 2 * b
        for name, sum_of in need.items():
            best[name] = max(best[name], most(lambda n, total=total, sum_of=sum_of: sum_of(n) <= total))
    return best


def counts(epsilon, delta):
    """Return one record a filter: what it allows under (epsilon, delta)."""
    rows = {
        "GdpFilter": additive(GdpFilter.from_epsilon(epsilon, delta=delta), Gdp),
        "ZcdpFilter": additive(ZcdpFilter.from_epsilon(epsilon, delta=delta), Zcdp),
        "ResidueFilter": residue(ResidueFilter.from_epsilon(epsilon, delta=delta)),
        "RenyiFilter": renyi(epsilon, delta),
        "PureFilter": additive(PureFilter.from_epsilon(epsilon), Pure),
        "RogersZcdpFilter": additive(RogersZcdpFilter(epsilon, delta), Zcdp),
        "RogersUnifiedFilter": unified(RogersUnifiedFilter(epsilon, delta)),
        "RogersExPostFilter": ex_post(RogersExPostFilter(epsilon, delta)),
        "RogersConcurrentFilter": concurrent(RogersConcurrentFilter.from_epsilon(epsilon, delta=delta)),
    }
    return [{"epsilon": float(epsilon), "delta": delta, "filter": name, **row} for name, row in rows.items()]


def unified(books):
    """Return the counts of the unified filter, its Gaussian answers being Brownian runs stopped at variance SIGMA^2."""
    runs = most(lambda n: books.can_spend(BrownianRun(stop=n * RUN.mu_squared)))
    return additive(books, Zcdp) | {"gaussian": runs}


def totals(epsilon, delta):
    """Return what (epsilon, delta) buys as rho, over the classic conversion, and the break-even share of selections."""
    classic = RogersZcdpFilter(epsilon, delta).remaining.amount
    sharper = ZcdpFilter.from_epsilon(epsilon, delta=delta).remaining.amount
    gaussian = GdpFilter.from_epsilon(epsilon, delta=delta).remaining.amount / 2
    dearer = SELECTION.to(Gdp).amount / 2 / SELECTION.to(Zcdp).amount  # close to pi/2
    return {
        "epsilon": float(epsilon),
        "delta": delta,
        "classic_rho": float(classic),
        "sharper": float(sharper / classic),
        "gdp": float(gaussian / classic),
        "break_even_share": float((gaussian / sharper - 1) / (dearer - 1)),
    }


def larger(epsilon, eta, delta=1e-6):
    """Return how many selections of a larger range fit beside Gaussian answers of the same zCDP price, in turn."""
    gaussian, selection = Gdp(eta / 2), BoundedRange(eta)
    by_gdp, by_zcdp = (each.from_epsilon(epsilon, delta=delta) for each in (GdpFilter, ZcdpFilter))
    return {
        "epsilon": float(epsilon),
        "eta": float(eta),
        "GdpFilter": mixed(by_gdp, gaussian, priced(selection, Gdp)),
        "ZcdpFilter": mixed(by_zcdp, priced(gaussian, Zcdp), priced(selection, Zcdp)),
        "RenyiFilter": renyi(epsilon, delta, gaussian, selection)["mixed"],
        "ResidueFilter": residue(ResidueFilter.from_epsilon(epsilon, delta=delta), gaussian, selection)["mixed"],
    }


def run():
    """Return the whole comparison."""
    settings = [(Fraction(epsilon), delta) for delta in DELTAS for epsilon in EPSILONS]
    return {
        "sigma": SIGMA,
        "bounded_range": float(SELECTION.amount),
        "totals": [totals(*setting) for setting in settings],
        "larger": [larger(Fraction(e), Fraction(eta)) for e, eta in LARGER],
        "counts": [row for setting in settings for row in counts(*setting)],
    }


def markdown(found):
    """Return the tables as Markdown."""
    lines = [BEGIN, ""]
    for delta in DELTAS:
        rows = [row for row in found["totals"] if row["delta"] == delta]
        lines += [f"What (epsilon, {delta:g}) buys, as rho:", ""]
        lines += [
            "| epsilon | classic rho | sharper zCDP | GDP | zCDP lets more through once selections make up |",
            "| ---: | ---: | ---: | ---: | ---: |",
        ]
        lines += [
            f"| {row['epsilon']:g} | {row['classic_rho']:.4g} | {row['sharper']:.3f} x | {row['gdp']:.3f} x "
            f"| {row['break_even_share']:.0%} of the rho |"
            for row in rows
        ]
        lines += ["", f"Answers at delta {delta:g}: Gaussian / selections / mixed, one of each in turn:", ""]
        lines += answers([row for row in found["counts"] if row["delta"] == delta])
        lines += [""]
    return "\n".join([*lines, *of_larger(found["larger"]), "", END])


def of_larger(rows):
    """Return the lines of the table of selections of a larger range."""
    names = ("GdpFilter", "ZcdpFilter", "RenyiFilter", "ResidueFilter")
    lines = ["Selections of a larger range and Gaussian answers of the same zCDP price in turn, at delta 1e-06:", ""]
    lines += ["| epsilon, range | " + " | ".join(f"`{name}`" for name in names) + " |", "| --- |" + " ---: |" * 4]
    for row in rows:
        cells = " | ".join(f"{row[name]:,}" for name in names)
        lines.append(f"| {row['epsilon']:g}, {row['eta']:g} | {cells} |")
    return lines


def answers(rows):
    """Return the lines of the table of counts: a filter a row, an epsilon a column."""
    names = list(dict.fromkeys(row["filter"] for row in rows))
    lines = ["| filter | " + " | ".join(EPSILONS) + " |", "| --- |" + " ---: |" * len(EPSILONS)]
    for name in names:
        cells = [row for row in rows if row["filter"] == name]
        lines.append(f"| `{name}` | " + " | ".join(cell(row) for row in cells) + " |")
    return lines


def cell(row):
    """Return one cell; a dash where the filter has no price for the answer."""
    return " / ".join("–" if row[k] is None else f"{row[k]:,}" for k in ("gaussian", "selection", "mixed"))


def rewrite(path, text):
    """Replace the printed part of a page."""
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    path.write_text(before + text + rest.split(END)[1], encoding="utf-8")


def main():
    """Print the tables; write JSON, or the part of the page, when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--docs", type=Path, help="rewrite the printed part of this page")
    options = parser.parse_args()
    started = time.perf_counter()
    found = run()
    text = markdown(found)
    print(text)
    print(f"\n{len(found['counts'])} counts in {time.perf_counter() - started:.1f} s")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if options.docs:
        rewrite(options.docs, text)


if __name__ == "__main__":
    main()
