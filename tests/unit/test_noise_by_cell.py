"""Relative targets of tables: members of large cells pay less, every cell keeps its width, and nobody pays above it."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.limits.tables import Residuals
from farthing.mechanisms import residuals
from farthing.mechanisms.residuals import (
    ADDED_PARTS,
    NoiseShape,
    Residual,
    ResidualMeasurements,
    contrasts,
    lengths_of,
    put_together,
    residual_table,
)
from farthing.planning.release_pilot import Pilot
from farthing.planning.release_shaped import ShapedDesign, ShapeProgram
from farthing.session.answering.release import WORST_MOST
from farthing.session.answering.release_record import Kept, Shaped
from farthing.session.core.records import write_blob
from farthing.workloads import marginals, prefixes, ranges

pytestmark = pytest.mark.thorough

WEIGHTS = (np.array([1, 4, 9]), np.array([8, 3]))
SUBSETS = ((), (0,), (1,), (0, 1))
ADDED = np.array([[0, 0], [0, 5.0], [30, 100.0]])
COUNTS = np.arange(6).reshape(3, 2) ** 5 * 7

ROWS = 40_000
RANDOM = np.random.default_rng(15)
COMMON = (("a", 0.85, 12), ("b", 0.8, 10), ("c", 0.9, 2))
TABLE = pa.table({name: np.minimum(RANDOM.geometric(p, ROWS) - 1, size - 1) for name, p, size in COMMON})
KEYS = {"a": [3, 0, 1, 2, *range(4, 12)], "b": range(10), "c": [0, 1]}
TWO = marginals(["a", "b", "c"])


def sums(table, subset):
    """Return the counts by some of two columns."""
    return table.sum(axis=tuple(axis for axis in (0, 1) if axis not in subset))


def test_tables_are_put_together_from_weighted_residuals():
    """Whatever the weights, exact residuals give back the counts, and a row moves them by its price."""
    weights, found = dict(enumerate(WEIGHTS)), {}
    for subset in SUBSETS:
        own, table = [weights[place] for place in subset], sums(COUNTS, subset)
        found[subset] = residual_table(contrasts(table, own) / lengths_of(table.shape, own), own)
    for subset in SUBSETS:
        assert put_together(subset, {0: 3, 1: 2}, found, weights) == pytest.approx(sums(COUNTS, subset))
    shape = NoiseShape(WEIGHTS, np.zeros((3, 2)))
    for cell in product(range(3), range(2)):
        one = np.zeros((3, 2), np.int64)
        one[cell] = 1
        moved = contrasts(one, WEIGHTS) / lengths_of((3, 2), WEIGHTS)
        assert (moved**2).sum() == pytest.approx(shape.base[cell])
    assert shape.price == shape.base.max()


def loss_of(shape, cell, part):
    """Return what a row in a cell costs, where a part of it is hidden by the cell's own noise and the rest by all."""
    moved = np.zeros(shape.added.shape)
    moved[cell] = 1 - part
    rest = np.einsum(
        "ij,kl,jl->ik", *(np.eye(len(w)) - np.outer(w / w.sum(), np.ones(len(w))) for w in shape.weights), moved
    )
    each = np.multiply.outer(*shape.weights)
    own = part**2 / shape.added[cell] if part else 0.0
    return own + (rest**2 / each).sum()


def test_the_price_of_a_member_is_the_best_split_between_both_noises():
    """No part that the grid of the added noise allows is cheaper, and none is told that it does not allow."""
    shape = NoiseShape(WEIGHTS, ADDED)
    for cell in product(range(3), range(2)):
        parts = np.arange(ADDED_PARTS + 1) / ADDED_PARTS if ADDED[cell] else [0.0]
        assert shape.prices[cell] == pytest.approx(min(loss_of(shape, cell, part) for part in parts), rel=1e-3)
        assert shape.prices[cell] <= shape.base[cell] * (1 + 1e-12)


def drawn(many=400):
    """Return residuals that were measured often, over the deviations that are told."""
    measuring, grains = ResidualMeasurements({(0, 1): COUNTS}, reach=2), int(2**56 / 25**2)
    shape, nothing = NoiseShape(WEIGHTS, ADDED), Residual.nothing((3, 2))
    seen = [residual_table(measuring.measure((0, 1), nothing, grains, shape).mean, WEIGHTS) for _ in range(many)]
    exact = residual_table(contrasts(COUNTS, WEIGHTS) / lengths_of((3, 2), WEIGHTS), WEIGHTS)
    return (np.array(seen) - exact) / (2 * 25 * np.sqrt(shape.price * shape.spread))


