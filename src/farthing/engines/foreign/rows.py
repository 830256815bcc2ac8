"""The rows that a question counts, as one ibis table: tables joined, columns read, rows filtered, values named."""

from __future__ import annotations

from dataclasses import dataclass
from operator import and_
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines import joining
from farthing.engines.bounded import KeepHome, KeepWhere
from farthing.engines.foreign.scalars import COMPARE, FENCE, IbisScalars, balanced
from farthing.engines.foreign.terms import IbisTerm, placed, symbol, whole
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.joins import Join
from farthing.query.normal import conjuncts, normal
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.engines.bounded import BoundedQuery, Step
    from farthing.engines.foreign.backend import Backend


@dataclass(frozen=True, slots=True)
class IbisRelation:
    """A table of the backend.

    Attributes:
        table: its ibis table.
        schema: our types.
        public: whether it is not a unit's; the protected table itself is not.
    """

    table: Any
    schema: Schema
    public: bool = False


@dataclass(frozen=True, slots=True)
class IbisCatalog:
    """The protected table and the tables that may be joined, by name."""

    own: IbisRelation
    joined: Mapping[str, IbisRelation]


class IbisRows:
    """The rows of one question.

    Columns are read once each, in their total form, under short names of ours; conditions and values are built on
    these names. With a prefix they differ from those of other rows in one text.
    """

    def __init__(
        self, query: BoundedQuery, catalog: IbisCatalog, backend: Backend, hash_key: int = 0, *, prefix: str = ""
    ) -> None:
        self.backend = backend
        self.prefix = prefix
        self._query = query
        self._hash_key = hash_key
        self._catalog = catalog
        self._names: dict[tuple[str | None, str], str] = {}
        self.scalars = IbisScalars(backend, self._read, prefix=prefix)
        self._shown: dict[str, Any] = {}
        self._numbered = False

    @property
    def own(self) -> IbisRelation:
        """The table that the rows are of."""
        return self._catalog.own

    def show(self, expr: Any, name: str) -> str:
        """Add a value to the columns of the table, once; return its name.

        A key ("k") is a column of its own: it leaves the rows when their places are known, and values stay.
        """
        for known, shown in self._shown.items():
            if shown.equals(expr) and (name == "k") == known.startswith(f"{self.prefix}k"):
                return known
        self._shown[f"{self.prefix}{name}{len(self._shown)}"] = expr
        return next(reversed(self._shown))

    def number(self) -> str:
        """Add a number that tells rows of the protected table apart; return its name."""
        self._numbered = True
        return self.show(symbol("id", "int64"), "id")

    def groups(self) -> list[str]:
        """Add the grouping columns; return their names."""
        return [self.show(self.scalars.group(scalar).expr, "k") for _, scalar in self._query.groupings]

    def table(self) -> Any:
        """Return the rows after all steps with the unit as u (if it is a column) and all that was shown."""
        import ibis

        ready = [self._ready(step, place) for place, step in enumerate(self._query.steps)]  # they read columns too
        own, unit = self._catalog.own, self._query.unit.column
        also = {} if unit is None else {"u": self.unit(own, unit)}
        also |= {"id": self.backend.numbered()} if self._numbered else {}
        table = self._scan(None, also, self._implied())
        for step in ready:
            table = step(table)
        shown = {} if unit is None else {"u": table["u"]}
        shown |= {name: placed(expr, table) for name, expr in self._shown.items()}
        return table.select(**shown) if shown else table.select(z=ibis.literal(0))

    def _ready(self, step: Step, place: int) -> Callable[[Any], Any]:
        """Return what a step makes of the rows before it."""
        match step:
            case KeepHome():
                return self._at_home(step)
            case Join():
                return self._met(step, place)
            case KeepWhere():
                return self._kept(step)
            case _:
                assert_never(step)

    def _at_home(self, home: KeepHome) -> Callable[[Any], Any]:
        """Return the step that keeps the rows of the units whose home is the part that is asked.

        Homes are chosen by a window and not by a join, so that one unit is what GROUP BY takes for one.
        """
        import ibis

        scalars = IbisScalars(self.backend, self._read, staged=False)
        tests = [scalars.predicate(condition) for condition in home.parts]

        def step(table: Any) -> Any:
            places = [(placed(test, table), whole(place)) for place, test in enumerate(tests)]
            parted = table.mutate(p=ibis.cases(*places))
            parted = parted.filter(parted.p.notnull(), ~self.backend.is_null(parted.u))
            ranked = parted.mutate(h=self.backend.hash(parted.u, [parted.p], home.key(self._hash_key)))
            window = ibis.window(group_by=ranked.u, order_by=[ranked.h, ranked.p])
            marked = ranked.mutate(home=ranked.p.first().over(window))
            return marked.filter(marked.p == marked.home, marked.p == home.place).drop("p", "h", "home")

        return step

    def _met(self, join: Join, place: int) -> Callable[[Any], Any]:
        """Return the step that puts beside each row those of a table that it meets."""
        on = IbisScalars(self.backend, self._read, staged=False).predicate(join.on)

        def step(table: Any) -> Any:
            beside = self._beside(join, place)
            tests = [placed(on, table, beside)]
            if not join.public:  # one unit's rows meet its own rows only, whatever else the condition takes for equal
                tests.append(table["u"] == beside[f"u{place}"])
            columns = [*table.columns, *beside.columns]
            return table.join(beside, tests, how="left" if join.left else "inner").select(*columns)

        return step

    def _kept(self, where: KeepWhere) -> Callable[[Any], Any]:
        """Return the step that drops rows without a unit or where a condition is not TRUE."""
        import ibis

        conditions = [self.scalars.predicate(part) for part in conjuncts(where.condition)]

        def step(table: Any) -> Any:
            early = [part for part in conditions if self.scalars.level(part) == 0]
            late = [part for part in conditions if self.scalars.level(part) > 0]
            if not self._query.unit.is_row:
                early.append(~self.backend.is_null(symbol("u", table["u"].type())))
            if early:
                table = table.filter([placed(part, table) for part in early])
            table = self.scalars.over(table)
            if not late:
                return table
            held = placed(balanced(and_, late), table)
            return table.filter(ibis.ifelse(table[FENCE], held, ibis.literal(value=False)))

        return step

    def _find(self, name: str) -> tuple[str | None, str]:
        """Return the joined table of a column (None: the protected one), and the column's name there."""
        for join in self._query.joins:
            prefix = f"{join.table}."
            if name not in self._catalog.own.schema.names and name.startswith(prefix):
                return join.table, name.removeprefix(prefix)
        return None, name

    def _relation(self, table: str | None) -> IbisRelation:
        """Return the protected table, or a joined one."""
        return self._catalog.own if table is None else self._catalog.joined[table]

    def _read(self, name: str) -> IbisTerm:
        """Return the short name of a column."""
        table, column = self._find(name)
        relation = self._relation(table)
        kind = relation.schema.require(column)
        read = self.backend.read(relation.table[column], kind)
        short = self._names.setdefault((table, column), f"{self.prefix}c{len(self._names)}")
        return IbisTerm(symbol(short, read.type()), Type.FLOAT if kind in REAL_TYPES else kind)

    def unit(self, relation: IbisRelation, column: str) -> Any:
        """Return the unit column as it is grouped and hashed."""
        value = relation.table[column]
        return value + 0.0 if value.type().is_floating() else value

    def _beside(self, join: Join, place: int) -> Any:
        """Return the scan of a joined table: its unit with a protected one, its first rows with a fan-out."""
        import ibis

        relation = self._catalog.joined[join.table]
        if not join.public:
            return self._scan(join.table, {f"u{place}": self.unit(relation, self._query.unit.column or "")}, [])
        if join.fan_out is None:
            return self._scan(join.table, {}, [])
        table, held = relation.table, equal_columns(join, self._catalog, self._query, self.backend)
        ordered = [table[name] for name, kind in relation.schema.columns if kind is not Type.OTHER]
        rank = ibis.row_number().over(ibis.window(group_by=held, order_by=ordered))
        scan = self._scan(join.table, {f"r{place}": rank}, [])
        return scan.filter(scan[f"r{place}"] < join.fan_out).drop(f"r{place}")

    def _scan(self, name: str | None, also: dict[str, Any], conditions: list[Any]) -> Any:
        """Return a table with the columns that are read of it."""
        import ibis

        relation = self._relation(name)
        table = relation.table
        read = {
            short: self.backend.read(table[column], relation.schema.require(column))
            for (other, column), short in self._names.items()
            if other == name
        }
        columns = {**read, **also}
        if not columns:  # one name a table: they meet in joins
            columns = {f"z_{name or ''}": ibis.literal(0)}
        return (table.filter(conditions) if conditions else table).select(**columns)

    def _implied(self) -> list[Any]:
        """Return what the condition says of days and times as they are stored: indexes and files can skip by it."""
        own, found = self._catalog.own, []
        for part in conjuncts(self._query.early):
            match part:
                case Compare(Column(name), operator, Literal(value)) if name in own.schema.names:
                    if own.schema.require(name) in (Type.DATE, Type.TIMESTAMP):
                        found.append(COMPARE[operator](own.table[name], self.backend.moment(value)))
        return found


