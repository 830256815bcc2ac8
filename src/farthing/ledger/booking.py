"""Reserve, look, settle, fail and withdraw, each inside a transaction that its caller has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from farthing.ledger import freezing, rows, rules, tables, tags
from farthing.ledger.accounts import Scope, charge, purses
from farthing.ledger.chain import Totals, unsettled
from farthing.ledger.entry import Receipt
from farthing.ledger.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from farthing.ledger.chain import Tip
    from farthing.ledger.data import DataSet
    from farthing.ledger.entry import State, Stored, Terms
    from farthing.ledger.tags import Tags


MOST_GIVEN_UP: Final = 16
"""So many reservations of the dead are closed at a time."""


class Booking(NamedTuple):
    """Whose books are written, and by whom."""

    terms: Terms
    identity: str
    who: str


class ReservationFacts(NamedTuple):
    """What a reservation is asked with, checked."""

    asked: rules.ReservationRequest
    label: str
    request: str | None
    target: str
    delta: int
    data: DataSet | None
    alone: bool
    at_most: int | None
    first: int | None = None


class Stores(NamedTuple):
    """What is stored of a question: its merge with what stands there, and what tells the tags of that."""

    merge: Callable[[bytes | None], bytes]
    tagged: Callable[[bytes], Tags] | None


def reserve(books: Booking, connection: sa.Connection, scope: Scope, facts: ReservationFacts) -> Receipt:
    """Reserve, inside a transaction."""
    asked, data = facts.asked, facts.data
    sought = {"question": asked.question, "request": facts.request, "data": "" if data is None else data.name}
    standing = connection.execute(tables.STANDING, sought | freezing.sought(books.who, scope.allotment)).one()
    totals = Totals.of(standing)
    if standing.before is not None:
        row = connection.execute(tables.STATE_OF, {"id": standing.before}).one()
        return rules.again(row, asked, scope.allotment, books.identity)
    if asked.fresh or facts.delta:
        freezing.require_thawed(connection, standing, books.who, scope.allotment)
    if facts.alone:
        rules.require_alone(connection, standing, asked)
    exclusive = standing.version == asked.version and not standing.others
    amount = asked.increase if exclusive else asked.fresh
    rules.require_at_most(facts.at_most, amount)
    found = purses(connection, scope, books.terms.budget, totals.spent)
    rules.require_room(found, amount)
    if facts.delta:
        rules.require_delta(books.terms, totals.coins, facts.delta)
    tip, number = totals.tip, standing.last + 1
    if data is not None:
        tip = data.booked(connection, standing.mark, books.who, tip)
    reservation = rows.Reservation(
        id=number, question=asked.question, reserved=amount, exclusive=exclusive, version=asked.version,
        label=facts.label, target=facts.target, request=facts.request, allotment=scope.allotment,
        partition=scope.partition, part=scope.part,
    )  # fmt: skip
    tip = rows.add_reservation(connection, reservation, books.who, tip)
    if facts.delta:
        tip = rows.add_delta(connection, number, facts.delta, books.who, tip)
    tip = _opened(connection, books, facts, Receipt(number, books.identity, amount, asked.question, 0, exclusive), tip)
    change, copies = charge(connection, scope, found, amount)
    copies += unsettled(asked.question, number)
    rows.advance(connection, totals.after(tip, change=change, copies=copies, coins=facts.delta))
    return Receipt(number, books.identity, amount, asked.question, asked.version, exclusive)


def _opened(connection: sa.Connection, books: Booking, facts: ReservationFacts, receipt: Receipt, tip: Tip) -> Tip:
    """List a reservation as open, and begin its first look where it is measured look by look."""
    looks = facts.first is not None
    connection.execute(tables.OPEN, {"reservation": receipt.id, "question": receipt.question, "looks": int(looks)})
    if facts.first is None:
        return tip
    return rows.add_look(connection, receipt.id, max(1, min(facts.first, receipt.reserved)), books.who, tip)


def look(books: Booking, connection: sa.Connection, receipt: Receipt, amount: int, stores: Stores | None) -> None:
    """Let an open reservation be measured up to a price, inside a transaction; never less than it may be already.

    What `stores` gives is stored with it: what was measured in the looks before.
    """
    row = rules.reserved(connection, receipt, books.identity)
    rules.require_open(row)
    if amount > row.allowed:
        totals = Totals.of(row)
        tip = totals.tip
        if stores is not None:
            stored = _sharpened(connection, receipt.question, stores)
            act = rows.Act(kind="carried", name=receipt.question, amount=stored.version, digest=stored.digest)
            tip = rows.add_act(connection, act, books.who, tip)
        tip = rows.add_look(connection, receipt.id, amount, books.who, tip)
        rows.advance(connection, totals.after(tip))


def settle(
    books: Booking,
    connection: sa.Connection,
    receipt: Receipt,
    amount: int,
    stores: Stores | None,
) -> None:
    """Settle, inside a transaction."""
    row = rules.reserved(connection, receipt, books.identity)
    rules.require_open(row)
    rules.require_allowed(row, amount)
    stored = None if stores is None else _sharpened(connection, receipt.question, stores)
    _lowered(books, connection, receipt, row, amount=amount, stored=stored)


def _sharpened(connection: sa.Connection, question: str, stores: Stores) -> Stored:
    """Replace a question's measurement, and the tags by which it is found."""
    stored = rows.sharpen(connection, question, stores.merge, tagged=stores.tagged is not None)
    if stores.tagged is not None:
        tags.write(connection, question, stores.tagged(stored.blob), noted=stored.version == 1)
    return stored


