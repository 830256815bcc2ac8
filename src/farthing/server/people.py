"""Who may ask: names, roles and tokens. A token is shown once; what is kept of it is a salted, slow hash."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from argon2 import PasswordHasher

Role = Literal["owner", "analyst", "auditor"]

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
"""What a person may be called: it is a part of the token, a user of the database wire and a name in the ledger."""

LONGEST_NAME: Final = 255
"""The longest name of a person, whoever knows them."""

LONGEST_TOKEN: Final = 8192
"""The longest token: those of an issuer say much."""

_BYTES: Final = 24
"""Random bytes in a token: 192 bits."""

_REMEMBERED: Final = 4096
"""Tokens that were checked and are remembered, so that a slow hash is computed once and not for each request."""


_AT_ONCE: Final = 4
"""Slow hashes at once: each takes much memory, and whoever guesses tokens makes the server compute them."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may come in.

    Attributes:
        name: who it is; the ledger writes it down.
        role: "owner" does everything, "analyst" asks, "auditor" reads the books.
        hashed: the argon2 hash of the token's secret part.
        made: when the token was made.
        until: when it ends, or None.
        revoked: whether it was taken back.
    """

    name: str
    role: str
    hashed: str
    made: datetime
    until: datetime | None = None
    revoked: bool = False

    def __repr__(self) -> str:
        return f"Person({self.name!r}, {self.role!r})"

    def state(self) -> str:
        """Return what became of the token, in a word."""
        if self.revoked:
            return "revoked"
        return "good" if self.welcome(datetime.now(UTC)) else "ended"

    def welcome(self, now: datetime) -> bool:
        """Whether the token is still good."""
        return not self.revoked and (self.until is None or now < self.until)


class PeopleSource(Protocol):
    """Those who may come in, as a server asks for them."""

    def entering(self, token: str) -> Person | None:
        """Return whose token it is; None if nobody's, or no longer good."""

    def everybody(self) -> list[Person]:
        """Return all people, by name."""


