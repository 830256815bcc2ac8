"""How each method of the comparison spends one session's budget: the paper's, ours, and an oracle.

A method is a function from a setting, a public choice and a generator to a played session; the choices it may be tuned
over stand beside it. The filter behind each total, and the price of each pick, are those of `farthing.privacy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from farthing.accuracy.stop_rule import two_sided
from farthing.experiments import chains, picking
from farthing.experiments.choice import PublicChoice
from farthing.experiments.setting import Played, Side, amount, on_grid, pick_prices, residue_prices
from farthing.privacy.filters import (
    GdpFilter,
    PureFilter,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
    ZcdpFilter,
)
from farthing.privacy.loss import Gdp, Pure, Zcdp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.experiments.chance import Generator
    from farthing.experiments.setting import Setting

_EAGERNESS: Final = (5.0, 8.0, 12.0, 17.0, 2.5, 1.2, 0.6, 0.3)
_CURRENCIES: Final[dict[str, type[Gdp | Zcdp | Pure]]] = {"gdp": Gdp, "zcdp": Zcdp, "pure": Pure}


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Attributes:
        name: its key in tables and JSON.
        title: what it is, in words.
        theorem: what its accounting rests on.
        choices: the public choices it is tuned over.
        play: plays a number of sessions.
        like: the name of the method whose choice and draws it shares, so that the two differ in their accounting alone.
    """

    name: str
    title: str
    theorem: str
    choices: Callable[[Setting], Sequence[PublicChoice]]
    play: Callable[[Setting, PublicChoice, int, Generator], Played]
    like: str = ""


class Pick(NamedTuple):
    """One kind of pick.

    Attributes:
        epsilon: of the exponential mechanism, on the grid of prices.
        exponent: its place on that grid, or None where nothing is picked.
    """

    epsilon: float
    exponent: Ints | None

    def price(self, currency: type[Gdp | Zcdp | Pure]) -> float:
        """Return the price of one pick in a currency; nothing where there is none."""
        return 0.0 if self.exponent is None else float(pick_prices(self.exponent, currency)[0])


