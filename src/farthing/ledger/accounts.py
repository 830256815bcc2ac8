"""Who is charged what for a reservation: the whole ledger, and the allotment it draws on; parts count at their maximum.

Every *owner* (the whole ledger, or an allotment) has one total. What is charged outside partitions adds to it; of each
partition it holds the most that any one part has spent. So a charge in a part raises the total only by what it raises
that maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import rows, rules, tables

WHOLE: Final = ""
"""The owner that every charge draws on; all others have the name of an allotment."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a charge goes; "" for none.

    Attributes:
        allotment: the allotment it draws on, besides the whole ledger.
        partition: the partition of the data that was asked.
        part: the part of it.
    """

    allotment: str = ""
    partition: str = ""
    part: str = ""

    def question(self, question: str) -> str:
        """Return the identity of a question asked here: the same text asked of two parts is two questions."""
        return f"{self.prefix}{question}"

    @property
    def prefix(self) -> str:
        """What marks the questions of a part; lengths come first, so that no two parts share one."""
        return f"{len(self.partition)}.{len(self.part)}:{self.partition}/{self.part}/" if self.partition else ""


@dataclass(frozen=True, slots=True)
class Purse:
    """What one owner may still spend, and how a charge here changes its total.

    Attributes:
        owner: `WHOLE`, or an allotment.
        limit: the most that its total may be.
        spent: its total.
        own: what was spent here: in the part, or altogether when there is none.
        others: the most that any other part of the partition has spent.

    Guarantee: the totals that `change` gives are, at any time, what was spent outside partitions, plus the maximum over
        parts for each partition.
    Proof: docs/proofs/ledger.parts.md.
    Assumes: the parts of one partition are disjoint sets of privacy units, fixed before anything is asked.
    Rounds: nothing.

    >>> Purse("", limit=100, spent=40, own=10, others=30).change(15), Purse("", 100, 40, own=10, others=30).change(25)
    (0, 5)
    >>> Purse("", limit=100, spent=40, own=10, others=30).room
    80
    """

    owner: str
    limit: int
    spent: int
    own: int
    others: int

    def change(self, amount: int) -> int:
        """Return by how much the owner's total changes when this many farthings are spent (or given back) here."""
        return max(self.others, self.own + amount) - max(self.others, self.own)

    @property
    def room(self) -> int:
        """The most that may be spent here."""
        return self.limit - self.spent + max(self.others, self.own) - self.own


def purses(connection: sa.Connection, scope: Scope, budget: int, spent: int) -> list[Purse]:
    """Return the purses that a charge draws on: the whole ledger's, and its allotment's."""
    found = [_purse(connection, scope, WHOLE, budget, spent)]
    if scope.allotment:
        row = connection.execute(tables.SHARE, {"owner": scope.allotment}).first()
        if row is None:
            raise LedgerError(
                "there is no such allotment",
                rule="a share is allotted before it is drawn on",
                got=scope.allotment,
                next_step=f"the owner allots one: farthing allot {scope.allotment} 20%",
            )
        found.append(_purse(connection, scope, scope.allotment, row.share, row.spent))
    return found


def _purse(connection: sa.Connection, scope: Scope, owner: str, limit: int, spent: int) -> Purse:
    """Return one owner's purse."""
    if not scope.partition:
        return Purse(owner, limit, spent, own=spent, others=0)
    facts = {"owner": owner, "in_partition": scope.partition, "in_part": scope.part}
    row = connection.execute(tables.PART, facts).one()
    return Purse(owner, limit, spent, own=row.own, others=row.others)


def charge(connection: sa.Connection, scope: Scope, found: list[Purse], amount: int) -> int:
    """Write a charge (or what is given back) to every account but the ledger's total, and return the total's change."""
    if amount:
        for purse in found:
            if scope.partition:
                _add(connection, Scope(purse.owner, scope.partition, scope.part), amount)
            if purse.owner != WHOLE and (change := purse.change(amount)):
                _add(connection, Scope(purse.owner), change)
    return found[0].change(amount)


def allot(connection: sa.Connection, budget: int, name: str, share: int, who: str) -> None:
    """Write an allotment's share; refuse more than is left."""
    totals = connection.execute(sa.select(tables.TOTALS)).one()
    held = connection.execute(tables.SHARE, {"owner": name}).first()
    rules.require_share(name, share, spent=0 if held is None else held.spent, left=budget - totals.spent)
    act = rows.Act(kind="allotted", name=name, amount=share, digest="")
    rows.advance(connection, rows.add_act(connection, act, who, rows.tip_of(totals)), 0)
    account = {"owner": name, "in_partition": "", "in_part": ""}
    if not connection.execute(tables.GRANT, {**account, "granted": share}).rowcount:
        _open(connection, Scope(name), share, 0)


def _add(connection: sa.Connection, account: Scope, amount: int) -> None:
    """Change what an account has spent; open it at its first charge."""
    facts = {"owner": account.allotment, "in_partition": account.partition, "in_part": account.part}
    if not connection.execute(tables.ADD, {**facts, "change": amount}).rowcount:
        _open(connection, account, None, amount)


def _open(connection: sa.Connection, account: Scope, share: int | None, spent: int) -> None:
    """Open an account."""
    names = {"allotment": account.allotment, "partition": account.partition, "part": account.part}
    connection.execute(tables.ACCOUNT, {**names, "share": share, "spent": spent})
