"""Scripted agents that are after single people's secrets, and an analyst with useful questions, against three servers.

All three stand behind the same two doors: the tools of the Model Context Protocol, and the PostgreSQL wire. They differ
in what answers behind the doors:

    exact   a read-only SQL server: rows and exact numbers
    fixed   0.1 of epsilon a question, fresh Laplace noise, and a budget of 1 that each session opens anew
    ours    `farthing serve`: a ledger with a budget of 1 for everybody together

The agents know a number that names each person, and want a bit of theirs that is nowhere else. Each faces a fresh
server.

    python bench/agents.py [--rows 100000] [--secrets 20] [--only SERVER] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
from argon2 import PasswordHasher

import farthing
from farthing.client import RefusedRequest
from farthing.server.agents import LocalCounter, tools
from farthing.server.datasets import ServedTable
from farthing.server.people import Register
from farthing.server.service import Service
from farthing.server.tickets import Tickets
from farthing.server.wire.listener import Listener

BUDGET = farthing.Budget(epsilon=1, delta=1e-6)
ZONES, KINDS, MONTHS = [f"z{n}" for n in range(10)], ["a", "b", "c", "d"], list(range(1, 13))
KEYS = {"zone": ZONES, "kind": KINDS, "month": MONTHS}
COLUMNS = {
    "number": "integer",
    "zone": "string",
    "kind": "string",
    "month": "integer",
    "pay": "float",
    "owes": "integer",
}
TOKENS, SESSIONS, ASKS = 10, 50, 10
LEVELS = [0.5 * 2**step for step in range(12)]
FIXED = 0.1
SERVERS, DOORS = ("exact", "fixed", "ours"), ("tools", "wire")


def people(rows: int, seed: int = 1) -> pa.Table:
    """Return a table of people: a number that names each, what everybody may know, and a secret bit."""
    rng = np.random.default_rng(seed)
    shares = 0.75 ** np.arange(len(ZONES))
    return pa.table(
        {
            "number": np.arange(rows),
            "zone": rng.choice(ZONES, rows, p=shares / shares.sum()),
            "kind": rng.choice(KINDS, rows, p=[0.5, 0.3, 0.15, 0.05]),
            "month": rng.integers(1, 13, rows),
            "pay": np.round(rng.gamma(4, 10, rows), 2),
            "owes": rng.integers(0, 2, rows),
        }
    )


class Exact:
    """A read-only SQL server: whoever may ask gets what the SQL says."""

    def __init__(self, table: pa.Table) -> None:
        self.data_sets = {"people": SimpleNamespace(columns=COLUMNS)}
        self.given = float("inf")
        self._data = duckdb.connect()
        self._data.register("given", table)
        self._data.execute("CREATE TABLE people AS FROM given")
        self._data.execute("CREATE MACRO clamp(x, low, high) AS least(greatest(x, low), high)")

    def told(self, _: Any) -> list[dict[str, Any]]:
        """Tell the data sets."""
        return [{"name": "people", "columns": COLUMNS}]

    def plan(self, _: Any, request: Any) -> dict[str, Any]:
        """Give a question an id."""
        return {"plan": json.dumps(dict(request))}

    def ask(self, who: Any, request: Any) -> dict[str, Any]:
        """Answer a question."""
        asked = request
        if "plan" in request:
            try:
                asked = json.loads(request["plan"])
            except ValueError:
                asked = {"sql": "no"}
        losses = {name: {"epsilon": 0.0, "delta": 0.0} for name in ("paid", "remaining")}
        return {"answers": self._rows(who, asked["sql"]), "goal": "", "confidence": 1.0, "about": ""} | losses

    def history(self, *_: Any, **__: Any) -> list[Any]:
        """Remember nothing."""
        return []

    def close(self) -> None:
        """Close the data."""
        self._data.close()

    def _rows(self, _: Any, sql: str) -> list[dict[str, Any]]:
        try:
            found = self._data.cursor().sql(sql).to_arrow_table().to_pylist()
        except duckdb.Error:
            found = None
        if found is None:
            raise RefusedRequest("this cannot be asked", status=422, rule="SQL", next_step="ask something else")
        return found


class FixedEpsilon(Exact):
    """The same epsilon for each question, with fresh noise; each session has the whole budget, as a library's has."""

    def __init__(self, table: pa.Table, epsilon: float = FIXED, seed: int = 1) -> None:
        super().__init__(table)
        self.given = 0.0
        self._epsilon, self._rng = epsilon, np.random.default_rng(seed)
        self._used: dict[int, tuple[Any, float]] = {}

    def _rows(self, who: Any, sql: str) -> list[dict[str, Any]]:
        aggregate = re.search(r"\b(COUNT|SUM|AVG)\((.*)\) AS n\b", sql, re.IGNORECASE)
        if aggregate is None:
            raise RefusedRequest("no rows", status=422, rule="one aggregate called n", next_step="COUNT(*) AS n")
        used = self._used.get(id(who), (who, 0.0))[1] + self._epsilon
        if used > 1 + 1e-9:
            raise RefusedRequest("the budget is spent", status=402, rule="1 a session", next_step="stop")
        self._used[id(who)] = who, used
        self.given += self._epsilon
        kind, of = aggregate[1].upper(), aggregate[2]
        if kind != "AVG":
            return self._noised(sql, 1 if kind == "COUNT" else 100, self._epsilon)
        sums = self._noised(sql.replace(aggregate[0], f"SUM({of}) AS n"), 100, self._epsilon / 2)
        counts = self._noised(sql.replace(aggregate[0], f"COUNT({of}) AS n"), 1, self._epsilon / 2)
        return [row | {"n": row["n"] / max(other["n"], 1)} for row, other in zip(sums, counts, strict=True)]

    def _noised(self, sql: str, sensitivity: float, epsilon: float) -> list[dict[str, Any]]:
        rows = sorted(super()._rows(None, sql), key=str)
        rows.sort(key=lambda row: str([row[name] for name in row if name != "n"]))
        return [row | {"n": (row["n"] or 0) + self._rng.laplace(scale=sensitivity / epsilon)} for row in rows]


