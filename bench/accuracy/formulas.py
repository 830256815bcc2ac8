"""What covariances, correlations, lines and arithmetic of means cost, over the least that first-order error allows.

Groups are alike; the least is what somebody would pay who knew all moments and measured once, if the number were
straight in them. Also how many intervals missed, of the 5 % that may.

    python bench/accuracy/formulas.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.forms import from_aggregates
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.stop_rule import two_sided
from farthing.query.aggregates import Formula, Mean, NamedAggregate
from farthing.query.expressions import Column
from farthing.query.measures import Rows
from farthing.query.pairs import Pair
from farthing.query.shared_measures import needed

GRAIN = 2.0**-56
X, Y = Column("x"), Column("y")
ENDS = ((0.0, 10.0), (-20.0, 60.0))
ASKED = (
    ("AVG - AVG", Formula(Mean(X, *ENDS[0]), Formula(-1.0, Mean(Y, *ENDS[1]), product=True)), (1.0, 0.2)),
    ("COVAR_POP", Pair("covariance", X, Y, *ENDS), (2.0, 0.5)),
    ("CORR", Pair("correlation", X, Y, *ENDS), (0.1, 0.02, 0.005)),
    ("REGR_SLOPE", Pair("slope", X, Y, *ENDS), (0.3, 0.05)),
    ("REGR_INTERCEPT", Pair("intercept", X, Y, *ENDS), (1.0, 0.2)),
)


def means(aggregate, measures, x, y):
    """Return the mean that a row adds to each measure."""
    pair = aggregate if isinstance(aggregate, Pair) else Pair("correlation", X, Y, *ENDS)
    (c, d), places = pair.centres, pair.places
    values = [None, x - c, y - d, (x - c) * (y - d), (x - c) ** 2, (y - d) ** 2]
    named = {measure: value for measure, value in zip(places, values, strict=True) if measure is not None}
    found = []
    for measure in measures:
        if isinstance(measure, Rows):
            found.append(1.0)
        elif measure in named:
            found.append(float(np.mean(named[measure])) - measure.less)
        else:
            found.append(float(np.mean((x if str(measure.value) == "x" else y) - measure.centre)))
    return np.array(found)


def priced(aggregate, absolute, rows, groups):
    """Return what a group pays over the least, in the middle and at most; and the part of intervals that missed."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 100_000)
    y = np.clip(3 * x + rng.normal(0, 8, x.size) + 5, *ENDS[1])
    measures = needed([aggregate])
    (statistic,) = from_aggregates([NamedAggregate("n", aggregate)], measures)
    truth = np.repeat(rows * means(aggregate, measures, x, y)[:, None], groups, axis=1)
    worth = np.array([GRAIN / (measure.sensitivity(1) * measure.step) ** 2 for measure in measures])

    def measure(grains, chosen):
        deviation = 1 / np.sqrt(np.maximum(grains, 1) * worth[:, None])
        return truth[:, chosen] + deviation * rng.standard_normal(grains.shape)

    joint = JointMeasures((statistic,), ((0.0, absolute),), 0.05, tuple(worth), 2**60)
    state = joint.run(JointState.nothing(len(measures), 1, groups), measure)
    steep = np.abs(statistic.slopes(truth[:, :1], np.zeros(1))[:, 0])
    least = (two_sided(0.05) * (steep / np.sqrt(worth)).sum() / absolute) ** 2
    exact = statistic.estimate(truth[:, :1])[0]
    missed = float(((exact < state.lower[0]) | (exact > state.upper[0])).mean())
    return float(np.median(state.paid) / least), float(state.paid.max() / least), missed, float(state.met.mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    groups = 40 if parser.parse_args().quick else 400
    print(f"{'number':15} {'rows':>7} {'within':>7} {'paid / least':>13} {'at most':>8} {'missed':>7} {'met':>5}")
    for rows in (3_000, 60_000):
        for name, aggregate, widths in ASKED:
            for absolute in widths[: 2 if rows < 10_000 else 3]:
                middle, most, missed, met = priced(aggregate, absolute, rows, groups)
                print(f"{name:15} {rows:7,} {absolute:7} {middle:13.2f} {most:8.2f} {missed:7.3f} {met:5.2f}")


if __name__ == "__main__":
    main()