def told_apart(relation: IbisRelation, unit: str, backend: Backend) -> Any:
    """Return a question that does with one NULL of a unit's type what questions do with units; it reads no row."""
    import ibis

    nobody = relation.table.select(u=relation.table[unit]).limit(0).as_scalar()
    one = ibis.literal(0).name("z").as_table().select(u=nobody)
    ranked = one.mutate(r=ibis.row_number().over(ibis.window(group_by=one["u"])))
    grouped = ranked.group_by("u").agg(r=ranked["r"].max())
    return grouped.select(h=backend.hash(grouped["u"], [grouped["r"].cast("int64")], 7))


def equal_columns(join: Join, catalog: IbisCatalog, query: BoundedQuery, backend: Backend) -> list[Any]:
    """Return the columns of a joined table, as compared, that its condition holds to columns of the tables so far.

    A row of these tables then meets the rows of one combination of them only.
    """
    rows, beside, found = IbisRows(query, catalog, backend), catalog.joined[join.table], []
    for part in conjuncts(normal(join.on)):
        match part:
            case Compare(Column(left), Operator.EQ, Column(right)):
                sides = [rows._find(name) for name in (left, right)]  # noqa: SLF001  # a sibling function
                for (table, column), (other, another) in (sides, sides[::-1]):
                    if table == join.table and other != join.table:
                        read = backend.read(beside.table[column], beside.schema.require(column))
                        kinds = {beside.schema.require(column), rows._relation(other).schema.require(another)}  # noqa: SLF001
                        found.append(read.cast("float64") if kinds & REAL_TYPES else read)
    return found


def check(query: BoundedQuery, catalog: IbisCatalog, backend: Backend) -> None:
    """Refuse joins that the engine cannot run, or could not keep within the bounds; see `engines.joining`."""
    unit = query.unit.column or ""

    def unit_type(table: str | None) -> Any:
        return (catalog.own if table is None else catalog.joined[table]).table.schema().get(unit)

    public = {name: relation.public for name, relation in catalog.joined.items()}
    joining.check(query, public, lambda join: equal_columns(join, catalog, query, backend), unit_type)
