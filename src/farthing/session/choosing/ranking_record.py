"""What is wanted of a ranking, and what the ledger keeps of one."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.accuracy.ranking import RankingState
from farthing.errors import InvalidTarget
from farthing.session.core.records import read_blob, write_blob

_FORMAT = b"farthing-ranking-3"


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """How many places, how surely, and which leads do not matter.

    Attributes:
        k: how many places.
        confidence: the chance that all that is told as settled is right.
        apart: groups are told as tied where their order is wrong by less than this, in answer units; 0 for none.
        relative: the same as a part of the larger one.
    """

    k: int
    confidence: float
    apart: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise InvalidTarget(
                "k is not a number of places", rule="a whole number >= 1", got=repr(self.k), next_step="k=10"
            )
        for name, width, most in (("apart", self.apart, math.inf), ("apart_relative", self.relative, 1.0)):
            if isinstance(width, bool) or not isinstance(width, int | float) or not 0 <= width < most:
                raise InvalidTarget(
                    f"{name} is not a distance",
                    rule="apart >= 0 in answer units, or 0 <= apart_relative < 1",
                    got=f"{name}={width!r}",
                    next_step="apart=50, or apart_relative=0.05 for 5 %",
                )
        if self.apart and self.relative:
            raise InvalidTarget(
                "apart and apart_relative were both given",
                rule="one distance below which groups are tied",
                got=f"apart={self.apart:g}, apart_relative={self.relative:g}",
                next_step="drop one",
            )

    @property
    def words(self) -> str:
        """What is asked for, in words."""
        ties = f", but for ties: wrong by less than {self.apart:,.6g}" if self.apart else ""
        ties += f", but for ties: wrong by less than {100 * self.relative:.6g} %" if self.relative else ""
        return f"in the right order{ties}, {self.confidence:.4g} confidence"


def blob_of(standing: RankingState) -> bytes:
    """Return the blob that the ledger stores."""
    place = np.empty(len(standing.pilot), np.int64)
    for number, block in enumerate(standing.blocks):
        place[block] = number
    columns: dict[str, Any] = {
        "pilot": standing.pilot,
        "mean": standing.means,
        "information": standing.information,
        "block": place,
        "lead": standing.leads,
        "lead_grains": standing.lead_grains,
        "lead_information": standing.lead_information,
    }
    facts: dict[str, Any] = {"grains": standing.pilot_grains, "foreseen": standing.foreseen, "step": standing.step_log2}
    facts |= {"line": standing.line, "lines": standing.lines}
    return write_blob(columns, {_FORMAT: json.dumps(facts).encode()})


def standing_of(blob: bytes) -> RankingState:
    """Return the standing in a blob; refuse one that is not ours."""
    columns, facts = read_blob(blob, _FORMAT)
    place = columns["block"]
    k, apart = facts["foreseen"]
    begun = RankingState.begun(columns["pilot"], int(facts["grains"]), (k, apart))
    found = replace(
        begun,
        means=columns["mean"],
        information=columns["information"],
        leads=columns["lead"],
        lead_grains=columns["lead_grains"],
        lead_information=columns["lead_information"],
        step_log2=int(facts["step"]),
        line=int(facts.get("line", 0)),
        lines=int(facts.get("lines", 1)),
    )
    order = np.lexsort((-found.ordered, place))
    return replace(found, blocks=tuple(np.split(order, 1 + np.flatnonzero(np.diff(place[order])))))