def test_the_noise_of_each_cell_is_as_told():
    """Means of 0 and deviations of 1, at six deviations of theirs."""
    errors = drawn()
    assert abs(errors.mean(axis=0)).max() < 6 / np.sqrt(len(errors))
    assert abs(errors.std(axis=0) - 1).max() < 6 / np.sqrt(2 * len(errors))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "planted",
    [
        ("spread_of", lambda variances, _: variances),
        ("_with_noise", lambda table, *_: table * ADDED_PARTS),
        ("ADDED_PARTS", 1),
    ],
)
def test_wrong_noise_is_seen(monkeypatch, planted):
    """Deviations that leave the shares out, noise that is not added, and a grid that is not told are found."""
    if planted[0] == "ADDED_PARTS":
        monkeypatch.setattr(residuals, "_with_noise", lambda table, *_: table * 3)
    else:
        monkeypatch.setattr(residuals, *planted)
    with pytest.raises(AssertionError):
        test_the_noise_of_each_cell_is_as_told()


BASIS = Residuals((9, 2, 8), ((0, 1), (1, 2), (0, 2)), (1.0, 1.0, 1.0))


def program(large):
    """Return a program whose first cells may be known that much more roughly."""
    counts = {s: np.full([BASIS.sizes[i] for i in s], 30.0) for s in BASIS.subsets}
    widest = []
    for subset, table in counts.items():
        table.reshape(-1)[0] = large
        counts[subset] = table
    for table in BASIS.tables:
        wide = np.full([BASIS.sizes[i] for i in table], 625.0)
        wide.reshape(-1)[0] *= max(1.0, large / 500) ** 2
        widest.append(wide)
    return ShapeProgram(BASIS, 2, counts, tuple(widest))


@pytest.mark.parametrize("large", [100.0, 5_000.0, 100_000.0])
def test_every_cell_is_within_its_variance_and_no_unit_pays_above_the_most(large):
    """Every cell keeps its width; a unit pays at most what is allowed, and members less in the mean."""
    asked = program(large)
    even = BASIS.variances(BASIS.least_largest()[0]).max() / 625
    most = int(1.02 * even * 4 * 2**56)
    best = asked.best(most)
    assert best is not None
    assert best.total <= most
    assert best.excess(asked.widest) <= 1
    assert asked.mean_loss(best) <= best.total * 2.0**-56 * (1 + 1e-9)
    for subset in BASIS.subsets:
        assert (best.losses(subset) <= best.grains[BASIS.subsets.index(subset)] * 2.0**-56 * (1 + 1e-9)).all()
    if large > 10_000:
        assert asked.mean_loss(best) < 0.9 * most * 2.0**-56
    assert asked.best(1) is None


@pytest.fixture(name="session")
def _session():
    """Open the table with a large budget."""
    with Session(TABLE, budget=Budget(mu=6), name="data") as opened:
        yield opened


def counts_of(columns):
    """Return the exact counts by columns, in the order of their keys."""
    found = np.zeros([len(KEYS[name]) for name in columns])
    places = [np.argsort(list(KEYS[name]))[TABLE.column(name).to_numpy()] for name in columns]
    np.add.at(found, tuple(places), 1)
    return found


def test_nobody_pays_more_than_was_reserved_where_a_finer_pilot_saves_nothing(monkeypatch):
    """A finer pilot is paid from a saving; where that comes to nothing after it, the coarser one's design stands."""
    looked = []

    def none_saved(pilot, paid, _, held=None):
        every, finer = pilot.floor(held), bool(paid.sum() > pilot.most.sum())
        looked.append(finer)
        return every if finer else replace(every, grains=np.floor(every.grains * 0.8))

    monkeypatch.setattr(Pilot, "design", none_saved)
    monkeypatch.setattr(ShapeProgram, "best", lambda *_: None)
    with Session(TABLE, budget=Budget(mu=6), name="data") as session:
        asked = {"keys": KEYS, "relative": 0.1, "absolute": 50, "cap": "all"}
        worst = session.plan_release(TWO, **asked).worst_price
        assert session.release(TWO, **asked).paid <= worst
    assert True in looked


