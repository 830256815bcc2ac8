"""`farthing.connect`: a session's questions, asked of a server.

The address and a token are all that is needed: no table, no ledger. Answers have the same columns and the same words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from farthing.client.wire import ARROW, RefusedRequest, Wire, loss_of
from farthing.errors import InvalidOption, InvalidTarget
from farthing.tabular import Lines, Tabular

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from farthing.privacy.loss import Booked
    from farthing.progress import Progress

__all__ = ["ARROW", "RefusedRequest", "RemoteAnswer", "RemotePlan", "RemoteSession", "Wire", "connect"]


def connect(url: str, token: str, *, dataset: str | None = None, timeout_s: float = 300.0) -> RemoteSession:
    """Connect to a server of `farthing serve`, and return what asks it as a session asks a table.

    Args:
        url: the address, such as "https://ask.example.org".
        token: what the owner gave, once.
        dataset: what to ask; may be left out where there is one.
        timeout_s: how many seconds to wait for an answer.

    Raises:
        DataError: the server cannot be reached.
        InvalidOption: there is no such data set, or several and none is named.
        FarthingError: the token is not known there.
    """
    wire = Wire.to(url, token, timeout_s)
    sets: dict[str, Any] = {}
    try:
        sets = {one["name"]: one for one in wire.send("GET", "/v1/datasets").json()["datasets"]}
    finally:
        name = next(iter(sets), "") if dataset is None and len(sets) == 1 else dataset or ""
        if name not in sets:
            wire.close()
    if name not in sets:
        raise InvalidOption(
            "no data set is named" if dataset is None else "there is no such data set",
            rule="a connection asks one data set",
            got=dataset or "",
            next_step=f"dataset= one of {', '.join(sets) or 'none: your token may ask nothing'}",
        )
    return RemoteSession(wire, name, sets[name])


@dataclass(frozen=True, slots=True, repr=False)
class RemoteSession(Lines):
    """A data set of a server, asked with a session's own methods: `sql`, `plan`, `count`, `sum`, `mean`, `quantile`.

    Attributes:
        name: the data set, which is the table's name in SQL.
    """

    _wire: Wire
    name: str
    _facts: Mapping[str, Any]

    def sql(self, text: str, *, keys: Any = None, **how: Any) -> Any:
        """Answer one SELECT of aggregates, as `Session.sql`; EXPLAIN gives the plan, free.

        Args:
            text: the SQL.
            keys: the public groups, as lists, or "private"; by default those that the owner declared.
            **how: the target and the price: relative, absolute, rank, confidence, max_epsilon, ...; and `progress`,
                which is called after every look.

        Raises:
            FarthingError: as the session on the server raises it; what is refused is not charged. The answer of a
                `TargetMissed` is the server's JSON.
        """
        progress = how.pop("progress", None)
        return self._asked(_question(self.name, text, keys, how), progress)

    def plan(self, text: str, *, keys: Any = None, **how: Any) -> RemotePlan:
        """Price a question, free; its `ask` pays at most that.

        Args:
            text: as in `sql`.
            keys: as in `sql`.
            **how: as in `sql`.
        """
        asked = _question(self.name, text, keys, how)
        return RemotePlan(self, asked, self._wire.send("POST", "/v1/plan", asked).json())

    def count(self, by: Any = None, *, value: str | None = None, where: str | None = None, **how: Any) -> RemoteAnswer:
        """Count rows, as `Session.count`."""
        return self._aggregate(f"COUNT({value or '*'})", how.pop("name", "count"), by, where, how)

    def sum(self, value: str, *, by: Any = None, where: str | None = None, **how: Any) -> RemoteAnswer:
        """Add values up, as `Session.sum`: lower= and upper= clamp them."""
        return self._aggregate(f"SUM({value})", how.pop("name", "sum"), by, where, how)

    def mean(self, value: str, *, by: Any = None, where: str | None = None, **how: Any) -> RemoteAnswer:
        """Average values, as `Session.mean`."""
        return self._aggregate(f"AVG({value})", how.pop("name", "mean"), by, where, how)

    def quantile(
        self, value: str, q: float = 0.5, *, by: Any = None, where: str | None = None, **how: Any
    ) -> RemoteAnswer:
        """Find a quantile of values, as `Session.quantile`: rank= is its target."""
        return self._aggregate(f"QUANTILE({value}, {float(q)!r})", how.pop("name", "quantile"), by, where, how)

    @property
    def schema(self) -> dict[str, str]:
        """The table's columns and their types."""
        return dict(self._facts["columns"])

    @property
    def spent(self) -> Booked:
        """What the ledger has charged, by everybody."""
        return loss_of(self._now()["spent"])

    @property
    def remaining(self) -> Booked:
        """What may still be charged."""
        return loss_of(self._now()["remaining"])

    def history(self, limit: int = 100) -> list[dict[str, Any]]:
        """Return what was asked, newest first, as far as the token may see it."""
        found = self._wire.send("GET", f"/v1/history?dataset={self.name}&limit={limit}").json()
        return list(found["history"])

    def verify(self) -> str:
        """Check the books, and return the head of their chain; for owners and auditors."""
        return str(self._wire.send("POST", "/v1/verify", {"dataset": self.name}).json()["head"])

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<farthing.connect to {self._wire.client.base_url}, {self.name!r}>"

    def _aggregate(self, call: str, name: str, by: Any, where: str | None, how: dict[str, Any]) -> RemoteAnswer:
        """Answer one aggregate."""
        answer: RemoteAnswer = self.sql(_select(call, name, self.name, by, where), **how)
        return answer

    def _asked(self, asked: Mapping[str, Any], progress: Callable[[Progress], None] | None = None) -> Any:
        """Send a question and return what comes."""
        watched = None if progress is None else self._wire.watched("/v1/ask", asked, progress)
        if watched is not None:
            return _answer(self, asked, watched)
        came = self._wire.send("POST", "/v1/ask", asked, accept=ARROW)
        if came.headers["content-type"] != ARROW:
            return RemotePlan(self, asked, came.json())
        return _answer(self, asked, came.content)

    def _now(self) -> Mapping[str, Any]:
        """Return the data set as it is now."""
        sets = self._wire.send("GET", "/v1/datasets").json()["datasets"]
        return next(one for one in sets if one["name"] == self.name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RemoteAnswer(Tabular):
    """An answer of a server: its rows with intervals, what it cost, and a way to sharpen it.

    Attributes:
        facts: everything beside the rows, as the server tells it: goal, confidence, about, ...
    """

    _session: RemoteSession
    _asked: Mapping[str, Any]
    _table: pa.Table
    facts: Mapping[str, Any]

    def to_arrow(self) -> pa.Table:
        """Return the rows: the keys; <name>, <name>_lower, <name>_upper for each aggregate; met, paid."""
        return self._table

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the rows."""
        return f"{self.facts['goal']}, {self.confidence:g} confidence", f"paid {self.paid!r}", str(self.facts["about"])

    @property
    def names(self) -> tuple[str, ...]:
        """The answer columns."""
        all_names = set(self._table.column_names)
        return tuple(name for name in self._table.column_names if {f"{name}_lower", f"{name}_upper"} <= all_names)

    @property
    def value(self) -> Any:
        """The first answer column: an array, or one number without groups."""
        return self._shaped(self.names[0])

    @property
    def lower(self) -> Any:
        """The lower ends of its intervals."""
        return self._shaped(f"{self.names[0]}_lower")

    @property
    def upper(self) -> Any:
        """The upper ends of its intervals."""
        return self._shaped(f"{self.names[0]}_upper")

    @property
    def met(self) -> Any:
        """Whether the targets were reached."""
        return self._shaped("met")

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return float(self.facts["confidence"])

    @property
    def paid(self) -> Booked:
        """The loss of this ask; zero when asking again."""
        return loss_of(self.facts["paid"])

    @property
    def remaining(self) -> Booked:
        """What was left right after it."""
        return loss_of(self.facts["remaining"])

    def refine(self, *, progress: Callable[[Progress], None] | None = None, **changes: Any) -> RemoteAnswer:
        """Return a sharper answer to the same question, paying about the difference."""
        answer: RemoteAnswer = self._session._asked({**self._asked, **changes}, progress)  # noqa: SLF001  # of one module
        return answer

    def chart(self, path: str | Path | None = None, *, column: str | None = None) -> Any:
        """Return an altair chart of one answer column, as `Answer.chart`; with a path save it too."""
        from farthing import charts
        from farthing.picture import still

        name, shown = column or self.names[0], {f"{one}{end}" for one in self.names for end in ("", "_lower", "_upper")}
        keys = tuple(one for one in self._table.column_names if one not in shown | {"met", "paid"})
        about = {"title": self.footer[0], "parameter": next(iter(self.facts["paid"]))}
        picture = charts.answer_chart(self._table, keys=keys, name=name, **about)
        if path is not None:
            charts.save(picture, path)
        return still(picture)

    def _shaped(self, name: str) -> Any:
        """Return a column, or its only entry where there are no groups."""
        column = self._table.column(name).to_numpy()
        grouped = len(self._table.column_names) > 3 * len(self.names) + 2
        return column if grouped else column[0].item()


@dataclass(frozen=True, slots=True)
class RemotePlan(Lines):
    """A price that can be confirmed.

    Attributes:
        facts: the plan as the server tells it, with its id.
    """

    _session: RemoteSession
    _asked: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def worst_price(self) -> Booked:
        """The most that the question is charged."""
        return loss_of(self.facts["worst_price"])

    @property
    def fits(self) -> bool:
        """Whether that fits in what is left."""
        return bool(self.facts["fits"])

    def ask(self, *, progress: Callable[[Progress], None] | None = None) -> RemoteAnswer:
        """Answer the question at no more than this price; `progress` is called after every look."""
        answer: RemoteAnswer = self._session._asked({"plan": self.facts["plan"]}, progress)  # noqa: SLF001  # of one module
        return replace(answer, _asked=self._asked)

    def __str__(self) -> str:
        lines = (self.facts["question"], f"worst price {self.worst_price!r}", self.facts["advice"], self.facts["about"])
        return "\n".join(line for line in lines if line)


def _answer(session: RemoteSession, asked: Mapping[str, Any], content: bytes) -> RemoteAnswer:
    """Return an answer from its Arrow stream."""
    import pyarrow as pa

    with pa.ipc.open_stream(content) as reader:
        table = reader.read_all()
    facts = {name.decode(): json.loads(fact) for name, fact in (table.schema.metadata or {}).items()}
    return RemoteAnswer(session, asked, table.replace_schema_metadata(None), facts)


def _question(name: str, text: str, keys: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a question."""
    if "loss" in how or "bounds" in how or "progress" in how:
        raise InvalidTarget(
            "a server is not asked with loss= or bounds=, and not planned with progress=",
            rule="what JSON can say: targets, caps, keys, clamps",
            got=", ".join(how),
            next_step="the owner declares bounds; name a target, and max_epsilon= for a price",
        )
    listed = {column: _listed(values) for column, values in keys.items()} if isinstance(keys, Mapping) else keys
    return {"dataset": name, "sql": text} | ({} if listed is None else {"keys": listed}) | dict(how)


def _listed(values: Any) -> Any:
    """Return the keys of a column as JSON has them."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return values
    found = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return [value.isoformat() if hasattr(value, "isoformat") else value for value in found]


def _select(call: str, name: str, table: str, by: Any, where: str | None) -> str:
    """Return the SQL of one aggregate.

    >>> _select("COUNT(*)", "count", "rides", {"decade": "floor(age / 10)"}, "age > 20")
    'SELECT floor(age / 10) AS "decade", COUNT(*) AS "count" FROM "rides" WHERE age > 20 GROUP BY "decade"'
    """
    named = dict(by) if isinstance(by, Mapping) else dict.fromkeys([by] if isinstance(by, str) else by or [])
    groups = [f"{text} AS {_quoted(column)}" if text else _quoted(column) for column, text in named.items()]
    condition = f" WHERE {where}" if where else ""
    grouping = f" GROUP BY {', '.join(map(_quoted, named))}" if named else ""
    return f"SELECT {', '.join([*groups, f'{call} AS {_quoted(name)}'])} FROM {_quoted(table)}{condition}{grouping}"


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
