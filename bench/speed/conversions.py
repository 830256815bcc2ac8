"""Speed and care of the conversions for arrays, and a cross-check with dp-accounting and OpenDP.

    python bench/speed/conversions.py [--json FILE] [--size 100000] [--repeats 9]

Each function is timed on the whole array; its error is measured on a sample of it against 60 digits (mpmath) as
(ours - truth) / truth, which must lie in [0, 1e-9]. The cross-check prints epsilon at delta 1e-6 by each library.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import dp_accounting
import mpmath as mp
import numpy as np
import opendp.prelude as dp
from dp_accounting import pld, rdp

from farthing.privacy import Gdp, Zcdp, convert
from farthing.privacy.convert import arrays

if TYPE_CHECKING:
    from collections.abc import Callable

DELTA, EPSILON = 1e-6, 1.0
SECONDS_TARGET, ERROR_TARGET = 0.2, 1e-9
SAMPLE = 60
dp.enable_features("contrib")
logging.disable(logging.WARNING)


@dataclass(frozen=True)
class Row:
    """What was measured of one function."""

    name: str
    seconds: float
    balls: int
    least_error: float
    most_error: float
    monotone: bool


def gdp_delta(mu: Any, epsilon: Any) -> Any:
    """Return delta of mu-GDP, exactly."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return (mp.erfc(near / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(far / mp.sqrt(2))) / 2


def gdp_epsilon(mu: Any, _: float) -> Any:
    """Return epsilon of mu-GDP at DELTA, by bisection."""
    low, high, wanted = mp.mpf(0), mu * mu / 2 + 8 * mu, mp.mpf(DELTA)
    if gdp_delta(mu, low) <= wanted:
        return low
    for _step in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if gdp_delta(mu, middle) <= wanted else (middle, high)
    return high


def zcdp_epsilon(rho: Any, _: float) -> Any:
    """Return epsilon of rho-zCDP at DELTA, at its best order."""
    log_inverse = -mp.log(mp.mpf(DELTA))
    x = mp.findroot(lambda x: rho * x * x + mp.log1p(x) - log_inverse, mp.sqrt(log_inverse / rho))
    return (1 + x) * rho - mp.log1p(1 / x) + (log_inverse - mp.log1p(x)) / x


def zcdp_delta(rho: Any, guess: float) -> Any:
    """Return delta of rho-zCDP at EPSILON, at its best order."""
    del guess
    low, high = mp.mpf("1e-12"), mp.mpf("1e12")
    for _step in range(220):
        x = mp.sqrt(low * high)
        low, high = (low, x) if (2 * x + 1) * rho - EPSILON - mp.log1p(1 / x) > 0 else (x, high)
    return min(mp.mpf(1), mp.exp(x * ((1 + x) * rho - EPSILON - mp.log1p(1 / x)) - mp.log1p(x)))


CONTENDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, float], Any]]] = {
    "gdp_epsilons": (lambda losses: convert.gdp_epsilons(losses, DELTA), gdp_epsilon),
    "gdp_deltas": (lambda losses: convert.gdp_deltas(losses, EPSILON), lambda mu, _: gdp_delta(mu, mp.mpf(EPSILON))),
    "zcdp_epsilons": (lambda losses: convert.zcdp_epsilons(losses, DELTA), zcdp_epsilon),
    "zcdp_deltas": (lambda losses: convert.zcdp_deltas(losses, EPSILON), zcdp_delta),
}


def measure(name: str, size: int, repeats: int) -> Row:
    """Time one function on an array, count where balls decided, and measure the error on a sample."""
    ours, exactly = CONTENDERS[name]
    losses = np.geomspace(0.03, 20, size)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        values = ours(losses)
        seconds.append(time.perf_counter() - start)
    errors = []
    with mp.workdps(60):
        for i in np.linspace(0, size - 1, SAMPLE).astype(int).tolist():
            truth = exactly(mp.mpf(float(losses[i])), float(values[i]))
            if truth > mp.mpf("1e-300"):
                errors.append(mp.mpf(float(values[i])) / truth - 1)
    monotone = bool(np.all(np.diff(values) >= 0))
    return Row(name, median(seconds), by_balls(ours, losses), float(min(errors)), float(max(errors)), monotone)


def by_balls(ours: Callable[[Any], Any], losses: Any) -> int:
    """Return how many elements were settled in ball arithmetic."""
    settle, counted = arrays._settle, []

    def counting(values: Any, error: Any, exactly: Any) -> None:
        counted.append(int(np.sum(~(error <= arrays.MARGIN))))
        settle(values, error, exactly)

    arrays._settle = counting
    try:
        ours(losses)
    finally:
        arrays._settle = settle
    return sum(counted)


def peers(rho: float) -> dict[str, float]:
    """Return epsilon at DELTA of the Gaussian mechanism of one rho, by each library and road."""
    mu = math.sqrt(2 * rho)
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
    law = pld.privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3)
    gaussian = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=1 / mu)
    return {
        "rho": rho,
        "farthing, exact": Gdp.of_amount(2 * Zcdp(rho).amount).epsilon(DELTA),
        "dp-accounting, exact": dp_accounting.get_epsilon_gaussian(1 / mu, DELTA),
        "dp-accounting, PLD 1e-3": law.get_epsilon_for_delta(DELTA),
        "farthing, zCDP": Zcdp(rho).epsilon(DELTA),
        "OpenDP, zCDP": dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), DELTA).map(1.0)[0],
        "dp-accounting, RDP": accountant.get_epsilon(DELTA),
        "classic": Zcdp(rho).epsilon(DELTA, route="classic"),
    }


def main() -> None:
    """Print both tables, say whether the targets are met, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    rows = [measure(name, options.size, options.repeats) for name in CONTENDERS]
    print(f"{options.size:,} values, median of {options.repeats}; error on {SAMPLE} of them, relative")
    print(f"{'function':16} {'ms':>8} {'by balls':>9} {'least error':>12} {'most error':>11}  monotone")
    for row in rows:
        errors = f"{row.least_error:12.2e} {row.most_error:11.2e}"
        print(f"{row.name:16} {row.seconds * 1e3:8.1f} {row.balls:9} {errors}  {row.monotone}")
    met = all(
        row.seconds < SECONDS_TARGET and row.least_error >= 0 and row.most_error <= ERROR_TARGET and row.monotone
        for row in rows
    )
    print(
        f"under {SECONDS_TARGET} s, never below, within {ERROR_TARGET:g} above, monotone: {'met' if met else 'MISSED'}"
    )
    compared = [peers(rho) for rho in (0.01, 0.1, 1.0, 2.0)]
    print(f"\nepsilon at delta {DELTA:g}")
    for name in compared[0]:
        print(f"{name:26}" + "".join(f"{each[name]:14.8f}" for each in compared))
    if options.json:
        facts = {"size": options.size, "met": met, "rows": [asdict(row) for row in rows], "peers": compared}
        options.json.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
