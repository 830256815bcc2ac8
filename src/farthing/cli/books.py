"""`farthing status`: the books, without opening the table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli import config as settings
from farthing.cli import options, show
from farthing.errors import InvalidOption
from farthing.privacy.words import state

if TYPE_CHECKING:
    from farthing.ledger.entry import Entry
    from farthing.ledger.store import Ledger

MOST_ENTRIES: Final = 20
"""How many entries of the history are shown, unless told otherwise."""


def status(ledger: str | None, config: str | None, *, rows: str | None, as_json: bool) -> None:
    """Show a ledger: its totals, its open reservations, its history."""
    from farthing.ledger.store import Ledger

    most = MOST_ENTRIES if rows is None else options.rows(rows)
    if ledger is not None and config is not None:
        raise InvalidOption(
            "a ledger and --config were both given", next_step="drop one of them", rule="one of them names the books"
        )
    with Ledger.inspect(_path(ledger, config)) as books:
        facts = _facts(books, None if as_json and rows is None else most)
    if as_json:
        show.echo_json(facts)
    else:
        _show(facts)


def _path(ledger: str | None, config: str | None) -> Path:
    """Return the ledger that was named, or the one of the settings."""
    if ledger is not None and not ledger.endswith(".toml"):
        return Path(ledger)
    return settings.read(ledger or config).ledger_path


def _facts(books: Ledger, most: int | None) -> dict[str, Any]:
    """Return the books as plain values."""
    from farthing.privacy.loss import Gdp, Pure, Zcdp

    terms = books.terms
    currency = {kind.currency: kind for kind in (Gdp, Zcdp, Pure)}[terms.currency]
    delta = _report_delta(terms.delta, pure=currency is Pure)
    cache: dict[int, dict[str, float]] = {}

    def priced(farthings: int) -> dict[str, float]:
        if farthings not in cache:
            cache[farthings] = state(currency.of_farthings(farthings), delta)
        return cache[farthings]

    spent = books.spent
    return {
        "ledger": str(books.path),
        "budget": terms.description,
        "unit": terms.unit.removeprefix("column:"),
        "total": priced(terms.budget),
        "spent": priced(spent),
        "remaining": priced(terms.budget - spent),
        "open": [_entry(entry, priced) | {"pid": entry.pid, "host": entry.host, "alive": entry.alive}
                 for entry in books.open_reservations],
        "history": [_entry(entry, priced) for entry in books.history(most)],
    }  # fmt: skip


def _report_delta(coins: int, *, pure: bool) -> float:
    """Return the delta at which epsilons are stated, as the session states them."""
    from farthing.privacy.budget import REPORT_DELTA
    from farthing.rounding import DELTA_COIN

    return 0.0 if pure else float(f"{float(coins * DELTA_COIN):.12g}") or REPORT_DELTA


def _entry(entry: Entry, priced: Any) -> dict[str, Any]:
    """Return one entry as plain values; an open one has paid its reservation until it is closed."""
    return {
        "id": entry.id,
        "when": entry.opened_at.isoformat(timespec="seconds"),
        "question": entry.label,
        "reserved": priced(entry.reserved),
        "paid": priced(entry.charged),
        "state": entry.state,
    }


def _show(facts: dict[str, Any]) -> None:
    """Print the books."""
    out = show.console()
    promise = [("ledger", facts["ledger"]), ("budget", facts["budget"]), ("unit", facts["unit"])]
    sums = [(name, show.price(facts[name])) for name in ("total", "spent", "remaining")]
    out.print(show.facts_table(promise + sums))
    if facts["open"]:
        out.print("open reservations: charged until they are settled", style="bold")
        heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("process", False)]
        rows = [(_when(row), row["question"], _short(row["reserved"]), _process(row)) for row in facts["open"]]
        out.print(show.columns_table(heads, rows))
    if not facts["history"]:
        out.print("nothing was asked yet")
        return
    heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("paid", True), ("state", False)]
    lines = [
        (_when(row), row["question"], _short(row["reserved"]), _short(row["paid"]), row["state"])
        for row in facts["history"]
    ]
    out.print(show.columns_table(heads, lines))
    last = next(iter(facts["total"]))
    out.print(f"reserved and paid in {last}, newest first; paid adds up as squares" if last == "mu" else
              f"reserved and paid in {last}, newest first", style="dim")  # fmt: skip


def _short(price: dict[str, float]) -> str:
    """Return a loss as its currency's parameter alone."""
    return f"{next(iter(price.values())):.4g}"


def _when(row: dict[str, Any]) -> str:
    """Return date and time to the minute."""
    return str(row["when"])[:16].replace("T", " ")


def _process(row: dict[str, Any]) -> str:
    """Return who holds a reservation, and whether it still runs."""
    known = {True: "running", False: "dead: stays charged", None: "unknown"}
    return f"{row['pid']} on {row['host']} ({known[row['alive']]})"
