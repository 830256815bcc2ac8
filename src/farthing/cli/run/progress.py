"""A bar that shows how a refinement closes in, on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.session import Progress


@contextmanager
def progress() -> Iterator[Callable[[Progress], None] | None]:
    """Give a callback that draws a bar on stderr while groups are refined; None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("refining"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("groups, look {task.fields[look]}{task.fields[closing]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("refining", total=None, look=0, closing="")
        yield lambda seen: bar.update(
            task, total=seen.groups, completed=seen.done, look=seen.look, closing=closing(seen)
        )


def closing(seen: Progress) -> str:
    """Return how near a refinement has come: the group furthest from its target, and what was paid so far.

    >>> from farthing import Gdp, Progress
    >>> closing(Progress(look=3, groups=8, done=2, half_width=412.3, furthest=412.3, target=50.0, paid=Gdp(0.01)))
    ': +/-412 on the way to +/-50, paid mu 0.01'
    """
    if seen.furthest is None or seen.target is None:
        return ""
    paid = "" if seen.paid is None else f", paid {seen.paid.parameter} {seen.paid.value:.3g}"
    return f": +/-{_short(seen.furthest)} on the way to +/-{_short(seen.target)}{paid}"


def _short(width: float) -> str:
    """Return a half-width with three figures."""
    return f"{width:,.0f}" if width >= 100 else f"{width:.3g}"
