"""`farthing status`, `history`, `export`, `verify`, `allot` and `resume`: the books."""

from __future__ import annotations

import csv
import sys
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli import config as settings
from farthing.cli import options, show
from farthing.errors import DataError, InvalidOption
from farthing.privacy.words import state
from farthing.query import outward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from farthing.ledger.entry import Entry
    from farthing.ledger.store import Ledger

    Prices = Callable[[int], dict[str, float]]

MOST_ENTRIES: Final = 20
"""How many entries of the history are shown, unless told otherwise."""

_COLUMNS: Final = (
    "id", "when", "who", "question", "target", "reserved", "paid", "state", "closed", "allotment", "partition", "part",
    "clock_behind_s", "pid", "host", "hash",
)  # fmt: skip


def status(ledger: str | None, config: str | None, *, rows: str | None, as_json: bool) -> None:
    """Show a ledger: its totals, its open reservations, its history."""
    most = MOST_ENTRIES if rows is None else options.rows(rows)
    with _inspected(ledger, config) as books:
        facts = _facts(books, None if as_json and rows is None else most)
    if as_json:
        show.echo_json(facts)
    else:
        _show(facts)


def history(ledger: str | None, config: str | None, *, rows: str | None, as_json: bool) -> None:
    """Show who asked what, when, and paid what."""
    most = MOST_ENTRIES if rows is None else options.rows(rows)
    with _inspected(ledger, config) as books:
        priced = _prices(books)
        entries = [_entry(entry, priced) for entry in books.history(None if as_json and rows is None else most)]
    if as_json:
        show.echo_json({"history": entries})
        return
    out = show.console()
    heads = [("id", True), ("when (UTC)", True), ("who", False), ("question", False), ("reserved", True),
             ("paid", True), ("state", False), ("drawn on", False)]  # fmt: skip
    lines = [(str(row["id"]), _when(row), row["who"], _asked(row), _short(row["reserved"]), _short(row["paid"]),
              row["state"], _drawn_on(row)) for row in entries]  # fmt: skip
    out.print(show.columns_table(heads, lines) if lines else "nothing was asked yet")


def export(ledger: str | None, config: str | None, *, as_json: bool, as_csv: bool, out: str | None) -> None:
    """Write everything that a ledger tells but its secret, entry by entry."""
    if as_json and as_csv:
        raise InvalidOption("--json and --csv were both given", rule="one shape", next_step="drop one")
    with _inspected(ledger, config) as books, _written(out) as file:
        if as_csv:
            _export_csv(books, file)
        else:
            _export_json(books, file)


def same_data(config: str | None) -> None:
    """Record that the files of a config's table are the same data as before."""
    from farthing.cli.opening import opened

    chosen = settings.read(config)
    with opened(chosen, same_data=True):
        show.say(f"the files of table {chosen.name}, version {chosen.version}, are known from now on")


def verify(
    ledger: str | None, config: str | None, *, head: str | None, accept: str | None = None, as_json: bool
) -> None:
    """Check the books and their chain; take them for whole first if the owner says so."""
    if accept is not None:
        _accept(_place(ledger, config), accept)
    with _inspected(ledger, config) as books:
        seal = books.verify(head)
        where = str(books.path)
    if as_json:
        show.echo_json({"ledger": where, "good": True, "records": seal.records, "head": seal.head})
    else:
        show.say(f"the books of {where} agree: {seal.records:,} records, head {seal.head}")


def _accept(place: Path | str, head: str) -> None:
    """Take a ledger that lost entries for whole."""
    from farthing.ledger.opening import accept
    from farthing.ledger.postgres import is_url

    if is_url(place):
        raise InvalidOption(
            "a ledger on a server has no witness",
            rule="--accept-head is about a ledger's file",
            got=head,
            next_step="check it with --head and a head that you noted",
        )
    accept(place, head)


def resume(config: str | None) -> None:
    """Go on after failures, once the table could be opened."""
    from farthing.cli.opening import opened

    with opened(settings.read(config)) as session:
        session.resume()
    show.say("the next asks go on: see `farthing history` for those that failed")


def allot(name: str, share: str, ledger: str | None, config: str | None, *, as_json: bool) -> None:
    """Give somebody a share of the budget."""
    from farthing.ledger.store import Ledger

    wanted = _share(share)
    with _inspected(ledger, config) as books:
        terms = books.terms
    with Ledger.open(_place(ledger, config), terms) as books:
        books.allot(name, wanted)
        facts = _allotments(books, _prices(books))
    if as_json:
        show.echo_json({"allotments": facts})
    else:
        _show_allotments(facts)


def _share(share: str) -> Any:
    """Return a share as it was typed: a part of the budget, or a loss."""
    if "=" in share:
        return options.loss("SHARE", share)
    return Fraction(str(options.fraction("SHARE", share))) if share.strip() not in {"100%", "1"} else Fraction(1)


@contextmanager
def _inspected(ledger: str | None, config: str | None) -> Iterator[Ledger]:
    """Open the ledger that was named, or the one of the settings, to look at it."""
    from farthing.ledger.store import Ledger

    if ledger is not None and config is not None:
        raise InvalidOption(
            "a ledger and --config were both given", next_step="drop one of them", rule="one of them names the books"
        )
    with Ledger.inspect(_place(ledger, config)) as books:
        yield books


