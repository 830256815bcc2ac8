"""A server under load, and one that dies: what an answer takes, what memory it needs, and that nothing is paid twice.

    python bench/speed/server.py                          # 1,000,000 rows, short
    python bench/speed/server.py --workers 4 --seconds 600 --clients 64 --kills 200 --lost 500 --idle 1000 --stops 20
    python bench/speed/server.py --only kills lost --json out.json

The server is a process of its own, or several with --workers. With `stops` its ledger is on a PostgreSQL that this
script starts, and stops under it with all that it is doing. A fresh question is compared with the same call of the
library on the same table, both in turns; differences and ratios are of medians.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import farthing
from farthing.errors import BudgetExceeded, FarthingError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from data import ZONES, write
from postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILON = {"speed": 1000.0, "clients": 1.0, "kills": 1000.0, "lost": 1000.0, "stops": 1000.0}
KEYS = {"zone": list(range(ZONES))}
WRONG = ("answers lost", "paid, not charged", "charged twice", "failed, and charged", "left open")
TOKEN = "alice.secret"  # noqa: S105  # of a server that lives for a minute
TABLE = "rides.parquet"


def budget(epsilon: float) -> farthing.Budget:
    """Return the budget of a server."""
    return farthing.Budget(epsilon=epsilon, delta=1e-6)


def question(number: int, *, grouped: bool = True) -> str:
    """Return a question that nobody else asks."""
    where = f"FROM rides WHERE fare < {10 + number / 1000}"
    return f"SELECT zone, COUNT(*) AS n {where} GROUP BY zone" if grouped else f"SELECT COUNT(*) AS n {where}"


def opened(folder: Path, epsilon: float, ledger: str | None = None, **who: Any) -> farthing.Session:
    """Open a session over the table."""
    target = farthing.Target(relative=0.1, absolute=500)
    own = {"budget": budget(epsilon), "ledger": ledger or books_of(folder), "keys": KEYS, "target": target}
    return farthing.Session(folder / TABLE, name="rides", **own, **who)


def books_of(folder: Path) -> Path | str:
    """Return where the books are: beside the table, or where a file there says."""
    told = folder / "books"
    return told.read_text(encoding="utf-8") if told.exists() else folder / "rides.ledger"


def serve(folder: Path, epsilon: float, workers: int) -> None:
    """Serve until told to stop, by one process or several."""
    from farthing.server.running import Address
    from farthing.server.workers import serve_many

    if workers == 1:
        served(folder, epsilon, ready=tell)
    else:
        work = partial(served, folder, epsilon)
        serve_many(work, Address(port=0), workers, ready=tell)


def tell(port: int, _: object) -> None:
    """Tell where the server listens."""
    print(port, flush=True)


def served(folder: Path, epsilon: float, *, ready: Any = None, started: Any = None, **how: Any) -> None:
    """Serve by this process; what it does is all that the others see."""
    from argon2 import PasswordHasher

    from farthing.server import running
    from farthing.server.datasets import ServedTable
    from farthing.server.guard import Limits
    from farthing.server.people import Register
    from farthing.server.shared import Shared

    running.Limits = lambda: Limits(1e9, 1e9)  # type: ignore[assignment]  # speed is what is measured
    people = Register(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    people.add("alice", "analyst")
    people._people["alice"] = person_of(people, "secret")

    def session(**who: Any) -> farthing.Session:
        return opened(folder, epsilon, **who)

    with session() as one:
        table = ServedTable("rides", session, budget(epsilon), "row", one.schema, keys=KEYS)
    conduct = running.Conduct(shared=Shared.beside(books_of(folder)), **how)
    begun = ready or (lambda *_: started.set())
    running.serve({"rides": table}, people, running.Address(port=0), conduct, ready=begun)


def person_of(people: Any, secret: str) -> Any:
    """Return alice with a token that both processes know."""
    from dataclasses import replace

    return replace(people._people["alice"], hashed=people._hasher.hash(secret))


class Running:
    """A server in a process of its own."""

    def __init__(self, folder: Path, epsilon: float, workers: int = 1) -> None:
        words = [sys.executable, "-W", "ignore", __file__, "--serve", str(folder), "--epsilon", str(epsilon)]
        words += ["--workers", str(workers)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None  # noqa: S101
        self.port = int(self.process.stdout.readline())
        self.address = f"http://127.0.0.1:{self.port}"

    def workers(self) -> list[int]:
        """Return the processes that answer: this one, or those that it started."""
        words = ["pgrep", "-P", str(self.process.pid), "-f", "spawn_main"]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
        return [int(one) for one in found] or [self.process.pid]

    def memory(self) -> float:
        """Return the resident memory of those that answer, in MiB."""
        texts = [Path(f"/proc/{one}/status").read_text(encoding="utf-8") for one in self.workers()]
        lines = [line for text in texts for line in text.splitlines()]
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cpu(self) -> float:
        """Return the seconds of a processor that they used."""
        told = [Path(f"/proc/{one}/stat").read_text(encoding="utf-8").rpartition(")")[2] for one in self.workers()]
        ticks = [int(fields.split()[11]) + int(fields.split()[12]) for fields in told]
        return sum(ticks) / os.sysconf("SC_CLK_TCK")

    def end(self, how: int = signal.SIGTERM) -> None:
        """End it."""
        self.process.send_signal(how)
        self.process.communicate()


@contextmanager
def running(folder: Path, epsilon: float, workers: int = 1):
    """Give a server, and end it."""
    one = Running(folder, epsilon, workers)
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
    with (
        running(folder, epsilon) as server,
        client(server.address) as http,
        opened(folder, epsilon, str(folder / "own")) as own,
    ):
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
    found["fresh over the library, ms"] = found["fresh, ms"] - found["library fresh, ms"]
    found["fresh / library"] = found["fresh, ms"] / found["library fresh, ms"]
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


@dataclass
class Load:
    """What many clients do at once, and what came of it.

    A tenth of their questions are new, each asked by about three of them at a time; one in twenty wants more than the
    whole budget buys; the others were answered before. In the last seventh of the time the new ones are expensive, so
    that all race for what is left of the budget until it is spent, and beyond.
    """

    seconds: float
    began: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    took: dict[str, list[float]] = field(default_factory=lambda: {"free": [], "fresh": [], "refused": []})
    paid: list[float] = field(default_factory=list)
    tenths: Counter[tuple[str, int]] = field(default_factory=Counter)
    known: list[dict[str, Any]] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    drawn: Any = field(default_factory=count)
    lock: Any = field(default_factory=threading.Lock)

    def next(self, chance: random.Random) -> dict[str, Any]:
        """Return what a client asks next."""
        late = self.part() >= 6 / 7
        kind = chance.random()
        if kind < (0.3 if late else 0.1) or not self.known:
            number = next(self.drawn) // 3
            how = {"relative": 0, "absolute": 50} if late else {}
            return {"sql": question(number + 100_000 * late, grouped=bool(number % 2))} | how
        if kind < 0.15:
            return {"sql": question(chance.randrange(1_000)), "relative": 0, "absolute": 0.5}
        return chance.choice(self.known)

    def part(self) -> float:
        """Return which part of the time is over."""
        return (time.monotonic() - self.began) / self.seconds

    def one(self, address: str, place: int) -> None:
        """Ask one question after another."""
        chance = random.Random(place)
        with client(address) as http:
            while self.part() < 1:
                asked, began = self.next(chance), time.perf_counter()
                came = ask(http, **asked)
                self.note(asked, came, (time.perf_counter() - began) * 1e3)

    def note(self, asked: dict[str, Any], came: httpx.Response, ms: float) -> None:
        """Note what came."""
        cost = came.json()["paid"]["mu"] ** 2 if came.is_success else 0.0
        kind = "refused" if not came.is_success else "fresh" if cost else "free"
        with self.lock:
            self.counts[str(came.status_code)] += 1
            self.counts[kind] += 1
            self.tenths[kind, min(9, int(10 * self.part()))] += 1
            self.took[kind].append(ms)
            self.paid.append(cost)
            if cost:
                self.known.append(asked)
            if came.is_success:
                self.answered.add(asked["sql"])

    def fewest(self, kind: str) -> int:
        """Return the fewest of a kind in a tenth of the time, before the budget is spent."""
        return min(self.tenths[kind, tenth] for tenth in range(8))


def clients(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Let many clients ask at once until the budget is spent and beyond; return what went wrong, and the memory."""
    epsilon = EPSILON["clients"]
    many = running(folder, epsilon, options.workers)
    with many as server, ThreadPoolExecutor(options.clients + 1) as pool:
        began, load = server.memory(), Load(options.seconds)
        half = pool.submit(lambda: (time.sleep(options.seconds / 2), server.memory())[1])
        list(pool.map(partial(load.one, server.address), range(options.clients)))
        ended = server.memory()
        told = time.monotonic()
    stopped = time.monotonic() - told
    with opened(folder, epsilon) as books:
        books.verify()
        spent, total = books.spent, budget(epsilon).total
        charged = [entry for entry in books.history(100_000) if entry.settled]
    counts = load.counts
    return {
        "fresh": counts["fresh"],
        "free": counts["free"],
        "refused": counts["402"],
        "other": sum(counts[kind] for kind in load.took) - counts["200"] - counts["402"],
        **{f"{kind}, fewest in a tenth of the time": load.fewest(kind) for kind in load.took},
        "overdrafts": int(spent.farthings > total.farthings),
        "spent of the budget": spent.farthings / total.farthings,
        "charges": len(charged),
        "answers without a charge": max(0, len(load.answered) - len(charged)),
        "questions charged twice": len(charged) - len({(entry.label, entry.target) for entry in charged}),
        "paid in answers / charged": sum(load.paid) / (float(spent.amount) or 1.0),
        **{f"under load, {kind}, median ms": statistics.median(all_of) for kind, all_of in load.took.items() if all_of},
        "memory at the start, MiB": began,
        "half way, MiB": half.result(),
        "at the end, MiB": ended,
        "memory at the end / half way": ended / half.result(),
        "its end, s": stopped,
    }


