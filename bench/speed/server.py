"""A server under load, and one that dies: what an answer takes, what memory it needs, and that nothing is paid twice.

    python bench/speed/server.py                          # 1,000,000 rows, short
    python bench/speed/server.py --seconds 600 --clients 64 --kills 200 --lost 500 --idle 1000
    python bench/speed/server.py --only kills lost --json out.json

The server is a process of its own. A fresh question is compared with the same call of the library on the same table,
both in turns; differences and ratios are of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import farthing
from farthing.errors import BudgetExceeded, FarthingError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from data import ZONES, write

EPSILON = {"speed": 1000.0, "clients": 0.02, "kills": 1000.0, "lost": 1000.0}
KEYS = {"zone": list(range(ZONES))}
TOKEN = "alice.secret"  # noqa: S105  # of a server that lives for a minute
TABLE = "rides.parquet"


def budget(epsilon: float) -> farthing.Budget:
    """Return the budget of a server."""
    return farthing.Budget(epsilon=epsilon, delta=1e-6)


def question(number: int, *, grouped: bool = True) -> str:
    """Return a question that nobody else asks."""
    where = f"FROM rides WHERE fare < {10 + number / 1000}"
    return f"SELECT zone, COUNT(*) AS n {where} GROUP BY zone" if grouped else f"SELECT COUNT(*) AS n {where}"


def opened(folder: Path, epsilon: float, ledger: str = "rides.ledger", **who: Any) -> farthing.Session:
    """Open a session over the table."""
    target = farthing.Target(relative=0.1, absolute=500)
    own = {"budget": budget(epsilon), "ledger": folder / ledger, "keys": KEYS, "target": target}
    return farthing.Session(folder / TABLE, name="rides", **own, **who)


def serve(folder: Path, epsilon: float) -> None:
    """Serve until told to stop; what this process does is all that the others see."""
    from argon2 import PasswordHasher

    from farthing.server import running
    from farthing.server.datasets import ServedTable
    from farthing.server.guard import Limits
    from farthing.server.people import Register

    running.Limits = lambda: Limits(1e9, 1e9)  # type: ignore[assignment]  # speed is what is measured
    people = Register(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    people.add("alice", "analyst")
    people._people["alice"] = person_of(people, "secret")

    def session(**who: Any) -> farthing.Session:
        return opened(folder, epsilon, **who)

    with session() as one:
        table = ServedTable("rides", session, budget(epsilon), "row", one.schema, keys=KEYS)
    running.serve({"rides": table}, people, running.Address(port=0), ready=lambda port, _: print(port, flush=True))


def person_of(people: Any, secret: str) -> Any:
    """Return alice with a token that both processes know."""
    from dataclasses import replace

    return replace(people._people["alice"], hashed=people._hasher.hash(secret))


class Running:
    """A server in a process of its own."""

    def __init__(self, folder: Path, epsilon: float) -> None:
        words = [sys.executable, "-W", "ignore", __file__, "--serve", str(folder), "--epsilon", str(epsilon)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None  # noqa: S101
        self.port = int(self.process.stdout.readline())
        self.address = f"http://127.0.0.1:{self.port}"

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cpu(self) -> float:
        """Return the seconds of a processor that it used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how: int = signal.SIGTERM) -> None:
        """End it."""
        self.process.send_signal(how)
        self.process.communicate()


@contextmanager
def running(folder: Path, epsilon: float):
    """Give a server, and end it."""
    one = Running(folder, epsilon)
    try:
        yield one
    finally:
        one.end()


def client(address: str) -> httpx.Client:
    """Return a client that keeps its connection."""
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=300)


def ask(http: httpx.Client, sql: str, **how: Any) -> httpx.Response:
    """Ask a question."""
    return http.post("/v1/ask", json={"dataset": "rides", "sql": sql, "cap": "all"} | how)


