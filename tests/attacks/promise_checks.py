"""Checks of promises about whole questions: chains of answers, what stands in the ledger, plans, and targets."""

from __future__ import annotations

import itertools
import math
import tempfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
import pyarrow as pa

import farthing
from farthing.accuracy import laplace_stop_rule, stop_rule
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_quantiles import JointQuantiles, NoisyJointRanks
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_value_bets import Bet, ValueBets
from farthing.accuracy.ranking_bounds import proved_leads_of
from farthing.accuracy.ranking_places import RankingPlaces
from farthing.accuracy.ratio_chances import RatioChances
from farthing.accuracy.ratio_shapes import chosen, cut_critical
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.accuracy.stopped_laws import GAUSSIAN_STOPS, LaplaceStops, StopView
from farthing.accuracy.stored_promise import HeldIntervals
from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger
from farthing.mechanisms import ReducedAboveThreshold
from farthing.mechanisms.gaussian import GRAIN
from farthing.models import problems
from farthing.noise.bits import seeded
from farthing.privacy import residue
from farthing.privacy.loss import Pure
from farthing.query import keys as listed
from farthing.query.expressions import MOST_CHOICES
from farthing.session.answering import looks
from farthing.session.answering.looks import BegunLooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Target = dict[str, float]

BUDGET = farthing.Budget(mu=4)
CLAMPS = {"lower": 0, "upper": 100}
GROUPS = 60
BY = {"by": "g", "keys": {"g": list(range(GROUPS))}}
TEXT = "SELECT COUNT(*) AS n, AVG(CLAMP(v, 0, 100)) AS m, STDDEV(CLAMP(v, 0, 100)) AS s FROM data"
NEARLY = 1 + 1e-6
KINDS = {
    "a count": lambda s, width, **how: s.count(absolute=200 * width, **how),
    "a sum": lambda s, width, **how: s.sum("v", **CLAMPS, absolute=20_000 * width, **how),
    "a mean": lambda s, width, **how: s.mean("v", **CLAMPS, absolute=4 * width, **how),
    "a variance": lambda s, width, **how: s.variance("v", **CLAMPS, absolute=80 * width, **how),
    "a median": lambda s, width, **how: s.quantile("v", 0.5, **CLAMPS, absolute=8 * width, **how),
    "several": lambda s, width, **how: s.sql(TEXT, relative=0.1 * width, **how),
}


def opened(groups: int = 1, rows: int = 3_000, budget: farthing.Budget = BUDGET) -> farthing.Session:
    """Return a session of equal groups, whose values are spread over [0, 100]."""
    values = np.random.default_rng(1).uniform(0, 100, groups * rows)
    return farthing.Session(pa.table({"g": np.repeat(np.arange(groups), rows), "v": values}), budget=budget)


def deciding() -> tuple[str, ...]:
    """Sharpen a count and a mean step by step: what is told of all answers together is what they are worth."""
    said = []
    for kind in ("a count", "a mean"):
        with opened() as session:
            told = [KINDS[kind](session, width).confidence_together for width in (1, 0.6, 0.6, 0.4)]
        if not (told[0] > 0.949 and told[1] == told[2] < 0.9 and told[3] < 0.85):
            said.append(f"{kind}, sharpened three times: together {told}")
        with opened() as session:
            told = [KINDS[kind](session, width, together=True).confidence_together for width in (1, 0.6, 0.4)]
        if min(told) < 0.95:
            said.append(f"{kind}, asked together: {told}, where 0.95 is promised")
    return tuple(said)


def searched() -> tuple[str, ...]:
    """Ask for ever sharper medians by rank: the books hold every grain that was measured."""
    return _looked(NoisyRanks, 0.5)


def searched_together() -> tuple[str, ...]:
    """Ask for ever sharper quartiles at once: the books hold every grain of ranks and of counts."""
    return _looked(NoisyJointRanks, (0.25, 0.5, 0.75))


