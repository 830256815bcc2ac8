"""What `farthing export` does: writes everything that a ledger tells but its secret."""

from __future__ import annotations

import csv
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli.run.ledger import allotment_facts, entry_facts, inspected, prices
from farthing.errors import DataError, InvalidOption, LedgerError
from farthing.query import outward
from farthing.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from farthing.cli.run.ledger import Prices
    from farthing.ledger.entry import Entry, Stored
    from farthing.ledger.store import Ledger

_COLUMNS: Final = (
    "id", "when", "who", "question", "target", "reserved", "paid", "state", "closed", "allotment", "partition", "part",
    "clock_behind_s", "pid", "host", "hash",
)  # fmt: skip


def export(ledger: str | None, config: str | None, *, as_json: bool, as_csv: bool, out: str | None) -> None:
    """Write everything that a ledger tells but its secret, entry by entry."""
    if as_json and as_csv:
        raise InvalidOption("--json and --csv were both given", rule="one format", next_step="drop one")
    with inspected(ledger, config) as books, _written(out) as file:
        if as_csv:
            _export_csv(books, file)
        else:
            _export_json(books, file)


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
            "the file exists already",
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
    return entry_facts(entry, priced) | {
        "reserved_farthings": entry.reserved,
        "paid_farthings": entry.charged,
        "partition": entry.partition,
        "request": entry.request,
        "identity": entry.question,
        "pid": entry.pid,
        "host": entry.host,
        "hash": entry.hash,
    }


def _export_json(books: Ledger, file: TextIO) -> None:
    """Write one JSON object, an entry and a measurement at a time."""
    terms, priced, seal = books.terms, prices(books), books.seal
    head = {
        "version": VERSION,
        "ledger": books.identity,
        "currency": terms.currency,
        "budget": terms.description,
        "unit": terms.unit,
        "total": priced(terms.budget),
        "spent": priced(books.spent),
        "records": seal.records,
        "head": seal.head,
        "allotments": allotment_facts(books, priced),
        "acts": books.acts(),
    }
    file.write(outward.dumped(head)[:-1] + ', "entries": [')
    _write_lines(file, (_exported(entry, priced) for entry in books.entries()))
    file.write('\n], "measurements": [')
    _write_lines(file, (_measured(question, stored) for question, stored in books.measurements()))
    file.write("\n]}\n")


def _measured(question: str, stored: Stored) -> dict[str, Any]:
    """Return a released measurement as plain values; of one that a newer version wrote only that it is there."""
    from farthing.session.core.records import facts_of

    with suppress(LedgerError):
        return {"identity": question} | facts_of(stored.blob)
    return {"identity": question, "released": None}


def _write_lines(file: TextIO, facts: Iterable[dict[str, Any]]) -> None:
    """Write objects of a JSON list, each on a line."""
    lines = (outward.dumped(each) for each in facts)
    file.writelines(f"{',' if place else ''}\n{line}" for place, line in enumerate(lines))


def _export_csv(books: Ledger, file: TextIO) -> None:
    """Write one line an entry; losses in the currency's own parameter."""
    priced = prices(books)
    lines = csv.DictWriter(file, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    lines.writeheader()
    for entry in books.entries():
        row = _exported(entry, priced)
        row |= {name: next(iter(row[name].values())) for name in ("reserved", "paid")}
        lines.writerow({name: outward.cell(value) if isinstance(value, str) else value for name, value in row.items()})
