"""What the ledger keeps of a release of products: the strategies, and what they measured."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.strategy import Strategy, StrategyState
from farthing.session.core.records import read_blob, write_blob

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT: Final = b"farthing-strategies-2"
_BEFORE: Final = b"farthing-strategies-1"


@dataclass(frozen=True, slots=True, eq=False)
class KeptStrategies:
    """What was measured of one question.

    Attributes:
        strategies: what was measured: kept, so that it is measured again where it is computed otherwise.
        states: what is known of each, for answers.
        pilot: what a pilot told of each, which is in no answer.
    """

    strategies: tuple[Strategy, ...]
    states: tuple[StrategyState, ...]
    pilot: tuple[StrategyState, ...]

    @property
    def grains(self) -> NDArray[np.float64]:
        """float64[strategies], what each has cost for answers."""
        return np.array([state.grains for state in self.states], np.float64)

    @classmethod
    def nothing(cls, strategies: tuple[Strategy, ...]) -> KeptStrategies:
        """Return the state before any measurement."""
        nothing = tuple(StrategyState(0, np.zeros(strategy.shape)) for strategy in strategies)
        return cls(strategies, nothing, nothing)

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores: all numbers in a row, and what they are of."""
        facts: list[Any] = []
        numbers: list[NDArray[Any]] = []
        for strategy, state, told in zip(self.strategies, self.states, self.pilot, strict=True):
            shapes = [None if one is None else list(one.shape) for one in strategy.matrices]
            facts.append([list(strategy.sizes), strategy.bits, shapes, state.grains, told.grains])
            numbers += [state.mean.reshape(-1), told.mean.reshape(-1)]
            numbers += [one.reshape(-1) for one in strategy.matrices if one is not None]
        return write_blob(
            {"mean": np.concatenate([one.astype(np.float64) for one in numbers])}, {_FORMAT: json.dumps(facts).encode()}
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> KeptStrategies:
        """Return what is in a blob; refuse one that is not ours."""
        columns, facts = read_blob(blob, _FORMAT, _BEFORE)
        numbers, start = np.array(columns["mean"], np.float64), 0

        def taken(shape: tuple[int, ...]) -> Any:
            """Return the next numbers, so shaped."""
            nonlocal start
            start += math.prod(shape)
            return numbers[start - math.prod(shape) : start].reshape(shape)

        strategies, states, pilot = [], [], []
        for sizes, bits, shapes, grains, *looked in facts:
            shape = tuple(size if one is None else one[0] for size, one in zip(sizes, shapes, strict=True))
            states.append(StrategyState(int(grains), taken(shape)))
            pilot.append(StrategyState(int(looked[0]), taken(shape)) if looked else StrategyState(0, np.zeros(shape)))
            matrices = tuple(None if one is None else taken(tuple(one)).astype(np.int64) for one in shapes)
            strategies.append(Strategy(tuple(sizes), matrices, int(bits)))
        return cls(tuple(strategies), tuple(states), tuple(pilot))

    def with_states(self, name: str, states: tuple[StrategyState, ...]) -> KeptStrategies:
        """Return this with other states for answers, or of the pilot."""
        return replace(self, states=states) if name == "states" else replace(self, pilot=states)

    def joined(self, read: KeptStrategies, theirs: bytes) -> bytes:
        """Return a blob of all measurements: theirs, and those of ours that came on top of what was read.

        Where theirs are of other strategies, they stay, and ours, which were paid in full, are left out.
        """
        other = KeptStrategies.from_bytes(theirs)
        if not other.alike(self):
            return theirs
        states = map(_added, other.states, read.states, self.states)
        pilot = map(_added, other.pilot, read.pilot, self.pilot)
        return KeptStrategies(other.strategies, tuple(states), tuple(pilot)).to_bytes()

    def alike(self, other: KeptStrategies) -> bool:
        """Return whether both are of the same strategies."""
        pairs = zip(self.strategies, other.strategies, strict=False)
        return len(self.strategies) == len(other.strategies) and all(_same(*pair) for pair in pairs)


def _same(one: Strategy, other: Strategy) -> bool:
    """Return whether two strategies measure the same."""
    return (one.sizes, one.bits) == (other.sizes, other.bits) and all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in zip(one.matrices, other.matrices, strict=True)
    )


def _added(theirs: StrategyState, read: StrategyState, ours: StrategyState) -> StrategyState:
    """Return the mean of all measurements: theirs, and those of ours that came on top of what was read."""
    if read.grains == theirs.grains and np.array_equal(read.mean, theirs.mean):
        return ours  # nobody came between: what is stored is what is told, to the last bit
    new = ours.grains - read.grains
    if not new:
        return theirs
    total = theirs.mean * theirs.grains + ours.mean * ours.grains - read.mean * read.grains
    return StrategyState(theirs.grains + new, total / (theirs.grains + new))
