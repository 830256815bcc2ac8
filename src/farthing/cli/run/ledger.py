"""What the commands on books share: a ledger opened to be looked at, and its entries as plain values."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.errors import InvalidOption
from farthing.privacy.words import state
from farthing.urls import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from farthing.ledger.entry import Entry
    from farthing.ledger.store import Ledger

    Prices = Callable[[int], dict[str, float]]

MOST_ENTRIES: Final = 20
"""How many entries of the history are shown, unless told otherwise."""


@contextmanager
def inspected(ledger: str | None, config: str | None) -> Iterator[Ledger]:
    """Open the ledger that was named, or the one of the settings, to look at it."""
    from farthing.ledger.store import Ledger

    if ledger is not None and config is not None:
        raise InvalidOption(
            "a ledger and --config were both given", next_step="drop one of them", rule="one of them names the books"
        )
    with Ledger.inspect(place(ledger, config)) as books:
        yield books


@contextmanager
def books_of(config: settings.Config) -> Iterator[Ledger]:
    """Open the ledger of settings that were read, to look at it."""
    from farthing.ledger.store import Ledger

    with Ledger.inspect(config.ledger_place) as books:
        yield books


def place(ledger: str | None, config: str | None) -> Path | str:
    """Return the path or URL of the ledger that was named, or of the one of the settings."""
    if ledger is not None and (is_address(ledger) or not ledger.endswith(".toml")):
        return ledger
    return settings.read(ledger or config).ledger_place


def prices(books: Ledger) -> Prices:
    """Return how farthings of a ledger are said: in its currency and as epsilon."""
    from farthing.privacy.loss import Gdp, Pure, Zcdp

    currency = {kind.currency: kind for kind in (Gdp, Zcdp, Pure)}[books.terms.currency]
    delta = _report_delta(books.terms.delta, pure=currency is Pure)
    cache: dict[int, dict[str, float]] = {}

    def priced(farthings: int) -> dict[str, float]:
        if farthings not in cache:
            if len(cache) > 10_000:
                cache.clear()
            cache[farthings] = state(currency.of_farthings(farthings), delta)
        return cache[farthings]

    return priced


def ledger_facts(books: Ledger, most: int | None) -> dict[str, Any]:
    """Return the books as plain values."""
    terms, priced, spent = books.terms, prices(books), books.spent
    return {
        "ledger": str(books.path),
        "budget": terms.description,
        "unit": terms.unit.removeprefix("column:"),
        "total": priced(terms.budget),
        "spent": priced(spent),
        "remaining": priced(terms.budget - spent),
        "allotments": allotment_facts(books, priced),
        "frozen": list(books.frozen),
        "open": [entry_facts(entry, priced) | {"pid": entry.pid, "host": entry.host, "alive": entry.alive}
                 for entry in books.open_reservations],
        "history": [entry_facts(entry, priced) for entry in books.history(most)],
    }  # fmt: skip


def allotment_facts(books: Ledger, priced: Prices) -> dict[str, Any]:
    """Return the allotments as plain values."""
    return {
        name: {"share": priced(held.share), "spent": priced(held.spent), "left": priced(held.left)}
        for name, held in books.allotments.items()
    }


def _report_delta(coins: int, *, pure: bool) -> float:
    """Return the delta at which epsilons are stated, as the session states them."""
    from farthing.privacy.budget import REPORT_DELTA
    from farthing.rounding import DELTA_COIN

    return 0.0 if pure else float(f"{float(coins * DELTA_COIN):.12g}") or REPORT_DELTA


def entry_facts(entry: Entry, priced: Prices) -> dict[str, Any]:
    """Return one entry as plain values; an open one has paid its reservation until it is closed."""
    return {
        "id": entry.id,
        "when": entry.opened_at.isoformat(timespec="seconds"),
        "who": entry.who,
        "question": entry.label,
        "target": entry.target,
        "reserved": priced(entry.reserved),
        "paid": priced(entry.charged),
        "state": entry.state,
        "closed": None if entry.closed_at is None else entry.closed_at.isoformat(timespec="seconds"),
        "allotment": entry.allotment,
        "part": entry.part,
        "clock_behind_s": entry.clock_behind.total_seconds(),
    }


def show_allotments(facts: dict[str, Any]) -> None:
    """Print the allotments."""
    heads = [("allotment", False), ("share", True), ("spent", True), ("left", True)]
    rows = [(name, *(own_parameter(held[part]) for part in ("share", "spent", "left"))) for name, held in facts.items()]
    show.console().print(show.columns_table(heads, rows))


def asked_words(row: dict[str, Any]) -> str:
    """Return a question with its target."""
    return f"{row['question']}, {row['target']}" if row["target"] else str(row["question"])


def own_parameter(price: dict[str, float]) -> str:
    """Return a loss as its currency's parameter alone."""
    return f"{next(iter(price.values())):.4g}"


def when_words(row: dict[str, Any]) -> str:
    """Return date and time to the minute."""
    return str(row["when"])[:16].replace("T", " ")
