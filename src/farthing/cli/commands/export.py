"""`farthing export`: the whole history of a ledger, as JSON or CSV."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def export(
    ledger: options.Ledger = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with everything (the default).")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV, one line an entry.")] = False,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write a new file. Default: stdout.")] = None,
    config: options.LedgerConfig = None,
) -> None:
    """Write the whole history, however long, as JSON or CSV.

    Everything but the ledger's secret: terms, entries with the links of their
    chain, allotments. JSON has the released numbers, too, each with its
    question, data version, unit, bounds, keys, targets and confidence.

    Examples:
      farthing export --csv --out history.csv
      farthing export flights.ledger > history.json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.export import export

        export(ledger, config, as_json=as_json, as_csv=as_csv, out=out)
