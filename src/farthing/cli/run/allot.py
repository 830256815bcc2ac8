"""What `farthing allot` does: gives somebody a share of the budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.run.ledger import allotment_facts, inspected, place, prices, show_allotments


def allot(name: str, share: str, ledger: str | None, config: str | None, *, as_json: bool) -> None:
    """Give somebody a share of the budget, and show all shares."""
    facts = give(name, share, ledger, config)
    if as_json:
        show.echo_json({"allotments": facts})
    else:
        show_allotments(facts)


def give(name: str, share: str, ledger: str | None, config: str | None) -> Any:
    """Give somebody a share of the budget; return all shares."""
    from farthing.ledger.store import Ledger

    wanted = _share(share)
    with inspected(ledger, config) as books:
        terms = books.terms
    with Ledger.open(place(ledger, config), terms) as books:
        books.allot(name, wanted)
        return allotment_facts(books, prices(books))


def _share(share: str) -> Any:
    """Return a share as it was typed: a part of the budget, or a loss."""
    if "=" in share:
        return typed.loss("SHARE", share)
    return Fraction(str(typed.fraction("SHARE", share))) if share.strip() not in {"100%", "1"} else Fraction(1)
