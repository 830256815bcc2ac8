"""What `farthing freeze` does: nothing more is charged, to one analyst or to anybody."""

from __future__ import annotations

from farthing.cli import show
from farthing.cli.run.ledger import inspected, place


def freeze(name: str | None, config: str | None, *, as_json: bool) -> None:
    """Freeze an analyst, or everybody."""
    told(change(name, config, frozen=True), as_json=as_json)


def change(name: str | None, config: str | None, *, frozen: bool) -> tuple[str, ...]:
    """Freeze or thaw an analyst, or everybody; return who is frozen now."""
    from farthing.ledger.store import Ledger

    with inspected(None, config) as books:
        terms = books.terms
    with Ledger.open(place(None, config), terms) as books:
        books.freeze(name, frozen=frozen)
        return books.frozen


def told(frozen: tuple[str, ...], *, as_json: bool) -> None:
    """Show who is frozen."""
    if as_json:
        show.echo_json({"everybody": "" in frozen, "analysts": [name for name in frozen if name]})
    else:
        show.say(words(frozen) or "nobody is frozen")


def words(frozen: tuple[str, ...]) -> str:
    """Return who is frozen, in words; "" where nobody is."""
    return "" if not frozen else "frozen: " + ", ".join(name or "everybody" for name in frozen)
