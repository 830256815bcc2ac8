"""The tables of a ledger, format 1, and the statements that read and write them."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

FORMAT: Final = 1
"""Version of the tables. A reader refuses what is newer."""

META: Final = sa.MetaData()

TERMS: Final = sa.Table(
    "terms",
    META,
    sa.Column("only", sa.Integer, sa.CheckConstraint("only = 1"), primary_key=True),
    sa.Column("identity", sa.Text, nullable=False),
    sa.Column("hash_key", sa.LargeBinary, nullable=False),
    sa.Column("currency", sa.Text, nullable=False),
    sa.Column("budget", sa.BigInteger, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),  # decimal digits: 2^80 coins do not fit a 64-bit column
    sa.Column("keys_delta", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("made_at", sa.BigInteger, nullable=False),
)

TOTALS: Final = sa.Table(
    "totals",
    META,
    sa.Column("only", sa.Integer, sa.CheckConstraint("only = 1"), primary_key=True),
    sa.Column("spent", sa.BigInteger, sa.CheckConstraint("spent >= 0"), nullable=False),
)

RESERVATIONS: Final = sa.Table(
    "reservations",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request", sa.Text, unique=True),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("reserved", sa.BigInteger, sa.CheckConstraint("reserved >= 0"), nullable=False),
    sa.Column("exclusive", sa.Boolean, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("opened_at", sa.BigInteger, nullable=False),  # microseconds since 1970, UTC
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("started", sa.Text, nullable=False),
)

SETTLEMENTS: Final = sa.Table(
    "settlements",
    META,
    sa.Column("reservation", sa.Integer, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sa.Column("state", sa.Text, sa.CheckConstraint("state IN ('settled', 'failed')"), nullable=False),
    sa.Column("amount", sa.BigInteger, sa.CheckConstraint("amount >= 0"), nullable=False),
    sa.Column("closed_at", sa.BigInteger, nullable=False),
)

UNSETTLED: Final = sa.Table(
    "unsettled",  # reservations that are open or failed, by question: a working copy, checked by verify()
    META,
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("reservation", sa.Integer, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

MEASUREMENTS: Final = sa.Table(
    "measurements",
    META,
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),  # before the blob, so that reading it does not touch the blob
    sa.Column("blob", sa.LargeBinary, nullable=False),
)

APPEND_ONLY: Final = (TERMS, RESERVATIONS, SETTLEMENTS)

_question = sa.bindparam("question", type_=sa.Text)
_stored = sa.select(MEASUREMENTS.c.version).where(MEASUREMENTS.c.question == _question).scalar_subquery()
_others = sa.exists().where(UNSETTLED.c.question == _question)

STANDING: Final = sa.select(TOTALS.c.spent, sa.func.coalesce(_stored, 0).label("version"), _others.label("others"))
"""All that pricing a reservation needs: total, the question's stored version, whether others of it are unsettled."""

BY_REQUEST: Final = sa.select(RESERVATIONS).where(RESERVATIONS.c.request == sa.bindparam("request"))

STATE_OF: Final = (
    sa.select(RESERVATIONS, SETTLEMENTS.c.state)
    .outerjoin_from(RESERVATIONS, SETTLEMENTS)
    .where(RESERVATIONS.c.id == sa.bindparam("id"))
)

LOAD: Final = sa.select(MEASUREMENTS.c.version, MEASUREMENTS.c.blob).where(MEASUREMENTS.c.question == _question)

RESERVE: Final = sa.insert(RESERVATIONS)
OPENED: Final = sa.insert(UNSETTLED)
CLOSE: Final = sa.insert(SETTLEMENTS)
STORE: Final = sa.insert(MEASUREMENTS)

ADD_SPENT: Final = sa.update(TOTALS).values(spent=TOTALS.c.spent + sa.bindparam("change"))

SETTLED: Final = sa.delete(UNSETTLED).where(
    UNSETTLED.c.question == _question, UNSETTLED.c.reservation == sa.bindparam("id")
)

SHARPEN: Final = (
    sa.update(MEASUREMENTS)
    .where(MEASUREMENTS.c.question == sa.bindparam("key"))
    .values(version=sa.bindparam("next"), blob=sa.bindparam("bytes"))
)

_ENTRY: Final = sa.select(RESERVATIONS, SETTLEMENTS.c.state, SETTLEMENTS.c.amount, SETTLEMENTS.c.closed_at)

HISTORY: Final = _ENTRY.outerjoin_from(RESERVATIONS, SETTLEMENTS).order_by(RESERVATIONS.c.id.desc())

OPEN: Final = (
    _ENTRY.join_from(UNSETTLED, RESERVATIONS, UNSETTLED.c.reservation == RESERVATIONS.c.id)
    .outerjoin(SETTLEMENTS, SETTLEMENTS.c.reservation == RESERVATIONS.c.id)
    .where(SETTLEMENTS.c.reservation.is_(None))
    .order_by(RESERVATIONS.c.id.desc())
)
