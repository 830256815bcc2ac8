"""What the ledger keeps of tables: the residuals that were measured of one set of rows, for whatever tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.residuals import NoiseShape, Residual
from farthing.mechanisms.shared_noise import SharedNoise, patterns_of
from farthing.session.core.records import read_blob, write_blob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

State = dict[tuple[int, ...], Residual]
"""The residuals by the places of their columns."""

_FORMAT: Final = b"farthing-residuals-4"
_BEFORE: Final = (b"farthing-residuals-3", b"farthing-residuals-2", b"farthing-residuals-1")


@dataclass(frozen=True, slots=True, eq=False)
class Shaped:
    """Residuals whose noise differs by cell.

    Attributes:
        weights: by column, the weights of its values.
        shapes: by subset, how its noise differs.
        state: what was measured.
        wanted: the grains that each residual was to have, whether or not it was measured so far.
        shared: the noise that all of them share, if any: each look measures all of them, with numbers of its own.
    """

    weights: Mapping[int, NDArray[np.int64]]
    shapes: Mapping[tuple[int, ...], NoiseShape]
    state: State
    wanted: Mapping[tuple[int, ...], int]
    shared: SharedNoise | None = None

    def alike(self, other: Shaped) -> bool:
        """Return whether another is of the same shapes."""
        shared = self.shared is other.shared if self.shared is None else self.shared.same(other.shared)
        return (
            shared
            and self.shapes.keys() == other.shapes.keys()
            and all(
                np.array_equal(one.added, other.shapes[subset].added)
                and all(map(np.array_equal, one.weights, other.shapes[subset].weights))
                for subset, one in self.shapes.items()
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was measured of one set of rows.

    Attributes:
        answer: the residuals that answers are made of.
        pilot: those that only tell how precisely the others are to be measured.
        shaped: those of relative targets, whose noise differs by cell.
    """

    answer: State = field(default_factory=dict)
    pilot: State = field(default_factory=dict)
    shaped: tuple[Shaped, ...] = ()

    def with_state(self, name: str, state: State) -> Kept:
        """Return this with another state of the answer or of the pilot."""
        return replace(self, answer=state) if name == "answer" else replace(self, pilot=state)

    def joined(self, read: Kept, theirs: bytes) -> bytes:
        """Return a blob of all measurements: theirs, and those of ours that came on top of what was read."""
        other = Kept.from_bytes(theirs)
        answer = _added(other.answer, read.answer, self.answer)
        pilot = _added(other.pilot, read.pilot, self.pilot)
        return Kept(answer, pilot, _joined(other.shaped, read.shaped, self.shaped)).to_bytes()

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores: all numbers in a row, and which residuals they are of."""
        facts, numbers = [], [np.zeros(0)]
        for number, state in enumerate((self.answer, self.pilot, *(one.state for one in self.shaped))):
            for subset in _ordered(state):
                facts.append([number, list(subset), list(state[subset].mean.shape), state[subset].grains])
                numbers.append(state[subset].mean.reshape(-1))
        for one in self.shaped:
            numbers += [one.shapes[subset].added.reshape(-1) for subset in _ordered(one.shapes)]
            numbers += [] if one.shared is None else _flat(one.shared)
        weights = [{place: each.tolist() for place, each in one.weights.items()} for one in self.shaped]
        wanted = [[one.wanted[subset] for subset in _ordered(one.state)] for one in self.shaped]
        shared = [None if one.shared is None else len(one.shared.scales) for one in self.shaped]
        said = json.dumps({"residuals": facts, "weights": weights, "wanted": wanted, "shared": shared}).encode()
        return write_blob({"mean": np.concatenate(numbers)}, {_FORMAT: said})

    @classmethod
    def from_bytes(cls, blob: bytes | None) -> Kept:
        """Return what is in a blob, nothing for None; refuse one that is not ours."""
        if blob is None:
            return cls()
        columns, told = read_blob(blob, _FORMAT, *_BEFORE)
        told = told if isinstance(told, dict) else {"residuals": told, "weights": []}
        facts, listed = told["residuals"], told["weights"]
        numbers, start = columns["mean"], 0

        def taken(shape: list[int]) -> NDArray[np.float64]:
            """Return the next numbers, so shaped."""
            nonlocal start
            start += math.prod(shape)
            return np.array(numbers[start - math.prod(shape) : start]).reshape(shape)

        states: list[State] = [{} for _ in range(2 + len(listed))]
        for number, subset, shape, grains in facts:
            states[number][tuple(subset)] = Residual(int(grains), taken(shape))
        shaped = []
        for number, (each, state) in enumerate(zip(listed, states[2:], strict=True)):
            weights = {int(place): np.array(values, np.int64) for place, values in each.items()}
            shapes = {}
            for subset in _ordered(state):
                own = tuple(weights[place] for place in subset)
                shapes[subset] = NoiseShape(own, taken([len(values) for values in own]))
            held = [state[subset].grains for subset in _ordered(state)]
            grains = told["wanted"][number] if "wanted" in told else held
            many = told["shared"][number] if "shared" in told else None
            shared = None if many is None else _shared(taken, [len(weights[at]) for at in sorted(weights)], many)
            wanted = dict(zip(_ordered(state), map(int, grains), strict=True))
            shaped.append(Shaped(weights, shapes, state, wanted, shared))
        return cls(states[0], states[1], tuple(shaped))


def _flat(noise: SharedNoise) -> list[NDArray[np.float64]]:
    """Return the numbers of made-up rows, as `_shared` takes them."""
    return [each.reshape(-1) for each in (*noise.patterns, noise.scales)]


def _shared(taken: Callable[[list[int]], NDArray[np.float64]], sizes: list[int], many: int | list[int]) -> SharedNoise:
    """Return the made-up rows whose numbers are taken next: so many; or, of an earlier version, as groups of values."""
    if isinstance(many, int):
        return SharedNoise(tuple(taken([many, size]) for size in sizes), taken([many]))
    count, *groups = many
    rows = taken([count, len(sizes)]).astype(np.int64)
    masks = [taken([number, size]) > 0 for number, size in zip(groups, sizes, strict=True)]
    return SharedNoise(tuple(patterns_of(rows[:, at], each) for at, each in enumerate(masks)), taken([count]))


def _ordered(subsets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return subsets in one order."""
    return sorted(subsets, key=lambda subset: (len(subset), subset))


