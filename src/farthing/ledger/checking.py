"""The books recomputed from their entries."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from farthing.ledger.tables import RESERVATIONS, SETTLEMENTS, TOTALS, UNSETTLED

_BOTH: Final = sa.outerjoin(RESERVATIONS, SETTLEMENTS)
_CHARGED: Final = sa.func.coalesce(SETTLEMENTS.c.amount, RESERVATIONS.c.reserved)
_IS_UNSETTLED: Final = sa.or_(SETTLEMENTS.c.state.is_(None), SETTLEMENTS.c.state == "failed")

_SUM: Final = sa.select(sa.func.coalesce(sa.func.sum(_CHARGED), 0)).select_from(_BOTH)

_REFUNDED: Final = (
    sa.select(RESERVATIONS.c.id)
    .select_from(_BOTH)
    .where(
        sa.or_(
            SETTLEMENTS.c.amount > RESERVATIONS.c.reserved,
            sa.and_(SETTLEMENTS.c.state == "failed", SETTLEMENTS.c.amount != RESERVATIONS.c.reserved),
        )
    )
)

_ORPHANED: Final = (
    sa.select(SETTLEMENTS.c.reservation).outerjoin_from(SETTLEMENTS, RESERVATIONS).where(RESERVATIONS.c.id.is_(None))
)

_FORGOTTEN: Final = (
    sa.select(RESERVATIONS.c.id)
    .select_from(
        _BOTH.outerjoin(
            UNSETTLED,
            sa.and_(UNSETTLED.c.question == RESERVATIONS.c.question, UNSETTLED.c.reservation == RESERVATIONS.c.id),
        )
    )
    .where(UNSETTLED.c.reservation.is_not(None) != _IS_UNSETTLED)
)

_RULES: Final = (
    (_REFUNDED, "settled above its reservation, or refunded on failure"),
    (_ORPHANED, "closed but never reserved"),
    (_FORGOTTEN, "unsettled, yet not counted against its question, or the reverse"),
)


def check(connection: sa.Connection, budget: int) -> list[str]:
    """Return every way in which the books contradict themselves; none in good books."""
    pages = connection.exec_driver_sql("PRAGMA quick_check").scalars().all()
    faults = [f"page check: {text}" for text in pages if text != "ok"]
    total = connection.execute(_SUM).scalar_one()
    spent = connection.execute(sa.select(TOTALS.c.spent)).scalar_one()
    if spent != total:
        faults.append(f"running total {spent}, entries sum to {total}")
    if total > budget:
        faults.append(f"entries sum to {total}, over the budget of {budget}")
    for rule, meaning in _RULES:
        entries = connection.execute(rule).scalars().all()
        faults += [f"entry {entry} is {meaning}" for entry in entries]
    return faults
