"""The tables of a ledger, format 5, and the statements that read and write them, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

FORMAT: Final = 5
"""Version of the tables. A reader refuses what is newer, and carries over what is older."""

INTERRUPTED: Final = "interrupted"
"""What stands in place of a measurement's digest where the asker stopped the work."""

META: Final = sa.MetaData()

# Text that is searched: byte by byte on both databases, so that an index finds what begins with something.
_KEY: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite's own row number is an INTEGER


def _only() -> sa.Column[int]:
    """Return the key of a table of one row."""
    return sa.Column("only", sa.Integer, sa.CheckConstraint('"only" = 1'), primary_key=True, autoincrement=False)


def _record(moment: str) -> list[sa.Column[object]]:
    """Return what every record of the chain has: who, when, by how much the clock was behind, number and hash."""
    return [
        sa.Column("who", sa.Text, nullable=False),
        sa.Column(moment, sa.BigInteger, nullable=False),  # microseconds since 1970, UTC
        sa.Column("behind", sa.BigInteger, nullable=False),  # microseconds
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    ]


TERMS: Final = sa.Table(
    "terms",
    META,
    _only(),
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
    "totals",  # the one row that a writer locks: what is charged, and the end of the chain
    META,
    _only(),
    sa.Column("spent", sa.BigInteger, sa.CheckConstraint("spent >= 0"), nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("clock", sa.BigInteger, nullable=False),
    sa.Column("coins", sa.Text, nullable=False),  # delta that searches for keys were charged, decimal digits
    sa.Column("copies", sa.Text, nullable=False),  # the sum of the seals of all working copies, as hexadecimal digits
    sa.Column("terms", sa.Text, nullable=False),  # the hash of the terms
    sa.Column("seal", sa.Text, nullable=False),  # the hash of this row
)

RESERVATIONS: Final = sa.Table(
    "reservations",
    META,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("request", sa.Text, unique=True),
    sa.Column("question", _KEY, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("reserved", sa.BigInteger, sa.CheckConstraint("reserved >= 0"), nullable=False),
    sa.Column("exclusive", sa.Boolean, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("allotment", sa.Text, nullable=False),  # "" for none, as are the next two
    sa.Column("partition", sa.Text, nullable=False),
    sa.Column("part", sa.Text, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("started", sa.Text, nullable=False),
    *_record("opened_at"),
)

SETTLEMENTS: Final = sa.Table(
    "settlements",
    META,
    sa.Column("reservation", _NUMBER, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sa.Column("state", sa.Text, sa.CheckConstraint("state IN ('settled', 'failed')"), nullable=False),
    sa.Column("amount", sa.BigInteger, sa.CheckConstraint("amount >= 0"), nullable=False),
    sa.Column("stored", sa.BigInteger, nullable=False),  # the version of the measurement it stored, or 0
    sa.Column("digest", sa.Text, nullable=False),  # that measurement's SHA-256, or ""
    *_record("closed_at"),
)

ACTS: Final = sa.Table(
    "acts",  # of the owner, of a newer version that took the ledger over, and what was stored before it was settled
    META,
    sa.Column("kind", sa.Text, sa.CheckConstraint("kind IN ('allotted', 'carried', 'migrated')"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    *_record("done_at"),
    sa.PrimaryKeyConstraint("seq"),
)

KEY_DELTAS: Final = sa.Table(
    "key_deltas",  # delta that searches for keys were charged, beside their reservation; never given back
    META,
    sa.Column("reservation", _NUMBER, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sa.Column("coins", sa.Text, nullable=False),  # decimal digits, as in the terms
    *_record("charged_at"),
)

DATA_SETS: Final = sa.Table(
    "data_sets",  # by which public metadata each data set was known when it was asked first, or declared the same
    META,
    sa.Column("name", _KEY, nullable=False),  # the identity of the data set, as its owner declares it
    sa.Column("label", sa.Text, nullable=False),  # the same, as people read it
    sa.Column("mark", sa.Text, nullable=False),  # a digest of the metadata
    *_record("declared_at"),
    sa.PrimaryKeyConstraint("name", "seq"),
)

LOOKS: Final = sa.Table(
    "looks",  # up to which price a reservation may be measured so far: written before the noise is drawn
    META,
    sa.Column("reservation", _NUMBER, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sa.Column("amount", sa.BigInteger, sa.CheckConstraint("amount > 0"), primary_key=True, autoincrement=False),
    *_record("begun_at"),
)

ACCOUNTS: Final = sa.Table(
    "accounts",  # of allotments and parts: a working copy, checked by verify()
    META,
    sa.Column("allotment", sa.Text, primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("share", sa.BigInteger),  # of an allotment only
    sa.Column("spent", sa.BigInteger, sa.CheckConstraint("spent >= 0"), nullable=False),
    sa.Column("seal", sa.Text, nullable=False),  # the hash of this row
)

UNSETTLED: Final = sa.Table(
    "unsettled",  # reservations that are open or failed, by question: a working copy, checked by verify()
    META,
    sa.Column("question", _KEY, primary_key=True),
    sa.Column("reservation", _NUMBER, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

OPENED: Final = sa.Table(
    "opened",  # reservations that are open, and whose: a hint, from which nothing is priced
    META,
    sa.Column("reservation", _NUMBER, sa.ForeignKey("reservations.id"), primary_key=True, autoincrement=False),
    sa.Column("question", _KEY, nullable=False),
    sa.Column("looks", sa.Integer, nullable=False),  # 1 where it is measured look by look
)

MEASUREMENTS: Final = sa.Table(
    "measurements",
    META,
    sa.Column("question", _KEY, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),  # before the blob, so that reading it does not touch the blob
    sa.Column("blob", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # the hash of this row
    sa.Column("tagged", sa.Integer, nullable=False),  # 1 where its tags are written, or it has none
)

TAGS: Final = sa.Table(
    "tags",  # which questions hold which groups: a hint, which is compared with what they hold
    META,
    sa.Column("tag", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("rank", sa.BigInteger, primary_key=True, autoincrement=False),  # the sharpest first
    sa.Column("question", _KEY, primary_key=True),
    sa.Column("groups", sa.BigInteger, nullable=False),
    sa.Column("bits", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

APPEND_ONLY: Final = (TERMS, RESERVATIONS, SETTLEMENTS, ACTS, KEY_DELTAS, DATA_SETS, LOOKS)

RECORDS: Final = (RESERVATIONS, SETTLEMENTS, ACTS, KEY_DELTAS, DATA_SETS, LOOKS)
"""What the chain is of."""

INDEXES: Final = {
    **{f"{table.name}_by_seq": f"{table.name} (seq)" for table in RECORDS},
    "opened_by_question": "opened (question, reservation)",
    "opened_by_looks": "opened (looks, reservation)",
    "tags_by_question": "tags (question)",
    "measurements_untagged": "measurements (question) WHERE tagged = 0",
}
"""How rows are found, by the names of the indexes."""

_question = sa.bindparam("question", type_=sa.Text)
_stored = sa.select(MEASUREMENTS.c.version).where(MEASUREMENTS.c.question == _question).scalar_subquery()
_others = sa.exists().where(UNSETTLED.c.question == _question)
_before = (
    sa.select(RESERVATIONS.c.id)
    .where(RESERVATIONS.c.request == sa.bindparam("request", type_=sa.Text))
    .scalar_subquery()
)
REQUESTED: Final = sa.select(RESERVATIONS).where(RESERVATIONS.c.request == sa.bindparam("request", type_=sa.Text))
_last = sa.select(sa.func.coalesce(sa.func.max(RESERVATIONS.c.id), 0)).scalar_subquery()

_SUMMED: Final = [column for column in TOTALS.columns if column.name != "only"]

_mark = (
    sa.select(DATA_SETS.c.mark)
    .where(DATA_SETS.c.name == sa.bindparam("data", type_=_KEY))
    .order_by(DATA_SETS.c.seq.desc())
    .limit(1)
)

MARK: Final = _mark
"""By which metadata a data set is known."""

_words = [sa.bindparam(name, type_=_KEY) for name in ("of_all", "of_asker", "of_share")]
_frozen = sa.exists().where(MEASUREMENTS.c.question.in_(_words))

STANDING: Final = sa.select(
    *_SUMMED,
    _mark.scalar_subquery().label("mark"),
    sa.func.coalesce(_stored, 0).label("version"),
    _others.label("others"),
    _last.label("last"),
    _before.label("before"),
    _frozen.label("frozen"),
)
"""All that a reservation needs: the totals, how its data set is known, the question's stored version, whether others of
it are unsettled, the last entry, the one of the same request, whether the owner ever froze who asks."""

_allowed = sa.select(sa.func.max(LOOKS.c.amount)).where(LOOKS.c.reservation == RESERVATIONS.c.id).scalar_subquery()

ALLOWED: Final = sa.func.coalesce(_allowed, RESERVATIONS.c.reserved)
"""Up to which price a reservation may be measured: that of its latest look, or all of it."""

STATE_OF: Final = sa.select(RESERVATIONS, ALLOWED.label("allowed"), SETTLEMENTS.c.state, *_SUMMED).select_from(
    TOTALS.outerjoin(RESERVATIONS, RESERVATIONS.c.id == sa.bindparam("id")).outerjoin(
        SETTLEMENTS, SETTLEMENTS.c.reservation == RESERVATIONS.c.id
    )
)

LOAD: Final = sa.select(MEASUREMENTS).where(MEASUREMENTS.c.question == _question)

BEGINNING: Final = (
    sa.select(MEASUREMENTS.c.question)
    .where(MEASUREMENTS.c.question >= sa.bindparam("first", type_=_KEY))
    .where(MEASUREMENTS.c.question < sa.bindparam("end", type_=_KEY))
    .order_by(MEASUREMENTS.c.question)
)

RESERVE: Final = sa.insert(RESERVATIONS)
UNSETTLE: Final = sa.insert(UNSETTLED)
OPEN: Final = sa.insert(OPENED)
LOOK: Final = sa.insert(LOOKS)
CLOSE: Final = sa.insert(SETTLEMENTS)
ACT: Final = sa.insert(ACTS)
CHARGE_DELTA: Final = sa.insert(KEY_DELTAS)
STORE: Final = sa.insert(MEASUREMENTS)
DECLARE: Final = sa.insert(DATA_SETS)

ACTED: Final = sa.select(ACTS).order_by(ACTS.c.seq)

ADVANCE: Final = sa.update(TOTALS).values({column.name: sa.bindparam(column.name) for column in _SUMMED})

SETTLED: Final = sa.delete(UNSETTLED).where(
    UNSETTLED.c.question == _question, UNSETTLED.c.reservation == sa.bindparam("id")
)

SHUT: Final = sa.delete(OPENED).where(OPENED.c.reservation == sa.bindparam("id"))

SHARPEN: Final = (
    sa.update(MEASUREMENTS)
    .where(MEASUREMENTS.c.question == sa.bindparam("key"))
    .values(version=sa.bindparam("next"), blob=sa.bindparam("bytes"), digest=sa.bindparam("hash"))
)


_owner = sa.bindparam("owner", type_=sa.Text)
_partition = sa.bindparam("in_partition", type_=sa.Text)
_part = sa.bindparam("in_part", type_=sa.Text)
_is_part = ACCOUNTS.c.part == _part
SHARES: Final = sa.select(ACCOUNTS).where(ACCOUNTS.c.share.is_not(None)).order_by(ACCOUNTS.c.allotment)

SHARE: Final = SHARES.where(ACCOUNTS.c.allotment == _owner)

_partitioned = sa.select(ACCOUNTS).where(ACCOUNTS.c.allotment == _owner, ACCOUNTS.c.partition == _partition)

OWN: Final = _partitioned.where(_is_part)
"""The account of one owner's part."""

OTHERS: Final = _partitioned.where(~_is_part).order_by(ACCOUNTS.c.spent.desc()).limit(1)
"""The account of that other part of its partition which has spent most."""

_account = (ACCOUNTS.c.allotment == _owner) & (ACCOUNTS.c.partition == _partition) & _is_part

KEEP: Final = (
    sa.update(ACCOUNTS)
    .where(_account)
    .values(share=sa.bindparam("granted"), spent=sa.bindparam("total"), seal=sa.bindparam("sealed"))
)
ACCOUNT: Final = sa.insert(ACCOUNTS)

ENDED: Final = "ended_"
"""Before the names of a settlement's columns, beside those of its reservation."""

_left = UNSETTLED.alias("left_open")
_is_unsettled = sa.exists().where(_left.c.question == RESERVATIONS.c.question, _left.c.reservation == RESERVATIONS.c.id)

_ENTRY: Final = sa.select(
    RESERVATIONS,
    *(column.label(f"{ENDED}{column.name}") for column in SETTLEMENTS.columns),
    _is_unsettled.label("is_unsettled"),
)

ENTRIES: Final = _ENTRY.outerjoin_from(RESERVATIONS, SETTLEMENTS)

NEWEST: Final = ENTRIES.where(RESERVATIONS.c.id < sa.bindparam("before")).order_by(RESERVATIONS.c.id.desc())

PAGE: Final = ENTRIES.where(RESERVATIONS.c.id > sa.bindparam("after")).order_by(RESERVATIONS.c.id)

MOST_OPEN: Final = 64
"""So many open reservations are looked at, the newest: those that somebody works on are among them."""

_opened = _ENTRY.join_from(OPENED, RESERVATIONS, OPENED.c.reservation == RESERVATIONS.c.id).outerjoin(
    SETTLEMENTS, SETTLEMENTS.c.reservation == RESERVATIONS.c.id
)

OPEN_ONES: Final = _opened.where(SETTLEMENTS.c.reservation.is_(None)).order_by(OPENED.c.reservation.desc())
"""The open reservations, the newest first."""

OPEN_OF: Final = OPEN_ONES.where(OPENED.c.question == _question).limit(MOST_OPEN)
"""The newest open reservations of one question."""

OPEN_LOOKING: Final = (
    sa.select(RESERVATIONS.c.id, RESERVATIONS.c.reserved, RESERVATIONS.c.question, RESERVATIONS.c.version,
              RESERVATIONS.c.exclusive, RESERVATIONS.c.pid, RESERVATIONS.c.host, RESERVATIONS.c.started)
    .join_from(OPENED, RESERVATIONS, OPENED.c.reservation == RESERVATIONS.c.id)
    .where(OPENED.c.looks == 1)
    .order_by(OPENED.c.reservation.desc())
    .limit(MOST_OPEN)
)  # fmt: skip
"""The newest open reservations that are measured look by look."""

MANY_UNSETTLED: Final = sa.select(sa.func.count()).select_from(
    sa.select(UNSETTLED.c.reservation).limit(sa.bindparam("most")).subquery()
)
"""How many reservations are open or failed, as far as they are counted."""

LEFT_OF: Final = (
    sa.select(RESERVATIONS.c.pid, RESERVATIONS.c.host, RESERVATIONS.c.started, SETTLEMENTS.c.state)
    .join_from(UNSETTLED, RESERVATIONS, UNSETTLED.c.reservation == RESERVATIONS.c.id)
    .outerjoin(SETTLEMENTS, SETTLEMENTS.c.reservation == RESERVATIONS.c.id)
    .where(UNSETTLED.c.question == _question)
    .limit(MOST_OPEN + 1)
)
"""Who has left what unsettled of one question: open, or failed."""

CLOSED: Final = (
    sa.select(SETTLEMENTS.c.state, RESERVATIONS.c.request)
    .join_from(SETTLEMENTS, RESERVATIONS, SETTLEMENTS.c.reservation == RESERVATIONS.c.id)
    .where(SETTLEMENTS.c.digest != INTERRUPTED)
    .order_by(SETTLEMENTS.c.reservation.desc())
)
"""How reservations ended, the latest first, but for those that their askers interrupted."""


def of_part(statement: sa.Select[tuple[object, ...]], partition: str, part: str) -> sa.Select[tuple[object, ...]]:
    """Return the entries of one part only; all of them when there is none."""
    if not partition:
        return statement
    return statement.where(RESERVATIONS.c.partition == partition, RESERVATIONS.c.part == part)
