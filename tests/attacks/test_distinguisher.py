"""A distinguisher on neighbouring data sets, through the public Session only, and the planted bugs that it catches.

One trial asks a session on D and one on D' = D plus one privacy unit, and scores what came back. The rates at which the
score passes a threshold bound the loss from below: every mu-GDP mechanism has `ndtri(hit) - ndtri(false alarm) <= mu`,
every rho-zCDP one has `KL(hit, false alarm) <= rho`, every epsilon-DP one `log(hit / false alarm) <= epsilon`. With
exact (Clopper-Pearson) bounds on both rates, a lower bound above what the ledger says was spent proves a bug.

Trials are cheap because they run side by side. Each trial has groups of its own, its unit touches no others, and the
noise of different groups is independent, so thousands of trials of one neighbouring pair fit in one GROUP BY: D holds
the base rows of all groups, D' one more unit for each trial. What the ledger promises holds for each of these units.

Size: a healthy farthing is called broken with probability at most ALPHA a verdict (exact, at any noise).
Power: a mu 40 % above the promise, half the sigma in zCDP, or twice the rate of geometric noise each escapes with
probability below 1e-9 (`test_power_of_the_harness`); the other planted bugs are grosser.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

import farthing
from farthing import Bounds, Budget, Gdp, Pure, Session, Zcdp

pytestmark = pytest.mark.thorough

TRIALS = 12_000
TRAINED = 2_000  # these trials choose the threshold, the others are judged by it
TESTED = TRIALS - TRAINED
BASE = 3  # rows of every group of D
PLENTY = "all"


@dataclass(frozen=True)
class Transcript:
    """Scores of the trials on D and on D', and what the ledger says that one unit can have lost."""

    without: np.ndarray
    present: np.ndarray
    promise: farthing.Loss

    def lower(self):
        """Return what one unit surely lost, in the promise's parameter."""
        threshold = (self.without[:TRAINED].mean() + self.present[:TRAINED].mean()) / 2
        alarms, hits = (int((scores[TRAINED:] > threshold).sum()) for scores in (self.without, self.present))
        return loss_lower(hits, alarms, type(self.promise))

    def verdict(self):
        """Return "broken" if one unit surely lost more than was promised, else "holds"."""
        return "broken" if self.lower() > self.promise.value else "holds"


def loss_lower(hits, alarms, currency):
    """Return a bound that is below the loss with probability 1 - ALPHA, from hits and false alarms in TESTED trials."""
    hit = float(beta.ppf(ALPHA / 2, hits, TESTED - hits + 1)) if hits else 0.0
    alarm = float(beta.isf(ALPHA / 2, alarms + 1, TESTED - alarms)) if alarms < TESTED else 1.0
    if hit <= alarm:
        return 0.0
    if currency is Gdp:
        return float(ndtri(hit) - ndtri(alarm))
    if currency is Pure:
        return float(np.log(hit / alarm))
    return float(hit * np.log(hit / alarm) + (1 - hit) * np.log((1 - hit) / (1 - alarm)))


def rows(extra):
    """Return a table of one group a trial; each of D' has one row more, tagged 1."""
    base = np.repeat(np.arange(TRIALS), BASE)
    added = np.arange(TRIALS if extra else 0)
    return pa.table({"k": np.concatenate([base, added]), "tag": np.repeat([0, 1], [base.size, added.size])})


def units(extra, width, depth):
    """Return a table where each trial owns `width` groups; in D' one unit has `depth` rows in each of them."""
    trial = np.repeat(np.arange(TRIALS if extra else 0), width * depth)
    place = np.tile(np.repeat(np.arange(width), depth), TRIALS if extra else 0)
    return pa.table({"k": np.append(trial * width + place, -1), "u": np.append(trial, -1)})  # -1: a group not listed


def transcript(table, ask, **options):
    """Return the transcript of an attack: `ask` turns a session into one score a trial."""
    sessions = [Session(table(extra), **options) for extra in (False, True)]
    without, present = (ask(session) for session in sessions)
    return Transcript(without, present, max(session.spent for session in sessions))


def one_count(budget, **how):
    """Attack by one question: the score is the group's own answer."""

    def ask(session):
        return session.count("k", keys={"k": range(TRIALS)}, cap=PLENTY, **how).value

    return transcript(rows, ask, budget=budget)


