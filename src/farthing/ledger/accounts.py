"""Who is charged what for a reservation: the whole ledger, and the allotment it draws on; parts count at their maximum.

Every *owner* (the whole ledger, or an allotment) has one total. What is charged outside partitions adds to it; of each
partition it holds the most that any one part has spent. So a charge in a part raises the total only by what it raises
that maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import rows, rules, tables
from farthing.ledger.chain import Totals, damaged, sealed, unsettled

if TYPE_CHECKING:
    from farthing.ledger.tags import Tags

WHOLE: Final = ""
"""The owner that every charge draws on; all others have the name of an allotment."""

MOST_COMPARED: Final = 1000
"""So many open and failed reservations are all compared with the totals whenever some of them are shown."""


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

    def tagged(self, found: Tags) -> Tags:
        """Return tags as they are of questions asked here: those of two parts differ."""
        if not self.partition:
            return found
        here = int(sealed("tags", partition=self.partition, part=self.part)[:15], 16)
        return found._replace(tags=tuple(tag ^ here for tag in found.tags))


@dataclass(frozen=True, slots=True)
class Owner:
    """What one owner may still spend, and how a charge here changes its total.

    Attributes:
        owner: `WHOLE`, or an allotment.
        limit: the most that its total may be.
        spent: its total.
        own: what was spent here: in the part, or altogether when there is none.
        others: the most that any other part of the partition has spent.

    Guarantee: the totals that `change` gives are, at any time, what was spent outside partitions, plus the maximum over
        parts for each partition.
    Proof: docs/proofs/ledger.accounts.md.
    Assumes: the parts of one partition are disjoint sets of privacy units, fixed before anything is asked.
    Rounds: nothing.

    >>> Owner("", limit=100, spent=40, own=10, others=30).change(15), Owner("", 100, 40, own=10, others=30).change(25)
    (0, 5)
    >>> Owner("", limit=100, spent=40, own=10, others=30).room
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


def purses(connection: sa.Connection, scope: Scope, budget: int, spent: int) -> list[Owner]:
    """Return the purses that a charge draws on: the whole ledger's, and its allotment's."""
    found = [_purse(connection, scope, WHOLE, budget, spent)]
    if scope.allotment:
        row = connection.execute(tables.SHARE, {"owner": scope.allotment}).first()
        if row is None:
            raise LedgerError(
                "there is no such allotment",
                rule="a share has to be allotted before it is used",
                got=scope.allotment,
                next_step=f"the owner allots one: farthing allot {scope.allotment} 20%",
            )
        require_sealed(row)
        found.append(_purse(connection, scope, scope.allotment, row.share, row.spent))
    return found


def require_sealed(row: Any) -> None:
    """Refuse an account that is not as it was written."""
    if row.seal != _seal(Scope(row.allotment, row.partition, row.part), row.share, row.spent):
        raise damaged("an account is not what was written", "accounts carry a hash of their own", got=row.allotment)


def shares(connection: sa.Connection) -> list[Any]:
    """Return the accounts of all allotments, checked."""
    found = list(connection.execute(tables.SHARES))
    for row in found:
        require_sealed(row)
    return found


def _purse(connection: sa.Connection, scope: Scope, owner: str, limit: int, spent: int) -> Owner:
    """Return one owner's purse."""
    if not scope.partition:
        return Owner(owner, limit, spent, own=spent, others=0)
    facts = {"owner": owner, "in_partition": scope.partition, "in_part": scope.part}
    own, others = (_spent(connection, statement, facts) for statement in (tables.OWN, tables.OTHERS))
    return Owner(owner, limit, spent, own=own, others=others)


def _spent(connection: sa.Connection, statement: sa.Select[Any], facts: dict[str, str]) -> int:
    """Return what one account has spent, 0 where there is none."""
    row = connection.execute(statement, facts).first()
    if row is None:
        return 0
    require_sealed(row)
    return int(row.spent)


