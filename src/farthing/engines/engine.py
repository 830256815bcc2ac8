"""What every engine promises, and the one thing it says when it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from farthing.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from farthing.query.query import Query
    from farthing.query.schema import Schema

PARTS_SALT: Final = 0x70617274
"""Joined to the hash key where the part of a unit is chosen, so that it tells nothing of the groups that it keeps."""


class Engine(Protocol):
    """Exact, bounded counts of one table. Raw: only the session may hold what `counts` returns.

    Guarantee: `counts` changes in at most `query.max_groups` places, each by at most `query.sensitivity`, when one unit
        is added or removed. Of the parts of one partition, one unit counts in one only: with a unit column in the one
        that a hash of unit, part and hash key chooses among those in which it has rows, whatever is asked of them.
    Proof: [design, bound last] rows that count (WHERE TRUE, key listed, unit not NULL) are aggregated per unit and
        group, each cell is cut to `sensitivity` rows, and the kept cells of a unit are chosen by a hash of unit, group
        and hash key: a function of that unit's own cells.
    Assumes: the engine computes what it is asked.
    Rounds: nothing.
    """

    @property
    def name(self) -> str:
        """The table's name in SQL."""

    @property
    def schema(self) -> Schema:
        """The table's columns."""

    def check(self) -> None:
        """Find out cheaply, before anything is charged, that the table is still there.

        Raises:
            DataError: it is not.
        """

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up.

        Two runs with equal fingerprints and hash keys choose the same groups.

        Raises:
            UnsupportedQuery: the engine cannot run this question.
        """

    def counts(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded counts, int64[groups], aligned with the keys; one query to the engine.

        Args:
            query: the question.
            hash_key: 64 secret bits, drawn once a ledger, that choose which groups of a unit are kept.

        Raises:
            DataError: the engine failed; the message is a constant.
        """


def engine_failed() -> DataError:
    """Return the one error of a failed engine: an engine's own words may quote a row, so they are dropped."""
    return DataError(
        "the engine could not finish the query",
        rule="what an engine says may depend on rows, so it is not repeated",
        next_step="check that the table is unchanged and that memory and disk suffice",
    )