def kills(folder: Path, options: argparse.Namespace) -> dict[str, int]:
    """Kill processes that answer in the middle of questions; return what was lost or charged twice."""
    chance, counts, epsilon = random.Random(20), Counter[str](), EPSILON["kills"]
    told: dict[str, Any] = {}
    with running(folder, epsilon, options.workers) as first:
        takes = warmed(first)
        for number in range(options.kills):
            server = first if options.workers > 1 else Running(folder, epsilon)
            with client(server.address) as http:
                victim = who_answers(server, http)
                killer = threading.Timer(chance.uniform(0, 1.5 * takes), os.kill, (victim, signal.SIGKILL))
                killer.start()
                answer(http, question(number), told, counts)
                killer.join()
            replaced(server, {victim}, options)
    with running(folder, epsilon, options.workers) as server:
        counts["answers lost"] = lost_of(server, told)
    with opened(folder, epsilon) as books:
        counts |= audited(books, told)
    names = ("answered", "refused", "cut off", *WRONG)
    return {"kills": options.kills} | {name: counts[name] for name in names}


def who_answers(server: Running, http: httpx.Client) -> int:
    """Return the process that holds a client's connection: it is the one that will answer on it."""
    http.get("/health").raise_for_status()
    stream = http._transport._pool.connections[0]._connection._network_stream  # type: ignore[attr-defined]
    mine = stream.get_extra_info("client_addr")[1]
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]]
    here = {f"{server.port:04X}": f"{mine:04X}"}
    inode = next(one[9] for one in lines if here.get(one[1][-4:]) == one[2][-4:])
    for worker in server.workers():
        for number in Path(f"/proc/{worker}/fd").iterdir():
            with suppress(OSError):
                if number.readlink() == Path(f"socket:[{inode}]"):
                    return worker
    raise SystemExit("nobody holds the connection")


