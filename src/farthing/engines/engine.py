"""What every engine promises, and the one thing it says when it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from farthing.errors import DataError
from farthing.query.per_unit import columns_of_source, scoped

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.joins import Join
    from farthing.query.per_unit import Derived
    from farthing.query.query import Query
    from farthing.query.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Bounded rows by group and leaf; pairs without rows are left out. Raw, like all that engines return.

    Attributes:
        groups: int64[cells], the group's place in the key list.
        leaves: int64[cells], which of the 2^leaves_log2 equal steps from lower to upper the clamped value is in, the
            last one closed; of whole numbers, the value less lower.
        counts: int64[cells], rows, > 0.
    """

    groups: NDArray[np.int64]
    leaves: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FoundGroups:
    """The groups that exist, with what units count by in each. Raw: presence itself is private.

    Attributes:
        keys: an Arrow table of key combinations, one row per group, columns named as the question's `by`.
        units: int64[groups], the sum of what units count by in the group, > 0: without shares their number.
    """

    keys: pa.Table
    units: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How units spread, each unit in one place of each histogram. Raw.

    Attributes:
        groups: int64[32], units by floor(log2) of the number of listed groups in which they have rows that count.
        rows: int64[32], units by floor(log2) of their most rows in one group; of a value, of those rows that have it.
        least, greatest: int64[129], units by the `bucket` of their least and greatest value; all zero without a value.
    """

    groups: NDArray[np.int64]
    rows: NDArray[np.int64]
    least: NDArray[np.int64]
    greatest: NDArray[np.int64]


BUCKETS: Final = 129
"""Places of a value by sign and magnitude: 64 for zero and below 2^-32; 64 + k, 64 - k for +-[2^(k-33), 2^(k-32)), k of
1 to 64, the last without end."""


Shares: TypeAlias = tuple[tuple[int, int], ...]
"""What a unit counts by in each of its groups, by how many it keeps: (most, share), see `Engine.found`."""


class Described(Protocol):
    """What anybody may know of a table."""

    @property
    def schema(self) -> Schema:
        """The table's columns."""

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The columns of the tables that questions may join, by name."""


class Engine(Protocol):
    """Exact, bounded measures of one table. Raw: only the session may hold what `measure` and its siblings return.

    Guarantee: when one unit is added or removed, each row of `measure` changes in at most `query.max_groups` places,
        each by at most the measure's sensitivity; `histogram` in at most `max_groups` groups, by `max_rows` rows in
        each; `found` in k <= `max_groups` groups, by the share of k or by 1 in each; `crossed` in at most `max_groups`
        combinations of all columns, by `max_rows` rows in each. Of the parts of one partition, one unit counts in one
        only: with a unit column in the one that a hash of unit, part and hash key chooses among those in which it has
        rows, whatever is asked of them.
    Proof: [design, bound last] rows that count (WHERE TRUE, key listed, unit not NULL) are aggregated per unit and
        group, each cell is cut to `max_rows` rows, and the kept cells of a unit are chosen by a hash of unit, group
        and hash key: a function of that unit's own cells. In full in docs/proofs/engines.bounded.md.
    Assumes: the engine computes what it is asked.
    Rounds: nothing.
    """

    @property
    def name(self) -> str:
        """The table's name in SQL."""

    @property
    def schema(self) -> Schema:
        """The table's columns."""

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The columns of the tables that questions may join, by name."""

    @property
    def public(self) -> frozenset[str]:
        """Which of these are public; the others carry the unit column."""

    def check(self, *, after_failure: bool = False) -> None:
        """Find out cheaply, before anything is charged, that the table is still there.

        Args:
            after_failure: look closer, at public metadata only: whether the columns are those of the opening.

        Raises:
            DataError: it is not, or they are not.
        """

    def close(self) -> None:
        """Close what the engine itself opened; nothing can be asked after that. Closing twice is fine."""

    def identity(self) -> str:
        """Return what tells one state of all tables from another without looking at rows; "" where nothing does.

        Raises:
            DataError: a file is gone.
        """

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up.

        Two runs with equal fingerprints and hash keys choose the same groups.

        Raises:
            UnsupportedQuery: the engine cannot run this question.
        """

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[len(query.measures), groups]; one query to the engine.

        Args:
            query: the question.
            hash_key: 64 secret bits, drawn once a ledger, that choose which groups of a unit are kept.

        Raises:
            DataError: the engine failed; the message is a constant.
        """

    def histogram(self, query: Query, quantile: Quantile, hash_key: int) -> Histogram:
        """Return the bounded rows by group and leaf; of more than max_rows of a unit a hash chooses which count."""

    def found(self, query: Query, hash_key: int, shares: Shares = ()) -> FoundGroups:
        """Return the groups that exist and their units, for a question without outputs.

        Args:
            query: the question.
            hash_key: as in `measure`.
            shares: (most, share) pairs: a unit that keeps k groups counts in each by the first share whose `most` is at
                least k; the last is for all up to `max_groups`. Empty: by 1.
        """

    def crossed(self, query: Query, crossing: Crossing, hash_key: int) -> list[NDArray[np.int64]]:
        """Return the bounded rows by every set of columns, int64[sizes] each; one query to the engine.

        A row counts whose value is listed in every grouping column. Of a unit at most `max_rows` rows count in one
        combination of all of them, and those of `max_groups` combinations, which a hash of unit, listed places and hash
        key chooses: all sets tell of the same rows.

        Args:
            query: the question, without outputs and joins.
            crossing: the listed values and the sets.
            hash_key: as in `measure`.
        """

    def listed(self, column: str, table: str | None) -> pa.Array:
        """Return the distinct values of a column of a public table; without a table, the categories of its type.

        Raises:
            InvalidKeys: the column has no categories that its type declares.
        """

    def spread(self, query: Query, value: Scalar | None, hash_key: int) -> Spread:
        """Return how much units would contribute without any bounds, before anything is cut.

        Of a value only the units that have it somewhere are told: they are cut by all their groups, since these are
        given up whether or not the value is there, and by their rows that have it. Of a part of a partition only the
        units that the hash keeps in that part are told, as everywhere.
        """


def scope(
    engine: Described,
    joins: tuple[Join, ...],
    *,
    unit: str | None = None,
    derived: tuple[Derived, ...] = (),
    source: str | None = None,
) -> Schema:
    """Return the columns that expressions may name: the source's own, and "table.column" of joined ones."""
    return columns_of_source(scoped(engine.schema, engine.tables, unit, derived), source, joins)


def engine_failed() -> DataError:
    """Return the one error of a failed engine: an engine's own words may quote a row, so they are dropped."""
    return DataError(
        "the engine could not finish the query",
        rule="what an engine says may depend on rows, so it is not repeated",
        next_step="check that the table is unchanged and that memory and disk suffice",
    )


def filled(
    crossing: Crossing, sets: NDArray[np.int64], cells: NDArray[np.int64], rows: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the counts by every set, from the cells that are not empty: the set's number, the cell's place, rows."""
    import numpy as np

    counts = [np.zeros(crossing.shape(places), np.int64) for places in crossing.sets]
    order = np.argsort(sets, kind="stable")
    ends = np.searchsorted(sets[order], np.arange(len(counts) + 1))
    for number, one in enumerate(counts):
        here = order[ends[number] : ends[number + 1]]
        np.add.at(one.reshape(-1), cells[here], rows[here])
    return counts
