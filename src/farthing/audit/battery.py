"""The mechanisms of farthing as black boxes: each reached through a session, beside a planted bug of known size."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from farthing.audit.trials import Scores, Transcript, rows, side_by_side, units
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.loss import Loss

GDP: Final = Budget(mu=40)
ZCDP: Final = Budget(rho=800)
PURE: Final = Budget(epsilon=4_000)
RELATIVE: Final = ("gaussian", "asinh", "linear-log", "log", "power", "two-stage")
SIZE: Final = 20
"""The size of the groups whose members' own loss is audited."""

MANY: Final = 4
"""How often a unit counts in means and quantiles where its bound is forgotten."""

RANKED: Final = {"absolute": 0.1, "cap": Gdp(2)}
"""A target of the value, for which a bisection is bought: the rows of a group are as many below as above its middle."""

Ask: TypeAlias = "Callable[[Session, dict[str, Any]], Scores]"
Draw: TypeAlias = "Callable[[int], Transcript]"
Plant: TypeAlias = "Callable[[int, Transcript], Transcript]"


@dataclass(frozen=True, slots=True)
class Lane:
    """One mechanism to be audited.

    Attributes:
        name: the mechanism, and how it is asked.
        honest: draws so many trials of it.
        planted: draws so many trials of the same with a bug, given the honest ones.
        bug: what the bug is.
        share: which part of the usual number of trials it gets, where each is a question of its own.
    """

    name: str
    honest: Draw
    planted: Plant
    bug: str
    share: float = 1.0


def lanes() -> tuple[Lane, ...]:
    """Return every mechanism that a session reaches, by the kind of question that reaches it."""
    return (*_counts(), *_values(), *_relative(), *_adaptive(), *_bounded(), *_choices())


def _cheap(name: str, draw: Draw, factor: int = 2) -> Lane:
    """Return a lane whose bug is that it is booked as if its noise were `factor` times as wide."""
    return Lane(name, draw, lambda _, honest: honest.claiming(factor), f"noise {factor} times too narrow")


def _drawn(draw: Draw) -> Plant:
    """Return a planted bug that needs trials of its own."""
    return lambda trials, _: draw(trials)


def _one(ask: Ask, table: Callable[[int, int], Any], **options: Any) -> Draw:
    """Return the trials of one ask."""
    return lambda trials: side_by_side(ask, table, trials, **options)


def _count(**how: Any) -> Ask:
    """Return the ask for all counts."""
    return lambda session, keys: np.asarray(session.count("k", keys=keys, **how).value)


def _counts() -> tuple[Lane, ...]:
    """Return the counts at a named loss, in every currency, and at targets."""
    table = rows((0, 0, 0), 0)
    return (
        _cheap("count, Gaussian noise", _one(_count(loss=Gdp(1)), table, budget=GDP)),
        _cheap("count, Gaussian noise in zCDP", _one(_count(loss=Zcdp(0.5)), table, budget=ZCDP)),
        _cheap("count, geometric noise", _one(_count(loss=Pure(1)), table, budget=PURE)),
        _cheap("count to an absolute target", _one(_count(absolute=2, cap="all"), table, budget=GDP)),
        _cheap("count to a relative target", _one(_count(absolute=2, relative=0.4, cap="all"), table, budget=GDP)),
    )


def _values() -> tuple[Lane, ...]:
    """Return sums, means, variances and quantiles; the unit's value is far outside of its clamps."""

    def sums(loss: Loss, upper: float = 1) -> Ask:
        """Return the ask for all sums."""
        asked: dict[str, Any] = {"by": "k", "loss": loss}
        return lambda session, keys: np.asarray(session.sum("x", lower=0, upper=upper, keys=keys, **asked).value)

    def clamped(budget: Budget, loss: Loss, harder: Loss) -> Lane:
        """Return a lane whose bug is a forgotten clamp: the unit counts for three where the noise is for one."""
        outside = rows((0, 0, 0), 1e9)
        return Lane(
            f"sum, {'geometric' if budget is PURE else 'Gaussian'} noise",
            _one(sums(loss), outside, budget=budget),
            _drawn(_one(sums(harder, 3), outside, budget=budget, claim=lambda _: loss)),
            "a clamp of 1 forgotten for a value of 3",
        )

    def ends(name: str, options: dict[str, Any]) -> Ask:
        """Return the ask for one aggregate of all groups."""
        return lambda session, keys: getattr(session, name)("x", lower=0, upper=1, by="k", keys=keys, **options).value

    def counted(name: str, ask: Ask, values: tuple[float, ...], budget: Budget) -> Lane:
        """Return a lane whose bug is that all of a unit's rows count where one should."""
        honest, bug = (rows(values, 1e9, times) for times in (1, MANY))
        return Lane(
            name,
            _one(ask, honest, budget=budget),
            _drawn(_one(ask, bug, budget=budget)),
            f"{MANY} rows of a unit counted for 1",
        )

    halves, one = (0.5,) * (2 * SIZE), ends("quantile", {"q": 0.5, "loss": Pure(4)})
    return (
        clamped(GDP, Gdp(1), Gdp(3)),
        clamped(PURE, Pure(1), Pure(3)),
        counted("mean", ends("mean", {"loss": Gdp(2)}), halves, GDP),
        counted("variance", ends("variance", {"loss": Gdp(2)}), halves, GDP),
        counted("quantile by noisy ranks", ends("quantile", {"q": 0.5, **RANKED}), (0.25, 0.75), GDP),
        _cheap("quantile by the exponential mechanism", _one(one, rows((0.5,), 1e9), budget=PURE)),
    )


