"""One count, released once with noise that grows with it: members of larger groups lose less."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.stop_rule import two_sided
from farthing.planning.relative_count import RelativeCountPricing, RelativeNoise, plan_relative_count
from farthing.privacy.policy import LARGEST_SIZE
from farthing.progress import Progress
from farthing.release import Cells
from farthing.session.answering import optimality
from farthing.session.answering.method import AskOutcome
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, write_blob
from farthing.session.core.shield import hand_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

PREFIX: Final = "relative."
"""How the identities of questions with relative noise begin."""

_FORMAT: Final = b"farthing-relative-1"


@dataclass(frozen=True, slots=True, eq=False)
class RelativeRelease:
    """One release: public, free to keep.

    Attributes:
        noise: what it was drawn with.
        steps: int64[groups], on the grid of the mechanism: of the transformed count, or of the two-stage output.
    """

    noise: RelativeNoise
    steps: Integers

    @classmethod
    def draw(cls, noise: RelativeNoise, counts: Integers) -> RelativeRelease:
        """Return a fresh release of exact counts.

        Guarantee: as `RelativeNoise`.
        Proof: docs/proofs/session.answering.relative_count.md.
        Assumes: exact sampler.
        Rounds: the noisy transform to a public grid.
        """
        made: Any = noise.mechanism
        if noise.name == "two-stage":
            return cls(noise, np.rint(made.release(counts) / made.step).astype(np.int64))
        return cls(noise, made.indices(counts))

    @property
    def values(self) -> Floats:
        """float64[groups], the estimates of the counts."""
        made: Any = self.noise.mechanism
        if self.noise.name == "two-stage":
            return np.asarray(self.steps.astype(np.float64) * made.step)
        return np.asarray(made.value(np.ldexp(self.steps.astype(np.float64), made.grid_log2)))

    @property
    def sizes(self) -> Integers:
        """int64[groups], released sizes to evaluate a policy at: the values rounded down, none below 0."""
        return np.clip(np.floor(self.values), 0, LARGEST_SIZE).astype(np.int64)

    def interval(self, beta: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends, float64[groups], of intervals of failure probability beta.

        The noise on f(x) is Gaussian, whatever x is: within z sigma, and half a grid step of rounding, of the released
        level lies f(x). f rises, so x is between the sizes with these levels. (The other half step covers the float
        error of level and inverse.) For two stages: all sizes of which the value is within the target.

        Guarantee: for every size the interval holds it with probability at least 1 - beta.
        Proof: docs/proofs/session.answering.relative_count.md, "Intervals".
        Assumes: levels below 2^52 steps; for two stages beta at least that of the target.
        Rounds: outward.
        """
        made: Any = self.noise.mechanism
        if self.noise.name == "two-stage":
            value, relative, absolute = self.values, self.noise.relative, self.noise.absolute
            return (
                np.minimum(value / (1 + relative), value - absolute),
                np.maximum(value / (1 - relative), value + absolute),
            )
        level = np.ldexp(self.steps.astype(np.float64), made.grid_log2)
        reach = two_sided(beta) * made.sigma + math.ldexp(1.0, made.grid_log2)
        return size_at(self.noise, level - reach), size_at(self.noise, level + reach)

    def losses(self, currency: type[Any]) -> Floats:
        """Return the policy at the released sizes, float64[groups], as the currency's parameter: post-processing."""
        policy = self.noise.policy
        return policy.mu(self.sizes) if currency.parameter == "mu" else policy.rho(self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class RelativeCountMethod:
    """A count that is released with one relative-noise mechanism.

    Attributes:
        query: the question, arranged.
        mechanism: the mechanism's name.
        released: every release of it, by the number of its reservation in the ledger.
    """

    query: Query
    mechanism: str
    released: dict[int, RelativeRelease]

    @classmethod
    def of(cls, query: Query, mechanism: str, blob: bytes | None) -> RelativeCountMethod:
        """Return the method of a question."""
        return cls(query, mechanism, {} if blob is None else releases(blob))

    def plan(self, frame: Frame) -> Plan[RelativeCountPricing]:
        """Return the plan, given what was released before."""
        return plan_relative_count(frame, self.mechanism, [one.noise for one in self.released.values()])

    def stored_answer(self, plan: Plan[RelativeCountPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        pricing = plan.pricing
        one = next(one for one in self.released.values() if one.noise == pricing.noise)
        return _outcome(one, pricing, plan.worst_price, None)

    def measured(
        self, context: Context, plan: Plan[RelativeCountPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine and draw noise, once; the price is the one that was reserved, whatever is drawn."""
        pricing = plan.pricing
        one = RelativeRelease.draw(pricing.noise, context.engine.measure(self.query, receipt)[0])
        made = _outcome(one, pricing, plan.worst_price, blob_of({receipt.id: one}))
        if watcher is not None:
            cells = made.columns[0]
            widest = float((cells.upper - cells.lower).max(initial=0.0)) / 2
            hand_over(watcher, Progress(1, self.query.groups, self.query.groups, widest))
        return made

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: all releases, each of which was paid for whole."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        return merge(
            current, outcome.blob, receipt, read=None, both=lambda *two: blob_of(releases(two[0]) | releases(two[1]))
        )


def blob_of(released: dict[int, RelativeRelease]) -> bytes:
    """Return the blob that the ledger stores."""
    facts = {str(entry): one.noise.facts for entry, one in released.items()}
    return write_blob({str(entry): one.steps for entry, one in released.items()}, {_FORMAT: json.dumps(facts).encode()})


def releases(blob: bytes) -> dict[int, RelativeRelease]:
    """Return the releases in a blob, by the number of their reservation; LedgerError for one of another form."""
    columns, facts = read_blob(blob, _FORMAT)
    return {int(entry): RelativeRelease(RelativeNoise.of(facts[entry]), steps) for entry, steps in columns.items()}


def size_at(noise: RelativeNoise, level: Floats) -> Floats:
    """Return the size whose transform is at this level; levels below that of 0 give what continues it below 0."""
    made: Any = noise.mechanism
    match noise.name:
        case "gaussian":
            return level
        case "asinh":
            return np.asarray(made.x0 * np.sinh(level))
        case "linear-log":
            return np.asarray(made.x0 * np.where(level <= 1, level, np.exp(np.maximum(level, 1) - 1)))
        case "log":
            return np.asarray(np.exp(level) - made.offset)
        case "power":
            return np.asarray(np.maximum(level, 0.0) ** (1 / made.power) - made.offset)
    raise AssertionError(noise.name)  # pragma: no cover - two stages have no level


def _outcome(one: RelativeRelease, pricing: RelativeCountPricing, price: Booked, blob: bytes | None) -> AskOutcome:
    """Return what a release tells."""
    lower, upper = one.interval(pricing.beta)
    values, losses = one.values, one.losses(pricing.currency)
    paid = losses if price else np.zeros(len(losses))
    return AskOutcome(
        (Cells(values, lower, upper, np.ones(len(values), np.bool_)),),
        paid,
        price,
        blob,
        strict=losses,
        optimality=partial(optimality.of_relative, one.noise, values, pricing.currency),
    )