def charge(connection: sa.Connection, scope: Scope, found: list[Owner], amount: int) -> tuple[int, int]:
    """Write a charge (or what is given back) to every account but the ledger's totals.

    Returns:
        By how much the ledger's total changes, and the sum of its working copies' seals.
    """
    copies = 0
    if amount:
        for purse in found:
            if scope.partition:
                account = Scope(purse.owner, scope.partition, scope.part)
                copies += _keep(connection, account, None, purse.own, purse.own + amount)
            if purse.owner != WHOLE and (change := purse.change(amount)):
                copies += _keep(connection, Scope(purse.owner), purse.limit, purse.spent, purse.spent + change)
    return found[0].change(amount), copies


def allot(connection: sa.Connection, budget: int, name: str, share: int, who: str) -> None:
    """Write an allotment's share; refuse more than is left."""
    totals = rows.totals(connection)
    held = connection.execute(tables.SHARE, {"owner": name}).first()
    spent = 0
    if held is not None:
        require_sealed(held)
        spent = held.spent
    rules.require_share(name, share, spent=spent, left=budget - totals.spent)
    act = rows.Act(kind="allotted", name=name, amount=share, digest="")
    tip = rows.add_act(connection, act, who, totals.tip)
    had = None if held is None else held.share
    copies = _keep(connection, Scope(name), share, spent, spent, had=had)
    rows.advance(connection, totals.after(tip, copies=copies))


def resealed(connection: sa.Connection) -> int:
    """Seal all accounts again, as a newer format does when it takes a ledger over; return the sum of their seals."""
    copies = 0
    for row in connection.execute(sa.select(tables.ACCOUNTS)).all():
        account = Scope(row.allotment, row.partition, row.part)
        sealing = _seal(account, row.share, row.spent)
        facts = {"owner": row.allotment, "in_partition": row.partition, "in_part": row.part}
        connection.execute(tables.KEEP, {**facts, "granted": row.share, "total": row.spent, "sealed": sealing})
        copies += int(sealing, 16)
    return copies


def _keep(
    connection: sa.Connection, account: Scope, share: int | None, before: int, spent: int, *, had: int | None = None
) -> int:
    """Write what an account has spent, opening it at first; return by how much the sum of the seals changes.

    Args:
        connection: the writer's.
        account: whose it is.
        share: its share now.
        before: what it had spent.
        spent: what it has spent now.
        had: the share that it had, where that is another.
    """
    sealing = _seal(account, share, spent)
    facts = {"owner": account.allotment, "in_partition": account.partition, "in_part": account.part}
    if connection.execute(tables.KEEP, {**facts, "granted": share, "total": spent, "sealed": sealing}).rowcount:
        old = _seal(account, share if had is None else had, before)
        return int(sealing, 16) - int(old, 16)
    names = {"allotment": account.allotment, "partition": account.partition, "part": account.part}
    connection.execute(tables.ACCOUNT, {**names, "share": share, "spent": spent, "seal": sealing})
    return int(sealing, 16)


def _seal(account: Scope, share: int | None, spent: int) -> str:
    """Return the hash of an account."""
    names = {"allotment": account.allotment, "partition": account.partition, "part": account.part}
    return sealed("accounts", **names, share=share, spent=spent)


def copies_of(connection: sa.Connection) -> int:
    """Return the sum of the seals of all working copies, each of them checked."""
    copies = 0
    for row in connection.execute(sa.select(tables.ACCOUNTS)):
        require_sealed(row)
        copies += int(row.seal, 16)
    for row in connection.execute(sa.select(tables.UNSETTLED)):
        copies += unsettled(row.question, row.reservation)
    return copies % (1 << 256)


def require_few_copies(connection: sa.Connection, totals: Totals) -> bool:
    """Refuse working copies that are not what the totals say, if they are few; return whether they were compared.

    Of many, those that are shown are checked one by one; all of them when the ledger is opened, and by `verify`.
    """
    few = connection.execute(tables.MANY_UNSETTLED, {"most": MOST_COMPARED}).scalar_one() < MOST_COMPARED
    if few:
        require_copies(connection, totals)
    return bool(few)


def require_copies(connection: sa.Connection, totals: Totals) -> None:
    """Refuse working copies that are not, all together, what the totals say."""
    if copies_of(connection) != totals.copies:
        raise damaged(
            "an account or an open reservation is missing, or was changed",
            "the totals carry a hash of all working copies",
        )
