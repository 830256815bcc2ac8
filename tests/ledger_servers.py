"""A real PostgreSQL for the ledger's tests: the one that FARTHING_TEST_POSTGRES names, or one started here.

Where none can be had, tests skip and say why; with FARTHING_REQUIRE_POSTGRES=1 (as in the gate) they fail instead.
"""

from __future__ import annotations

import atexit
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

_USERS = ("postgres", "nobody")  # PostgreSQL does not run as root


def postgres_url():
    """Return the URL of a server, or skip loudly."""
    try:
        return _server()
    except (OSError, subprocess.SubprocessError, LookupError) as why:
        reason = f"NOT TESTED ON POSTGRESQL: {why}; set FARTHING_TEST_POSTGRES=postgresql+psycopg://user@host/db"
        if os.environ.get("FARTHING_REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def fresh_schema():
    """Give the URL of an empty schema, dropped afterwards."""
    import psycopg

    server, schema = postgres_url(), f"t_{uuid.uuid4().hex}"
    yield f"{server}?schema={schema}"
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@contextmanager
def raw(url):
    """Give psycopg's own connection to a schema, as its owner's hand would have it: triggers off if asked."""
    import psycopg

    server, _, schema = url.partition("?schema=")
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True, options=f"-csearch_path={schema}") as opened:
        yield opened


@lru_cache(maxsize=1)
def _server():
    """Find or start a server, once a process."""
    named = os.environ.get("FARTHING_TEST_POSTGRES")
    if named:
        return named
    if shutil.which("psql") is None and _tool("initdb") is None:
        raise LookupError("no PostgreSQL is installed")
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  the tests' own, made by mkdtemp
    folder = Path(tempfile.mkdtemp(prefix="farthing-pg-", dir=base))
    user = _owner(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _run(user, _tool("initdb"), "-D", folder / "data", "-A", "trust", "-U", "farthing", "-E", "UTF8", "--no-locale")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=50 -c shared_buffers=32MB"
    _run(user, _tool("pg_ctl"), "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start")
    owner = os.getpid()

    def stop():
        if os.getpid() == owner:
            _run(user, _tool("pg_ctl"), "-D", folder / "data", "-m", "immediate", "stop", check=False)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return f"postgresql+psycopg://farthing@127.0.0.1:{port}/postgres"


def _tool(name):
    """Return the newest tool of PostgreSQL that is installed."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: path.parts[-3].zfill(4))
    return shutil.which(name) or (str(places[-1]) if places else None)


def _owner(folder):
    """Give the folder to a user that may run a server, and return that user."""
    if os.geteuid() != 0:
        return getpass.getuser()
    for user in _USERS:
        try:
            shutil.chown(folder, user)
        except LookupError:
            continue
        return user
    raise LookupError("root may not run PostgreSQL, and there is no user postgres or nobody")


def _run(user, *command, check=True):
    """Run a tool of PostgreSQL as a user."""
    other = ["setpriv", f"--reuid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*other, *command], check=False, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    if check and done.returncode:
        raise OSError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-300:]}")