def withdraw(books: Booking, connection: sa.Connection, receipt: Receipt) -> None:
    """Close a reservation at no price, inside a transaction."""
    row = rules.reserved(connection, receipt, books.identity)
    if row.state is None:
        _lowered(books, connection, receipt, row, amount=0, stored=tables.INTERRUPTED)


def _lowered(
    books: Booking,
    connection: sa.Connection,
    receipt: Receipt,
    row: Any,
    *,
    amount: int,
    stored: Stored | str | None,
    state: State = "settled",
) -> None:
    """Close an open reservation at what was used of it, with the measurement that was stored, or a word why none."""
    totals = Totals.of(row)
    tip = rows.add_settlement(connection, receipt.id, state, amount, stored=stored, who=books.who, tip=totals.tip)
    connection.execute(tables.SHUT, {"id": receipt.id})
    copies = 0
    if state == "settled":
        connection.execute(tables.SETTLED, {"question": receipt.question, "id": receipt.id})
        copies = -unsettled(receipt.question, receipt.id)
    scope = Scope(row.allotment, row.partition, row.part)
    found = purses(connection, scope, books.terms.budget, totals.spent)
    change, kept = charge(connection, scope, found, amount - receipt.reserved)
    # Were it lost, the whole reservation would be charged still: nobody waits for the witness.
    rows.advance(connection, totals.after(tip, change=change, copies=copies + kept), sync=False)


def fail(books: Booking, connection: sa.Connection, receipt: Receipt, *, interrupted: bool) -> None:
    """Close a reservation at the price up to which it might be measured, inside a transaction."""
    row = rules.reserved(connection, receipt, books.identity)
    if row.state is None:
        word = tables.INTERRUPTED if interrupted else None
        _lowered(books, connection, receipt, row, amount=row.allowed, stored=word, state="failed")


def give_up(books: Booking, connection: sa.Connection, dead: Callable[[Process], bool]) -> int:
    """Close what was left open by processes that are dead, at the price up to which each might measure; count them.

    Guarantee: the prices charged for a question still sum to at least Q of all its measurements.
    Proof: docs/proofs/ledger.store.md, "Look by look": whether or not the process is dead.
    Assumes: noise is drawn after `look` returned, and only up to the price that it was called with.
    Rounds: nothing.
    """
    left = connection.execute(tables.OPEN_LOOKING).all()
    found = [row for row in left if dead(Process(row.pid, row.host, row.started))][:MOST_GIVEN_UP]
    for row in found:
        receipt = Receipt(row.id, books.identity, row.reserved, row.question, row.version, row.exclusive)
        fail(books, connection, receipt, interrupted=True)
    return len(found)


def freeze(books: Booking, connection: sa.Connection, name: str, *, frozen: bool) -> None:
    """Freeze or thaw somebody, inside a transaction: an entry that costs nothing, and is in the chain as all are."""
    whom = f"the questions of {name}" if name else "the data set"
    label = f"the owner {'froze' if frozen else 'thawed'} {whom}"
    asked = rules.asked(increase=0, fresh=0, question=freezing.place(name), version=0)
    facts = ReservationFacts(asked, label, None, "", 0, None, alone=False, at_most=None)
    receipt = reserve(books, connection, Scope(), facts)
    settle(books, connection, receipt, 0, Stores(lambda _: freezing.WORDS[frozen], lambda _: tags.NONE))
