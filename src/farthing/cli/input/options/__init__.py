"""The options that several commands take, declared once, with their lines of help; and how a command takes them."""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

ACCURACY: Final = "Accuracy"
PRICE: Final = "Price"
DATA: Final = "Data"
OUTPUT: Final = "Output"


def _json(panel: str | None) -> Any:
    """Return the option of JSON, in a panel or in none."""
    return typer.Option("--json", help="Print one JSON object on stdout.", rich_help_panel=panel)


def _chart(panel: str | None) -> Any:
    """Return the option of a picture."""
    return typer.Option(
        "--chart", metavar="FILE", help="Draw it into an .svg, .png or .html file.", rich_help_panel=panel
    )


def _wide(panel: str | None) -> Any:
    """Return the option of tables that are not fitted."""
    return typer.Option(
        "--wide", help="Show every column on one line, however narrow the terminal.", rich_help_panel=panel
    )


def _config(panel: str | None) -> Any:
    """Return the option that names the settings."""
    return typer.Option(
        "--config",
        metavar="PATH",
        envvar="FARTHING_CONFIG",
        help="The settings to use. Default: farthing.toml here.",
        rich_help_panel=panel,
    )


Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT of aggregates over the protected table.")]
Ledger = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER",
        envvar="FARTHING_LEDGER",
        help="A file, a PostgreSQL URL or a .toml. Default: farthing.toml here.",
    ),
]
Whose = Annotated[str | None, typer.Argument(metavar="NAME", help="An analyst. Default: everybody.")]
Tokens = Annotated[str, typer.Option(metavar="FILE", help="Where the tokens' hashes are kept.")]
LastEntries = Annotated[str | None, typer.Option(metavar="N", help="Show the last N entries, or all. Default: 20.")]
ClaimEpsilon = Annotated[
    str | None,
    typer.Option(
        "--claim-epsilon", metavar="1", help="The epsilon that the target promises, > 0.", rich_help_panel="Claim"
    ),
]
AttackSeed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="The seed of everything that is drawn for the attack.", rich_help_panel="Attack"
    ),
]

