"""A PostgreSQL of a script's own: it can be stopped with all that it is doing, or frozen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator


class Postgres:
    """A PostgreSQL of this script's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._as: list[str] = []
        if os.geteuid() == 0:  # it does not run as root
            shutil.chown(folder, "nobody")
            folder.parent.chmod(0o755)
            self._as = ["setpriv", "--reuid=nobody", "--clear-groups"]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"postgresql+psycopg://farthing@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self._run("initdb", "-A", "trust", "-U", "farthing", "-E", "UTF8", "--no-locale")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it."""
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1 -c max_connections=80"
        self._run("pg_ctl", "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        """Stop it with all that it is doing."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold all of its processes still: connections stay open, and nothing answers."""
        first = int((self._folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="utf-8").split()
        everyone = [first, *map(int, children)]
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in everyone:
                os.kill(pid, signal.SIGCONT)

    def _run(self, tool: str, *words: str) -> None:
        """Run one of its tools."""
        where = shutil.which(tool) or str(max(Path("/usr/lib/postgresql").glob(f"*/bin/{tool}")))
        command = [*self._as, where, "-D", str(self._folder / "data"), *words]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
