"""Means, variances, ratios and several aggregates under a pure budget, through the doors of a session."""

import contextlib
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing import Budget, InvalidTarget, Pure, Session
from farthing.accuracy.laplace_looks import LaplaceLooks
from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.laplace_state import STANDS, LaplaceState
from farthing.accuracy.statistics import RatioStatistic
from farthing.errors import OutOfReach
from farthing.rounding import FARTHING
from farthing.session.answering.laplace_measures import blob_of, state_of

ROWS = 30_000
TABLE = pa.table({
    "g": np.arange(ROWS) % 3,
    "x": np.arange(ROWS) % 1009 / 100.9,
    "y": (np.arange(ROWS) * 7) % 1009 / 100.9,
})  # fmt: skip
BY = {"by": "g", "keys": {"g": [0, 1, 2]}}
X = {"lower": 0, "upper": 10}
PAIR = {"x_range": (0, 10), "y_range": (0, 10)}
ASKS = {
    "mean": lambda s, w, **how: s.mean("x", **X, **BY, absolute=0.5 * w, **how),
    "variance": lambda s, w, **how: s.variance("x", **X, relative=0.2 * w, **how),
    "deviation": lambda s, w, **how: s.variance("x", **X, root=True, relative=0.2 * w, **how),
    "share": lambda s, w, **how: s.ratio("x > 3", **BY, absolute=0.05 * w, **how),
    "ratio": lambda s, w, **how: s.ratio("x", "y", top_range=(0, 10), bottom_range=(0, 10), relative=0.2 * w, **how),
    "correlation": lambda s, w, **how: s.correlation("x", "y", **PAIR, absolute=0.2 * w, **how),
    "formula": lambda s, w, **how: s.sql(
        "SELECT AVG(CLAMP(x, 0, 10)) - AVG(CLAMP(y, 0, 10)) AS d FROM data", absolute=0.5 * w, **how
    ),
    "several": lambda s, w, **how: s.sql(
        "SELECT g, COUNT(*) AS n, AVG(CLAMP(x, 0, 10)) AS m FROM data GROUP BY g",
        keys=BY["keys"], absolute={"n": 400 * w, "m": 0.5 * w}, **how,
    ),
    "counts": lambda s, w, **how: s.sql(
        "SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 10)) AS t FROM data", absolute={"n": 300 * w, "t": 3_000 * w}, **how
    ),
}  # fmt: skip


@pytest.fixture
def session():
    """A pure ledger, in memory."""
    with Session(TABLE, budget=Budget(epsilon=20), name="data") as opened:
        yield opened


def levels_of(session):
    """Return what the lanes of every group hold in the ledger, int64[groups], of the only question."""
    state, _ = state_of(session._ledger.load(session.history()[-1].question).blob)
    return state.pilot.level.sum(axis=0) + state.claimed.level.sum(axis=0)


@pytest.mark.parametrize("name", ASKS)
def test_it_is_answered_and_paid_in_epsilon(session, name):
    """Each is met, costs what its lanes hold, is free when asked again, and costs the difference when sharpened."""
    first = ASKS[name](session, 1)
    assert np.all(first.met)
    assert isinstance(first.paid, Pure)
    assert int(levels_of(session).max()) == first.paid.farthings == session.spent.farthings
    again = ASKS[name](session, 1)
    assert not again.paid
    sharper = ASKS[name](session, 0.6)
    assert np.all(sharper.met)
    assert int(levels_of(session).max()) <= session.spent.farthings == first.paid.farthings + sharper.paid.farthings


def test_a_plan_an_ask_and_a_refusal_say_the_same(session):
    """A plan names what is measured and a price that is not exceeded; a target out of reach is refused free."""
    text = "SELECT AVG(CLAMP(x, 0, 10)) AS m FROM data"
    plan = session.plan(text, absolute=0.5)
    assert "two-sided geometric noise" in " ".join(plan.steps)
    assert session.sql(text, absolute=0.5).paid.farthings <= plan.worst_price.farthings
    spent = session.spent
    with pytest.raises(OutOfReach, match="out of reach"):
        session.sql("SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 10)) AS t FROM data", absolute=1, cap=Pure(0.01))
    assert spent == session.spent