def _looked(noise: type, q: float | tuple[float, ...]) -> tuple[str, ...]:
    """Ask for ever sharper quantiles by rank; say where more was measured than was booked."""
    grains = np.zeros(1, np.int64)
    honest = {name: getattr(noise, name) for name in ("measure", "measure_count")}

    def counting(name: str) -> Callable[..., NDArray[np.float64]]:
        """Return a measurement that also counts its grains."""

        def measure(noisy: object, *given: NDArray[np.int64]) -> NDArray[np.float64]:
            """Measure; the last two are grains and groups."""
            np.add.at(grains, given[-1], given[-2])
            return honest[name](noisy, *given)

        return measure

    said = []
    with opened() as session, mock.patch.multiple(noise, **{name: counting(name) for name in honest}):
        for rank in (0.2, 0.1):
            session.quantile("v", q, **CLAMPS, rank=rank)
            lost, booked = float(grains[0] * GRAIN), float(session.spent.amount)
            if lost > booked:
                said.append(f"quantiles within {rank} of the ranks: mu^2 {lost:.4g} measured, {booked:.4g} booked")
    return tuple(said)


def beside_a_step() -> tuple[str, ...]:
    """Ask for medians beside a step that is just too high: no more than the allowed share names a leaf before it."""
    asked, ranks = _at_a_step(0.5, 4_750)
    noisy = NoisyRanks(ranks, asked, seeded(91))
    found = QuantileBisection(asked, 0.2, 1 << 61).run(noisy.measure, noisy.measure_count, groups=ranks.groups)
    return _before_it(found.value)


def several_beside_a_step() -> tuple[str, ...]:
    """Ask for three quantiles at once, of which the one in the middle lies beside such a step."""
    asked, ranks = _at_a_step(0.5, 4_750)
    plan = JointQuantiles(tuple(replace(asked, q=q) for q in (0.3, 0.5, 0.7)), 0.2, 1 << 61)
    noisy = NoisyJointRanks(ranks, 1, seeded(92))
    return _before_it(plan.run(noisy.measure, noisy.measure_count, groups=ranks.groups).value[:, 1])


def sides_at_the_edge() -> tuple[str, ...]:
    """Look on and on at thresholds with D = 0, which the quantile is not past: few are ever told to be before it."""
    from scipy.stats import binom

    rng, runs = np.random.default_rng(93), 20_000
    bets, ever = ValueBets.none(runs), np.zeros(runs, np.bool_)
    first, every, past = np.zeros(runs, np.int64), np.arange(runs), np.ones(runs, np.int64)
    bet = Bet(np.full(runs, 1.0), np.full(runs, np.log(20)), np.full(runs, 0.999))
    for look in range(40):
        information = np.full(runs, 1.0 * 1.2**look)
        won, _ = bets.add(first, every, past, (rng.normal(size=runs) / np.sqrt(information), information), bet)
        ever |= won >= np.log(20)
    off, most = int(ever.sum()), int(binom.isf(1e-6, runs, 0.05))
    return (f"{off} of {runs} sides are wrong, where {most} may be",) * (off > most)


def _at_a_step(q: float, below: int) -> tuple[QuantileGoal, Ranks]:
    """Return what is asked for, and 400 groups alike with so many of 10,000 rows below a step."""
    count, leaves = 400, np.array([100, 900])
    parts = np.tile([below, 10_000 - below], count)
    ranks = Ranks.of(np.repeat(np.arange(count), 2), np.tile(leaves, count), parts, groups=count, leaves_log2=10)
    return QuantileGoal(q, 0.0, 1024.0, 10, rank=0.024), ranks


def _before_it(value: NDArray[np.float64]) -> tuple[str, ...]:
    """Say if more values name a leaf before the step than a fifth of them, by chance, may."""
    from scipy.stats import binom

    off, most = int((np.ceil(value) - 1 < 900).sum()), int(binom.isf(1e-6, len(value), 0.2))
    return (f"{off} of {len(value)} ranks are off, where {most} may be",) * (off > most)


def kept() -> tuple[str, ...]:
    """Let one ask of each kind fail: later answers are kept, and told again free of charge."""

    def breaks(_: object) -> None:
        """Fail in the middle."""
        raise ZeroDivisionError

    said = []
    for kind, ask in KINDS.items():
        with opened() as session:
            with suppress(ZeroDivisionError):
                ask(session, 1, progress=breaks)
            for width in (1, 0.7):
                ask(session, width)
            if ask(session, 0.7).paid:
                said.append(f"{kind} is charged for what it knows, after one ask that failed")
    return tuple(said)


