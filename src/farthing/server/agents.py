"""The Model Context Protocol: a table that language-model agents may question, a price at a time.

No tool pays for what was not priced before: `ask` takes the id of a plan, and a plan's id cannot be made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from farthing.server.shapes import dumped, in_face, of_error, only_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server import MCPServer

    from farthing.client import Wire
    from farthing.server.people import Person
    from farthing.server.service import Service

INSTRUCTIONS: Final = """Answers about a private table, with noise that protects each row, under a budget that runs out.
First call datasets. Then plan a question: one SQL SELECT of aggregates, and how accurate it must be. A plan is free and
tells the price. If it is worth it, call ask with the plan's id: it costs at most that. The same question again is
free. Rows cannot be read, and the budget cannot be raised here: what does not fit is refused."""


class Counter(Protocol):
    """Where the tools take their questions: a service in this process, or a server elsewhere."""

    def datasets(self) -> list[dict[str, Any]]:
        """Return the data sets."""

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Price a question."""

    def ask(self, plan: str) -> dict[str, Any]:
        """Answer a question that was priced."""

    def history(self, limit: int) -> list[dict[str, Any]]:
        """Return what was asked."""


@dataclass(frozen=True, slots=True)
class LocalCounter:
    """A service in this process, asked as one person."""

    service: Service
    person: Person

    def datasets(self) -> list[dict[str, Any]]:
        """Return the data sets."""
        return self.service.visible(self.person)

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Price a question."""
        return self.service.plan(self.person, asked)

    def ask(self, plan: str) -> dict[str, Any]:
        """Answer a question that was priced."""
        return self.service.ask(self.person, {"plan": plan})

    def history(self, limit: int) -> list[dict[str, Any]]:
        """Return what was asked."""
        return self.service.history(self.person, limit=limit)


@dataclass(frozen=True, slots=True)
class RemoteCounter:
    """A server, asked with a token."""

    wire: Wire

    def datasets(self) -> list[dict[str, Any]]:
        """Return the data sets."""
        return list(self.wire.send("GET", "/v1/datasets").json()["datasets"])

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Price a question."""
        return dict(self.wire.send("POST", "/v1/plan", asked).json())

    def ask(self, plan: str) -> dict[str, Any]:
        """Answer a question that was priced."""
        return dict(self.wire.send("POST", "/v1/ask", {"plan": plan}).json())

    def history(self, limit: int) -> list[dict[str, Any]]:
        """Return what was asked."""
        return list(self.wire.send("GET", f"/v1/history?limit={limit}").json()["history"])


def tools(counter: Counter) -> MCPServer[Any]:
    """Return the tools over a counter, to be run over stdio or HTTP.

    Guarantee: each answer is booked by the counter's service before any noise is drawn, at most at the price that a
        plan told; an agent's words, a prompt's or a row's can change neither.
    Proof: `ask` sends a plan's id alone; docs/proofs/session.answering.one_question.md for the booking.
    Assumes: the counter is the only way of the agent to the table.
    Rounds: nothing.
    """
    from mcp.server import MCPServer

    made = MCPServer("farthing", instructions=INSTRUCTIONS)

    @made.tool()
    async def datasets() -> str:
        """Tell the data sets: columns, keys, default targets, what is left of the budget."""
        return await _as_json(counter.datasets)

    @made.tool()
    async def plan(
        dataset: str,
        sql: str,
        *,
        relative: float | None = None,
        absolute: float | None = None,
        rank: float | None = None,
        confidence: float | None = None,
        keys: dict[str, list[Any]] | None = None,
    ) -> str:
        """Price a question, free. relative=0.1 is within 10 %, absolute=50 within 50, the larger of both holds.

        rank is for medians and quantiles. Returns the id that ask takes, the worst price, and what is left.
        """
        targets = {"relative": relative, "absolute": absolute, "rank": rank, "confidence": confidence, "keys": keys}
        given = {name: value for name, value in targets.items() if value is not None}
        return await _as_json(lambda: _planned(counter, {"dataset": dataset, "sql": sql} | given))

    @made.tool()
    async def ask(plan: str) -> str:
        """Answer a planned question, by the id of its plan, at no more than the plan told."""
        return await _as_json(lambda: in_face(counter.ask(plan)))

    @made.tool()
    async def refine(plan: str, relative: float | None = None, absolute: float | None = None) -> str:
        """Price a sharper answer to a planned question, free: returns a new id for ask, which pays the difference."""
        targets = {"relative": relative, "absolute": absolute}
        changes = {name: value for name, value in targets.items() if value is not None}
        return await _as_json(lambda: _planned(counter, {"plan": plan} | changes))

    @made.tool()
    async def history(limit: int = 20) -> str:
        """Tell what was asked before, and what it cost: such questions are free."""
        return await _as_json(lambda: counter.history(max(1, min(limit, 1000))))

    return made


def _planned(counter: Counter, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Price a question, with advice in the words of a request."""
    return in_face(counter.plan(asked))


async def _as_json(work: Callable[[], Any]) -> str:
    """Return what work came to as JSON, or its error in the one shape of errors."""
    import asyncio

    from farthing.errors import FarthingError

    try:
        return dumped(await only_ours(asyncio.to_thread(work)))
    except FarthingError as error:
        return dumped(of_error(error))
