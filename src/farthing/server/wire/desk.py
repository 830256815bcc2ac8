"""One statement of a client: a setting, a question about the catalog, or one that is booked and answered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from farthing.advice import Face
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.server.shapes import in_face
from farthing.server.wire import columns, values

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot import exp

    from farthing.server.people import Person
    from farthing.server.service import Service
    from farthing.server.wire.catalog import EmptyTables

SETTINGS: Final = ("relative", "absolute", "confidence", "max_epsilon", "cap", "on_miss", "intervals")
"""What `SET farthing.NAME = VALUE` sets."""

REPORTED: Final = {
    "server_version": "16.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}
"""What a client is told of the server when it connects."""

_SHOWN: Final = {
    "transaction_isolation": "serializable",
    "transaction isolation level": "serializable",
    "default_transaction_read_only": "on",
    "max_identifier_length": "63",
    "search_path": "public",
}
_SET: Final = re.compile(
    r"\s*SET\s+(?:SESSION\s+|LOCAL\s+)?([\w.]+)\s*(?:=|\s+TO\s+)\s*(.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL
)
_WORD: Final = re.compile(
    r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|DISCARD|DEALLOCATE|SAVEPOINT|RELEASE|RESET|SET|SHOW|UNLISTEN)\b",
    re.IGNORECASE,
)
_EXPLAIN: Final = re.compile(r"\s*EXPLAIN\s+", re.IGNORECASE)
_PLAN: Final = "QUERY PLAN"
_TAGS: Final = {"START": "BEGIN", "END": "COMMIT", "ABORT": "ROLLBACK"}


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement came to.

    Attributes:
        tag: the word that ends it, such as "SELECT 3".
        table: its rows, or None.
        notice: what else is to be said, or "".
    """

    tag: str
    table: pa.Table | None = None
    notice: str = ""

    @property
    def columns(self) -> list[tuple[str, int]]:
        """The names of the columns, with the wire's numbers of their types."""
        return [] if self.table is None else [(one.name, values.oid_of(one.type)) for one in self.table.schema]


@dataclass(slots=True)
class Desk:
    """One client's statements.

    Attributes:
        service: plans and asks.
        person: who is connected.
        catalog: answers questions about the database itself.
        settings: what the client set.
    """

    service: Service
    person: Person
    catalog: EmptyTables
    settings: dict[str, str] = field(default_factory=dict)

    def done(self, text: str) -> Result:
        """Do one statement."""
        from sqlglot import exp

        word = _WORD.match(text)
        if word is not None:
            return self._command(word[1].upper(), text)
        explained = _EXPLAIN.match(text)
        tree = _read(text[explained.end() :] if explained else text)
        table = self._protected(tree)
        if table is None or _is_empty(tree):
            found = self.catalog.asked(text)
            return Result(f"SELECT {found.num_rows}", found)
        for text_of_number in tree.find_all(exp.Literal):
            _numbered(text_of_number, self.service.data_sets[table].columns)
        return self._question(table, ("EXPLAIN " if explained else "") + tree.sql(dialect="postgres"))

    def described(self, text: str, types: list[int]) -> list[tuple[str, int]] | None:
        """Return the columns that a statement will have, without asking it; None if it gives no rows.

        Values are numbers and keys have their columns' types, also where an answer's own rows would say otherwise.
        """
        word = _WORD.match(text)
        if word is not None:
            return self._command("SHOW", text).columns if word[1].upper() == "SHOW" else None
        if _EXPLAIN.match(text):
            return [(_PLAN, values.TEXT)]
        tree = _read(text)
        table = self._protected(tree)
        blank = values.bound(text, types, [], [None] * len(types))
        if table is None or _is_empty(tree):
            return Result("", self.catalog.asked(blank)).columns
        return columns.told(tree.selects, self.service.data_sets[table].columns, intervals=self._intervals())

    def types(self, text: str, given: list[int]) -> list[int]:
        """Return the numbers of the types of a statement's parameters: of those that the client leaves open, too.

        One that is compared with a number, or limits rows, is a number; others are texts.
        """
        from sqlglot import exp

        found = (given + [0] * values.parameters(text))[: values.parameters(text)]
        tree = _read(_EXPLAIN.sub("", text, count=1)) if any(oid == 0 for oid in found) else exp.Select()
        known = self._columns(tree)
        for one in tree.find_all(exp.Parameter, exp.Placeholder):
            place = int(one.name) - 1 if str(one.name).isdigit() else -1
            if 0 <= place < len(found) and not found[place]:
                found[place] = values.INT8 if isinstance(one.parent, exp.Limit) else _beside(one, known) or values.TEXT
        return [oid or values.TEXT for oid in found]

    def _columns(self, tree: exp.Expression) -> Mapping[str, str]:
        """Return the columns of the protected table that a statement names, with their types."""
        table = self._protected(tree.copy())
        return {} if table is None else self.service.data_sets[table].columns

    def _command(self, word: str, text: str) -> Result:
        """Do what is not a question: settings and transactions, which change nothing here."""
        if word == "SHOW":
            name = text.strip().rstrip(";")[4:].strip().strip('"')
            return _shown(name, self._setting(name))
        told = _SET.fullmatch(text)
        if word == "SET" and told is not None and told[1].lower().startswith("farthing."):
            self._set(told[1].lower().partition(".")[2], told[2].strip("'\""))
        elif word == "RESET":
            self.settings.clear()
        return Result(_TAGS.get(word, word))

    def _setting(self, name: str) -> str:
        """Return what a setting is."""
        if name.lower().startswith("farthing."):
            return self.settings.get(name.lower().partition(".")[2], "")
        known = {shown.lower(): value for shown, value in (REPORTED | _SHOWN).items()}
        return known.get(name.lower(), "")

    def _set(self, name: str, value: str) -> None:
        """Remember a setting of ours."""
        if name not in SETTINGS:
            raise UnsupportedQuery(
                f"there is no setting farthing.{name}",
                construct="setting",
                rule=f"the settings are {', '.join(SETTINGS)}",
                next_step="SET farthing.relative = '5%'",
            )
        if value.upper() == "DEFAULT":
            self.settings.pop(name, None)
            return
        if name not in {"cap", "on_miss", "intervals"}:
            _number(name, value)
        self.settings[name] = value

    def _question(self, table: str, text: str) -> Result:
        """Answer a question about a protected table."""
        request = {"dataset": table, "sql": text} | self._options()
        told = in_face(self.service.ask(self.person, request), Face.WIRE)
        if "answers" not in told:
            return _plan(told)
        found = _rows(told["answers"], intervals=self._intervals())
        paid, left = told["paid"], told["remaining"]
        price = f"paid epsilon {paid['epsilon']:.4g}, left epsilon {left['epsilon']:.4g} at delta {left['delta']:g}"
        notice = f"{told['goal']}, {told['confidence']:g} confidence; {price}; {told['about']}"
        return Result(f"SELECT {found.num_rows}", found, notice)

    def _intervals(self) -> bool:
        """Whether answers come with their intervals."""
        return self.settings.get("intervals", "off").lower() in {"on", "true", "1"}

    def _options(self) -> dict[str, Any]:
        """Return the options of a question, as they were set."""
        found: dict[str, Any] = {
            name: _number(name, value)
            for name, value in self.settings.items()
            if name not in {"cap", "on_miss", "intervals"}
        }
        return found | {name: self.settings[name] for name in ("cap", "on_miss") if name in self.settings}

    def _protected(self, tree: exp.Expression) -> str | None:
        """Return the protected table that a statement names, and strip what qualifies it; None if it names none."""
        from sqlglot import exp

        found = None
        for table in tree.find_all(exp.Table):
            if table.name in self.service.data_sets and table.db in {"", "public"}:
                table.set("db", None)
                table.set("catalog", None)
                found = found or table.name
        return found


