"""Which record of a question the ledger keeps: the one rule for every kind of question.

A *line* is what an ask measured, on top of what it had read of the question. Its price was either an increase over a
stored record, or full: all that it measured itself, counted from nothing. Somebody else may have stored a line of the
same question since it was read. Then one of the two is kept:

- Whoever was charged an increase over a stored record must store its own line: only together with that record was it
  paid for.
- A line that was paid in full may be left or stored. It may take the place of another only where that other was paid
  in full as well; an increase may stand there unless ours was first in line.
- A kind of question whose record can hold any number of lines, each of them paid in full, keeps them all.
- Where nobody came between, ours is on top of all that stands there, and is stored, whatever its price was. So what was
  paid for serves the next ask, also when an earlier one failed and every later price is a full one.
- A line of a pure ledger that begins again is on top of nothing, though nobody came between. It and what stands there
  were both paid in full: it is stored where it is worth as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.ledger.entry import Receipt


def merge(
    current: bytes | None,
    ours: bytes,
    receipt: Receipt,
    *,
    read: bytes | None,
    serves: Callable[[bytes], bool] | None = None,
    full: bool = False,
    both: Callable[[bytes, bytes], bytes] | None = None,
    worth: Callable[[bytes], bool] | None = None,
) -> bytes:
    """Return the record that the ledger is to keep of a question.

    Args:
        current: what stands there now, None if there is nothing.
        ours: the record after our measurements, which are on top of `read`.
        receipt: what our measurements were reserved with; `exclusive` says that an increase was charged.
        read: what stood there when they were planned.
        serves: tells whether another record answers what we asked, where either may be kept; by default it does.
        full: whether every line of this kind of question is paid in full, ours and all others.
        both: returns a record that holds theirs and ours, for kinds of questions whose lines are all paid in full and
            are kept side by side.
        worth: tells whether ours is worth as much as another record, for kinds of questions whose lines begin again
            where the receipt is not exclusive.

    Guarantee: nothing is left out of the record but lines that were paid in full.
    Proof: docs/proofs/ledger.store.md, "Which record stays".
    Assumes: `Ledger.reserve` lets at most one open reservation of a question be exclusive, and none after a failure.
    Rounds: nothing.

    >>> from farthing.ledger.entry import Receipt
    >>> fresh = Receipt(7, "books", 10, "q", 1, exclusive=False)
    >>> merge(b"read", b"ours", fresh, read=b"read"), merge(b"theirs", b"ours", fresh, read=b"read")
    (b'ours', b'theirs')
    """
    if both is not None and current is not None:
        return both(current, ours)
    if current is None:
        return ours
    if current == read and (worth is None or receipt.exclusive or worth(current)):
        return ours
    if not full:
        if receipt.exclusive and receipt.version > 0:
            return ours
        if not receipt.exclusive:
            return current
    return current if serves is None or serves(current) else ours