def doubling(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play doubling under the filter of Theorem 2: every level is paid; the starting level is spread over an octave."""
    total = amount(RogersZcdpFilter.from_epsilon(setting.epsilon, delta=setting.delta).remaining)
    sizes, pick = _fixed(setting, choice, setting.gaussian_affordable, trials, rng)
    octave = np.broadcast_to(2.0 ** -rng.uniform(size=(trials, 1)), sizes.shape)
    stop = chains.ReleaseStop(setting.relative, two_sided(setting.beta))
    first = setting.first_information() * octave.ravel()
    runs = chains.doubled(stop, sizes.ravel(), first, 2 * total, rng)
    paid = runs.cost.reshape(sizes.shape) / 2 + pick.price(Zcdp)
    return _settled(setting, [Side(paid, total)], runs, sizes)


def unified(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play Brownian noise reduction under the unified filter: a run stopped at information t has paid rho = t/2."""
    books = RogersUnifiedFilter.from_epsilon(setting.epsilon, delta=setting.delta)
    return _brownian(setting, choice, trials, rng, currency=Zcdp, total=amount(books.remaining))


def unified_zcdp(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play the same releases as `unified`, the same rho added up under the sharper conversion of zCDP."""
    books = ZcdpFilter.from_epsilon(setting.epsilon, delta=setting.delta)
    return _brownian(setting, choice, trials, rng, currency=Zcdp, total=amount(books.remaining))


def unified_gdp(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play the same releases as `unified`, mu squared added up under the exact Gaussian conversion."""
    books = GdpFilter.from_epsilon(setting.epsilon, delta=setting.delta)
    return _brownian(setting, choice, trials, rng, currency=Gdp, total=amount(books.remaining))


def lemma52(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play Laplace noise reduction under Lemma 5.2: the last epsilons of all chains and picks add up."""
    total = amount(RogersExPostFilter.from_epsilon(setting.epsilon, delta=setting.delta).remaining)
    sizes, pick = _fixed(setting, choice, setting.laplace_affordable, trials, rng)
    runs = _laplace(setting, sizes.ravel(), total, rng)
    paid = runs.cost.reshape(sizes.shape) + pick.price(Pure)
    return _settled(setting, [Side(paid, total)], runs, sizes)


def concurrent(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play Theorem 3: picks as zCDP mechanisms, Laplace chains as ex-post private ones, each with its own total."""
    books = RogersConcurrentFilter.from_epsilon(
        setting.epsilon, delta=setting.delta, share=Fraction(choice.share)
    ).remaining
    sizes, pick = _fixed(setting, choice, setting.laplace_affordable, trials, rng)
    runs = _laplace(setting, sizes.ravel(), amount(books.ex_post), rng)
    sides = [
        Side(runs.cost.reshape(sizes.shape), amount(books.ex_post)),
        Side(np.broadcast_to(pick.price(Zcdp), sizes.shape), amount(books.zcdp)),
    ]
    return _settled(setting, sides, runs, sizes)


def ireduct(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play an iReduct-like batch: all picks and a coarse look at each first, then sharpen, the largest first.

    The number of counts is fixed in advance; the epsilons of all of them add up [XiaoBHG11].
    """
    many = max(1, min(int(choice.batch * max(setting.laplace_affordable, 1)), setting.task.size))
    if setting.task.unlimited:
        many = max(1, int(choice.batch * setting.laplace_affordable))
    total = amount(PureFilter.from_epsilon(setting.epsilon).remaining)
    pick = _pick(setting, choice, setting.laplace_affordable)
    sizes = picking.in_order(setting.task, pick.epsilon, many, trials, rng)
    stop, coarse = chains.ReleaseStop(setting.relative, setting.laplace_critical), total / (10 * many)
    first = np.full(sizes.size, coarse)
    runs, seen = chains.laplace_runs(stop, sizes.ravel(), first, total, rng)
    order = np.argsort(-seen.reshape(sizes.shape), axis=1)
    runs, sizes = runs.shaped(*sizes.shape).taken(order), np.take_along_axis(sizes, order, axis=1)
    before = many * (coarse + pick.price(Pure))
    return _settled(setting, [Side(runs.cost - coarse, total - before)], runs, sizes)


def farthing(setting: Setting, choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play our session: calibrated refinement in the currency that suits the promise, picks priced in it.

    Guarantee: (epsilon, delta)-DP for the whole session, as the filter of the chosen currency has it: the exact
        Gaussian conversion, with picks by what is left, the sharper zCDP one, or the sum of epsilons.
    Proof: docs/proofs/privacy.filters.md, docs/proofs/privacy.residue.md; [RogersSRW23, Lemma 5.2] for Laplace chains
        in the sum of epsilons.
    Assumes: counts that one user moves by at most one; the choice is public.
    Rounds: totals down, prices of picks up; simulated costs are floats.
    """
    laplace = choice.currency == "pure"
    affordable = setting.laplace_affordable if laplace else setting.gaussian_affordable
    most, picked = setting.most(affordable), setting.task.picked

    def release(truth: Floats, expected: Floats, least: Floats) -> chains.Runs:
        check = chains.FutilityCheck(expected, np.full_like(least, -np.inf) if choice.steady else least)
        if laplace:
            stop = chains.ReleaseStop(setting.relative, chains.laplace_critical(setting.relative, setting.beta))
            return chains.laplace_refined(stop, truth, setting.epsilon, rng, check)
        looks = chains.calibrated_schedule(setting.relative, setting.beta, setting.mu_squared)
        return chains.refined(looks, truth, rng, centred=True, check=check if picked and not choice.steady else None)

    if picked:
        last = setting.last_size(affordable) if choice.steady else 0.0
        pace = picking.Pace(choice.eagerness, last, flipped=laplace)
        followed = picking.follow(setting.task, pace, most + most // 4 + _SPARE, trials, rng, release=release)
        sizes, runs = followed.sizes, followed.runs
        picks = _pick_costs(setting, choice, followed)
    else:
        sizes = np.broadcast_to(setting.task.sorted_counts(most).astype(np.float64), (trials, most))
        expected = np.full(sizes.size, setting.task.guess)
        runs = release(sizes.ravel(), expected, np.full(sizes.size, -np.inf)).shaped(*sizes.shape)
        picks = np.zeros(sizes.shape)
    return _settled(setting, [_our_side(setting, choice.currency, runs.cost, picks)], runs, sizes)


def oracle(setting: Setting, _choice: PublicChoice, trials: int, rng: Generator) -> Played:
    """Play for somebody who knows every count: no picks, no looks, the least single noise, in the better currency."""
    gaussian, laplace = setting.gaussian_affordable, setting.laplace_affordable
    many = max(gaussian, laplace)
    if gaussian >= laplace:
        off = np.abs(rng.standard_normal((trials, many))) / two_sided(setting.beta)
    else:
        off = rng.standard_exponential((trials, many)) / setting.laplace_critical
    return Played(np.full(trials, many), (off <= 1).sum(axis=1))


def _brownian(
    setting: Setting, choice: PublicChoice, trials: int, rng: Generator, *, currency: type[Gdp | Zcdp], total: float
) -> Played:
    """Play Brownian noise reduction by the plain rule under a total of some accounting.

    What is drawn does not depend on the accounting: it says how many of the same releases fit.
    """
    sizes, pick = _fixed(setting, choice, setting.gaussian_affordable, trials, rng)
    looks = chains.plain_schedule(setting.relative, setting.beta, setting.mu_squared)
    runs = chains.refined(looks, sizes.ravel(), rng, centred=False)
    spent = runs.cost.reshape(sizes.shape) / (1 if currency is Gdp else 2)
    return _settled(setting, [Side(spent + pick.price(currency), total)], runs, sizes)


def _pick_costs(setting: Setting, choice: PublicChoice, followed: picking.Followed) -> Floats:
    """Return what each pick of ours costs, in the currency of the books."""
    if choice.currency == "gdp":
        return residue_prices(followed.exponents, followed.runs.cost, setting.mu_squared, made=followed.made)
    return np.asarray(pick_prices(followed.exponents, _CURRENCIES[choice.currency]) * followed.made)


def _our_side(setting: Setting, currency: str, cost: Floats, picks: Floats) -> Side:
    """Return our sum and its total, in the currency that our ledger is kept in."""
    epsilon, delta = setting.epsilon, setting.delta
    match currency:
        case "gdp":
            return Side(cost + picks, amount(GdpFilter.from_epsilon(epsilon, delta=delta).remaining))
        case "zcdp":
            return Side(cost / 2 + picks, amount(ZcdpFilter.from_epsilon(epsilon, delta=delta).remaining))
        case _:
            return Side(cost + picks, amount(PureFilter.from_epsilon(epsilon).remaining))


def _fixed(setting: Setting, choice: PublicChoice, affordable: int, trials: int, rng: Generator) -> tuple[Floats, Pick]:
    """Return the sizes of what is picked at one epsilon throughout, and the pick."""
    pick = _pick(setting, choice, affordable)
    return picking.in_order(setting.task, pick.epsilon, setting.most(affordable), trials, rng), pick


def _pick(setting: Setting, choice: PublicChoice, affordable: int) -> Pick:
    """Return the one kind of pick: epsilon is eagerness over the size of the last count that could be paid for."""
    if not setting.task.picked:
        return Pick(0.0, None)
    epsilon, exponent = on_grid(np.array([choice.eagerness / setting.last_size(affordable)]))
    return Pick(float(epsilon[0]), exponent)


def _laplace(setting: Setting, truth: Floats, total: float, rng: Generator) -> chains.Runs:
    """Return Laplace chains that start far too coarse and may cost as much as the whole side."""
    stop = chains.ReleaseStop(setting.relative, setting.laplace_critical)
    first = np.full(len(truth), stop.boundary / (16 * setting.task.guess))
    return chains.laplace_runs(stop, truth, first, total, rng)[0]


def _settled(setting: Setting, sides: Sequence[Side], runs: chains.Runs, sizes: Floats) -> Played:
    """Return what sessions came to: what fits, and which values are within the target of the truth."""
    runs = runs.shaped(*sizes.shape)
    hit = np.abs(runs.value - sizes) <= setting.relative * sizes
    return Played.of(sides, hit=hit, kept=runs.kept)


def _eager(setting: Setting, **others: Any) -> list[PublicChoice]:
    """Return choices that differ in how eagerly they pick; one where nothing is picked."""
    levels = _EAGERNESS if setting.task.picked else (0.0,)
    return [PublicChoice(eagerness=level, **others) for level in levels]


def _our_choices(setting: Setting) -> list[PublicChoice]:
    """Return the choices of our method: the currencies that could be best, and how eagerly to pick."""
    gaussian, laplace = setting.gaussian_affordable, setting.laplace_affordable
    steady = (False, True) if setting.task.picked else (False,)
    kinds: list[dict[str, Any]] = []
    if gaussian >= _CLOSE * laplace:
        kinds += [{"currency": "gdp", "steady": each} for each in steady]
    if laplace >= _CLOSE * gaussian:
        kinds += [{"currency": "pure", "steady": each} for each in steady]
    return [each for kind in kinds for each in _eager(setting, **kind)]


_SPARE: Final = 100  # more picks than counts, for those that are given up and picked again
_CLOSE: Final = 0.6  # a currency is tried if its oracle returns this part of what the other's does
_SHARES: Final = (0.5, 0.65, 0.8, 0.9, 0.98)
_BATCHES: Final = (0.5, 0.65, 0.8, 0.9, 1.0, 1.2)

METHODS: Final = (
    Method("doubling", "fresh noise at doubled levels", "Theorem 2 of the paper", _eager, doubling),
    Method("unified", "Brownian noise reduction", "section 6 of the paper, the unified filter", _eager, unified),
    Method("unified-zcdp", "the same releases as unified", "the sharper conversion of zCDP", _eager, unified_zcdp,
           like="unified"),
    Method("unified-gdp", "the same releases as unified", "the exact conversion of GDP", _eager, unified_gdp,
           like="unified"),
    Method("lemma52", "Laplace noise reduction", "Lemma 5.2 of the paper", _eager, lemma52),
    Method(
        "concurrent", "zCDP picks beside Laplace noise reduction", "Theorem 3 of the paper",
        lambda setting: [each for share in _SHARES for each in _eager(setting, share=share)], concurrent,
    ),
    Method(
        "ireduct", "a batch fixed in advance, Laplace noise reduction", "sums of epsilon",
        lambda setting: [each for batch in _BATCHES for each in _eager(setting, batch=batch)], ireduct,
    ),
    Method("farthing", "calibrated refinement, picks at a falling price", "the exact filter of its currency",
           _our_choices, farthing),
    Method("oracle", "knows every count", "the exact filter of its currency", lambda _: [PublicChoice()], oracle),
)  # fmt: skip
"""All methods, in the order of the tables."""