def test_a_named_loss_is_used_up(session):
    """All of it is spent, and says how near it came."""
    answer = session.mean("x", **X, loss=Pure(0.5))
    assert 0.49 < answer.paid.value <= 0.5
    assert answer.upper - answer.lower < 0.2
    with (
        pytest.raises(InvalidTarget, match="more than one question can hold"),
        Session(TABLE, budget=Budget(epsilon=5_000)) as rich,
    ):
        rich.mean("x", **X, loss=Pure(2_000))


def test_a_group_of_few_is_given_up_cheaply(session):
    """It does not pay the cap."""
    few = session.mean("x", **X, where="x < 0.001", absolute=0.01)
    assert not few.met
    assert few.paid.value < 1


@pytest.mark.parametrize("chain", ["pilot", "claimed"])
def test_a_line_that_is_not_charged_is_seen(session, monkeypatch, chain):
    """Planted: one of the two lines of looks left out of the price; what the lanes hold is more than was paid."""
    monkeypatch.setattr(LaplaceState, "paid", property(lambda self: getattr(self, chain).level.sum(axis=0)))
    with contextlib.suppress(farthing.FarthingError):
        answer = ASKS["several"](session, 1)
        assert int(levels_of(session).max()) > answer.paid.farthings


def test_a_mean_goes_on_by_looks_or_begins_to_claim(session):
    """A sharper mean goes on from its looks; a target of another kind, and what older versions kept, goes by claims."""
    session.mean("x", **X, relative=0.2)
    question = session.history()[-1].question
    begun, steps = state_of(session._ledger.load(question).blob)
    session.mean("x", **X, relative=0.1)
    after, _ = state_of(session._ledger.load(question).blob)
    assert 0 < after.looked <= begun.looked
    assert not after.pilot.level.any()
    assert (after.claimed.level[1] == 2 * after.claimed.level[0]).all()
    old = blob_of(begun, tuple(SimpleNamespace(step_log2=step) for step in steps)).replace(b'"looked"', b'"unread"')
    assert state_of(old)[0].looked == 0
    assert session.mean("x", **X, absolute=0.3).met
    mixed, _ = state_of(session._ledger.load(question).blob)
    assert mixed.looked == 0
    assert mixed.pilot.level.any()