def _place(ledger: str | None, config: str | None) -> Path | str:
    """Return the path or URL of the ledger that was named, or of the one of the settings."""
    from farthing.ledger.postgres import is_url

    if ledger is not None and (is_url(ledger) or not ledger.endswith(".toml")):
        return ledger
    return settings.read(ledger or config).ledger_place


def _prices(books: Ledger) -> Prices:
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


def _facts(books: Ledger, most: int | None) -> dict[str, Any]:
    """Return the books as plain values."""
    terms, priced, spent = books.terms, _prices(books), books.spent
    return {
        "ledger": str(books.path),
        "budget": terms.description,
        "unit": terms.unit.removeprefix("column:"),
        "total": priced(terms.budget),
        "spent": priced(spent),
        "remaining": priced(terms.budget - spent),
        "allotments": _allotments(books, priced),
        "open": [_entry(entry, priced) | {"pid": entry.pid, "host": entry.host, "alive": entry.alive}
                 for entry in books.open_reservations],
        "history": [_entry(entry, priced) for entry in books.history(most)],
    }  # fmt: skip


def _allotments(books: Ledger, priced: Prices) -> dict[str, Any]:
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


def _entry(entry: Entry, priced: Prices) -> dict[str, Any]:
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


@contextmanager
def _written(out: str | None) -> Iterator[TextIO]:
    """Give where an export goes: stdout, or a file that is not there yet."""
    if out is None:
        yield sys.stdout
        return
    try:
        with Path(out).open("x", encoding="utf-8", newline="") as file:
            yield file
    except FileExistsError:
        raise InvalidOption(
            "the file is there already",
            got=out,
            next_step="name a new file with --out",
            rule="export never replaces a file",
        ) from None
    except OSError as error:
        raise DataError(
            "the export cannot be written",
            got=f"{out} ({error.strerror})",
            rule="--out names a new file in a folder you may write in",
            next_step="name another file",
        ) from None


def _exported(entry: Entry, priced: Prices) -> dict[str, Any]:
    """Return one entry with all that a ledger knows of it."""
    return _entry(entry, priced) | {
        "reserved_farthings": entry.reserved,
        "paid_farthings": entry.charged,
        "partition": entry.partition,
        "request": entry.request,
        "pid": entry.pid,
        "host": entry.host,
        "hash": entry.hash,
    }


def _export_json(books: Ledger, file: TextIO) -> None:
    """Write one JSON object, an entry at a time."""
    terms, priced, seal = books.terms, _prices(books), books.seal
    head = {
        "ledger": books.identity,
        "currency": terms.currency,
        "budget": terms.description,
        "unit": terms.unit,
        "total": priced(terms.budget),
        "spent": priced(books.spent),
        "records": seal.records,
        "head": seal.head,
        "allotments": _allotments(books, priced),
        "acts": books.acts(),
    }
    file.write(outward.dumped(head)[:-1] + ', "entries": [')
    lines = (outward.dumped(_exported(entry, priced)) for entry in books.entries())
    file.writelines(f"{',' if place else ''}\n{line}" for place, line in enumerate(lines))
    file.write("\n]}\n")


def _export_csv(books: Ledger, file: TextIO) -> None:
    """Write one line an entry; losses in the currency's own parameter."""
    priced = _prices(books)
    lines = csv.DictWriter(file, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    lines.writeheader()
    for entry in books.entries():
        row = _exported(entry, priced)
        row |= {name: next(iter(row[name].values())) for name in ("reserved", "paid")}
        lines.writerow({name: outward.cell(value) if isinstance(value, str) else value for name, value in row.items()})


def _show(facts: dict[str, Any]) -> None:
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
        _show_allotments(facts["allotments"])
    if facts["open"]:
        out.print("open reservations: charged until they are settled", style="bold")
        heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("process", False)]
        rows = [(_when(row), _asked(row), _short(row["reserved"]), _process(row)) for row in facts["open"]]
        out.print(show.columns_table(heads, rows))
    if not facts["history"]:
        out.print("nothing was asked yet")
        return
    heads = [("when (UTC)", True), ("question", False), ("reserved", True), ("paid", True), ("state", False)]
    lines = [
        (_when(row), _asked(row), _short(row["reserved"]), _short(row["paid"]), row["state"])
        for row in facts["history"]
    ]
    out.print(show.columns_table(heads, lines))
    last = next(iter(facts["total"]))
    out.print(f"reserved and paid in {last}, newest first; paid adds up as squares" if last == "mu" else
              f"reserved and paid in {last}, newest first", style="dim")  # fmt: skip


def _show_allotments(facts: dict[str, Any]) -> None:
    """Print the allotments."""
    heads = [("allotment", False), ("share", True), ("spent", True), ("left", True)]
    rows = [(name, *(_short(held[part]) for part in ("share", "spent", "left"))) for name, held in facts.items()]
    show.console().print(show.columns_table(heads, rows))


def _asked(row: dict[str, Any]) -> str:
    """Return a question with its target."""
    return f"{row['question']}, {row['target']}" if row["target"] else str(row["question"])


def _drawn_on(row: dict[str, Any]) -> str:
    """Return the allotment and the part of an entry, as far as it has them."""
    return ", ".join(filter(None, (row["allotment"], row["part"] and f"part {row['part']}")))


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
