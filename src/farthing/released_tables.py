"""What releases of every kind show: tables of numbers with intervals, their promise and their price."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidOption
from farthing.folders import beside, named, writing
from farthing.privacy.words import state
from farthing.tabular import Tabular
from farthing.workloads.factors import ConditionFactor, ListedFactor, MatrixFactor, PrefixFactor, RangeFactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.limits import Limit
    from farthing.planning.release_plan import BaseReleasePlan, Candidate
    from farthing.privacy.loss import Booked
    from farthing.workloads.factors import Axis, Factor

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTable(Tabular):
    """Numbers of a release that stand together, with an interval for each.

    Attributes:
        name: the answer column.
        labels: what tells the numbers along each axis apart, as Arrow arrays by column, a mapping for each axis.
        value: float64[numbers of each axis]. They are signed and not whole.
        half_width: as shaped, the half-widths of the intervals.
        target: the half-width that was asked, as shaped or one for all; or infinity.
        paid: what members paid in this ask, at most: mu or rho.
        parameter: the parameter of the loss, "mu" or "rho".
        words: what it is a table of, in words.
    """

    name: str
    labels: tuple[Mapping[str, pa.Array], ...]
    value: Float64
    half_width: Float64
    target: Float64 | float
    paid: float
    parameter: str
    words: str

    @property
    def lower(self) -> Float64:
        """The lower ends of the intervals, shaped as the numbers."""
        return self.value - self.half_width

    @property
    def upper(self) -> Float64:
        """The upper ends of the intervals, shaped as the numbers."""
        return self.value + self.half_width

    @property
    def met(self) -> NDArray[np.bool_]:
        """Whether each interval is as narrow as was asked, shaped as the numbers."""
        return np.asarray(self.half_width <= self.target * (1 + 1e-9))

    @property
    def keys(self) -> dict[str, pa.Array]:
        """What tells the numbers apart, by column."""
        return {column: values for one in self.labels for column, values in one.items()}

    def to_arrow(self) -> pa.Table:
        """Return one row a number, first axis slowest: labels, <name>, <name>_lower, <name>_upper, met, paid."""
        import pyarrow as pa

        places = np.unravel_index(np.arange(self.value.size), self.value.shape) if self.labels else ()
        columns: dict[str, Any] = {
            column: values.take(pa.array(at))
            for labels, at in zip(self.labels, places, strict=True)
            for column, values in labels.items()
        }
        columns |= {self.name: self.value.reshape(-1), f"{self.name}_lower": self.lower.reshape(-1)}
        columns |= {f"{self.name}_upper": self.upper.reshape(-1), "met": self.met.reshape(-1)}
        return pa.table(columns | {"paid": np.full(self.value.size, self.paid)})

    def chart(self, path: str | Path | None = None) -> Any:
        """Return an altair chart of the numbers, in the order of the keys; with a path save it too.

        Args:
            path: an .svg, .png or .html file, or None.
        """
        from farthing import charts

        if path is not None:
            charts.require_format(path)
        picture = charts.answer_chart(
            self.to_arrow(),
            keys=tuple(self.keys),
            name=self.name,
            title=self.caption,
            parameter=self.parameter,
            in_order=True,
        )
        if path is not None:
            charts.save(picture, path)
        return picture

    @property
    def caption(self) -> str:
        """What is shown, in one line."""
        least, most = f"{self.half_width.min():.4g}", f"{self.half_width.max():.4g}"
        return f"{self.words}, each within +/-{most if least == most else f'{least} to {most}'}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The line below the numbers: what is shown."""
        return (self.caption,)


