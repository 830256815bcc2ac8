"""What leaves: answers with their intervals and their price. Never a raw aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import FarthingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from farthing.accuracy.target import Target
    from farthing.privacy.loss import Booked

Float64 = NDArray[np.float64]

SHOWN_ROWS = 12
"""How many rows `repr` and the notebook show."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The numbers of an answer, one entry a group.

    Attributes:
        value, lower, upper: float64[groups] in answer units.
        met: bool[groups], whether the asked target was reached.
        paid: float64[groups], the group's own loss in this ask: mu, rho or epsilon. It does not add up.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: NDArray[np.bool_]
    paid: Float64

    def keep(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> Cells:
        """Return the cells of some groups only, or of all in another order."""
        return Cells(self.value[where], self.lower[where], self.upper[where], self.met[where], self.paid[where])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """The answer to one question: numbers with intervals, and what they cost.

    Each interval holds the truth *of the bounded data* with the stated confidence, whatever the truth is, for each
    group by itself (all groups at once if the target says `simultaneous`). Counts are signed: noise can push an empty
    group below zero, and clamping it would bias every total.

    Attributes:
        name: the answer column's name.
        keys: the public keys of the rows, an Arrow table; None for a single number.
        cells: the numbers, as arrays.
        target: what was asked for, or None where a loss was given instead.
        confidence: the chance that a group's interval holds its truth.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        about: what the numbers are about, in words: the privacy unit and its bounds.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> a = s.count(absolute=50)
    >>> bool(a.lower < a.upper), a.met
    (True, True)
    """

    name: str
    keys: pa.Table | None
    cells: Cells
    target: Target | None
    confidence: float
    paid: Booked
    remaining: Booked
    delta: float
    about: str
    _doubling: Callable[[], Booked | None]
    _refine: Callable[..., Answer]

    @property
    def value(self) -> Any:
        """The answers: float64[groups], or one float without groups."""
        return self._shaped(self.cells.value)

    @property
    def lower(self) -> Any:
        """The lower ends of the intervals: float64[groups], or one float without groups."""
        return self._shaped(self.cells.lower)

    @property
    def upper(self) -> Any:
        """The upper ends of the intervals: float64[groups], or one float without groups."""
        return self._shaped(self.cells.upper)

    @property
    def met(self) -> Any:
        """Whether the target was reached: bool[groups], or one bool without groups."""
        return self._shaped(self.cells.met)

    @property
    def group_paid(self) -> Any:
        """Each group's own loss in this ask (mu, rho or epsilon): float64[groups], or one float without groups."""
        return self._shaped(self.cells.paid)

    @property
    def doubling(self) -> Booked | None:
        """What the doubling baseline would have paid, computed from these released answers; None for a named loss."""
        return self._doubling()

    def _shaped(self, column: NDArray[Any]) -> Any:
        """Return an array as it is, or its only entry where there are no groups."""
        return column if self.keys is not None else column[0].item()

    def refine(self, **changes: Any) -> Answer:
        """Return a sharper answer to the same question, paying only the difference.

        Args:
            **changes: any of relative, absolute, confidence, simultaneous, loss, max_epsilon, cap, on_miss, progress;
                what is left out stays as it was asked.

        Raises:
            BudgetExceeded: the difference does not fit in what is left; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> a = s.count(absolute=100)
        >>> sharper = a.refine(absolute=50)
        >>> bool(sharper.upper - sharper.lower < a.upper - a.lower)
        True
        """
        return self._refine(**changes)

    def to_arrow(self) -> pa.Table:
        """Return the rows: the keys, <name>, <name>_lower, <name>_upper, met, paid."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        if self.keys is not None:
            columns.update({name: self.keys.column(name) for name in self.keys.column_names})
        cells = self.cells
        columns |= {
            self.name: cells.value,
            f"{self.name}_lower": cells.lower,
            f"{self.name}_upper": cells.upper,
            "met": cells.met,
            "paid": cells.paid,
        }
        return pa.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        try:
            import polars as pl
        except ImportError:
            raise FarthingError(
                "Polars is not installed",
                next_step="python -m pip install 'farthing[polars]'",
                rule="Polars is an extra",
            ) from None
        frame = pl.from_arrow(self.to_arrow())
        if not isinstance(frame, pl.DataFrame):  # pragma: no cover - a table always gives a frame
            raise TypeError(type(frame).__name__)
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain dictionaries, for JSON."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def chart(self, path: str | Path | None = None) -> Any:
        """Return an altair chart of the answer; with a path (.svg, .png, .html) save it too."""
        from farthing import charts

        names = tuple(self.keys.column_names) if self.keys is not None else ()
        picture = charts.answer_chart(
            self.to_arrow(), keys=names, name=self.name, title=self.caption, parameter=self.paid.parameter
        )
        if path is not None:
            charts.save(picture, path)
        return picture

    @property
    def caption(self) -> str:
        """The promise in one line: target, confidence, and how many groups met it."""
        met = int(self.cells.met.sum())
        groups = len(self.cells.met)
        goal = "at the loss you named" if self.target is None else f"within {self.target}"
        reached = "" if self.target is None else f", met by {met:,} of {groups:,}"
        return f"{self.name} {goal}, {self.confidence:.4g} confidence{reached}"

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        left = self.remaining
        text = f"paid {self.paid!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
        return f"{text}; left {left!r}" + (f" = epsilon {left.epsilon(self.delta):.4g}" if self.delta else "")

    def __repr__(self) -> str:
        table = self.to_arrow()
        rows = table.slice(0, SHOWN_ROWS).to_pylist()
        names = table.column_names
        text = [[_cell(row[name]) for name in names] for row in rows]
        widths = [
            max(len(name), *(len(line[i]) for line in text)) if text else len(name) for i, name in enumerate(names)
        ]
        lines = ["  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))]
        lines += ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in text]
        if table.num_rows > SHOWN_ROWS:
            lines.append(f"... {table.num_rows - SHOWN_ROWS:,} more rows")
        return "\n".join([*lines, self.caption, self.price, self.about])

    def _repr_html_(self) -> str:
        """Return the notebook's view: the first rows and the three lines below them."""
        from html import escape

        table = self.to_arrow()
        head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
        body = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:right'>{escape(_cell(cell))}</td>" for cell in row.values())
            + "</tr>"
            for row in table.slice(0, SHOWN_ROWS).to_pylist()
        )
        more = table.num_rows - SHOWN_ROWS
        notes = [f"... {more:,} more rows"] if more > 0 else []
        notes += [self.caption, self.price, self.about]
        text = "<br>".join(escape(line) for line in notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{text}</p>"


def _cell(value: object) -> str:
    """Return one cell as text: numbers with few digits, truth values as yes and no."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
        case None:
            return "NULL"
        case _:
            return str(value)
