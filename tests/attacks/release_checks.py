"""What mutants of a release are put to: contrasts that are orthogonal, all that is measured charged, a pilot apart."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import farthing
from farthing.mechanisms import adaptive_tables, noisy_answers, residuals, spanning_tree
from farthing.mechanisms.online_weights import OnlineRule
from farthing.mechanisms.residuals import NoiseShape, ResidualMeasurements
from farthing.mechanisms.shared_noise import SharedNoise, summed
from farthing.mechanisms.strategy import Strategy, StrategyMeasurements, on_grid
from farthing.session.answering import release as releasing
from farthing.session.answering import synthetic
from farthing.workloads import conditions, marginals, prefixes, ranges

GRAIN = 2.0**-56


def tables() -> tuple[str, ...]:
    """Look at the contrasts and at made-up rows, then at what a release measures beside what it books."""
    return (*_contrasts(), *_made_up(), *_booked(releasing.MOST_SHAPED), *_booked(0))


def _contrasts() -> tuple[str, ...]:
    """Return whether contrasts in length 1 are not orthogonal, or are moved by a row further than is priced."""
    found = []
    for sizes in ((5,), (3, 4)):
        cells = np.eye(int(np.prod(sizes)), dtype=np.int64).reshape(-1, *sizes)
        lengths = residuals.lengths_of(sizes)
        rows = np.array([(residuals.contrasts(cell) / lengths).reshape(-1) for cell in cells])
        if not np.allclose(rows.T @ rows, np.eye(rows.shape[1])):
            found.append(f"the contrasts of {sizes} are not orthogonal")
        if not np.allclose((rows**2).sum(axis=1), residuals.price_of(sizes)):
            found.append(f"a row moves the contrasts of {sizes} by more than is priced")
        shape = NoiseShape(tuple(np.arange(1, size + 1) ** 2 for size in sizes), np.zeros(sizes))
        wide = residuals.lengths_of(sizes, shape.weights)
        moved = [float(((residuals.contrasts(cell, shape.weights) / wide) ** 2).sum()) for cell in cells]
        if not np.isclose(max(moved), shape.price):
            found.append(f"a row moves the weighted contrasts of {sizes} by more than is priced")
    return tuple(found)


def _made_up() -> tuple[str, ...]:
    """Return whether a made-up row moves the cells of a table otherwise than the told variance says."""
    patterns = (np.array([[1.5, 0.0, -0.5], [0.0, 1.0, 0.0]]), np.array([[-0.25, 1.25], [0.5, 0.5]]))
    noise, sizes = SharedNoise(patterns, np.array([4.0, 1.0])), {0: 3, 1: 2}
    along = noise.along({place: np.ones(size, np.int64) for place, size in sizes.items()})
    exact = np.zeros((3, 2))
    for scale, unit in zip(noise.scales, np.eye(2), strict=True):
        moved = {s: residuals.residual_table(summed(unit, [along[i] for i in s])) for s in ((), (0,), (1,), (0, 1))}
        exact += scale * residuals.put_together((0, 1), sizes, moved) ** 2
    told = noise.spread((0, 1))
    fits = np.allclose(told, exact, rtol=2e-3) and (told >= exact * (1 - 1e-9)).all()
    return () if fits else ("a made-up row moves a table by more than is told",)


def _booked(most_shaped: int) -> tuple[str, ...]:
    """Return whether a release with a pilot books less than it measures, or answers with the pilot's noise."""
    real, seen = ResidualMeasurements.measure, list[tuple[tuple[int, ...], int, int]]()

    def noted(self, subset, state, grains, *more):  # as the method has it
        """Note a measurement, and make it."""
        seen.append((subset, state.grains, grains))
        return real(self, subset, state, grains, *more)

    rows = {name: np.arange(40_000) // step % 4 for name, step in (("a", 1), ("b", 4))}
    with farthing.Session(pa.table(rows), budget=farthing.Budget(mu=6)) as session:
        with (
            patch.object(ResidualMeasurements, "measure", noted),
            patch.object(releasing, "MOST_SHAPED", most_shaped),
        ):
            how = {"keys": dict.fromkeys("ab", range(4)), "relative": 0.1, "absolute": 20, "cap": "all"}
            told, again = (session.release(marginals(["a", "b"]), **how)["a", "b"].value for _ in range(2))
        booked = float(session.spent.amount)
    measured = sum(grains for _, _, grains in seen) * GRAIN
    starts = [subset for subset, before, _ in seen if not before]
    found = [] if np.array_equal(told, again) else ["what is stored is not what was told"]
    found += [f"measured {measured:.6g} of mu squared, booked {booked:.6g}"] * (booked < measured)
    joined = [subset for subset in set(starts) if starts.count(subset) < 2]
    return (*found, *(f"the answer's residual {subset} began with the pilot's" for subset in joined))


def products() -> tuple[str, ...]:
    """Look at the length and the sums of a strategy, then at what a release of products measures beside its books."""
    return (*_sums(), *_booked_products())


def _sums() -> tuple[str, ...]:
    """Return whether a row moves a strategy further than is priced, or its sums are not exact."""
    strategy = Strategy.rounded((2, 2), (np.array([[1.0, 0.25], [0.0, 0.5]]), None))
    (A, _), table = strategy.floats, np.array([[3, 2**40 + 1], [5, 7]])
    whole, rest = on_grid(table, strategy, 0)
    longest = float(np.sqrt((A**2).sum(axis=0)).max())
    found = [f"a row moves a strategy by {longest}, priced as {strategy.length}"] * (longest > strategy.length)
    exact = np.array_equal(whole + rest, A @ table)
    return (*found, *(["the sums of a strategy are not exact"] * (not exact)))


def _booked_products() -> tuple[str, ...]:
    """Return whether a release of products books less than it measures, or counts rows that are in no bin."""
    real, seen = StrategyMeasurements.measure, list[int]()

    def noted(self, number, state, grains):  # as the method has it
        """Note a measurement, and make it."""
        seen.append(grains)
        return real(self, number, state, grains)

    rows = pa.table({"a": np.arange(40_000) % 8})
    workload = prefixes("a", [1, 3, 5]) + conditions(["a > 3"])
    with farthing.Session(rows, budget=farthing.Budget(mu=6)) as session:
        with patch.object(StrategyMeasurements, "measure", noted):
            release = session.release(workload, absolute=20, cap="all", mechanism="factors")
        booked = float(session.spent.amount)
    measured = sum(seen) * GRAIN
    found = [f"measured {measured:.6g} of mu squared, booked {booked:.6g}"] * (booked < measured)
    off = abs(release["prefixes of a"].value - [10_000, 25_000]).max() > 200
    return (*found, *(["rows that are in no bin were counted"] * bool(off)))


def models() -> tuple[str, ...]:
    """Look at what models and their errors measure beside the books, at the price of a run, and at a report."""
    whole = (*_booked_model("tree"), *_booked_model("adaptive"), *_booked_model("adaptive", stops=7))
    return (*whole, *_priced_products(), *_priced_run(), *_report())


def _booked_model(name: str, stops: int = 10**9) -> tuple[str, ...]:
    """Return whether a release by a model books less than its draws cost, for what a row really moves; also one that is
    interrupted after so many of them.
    """
    real, seen = noisy_answers.noisy_answers, list[float]()

    def noting(moved):
        """Return a measurement that is noted at what it costs if a row moves so many of its answers."""

        def noted(truth, loss, *, squares, total, bits=None):
            """Note a measurement, and make it."""
            seen.append(float(loss.amount) * moved(np.size(truth)) / squares)
            if len(seen) == stops:
                raise KeyboardInterrupt
            return real(truth, loss, squares=squares, total=total, bits=bits)

        return noted

    rows = pa.table({name: np.arange(4_000) // step % 2 for name, step in (("a", 1), ("b", 2), ("c", 4), ("d", 8))})
    with farthing.Session(rows, budget=farthing.Budget(mu=6)) as session:
        with (
            patch.object(spanning_tree, "noisy_answers", noting(lambda _: 1)),
            patch.object(adaptive_tables, "noisy_answers", noting(lambda _: 1)),
            patch.object(synthetic, "noisy_answers", noting(lambda many: many)),
            suppress(KeyboardInterrupt),
        ):
            session.release(
                marginals(list("abcd")), keys=dict.fromkeys("abcd", range(2)), loss=farthing.Gdp(1), mechanism=name
            )
        booked = float(session.spent.amount)
    return (f"measured {sum(seen):.6g} of mu squared, booked {booked:.6g}",) * (sum(seen) > booked)


def _priced_products() -> tuple[str, ...]:
    """Return whether the error of ranges is measured as if a row were in one of them."""
    seen, real = list[int](), noisy_answers.noisy_answers

    def noted(truth, loss, *, squares, total, bits=None):
        """Note the sensitivity of a measurement, and make it."""
        seen.append(total >> 16)
        return real(truth, loss, squares=squares, total=total, bits=bits)

    with (
        farthing.Session(pa.table({"a": np.arange(900) % 3}), budget=farthing.Budget(mu=6)) as session,
        patch.object(synthetic, "noisy_answers", noted),
    ):
        session.release(ranges("a", [0, 1, 2, 3]), loss=farthing.Gdp(1), mechanism="projection")
    return ("a row is in one range alone",) * (seen != [4])


def _priced_run() -> tuple[str, ...]:
    """Return whether an online run costs less than its watch."""
    rule = OnlineRule(300, 50, 4, 2_000, currency=farthing.Gdp)
    least = farthing.Pure(rule.epsilon).to(farthing.Gdp).amount
    return ("a run costs less than its watch",) * (rule.run.amount < least)


def _report() -> tuple[str, ...]:
    """Return whether the report on synthetic rows leaves out what the noise of the tables hides."""
    rows = pa.table({"a": np.arange(900) % 3})
    with farthing.Session(rows, budget=farthing.Budget(mu=6)) as session:
        found = session.release(marginals(["a"], ways=1), keys={"a": range(3)}, absolute=150, cap="all").synthetic(900)
    return ("the report says that synthetic rows are exact",) * bool(found.upper.max() < 0.05)