def _beside(node: exp.Expression, known: Mapping[str, str]) -> int | None:
    """Return the number of the type of the column that a value is compared with; None for texts."""
    from sqlglot import exp

    if not isinstance(node.parent, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between | exp.In):
        return None
    beside = [known.get(one.name, "") for one in node.parent.iter_expressions() if isinstance(one, exp.Column)]
    return next((columns.TYPES[kind] for kind in beside if kind in columns.TYPES), None)


def _numbered(literal: exp.Literal, known: Mapping[str, str]) -> None:
    """Make a number of a text that is compared with one, as PostgreSQL does: some drivers send all values so."""
    if (
        literal.is_string
        and _beside(literal, known) in columns.NUMBERS.values()
        and re.fullmatch(r"-?\d+(\.\d+)?", literal.name)
    ):
        literal.set("is_string", False)  # noqa: FBT003  # as it is declared


def _read(text: str) -> Any:
    """Return the tree of a statement."""
    import sqlglot

    tree = None
    try:
        tree = sqlglot.parse_one(text, dialect="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        tree = None
    if tree is None:
        raise UnsupportedQuery(
            "the statement cannot be read",
            construct="SQL",
            rule="one statement of SQL",
            next_step="SELECT COUNT(*) FROM flights",
        )
    return tree


def _is_empty(tree: exp.Expression) -> bool:
    """Whether a statement asks for no row: clients find out the columns of a table by it."""
    from sqlglot import exp

    limit = tree.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.sql() == "0":
        return True
    where = tree.args.get("where")
    return isinstance(where, exp.Where) and where.this.sql().replace(" ", "") in {"1=0", "0=1", "FALSE"}


def _number(name: str, value: str) -> float:
    """Return a setting that is a number; 5% is 0.05."""
    number = None
    try:
        number = float(value.rstrip("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        number = None
    if number is None:
        raise InvalidTarget(
            f"farthing.{name} is not a number", rule="a number, or one with %", got=value[:40], next_step="'5%' or 0.05"
        )
    return number


def _rows(answers: list[Mapping[str, Any]], *, intervals: bool) -> pa.Table:
    """Return the rows of an answer; where it is wished, with intervals, whether they were met and what they paid."""
    import pyarrow as pa

    table = pa.Table.from_pylist([dict(row) for row in answers])
    if intervals:
        return table
    names = set(table.column_names)
    extra = {f"{name}_{end}" for name in names for end in ("lower", "upper") if f"{name}_{end}" in names}
    extra |= {"met", "paid", *(["kept"] if table.column_names[-1:] == ["kept"] else [])}  # behind "paid" it is ours
    return table.select([name for name in table.column_names if name not in extra])


def _plan(told: Mapping[str, Any]) -> Result:
    """Return a plan as rows, as EXPLAIN shows it."""
    import pyarrow as pa

    price = told["worst_price"]
    lines = [
        told["question"],
        f"worst price epsilon {price['epsilon']:.4g}",
        *told["steps"],
        told["advice"],
        told["about"],
    ]
    table = pa.table({_PLAN: [line for line in lines if line]})
    return Result(f"SELECT {table.num_rows}", table)


def _shown(name: str, value: str) -> Result:
    """Return a setting as a row."""
    import pyarrow as pa

    return Result("SHOW", pa.table({(name.split() or ["setting"])[-1].lower(): [value]}))
