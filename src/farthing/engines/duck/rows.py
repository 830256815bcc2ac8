"""The rows that a question counts, as one DuckDB relation: tables joined, columns read, rows filtered, values named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines import joining
from farthing.engines.bounded import KeepHome, KeepWhere
from farthing.engines.duck.functions import Text
from farthing.engines.duck.scalars import UNFOLDED, DuckScalars
from farthing.engines.duck.stored import exactly
from farthing.engines.duck.terms import keyed_hash, reader, row, stored
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.joins import Join
from farthing.query.measures import Total
from farthing.query.normal import conjuncts, normal
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.engines.bounded import BoundedQuery, Step
    from farthing.query.expressions import Scalar

MOST_CONDITION: Final = 100_000
"""Letters of a join's condition: it has no stages, so guards in it are written out."""


@dataclass(frozen=True, slots=True)
class DuckRelation:
    """A table that DuckDB can scan.

    Attributes:
        view: its name there.
        native: DuckDB's type of every column.
        schema: our types.
        public: whether it is not a unit's; the protected table itself is not.
        packed: the columns that are stored as dictionaries much shorter than the column. What an engine computes does
            not depend on it, only how fast.
        scanned: whether files are scanned, whose readers can skip rows.
    """

    view: str
    native: Mapping[str, str]
    schema: Schema
    public: bool = False
    packed: frozenset[str] = frozenset()
    scanned: bool = False


@dataclass(frozen=True, slots=True)
class DuckCatalog:
    """The protected table and the tables that may be joined, by name."""

    own: DuckRelation
    joined: Mapping[str, DuckRelation]


