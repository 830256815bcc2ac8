"""What every face of the server does: plan a question, ask it, tell what was asked. People come in by their roles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from farthing.client import RefusedRequest
from farthing.privacy.words import state
from farthing.server import shapes
from farthing.server.datasets import ServedTable, Sessions
from farthing.server.people import LONGEST_NAME
from farthing.server.tickets import Ticket, Tickets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from farthing.planning import Plan
    from farthing.planning.release import ReleasePlan
    from farthing.privacy.loss import Booked
    from farthing.server.people import Person
    from farthing.server.wire.catalog import EmptyTables
    from farthing.session import Progress, Session

OPTIONS: Final[dict[str, tuple[type, ...]]] = {
    "relative": (int, float, dict),
    "absolute": (int, float, dict),
    "rank": (int, float, dict),
    "confidence": (int, float),
    "simultaneous": (bool,),
    "together": (bool,),
    "share": (int, float),
    "nonnegative": (bool,),
    "max_epsilon": (int, float),
    "cap": (str,),
    "on_miss": (str,),
    "found_above": (int,),
    "lower": (int, float),
    "upper": (int, float),
}
"""What a request may say beside its data set, its SQL, its keys and its plan, with the types that JSON gives it."""

_FIELDS: Final = frozenset({"dataset", "sql", "keys", "plan", *OPTIONS})
LONGEST_SQL: Final = 1 << 16
"""The longest question, in characters."""
_MOST_KEYS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Service:
    """The data sets, and what people may do with them.

    Guarantee: an answer leaves only through a session, so it is booked before any noise is drawn; asked by a plan's id
        it is charged at most what the plan told, or refused, free.
    Proof: docs/proofs/session.answering.one_question.md for each ask; a plan's price is the `at_most` of its ask, which
        the ledger compares with what is reserved, in the transaction that reserves.
    Assumes: `tickets` has one key for all workers; whoever holds a token is the person.
    Rounds: prices are whole farthings; what is free by its plan can cost one, if it fails.

    Attributes:
        data_sets: what may be asked, by name.
        tickets: writes plans into ids.
        open_history: whether analysts see each other's questions; by default each sees their own.
    """

    data_sets: Mapping[str, ServedTable]
    tickets: Tickets
    open_history: bool = False
    sessions: Sessions = field(default_factory=Sessions)

    def visible(self, person: Person) -> list[dict[str, Any]]:
        """Return the data sets that somebody may see, with their columns, defaults and what is left."""
        seen = [one for one in self.data_sets.values() if person.role != "analyst" or one.open_to(person.name)]
        return [self._described(one, person) for one in seen]

    def plan(self, person: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Price a question, free; the id that comes with it confirms it."""
        self.require(person, "owner", "analyst")
        asked = _checked(self._changed(person, request))
        session = self._session(person, asked)
        plan = self._planned(session, asked)
        ticket = Ticket(person.name, _without_plan(asked), plan.worst_price.farthings)
        price, left = plan.worst_price, plan.remaining
        after = left - price if price.farthings <= left.farthings else None
        told = {"plan": self.tickets.written(ticket)} | plan.to_dict()
        told |= {"left_after": None if after is None else state(after, plan.delta), "fitting": plan.fitting}
        stopped = bool(price.farthings) and _frozen(session, person)["frozen"]
        return told | {"frozen": stopped} | ({"fits": False} if stopped else {})

    def ask(
        self, person: Person, request: Mapping[str, Any], progress: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """Answer a question; by a plan's id at no more than the plan told."""
        self.require(person, "owner", "analyst")
        asked, most = self._confirmed(person, request)
        session = self._session(person, asked)
        how, keys = _how(asked), asked.get("keys")
        if most is not None:
            how["at_most"] = self.data_sets[asked["dataset"]].budget.currency.of_farthings(most)
        if progress is not None:
            tell, delta = progress, self.data_sets[asked["dataset"]].budget.report_delta

            def ticked(seen: Progress) -> None:
                """Tell where the refinement stands."""
                tell(shapes.of_progress(seen, delta))

            how["progress"] = ticked
        answer = session.sql(asked["sql"], keys=keys, **how)
        told: dict[str, Any] = answer.to_dict()
        return told

    def history(self, person: Person, name: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return what was asked, newest first: an analyst's own questions, unless the owner opened them to all."""
        found = []
        for one in self._of(person, name):
            session = self.sessions.of(one, person.name)
            for entry in session.history(limit):
                if self._may_read(person, entry.who):
                    paid = None if entry.settled is None else one.state(entry.settled)
                    found.append({"dataset": one.name} | shapes.of_entry(entry, paid))
        return found[:limit]

    def verify(self, person: Person, name: str) -> dict[str, Any]:
        """Check the books of a data set against their entries and their chain."""
        self.require(person, "owner", "auditor")
        head = self.sessions.of(self._data_set(person, name), person.name).verify()
        return {"dataset": name, "verified": True, "head": head}

    def freeze(self, person: Person, request: Mapping[str, Any], *, frozen: bool = True) -> dict[str, Any]:
        """Stop all charges of a data set, or those of one analyst; or let them go on. Free repeats stay.

        Args:
            person: who says so; an owner.
            request: `dataset`, and perhaps `analyst`.
            frozen: False thaws.
        """
        self.require(person, "owner")
        whom = request.get("analyst")
        if not (whom is None or (isinstance(whom, str) and 0 < len(whom) <= LONGEST_NAME)) or "\0" in (whom or ""):
            raise _unreadable("analyst is not a name", "the name of an analyst, or none for everybody", whom)
        unknown = sorted(set(request) - {"dataset", "analyst"})
        if unknown:
            raise _unreadable(f"the request has a field {unknown[0]!r}", "the fields are analyst, dataset", "")
        one = self._data_set(person, request.get("dataset"))
        session = self.sessions.of(one, person.name)
        (session.freeze if frozen else session.thaw)(whom)
        return {"dataset": one.name} | _frozen(session, person)

    def people(self, person: Person, everybody: Sequence[Person]) -> list[dict[str, Any]]:
        """Return who may ask, with the shares that they have of each budget."""
        self.require(person, "owner", "auditor")
        shares = {
            one.name: (one, self.sessions.of(one, person.name).status()["allotments"])
            for one in self.data_sets.values()
        }
        return [
            {
                "name": one.name,
                "role": one.role,
                "made": one.made.isoformat(),
                "until": one.until and one.until.isoformat(),
                "state": one.state(),
                "shares": {name: _held(of, held[one.name]) for name, (of, held) in shares.items() if one.name in held},
            }
            for one in everybody
        ]

    def catalog(self) -> EmptyTables:
        """Return the declared tables without a row, for questions about the database itself."""
        from farthing.server.wire.catalog import EmptyTables

        return EmptyTables({one.name: one.columns for one in self.data_sets.values()})

    def close(self) -> None:
        """Close all sessions; what was reserved and not settled stays charged."""
        self.sessions.close()

    def _described(self, one: ServedTable, person: Person) -> dict[str, Any]:
        """Return a data set as somebody sees it."""
        session = self.sessions.of(one, person.name)
        promise, share = session.guarantee(), session.status()["allotments"].get(person.name)
        return {
            "name": one.name,
            "columns": session.schema,
            "tables": session.tables,
            "keys": sorted(one.keys),
            "defaults": dict(one.defaults),
            "unit": one.unit,
            **_frozen(session, person),
            "promise": str(promise),
            "promised": {"who": promise.who, "epsilon": promise.epsilon, "delta": promise.delta},
            "share": None if share is None else _held(one, share),
            "askers": None if one.askers is None or person.role == "analyst" else sorted(one.askers),
            "total": state(one.budget.total, one.budget.report_delta),
            "used": session.spent.farthings / one.budget.total.farthings,
            "spent": state(session.spent, one.budget.report_delta),
            "remaining": state(session.remaining, one.budget.report_delta),
        }

    def _of(self, person: Person, name: str | None) -> Sequence[ServedTable]:
        """Return one data set, or all that somebody may see."""
        if name is not None:
            return [self._data_set(person, name)]
        return [one for one in self.data_sets.values() if person.role != "analyst" or one.open_to(person.name)]

    def _data_set(self, person: Person, name: object) -> ServedTable:
        """Return a data set; one that somebody may not see is as unknown as one that is not there."""
        one = self.data_sets.get(name) if isinstance(name, str) else None
        if one is None or (person.role == "analyst" and not one.open_to(person.name)):
            raise RefusedRequest(
                "there is no such data set",
                status=404,
                rule="a request names a data set that it may ask",
                got=repr(name)[:80],
                next_step="GET /v1/datasets lists them",
            )
        return one

    def _session(self, person: Person, asked: Mapping[str, Any]) -> Session:
        """Return the session in which somebody asks."""
        return self.sessions.of(self._data_set(person, asked["dataset"]), person.name)

    def _planned(self, session: Session, asked: Mapping[str, Any]) -> Plan | ReleasePlan:
        """Return the price of a question."""
        return session.plan(asked["sql"], keys=asked.get("keys"), **_how(asked))

    def _changed(self, person: Person, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the question of a request; with a plan's id, the question of that plan with the request's changes."""
        if not isinstance(request.get("plan"), str):
            return request
        return {**self.tickets.read(request["plan"], person.name).question, **_without_plan(request)}

    def _confirmed(self, person: Person, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], int | None]:
        """Return the question of a request and the most that it may be charged; of a plan's id, what was planned."""
        written = request.get("plan")
        if written is None:
            return _checked(request), None
        if not isinstance(written, str):
            raise _unreadable("plan is not a text", "the id of a plan", written)
        ticket = self.tickets.read(written, person.name)
        given = {name: value for name, value in request.items() if name != "plan"}
        if given and _without_plan(_checked(given)) != ticket.question:
            raise RefusedRequest(
                "the question is not the one that was planned",
                status=409,
                rule="a plan's id confirms its own question",
                next_step="send the id alone, or plan this question",
            )
        return ticket.question, ticket.most

    def _may_read(self, person: Person, who: str) -> bool:
        """Whether somebody may read what another one asked."""
        return person.role != "analyst" or self.open_history or who == person.name

    @staticmethod
    def require(person: Person, *roles: str) -> None:
        """Refuse a role that may not do this."""
        if person.role not in roles:
            raise RefusedRequest(
                f"the role {person.role} may not do this",
                status=403,
                rule=f"it takes the role {' or '.join(roles)}",
                next_step="ask the owner for another token",
            )


def _frozen(session: Session, person: Person) -> dict[str, Any]:
    """Return whether somebody's questions are frozen, and to those who run the data set whose are."""
    names = session.frozen
    stopped = "" in names or person.name in names
    return {"frozen": stopped} | (
        {} if person.role == "analyst" else {"frozen_analysts": [one for one in names if one]}
    )


def _held(one: ServedTable, held: Mapping[str, Booked]) -> dict[str, dict[str, float]]:
    """Return a share as plain values."""
    return {part: state(loss, one.budget.report_delta) for part, loss in held.items()}


def _without_plan(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question without the id that confirms it."""
    return {name: value for name, value in asked.items() if name != "plan"}


def _how(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a session's ask."""
    return {name: asked[name] for name in OPTIONS if asked.get(name) is not None}


def _checked(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request whose names and types are those of a question."""
    unknown = sorted(set(request) - _FIELDS)
    if unknown:
        raise _unreadable(f"the request has a field {unknown[0]!r}", f"the fields are {', '.join(sorted(_FIELDS))}", "")
    for name in ("dataset", "sql"):
        if not isinstance(request.get(name), str) or (name == "sql" and "\0" in request[name]):
            raise _unreadable(f"{name} is not a text", f"a request names its {name}", request.get(name))
    if len(request["sql"]) > LONGEST_SQL:
        raise _unreadable("the SQL is too long", f"at most {LONGEST_SQL:,} characters", f"{len(request['sql']):,}")
    for name, kinds in OPTIONS.items():
        value = request.get(name)
        if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise _unreadable(f"{name} is of the wrong type", f"one of {', '.join(k.__name__ for k in kinds)}", value)
    _check_keys(request.get("keys"))
    return request


def _check_keys(keys: Any) -> None:
    """Refuse keys of another shape, or too many of them."""
    if keys is None or keys == "private":
        return
    if not isinstance(keys, dict) or not all(isinstance(values, list | str) for values in keys.values()):
        rule = '{"zone": ["a", "b"]}, "zones.id" for a column of a public table, or "private"'
        raise _unreadable("the keys are of another shape", rule, type(keys).__name__)
    count = sum(len(values) for values in keys.values() if isinstance(values, list))
    if count > _MOST_KEYS:
        raise _unreadable("too many keys", f"at most {_MOST_KEYS:,} in a request", f"{count:,}")


def _unreadable(what: str, rule: str, got: object) -> RefusedRequest:
    """Return the refusal of a request that is not a question."""
    next_step = '{"dataset": "flights", "sql": "SELECT COUNT(*) FROM flights", "absolute": 50}'
    return RefusedRequest(what, status=400, rule=rule, got=repr(got)[:80] if got != "" else "", next_step=next_step)
