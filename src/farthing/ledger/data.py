"""Which data a ledger's charges are about: named by the owner, and known by metadata that anyone may see.

Charges in parallel, and groups of which a unit is in a few only, are added up for data in which units stay where they
are: a *generation*, which the owner names by table, schema and version. What shows without looking at rows that another
generation came under the same name is noticed here, before anything is charged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.errors import DataError
from farthing.ledger import rows, tables

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from farthing.ledger.chain import Tip


@dataclass(frozen=True, slots=True)
class DataSet:
    """The data of a session, as its charges are tied to them.

    Guarantee: all charges booked under one name are of data whose metadata were the same, or were declared the same.
    Proof: docs/proofs/session.partition.md.
    Assumes: files whose sizes, times and places on the disk are unchanged have unchanged rows; the owner changes the
        version with the rows of data without such metadata.
    Rounds: nothing.

    Attributes:
        name: the identity of the data, as their owner declares it.
        label: the same, as people read it.
        salt: of the digest that is kept, so that it tells nothing of sizes.
        identity: returns the metadata now: "" where there are none.
        mark: their digest when the session was opened.
    """

    name: str
    label: str
    salt: int
    identity: Callable[[], str]
    mark: str

    @classmethod
    def of(cls, name: str, label: str, salt: int, identity: Callable[[], str]) -> DataSet:
        """Return a data set as it is now."""
        return cls(name, label, salt, identity, _mark(name, salt, identity()))

    def require_known(self, recorded: str | None) -> None:
        """Refuse data that are not in the recorded state, if one is recorded."""
        if recorded is not None and recorded != self.mark:
            raise moved(self.label, "are not those that were asked before")

    def require_unchanged(self) -> None:
        """Refuse data that have changed since the session was opened."""
        if _mark(self.name, self.salt, self.identity()) != self.mark:
            raise moved(self.label, "have changed since the session was opened")

    def booked(self, connection: sa.Connection, recorded: str | None, who: str, tip: Tip) -> Tip:
        """Record how the data are known, in the transaction of their first charge; refuse others."""
        self.require_known(recorded)
        if recorded is not None:
            return tip
        return rows.add_data_set(connection, self._known, who, tip)

    def recorded(self, connection: sa.Connection) -> str | None:
        """Return the digest by which the data were known when they were asked first, or declared the same last."""
        mark: str | None = connection.execute(tables.MARK, {"data": self.name}).scalar()
        return mark

    @property
    def _known(self) -> rows.Known:
        """What is recorded."""
        return rows.Known(name=self.name, label=self.label, mark=self.mark)

    def declare(self, connection: sa.Connection, who: str) -> None:
        """Record that these are the same data, though their metadata differ: the owner's word."""
        if self.recorded(connection) != self.mark:
            held = rows.totals(connection)
            tip = rows.add_data_set(connection, self._known, who, held.tip)
            rows.advance(connection, held.after(tip))


def moved(label: str, what: str) -> DataError:
    """Return the error of data that came under the name of others."""
    return DataError(
        f"the files of {label} {what}",
        rule="what is charged under one version is charged for units that stay where they are, so other data need "
        "another version",
        got="another size, time of change or place on the disk (rows are never compared)",
        next_step='name this state of the data, as in version="2026-11" (in farthing.toml: version, under [table]); if '
        "not one row differs, say so once: same_data=True, or `farthing same-data`",
    )


def _mark(name: str, salt: int, identity: str) -> str:
    """Return the digest of metadata."""
    return hashlib.sha256(f"{salt} {name} {identity}".encode()).hexdigest()
