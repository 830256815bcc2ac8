"""What the ledger keeps of tables: the residuals that were measured of one set of rows, for whatever tables."""

from __future__ import annotations

import json
import math
from typing import Final

import numpy as np

from farthing.mechanisms.residuals import Residual
from farthing.session.core.records import read_blob, write_blob

State = dict[tuple[int, ...], Residual]
"""The residuals by the places of their columns."""

_FORMAT: Final = b"farthing-residuals-1"


def added(theirs: State, read: State, ours: State) -> State:
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


def blob_of(state: State) -> bytes:
    """Return the blob that the ledger stores: all means in a row, and which residuals they are of."""
    subsets = sorted(state, key=lambda subset: (len(subset), subset))
    facts = [[list(subset), list(state[subset].mean.shape), state[subset].grains] for subset in subsets]
    means = [state[subset].mean.reshape(-1) for subset in subsets]
    return write_blob({"mean": np.concatenate(means)}, {_FORMAT: json.dumps(facts).encode()})


def state_of(blob: bytes) -> State:
    """Return the residuals in a blob; refuse one that is not ours."""
    columns, facts = read_blob(blob, _FORMAT)
    found, start = {}, 0
    for subset, shape, grains in facts:
        end = start + math.prod(shape)
        found[tuple(subset)] = Residual(int(grains), np.array(columns["mean"][start:end]).reshape(shape))
        start = end
    return found