def refining() -> tuple[str, ...]:
    """Sharpen answers in two steps: it costs about what the sharpest costs at once, and the charge is what was paid."""
    said = []
    for kind in ("a count", "a mean", "a median"):
        ask, total = KINDS[kind], []
        for widths in ((1, 0.7, 0.5), (0.5,)):
            with opened(GROUPS) as session:
                total.append(sum((ask(session, width, **BY).paid_by_group ** 2).mean() for width in widths))
        if total[0] > 1.4 * total[1]:
            said.append(f"{kind}, sharpened twice, costs {total[0] / total[1]:.2f} times what it costs at once")
        with opened() as session:
            for width in (1, 0.7, 0.5):
                answer = ask(session, width)
                owed = float(np.max(answer.paid_by_group)) ** 2
                if not owed / NEARLY <= float(answer.paid.amount) + 2.0**-39 <= owed * NEARLY + 2.0**-38:
                    said.append(f"{kind} owes {owed:g} for its noise and is charged {float(answer.paid.amount):g}")
    return tuple(said)


WORTH = (2.0**-56, 2.0**-56 / 2_500)


def measured(
    truth: NDArray[np.float64], rng: np.random.Generator, worth: tuple[float, ...] = WORTH
) -> Callable[..., NDArray[np.float64]]:
    """Return a source of noisy lanes of groups that are alike: rows, sums of centred values, and others."""
    each = np.array(worth)[:, None]

    def measure(grains: NDArray[np.int64], _: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(truth + rng.standard_normal(grains.shape) / np.sqrt(np.maximum(grains, 1) * each))

    return measure


def paused() -> tuple[str, ...]:
    """Stop a mean beside a count by a cap, go on with a larger one: it costs what it costs at once, and holds."""
    measure, said = measured(np.array([[1e4], [1e5]]), np.random.default_rng(4)), []
    both = (RatioStatistic(0, 1, 50.0, 0.0, 100.0), Linear((0,)))
    whole = JointMeasures(both, ((0.05, 0.0), (0.0, 0.0)), 0.05, WORTH, 2**56)
    once = whole.run(JointState.nothing(2, 2, 300), measure).paid.mean()
    capped = replace(whole, cap_grains=int(once * 0.6))
    after = whole.run(capped.run(JointState.nothing(2, 2, 1_500), measure), measure)
    if after.paid.mean() > 1.2 * once:
        said.append(f"a mean that a cap stopped costs {after.paid.mean() / once:.2f} times what it costs at once")
    missed = float(((after.lower[0] > 60) | (after.upper[0] < 60)).mean())
    if missed > 0.07:
        said.append(f"a mean that a cap stopped misses with {missed:.3f}, where 0.05 is told")
    return tuple(said)


def reserved() -> tuple[str, ...]:
    """Spend a cap on targets far beyond it; begin looks beyond a reservation, and lanes of fewer grains than none."""
    mean, rows, total = RatioStatistic(0, 1, 50.0, 0.0, 100.0), Linear((0,)), Linear((1, 0), (1.0, 50.0), 50.0)
    targets = ((0.1, 1.0), (0.5, 0.001), (0.0, 1.0))
    question = JointMeasures((total, mean, rows), targets, 0.05, WORTH, 2**46, spend=True)
    source, held, said = measured(np.array([[20.0], [200.0]]), np.random.default_rng(6)), np.zeros(9, np.int64), []

    def measure(grains: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
        held[groups] += np.maximum(grains, 0).sum(axis=0)
        return source(np.maximum(grains, 1), groups)

    question.run(JointState.nothing(2, 3, 9), measure)
    if held.max() > question.cap_grains:
        said.append(f"{held.max() / question.cap_grains:.2f} times the cap are measured")
    with Ledger.open(None, Terms("gdp", budget=9, delta=0, keys_delta=0, unit="row", description="9")) as ledger:
        receipt = ledger.reserve(increase=5, fresh=5, question="q", version=0, label="q", first=1)
        with suppress(LedgerError):
            ledger.look(receipt, 6)
            said.append("a look at 6 farthings of 5 is begun")
        begun = BegunLooks(receipt, np.zeros(1, np.int64), 1, Pure.of_farthings)
        with suppress(LedgerError), mock.patch.object(looks, "begin_look", lambda _, price: price):
            begun.begin(np.array([[9], [-8]]), np.arange(1))
            said.append("a lane of 9 grains is begun as one of 1")
    return tuple(said)


def mean_looks() -> tuple[str, ...]:
    """Follow means by looks, near the end of the range, too: they miss with 5 % at most, and c allows it."""
    mean, said, rng = RatioStatistic(0, 1, 50.0, 0.0, 100.0), [], np.random.default_rng(5)
    for relative, value in ((0.1, 80.0), (0.3, 53.0)):
        measure = measured(np.array([[1e4], [1e4 * (value - 50)]]), rng)
        question = JointMeasures((mean,), ((relative, 0.0),), 0.05, WORTH, 2**56)
        state = question.run(JointState.nothing(2, 1, 2_500), measure)
        missed = float(((state.lower > value) | (state.upper < value)).mean())
        if missed > 0.065:
            said.append(f"a mean of {value} at {relative:.0%} misses with {missed:.3f}, where 0.05 is told")
    for target, at, simple in (((0.3, 0.0, 1.0), -0.4, True), ((0.3, 0.2, 0.0), 0.49, False)):
        critical, least, _ = chosen(*target, 0.05) or (0.0, 1.0, True)
        ended = float(cut_critical(critical, 0.05, less=simple, simple=simple))
        chance = RatioChances(*target, least, critical, step=0.09, cut=ended).missed(at)
        if chance > 0.05:
            said.append(f"looks at a mean miss with {chance:.4f}, where 0.05 is told")
    return tuple(said)


def joint_looks() -> tuple[str, ...]:
    """Follow a mean and a standard deviation by looks that suit both: each is missed with 5 % at most."""
    less, groups = 50.0**2 / 2, 15_000
    worth = (*WORTH, GRAIN / less**2)
    asked = RatioStatistic(0, 1, 50.0, 0.0, 100.0), VarianceStatistic(0, 1, 2, 50.0, root=True, less=less)
    measure = measured(np.array([[1e4], [3e5], [1e4 * (50 + 900 - less)]]), np.random.default_rng(5), worth)
    question = JointMeasures(asked, ((0.3, 0.0),) * 2, 0.05, worth, 2**56)
    state = question.run(JointState.nothing(3, 2, groups), measure)
    truth = np.array([[80.0], [50.0**0.5]])
    missed = ((state.lower > truth) | (state.upper < truth)).mean(axis=1).max()
    said = [f"one of two answers misses with {missed:.4f}, where 0.05 is told"] if missed > 0.0545 else []
    sharp, nothing = replace(question, targets=((0.05, 0.0),) * 2), JointState.nothing(3, 2, 2_000)
    enough = replace(sharp, cap_grains=int(1.5 * sharp.run(nothing, measure).paid.mean()))
    met = float(enough.run(nothing, measure).met.all(axis=0).mean())
    if met < 0.95:
        said.append(f"of groups that take two thirds of their cap in the mean {met:.3f} are met")
    return tuple(said)


def variance_looks() -> tuple[str, ...]:
    """Follow a standard deviation by looks, where its interval is exact: it misses with 5 % at most."""
    value, less = 50.0**0.5, 50.0**2 / 2
    worth = (*WORTH, GRAIN / less**2)
    deviation = VarianceStatistic(0, 1, 2, 50.0, root=True, less=less)
    measure = measured(np.array([[1e4], [3e5], [1e4 * (50 + 900 - less)]]), np.random.default_rng(5), worth)
    said = []
    for relative, most in ((0.3, 0.0545), (0.1, 0.0475)):
        question = JointMeasures((deviation,), ((relative, 0.0),), 0.05, worth, 2**56)
        state = question.run(JointState.nothing(3, 1, 30_000), measure)
        missed = float(((state.lower > value) | (state.upper < value)).mean())
        if missed > most:
            said.append(f"a deviation at {relative:.0%} misses with {missed:.4f}, where looks may with 0.048")
    return tuple(said)


HELD_SERVING = HeldIntervals.serving
ZONES = {"by": "zone", "keys": {"zone": ["large", "small"]}}
GROUPED = "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone"
UNEVEN = pa.table({"zone": ["large"] * 200_000 + ["small"] * 300})


def uneven() -> farthing.Session:
    """Return a session of one large and one small group."""
    return farthing.Session(UNEVEN, budget=farthing.Budget(epsilon=1, delta=1e-6))


def held() -> tuple[str, ...]:
    """Ask by targets of one kind, then of the other: what is met already is free, and only the difference is paid."""
    large = {"where": "zone = 'large'"}
    said = []
    with uneven() as session:
        session.count(**ZONES, absolute=1000)
        if session.count(**ZONES, relative=0.1, absolute=150).paid_by_group[0]:
            said.append("a group that its interval answers is charged again")
    with uneven() as session:
        session.count(**ZONES, relative=0.05, absolute=1000)
        free = session.plan(GROUPED, keys=ZONES["keys"], absolute=20_000).free
        if session.count(**ZONES, absolute=20_000).paid or not free:
            said.append("a distance that every interval meets is charged")
    with uneven() as session:
        alone = float(session.count(**large, relative=0.01, cap="all").paid.amount)
    with uneven() as session:
        session.count(**large, absolute=5_000)
        after = float(session.count(**large, relative=0.01, cap="all").paid.amount)
    if after > 2 * alone:
        said.append(f"a relative target after a distance costs {after / alone:.3g} times what it costs alone")
    with uneven() as session, mock.patch.object(HeldIntervals, "serving", autospec=True) as serving:
        serving.side_effect = HELD_SERVING
        session.count(**ZONES, absolute=1000)
        session.count(**ZONES, relative=0.1, absolute=150)
        rooms = [call.kwargs.get("room", 1.0) for call in serving.call_args_list]
    if not max(rooms, default=0.0) > 1.001:
        said.append("a group that waited at its floor is held to the old constant")
    return tuple(said)


def bounded_work() -> tuple[str, ...]:
    """Plan the smallest relative targets, and ask for more keys and constants than there may be: all without work."""
    said, recursions = [], [(stop_rule, "GaussianLookChain"), (laplace_stop_rule, "LaplaceLookChain")]
    for budget, (module, name) in zip((BUDGET, farthing.Budget(epsilon=1)), recursions, strict=True):
        with opened(budget=budget) as session, mock.patch.object(getattr(module, name), "run", None):
            for relative in (1e-4, 1e-6, 1e-12):
                try:
                    session.plan("SELECT COUNT(*) AS n FROM data", relative=relative)
                except TypeError:
                    said.append(f"the recursion of {name} is run for a relative target of {relative:g}")
    many = ", ".join(map(str, range(MOST_CHOICES + 1)))
    with opened() as session, mock.patch.object(listed, "MOST_GROUPS", 1_000):
        asks = {
            "too many keys": lambda: session.count(by="g", keys={"g": range(1_001)}, absolute=50),
            "too many constants": lambda: session.count(where=f"g IN ({many})", absolute=50),
        }
        for what, ask in asks.items():
            with suppress(farthing.FarthingError):
                ask()
                said.append(f"{what} are worked on")
    return tuple(said)


ODD_TARGETS: tuple[Target, ...] = (
    {"absolute": 1e-300},
    {"absolute": 1e-320},
    {"absolute": 1e308},
    {"absolute": 10**400},
    {"relative": 1e-13},
)


def any_target() -> tuple[str, ...]:
    """Name targets and ranges that floats can hardly hold, and wider ones: refused in words, and not more expensive."""
    said = []
    with opened() as session:
        for target in ODD_TARGETS:
            try:
                session.count(**target)
                said.append(f"{target} is answered")
            except farthing.InvalidTarget:
                pass
        for most, absolute in itertools.product((1e-320, 1e100, 1e308), (1e-150, 1.0, 1e150)):
            text = f"SELECT SUM(CLAMP(v, 0, {most!r})) AS n FROM data"
            with suppress(farthing.FarthingError):
                str(session.plan(text, absolute=absolute))
        text = "SELECT COUNT(*) AS n FROM data"
        prices = [
            float(session.plan(text, absolute=5, relative=relative, cap="all").worst_price.amount)
            for relative in (0.02, 0.1, 0.3, 0.5, 0.9)
        ]
    if max(prices) > 1.1 * prices[0]:
        said.append(f"a wider target costs up to {max(prices) / prices[0]:.3f} times a tighter one")
    return tuple(said)


def told_near() -> tuple[str, ...]:
    """Ask thousands of groups loosely: their total is right, and no rule lets noise alone stop a group."""
    said = []
    for budget, least in ((BUDGET, 6.19), (farthing.Budget(epsilon=4), 21.3)):
        for relative in (0.3, 0.5, 0.9):
            with opened(budget=budget) as session:
                rule = session.plan("SELECT COUNT(*) AS n FROM data", relative=relative, absolute=30).pricing.schedule
            if rule.jumps.boundary < least:
                said.append(f"a signal of {rule.jumps.boundary:.3g} stops a count asked within {relative:g}")
    groups, size = 2_000, 300
    with opened(groups, size) as session:
        answer = session.count(by="g", keys={"g": list(range(groups))}, relative=0.3, cap="all")
    off = float(np.sum(answer.estimate)) / (groups * size) - 1
    if abs(off) > 0.025:
        said.append(f"the total of {groups} estimates is off by {100 * off:.2f} %")
    return tuple(said)


def stopped_totals() -> tuple[str, ...]:
    """What bounds the total of cells that stop alone has a mean of 1 at most, under both laws, at every rate."""
    said = []
    for law, rates in ((GAUSSIAN_STOPS, (0.3, 1.0, 3.0)), (LaplaceStops(1.0), (0.5, 0.9, 1.0))):
        spread = np.full((1, 1), law.noise.variance)
        for rate, sign in itertools.product(rates, (1, -1)):
            scaled = np.linspace(-60, 60, 60_001)
            off = (scaled / law.noise.precision(rate, 1.0))[:, None, None]
            view = StopView(np.full((1, 1), rate), np.full((1, 1), 0.4), spread, 0.03, sign)
            chance = -(scaled**2) / 2 if law is GAUSSIAN_STOPS else -np.abs(scaled)
            grown = law.log_mixture(off, view)[:, 0, 0] + chance
            mean = float(np.exp(grown).sum() / np.exp(chance).sum())
            if mean > 1 + 1e-5:
                said.append(f"a bound on totals under {law.noise.name} noise rests on a mean of {mean:.4f}")
    return tuple(said)


def out_of_reach() -> tuple[str, ...]:
    """Ask by each kind of question for what no group can meet under the cap: nothing is charged, as the plan says."""
    said = []
    asks = {
        "a count": ("SELECT COUNT(*) AS n FROM data", {"absolute": 0.01}),
        "a count and a sum": ("SELECT COUNT(*) AS n, SUM(CLAMP(v, 0, 100)) AS t FROM data", {"absolute": 0.01}),
    }
    for what, (text, target) in asks.items():
        with opened(budget=farthing.Budget(epsilon=1, delta=1e-6)) as session:
            with suppress(farthing.BudgetExceeded):
                session.sql(text, **target)
            if session.spent or not session.plan(text, **target).hopeless:
                said.append(f"{what} out of reach is paid for")
    return tuple(said)


def raises(error: type[BaseException]) -> object:
    """Return a callback that raises."""

    def callback(_: object) -> None:
        """Raise."""
        raise error

    return callback


def failures() -> tuple[str, ...]:
    """Interrupt asks of a table, then let some fail: that is no failure, and this is none of another table."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        rounds = (("one", KeyboardInterrupt, 50), ("one", ZeroDivisionError, 20), ("other", None, 50))
        for name, error, widest in rounds:
            table = pa.table({name: range(500)})
            with farthing.Session(table, name=name, budget=BUDGET, ledger=Path(folder) / "a.ledger") as session:
                for width in (widest, widest - 2, widest - 4) if error else ():
                    with suppress(KeyboardInterrupt, ZeroDivisionError, farthing.DataError):
                        session.count(absolute=width, progress=raises(error))
                try:
                    session.count(absolute=widest - 6)
                except farthing.DataError:
                    said += [f"{error} held up its table"] * (error is not ZeroDivisionError)
                else:
                    said += ["three failures hold up nothing"] * (error is ZeroDivisionError)
    return tuple(said)


def converged() -> tuple[str, ...]:
    """Fit far more rows than were named, to the last digit: whatever float64 can resolve, an answer comes out."""
    rows = np.random.default_rng(2).uniform(-0.35, 0.57, (300_000, 3))
    exactly = {"_HALVINGS": 3, "_STEPS": 8, "FLAT": 1e-14}
    try:
        with mock.patch.multiple(problems, **exactly):
            problems.Logistic(rows, 1, 1e-3)
    except farthing.DataError:
        return ("how far a fit came decides between an answer and an error",)
    return ()


def choices() -> tuple[str, ...]:
    """Price choices beside the least that one in the middle of its range needs, by what is left after them."""
    eta, said = Fraction(1, 10), []
    for kappa in (Fraction(1, 10), Fraction(1), Fraction(5, 2)):
        left, root = float(kappa), math.sqrt(float(kappa))
        tail = math.exp(-1 / (8 * left)) * root / math.sqrt(2 * math.pi) + math.erf(1 / math.sqrt(8 * left)) / 4
        price = residue.choice_price(eta, kappa * eta**2) / eta**2
        said += ["a choice below what it needs"] * (price < 2 * math.pi * tail**2 - left)
        before = (kappa + 1) * eta**2
        taken = residue.choice_cost(eta, before)
        said += ["priced by what was left before it"] * (taken < residue.choice_price(eta, before - taken))
    together = residue.choices_price(eta, 2) - residue.choice_price(eta, 0)
    said += ["no choice pays its price alone"] * (together < residue.choice_price(eta, residue.choice_price(eta, 0)))
    return tuple(said)


def leads() -> tuple[str, ...]:
    """Look again and again at equal groups, each of which may be told to lead the one before: return whether any is."""
    from scipy.stats import binom

    runs, groups, rng = 500, 20, np.random.default_rng(3)
    rule = RankingPlaces(groups, 0.05, 1.0, rng.normal(size=groups), 1, (groups, 0.0))
    weights, later, beside = rule.weights(), np.arange(1, groups), rule.beside([np.arange(groups)])
    known = (weights.chances(later, beside, foretold=foretold) for foretold in (True, False))
    chances = np.where(weights.place[1:] < weights.place[:-1], *known)
    sums, held, wrong = np.zeros((runs, groups - 1)), 0.0, np.zeros(runs, bool)
    for information in 1.2 ** np.arange(50):
        sums += rng.normal(size=sums.shape) * math.sqrt(2 * (information - held))
        held = information
        wrong |= (sums > information * proved_leads_of(0.05 * chances, rule.likely()[1:], information)).any(axis=1)
    return (f"{wrong.sum()} of {runs} orders proved wrongly",) * bool(wrong.sum() > binom.isf(1e-10, runs, 0.05))


def reduced() -> tuple[str, ...]:
    """Sum the series of two scores that a unit moves apart; return whether a stop at the second loses its price."""
    run, levels, steps = ReducedAboveThreshold(0), (Fraction(3, 2), Fraction(5, 2)), 4
    place = np.arange(-160, 161)
    rates = [float(run.share * level) / steps for level in levels]
    noises = [float((1 - run.share) * level) / 2 for level in levels]
    keep = (math.sinh(rates[0] / 2) / math.sinh(rates[1] / 2)) ** 2
    coarse, fine = np.meshgrid(place, place, indexing="ij")
    back = keep * (coarse == fine) + (1 - keep) * math.tanh(rates[0] / 2) * np.exp(-rates[0] * np.abs(coarse - fine))

    def stop(first: float, second: float) -> float:
        """Return the chance of a stop at the second score, but for a factor."""
        passes = 1 - np.exp(-np.maximum(noises[0] * (coarse / steps - first) + 1, 0))
        last = np.exp(-np.maximum(noises[1] * (fine / steps - second) + 1, 0))
        return float((np.exp(-rates[1] * np.abs(fine)) * back * passes * last).sum())

    lost = max(math.log(stop(one, -10) / stop(one + 1, -11)) for one in (-10, 0, 10))
    told = float(run.price(levels[1], levels[0]))
    return (f"a stop at {told:.3f} loses {lost:.3f}",) * (lost > told)