class DuckRows:
    """The rows of one question.

    Columns are read once each, in their total form, under short names of ours; conditions and values are built on
    these. `columns` tells afterwards which columns of which view are needed, `packed` which texts DuckDB holds as
    dictionaries. With `whole` totals of cells are added in integers.
    """

    def __init__(self, query: BoundedQuery, catalog: DuckCatalog, hash_key: int = 0, *, whole: bool = False) -> None:
        self._query = query
        self._hash_key = hash_key
        self.whole = whole
        self._catalog = catalog
        self._names: dict[tuple[str, str], str] = {}
        self._stored: dict[tuple[str, str], str] = {}
        self.scalars = DuckScalars(self.read)
        self.packed: set[str] = set()
        self._shown: dict[str, Text] = {}
        self._numbered = False
        own = catalog.own
        told = {part: exactly(part, own.native) for part in conjuncts(query.early) if own.scanned}
        self._skipping = {part: one for part, one in told.items() if one is not None}

    @property
    def own(self) -> DuckRelation:
        """The table that the rows are of."""
        return self._catalog.own

    @property
    def columns(self) -> dict[str, set[str]]:
        """Return the columns that are read, by view."""
        own = self._catalog.own.view
        found: dict[str, set[str]] = {own: set()}
        for view, column in (*self._names, *self._stored):
            found.setdefault(view, set()).add(column)
        found[own] |= {column for column, _ in self._skipping.values()}
        if self._query.unit.column is not None:
            found[own].add(self._query.unit.column)
        for join in self._query.joins:
            relation = self._catalog.joined[join.table]
            found.setdefault(relation.view, set())
            if join.fan_out is not None:
                found[relation.view] |= set(relation.schema.names)
            if not join.public and self._query.unit.column is not None:
                found[relation.view].add(self._query.unit.column)
        return found

    def bind(self, text: Text) -> Text:
        """Return a name for a text that is repeated."""
        named = self.scalars.bind(text)
        if text.sql in self.packed:
            self.packed.add(named.sql)
        return named

    def shares(self, total: Total) -> bool:
        """Tell whether another total of the question is of the same clamped value."""
        ends = (total.value, total.lower, total.upper)
        totals = [measure for measure in self._query.measures if isinstance(measure, Total)]
        return sum((other.value, other.lower, other.upper) == ends for other in totals) > 1

    def show(self, text: Text, name: str) -> str:
        """Add a value to the columns of the relation, once; return its name."""
        for known, shown in self._shown.items():
            if shown.sql == text.sql:
                return known
        self._shown[f"{name}{len(self._shown)}"] = text
        return next(reversed(self._shown))

    def number(self) -> str:
        """Add a number that tells rows of the protected table apart; return its name."""
        self._numbered = True
        return self.show(Text("id", Type.INTEGER), "id")

    def groups(self) -> list[str]:
        """Add the grouping columns; return their names."""
        return [self.show(self.scalars.group(scalar), "k") for _, scalar in self._query.groupings]

    def is_real(self, name: str) -> bool:
        """Return whether a shown column is a double."""
        return self._shown[name].real

    def counts(self, name: str) -> bool:
        """Return whether a shown column is a whole number of at most 64 bits with sign."""
        return self._shown[name].type is Type.INTEGER and not self._shown[name].wide

    def sql(self) -> str:
        """Return the relation after all steps: a SELECT of the unit as u (if it is a column) and all that was shown."""
        return self._after(self._query.steps)

    def unfiltered(self) -> str:
        """Return all rows of the protected table whose unit is not NULL, in the same form."""
        return self._after((KeepWhere(None),))

    def _after(self, steps: tuple[Step, ...]) -> str:
        """Return the relation after some steps, of which only the last is a condition."""
        ready = [self._ready(step, place) for place, step in enumerate(steps)]  # before scans: they read columns too
        own = [f"{row(self._query.unit.column)} AS u"] if self._query.unit.column is not None else []
        own += ["row_number() OVER () AS id"] if self._numbered else []
        early = f" WHERE {self._implied()}"
        relation = self._scan(self._catalog.own, own, early)
        for step in ready:
            relation = step(relation)
        return relation

    def _ready(self, step: Step, place: int) -> Callable[[str], str]:
        """Return what a step makes of the relation before it."""
        match step:
            case KeepHome():
                return self._at_home(step)
            case Join():
                return self._met(step, place)
            case KeepWhere():
                return self._kept(step)
            case _:
                assert_never(step)

    def _kept(self, where: KeepWhere) -> Callable[[str], str]:
        """Return the step that drops rows without a unit or where a condition is not TRUE, and shows what is left."""
        left = [part for part in conjuncts(where.condition) if part not in self._skipping]
        truths = [self.scalars.predicate(part) for part in left]
        early = " AND ".join(truth.sql for truth in truths if truth.level == 0) or "TRUE"
        late = [truth.sql for truth in truths if truth.level > 0]
        shown = [f"{text.sql} AS {name}" for name, text in self._shown.items()]
        if not self._query.unit.is_row:
            shown = ["u", *shown]
            early = f"{early} AND u IS NOT NULL"
        condition = " AND ".join([*late, UNFOLDED]) if late else "TRUE"
        select = f"SELECT {', '.join(shown) or '0 AS z'} FROM"
        return lambda relation: f"{select} {self.scalars.over(relation, early)} WHERE {condition}"

    def find(self, name: str) -> tuple[DuckRelation, str]:
        """Return the table of a column, and its name there."""
        own = self._catalog.own
        for join in self._query.joins:
            prefix = f"{join.table}."
            if name not in own.native and name.startswith(prefix):
                return self._catalog.joined[join.table], name.removeprefix(prefix)
        return own, name

    def read(self, name: str) -> Text:
        """Return the short name of a column."""
        relation, column = self.find(name)
        kind = relation.schema.require(column)
        short = self._names.setdefault((relation.view, column), f"c{len(self._names)}")
        if kind is Type.INTEGER and self._is_packed(relation, column):
            self.packed.add(short)
        return Text(short, kind, plain=True, wide=relation.native[column] == "UBIGINT")

    def measured(self, scalar: Scalar) -> Text:
        """Return the text of a scalar that is only measured, so that zeros may differ: a double as it is stored.

        Arithmetic on it is done once for each entry of a dictionary, where a file has one.
        """
        if isinstance(scalar, Column):
            relation, column = self.find(scalar.name)
            if relation.native.get(column) == "DOUBLE":
                short = self._stored.setdefault((relation.view, column), f"d{len(self._stored)}")
                if self._is_packed(relation, column):
                    self.packed.add(short)
                return Text(short, Type.FLOAT, plain=True)
        return self.scalars.scalar(scalar)

    def _is_packed(self, relation: DuckRelation, column: str) -> bool:
        """Return whether DuckDB holds a column as a dictionary where values are computed: joins may unpack it."""
        return column in relation.packed and not self._query.joins

    def _at_home(self, home: KeepHome) -> Callable[[str], str]:
        """Return the step that keeps the rows of the units whose home is the part that is asked."""
        placed = self.place_of(home).sql
        kept = home_of(home, self._hash_key)

        def step(relation: str) -> str:
            rows = f"SELECT *, {placed} AS p FROM {relation}"
            marked = f"SELECT *, {kept} AS home FROM ({rows}) WHERE p IS NOT NULL AND u IS NOT NULL"
            return f"(SELECT * EXCLUDE (p, home) FROM ({marked}) WHERE p = home AND p = {home.place})"

        return step

    def place_of(self, home: KeepHome) -> Text:
        """Return the place of the part that a row is in, NULL for none."""
        scalars = DuckScalars(self.read, staged=False)
        truths = [scalars.predicate(condition) for condition in home.parts]
        placed = " ".join(f"WHEN {truth.sql} THEN {place}" for place, truth in enumerate(truths))
        return Text(f"(CASE {placed} END)::INTEGER", Type.INTEGER)

    def _met(self, join: Join, place: int) -> Callable[[str], str]:
        """Return the step that puts beside each row those of a table that it meets."""
        on = condition(join, self.read)

        def step(relation: str) -> str:
            scan, match = self._beside(join, place)
            return (
                f"(SELECT * FROM {relation} AS t {'LEFT ' if join.left else ''}JOIN {scan} AS j{place} ON {on}{match})"
            )

        return step

    def _beside(self, join: Join, place: int) -> tuple[str, str]:
        """Return the scan of a joined table, and what its condition has to say of units."""
        relation = self._catalog.joined[join.table]
        if not join.public:  # one unit's rows meet its own rows only, whatever else the condition takes for equal
            return self._scan(relation, [f"{row(self._query.unit.column or '')} AS u{place}"], ""), f" AND u = u{place}"
        if join.fan_out is None:
            return self._scan(relation, [], ""), ""
        keys = equal_columns(join, self._catalog, self._query)
        parted = f"PARTITION BY {', '.join(keys)} " if keys else ""
        order = ", ".join(map(row, relation.schema.names))
        kept = f"row_number() OVER ({parted}ORDER BY {order}) <= {join.fan_out}"
        return self._scan(relation, [], f" QUALIFY {kept}"), ""

    def _scan(self, relation: DuckRelation, also: list[str], rest: str) -> str:
        """Return a table with the columns that are read of it."""
        read = [
            f"{reader(column, relation.native[column])} AS {short}"
            for (view, column), short in self._names.items()
            if view == relation.view
        ]
        read += [f"{row(column)} AS {short}" for (view, column), short in self._stored.items() if view == relation.view]
        return f"(SELECT {', '.join([*read, *also]) or '0 AS z'} FROM {relation.view} AS r{rest})"

    def _implied(self) -> str:
        """Return what the condition says of columns as they are stored: readers of files can skip by it."""
        own, parts = self._catalog.own, [sql for _, sql in self._skipping.values()]
        for part in conjuncts(self._query.early):
            match part:
                case Compare(Column(name), operator, Literal(date() as moment)):
                    same = stored(moment, own.native.get(name, ""))
                    parts += [] if same is None else [f"{row(name)} {operator.value} {same}"]
        return " AND ".join(parts) or "TRUE"


