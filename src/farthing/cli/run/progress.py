"""What a terminal shows while something works: how a refinement closes in, or for how long a search has run."""

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
            task, total=seen.groups, completed=seen.done, look=seen.look, closing=seen.closing
        )


@contextmanager
def working(words: str) -> Iterator[None]:
    """Show on stderr what is done, and for how long it has been, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with Bar(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    ) as bar:  # fmt: skip
        bar.add_task(words, total=None)
        yield
