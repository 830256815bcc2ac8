"""Charts in notebooks and files: static pictures beside what is drawn by a script, with the texts in them guarded."""

from __future__ import annotations

import json
from typing import Any, Final

from farthing.query import outward


def still(chart: Any) -> Any:
    """Return a chart of altair that shows itself in a notebook as a static picture too, for which it needs no network.

    Frontends that draw Vega-Lite themselves (JupyterLab, VS Code) still do; all others take the SVG, drawn here with
    its texts guarded as in a file.

    >>> import altair as alt
    >>> import farthing.picture
    >>> shown = farthing.picture.still(alt.Chart(alt.Data(values=[{"n": 3}])).mark_point().encode(x="n:Q"))
    >>> sorted(shown._repr_mimebundle_())[1:], isinstance(shown, alt.Chart)
    (['image/svg+xml', 'text/plain'], True)
    """
    kind = kind_of(chart)
    own = {"_repr_mimebundle_": _bundle, "__module__": kind.__module__}
    object.__setattr__(chart, "__class__", type(kind.__name__, (kind,), own))
    return chart


def _bundle(chart: Any, **_: Any) -> dict[str, Any]:
    """Return what a notebook may show of a chart: itself, a picture of it, and its title."""
    from io import StringIO

    spec = guarded(chart.to_dict())
    drawn = StringIO()
    kind_of(chart).from_dict(spec).save(drawn, format="svg")
    version = str(spec["$schema"]).rpartition("/v")[2].partition(".")[0]
    return {
        f"application/vnd.vegalite.v{version}+json": spec,
        "image/svg+xml": drawn.getvalue(),
        "text/plain": repr(chart),
    }


def kind_of(chart: Any) -> Any:
    """Return altair's own class of a chart."""
    return next(kind for kind in type(chart).__mro__ if vars(kind).get("_repr_mimebundle_") is not _bundle)


_PROGRAMS: Final = frozenset({"labelExpr", "expr", "calculate", "test", "filter"})
"""Parts of a chart's description that are programs; the labels in ours are guarded where they are made."""


class InPage(json.JSONEncoder):
    """JSON that cannot end the script that it stands in."""

    def encode(self, o: Any) -> str:
        """Return a value as JSON."""
        return super().encode(o).replace("<", "\\u003c")


def guarded(part: Any) -> Any:
    """Return a part of a chart's description with all its texts fit to be drawn."""
    match part:
        case dict():
            return {name: value if name in _PROGRAMS else guarded(value) for name, value in part.items()}
        case list():
            return [guarded(value) for value in part]
        case str():
            return outward.drawn(part)
        case _:
            return part