def wide_unit():
    """A unit in 16 groups where 2 are allowed: the score is the sum over all its groups."""
    return unit_attack(width=16, depth=3)


def deep_unit():
    """A unit of 12 rows a group where 3 are allowed: the score is the sum over its groups."""
    return unit_attack(width=2, depth=12)


def unit_attack(width, depth):
    """Attack the contribution bounds."""

    def ask(session):
        answer = session.count("k", keys={"k": range(TRIALS * width)}, absolute=8.4, cap=PLENTY)
        return answer.value.reshape(TRIALS, width).sum(axis=1)

    options = {"unit": "u", "bounds": Bounds(max_groups=2, max_rows=3), "budget": Budget(mu=1)}
    return transcript(lambda extra: units(extra, width, depth), ask, **options)


def differencing():
    """Ask with and without the target's rows: noise that is used twice cancels in the difference."""

    def ask(session):
        keys = {"k": range(TRIALS)}
        everyone = session.count("k", keys=keys, absolute=2, cap=PLENTY)
        others = session.count("k", keys=keys, absolute=2, where="tag = 0", cap=PLENTY)
        return everyone.value - others.value

    return transcript(rows, ask, budget=Budget(mu=2))


def errors_for_free():
    """Ask for the impossible ten times over, and read the answers off the errors."""

    def ask(session):
        seen, wanted = [], {"absolute": 4, "relative": 0.001, "cap": Gdp(0.3)}  # small groups miss it, not by far
        for i in range(10):
            with pytest.raises(farthing.TargetMissed) as missed:
                session.count("k", keys={"k": range(TRIALS)}, where=f"k > -{i + 1}", **wanted, on_miss="raise")
            seen.append(missed.value.answer.value)
        return np.mean(seen, axis=0)

    return transcript(rows, ask, budget=Budget(mu=1))


def sharpening():
    """Ask coarsely, then refine in two steps."""

    def ask(session):
        coarse = session.count("k", keys={"k": range(TRIALS)}, absolute=20, cap=PLENTY)
        return coarse.refine(absolute=10).refine(absolute=2).value

    return transcript(rows, ask, budget=Budget(mu=1))


def gdp_count():
    """One question, an absolute target, books in GDP."""
    return one_count(Budget(mu=1), absolute=2)


def relative_count():
    """One question, a relative target too: groups stop by what they see."""
    return one_count(Budget(mu=1), absolute=2, relative=0.4)


def zcdp_count():
    """One question, books in zCDP."""
    return one_count(Budget(rho=0.5), absolute=2)


def pure_count():
    """One question, pure books: two-sided geometric noise."""
    return one_count(Budget(epsilon=1), absolute=3)


def pure_relative_count():
    """One question, pure books, a relative target too: groups leave the chain by what it shows."""
    return one_count(Budget(epsilon=1.5), absolute=3, relative=0.4)


def pure_sharpening():
    """Ask coarsely, then refine in two steps: a chain that is carried on."""

    def ask(session):
        coarse = session.count("k", keys={"k": range(TRIALS)}, absolute=30, relative=0.1, cap=PLENTY)
        return coarse.refine(absolute=10).refine(absolute=3).value

    return transcript(rows, ask, budget=Budget(epsilon=1.5))


def half_the_sigma(plant):
    from farthing.mechanisms import gaussian

    honest = gaussian.sigma_of
    plant.setattr(gaussian, "sigma_of", lambda grains, sensitivity: honest(grains, sensitivity) / 2)


def twice_the_rate(plant):
    from farthing.mechanisms import laplace

    honest = laplace.rates_of
    plant.setattr(laplace, "rates_of", lambda farthings, sensitivity: 2 * honest(farthings, sensitivity))


def max_groups_forgotten(plant):
    from farthing.query import Query

    plant.setattr(Query, "cuts_groups", property(lambda _: False))


def unit_ignored(plant):
    from farthing.engines.duck import measures as duck_measures

    plant.setattr(duck_measures, "_cut", lambda query, rows, cells, measure: cells.found)  # noqa: ARG005


def noise_reused(plant):
    from farthing.noise import bits, certified

    plant.setattr(certified, "system_bits", lambda: bits.seeded(1))


