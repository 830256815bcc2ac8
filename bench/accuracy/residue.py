"""The certificate of the constants of `privacy.residue`, and what a choice costs while so much is left.

docs/proofs/privacy.residue.md reduces the price of a choice to one inequality in s and t for each kappa. Here it is
checked on grids, each cell by the corners and bounds on second derivatives, beyond the last s by hand on that page.

    python bench/accuracy/residue.py [--write]
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.special import erfcx

from farthing.privacy.residue import LEAST_KAPPA, MOST_KAPPA, choice_price, choices_price

RATIO = 1.03
"""From one kappa to the next: prices fall with kappa, so the price of the upper end is checked at the lower one."""

ROUNDING = 1e-11
"""What float64 may be off, over the density at s; the least margin is 10^5 times that."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs" / "privacy.residue.md"
BEGIN, END = "<!-- printed by bench/accuracy/residue.py: do not edit -->", "<!-- end of what was printed -->"


def allowed(kappa):
    """Return what the library charges of the squared range, as a float: the formula of `choice_price`."""
    return 0.25 + 1 / (90 * min(kappa, float(MOST_KAPPA)) + 4.5)


def margin(kappa, gain, *, cells=256, step=0.005):
    """Return the least margin of the inequality at one kappa, over the normal density of variance kappa at s.

    Args:
        kappa: what is left, over the squared range.
        gain: what the choice is charged, over the squared range.
        cells: cells of t in [0, 1].
        step: of s, over sqrt(kappa); four times as much beyond 4 sqrt(kappa).
    """
    root, last = math.sqrt(kappa), 17 * kappa + 3
    inner, outer = np.arange(0, 4 * root, step * root), np.arange(4 * root, last + 4 * step * root, 4 * step * root)
    parts = [(part, step * root) for part in np.array_split(inner, 1 + len(inner) // 500)]
    parts += [(part, 4 * step * root) for part in np.array_split(outer, 1 + len(outer) // 500) if len(part)]
    return min(_margin(part[:, None], width, kappa, gain, np.linspace(0, 1, cells + 1)) for part, width in parts)


def _margin(s, width, kappa, gain, t):
    """Return the least margin over the cells whose lower corners are s and t."""
    after = kappa + gain
    gap = _put(after, s, s, kappa) - (1 - t) * _put(kappa, s - t, s, kappa) - t * _put(kappa, s + 1 - t, s, kappa)
    near = np.exp((s**2 - np.maximum(s - 1 - width, 0) ** 2) / (2 * kappa))
    wide = np.exp(s**2 / (2 * kappa) - np.maximum(s - width, 0) ** 2 / (2 * after))
    curved = (width**2 * wide + 2 * (t[1] - t[0]) ** 2 * near) / 8
    return float((gap - curved - ROUNDING * near).min())


def _put(variance, at, s, kappa):
    """Return E max(0, -at - N(0, variance)) over the normal density of variance kappa at s."""
    z = at / math.sqrt(variance)
    scaled = 1 - z * math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
    return math.sqrt(variance * kappa) * np.exp(s**2 / (2 * kappa) - at**2 / (2 * variance)) * scaled


def kappas():
    """Return the lower ends of the steps of kappa: each is charged what its upper end is."""
    many = math.ceil(math.log(float(MOST_KAPPA / LEAST_KAPPA)) / math.log(RATIO))
    return [float(LEAST_KAPPA) * RATIO**k for k in range(many)]


def certified(points):
    """Return the least margin over some lower ends; the constants hold between them and the next if it is positive."""
    return min(margin(kappa, allowed(kappa * RATIO)) for kappa in points)


def least(kappa):
    """Return the price that a choice in the middle needs, over the squared range: no formula can be below it."""
    middle = sum(_put(kappa, at, 0.0, kappa) for at in (-0.5, 0.5)) / 2 / math.sqrt(2 * math.pi * kappa)
    return 2 * math.pi * float(middle) ** 2 - kappa


def table():
    """Return the printed part of the proof page."""
    eta = Fraction(1, 1000)
    lines = ["| left, over eta^2 | charged, over eta^2/4 | least possible |", "| ---: | ---: | ---: |"]
    for left in ("1/16", "1/8", "1/4", "1/2", "1", "2", "4", "100"):
        kappa = Fraction(left)
        price = float(choice_price(eta, kappa * eta**2) / eta**2)
        lines.append(f"| {left} | {4 * price:.4f} | {4 * least(float(kappa)):.4f} |")
    lines += ["", "| choices together | charged, over eta^2/4 each |", "| ---: | ---: |"]
    for many in (1, 2, 3, 5, 10, 30, 100, 1000):
        lines.append(f"| {many:,} | {float(4 * choices_price(eta, many) / eta**2 / many):.4f} |")
    return "\n".join(lines)


def main():
    """Print the table and the certificate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the proof page")
    printed = table()
    print(printed)
    if parser.parse_args().write:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{printed}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    points = kappas()
    print(f"\nleast margin over {len(points)} steps of kappa: {certified(points):.3g}")


if __name__ == "__main__":
    main()
