"""One transaction: where data, noise and ledger meet, and nowhere else.

Load what stands; plan; wait for whoever is answering the same question; reserve the worst price durably, or refuse and
say what would fit; measure; settle to what was used, or fail. A crash in between leaves the reservation charged, and an
error does too: there is no refund, since an error is an output. Only what ends before a row could be read is withdrawn.
Where the books cannot be written just then, the work is owed: it is closed in the same way when they can be again.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from farthing.errors import BudgetExceeded, Contested, DataError, Frozen, LedgerError, LedgerLost, PriceRisen
from farthing.log import Event, log
from farthing.session.core.booked_question import Begun
from farthing.session.core.ceiling import CEILING, risen
from farthing.session.core.door import forget, was_opened
from farthing.session.core.patience import patiently
from farthing.session.core.refused import priceless, refusal, request_tag, require_readable
from farthing.session.core.shield import shielded
from farthing.session.core.tags import sought, tags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from farthing.ledger.entry import Entry, Receipt, Stored
    from farthing.ledger.store import Ledger
    from farthing.privacy.loss import Booked
    from farthing.session.core.booked_question import Bill, BookedQuestion, T
    from farthing.session.core.context import Context

PATIENCE_S: Final = 30.0
"""How long an ask waits for another live process or thread that is answering the very same question."""

FIRST_SHARE: Final = 64
"""What is measured look by look may cost one part in so many of its worst price before its first look asks for more."""

_GROWTH: Final = 4
"""A look is begun up to one part in so many more than the last, at least: a commit for each look costs time;"""

_SMALL: Final = 8
"""and up to twice the last while that is within one part in so many of what is reserved."""

_PAUSE_S: Final = 0.02

_WORK: Final[dict[str, _Work]] = {}
"""What threads of this process are working on, by request. What is open and not here was given up."""


_OWED: Final[dict[str, _Work]] = {}
"""What could not be closed, since the books could not be written, by request: whoever asks next closes it."""


def stored_measurement(context: Context, question: str) -> Stored | None:
    """Return what was released of a question, or None: reading it is free."""
    return context.ledger.load(question)


def stored_holding(context: Context, prefix: str, keys: pa.Table, most: int) -> Iterator[Stored]:
    """Give what was released of the sharpest questions that begin so and may hold these groups, at most so many.

    Those that were stored by older versions get their tags first.
    """
    ledger = context.ledger
    for question in ledger.untagged(prefix):
        stored = ledger.load(question)
        if stored is not None:
            ledger.tag(question, tags_of(question, stored.blob))
    for question in ledger.holding(prefix, sought(prefix, keys), most):
        stored = ledger.load(question)
        if stored is not None:
            yield stored


def charged_fresh(context: Context, question: str) -> bool:
    """Tell whether a question is charged from the beginning, since nobody knows what was seen when it failed."""
    return context.ledger.charged_fresh(question)


def answer_and_book(context: Context, question: str, plan: Callable[[Stored | None], BookedQuestion[T]]) -> T:
    """Answer a question, and book it: free of charge where what stands already answers.

    Args:
        context: the data and the books.
        question: its identity in the ledger.
        plan: plans it under what stands; called again whenever that has changed.

    Guarantee: the engine is asked, and noise drawn, only under a durable reservation of at least the worst price, by
        one of all who ask the same question at the same time; on every way out, whatever was raised, the reservation
        is settled to what was used, or failed and charged whole; or withdrawn where the door to the rows was never
        opened for it; at once, or, where the books cannot be written, when they can be: until then it is charged whole.
        So what leaves is as private as what the ledger charged.
    Proof: docs/proofs/session.answering.one_question.md.
    Assumes: the ledger's contract; `measured` prices all that it drew; whoever is still at work after `PATIENCE_S`
        is passed by, at the fresh price.
    Rounds: prices up to whole farthings.
    """
    deadline, swept = time.monotonic() + PATIENCE_S, False
    while True:
        catch_up(context.ledger)
        stored = stored_measurement(context, question)
        step = plan(stored)
        bill = step.bill
        if bill is None:
            log(Event.FREE)
            return step.stored_answer()
        if not swept:
            swept = True
            if context.ledger.give_up():
                continue
        require_readable(context)
        alone = time.monotonic() < deadline and not _in_the_middle_of(context.ledger, question)
        work = _Work(context, question, bill, alone=alone)
        with suppress(Contested):
            return work.done(step, 0 if stored is None else stored.version)
        log(Event.WAITED)
        _wait(context.ledger, question, deadline)


def begin_look(receipt: Receipt, price: Booked, merge: Callable[[bytes | None], bytes] | None = None) -> Begun:
    """Begin a look, durably, before its noise is drawn: the price is that of all that the receipt then measured.

    Args:
        receipt: what it is measured on.
        price: of all looks on the receipt, this one included.
        merge: what the ledger is to keep of the looks before, given what stands there now; None where there is nothing.

    Guarantee: whenever the process dies, what it had measured costs at most the last look that was begun.
    Proof: docs/proofs/ledger.store.md, "Look by look".
    Assumes: every look of the question is begun here, at its price.
    Rounds: up, to at most twice the last look while it is small, and a quarter more than it then, so that many small
        looks are begun at once.
    """
    return next(work for work in list(_WORK.values()) if work.holds(receipt)).begin(receipt, price.farthings, merge)


def catch_up(ledger: Ledger | None = None) -> None:
    """Close what asks of this process owe, to one ledger or to all, as far as their books can be written.

    An answer that was drawn is settled and stored, so that asking again is free; what read no row is withdrawn.
    """
    lost = set()
    for request, work in list(_OWED.items()):
        identity = work.about[0]
        if identity not in lost and (ledger is None or identity == ledger.identity):
            if work.ended():
                _OWED.pop(request, None)
            else:
                lost.add(identity)


def give_up(context: Context, *, unknown: bool = False) -> None:
    """Give back what dead processes hold and had not begun to measure."""
    catch_up(context.ledger)
    context.ledger.give_up(unknown=unknown)


def resume(context: Context) -> None:
    """Book that the owner goes on after failures: an entry that costs nothing, and ends their row.

    The owner's word is taken that whoever is not known to run, on other machines and in other containers, does not.
    """
    give_up(context, unknown=True)
    question = f"go on after failures {request_tag(context.data_set)}"
    receipt = context.ledger.reserve(
        increase=0,
        fresh=0,
        question=question,
        version=0,
        label="the owner goes on after failures",
        request=f"{request_tag(context.data_set)}.{secrets.token_hex(16)}",
    )
    context.ledger.settle(receipt, 0, None)


class _Work:
    """One try to answer one question: from the reservation until it is closed."""

    def __init__(self, context: Context, question: str, bill: Bill, *, alone: bool) -> None:
        self._context = context
        self._question = question
        self._bill = bill
        self._alone = alone
        self._request = f"{request_tag(context.data_set)}.{secrets.token_hex(16)}"
        self.about = (context.ledger.identity, question, threading.get_ident())
        self.closed = False
        self._pid = os.getpid()
        self._failed = False
        self._settled = False
        self._receipt: Receipt | None = None
        self._drawn: tuple[int, Callable[[bytes | None], bytes]] | None = None
        self._tried = False
        self._begun = 0
        self._ceiling = CEILING.get()

    def done(self, step: BookedQuestion[T], version: int) -> T:
        """Reserve, measure, settle; whatever is raised on the way, wherever, leaves nothing open.

        An interrupt may come at any line, in the closing too: so that is done twice, and what is closed stays as it is.
        """
        try:
            try:
                _WORK[self._request] = self
                return self._measured(step, version)
            finally:
                self._close()
        finally:
            self._close()
            _WORK.pop(self._request, None)
            if self._receipt is not None:
                log(Event.BOOKED if self._settled else Event.ENDED, self._receipt.id)

    def _measured(self, step: BookedQuestion[T], version: int) -> T:
        """Reserve, measure, settle."""
        receipt = self._receipt = self._reserved(version)
        self._note(receipt.reserved)
        if not self._bill.looks:
            self._begun = receipt.reserved
        try:
            answer, price = shielded(step.measured, receipt)
        except Exception:
            self._failed = True
            raise
        self._drawn = drawn = (price.farthings, lambda current: step.merged(current, answer, receipt))
        try:
            patiently(lambda: self._settle(receipt, *drawn))
        except LedgerError:
            raise
        except Exception:
            self._drawn = None  # what cannot be stored now never can
            raise
        return answer

    def _settle(self, receipt: Receipt, farthings: int, merged: Callable[[bytes | None], bytes]) -> None:
        """Settle what was drawn. A settlement that was written, but not confirmed, is not written twice."""
        ledger, again, self._tried = self._context.ledger, self._tried, True
        if not (again and ledger.settled(receipt)):
            ledger.settle(receipt, farthings, merged, tagged=partial(tags_of, self._question))
        self.closed = self._settled = True
        self._note(farthings - receipt.reserved)
        forget(receipt)

    def holds(self, receipt: Receipt) -> bool:
        """Return whether this is the work that a receipt was given for."""
        mine = self._receipt
        return mine is not None and (mine.ledger, mine.id) == (receipt.ledger, receipt.id)

    def begin(self, receipt: Receipt, farthings: int, merge: Callable[[bytes | None], bytes] | None) -> Begun:
        """Begin a look up to a price, and store what was measured before it; unless so much was begun already."""
        written = farthings > self._begun
        if written:
            ahead = max(self._begun + self._begun // _GROWTH, min(2 * self._begun, receipt.reserved // _SMALL))
            most = max(farthings, min(ahead, receipt.reserved))
            patiently(lambda: self._context.ledger.look(receipt, most, merge))
            self._begun = most
        return Begun(self._begun, written=written)

    def _reserved(self, version: int) -> Receipt:
        """Reserve the worst price; refuse a price of nothing, and say what would fit where it does not.

        What costs nothing beyond what was paid for other groups is reserved as one farthing, and settled to nothing:
        an engine is asked under a price above zero, always.
        """
        bill = self._bill
        if not bill.fresh.farthings:
            raise priceless(bill.name, bill.fresh)
        increase = max(bill.increase.farthings, 1)
        refused = None
        self._begun = increase // FIRST_SHARE + 1
        try:
            return self._context.ledger.reserve(
                increase=increase,
                fresh=max(bill.fresh.farthings, increase),
                question=self._question,
                version=version,
                label=bill.label,
                target=bill.target,
                delta=bill.delta,
                request=self._request,
                alone=self._alone,
                at_most=None if self._ceiling is None else self._ceiling.left(bill.increase),
                first=self._begun if bill.looks else None,
            )
        except BudgetExceeded as error:
            refused = error
        except (Contested, Frozen):
            self.closed = True
            raise
        self.closed = True
        if isinstance(refused, PriceRisen) and self._ceiling is not None:
            raise risen(self._context, refused.needed, self._ceiling)
        left = self._context.ledger.remaining
        if bill.delta and increase <= left:  # it is the delta that does not suffice, as the ledger says
            raise refused
        raise refusal(self._context, bill.name, bill.increase, bill.fitting())

    def _note(self, charged: int) -> None:
        """Note what was charged, or given back, of what the ask may be charged in all."""
        if self._ceiling is not None:
            self._ceiling.charged += charged

    def _close(self) -> None:
        """Close what was reserved and is still open; what cannot be written now is owed."""
        if not self.closed:
            if not self.ended():
                _OWED[self._request] = self
            self.closed = True

    def ended(self) -> bool:
        """Close what is open; return whether that is done, or is no longer this work's to do.

        What was drawn is settled. Otherwise it is failed, for noise may have been drawn, and the failure itself is an
        output; where the door to the rows was never opened, neither is so, and it is withdrawn.
        """
        ledger = self._context.ledger
        if self._pid != os.getpid() or ledger.closed:
            return True
        try:
            receipt = self._receipt or ledger.receipt(self._request)
            if receipt is None or self._stored(receipt):
                return True
            if was_opened(receipt):
                ledger.fail(receipt, interrupted=not self._failed)
            else:
                ledger.withdraw(receipt)
        except LedgerError:
            return False
        forget(receipt)
        return True

    def _stored(self, receipt: Receipt) -> bool:
        """Settle what was drawn, if it was; return whether that was done. LedgerLost where the server is not there."""
        if self._drawn is None:
            return False
        try:
            self._settle(receipt, *self._drawn)
        except LedgerLost:
            raise
        except (LedgerError, DataError):
            return False
        return True


def _wait(ledger: Ledger, question: str, deadline: float) -> None:
    """Wait until nobody who lives has a question open; close what this process left behind."""
    while time.monotonic() < deadline:
        catch_up(ledger)
        held = [entry for entry in ledger.open_of(question) if entry.alive]
        given_up = [entry for entry in held if _given_up(entry)]
        for entry in given_up:
            _fail(ledger, entry.request)
        if len(given_up) == len(held):
            return
        time.sleep(_PAUSE_S)


def _in_the_middle_of(ledger: Ledger, question: str) -> bool:
    """Return whether this thread is answering the question already: it does not wait for itself."""
    mine = (ledger.identity, question, threading.get_ident())
    return any(work.about == mine and not work.closed for work in list(_WORK.values()))


def _given_up(entry: Entry) -> bool:
    """Return whether a live reservation is one of ours that no thread is working on, and that nobody will close."""
    if entry.pid != os.getpid() or entry.request is None or entry.request in _OWED:
        return False
    work = _WORK.get(entry.request)
    return work is None or work.closed


def _fail(ledger: Ledger, request: str | None) -> None:
    """Close a request's reservation as interrupted, if it is open: charged. A ledger that cannot be written is left."""
    with suppress(LedgerError):
        if request is not None and (receipt := ledger.receipt(request)) is not None:
            ledger.fail(receipt, interrupted=True)