def timed(work: Any) -> float:
    """Return how long work takes, in ms."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def speed(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return medians in ms of a free repeat and of a fresh question, over the library's own; then with idle clients."""
    times: dict[str, list[float]] = {
        name: [] for name in ("repeat", "library repeat", "fresh", "library fresh", "idle")
    }
    epsilon = EPSILON["speed"]
    with running(folder, epsilon) as server, client(server.address) as http, opened(folder, epsilon, "own") as own:
        for number in range(options.turns):
            sql = question(number)
            times["fresh"].append(timed(lambda sql=sql: ask(http, sql).raise_for_status()))
            times["library fresh"].append(timed(lambda sql=sql: own.sql(sql, cap="all")))
            times["repeat"].append(timed(lambda sql=sql: ask(http, sql).raise_for_status()))
            times["library repeat"].append(timed(lambda sql=sql: own.sql(sql, cap="all").to_dict()))
        cpu = {}
        for name, asked in (("repeat", 0), ("fresh", 10_000)):
            began = server.cpu()
            for number in range(options.turns):
                ask(http, question(asked + number))
            cpu[name], mine = server.cpu() - began, time.process_time()
            for number in range(options.turns):
                own.sql(question(asked + number), cap="all").to_dict()
            cpu[f"library {name}"] = time.process_time() - mine
        with streams(server, options.idle) as many:
            times["idle"] = [timed(lambda: ask(http, question(0))) for _ in range(options.turns)]
            memory = server.memory()
    found = {f"{name}, ms": statistics.median(taken) for name, taken in times.items()}
    found |= {f"{name}, ms of processor": whole / options.turns * 1e3 for name, whole in cpu.items()}
    return found | {"idle clients": many, "memory with them, MiB": memory}


@contextmanager
def streams(server: Running, many: int):
    """Hold the connections of clients that were told an answer by events and go on listening."""
    body = json.dumps({"dataset": "rides", "sql": question(0), "cap": "all"})
    head = f"POST /v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\n"
    sent = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    held, told = [], 0
    try:
        for _ in range(many):
            held.append(socket.create_connection(("127.0.0.1", server.port)))
            held[-1].sendall(sent)
        for one in held:
            text = b""
            while b"event: answer" not in text and (part := one.recv(65_536)):
                text += part
            told += b"event: answer" in text
        yield told
    finally:
        for one in held:
            one.close()


