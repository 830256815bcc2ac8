"""What `farthing verify` does: recomputes the books, and checks their chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.cli import show
from farthing.cli.run.ledger import inspected, place
from farthing.errors import InvalidOption
from farthing.urls import is_address

if TYPE_CHECKING:
    from pathlib import Path


def verify(
    ledger: str | None, config: str | None, *, head: str | None, accept: str | None = None, as_json: bool
) -> None:
    """Check the books and their chain; take them for whole first if the owner says so."""
    if accept is not None:
        _accept(place(ledger, config), accept)
    with inspected(ledger, config) as books:
        seal = books.verify(head)
        where = str(books.path)
    if as_json:
        show.echo_json({"ledger": where, "good": True, "records": seal.records, "head": seal.head})
    else:
        show.say(f"the books of {where} agree: {seal.records:,} records, head {seal.head}")


def _accept(where: Path | str, head: str) -> None:
    """Take a ledger that lost entries for whole."""
    from farthing.ledger.opening import accept

    if is_address(where):
        raise InvalidOption(
            "a ledger on a server has no witness",
            rule="--accept-head is about a ledger's file",
            got=head,
            next_step="check it with --head and a head that you noted",
        )
    accept(where, head)