def test_a_unit_in_several_groups_pays_for_its_most_expensive():
    """With two groups a unit the price is the sum of the two largest."""
    table = TABLE.append_column("u", pa.array(np.arange(ROWS) // 2))
    bounds = farthing.Bounds(max_groups=2, max_rows=2)
    with Session(table, unit="u", budget=Budget(epsilon=20), name="data", bounds=bounds) as session:
        answer = session.mean("x", **X, **BY, absolute=0.5)
        assert int(np.sort(levels_of(session))[-2:].sum()) == answer.paid.farthings


def test_a_record_that_is_not_ours_is_refused(session):
    """Another form, and one of another number of lanes."""
    from farthing.errors import LedgerError
    from farthing.query.aggregates import counting
    from farthing.session.answering.laplace_measures import LaplaceMeasuresMethod
    from farthing.session.core.records import write_blob

    session.mean("x", **X, absolute=0.5)
    blob = session._ledger.load(session.history()[-1].question).blob
    with pytest.raises(LedgerError):
        LaplaceMeasuresMethod.of(SimpleNamespace(measures=(1, 2, 3), outputs=counting("n")), blob)
    with pytest.raises(LedgerError):
        state_of(write_blob({"a": [1]}, {b"farthing-laplace-joint-1": json.dumps({}).encode()}))


@pytest.mark.parametrize("falls", [1e-5, 0.2])
def test_groups_that_were_given_up_pay_nothing_for_a_sharper_ask_under_a_smaller_cap(session, falls):
    """A group without rows is given up again where it stands: each sharper ask would double what it paid."""
    asked, paid = {"by": "g", "keys": {"g": [0, 9]}, **X}, []
    for step, relative in enumerate((0.1, 0.08, 0.06, 0.04)):
        answer = session.mean("x", **asked, relative=relative, cap=Pure(2 * (1 - falls) ** step))
        paid.append(levels_of(session))

    assert answer.met.tolist() == [True, False]
    assert paid[0][1] > 0
    assert [levels[1] for levels in paid] == [paid[0][1]] * 4


def test_what_is_told_again_of_a_group_that_was_given_up_has_a_share_of_its_own():
    """The levels of every earlier ask may be the one that tells: the interval is that of one of 26, of 39."""
    mean, state = RatioStatistic(0, 1, 50.0, 0.0, 100.0), LaplaceState.nothing(2, 1, 1)
    shown = np.array([[20_000], [-400_000]])

    for asks, relative in enumerate((0.1, 0.08, 0.06), 1):
        priced = LaplaceMeasures((mean,), ((relative, 0.0),), 0.05, (1.0, 50.0), (1.0, 1.0), 1 << 31)
        state = priced.run(state, lambda *_: None, lambda _, groups: shown[:, groups])
        level = state.claimed.level
        low, high = LaplaceLooks.of(priced, 1)._intervals(shown, level[0], 0.05 * 0.02 / 13 / asks)[:2]

        assert level[1] == 2 * level[0]
        assert state.made.tolist() == [STANDS]
        assert (state.lower[0, 0], state.upper[0, 0]) == (low[0], high[0])
    assert state_of(blob_of(state, (SimpleNamespace(step_log2=0),) * 2))[0].made.tolist() == [STANDS]


RATIO = LaplaceMeasures(
    (RatioStatistic(0, 1, 0.0, -np.inf, np.inf),), ((0.1, 0.0),), 0.05, (1.0, 50.0), (1.0, 1.0), 1 << 40
)


def noisy_chain(seed):
    """Return what shows a chain of groups of 2,000 rows with a sum of 60,000, and the levels that it was asked for."""
    rng, asked = np.random.default_rng(seed), []

    def show(levels, at):
        asked.append((levels.copy(), at.copy()))
        scales = np.array([[1.0], [50.0]]) / (levels * float(FARTHING))
        return np.rint(np.array([[2_000.0], [60_000.0]]) + rng.laplace(size=levels.shape) * scales).astype(np.int64)

    return show, asked


def test_how_far_a_pilot_goes_on_follows_from_pilots_alone():
    """Only so is the ladder of each promise fixed, given the pilots: whatever claims showed, pilots and shapes are the
    same. A pilot that goes on is asked for more than it has shown, and claims never for less.
    """
    need = int(np.median(RATIO.run(LaplaceState.nothing(2, 1, 50), noisy_chain(1)[0], noisy_chain(2)[0]).paid))
    found, shown = [], []
    for claims in (3, 4):
        (pilot, piloted), (claim, claimed) = noisy_chain(5), noisy_chain(claims)
        state = LaplaceState.nothing(2, 1, 50)
        for cap in (need // 20, need // 2, 2 * need):
            before, begun = state, (len(piloted), len(claimed))
            state = replace(RATIO, cap=cap).run(state, pilot, claim)
            for asked, chain in ((piloted[begun[0] :], "pilot"), (claimed[begun[1] :], "claimed")):
                held = getattr(before, chain).level
                assert all((levels > held[:, at]).all() for levels, at in asked)
            assert (state.paid <= cap).all()
            found.append((state.pilot.level, state.pilot.value, state.shape))
        assert ((state.pilot.level > before.pilot.level) & before.claimed.level.any(axis=0)).any()
        shown.append(before.claimed.value)
    assert (shown[0] != shown[1]).any()
    for mine, other in zip(found[:3], found[3:], strict=True):
        assert all((one == two).all() for one, two in zip(mine, other, strict=True))


@pytest.mark.parametrize(("select", "how", "part"), [
    ("SUM(CLAMP(x, 0, 10)) / SUM(CLAMP(y, 0, 10)) AS r", {"relative": 0.1}, 0.5),
    ("COUNT(*) AS n, AVG(CLAMP(x, 0, 10)) AS m", {"relative": 0.1, "absolute": {"n": 400, "m": 0}}, 0.5),
    ("CORR(CLAMP(x, 0, 10), CLAMP(y, 0, 10)) AS r", {"absolute": 0.2}, 0.4),
    ("COVAR_POP(CLAMP(x, 0, 10), CLAMP(y, 0, 10)) AS r", {"absolute": 2}, 0.3),
], ids=["ratio", "count and mean", "correlation", "covariance"])  # fmt: skip
def test_groups_without_rows_pay_a_part_of_their_cap(select, how, part):
    """Sixty of them, a quarter of it in the mean and less; they are given up by their pilots."""
    keys, cap = {"g": list(range(3, 63))}, 0.02
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        text = f"SELECT g, {select} FROM data GROUP BY g"  # no text from outside
        answer = session.sql(text, keys=keys, **how, cap=Pure(cap))

    assert not answer.met.any()
    assert answer.paid_by_group.mean() < part * cap