def test_a_release_keeps_its_target_and_adds_up(session):
    """At most one cell in ten is beyond 10 % or 50, every total adds up, and a unit pays at most 2 % more."""
    floor = session.plan_release(TWO, keys=KEYS, absolute=50, cap="all").worst_price
    plan = session.plan_release(TWO, keys=KEYS, relative=0.1, absolute=50, cap="all")
    release = session.release(TWO, keys=KEYS, relative=0.1, absolute=50, cap="all")
    assert release.paid.amount <= plan.worst_price.amount <= floor.amount * WORST_MOST * (1 + 1e-6)
    assert isinstance(release._plan.design, ShapedDesign)
    beyond, cells = 0, 0
    for columns, table in release.items():
        exact = counts_of(columns)
        beyond += int((abs(table.value - exact) > np.maximum(50, 0.1 * exact)).sum())
        cells += exact.size
        assert table.met.all()
        for axis, name in enumerate(columns):
            assert table.value.sum(axis=1 - axis) == pytest.approx(release[name].value, abs=1e-6)
        assert release[columns[::-1]].half_width == pytest.approx(table.half_width.T)
    assert beyond <= 0.1 * cells
    assert release["a", "b"].half_width.max() > 1.05 * release["a", "b"].half_width.min()
    assert 1 <= release.optimality().ratio
    assert release.histogram().value.sum(axis=2) == pytest.approx(release["a", "b"].value, abs=1e-6)


def test_repeats_and_tables_within_are_free_and_sharper_ones_cost_the_difference(session):
    """What was measured in a shape serves all tables of its columns; it is sharpened in the same shape."""
    how = {"keys": KEYS, "relative": 0.1, "absolute": 50, "cap": "all"}
    first = session.release(TWO, **how)
    again = session.release(TWO, **how)
    assert not again.paid
    assert np.array_equal(again["a", "c"].value, first["a", "c"].value)
    few = marginals(["a", "b"]) + marginals(["b", "c"])
    assert session.plan_release(few, **how).free
    assert not session.release(few, **how).paid
    sharper = first.refine(absolute=40)
    assert sharper["a", "b"].half_width.min() < first["a", "b"].half_width.min()
    assert 0 < sharper.paid.amount < first.paid.amount
    assert session.spent.amount == first.paid.amount + sharper.paid.amount
    assert sharper.confidence_together < sharper.confidence == first.confidence_together


@pytest.mark.thorough
def test_the_record_holds_shapes_and_joins_what_two_measured(session):
    """A record is read as it was written; of two that began the same shape, each keeps what it paid for."""
    session.release(TWO, keys=KEYS, relative=0.1, absolute=50, cap="all")
    blob = next(stored for stored in map(session._context.ledger.load, questions(session)) if stored is not None).blob
    kept = Kept.from_bytes(blob)
    (one,) = kept.shaped
    assert Kept.from_bytes(kept.to_bytes()).shaped[0].alike(one)
    twice = {s: Residual(2 * each.grains, each.mean + 1) for s, each in one.state.items()}
    more = Kept(kept.answer, kept.pilot, (Shaped(one.weights, one.shapes, twice, one.wanted),))
    both = Kept.from_bytes(more.joined(kept, more.to_bytes())).shaped[0].state
    assert {s: each.grains for s, each in both.items()} == {s: 3 * each.grains for s, each in one.state.items()}
    assert len(Kept.from_bytes(kept.joined(Kept(), kept.to_bytes())).shaped) == 2


def test_records_of_older_versions_are_read():
    """A record without shapes holds what it held."""
    facts = json.dumps([[0, [1], [2], 7], [1, [], [], 5]]).encode()
    kept = Kept.from_bytes(write_blob({"mean": np.array([1.0, 2.0, 3.0])}, {b"farthing-residuals-1": facts}))
    assert (kept.answer[1,].grains, kept.answer[1,].mean.tolist()) == (7, [1.0, 2.0])
    assert (kept.pilot[()].grains, float(kept.pilot[()].mean), kept.shaped) == (5, 3.0, ())


def questions(session):
    """Return what the ledger's entries are about."""
    return [entry.question for entry in session._context.ledger.entries()]


def test_a_chart_is_in_the_order_of_the_keys(session):
    """Cells are drawn as they were listed, whatever they count, also from a file name; two ends of a range by dots."""
    pytest.importorskip("altair")
    release = session.release(TWO, keys=KEYS, absolute=100)
    rows = release["a"].chart().to_dict()["data"]["values"]
    assert [row["group"] for row in rows] == [str(value) for value in KEYS["a"]]
    rows = release["c", "b"].chart().to_dict()["data"]["values"]
    assert [row["group"] for row in rows][:2] == ["0 / 0", "0 / 1"]
    ends = session.release(ranges("b", [0, 3, 6]), absolute=100)["ranges of b"].chart().to_dict()["data"]["values"]
    assert [row["group"] for row in ends] == ["0 .. 3", "0 .. 6", "3 .. 6"]
    crossed = marginals(["c"], ways=1) * prefixes("b", [0, 3])
    (row, _) = session.release(crossed, keys={"c": [1, 0]}, absolute=100)[crossed].chart().to_dict()["data"]["values"]
    assert row["group"] == "1 / 3"
