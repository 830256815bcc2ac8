"""How an answer closed in on its target: every look of one ask, with what was paid so far. Made from released numbers.

The interval of a look that went on says how near the number was then, by the same constant as in the end. It is no
promise of its own: which looks were taken was decided by what the looks before them showed. The last interval of each
group is the answer's, and that one is promised.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing import tabular
from farthing.errors import UnsupportedQuery
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MOST_GROUPS: Final = 1_000
"""Looks are kept of questions about at most so many groups."""

MOST_LOOKS: Final = 64
"""So many looks are kept, the last ones."""

DRAWN: Final = 6
"""A picture draws at most so many groups, the largest answers."""

_NEAR: Final = 4
"""A picture shows what lies within so many half-widths of the answer."""

_ABREAST: Final = 3
_WIDTH, _HEIGHT = 480, 260
_BLUE, _GREY = "#0072B2", "#666666"


@dataclass(frozen=True, slots=True, eq=False)
class TraceLook:
    """One look at some groups of one answer column, as it was released.

    Attributes:
        name: the answer column.
        number: from 1; 0 for what was known before this ask.
        groups: int64[n], the places of the groups that were looked at.
        value, lower, upper: float64[n], in answer units; infinite ends where no interval is told yet.
        paid: float64[n], what a member of each group has paid in this ask so far: mu, rho or epsilon.
    """

    name: str
    number: int
    groups: Ints
    value: Floats
    lower: Floats
    upper: Floats
    paid: Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace(Tabular):
    """Every look of one ask, one row for each look at a group; each group's last row is its answer.

    Attributes:
        names: the answer columns.
        keys: the public keys of the groups, an Arrow table; None for a single number.
        column, group: int64[rows], which answer column and which group a row is about.
        look: int64[rows], the number of the look, from 1; 0 is what was known before this ask.
        value, lower, upper: float64[rows]; infinite ends where no interval was told.
        paid: float64[rows], what the group's members had paid in this ask by then.
        final: bool[rows], whether the row is the answer: only these intervals are promised.
        parameter: what `paid` is: "mu", "rho" or "epsilon".
        goal: the target in words.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(5000)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> answer = s.count(relative=0.05, absolute=20)
    >>> trace = answer.trace()
    >>> [row["final"] for row in trace.rows()][-1], trace.rows()[-1]["value"] == answer.value
    (True, True)
    """

    names: tuple[str, ...]
    keys: pa.Table | None
    column: Ints
    group: Ints
    look: Ints
    value: Floats
    lower: Floats
    upper: Floats
    paid: Floats
    final: NDArray[np.bool_]
    parameter: str
    goal: str

    def __len__(self) -> int:
        return len(self.look)

    def keep(self, places: Ints, keys: pa.Table | None) -> Trace:
        """Return the rows of some groups, in another order.

        Args:
            places: int64[groups], which groups, in their new order.
            keys: the keys of these.
        """
        new = np.full(int(max(self.group.max(initial=0), places.max(initial=0))) + 1, -1)
        new[places] = np.arange(len(places))
        group = new[self.group]
        order = np.lexsort((self.look, group, self.column))
        order = order[group[order] >= 0]
        columns = {name: getattr(self, name)[order] for name in _PER_ROW}
        return replace(self, keys=keys, **(columns | {"group": group[order]}))

    def to_arrow(self) -> pa.Table:
        """Return the rows: the keys; column, look, value, lower, upper, paid, final."""
        import pyarrow as pa

        keys = {} if self.keys is None else {name: self.keys.column(name) for name in self.keys.column_names}
        found = {name: values.take(pa.array(self.group)) for name, values in keys.items()}
        found["column"] = pa.array([self.names[place] for place in self.column.tolist()], pa.string())
        return pa.table(found | {name: getattr(self, name) for name in _PER_ROW[2:]})

    @property
    def caption(self) -> str:
        """What the rows are, in one line."""
        looks = int(self.look.max(initial=0))
        told = f"in {looks:,} look{'s' * (looks != 1)}" if looks else "known before, nothing was looked at"
        if not len(self):
            return f"{', '.join(self.names)} {self.goal}: no group is in the answer, so no look is told"
        return (
            f"{', '.join(self.names)} {self.goal}, {told}; paid in {self.parameter}; "
            "only a group's last interval is promised"
        )

    def text(self, most: int | None = None) -> str:
        """Return the rows as a table, at most so many of them, and below what they are."""
        return tabular.text(self.shown(), *self.footer, most=most)

    def shown(self) -> pa.Table:
        """Return the rows, the answer's marked with a word."""
        import pyarrow as pa

        table = self.to_arrow()
        said = pa.array(["answer" if final else "" for final in self.final.tolist()], pa.string())
        return table.set_column(table.num_columns - 1, "final", said)

    @property
    def footer(self) -> tuple[str, ...]:
        """The line below the rows: what they are."""
        return (self.caption,)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the notebook's view: the picture where charts are installed, else the rows."""
        from importlib.util import find_spec

        if find_spec("altair") is None or find_spec("vl_convert") is None or not len(self):
            return {"text/plain": repr(self), "text/html": self._repr_html_()}
        return self.chart()._repr_mimebundle_(**options)  # the notebook's own protocol

    def chart(self, path: str | Path | None = None, *, column: str | None = None) -> Any:
        """Return an altair chart of the intervals closing in, look by look; with a path save it too.

        Args:
            path: an .svg, .png or .html file, or None.
            column: the answer column; by default the first.
        """
        from farthing import charts
        from farthing.picture import still

        alt = charts.require_charts()
        rows = self._drawn(self.names[0] if column is None else column)
        picture = _picture(alt, rows, self.parameter).properties(title=charts.heading(alt, self.caption), padding=12)
        picture = picture.configure_axis(gridColor="#E6E6E6", labelFontSize=11, titleFontSize=12)
        if path is not None:
            charts.save(picture, path)
        return still(picture)

    def _drawn(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of the largest answers of one column that have an interval, as a picture takes them."""
        if name not in self.names or not len(self):
            raise UnsupportedQuery(
                f"the answer has no column {name!r}"
                if len(self)
                else "no group is in the answer: there is nothing to draw",
                construct="chart",
                rule="the looks of one answer column are drawn, of groups that are in the answer",
                next_step="the columns are " + ", ".join(self.names)
                if len(self)
                else 'on_miss="return" keeps groups that miss',
            )
        mine = self.column == self.names.index(name)
        groups, values = self.group[mine & self.final], self.value[mine & self.final]
        shown = groups[np.argsort(-values, kind="stable")[:DRAWN]].tolist()
        labels = dict.fromkeys(shown, name)
        if self.keys is not None:
            each = self.keys.take(shown).to_pylist()
            labels = {place: " / ".join(map(str, row.values())) for place, row in zip(shown, each, strict=True)}
        found = np.flatnonzero(mine & np.isin(self.group, shown) & np.isfinite(self.upper - self.lower))
        return [
            {"group": labels[int(self.group[row])], "column": name}
            | {
                field: getattr(self, field)[row].item()
                for field in ("look", "value", "lower", "upper", "paid", "final")
            }
            for row in sorted(found.tolist(), key=lambda row: (shown.index(self.group[row]), self.look[row]))
        ]


_PER_ROW: Final = ("column", "group", "look", "value", "lower", "upper", "paid", "final")


def trace(
    names: tuple[str, ...],
    columns: Sequence[tuple[Floats, Floats, Floats]],
    paid: Floats,
    looks: Sequence[TraceLook],
    *,
    parameter: str,
    goal: str,
) -> Trace:
    """Return the trace of an ask, its groups in the order of the answer's arrays and without keys.

    Args:
        names: the answer columns.
        columns: value, lower and upper of each, float64[groups] all: the answer.
        paid: float64[groups], what each group's members paid.
        looks: what was released on the way.
        parameter: "mu", "rho" or "epsilon".
        goal: the target in words.
    """
    groups = len(paid)
    parts: list[dict[str, Any]] = []
    for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
        mine = [look for look in looks if look.name == name]
        last = (paid > 0).astype(np.int64)
        for look in mine:
            last[look.groups] = look.number
        parts += [_rows(look, place, look.number < last[look.groups]) for look in mine]
        everywhere = np.arange(groups)
        answer = dict(zip(("value", "lower", "upper"), cells, strict=True))
        parts.append(_all(place, everywhere, look=last, **answer, paid=paid, final=np.ones(groups, np.bool_)))
    joined = {field: np.concatenate([part[field] for part in parts]) for field in _PER_ROW}
    made = Trace(names, None, **joined, parameter=parameter, goal=goal)
    return made.keep(np.arange(groups), None)


def _rows(look: TraceLook, place: int, on: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the rows of the groups that went on after a look."""
    ends = {name: getattr(look, name)[on] for name in ("value", "lower", "upper", "paid")}
    return _all(place, look.groups[on], look=look.number, **ends, final=False)


def _all(place: int, groups: Ints, **columns: Any) -> dict[str, Any]:
    """Return rows as arrays of one length."""
    return {"column": np.full(len(groups), place), "group": groups} | {
        name: np.broadcast_to(values, groups.shape) for name, values in columns.items()
    }


def _picture(alt: Any, rows: list[dict[str, Any]], parameter: str) -> Any:
    """Return one panel a group; what was known before stands at the left edge."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    panels = [_panel(alt, [row for row in rows if row["group"] == group], parameter, len(groups)) for group in groups]
    return alt.concat(*panels, columns=1 if len(groups) == 1 else _ABREAST)


def _panel(alt: Any, rows: list[dict[str, Any]], parameter: str, of: int) -> Any:
    """Return the picture of one group: the intervals of its looks, its values, and the answer at the end.

    It begins one look before the first that came near; those before it would tell nothing at this scale.
    """
    last = rows[-1]
    half, middle = (last["upper"] - last["lower"]) / 2, (last["upper"] + last["lower"]) / 2
    near = next(place for place, row in enumerate(rows) if row["upper"] - row["lower"] <= 2 * _NEAR * half)
    rows = rows[max(0, near - 1) :]
    away = max(abs(row[end] - middle) for row in rows for end in ("lower", "upper"))
    most = min(_NEAR * half, 1.1 * away)
    shown = alt.Scale(domain=[middle - most, middle + most], nice=False)
    spans = alt.Scale(domain=[rows[0]["look"] - 0.5, last["look"] + 0.5], nice=False)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("look:Q", title=f"look, and {parameter} paid by then", axis=_looks(alt, rows), scale=spans)
    )
    axis = alt.Axis(format=",~r", tickCount=6)
    ends = {"y": alt.Y("lower:Q", title=last["column"], scale=shown, axis=axis), "y2": "upper:Q"}
    band = base.mark_area(opacity=0.12, color=_GREY, clip=True).encode(**ends)
    looks = base.transform_filter("!datum.final").mark_rule(color=_GREY, strokeWidth=2, clip=True).encode(**ends)
    answer = base.transform_filter("datum.final").mark_rule(color=_BLUE, strokeWidth=5, opacity=0.5).encode(**ends)
    width, height = (_WIDTH, _HEIGHT) if of == 1 else (_WIDTH * 2 // 5, _HEIGHT * 3 // 5)
    return alt.layer(band, looks, answer, _points(alt, base)).properties(
        title="" if of == 1 and last["group"] == last["column"] else last["group"], width=width, height=height
    )


def _points(alt: Any, base: Any) -> Any:
    """Return the values of the looks; the answer stands out."""
    fields = (("value", "value"), ("lower", "from"), ("upper", "to"), ("paid", "paid"))
    return base.mark_point(filled=True, size=50, opacity=1, clip=True).encode(
        y="value:Q",
        color=alt.condition("datum.final", alt.value(_BLUE), alt.value(_GREY)),
        shape=alt.condition("datum.final", alt.value("diamond"), alt.value("circle")),
        tooltip=[alt.Tooltip("look:Q"), *(alt.Tooltip(f"{name}:Q", title=as_, format=",.4~r") for name, as_ in fields)],
    )


def _looks(alt: Any, rows: list[dict[str, Any]]) -> Any:
    """Return the axis of the looks: their numbers, and below them what was paid; 0 is what was known before."""
    said = {row["look"]: [str(row["look"]) if row["look"] else "before", f"{row['paid']:.3g}"] for row in rows}
    return alt.Axis(values=list(said), labelExpr=f"{json.dumps(said)}[datum.value]", labelOverlap="greedy", grid=False)