def _relative() -> tuple[Lane, ...]:
    """Return noise that grows with the count; the claim is what members of groups of that size are promised."""

    def promised(session: Session) -> Loss:
        """Return the promise where every group has at least the size of the trials."""
        return session.guarantee(size=SIZE, of="spent").loss

    table = rows((0,) * SIZE, 0)
    return tuple(
        _cheap(
            f'count with mechanism="{name}"',
            _one(_count(relative=0.1, absolute=2, cap="all", mechanism=name), table, budget=GDP, claim=promised),
            factor=4 if name == "two-stage" else 2,
        )
        for name in RELATIVE
    )


def _adaptive() -> tuple[Lane, ...]:
    """Return questions in several steps, whose noises must be independent and whose prices must add up."""

    def difference(session: Session, keys: dict[str, Any]) -> Scores:
        """Ask with the unit's row and without it: noise that came twice cancels."""
        every, others = (
            session.count("k", keys=keys, where=where, absolute=2, cap="all").value for where in (None, "t = 0")
        )
        return np.asarray(every - others)

    def refined(session: Session, keys: dict[str, Any]) -> Scores:
        """Ask coarsely, then more and more sharply."""
        coarse = session.count("k", keys=keys, absolute=20, cap="all")
        return np.asarray(coarse.refine(absolute=10).refine(absolute=2).value)

    def chained(session: Session, keys: dict[str, Any]) -> Scores:
        """Look again and again, and add up: the looks of a chain hardly tell more than the last."""
        looks = [session.count("k", keys=keys, absolute=5, cap="all")]
        for width in (4, 3, 2):
            looks.append(looks[-1].refine(absolute=width))
        return np.asarray(sum(np.asarray(look.value) / (5 - place) for place, look in enumerate(looks)))

    def together(session: Session, keys: dict[str, Any]) -> Scores:
        """Ask two aggregates at once; the unit moves both."""
        text = "SELECT k, COUNT(*) AS n, SUM(CLAMP(x, 0, 1)) AS m FROM data GROUP BY k"
        answer = session.sql(text, keys=keys, loss=Gdp(1))
        return np.asarray(answer["n"].value + answer["m"].value)

    def reused(_: int, honest: Transcript) -> Transcript:
        """Two answers from one noise: their difference is exact."""
        return Transcript(0 * honest.without, 0 * honest.present + 1, honest.claim)

    table, outside = rows((0, 0, 0), 0), rows((0, 0, 0), 1e9)
    return (
        Lane("two questions, their difference", _one(difference, table, budget=GDP), reused, "the noise used again"),
        _cheap("count, refined twice", _one(refined, table, budget=GDP)),
        _cheap("count, a chain of four looks", _one(chained, table, budget=PURE)),
        _cheap("count and sum at once", _one(together, outside, budget=GDP)),
    )


def _bounded() -> tuple[Lane, ...]:
    """Return units that are in more groups, parts, or rows than they may be."""

    def total(width: int, loss: Gdp) -> Ask:
        """Return the ask for the sum over all groups of a unit."""

        def ask(session: Session, keys: dict[str, Any]) -> Scores:
            """Ask for all groups."""
            values = session.count("k", keys=keys, loss=loss).value
            return np.asarray(values.reshape(-1, width).sum(axis=1))

        return ask

    def bounded(name: str, width: int, depth: int, bug: str) -> Lane:
        """Return a lane of units with too much; the bug keeps all of it under noise for what is allowed."""
        allowed, kept = Bounds(max_groups=2, max_rows=3), Bounds(max_groups=width, max_rows=depth)
        ratio = sqrt(width / 2) * depth / 3
        options: dict[str, Any] = {"unit": "u", "budget": GDP, "width": width}
        return Lane(
            name,
            _one(total(width, Gdp(1)), units(width, depth), bounds=allowed, **options),
            _drawn(_one(total(width, Gdp(ratio)), units(width, depth), bounds=kept, claim=lambda _: Gdp(1), **options)),
            bug,
        )

    def parts(session: Session, keys: dict[str, Any]) -> Scores:
        """Ask all parts of a partition, which are charged in parallel, and add them up."""
        halves = session.partition(by="t", keys=[0, 1])
        answers = [half.count(by="k", keys=keys, loss=Gdp(1)).value for half in halves.values()]
        return np.asarray(np.sum(answers, axis=0))

    return (
        bounded("a unit in 8 groups where 2 are allowed", 8, 3, "max_groups forgotten"),
        bounded("a unit of 12 rows where 3 are allowed", 2, 12, "max_rows forgotten"),
        _cheap("parts of a partition", _one(parts, rows((0, 0, 0), 0), budget=GDP), factor=3),
    )


def _choices() -> tuple[Lane, ...]:
    """Return choices of the largest group; each trial is a question of its own."""

    def chosen(trials: int) -> Transcript:
        """Ask again and again which of two groups is the larger, before and after one unit joins the smaller."""
        import pyarrow as pa

        epsilon, asks = 0.5, []
        for extra in (0, 1):
            table = pa.table({"g": ["a", *["b"] * extra], "x": [0.0] * (1 + extra)})
            with Session(table, budget=PURE) as session:
                options: dict[str, Any] = {"k": 1, "keys": {"g": ["a", "b"]}, "epsilon": epsilon}
                asks.append([next(iter(session.top_k("g", where=f"x > -{n + 1}", **options))) for n in range(trials)])
        return Transcript(np.asarray(asks[0]), np.asarray(asks[1]), Pure(epsilon))

    def sure(trials: int, _: Transcript) -> Transcript:
        """Choose the larger by name: no noise at all, at the price of some."""
        return Transcript(np.asarray(["a"] * trials), np.asarray(["b"] * trials), Pure(0.5))

    return (Lane("top-k of listed groups", chosen, sure, "no noise", share=0.014),)