def clients(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Let many clients ask at once until the budget is spent and beyond; return what went wrong, and the memory."""
    counts, paid, lock = Counter[str](), [], threading.Lock()
    epsilon = EPSILON["clients"]

    def one(place: int) -> None:
        chance = random.Random(place)
        with client(server.address) as http:
            while time.monotonic() < end:
                came = ask(http, question(chance.randrange(2_000), grouped=chance.random() < 0.5))
                with lock:
                    counts[str(came.status_code)] += 1
                    if came.is_success:
                        paid.append(came.json()["paid"]["mu"] ** 2)

    with running(folder, epsilon) as server, ThreadPoolExecutor(options.clients + 1) as pool:
        began, end = server.memory(), time.monotonic() + options.seconds
        half = pool.submit(lambda: (time.sleep(options.seconds / 2), server.memory())[1])
        list(pool.map(one, range(options.clients)))
        ended = server.memory()
    with opened(folder, epsilon) as books:
        books.verify()
        spent, total = books.spent, budget(epsilon).total
        charged = [entry for entry in books.history(100_000) if entry.settled]
    return {
        "answers": counts["200"],
        "refused": counts["402"],
        "other": sum(counts.values()) - counts["200"] - counts["402"],
        "overdrafts": int(spent.farthings > total.farthings),
        "charges": len(charged),
        "questions charged twice": len(charged) - len({entry.label for entry in charged}),
        "paid in answers / charged": sum(paid) / (float(spent.amount) or 1.0),
        "memory at the start, MiB": began,
        "half way, MiB": half.result(),
        "at the end, MiB": ended,
    }


def kills(folder: Path, options: argparse.Namespace) -> dict[str, int]:
    """Kill the server in the middle of questions; return what was lost or charged twice."""
    chance, counts, epsilon = random.Random(20), Counter[str](), EPSILON["kills"]
    told: dict[str, Any] = {}
    with running(folder, epsilon) as server, client(server.address) as http:
        takes = max(timed(lambda number=number: ask(http, question(number))) for number in (-2, -1)) / 1e3
    for number in range(options.kills):
        server, sql = Running(folder, epsilon), question(number)
        with client(server.address) as http:
            killer = threading.Timer(chance.uniform(0, 1.5 * takes), os.kill, (server.process.pid, signal.SIGKILL))
            killer.start()
            try:
                told[sql] = ask(http, sql).json()
                counts["answered"] += 1
            except httpx.TransportError:
                counts["cut off"] += 1
            killer.join()
        server.process.communicate()
    with running(folder, epsilon) as server, client(server.address) as http:
        for sql, answer in told.items():
            again = ask(http, sql).json()
            counts["answers lost"] += again.get("answers") != [row | {"paid": 0.0} for row in answer["answers"]] and (
                again["paid"]["mu"] > 0
            )
    with opened(folder, epsilon) as books:
        books.verify()
        paid = sum(one["paid"]["mu"] ** 2 for one in told.values())
        counts["paid, not charged"] = int(paid > books.spent.amount * 1.000001)
        labels = Counter(entry.label for entry in books.history(10_000))
        counts["charged twice"] = sum(many > 1 for many in labels.values())
        counts["left open"] = len(books.status()["open"])
    names = ("answered", "cut off", "answers lost", "paid, not charged", "charged twice", "left open")
    return {"kills": options.kills} | {name: counts[name] for name in names}


class Dropping(socketserver.ThreadingTCPServer):
    """A proxy that passes requests on, and drops half of the responses."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, port: int) -> None:
        self.upstream, self.chance, self.dropped = port, random.Random(7), 0
        super().__init__(("127.0.0.1", 0), Passing)


class Passing(socketserver.BaseRequestHandler):
    """One connection of a client: each response is passed on whole, or the connection ends."""

    def handle(self) -> None:
        """Pass messages on until somebody goes."""
        with socket.create_connection(("127.0.0.1", self.server.upstream)) as other:
            while asked := message(self.request):
                other.sendall(asked)
                came = message(other)
                if self.server.chance.random() < 0.5:
                    self.server.dropped += 1
                    return
                self.request.sendall(came)


def message(end: socket.socket) -> bytes:
    """Return the next message of HTTP that comes, with its body; nothing if the other end has gone."""
    found = b""
    while not whole(found):
        part = end.recv(1 << 20)
        if not part:
            return b""
        found += part
    return found


def whole(message: bytes) -> bool:
    """Whether a message of HTTP is there with its body."""
    head, end, body = message.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    return bool(end) and len(body) >= (lengths[0] if lengths else 0)


def lost(folder: Path, options: argparse.Namespace) -> dict[str, int]:
    """Ask through a proxy that drops half of the responses until each question is answered; count the charges."""
    counts, epsilon = Counter[str](), EPSILON["lost"]
    with running(folder, epsilon) as server, Dropping(server.port) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        session = reached(f"http://127.0.0.1:{proxy.server_address[1]}")
        while proxy.dropped < options.lost:
            sql, paid = question(counts["questions"]), None
            while paid is None:
                try:
                    paid = session.sql(sql, cap="all").paid
                except BudgetExceeded:
                    raise
                except FarthingError:
                    counts["asked again by hand"] += 1
            counts["questions"] += 1
        session.close()
        counts["responses dropped"] = proxy.dropped
        proxy.shutdown()
    with opened(folder, epsilon) as books:
        books.verify()
        labels = [entry.label for entry in books.history(100_000) if entry.settled]
        counts["charges"] = len(labels)
        counts["charged twice"] = len(labels) - len(set(labels))
    names = ("questions", "responses dropped", "asked again by hand", "charges", "charged twice")
    return {name: counts[name] for name in names}


def reached(address: str) -> Any:
    """Connect, however often it takes."""
    while True:
        try:
            return farthing.connect(address, TOKEN)
        except FarthingError:
            continue


PARTS = {"speed": speed, "clients": clients, "kills": kills, "lost": lost}


def main() -> None:
    """Print the figures of each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6, help="rows of the table")
    parser.add_argument("--turns", type=int, default=60, help="questions that are timed")
    parser.add_argument("--idle", type=int, default=200, help="clients that listen and do nothing")
    parser.add_argument("--clients", type=int, default=8, help="clients that ask at once")
    parser.add_argument("--seconds", type=float, default=20, help="how long they ask")
    parser.add_argument("--kills", type=int, default=5, help="how often the server is killed")
    parser.add_argument("--lost", type=int, default=50, help="responses that a proxy drops")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    parser.add_argument("--serve", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--epsilon", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.epsilon)
        return
    figures = {}
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            write(int(options.rows), Path(folder) / TABLE)
            figures[name] = PARTS[name](Path(folder), options)
        print(name)
        for what, number in figures[name].items():
            print(f"    {what:28}{number:>12,.4g}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
