"""Several processes that serve one address: each with sessions of its own, all with one ledger and one key."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import SpawnProcess

    from farthing.server.running import Address

MOST: Final = 64
"""The most processes of one server."""
_PAUSE_S: Final = 0.2
_GRACE_S: Final = 90.0
"""Seconds for what is under way, when the server stops: more than a process takes for itself."""


def serve_many(
    work: Callable[..., Any],
    address: Address,
    number: int,
    *,
    ready: Callable[[int, int | None], Any] | None = None,
) -> None:
    """Serve by several processes until SIGINT or SIGTERM; one that dies is started again.

    Args:
        work: what each process does; it is pickled, and called with `sockets`, `worker` and `started`, which it sets.
        address: where to listen.
        number: how many processes.
        ready: called with the ports when all processes have begun.
    """
    if not 1 <= number <= MOST:
        raise InvalidOption(
            "so many processes cannot be started",
            rule=f"1 to {MOST} workers",
            got=number,
            next_step="one for each processor",
        )
    with _bound(address) as sockets, _told_to_stop() as stopping:
        context = multiprocessing.get_context("spawn")
        begun: Any = [context.Event() for _ in range(number)]

        def start(worker: int) -> SpawnProcess:
            """Start one of them."""
            how = {"sockets": sockets, "worker": worker, "started": begun[worker]}
            one = context.Process(target=_begun, args=(work,), kwargs=how, name=f"farthing worker {worker}")
            one.start()
            return one

        running = [start(worker) for worker in range(number)]
        try:
            _watch(running, begun, start, stopping, lambda: ready and ready(*_ports(sockets)))
        finally:
            _end(running)


def _begun(work: Callable[..., Any], **how: Any) -> None:
    """Do the work in a process of its own, which ends in order when the one that started it is gone."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        """Wait for the end of the other process."""
        wait([] if parent is None else [parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    work(**how)
    _gone()


def _gone() -> None:
    """End this process at once: all is closed, and taking a large interpreter apart is a third of what an end takes."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


def _watch(
    running: list[SpawnProcess], begun: Any, start: Callable[[int], SpawnProcess], stopping: list[int], ready: Any
) -> None:
    """Start again what dies, until told to stop; what dies before all have begun is the end.

    Raises:
        DataError: one could not begin.
    """
    told = False
    while not stopping:
        time.sleep(_PAUSE_S)
        if not told and all(event.is_set() for event in begun):
            told = True
            ready()
        for worker, one in enumerate(running):
            if one.is_alive():
                continue
            if not told:
                raise DataError(
                    "a process of the server ended before it had begun",
                    rule="each process opens the tables and the ledger",
                    got=f"exit code {one.exitcode}",
                    next_step="start with --workers 1, which tells why",
                )
            begun[worker].clear()
            running[worker] = start(worker)


def _end(running: list[SpawnProcess]) -> None:
    """Let all finish what they answer; end those that do not."""
    for one in running:
        one.terminate()
    until = time.monotonic() + _GRACE_S
    for one in running:
        one.join(max(0.0, until - time.monotonic()))
        if one.is_alive():
            one.kill()
            one.join()


@contextmanager
def _bound(address: Address) -> Iterator[tuple[socket.socket, ...]]:
    """Give the sockets that all processes listen on."""
    ports = [address.port, *([] if address.postgres is None else [address.postgres])]
    made: list[socket.socket] = []
    problem = ""
    try:
        for port in ports:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            made.append(socket.socket(family))
            made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made[-1].bind((address.host, port))
            made[-1].listen(2048)
            made[-1].setblocking(False)  # noqa: FBT003  # as it is declared
    except OSError as error:
        problem = error.strerror or type(error).__name__
    try:
        if problem:
            raise InvalidOption(
                "the address cannot be used",
                rule="a port of this machine that is free",
                got=f"{address.host}, {ports} ({problem})",
                next_step="name another port",
            )
        yield tuple(made)
    finally:
        for one in made:
            one.close()


def _ports(sockets: tuple[socket.socket, ...]) -> tuple[int, int | None]:
    """Return the ports that were bound."""
    ports = [int(one.getsockname()[1]) for one in sockets]
    return ports[0], ports[1] if len(ports) > 1 else None


@contextmanager
def _told_to_stop() -> Iterator[list[int]]:
    """Give a list that SIGTERM and SIGINT write themselves into: a lock could be held by whom they interrupt."""
    stopping: list[int] = []
    before = {one: signal.signal(one, lambda told, _: stopping.append(told)) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