@dataclass(frozen=True, eq=False, repr=False)
class BaseRelease(Tabular):
    """A release of any kind: tables of numbers with intervals, their promise and their price.

    Each interval holds the number *of the bounded data* with the stated confidence, whatever it is; all of them at once
    where that was asked.

    Attributes:
        name: the answer column of every table.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        about: what the numbers are about, in words: the privacy unit and its bounds.
    """

    name: str
    paid: Booked
    remaining: Booked
    delta: float
    about: str
    _plan: BaseReleasePlan
    _together: float
    _refine: Callable[..., Any]
    _limit: Callable[[], Limit]

    @property
    @abstractmethod
    def parts(self) -> Sequence[tuple[str, ReleasedTable]]:
        """The tables of the workload, each with its words."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """The promise in one line."""

    @property
    def rmse(self) -> float:
        """The root mean squared error of a number, every one of the workload alike."""
        return self._plan.rmse

    @property
    def mechanism(self) -> str:
        """How it was measured."""
        return self._plan.mechanism

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What each way to measure would have paid for the same goal, or reached with the same loss; from nothing."""
        return self._plan.contest

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return self._plan.goal.confidence

    @property
    def confidence_together(self) -> float:
        """The chance that an interval and those of all releases of the same rows before it hold their truth.

        Whoever decides by one release whether, and how much more sharply, to ask again has this, not `confidence`.
        Asking again free of charge adds no chance of a miss. With together=True it never falls below the confidence.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import prefixes
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(prefixes("a", range(9)), absolute=60)
        >>> release.confidence_together, round(release.refine(absolute=50).confidence_together, 3)
        (0.95, 0.888)
        """
        return min(round(self._together, 12), 1.0)

    @property
    def goal(self) -> str:
        """What was asked, in words."""
        return self._plan.goal.words

    @property
    def sure(self) -> str:
        """The confidence in words."""
        said = f"{self.confidence:.4g} confidence"
        if self.confidence_together < self.confidence:
            said += f" ({self.confidence_together:.4g} together with earlier answers)"
        return said

    def optimality(self) -> Limit:
        """Return the least loss that any unbiased mechanism could have paid for this, beside what was paid in all.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
        >>> bool(1 <= release.optimality().ratio < 1.01)
        True
        """
        return self._limit()

    def refine(self, **changes: Any) -> Self:
        """Return a sharper release of the same workload, for the difference.

        Args:
            **changes: any of relative, absolute, rms, confidence, simultaneous, together, loss, max_epsilon, cap; what
                is left out stays. Of products, from an error of every answer to a mean one, or back, it is a release of
                its own, paid from nothing.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
        >>> release.refine(absolute=40).rmse < release.rmse
        True
        """
        sharper: Self = self._refine(**changes)
        return sharper

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write each table of the workload as a Parquet file into a folder, named after its words; return the files.

        A new folder has all of them or is not there, each file is whole or not there, whatever stops the process. A
        folder that is there stays the one that it is, with its rights.

        Raises:
            InvalidOption: the folder has one of the files already.
            DataError: they cannot be written there.
        """
        import pyarrow.parquet as pq

        directory, parts = Path(folder), self.parts
        files = [directory / f"{number:03d}-{_plain(words)}.parquet" for number, (words, _) in enumerate(parts, 1)]
        there = next((file for file in files if file.exists()), None)
        if there is not None:
            raise InvalidOption(
                "a file of the release is there already",
                rule="files are not written over",
                got=there.name,
                next_step="name a new folder",
            )
        with writing(directory):
            directory.parent.mkdir(parents=True, exist_ok=True)
        with beside(directory) as near, writing(directory):
            for file, (_, table) in zip(files, parts, strict=True):
                pq.write_table(table.to_arrow(), near / file.name)
            named(near, directory)
        return files

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain values, for JSON: its tables, its promise, its price; losses with their epsilon.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import prefixes
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> list(s.release(prefixes("a", range(9)), absolute=60).to_dict())[:3]
        ['tables', 'goal', 'confidence']
        """
        return {
            "tables": [{"words": words, "rows": table.rows()} for words, table in self.parts],
            "goal": self.goal,
            "confidence": self.confidence,
            "confidence_together": self.confidence_together,
            "rmse": self.rmse,
            "mechanism": self.mechanism,
            "paid": state(self.paid, self.delta),
            "remaining": state(self.remaining, self.delta),
            "about": self.about,
        }

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        text, left = f"paid {self.paid!r}", f"left {self.remaining!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
            left += f" = epsilon {self.remaining.epsilon(self.delta):.4g}"
        return f"{text}; {left}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the numbers: the promise, the price, what they are about."""
        return self.caption, self.price, self.about


def _plain(words: str) -> str:
    """Return words as part of a file's name: letters, digits, dashes."""
    return "".join(letter if letter.isalnum() else "_" for letter in words)[:80]


def labels_of(factor: Factor, keys: Mapping[Axis, pa.Array]) -> dict[str, pa.Array]:
    """Return what tells the answers of a factor apart.

    Args:
        factor: of a workload.
        keys: the listed values of its columns.
    """
    import pyarrow as pa

    match factor:
        case ListedFactor():
            return {factor.column: keys[factor.column]}
        case PrefixFactor():
            return {f"{factor.bins.column}_to": pa.array(factor.bins.edges[1:])}
        case RangeFactor():
            first, last = np.triu_indices(len(factor.bins.edges) - 1)
            edges = np.array(factor.bins.edges)
            stem = factor.bins.column
            return {f"{stem}_from": pa.array(edges[first]), f"{stem}_to": pa.array(edges[last + 1])}
        case ConditionFactor():
            return {"condition": pa.array([factor.truth.condition])}
        case MatrixFactor():
            return {"row": pa.array(np.arange(len(factor.entries)))}