def _joined(theirs: tuple[Shaped, ...], read: tuple[Shaped, ...], ours: tuple[Shaped, ...]) -> tuple[Shaped, ...]:
    """Return all shaped residuals: theirs, and those of ours that came on top of what was read."""
    found = list(theirs)
    for number, one in enumerate(ours):
        at = next((at for at, other in enumerate(theirs) if other.alike(one)), None)
        if number >= len(read):
            found.append(one)
        elif at is not None:
            wanted = {subset: max(grains, one.wanted[subset]) for subset, grains in theirs[at].wanted.items()}
            found[at] = replace(one, state=_added(theirs[at].state, read[number].state, one.state), wanted=wanted)
    return tuple(found)


def _added(theirs: State, read: State, ours: State) -> State:
    """Return the state of all measurements: theirs, and those of ours that came on top of what was read."""
    found = dict(theirs)
    for subset, after in ours.items():
        nothing = Residual(0, np.zeros_like(after.mean))
        before, stands_now = read.get(subset, nothing), theirs.get(subset, nothing)
        new = after.grains - before.grains
        if before.same(stands_now):  # nobody came between: what is stored is what is told, to the last bit
            found[subset] = after
        elif new:
            total = stands_now.mean * stands_now.grains + after.mean * after.grains - before.mean * before.grains
            found[subset] = Residual(stands_now.grains + new, total / (stands_now.grains + new))
    return found
