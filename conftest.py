"""For every test and every example of a page: the noise can be repeated, unless its law is what is tested.

A test that draws noise and is not marked `statistical` would fail by luck now and then, outside of the false-alarm
budget that is counted. So it draws from a stream that its own name fixes: it passes always or fails always. What
tests share draws from a stream of its own likewise.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from scheduling import BatchScheduling
    from xdist.remote import Producer

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # as many processes as cores run the tests: threads of each would wait in turns

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile every module anew
sys.dont_write_bytecode = False

os.environ["FARTHING_REPEATS"] = "none"  # tests leave nothing in the folder of what repeats print

LONG = "<!-- The examples of this page take long. -->"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Leave what takes long to the thorough tier, before tests are chosen and shuffled; then let groups begin."""
    _leave_what_takes_long(items)
    yield
    _let_groups_begin(items)


def _leave_what_takes_long(items: list[pytest.Item]) -> None:
    """Leave to the thorough tier what needs Spark or PostgreSQL, and pages whose examples take long."""
    for item in items:
        spark = ("spark",) in [mark.args for mark in item.iter_markers("xdist_group")]
        if (
            spark
            or "postgres" in item.nodeid
            or (item.path.suffix == ".md" and LONG in item.path.read_text(encoding="utf-8"))
        ):
            item.add_marker(pytest.mark.thorough)


def _let_groups_begin(items: list[pytest.Item]) -> None:
    """Begin with the groups, the largest first: one process runs each, and nobody shall wait for it at the end."""
    names = [str(mark.args) if (mark := item.get_closest_marker("xdist_group")) else "" for item in items]
    sizes = Counter(name for name in names if name)
    places = sorted(range(len(items)), key=lambda place: (-sizes[names[place]], names[place]))
    items[:] = [items[place] for place in places]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BatchScheduling | None:
    """Hand tests out in batches of neighbours."""
    from scheduling import BatchScheduling

    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # the order is that of the collection
    return BatchScheduling(config, log)


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


_NAMES: list[str] = []
"""Whose bits are drawn now: those of a test, where its noise can be repeated."""


def _repeat(name: str) -> None:
    """Draw noise, and the keys of ledgers, from bits that a name fixes, from now on."""
    from farthing.noise.bits import system_bits

    stream, drawn = system_bits(), 0

    def repeatable(size: int | None = None) -> bytes:
        """Return the next bytes that this name fixes."""
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"{name} {drawn}".encode()).digest(32 if size is None else size)

    stream._key = hashlib.sha256(name.encode()).digest()
    stream._start(stream._key)
    secrets.token_bytes = repeatable


def _by_law(item: pytest.Item) -> bool:
    """Tell whether a test is of the law of the noise."""
    return any(item.get_closest_marker(name) is not None for name in ("statistical", "fresh_bits"))


@pytest.fixture(autouse=True)
def _repeatable_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the noise of a test from bits that its name fixes."""
    if _by_law(request.node):
        yield
        return
    _NAMES.append(request.node.nodeid)
    _repeat(request.node.nodeid)
    yield
    _NAMES.clear()
    _fresh()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Draw what several tests share from bits that its own name fixes, unless all of them are of the noise's law."""
    if fixturedef.scope == "function":
        return (yield)
    name = fixturedef.argname
    users = [item for item in request.session.items if name in getattr(item, "fixturenames", ())]
    here = [item for item in users if item.nodeid.startswith(fixturedef.baseid)]
    if here and all(map(_by_law, here)):
        return (yield)
    called = f"{fixturedef.baseid} {name} {getattr(request, 'param_index', 0)}"
    _repeat(called)
    try:
        return (yield)
    finally:
        _fresh()
        if _NAMES:  # it was set up in the middle of a test
            _repeat(f"{_NAMES[-1]} after {called}")