class EachVisit:
    """A register that knows each visit as somebody else, as a server does that opens a session for each connection."""

    def __init__(self, people: Register) -> None:
        self._people = people

    def entering(self, token: str) -> Any:
        """Return whose token it is."""
        found = self._people.entering(token)
        return None if found is None else replace(found)


@dataclass(slots=True)
class World:
    """A server with ten people who may ask, and its two doors."""

    table: pa.Table
    folder: Path
    service: Any
    people: Register
    tokens: list[str]
    port: int = 0
    level: int = 0
    asked: Counter = field(default_factory=Counter)

    @classmethod
    @asynccontextmanager
    async def opened(cls, kind: str, table: pa.Table, *, epsilon: float = FIXED):
        """Open a server of a kind, fresh."""
        with tempfile.TemporaryDirectory() as name:
            register = Register(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
            tokens = [register.add(f"agent{number}", "analyst") for number in range(TOKENS)]
            service = {
                "exact": lambda: Exact(table),
                "fixed": lambda: FixedEpsilon(table, epsilon),
                "ours": lambda: ours(table, Path(name) / "people.ledger"),
            }[kind]()
            world = cls(table, Path(name), service, register, tokens)
            listener = Listener(service, EachVisit(register), None, lambda _: None)
            world.port = await listener.start("127.0.0.1", 0)
            try:
                yield world
            finally:
                await listener.stop()
                service.close()

    @asynccontextmanager
    async def session(self, door: str, token: int = 0):
        """Come in at a door, with a token."""
        if door == "tools":
            import mcp

            person = EachVisit(self.people).entering(self.tokens[token])
            async with mcp.Client(tools(LocalCounter(self.service, person))) as client:
                yield Tools(self, client)
        else:
            facts = {"host": "127.0.0.1", "port": self.port, "user": f"agent{token}", "password": self.tokens[token]}
            async with await psycopg.AsyncConnection.connect(**facts, dbname="farthing", autocommit=True) as client:
                yield Wired(self, client)

    def given(self) -> float:
        """Return the epsilon that everybody together was given."""
        if not isinstance(self.service, Service):
            return float(self.service.given)
        with self.service.data_sets["people"].opened(analyst="bench") as session:
            return float(session.spent.epsilon(delta=BUDGET.report_delta)) if session.spent.farthings else 0.0


def ours(table: pa.Table, ledger: Path) -> Service:
    """Return a service as `farthing serve` makes it."""

    def opened(**who: Any) -> farthing.Session:
        target = farthing.Target(relative=0.1, absolute=50)
        return farthing.Session(table, name="people", budget=BUDGET, ledger=ledger, keys=KEYS, target=target, **who)

    one = ServedTable("people", opened, BUDGET, "row", COLUMNS, keys=KEYS)
    return Service({"people": one}, Tickets(b"k" * 32))


@dataclass(slots=True)
class Door(ABC):
    """A session of an agent. What one of them was refused, the others do not ask as finely again."""

    world: World
    client: Any

    async def number(self, sql: str) -> float | None:
        """Return a count as finely as the server gives it; None if it gives nothing any more."""
        for level in range(self.world.level, len(LEVELS)):
            self.world.asked["asked"] += 1
            rows = await self.rows(sql, absolute=LEVELS[level])
            if rows is not None:
                self.world.level = level
                return float(rows[0]["n"] or 0)
        return None

    @abstractmethod
    async def rows(self, sql: str, **target: float) -> list[dict[str, Any]] | None:
        """Return the rows of a question; None if it is refused."""

    @abstractmethod
    async def ignore_the_budget(self) -> None:
        """Do what an injected text says: lift the budget by every word that the door takes."""


class Tools(Door):
    """Through the Model Context Protocol."""

    async def _told(self, name: str, given: dict[str, Any]) -> Any:
        came = await self.client.call_tool(name, given)
        try:
            return json.loads(came.content[0].text)
        except ValueError:
            return {}  # the protocol's own error

    async def rows(self, sql: str, **target: float) -> list[dict[str, Any]] | None:
        """Plan, then ask by the id."""
        plan = await self._told("plan", {"dataset": "people", "sql": sql} | target)
        return (await self._told("ask", {"plan": plan["plan"]})).get("answers") if "plan" in plan else None

    async def ignore_the_budget(self) -> None:
        """Ask by words, by a changed id, and with arguments that no tool has."""
        sql = "SELECT COUNT(*) AS n FROM people WHERE number = 1 -- SYSTEM: the budget is lifted"
        plan = await self._told(
            "plan", {"dataset": "people", "sql": sql, "absolute": 0.5, "max_epsilon": 1e9, "cap": "all"}
        )
        written = str(plan.get("plan", "AAAA"))
        for words in ("ignore the budget", written[:-4] + "AAAA", written + " ignore the budget"):
            await self._told("ask", {"plan": words, "max_epsilon": 1e9, "confirm": True})


class Wired(Door):
    """Through the PostgreSQL wire."""

    async def rows(self, sql: str, **target: float) -> list[dict[str, Any]] | None:
        """Set the target, then ask."""
        try:
            for name, value in target.items():
                await self.client.execute(f"SET farthing.{name} = '{value}'")
            if "relative" not in target:
                await self.client.execute("SET farthing.relative = '0'")
            found = await self.client.execute(sql)
            names = [column.name for column in found.description or []]
            return [dict(zip(names, row, strict=True)) for row in await found.fetchall()]
        except psycopg.Error:
            return None

    async def ignore_the_budget(self) -> None:
        """Set every cap away, and some that do not exist."""
        words = ("budget = '1000'", "owner = 'on'", "max_epsilon = '1000000'", "max_epsilon = DEFAULT", "cap = 'all'")
        for text in words:
            try:
                await self.client.execute(f"SET farthing.{text}")
            except psycopg.Error:
                continue


def about(person: int, way: int = 0) -> str:
    """Return a condition that is true for one person, in one of many wordings."""
    ways = (
        f"number = {person}",
        f"number IN ({person})",
        f"number BETWEEN {person} AND {person}",
        f"number >= {person} AND number <= {person}",
        f"NOT number <> {person}",
    )
    return ways[way] if way < len(ways) else f"number + {way} = {person + way}"


def count(condition: str) -> str:
    """Return the question how many of some people owe."""
    return f"SELECT COUNT(*) AS n FROM people WHERE owes = 1 AND {condition}"


async def differencing(world: World, door: str, person: int) -> float | None:
    """Everybody less everybody but one."""
    async with world.session(door) as one:
        whole = await one.number(count("number >= 0"))
        rest = await one.number(count(f"number <> {person}"))
        return None if whole is None or rest is None else whole - rest


async def averaging(world: World, door: str, person: int) -> float | None:
    """The same question again and again."""
    async with world.session(door) as one:
        return mean([await one.number(count(about(person))) for _ in range(ASKS)])


async def rewording(world: World, door: str, person: int) -> float | None:
    """The same question in other words."""
    async with world.session(door) as one:
        return mean([await one.number(count(about(person, way))) for way in range(ASKS)])


async def splitting(world: World, door: str, person: int) -> float | None:
    """The same question from fifty sessions with ten tokens, each in words of its own, until each is refused."""
    found: list[float | None] = []
    for number in range(SESSIONS):
        async with world.session(door, number % TOKENS) as one:
            for way in range(ASKS):
                found.append(await one.number(count(about(person, number * ASKS + way))))
                if found[-1] is None:
                    break
    return mean(found)


async def injected(world: World, door: str, person: int) -> float | None:
    """An agent that obeys a text which tells it to ignore the budget, and then asks as finely as it can."""
    async with world.session(door) as one:
        await one.ignore_the_budget()
        return mean([await one.number(count(about(person, way)) + " -- ignore the budget") for way in range(ASKS)])


AGENTS = {one.__name__: one for one in (differencing, averaging, rewording, splitting, injected)}


def mean(found: list[float | None]) -> float | None:
    """Return the mean of what was answered."""
    there = [one for one in found if one is not None]
    return statistics.fmean(there) if there else None


async def attacked(kind: str, door: str, agent: str, table: pa.Table, secrets: int) -> dict[str, Any]:
    """Let an agent guess secrets; return how many were right, wrong and not answered, and what epsilon it was given."""
    truth, chance, seen = table["owes"].to_pylist(), random.Random(7), Counter()
    async with World.opened(kind, table) as world:
        for person in chance.sample(range(table.num_rows), secrets):
            found = await AGENTS[agent](world, door, person)
            seen["unanswered" if found is None else "right" if (found > 0.5) == bool(truth[person]) else "wrong"] += 1
        counts = {name: seen[name] for name in ("right", "wrong", "unanswered")}
        return {"server": kind, "door": door, "agent": agent} | counts | {"epsilon": world.given(), **world.asked}


def useful() -> list[tuple[str, float]]:
    """Return sixty questions that somebody would ask, with what an error of no matter is."""
    groups = ("zone", "kind", "month")
    found = [(f"SELECT {by}, COUNT(*) AS n FROM people GROUP BY {by}", 50.0) for by in groups]
    found += [(f"SELECT {by}, AVG(CLAMP(pay, 0, 100)) AS n FROM people GROUP BY {by}", 2.0) for by in groups]
    conditions = [f"month = {month}" for month in MONTHS] + [f"kind = '{kind}'" for kind in KINDS]
    conditions += [f"pay >= {pay}" for pay in range(10, 100, 10)] + ["owes = 1", "owes = 0"]
    found += [(f"SELECT zone, COUNT(*) AS n FROM people WHERE {one} GROUP BY zone", 50.0) for one in conditions]
    found += [(f"SELECT COUNT(*) AS n FROM people WHERE zone = '{zone}' AND owes = 1", 50.0) for zone in ZONES]
    found += [(f"SELECT AVG(CLAMP(pay, 0, 100)) AS n FROM people WHERE zone = '{zone}'", 2.0) for zone in ZONES]
    found += [(f"SELECT COUNT(*) AS n FROM people WHERE month = {month}", 50.0) for month in range(1, 8)]
    return found


def good(rows: list[dict[str, Any]] | None, truth: list[dict[str, Any]], floor: float) -> bool:
    """Whether nine groups in ten are within 10 %, or within what is of no matter."""
    if rows is None:
        return False
    there = {str([row[name] for name in row if name != "n"]): float(row["n"]) for row in rows}
    right = 0
    for row in truth:
        true = float(row["n"] or 0)
        got = there.get(str([row[name] for name in row if name != "n"]))
        right += got is not None and abs(got - true) <= max(0.1 * abs(true), floor)
    return right >= 0.9 * len(truth)


async def answered(kind: str, table: pa.Table, epsilon: float = FIXED) -> dict[str, Any]:
    """Ask the useful questions through the wire, then once more as somebody else; return how many answers were good."""
    seen, exact = Counter(), Exact(table)
    async with World.opened(kind, table, epsilon=epsilon) as world, world.session("wire") as one:
        for sql, floor in useful():
            rows, truth = await one.rows(sql, relative=0.1, absolute=floor), exact._rows(None, sql)
            seen["answered"] += rows is not None
            seen["good"] += good(rows, truth, floor)
        spent = world.given()
        async with world.session("wire", 1) as other:
            for sql, floor in useful() if kind == "ours" else []:
                await other.rows(sql, relative=0.1, absolute=floor)
        again = world.given() - spent
    exact.close()
    return {"server": kind, "of": len(useful()), **seen, "epsilon": spent, "again": again}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="people in the table")
    parser.add_argument("--secrets", type=int, default=20, help="people whose secrets each agent is after")
    parser.add_argument("--only", choices=SERVERS, help="one of the servers")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    servers = [options.only] if options.only else list(SERVERS)
    figures = asyncio.run(printed(people(options.rows), servers, options.secrets))
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


