"""What leaves where groups are chosen or ranked.

Of a private choice the names of the groups leave, best first, their price, and where the noise allows it their leads,
and no score with them; of a ranking their places and numbers too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.errors import InvalidTarget
from farthing.privacy.words import said
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chosen(Tabular):
    """The groups that were chosen, best first if that was told, and what the choice cost.

    Attributes:
        keys: the chosen groups, an Arrow table with the grouping columns, best first if they are ordered.
        k: how many were wanted; from groups that are not listed fewer may come back.
        paid: the loss of this choice, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after it.
        delta: the delta at which epsilons of this ledger are stated.
        goal: what was asked for, in words.
        about: how the groups were chosen, and from what.
        compared: the selections that give the same promise, with their prices, cheapest first.
        proved: where an order was asked for, whether released counts prove it; None otherwise.
        ahead: float64[k], how far each was ahead of the next of all groups, noise in both; one fewer if all groups were
            chosen. Exponential and Gaussian noise tell it at the price of the choice; None of others.
        settled: bool[k], whether the leads settle each place, all of them at once with the confidence; None likewise.
        ordered: whether the order was told. A joint choice tells none: its groups come in the order of their keys.

    >>> import pyarrow as pa
    >>> import farthing
    >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40 + ["c"] * 600})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> s.top_k("zone", k=2, keys={"zone": ["a", "b", "c"]}, within=200).rows()
    [{'rank': 1, 'zone': 'a'}, {'rank': 2, 'zone': 'c'}]
    """

    most_shown: ClassVar[int | None] = None

    keys: pa.Table
    k: int
    paid: Booked
    remaining: Booked
    delta: float
    goal: str
    about: str
    compared: tuple[tuple[str, Booked], ...] = ()
    proved: bool | None = None
    ahead: NDArray[np.float64] | None = None
    settled: NDArray[np.bool_] | None = None
    ordered: bool = True

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    def __iter__(self) -> Iterator[Any]:
        """Give the chosen groups, best first if they are ordered: values of one column, or tuples of several."""
        columns = [column.to_pylist() for column in self.keys.columns]
        return iter(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))

    def to_arrow(self) -> pa.Table:
        """Return the rows: the rank (from 1; NULL where no order was told) and the grouping columns."""
        import pyarrow as pa

        names = self.keys.column_names
        rank = "rank" if "rank" not in names else "rank_of_choice"
        told = range(1, len(self) + 1) if self.ordered else [None] * len(self)
        return pa.table([pa.array(told, pa.int64()), *self.keys.columns], names=[rank, *names])

    @property
    def caption(self) -> str:
        """The promise in one line: how many groups, how surely, and how many places their leads settle."""
        text = f"the {self.k} largest, {self.goal}" + "; in no order" * (not self.ordered)
        if self.settled is None:
            return text
        return f"{text}; {int(self.settled.sum())} of {len(self)} places settled by their leads"

    @property
    def price(self) -> str:
        """The price in one line: this choice and what is left."""
        text = f"paid {self._said(self.paid, at=True)}; left {self._said(self.remaining)}"
        others = ", ".join(f"{name} {loss!r}" for name, loss in self.compared)
        return f"{text}; compared: {others}" if len(self.compared) > 1 else text

    def _said(self, loss: Booked, *, at: bool = False) -> str:
        """Return a loss in words."""
        if not self.delta:
            return repr(loss)
        return f"{loss!r} = epsilon {loss.epsilon(self.delta):.4g}" + (f" at delta {self.delta:g}" if at else "")

    @property
    def footer(self) -> tuple[str, ...]:
        """The three lines below the rows: the promise, the price, and how it was done."""
        return self.caption, self.price, self.about


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking(Tabular):
    """The largest groups in order, with their numbers, and what is settled of it.

    Attributes:
        keys: the groups, an Arrow table with the grouping columns, best first.
        place: int64[k], the place of each, from 1; groups that are tied, or not told apart, share the first of theirs.
        value, lower, upper: float64[k], their numbers, with intervals that hold for all groups at once.
        settled: bool[k], whether the place is right with the confidence, all of them at once.
        tied: bool[k], whether it shares its place: the order there may be wrong, by less than was said not to matter;
            the groups themselves may be further apart.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after it.
        delta: the delta at which epsilons of this ledger are stated.
        goal: what was asked for, in words.
        about: what is not settled, and what the numbers are about.

    >>> import pyarrow as pa
    >>> import farthing
    >>> rides = pa.table({"zone": ["a"] * 9000 + ["b"] * 40 + ["c"] * 6000})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> ranking = s.ranking("zone", k=2, keys={"zone": ["a", "b", "c"]})
    >>> list(ranking), ranking.settled.tolist(), ranking.place.tolist()
    (['a', 'c'], [True, True], [1, 2])
    """

    most_shown: ClassVar[int | None] = None

    keys: pa.Table
    place: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    settled: NDArray[np.bool_]
    tied: NDArray[np.bool_]
    paid: Booked
    remaining: Booked
    delta: float
    goal: str
    about: str
    _refine: Callable[..., Ranking]

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    def __iter__(self) -> Iterator[Any]:
        """Give the groups, best first: values of one column, or tuples of several."""
        columns = [column.to_pylist() for column in self.keys.columns]
        return iter(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))

    def refine(self, *unnamed: Any, **changes: Any) -> Ranking:
        """Return the ranking with other terms: k, apart, apart_relative, confidence, cap or max_epsilon.

        A larger cap, more places and a smaller distance go on from what is there and pay the difference; fewer places,
        a larger distance and a smaller cap are free. Another confidence is a ranking of its own, and so is one with
        ties after one without.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 9000 + ["b"] * 40 + ["c"] * 6000})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> ranking = s.ranking("zone", k=2, keys={"zone": ["a", "b", "c"]})
        >>> bool(ranking.refine(k=1).paid)
        False
        """
        if unnamed:
            raise InvalidTarget(
                "refine was not told what to change",
                rule="k=, apart=, apart_relative=, confidence=, cap= or max_epsilon=",
                got=", ".join(map(repr, unnamed))[:80],
                next_step='ranking.refine(cap="all")',
            )
        return self._refine(**changes)

    def to_arrow(self) -> pa.Table:
        """Return the rows: place, the grouping columns, value, lower, upper, settled, tied."""
        import pyarrow as pa

        first = {"place" if "place" not in self.keys.column_names else "place_in_order": self.place}
        keys = dict(zip(self.keys.column_names, self.keys.columns, strict=True))
        last = {name: getattr(self, name) for name in ("value", "lower", "upper", "settled", "tied")}
        return pa.table(first | last | keys).select([*first, *keys, *(name for name in last if name not in keys)])

    @property
    def caption(self) -> str:
        """The promise in one line: how many groups, how surely, and how many places are settled."""
        return f"the {len(self)} largest, {self.goal}; {int(self.settled.sum())} of {len(self)} places settled"

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        return f"paid {said(self.paid, self.delta)}; left {said(self.remaining, self.delta)}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The three lines below the rows: the promise, the price, and how it was done."""
        return self.caption, self.price, self.about
