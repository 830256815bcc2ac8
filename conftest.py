"""For every test and every example of a page: the noise can be repeated, unless its law is what is tested.

A test that draws noise and is not marked `statistical` would fail by luck now and then, outside of the false-alarm
budget that is counted. So it draws from a stream that its own name fixes: it passes always or fails always.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "<!-- The examples of this page take long. -->"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the thorough tier what needs Spark, which is slow to start, and pages whose examples take long."""
    for item in items:
        spark = ("spark",) in [mark.args for mark in item.iter_markers("xdist_group")]
        if spark or (item.path.suffix == ".md" and LONG in item.path.read_text(encoding="utf-8")):
            item.add_marker(pytest.mark.thorough)


_TOKEN_BYTES = secrets.token_bytes


def _fresh() -> None:
    """Draw from the system again: after a test, and in every process that one forks."""
    from farthing.noise.bits import system_bits

    stream = system_bits()
    stream._key = None
    stream._start(os.urandom(32))
    secrets.token_bytes = _TOKEN_BYTES


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh)


@pytest.fixture(autouse=True)
def _repeatable_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the noise of a test, and the keys of its ledgers, from bits that its name fixes."""
    if request.node.get_closest_marker("statistical") or request.node.get_closest_marker("fresh_bits"):
        yield
        return
    from farthing.noise.bits import system_bits

    name, stream, drawn = request.node.nodeid, system_bits(), 0

    def repeatable(size: int | None = None) -> bytes:
        """Return the next bytes that this test's name fixes."""
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"{name} {drawn}".encode()).digest(32 if size is None else size)

    stream._key = hashlib.sha256(name.encode()).digest()
    stream._start(stream._key)
    secrets.token_bytes = repeatable
    yield
    _fresh()