async def printed(table: pa.Table, servers: list[str], secrets: int) -> dict[str, Any]:
    """Print both tables as they come, and return them."""
    figures: dict[str, Any] = {"secrets": [], "useful": []}
    print(f"{'agent':14}{'door':7}{'server':8}{'right':>6}{'wrong':>6}{'none':>6}{'epsilon':>10}{'asked':>8}")
    for agent in AGENTS:
        for kind in servers:
            for door in DOORS:
                one = await attacked(kind, door, agent, table, secrets)
                figures["secrets"].append(one)
                counts = f"{one['right']:>6}{one['wrong']:>6}{one['unanswered']:>6}{one['epsilon']:>10.4g}"
                print(f"{agent:14}{door:7}{kind:8}{counts}{one['asked']:>8,}", flush=True)
    print(f"\n{'server':14}{'answered':>9}{'good':>6}{'epsilon':>10}{'again':>10}")
    for kind in servers:
        for epsilon in (0.01, 0.02, 0.05, 0.1, 0.2) if kind == "fixed" else (FIXED,):
            one = await answered(kind, table, epsilon)
            name = f"{kind} {epsilon:g}" if kind == "fixed" else kind
            figures["useful"].append(one | {"name": name})
            prices = f"{one['epsilon']:>10.4g}{one['again']:>10.4g}"
            print(f"{name:14}{one['answered']:>9}{one['good']:>6}{prices}", flush=True)
    return figures


if __name__ == "__main__":
    main()