class Register:
    """The people of a server, kept in one file that only its owner can read.

    Guarantee: a token comes in only if it was made here, has not ended and was not revoked; how long a refusal takes
        does not tell whether a name exists, since an unknown name is checked against a hash as well.
    Proof: `entering` computes one slow hash for any token that did not come in before, and reads nothing else of it.
    Assumes: argon2 as the library argon2-cffi has it; 192 random bits of the operating system in each token.
    Rounds: nothing.

    >>> people = Register()
    >>> token = people.add("alice", "analyst")
    >>> people.entering(token).name
    'alice'
    >>> people.entering(token + "x") is None
    True
    """

    def __init__(self, path: Path | None = None, *, hasher: PasswordHasher | None = None) -> None:
        from argon2 import PasswordHasher

        self._path = path
        self._lock = threading.Lock()
        self._hasher = hasher or PasswordHasher()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._decoy = self._hasher.hash(secrets.token_urlsafe(_BYTES))
        self._seen: OrderedDict[bytes, str] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._stamp: tuple[int, int] | None = None
        self._people: dict[str, Person] = {}
        self._refresh()

    def add(self, name: str, role: str, *, lasts: timedelta | None = None) -> str:
        """Make a token for somebody and return it, this once; an older one of the same name ends.

        Raises:
            InvalidOption: as `check`.
        """
        self.check(name, role, lasts)
        secret, now = secrets.token_urlsafe(_BYTES), datetime.now(UTC)
        person = Person(name, role, self._hasher.hash(secret), now, None if lasts is None else now + lasts)
        with self._lock:
            self._refresh()
            self._people[name] = person
            self._write()
        return f"{name}.{secret}"

    @staticmethod
    def check(name: str, role: str, lasts: timedelta | None) -> None:
        """Refuse a token that cannot be made.

        Raises:
            InvalidOption: a name that cannot be written in a token, a role that does not exist, or a time that is over.
        """
        if not NAME.fullmatch(name):
            raise InvalidOption(
                "this name cannot be given a token",
                rule="a name begins with a letter and has at most 63 letters, digits, dots, dashes and underscores",
                got=repr(name),
                next_step="choose a short name, such as alice",
            )
        if role not in get_args(Role):
            raise InvalidOption(
                "the role is unknown",
                rule=f"a role is one of {', '.join(get_args(Role))}",
                got=repr(role),
                next_step="an analyst asks, an auditor reads the books, an owner does everything",
            )
        if lasts is not None and lasts <= timedelta(0):
            raise InvalidOption(
                "the token would have ended already",
                rule="a token lasts for a time above zero",
                got=lasts,
                next_step="name the days that it is to last",
            )

    def revoke(self, name: str) -> None:
        """End somebody's token; InvalidOption if there is nobody of that name."""
        with self._lock:
            self._refresh()
            if name not in self._people:
                raise InvalidOption(
                    "nobody of this name has a token",
                    rule="a token that exists can be revoked",
                    got=repr(name),
                    next_step="`farthing token list` shows who has one",
                )
            self._people[name] = replace(self._people[name], revoked=True)
            self._write()

    def everybody(self) -> list[Person]:
        """Return all people, by name."""
        with self._lock:
            self._refresh()
            return sorted(self._people.values(), key=lambda person: person.name)

    def holds(self, name: str) -> bool:
        """Whether somebody of this name has, or ever had, a token."""
        with self._lock:
            self._refresh()
            return name in self._people

    def entering(self, token: str) -> Person | None:
        """Return whose token it is; None if nobody's, or no longer good."""
        name, _, secret = token.rpartition(".")  # a name may have dots, a secret has none
        with self._lock:
            self._refresh()
            person = self._people.get(name)
        hashed = self._decoy if person is None else person.hashed
        right = self._checked(secret, hashed)
        return person if person is not None and right and person.welcome(datetime.now(UTC)) else None

    def _checked(self, secret: str, hashed: str) -> bool:
        """Whether a secret has this hash; one that was right before is recognised by a keyed digest."""
        from argon2.exceptions import Argon2Error, InvalidHashError

        seen = hmac.new(self._key, secret.encode("utf-8", "replace"), hashlib.sha256).digest()
        with self._lock:
            if hmac.compare_digest(self._seen.get(seen, ""), hashed):
                self._seen.move_to_end(seen)
                return True
        try:
            with self._turns:
                right = self._hasher.verify(hashed, secret)
        except (Argon2Error, InvalidHashError):
            return False
        with self._lock:
            self._seen[seen] = hashed
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return right

    def _refresh(self) -> None:
        """Read the file again if another process changed it."""
        if self._path is None or not self._path.exists():
            return
        facts = self._path.stat()
        stamp = (facts.st_mtime_ns, facts.st_ino)
        if stamp == self._stamp:
            return
        found: dict[str, Person] | None = None
        try:
            found = {name: _person(name, kept) for name, kept in json.loads(self._path.read_text("utf-8")).items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            found = None
        if found is None:
            raise DataError(
                "the file of tokens cannot be read",
                rule="it is written by `farthing token` alone",
                got=self._path,
                next_step="restore it, or remove it and give new tokens",
            )
        self._people, self._stamp = found, stamp

    def _write(self) -> None:
        """Replace the file in one step; only its owner may read it."""
        if self._path is None:
            return
        kept = {person.name: _kept(person) for person in self._people.values()}
        beside = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        facts = self._path.stat()
        self._stamp = (facts.st_mtime_ns, facts.st_ino)


def _kept(person: Person) -> dict[str, object]:
    """Return what the file keeps of somebody."""
    kept = asdict(person)
    del kept["name"]
    return kept | {"made": person.made.isoformat(), "until": person.until and person.until.isoformat()}


def _person(name: str, kept: Mapping[str, str]) -> Person:
    """Return somebody as the file tells."""
    until = kept["until"]
    return Person(
        name,
        kept["role"],
        kept["hashed"],
        datetime.fromisoformat(kept["made"]),
        datetime.fromisoformat(until) if until else None,
        bool(kept["revoked"]),
    )
