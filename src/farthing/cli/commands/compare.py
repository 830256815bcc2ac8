"""`farthing compare`: how many counts one budget returns at a target, method by method."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def compare(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two epsilons, four tasks and fewer sessions: under a minute.")
    ] = False,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="equal, zipf300, zipf1e6, flights, flights-tailnum or flights-hour."),
    ] = None,
    relative: Annotated[
        str, typer.Option(metavar="10%", help="The target: each count within this part of the truth, 95 %.")
    ] = "10%",
    trials: Annotated[
        str | None, typer.Option(metavar="1000", help="Sessions in each cell. Default: 1000; fewer if quick.")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="1", help="The seed of everything that is drawn.")] = "1",
    as_json: options.Json = False,
    chart: options.Chart = None,
) -> None:
    """Compare how many counts one budget returns at a named accuracy.

    Reruns the experiment of Rogers, Samorodnitsky, Wu and Ramdas (2023) on counts
    that are made up or public: find the largest count not yet returned, release
    it within 10 % of the truth, go on until (epsilon, 1e-6) is spent. Shows the
    mean number of counts returned, and how many of them are within the target.
    Spends nothing.

    Examples:
      farthing compare --quick
      farthing compare --task zipf1e6 --relative 5% --chart zipf.svg
    """
    with explained(as_json=as_json):
        from farthing.cli.run.compare import compare

        compare(tuple(task or ()), relative, trials, seed, quick=quick, as_json=as_json, chart=chart)
