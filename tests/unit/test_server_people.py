"""Tokens: shown once, hashed, ended, revoked; the file is its owner's alone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from servers import QUICK

from farthing.errors import DataError, InvalidOption
from farthing.server import people as module
from farthing.server.people import Register as Strong


def Register(path=None):  # noqa: N802
    """Return people whose tokens are hashed quickly."""
    return Strong(path, hasher=QUICK)


def test_a_token_is_not_kept(tmp_path):
    """The file holds a hash, and only its owner may read it."""
    token = Register(tmp_path / "tokens").add("alice", "analyst")
    kept = (tmp_path / "tokens").read_text()
    assert token.partition(".")[2] not in kept
    assert json.loads(kept)["alice"]["hashed"].startswith("$argon2id$")
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


def test_another_process_sees_what_was_changed(tmp_path):
    """Two servers over one file know the same people."""
    first, second = Register(tmp_path / "tokens"), Register(tmp_path / "tokens")
    token = first.add("alice", "analyst")
    assert second.entering(token).name == "alice"
    first.revoke("alice")
    assert second.entering(token) is None


def test_a_new_token_ends_the_old_one(tmp_path):
    """One name has one token."""
    people = Register(tmp_path / "tokens")
    old = people.add("alice", "analyst")
    assert people.entering(old) is not None
    new = people.add("alice", "owner")
    assert people.entering(old) is None
    assert people.entering(new).role == "owner"


def test_a_token_ends(monkeypatch):
    """After its time a token is nobody's."""
    people = Register()
    token = people.add("alice", "analyst", lasts=timedelta(days=1))
    assert people.entering(token) is not None

    class Later(module.datetime):
        """The clock two days on."""

        @classmethod
        def now(cls, tz=None):
            """Return the time in two days."""
            return module.datetime.fromtimestamp(2**33, tz)

    monkeypatch.setattr(module, "datetime", Later)
    assert people.entering(token) is None


@pytest.mark.parametrize("name", ["", "a b", "../x", "é", "x" * 64, "1a", "a\n"])
def test_names_that_cannot_be_written(name):
    """A name is a part of the token and of the wire."""
    with pytest.raises(InvalidOption):
        Register().add(name, "analyst")


@pytest.mark.parametrize(("role", "lasts"), [("king", None), ("analyst", timedelta(0))])
def test_roles_and_times_are_checked(role, lasts):
    """Only known roles, only times to come."""
    with pytest.raises(InvalidOption):
        Register().add("alice", role, lasts=lasts)


@pytest.mark.parametrize("text", ["{", "[]", '{"alice": {}}', '{"alice": 3}'])
def test_a_damaged_file_is_refused(tmp_path, text):
    """Nobody comes in by a file that cannot be read."""
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(DataError):
        Register(tmp_path / "tokens")


def test_who_is_not_there_cannot_be_revoked():
    """Revoking a stranger is an error."""
    with pytest.raises(InvalidOption):
        Register().revoke("nobody")


def test_an_unknown_name_costs_a_hash_too(monkeypatch):
    """Whether a name exists does not show in the work of a refusal."""
    people, calls = Register(), []
    people.add("alice", "analyst")
    real = type(people._hasher).verify
    monkeypatch.setattr(type(people._hasher), "verify", lambda *given: calls.append(1) or real(*given))
    assert people.entering("alice.wrong") is None
    assert people.entering("nobody.wrong") is None
    assert len(calls) == 2
