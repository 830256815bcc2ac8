"""What `farthing history` does: shows who asked what, when, and paid what."""

from __future__ import annotations

from typing import Any

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.run.ledger import (
    MOST_ENTRIES,
    asked_words,
    entry_facts,
    inspected,
    own_parameter,
    prices,
    when_words,
)


def history(ledger: str | None, config: str | None, *, rows: str | None, wide: bool, as_json: bool) -> None:
    """Show who asked what, when, and paid what."""
    most = MOST_ENTRIES if rows is None else typed.rows(rows)
    with inspected(ledger, config) as books:
        priced = prices(books)
        entries = [entry_facts(entry, priced) for entry in books.history(None if as_json and rows is None else most)]
    if as_json:
        show.echo_json({"history": entries})
        return
    out = show.console()
    heads = [("id", True), ("when (UTC)", True), ("who", False), ("question", False), ("reserved", True),
             ("paid", True), ("state", False), ("drawn on", False)]  # fmt: skip
    lines = [
        (
            str(row["id"]),
            when_words(row),
            row["who"],
            asked_words(row),
            own_parameter(row["reserved"]),
            own_parameter(row["paid"]),
            row["state"],
            _drawn_on(row),
        )
        for row in entries
    ]
    if lines:
        show.show_entries(out, heads, lines, wide=wide)
    else:
        out.print("nothing was asked yet")


def _drawn_on(row: dict[str, Any]) -> str:
    """Return the allotment and the part of an entry, as far as it has them."""
    return ", ".join(filter(None, (row["allotment"], row["part"] and f"part {row['part']}")))