def warmed(server: Running) -> float:
    """Let the server answer twice; return the seconds that it takes."""
    with client(server.address) as http:
        return max(timed(lambda number=number: ask(http, question(number))) for number in (-2, -1)) / 1e3


def answer(http: httpx.Client, sql: str, told: dict[str, Any], counts: Counter[str]) -> None:
    """Ask once, and note what came."""
    try:
        came = ask(http, sql)
    except httpx.TransportError:
        counts["cut off"] += 1
        return
    if came.is_success:
        told[sql] = came.json()
    counts["answered" if came.is_success else "refused"] += 1


def replaced(server: Running, gone: set[int], options: argparse.Namespace) -> None:
    """Wait until others have taken the places of those that were killed."""
    if options.workers == 1:
        server.process.communicate()
        return
    while len(set(server.workers()) - gone) < options.workers:
        time.sleep(0.1)


def lost_of(server: Running, told: dict[str, Any]) -> int:
    """Return how many answers that were told are no longer free."""
    with client(server.address) as http:
        return sum(ask(http, sql).json()["paid"]["mu"] > 0 for sql in told)


def audited(books: farthing.Session, told: dict[str, Any]) -> Counter[str]:
    """Return what the books say of the answers that were told."""
    books.verify()
    paid = sum(one["paid"]["mu"] ** 2 for one in told.values())
    entries = books.history(100_000)
    settled = Counter(entry.label for entry in entries if entry.state == "settled" and entry.settled)
    found = {"paid, not charged": int(paid > books.spent.amount * 1.000001)}
    found |= {"charged twice": sum(many > 1 for many in settled.values()), "left open": len(books.status()["open"])}
    found["failed, and charged"] = sum(entry.state == "failed" and bool(entry.settled) for entry in entries)
    return Counter(found)


