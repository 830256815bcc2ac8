"""What `farthing status` does: shows a ledger, its totals, its open reservations, its history."""

from __future__ import annotations

from typing import Any

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.run.freeze import words
from farthing.cli.run.ledger import (
    MOST_ENTRIES,
    asked_words,
    inspected,
    ledger_facts,
    own_parameter,
    show_allotments,
    when_words,
)


def status(ledger: str | None, config: str | None, *, rows: str | None, wide: bool, as_json: bool) -> None:
    """Show a ledger: its totals, its open reservations, its history."""
    most = MOST_ENTRIES if rows is None else typed.rows(rows)
    with inspected(ledger, config) as books:
        facts = ledger_facts(books, None if as_json and rows is None else most)
    if as_json:
        show.echo_json(facts)
    else:
        _show(facts, wide=wide)


def _show(facts: dict[str, Any], *, wide: bool) -> None:
    """Print the books."""
    out = show.console()
    promise = [("ledger", facts["ledger"]), ("budget", facts["budget"]), ("unit", facts["unit"])]
    sums = [(name, show.price(facts[name])) for name in ("total", "spent", "remaining")]
    total, spent = (next(iter(facts[name].values())) for name in ("total", "spent"))
    square = next(iter(facts["total"])) == "mu"
    used = (spent / total) ** (2 if square else 1)
    sums.append(
        ("used", f"{100 * used:.3g} % of the budget" + (", in mu squared: that is what adds up" if square else ""))
    )
    out.print(show.facts_table(promise + sums))
    if facts["allotments"]:
        show_allotments(facts["allotments"])
    if facts["frozen"]:
        out.print(words(tuple(facts["frozen"])), style="bold")
    if facts["open"]:
        out.print("open reservations: charged until they are settled", style="bold")
        heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("process", False)]
        rows = [
            (when_words(row), asked_words(row), own_parameter(row["reserved"]), _process(row)) for row in facts["open"]
        ]
        show.show_entries(out, heads, rows, wide=wide)
    if not facts["history"]:
        out.print("nothing was asked yet")
        return
    heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("paid", True), ("state", False)]
    lines = [
        (when_words(row), asked_words(row), own_parameter(row["reserved"]), own_parameter(row["paid"]), row["state"])
        for row in facts["history"]
    ]
    show.show_entries(out, heads, lines, wide=wide)
    last = next(iter(facts["total"]))
    out.print(f"reserved and paid in {last}, newest first; paid adds up as squares" if last == "mu" else
              f"reserved and paid in {last}, newest first", style="dim")  # fmt: skip


def _process(row: dict[str, Any]) -> str:
    """Return who holds a reservation, and whether it still runs."""
    known = {True: "running", False: "dead: stays charged", None: "unknown"}
    return f"{row['pid']} on {row['host']} ({known[row['alive']]})"
