"""Whose charges the owner has stopped: a word in the books, which every transaction that would charge reads first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.errors import Frozen
from farthing.ledger import rows

if TYPE_CHECKING:
    import sqlalchemy as sa

    from farthing.ledger.entry import Stored

EVERYBODY: Final = ""
"""Instead of a name: nobody may be charged."""

PREFIX: Final = "freeze of "
"""Before the name, where the books keep the word."""

WORDS: Final = {True: b"frozen", False: b"thawed"}


def place(name: str) -> str:
    """Return where the books keep whether somebody may be charged."""
    return PREFIX + name


def sought(who: str, share: str) -> dict[str, str]:
    """Return the places that a charge depends on: everybody's, the asker's and that of the share it draws on."""
    return {"of_all": place(EVERYBODY), "of_asker": place(who), "of_share": place(share)}


def is_frozen(stored: Stored | None) -> bool:
    """Whether what the books keep says frozen: every word but "thawed" does."""
    return stored is not None and stored.blob != WORDS[False]


def require_thawed(connection: sa.Connection, standing: Any, who: str, share: str) -> None:
    """Refuse to charge somebody whom the owner has frozen; who was never frozen costs no further statement.

    Guarantee: after the transaction that freezes, no transaction charges more than nothing to whom it names, in any
        process, until one thaws.
    Proof: writers take turns, and each charge reads the word within its own transaction.
    Assumes: whoever asks cannot choose the name under which the ledger is opened; all can where everybody is frozen.
    Rounds: nothing.
    """
    if not standing.frozen:
        return
    for place_of in sought(who, share).values():
        if is_frozen(rows.load(connection, place_of)):
            everybody = place_of == place(EVERYBODY)
            raise Frozen(
                "the owner has frozen this data set" if everybody else "the owner has frozen your questions",
                rule="nothing is charged until the owner thaws it; what was released before stays free",
                next_step="ask the owner, or ask what was asked before",
            )