def stops(folder: Path, options: argparse.Namespace) -> dict[str, int]:
    """Stop the PostgreSQL that holds the books while clients ask; return what was lost or charged twice."""
    counts, epsilon, told = Counter[str](), EPSILON["stops"], dict[str, Any]()
    with Postgres(folder / "pg") as server:
        (folder / "books").write_text(server.url, encoding="utf-8")
        with running(folder, epsilon, options.workers) as served:
            stopping = threading.Event()
            threads = [
                threading.Thread(target=asking, args=(served, place, told, counts, stopping)) for place in range(4)
            ]
            for thread in threads:
                thread.start()
            for _ in range(options.stops):
                time.sleep(3)
                server.stop()
                time.sleep(0.5)
                server.start()
            stopping.set()
            for thread in threads:
                thread.join()
            counts["answers lost"] = lost_of(served, told)
        with opened(folder, epsilon) as books:
            counts |= audited(books, told)
        (folder / "books").unlink()
    names = ("answered", "refused", "cut off", *WRONG)
    return {"stops": options.stops} | {name: counts[name] for name in names}


def asking(server: Running, place: int, told: dict[str, Any], counts: Counter[str], stopping: threading.Event) -> None:
    """Ask one question after another, each until it is answered."""
    number = place * 100_000
    with client(server.address) as http:
        while not stopping.is_set():
            sql = question(number)
            answer(http, sql, told, counts)
            number += sql in told


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
    with running(folder, epsilon, options.workers) as server, Dropping(server.port) as proxy:
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
        counts["charges less questions"] = abs(len(labels) - counts["questions"])
    names = (
        "questions", "responses dropped", "asked again by hand", "charges", "charged twice", "charges less questions"
    )  # fmt: skip
    return {name: counts[name] for name in names}


def reached(address: str) -> Any:
    """Connect, however often it takes."""
    while True:
        try:
            return farthing.connect(address, TOKEN)
        except FarthingError:
            continue


def below(most: float) -> Callable[[float, Any], bool]:
    """Return the check that a figure is at most so much."""
    return lambda figure, _: figure <= most


NOTHING = below(0)


def some(figure: float, _: Any) -> bool:
    """Whether there are any."""
    return figure > 0


CHECKS: dict[tuple[str, str], Callable[[float, Any], bool]] = {
    ("speed", "repeat, ms"): below(15),
    ("speed", "fresh over the library, ms"): below(40),
    ("speed", "idle clients"): lambda figure, options: figure >= options.idle,
    ("clients", "overdrafts"): NOTHING,
    ("clients", "questions charged twice"): NOTHING,
    ("clients", "other"): NOTHING,
    **{("clients", f"{kind}, fewest in a tenth of the time"): some for kind in ("free", "fresh", "refused")},
    ("clients", "answers without a charge"): NOTHING,
    ("clients", "paid in answers / charged"): lambda figure, _: abs(figure - 1) < 1e-6,
    ("clients", "memory at the end / half way"): below(1.1),
    ("lost", "charged twice"): NOTHING,
    ("lost", "charges less questions"): NOTHING,
    **{(part, what): NOTHING for part in ("kills", "stops") for what in WRONG[:3]},
    ("stops", "failed, and charged"): NOTHING,
    ("stops", "left open"): NOTHING,
}
"""What each figure has to be. A kill leaves open, or charges, what it cut off: that is no mistake."""

PARTS = {"speed": speed, "clients": clients, "kills": kills, "lost": lost, "stops": stops}


def main() -> None:
    """Print the figures of each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6, help="rows of the table")
    parser.add_argument("--turns", type=int, default=60, help="questions that are timed")
    parser.add_argument("--idle", type=int, default=200, help="clients that listen and do nothing")
    parser.add_argument("--clients", type=int, default=8, help="clients that ask at once")
    parser.add_argument("--seconds", type=float, default=20, help="how long they ask")
    parser.add_argument("--kills", type=int, default=5, help="how often the server is killed")
    parser.add_argument("--workers", type=int, default=1, help="processes that answer")
    parser.add_argument("--stops", type=int, default=3, help="how often the PostgreSQL of the books is stopped")
    parser.add_argument("--lost", type=int, default=50, help="responses that a proxy drops")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    parser.add_argument("--serve", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--epsilon", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.epsilon, options.workers)
        return
    figures = {}
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            write(int(options.rows), Path(folder) / TABLE)
            figures[name] = PARTS[name](Path(folder), options)
        print(name)
        for what, number in figures[name].items():
            check = CHECKS.get((name, what))
            word = "" if check is None else "pass" if check(number, options) else "FAIL"
            print(f"    {what:36}{number:>12,.4g}  {word}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