Relative = Annotated[
    list[str] | None,
    typer.Option(
        metavar="5%",
        help="Error allowed as a part of the true answer: 5% or 0.05; n=5% for one column.",
        rich_help_panel=ACCURACY,
    ),
]
Absolute = Annotated[
    list[str] | None,
    typer.Option(
        metavar="50",
        help="Error always allowed, in answer units; n=50 for one column, repeat it for others. The larger of the two "
        "is the target.",
        rich_help_panel=ACCURACY,
    ),
]
Rank = Annotated[
    list[str] | None,
    typer.Option(
        metavar="1%",
        help="For MEDIAN and quantiles: how far the rank of the answer may be off; m=1% for one column.",
        rich_help_panel=ACCURACY,
    ),
]
Confidence = Annotated[
    str | None,
    typer.Option(
        metavar="95%",
        help="How surely an interval holds its truth: 95% (default) or 0.95.",
        rich_help_panel=ACCURACY,
    ),
]
Simultaneous = Annotated[
    bool,
    typer.Option(
        "--simultaneous", help="Hold the confidence for all groups at once, not for each.", rich_help_panel=ACCURACY
    ),
]
Together = Annotated[
    bool,
    typer.Option(
        "--together",
        help="Hold the confidence for all answers of this question together, for targets that you fix beforehand, "
        "wherever you stop.",
        rich_help_panel=ACCURACY,
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        metavar="95%",
        help="With GROUP BY: stop as soon as this part of the groups is within the target. The others, mostly the "
        "smallest, stop too, marked not met; only their looks so far are paid.",
        rich_help_panel=ACCURACY,
    ),
]
Nonnegative = Annotated[
    bool,
    typer.Option(
        "--nonnegative", help="Show answers below zero as zero; this biases totals.", rich_help_panel=ACCURACY
    ),
]
OnMiss = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Groups that miss the target: return them marked (default), drop them, or raise (exit code 3); spend pays "
        "for a target that no group can meet, too.",
        rich_help_panel=ACCURACY,
    ),
]
NamedLoss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="mu=0.05",
        help="Name the price instead of the accuracy: mu=, rho= or epsilon=.",
        rich_help_panel=PRICE,
    ),
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Release a count once, with noise that grows with it, so that members of larger groups lose less: asinh, "
        "linear-log, log, power, two-stage or gaussian. Goes with --relative.",
        rich_help_panel=ACCURACY,
    ),
]
MaxEpsilon = Annotated[
    str | None,
    typer.Option(metavar="0.2", help="The most epsilon that this question may cost.", rich_help_panel=PRICE),
]
Cap = Annotated[
    str | None,
    typer.Option(
        metavar="all",
        help="The most that it may cost: all that is left, or mu=0.1. Default: a tenth of the budget.",
        rich_help_panel=PRICE,
    ),
]
Allotment = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="FARTHING_ALLOTMENT",
        help="The share of the budget to draw on, as `farthing allot` gave it.",
        rich_help_panel=PRICE,
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--keys",
        metavar="COL=...",
        help="Public groups of a column of GROUP BY, repeat it for each: dest=ATL,ORD, month=1..12, decade=0..90..10, "
        "day=2013-01-01..2013-12-31, dest=@airports.csv:faa, or dest=airports.faa of a declared public table. NULL "
        "is the key of missing values. --keys private finds the groups, at a price.",
        rich_help_panel=DATA,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="CONDITION", help="The rows that count, as in 'fare > 2'.", rich_help_panel=DATA),
]
FoundAbove = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="With --keys private: find groups of N units or more with the confidence.",
        rich_help_panel=DATA,
    ),
]
MaxGroups = Annotated[
    int | None,
    typer.Option(metavar="N", help="Count each privacy unit in at most N groups.", rich_help_panel=DATA),
]
MaxRows = Annotated[
    int | None,
    typer.Option(metavar="N", help="Count at most N rows of a unit in each group.", rich_help_panel=DATA),
]
Lower = Annotated[
    str | None,
    typer.Option(
        metavar="0", help="With --upper: clamp values that are added, averaged or ranked.", rich_help_panel=DATA
    ),
]
Upper = Annotated[
    str | None,
    typer.Option(
        metavar="200", help="Instead of AVG(CLAMP(fare, 0, 200)) write AVG(fare) and both.", rich_help_panel=DATA
    ),
]
AutoBounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="auto",
        help="Choose --max-groups, --max-rows, --lower, --upper privately, for a hundredth of the budget; or at a "
        "price, auto:mu=0.02.",
        rich_help_panel=DATA,
    ),
]
ConfigPath = Annotated[str | None, _config(DATA)]
LedgerConfig = Annotated[str | None, _config(None)]
Json = Annotated[bool, _json(OUTPUT)]
BareJson = Annotated[bool, _json(None)]
Wide = Annotated[bool, _wide(OUTPUT)]
BareWide = Annotated[bool, _wide(None)]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV on stdout, the price on stderr.", rich_help_panel=OUTPUT)]
Chart = Annotated[str | None, _chart(OUTPUT)]
BareChart = Annotated[str | None, _chart(None)]
ChartColumn = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", help="The answer column to draw. Default: the first.", rich_help_panel=OUTPUT
    ),
]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace", help="Show every look too: how the interval closed in, at what price.", rich_help_panel=OUTPUT
    ),
]
TraceChart = Annotated[
    str | None,
    typer.Option(
        "--trace-chart", metavar="FILE", help="Draw the looks into an .svg, .png or .html file.", rich_help_panel=OUTPUT
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="N",
        help="Show N rows, or all: the largest answers, or the first of ORDER BY. Default: 30 on a terminal, all in a "
        "pipe.",
        rich_help_panel=OUTPUT,
    ),
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every field of the dataclasses that it takes as an option of its own, in their place.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Wish:
    ...     rows: Rows = None
    ...     column: ChartColumn = None
    >>> def ask(sql: str, *, wish: Wish, as_json: bool = False) -> None: ...
    >>> list(inspect.signature(with_options(ask)).parameters)
    ['sql', 'rows', 'column', 'as_json']
    """
    signature = inspect.signature(command, eval_str=True)
    kinds: dict[str, Any] = {
        name: each.annotation for name, each in signature.parameters.items() if is_dataclass(each.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += _options(kinds[name]) if name in kinds else [parameter]

    @functools.wraps(command)
    def taken(**given: Any) -> None:
        made = {name: kind(**{each.name: given.pop(each.name) for each in fields(kind)})
                for name, kind in kinds.items()}  # fmt: skip
        command(**given, **made)

    taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    taken.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return taken


def _options(kind: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints, only = get_type_hints(kind, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            each.name,
            only,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(kind)
    ]