def home_of(home: KeepHome, hash_key: int) -> str:
    """Return the part p in which a unit u is kept, of those in which it has rows."""
    rank = keyed_hash("u", "p", home.key(hash_key))
    return f"first_value(p) OVER (PARTITION BY u ORDER BY {rank}, p)"


def condition(join: Join, read: Callable[[str], Text]) -> str:
    """Return the condition of a join, in parentheses."""
    sql = DuckScalars(read, staged=False).predicate(join.on).sql
    if len(sql) > MOST_CONDITION:
        raise joining.refused(
            "the condition of a join is too long", str(len(sql)), f"at most {MOST_CONDITION} letters of SQL"
        )
    return sql


def equal_columns(join: Join, catalog: DuckCatalog, query: BoundedQuery) -> tuple[str, ...]:
    """Return the columns of a joined table, as compared, that its condition holds to columns of the tables so far.

    A row of these tables then meets the rows of one combination of them only.
    """
    rows, beside = DuckRows(query, catalog), catalog.joined[join.table]
    found = []
    for part in conjuncts(normal(join.on)):
        match part:
            case Compare(Column(left), Operator.EQ, Column(right)):
                sides = [rows.find(name) for name in (left, right)]
                for (relation, column), (other, another) in (sides, sides[::-1]):
                    if relation is beside and other is not beside:
                        kinds = {relation.schema.require(column), other.schema.require(another)}
                        read = reader(column, relation.native[column])
                        found.append(f"CAST({read} AS DOUBLE)" if kinds & REAL_TYPES else read)
    return tuple(found)


def check(query: BoundedQuery, catalog: DuckCatalog) -> None:
    """Refuse joins that the engine cannot run, or could not keep within the bounds; see `engines.joining`."""
    rows, unit = DuckRows(query, catalog), query.unit.column or ""

    def unit_type(table: str | None) -> str | None:
        return (catalog.own if table is None else catalog.joined[table]).native.get(unit)

    public = {name: relation.public for name, relation in catalog.joined.items()}
    joining.check(query, public, lambda join: equal_columns(join, catalog, query), unit_type)
    for join in query.joins:
        condition(join, rows.read)
