"""What the ledger keeps of tables: the residuals that were measured of one set of rows, for whatever tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from farthing.mechanisms.residuals import Residual
from farthing.session.core.records import read_blob, write_blob

State = dict[tuple[int, ...], Residual]
"""The residuals by the places of their columns."""

_FORMAT: Final = b"farthing-residuals-1"


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was measured of one set of rows.

    Attributes:
        answer: the residuals that answers are made of.
        pilot: those that only tell how precisely the others are to be measured.
    """

    answer: State = field(default_factory=dict)
    pilot: State = field(default_factory=dict)

    def joined(self, read: Kept, theirs: bytes) -> bytes:
        """Return a blob of all measurements: theirs, and those of ours that came on top of what was read."""
        other = Kept.from_bytes(theirs)
        answer = _added(other.answer, read.answer, self.answer)
        return Kept(answer, _added(other.pilot, read.pilot, self.pilot)).to_bytes()

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores: all means in a row, and which residuals they are of."""
        facts, means = [], [np.zeros(0)]
        for number, state in enumerate((self.answer, self.pilot)):
            for subset in sorted(state, key=lambda subset: (len(subset), subset)):
                facts.append([number, list(subset), list(state[subset].mean.shape), state[subset].grains])
                means.append(state[subset].mean.reshape(-1))
        return write_blob({"mean": np.concatenate(means)}, {_FORMAT: json.dumps(facts).encode()})

    @classmethod
    def from_bytes(cls, blob: bytes | None) -> Kept:
        """Return what is in a blob, nothing for None; refuse one that is not ours."""
        found = cls()
        if blob is None:
            return found
        columns, facts = read_blob(blob, _FORMAT)
        start = 0
        for number, subset, shape, grains in facts:
            end = start + math.prod(shape)
            mean = np.array(columns["mean"][start:end]).reshape(shape)
            (found.answer, found.pilot)[number][tuple(subset)] = Residual(int(grains), mean)
            start = end
        return found


def _added(theirs: State, read: State, ours: State) -> State:
    """Return the state of all measurements: theirs, and those of ours that came on top of what was read."""
    found = dict(theirs)
    for subset, after in ours.items():
        before, stands_now = read.get(subset), theirs.get(subset)
        new = after.grains - (0 if before is None else before.grains)
        if not new:
            continue
        total = after.mean * after.grains - (0 if before is None else before.mean * before.grains)
        if stands_now is None:
            found[subset] = Residual(new, total / new)
        else:
            grains = stands_now.grains + new
            found[subset] = Residual(grains, (stands_now.mean * stands_now.grains + total) / grains)
    return found