def refund_on_error(plant):
    from farthing.session.answering import mixed_question
    from farthing.session.core import transaction

    honest, receipts = mixed_question.ask, []

    def unsettled(self, step, version):
        self._receipt = self._reserved(version)
        receipts.append((self._context.ledger, self._receipt))
        self.closed = True
        return step.measured(self._receipt)[0]

    def refunding(context, query, request):
        try:
            return honest(context, query, request)  # may raise
        except BaseException:
            ledger, receipt = receipts.pop()
            ledger.settle(receipt, 0, None)
            raise

    plant.setattr(transaction._Work, "_measured", unsettled)
    plant.setattr(mixed_question, "ask", refunding)


def refine_for_nothing(plant):
    from farthing.session.answering.gaussian_count import GaussianCountMethod

    honest = GaussianCountMethod.measured

    def forgetting(self, context, plan, receipt, request):
        outcome = honest(self, context, plan, receipt, request)
        return outcome if self.record is None else replace(outcome, price=context.loss(0))

    plant.setattr(GaussianCountMethod, "measured", forgetting)


def last_look_forgotten(plant):
    """Settle at what stood before the last refinement."""
    from farthing.session.answering.laplace_count import LaplaceCountMethod

    honest = LaplaceCountMethod.measured

    def forgetting(self, context, plan, receipt, request):
        outcome = honest(self, context, plan, receipt, request)
        return outcome if self.record is None else replace(outcome, price=context.loss(0))

    plant.setattr(LaplaceCountMethod, "measured", forgetting)


ATTACKS = (
    gdp_count, relative_count, zcdp_count, pure_count, pure_relative_count, pure_sharpening, wide_unit, deep_unit,
    differencing, errors_for_free, sharpening,
)  # fmt: skip

BUGS = (
    (half_the_sigma, gdp_count),
    (half_the_sigma, relative_count),
    (half_the_sigma, zcdp_count),
    (half_the_sigma, deep_unit),
    (twice_the_rate, pure_count),
    (twice_the_rate, pure_relative_count),
    (last_look_forgotten, pure_sharpening),
    (max_groups_forgotten, wide_unit),
    (unit_ignored, deep_unit),
    (noise_reused, differencing),
    (refund_on_error, errors_for_free),
    (refine_for_nothing, sharpening),
)


@pytest.mark.statistical
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_unit_loses_more_than_was_booked(attack):
    """Whatever is asked, the distinguisher stays below the promise of the ledger."""
    assert "holds" == attack().verdict()


@pytest.mark.statistical
@pytest.mark.parametrize(("bug", "attack"), BUGS, ids=lambda part: part.__name__)
def test_planted_bugs_are_caught(bug, attack, monkeypatch):
    """Every planted bug is proved to break the promise."""
    bug(monkeypatch)

    assert "broken" == attack().verdict()


@pytest.mark.statistical
def test_the_harness_is_not_blind():
    """On one plain question the lower bound comes close to the promise, so that a bug has little room below it."""
    seen = gdp_count()

    assert 0.75 * seen.promise.mu < seen.lower() <= seen.promise.mu


@pytest.mark.parametrize(
    ("currency", "promise", "hit", "alarm"),
    [
        (Gdp, 1.0, ndtr(0.7), ndtr(-0.7)),  # mu 40 % above the promise
        (Zcdp, 0.5, ndtr(1.0), ndtr(-1.0)),  # half the sigma: rho is four times the promise
        (Pure, 1.0, 1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(2.0))),  # twice the rate
    ],
    ids=["mu", "rho", "epsilon"],
)
def test_power_of_the_harness(currency, promise, hit, alarm):
    """The mildest bug of each currency escapes with probability below 1e-9, computed from exact binomials."""
    hits, alarms = int(binom.ppf(5e-10, TESTED, hit)), int(binom.isf(5e-10, TESTED, alarm))

    assert promise < loss_lower(hits, alarms, currency)


def test_the_bounds_are_exact():
    """The bound on a rate is passed with probability at most ALPHA / 2, whatever the rate."""
    counts = np.arange(1, TESTED + 1)
    bounds = beta.ppf(ALPHA / 2, counts, TESTED - counts + 1)

    for rate in (0.001, 0.3, 0.999):
        assert binom.pmf(counts, TESTED, rate)[bounds > rate].sum() <= ALPHA / 2 * (1 + 1e-6)
