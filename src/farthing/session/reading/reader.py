"""From what an analyst writes, as SQL or as a method call, to a checked question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.engines.engine import scope
from farthing.errors import InvalidBounds, InvalidKeys, UnsupportedQuery
from farthing.query import AutoBounds, Bounds, Keys, Query
from farthing.query.aggregates import Count, NamedAggregate
from farthing.query.expressions import Call, Case, Cast, Column, Literal, type_of
from farthing.query.reading import DECLARE
from farthing.query.schema import NUMBER_TYPES, Schema, Type
from farthing.session.reading.bins import binned, crossed
from farthing.session.reading.checks import check_expression, check_names
from farthing.session.reading.defaults import with_defaults
from farthing.session.reading.request import WIDTHS

if TYPE_CHECKING:
    from farthing.accuracy.target import Target
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.aggregates import Aggregate
    from farthing.query.expressions import Expression, Scalar
    from farthing.query.joins import Join
    from farthing.query.part import QueryPart
    from farthing.query.per_unit import Derived
    from farthing.session.core.door import Door
    from farthing.sql import Asked

PRIVATE = "private"
"""`keys="private"`: the groups that exist are found privately."""


Aggregates: TypeAlias = "Aggregate | Mapping[str, Aggregate]"
"""An aggregate, or several by the endings of their columns."""


class _Later(str):
    """Keys that a question leaves out, while it is read for what else it leaves out."""

    __slots__ = ()


LATER = _Later(PRIVATE)
"""Stands in for keys that are left out: nothing is answered with it, see `errors.whole`."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A checked question, and what is to become of its answer.

    Attributes:
        query: the question; a search for keys where they are to be found privately.
        outputs: what is asked of every group.
        asked: the SQL that it was written in, or None.
        lists: with grouping sets, the listed values of each column, in the order of their names.
    """

    query: Query
    outputs: tuple[NamedAggregate, ...]
    asked: Asked | None = None
    lists: tuple[Keys, ...] = ()

    @property
    def private(self) -> bool:
        """Whether the groups are to be found privately."""
        return not self.query.outputs


@dataclass(frozen=True, slots=True)
class QuestionReader:
    """What is needed to read a question.

    Attributes:
        engine: the door to the protected table.
        unit: the privacy unit.
        bounds: the bounds of questions that name none.
        part: the part of a partition that is asked, or None.
        keys: the public keys of grouping columns for which a question lists none.
        target: the accuracy of questions that name neither an accuracy nor a loss, or None.
    """

    engine: Door
    unit: PrivacyUnit
    bounds: Bounds | AutoBounds
    part: QueryPart | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    target: Target | None = None

    def wanted(self, how: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return how a question is to be answered: within the default target where it names no accuracy and no loss."""
        if self.target is None or any(how.get(name) is not None for name in (*WIDTHS, "loss")):
            return how
        widths = {name: width for name in ("relative", "absolute") if (width := getattr(self.target, name))}
        return widths | {name: getattr(self.target, name) for name in ("confidence", "simultaneous")} | dict(how)

    def sql(self, text: object, keys: Any, bounds: Bounds | None) -> CheckedQuestion:
        """Return the question of a SQL text."""
        if not isinstance(text, str):
            raise UnsupportedQuery(
                "the question is not a text",
                construct="SQL",
                rule="SQL is a text",
                got=type(text).__name__,
                next_step='"SELECT COUNT(*) FROM data"',
            )
        from farthing.sql import parse

        engine = self.engine
        bounds = self._bounds(bounds)
        asked = parse(
            text,
            table=engine.name,
            schema=engine.schema,
            tables=engine.tables,
            public=engine.public,
            unit=self.unit.column,
            bounds=bounds,
        )
        named = {name: getattr(asked.options, name) for name in ("max_groups", "max_rows")}
        bounds = replace(bounds, **{name: value for name, value in named.items() if value is not None})
        if asked.sets:
            by, named = tuple(sorted(asked.by)), dict(asked.groupings)
            query, lists = self.crossing(by, keys=keys, where=asked.where, bounds=bounds, groupings=named)
            return CheckedQuestion(query, asked.outputs, asked, lists)
        made = self._query(
            asked.by,
            keys,
            asked.where,
            asked.outputs,
            bounds,
            dict(asked.groupings),
            self._fanned(asked.joins, bounds),
            (asked.derived, asked.source),
        )
        return replace(made, asked=asked)

    def call(
        self,
        aggregate: Aggregates,
        default: str,
        *,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str | None = None,
        bounds: Bounds | None = None,
    ) -> CheckedQuestion:
        """Return the question of a method call; `default` names its answer column where the caller does not."""
        names, groupings = self._groupings(by)
        stem = default if name is None else name
        check_names(stem, ())
        several = aggregate if isinstance(aggregate, Mapping) else {"": aggregate}
        outputs = tuple(NamedAggregate(f"{stem}{ending}", one) for ending, one in several.items())
        return self._query(names, keys, self._predicate(where), outputs, self._bounds(bounds), groupings, ())

    def histogram(
        self,
        value: Any,
        edges: Sequence[float],
        *,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str | None = None,
        bounds: Bounds | None = None,
    ) -> CheckedQuestion:
        """Return the question of a histogram: rows by bins of a value, and by further columns."""
        scalar = self.value(value)
        stem = value if isinstance(value, str) and value.isidentifier() else "bin"
        bins, ends = binned(scalar, stem, edges)
        names, groupings = self._groupings(by)
        if keys is not None and not isinstance(keys, Mapping):
            raise InvalidKeys(
                "the keys of a cross table are not a mapping",
                rule="one list for each further column; the bins are keys already",
                got=type(keys).__name__,
                next_step='keys={"dest": ["ORD", "ATL"]}',
            )
        listed = crossed(ends, self._listed(keys or {}))
        outputs = (NamedAggregate("count" if name is None else name, Count()),)
        every, found = (*names, *bins), groupings | bins
        return self._query(every, listed, self._predicate(where), outputs, self._bounds(bounds), found, ())

    def crossing(
        self,
        columns: tuple[str, ...],
        *,
        keys: Any,
        where: Any = None,
        bounds: Bounds | None = None,
        groupings: Mapping[str, Scalar] | None = None,
    ) -> tuple[Query, tuple[Keys, ...]]:
        """Return a question without outputs over columns, and the listed values of each: no cross product is made.

        None are listed while the keys are `LATER`.
        """
        values = groupings or {}
        made = self._query(columns, PRIVATE, self._predicate(where), (), self._bounds(bounds), values, ())
        if isinstance(keys, _Later):
            return made.query, ()
        given = self._listed(self._with_defaults(columns, keys, values))
        if not isinstance(given, Mapping) or set(given) != set(columns):
            raise _unlisted(columns, given)
        schema = Schema.of(_kinds(columns, dict(made.query.groupings), self.engine.schema))
        lists = tuple(Keys.of((name,), {name: given[name]}, schema) for name in columns)
        return made.query, tuple(one for one in lists if one is not None)

    def scalar(self, value: Any) -> Scalar:
        """Return a value of any type, from a column's name, SQL, ibis or ready made."""
        from farthing.sql import from_ibis, parse_scalar

        schema = self.engine.schema
        if isinstance(value, str):
            return Column(value) if value in schema.names else parse_scalar(value, schema)
        found: Any = value if isinstance(value, Column | Literal | Call | Cast | Case) else from_ibis(value, schema)
        type_of(found, schema)
        checked: Scalar = found
        return checked

    def value(self, value: Any) -> Scalar:
        """Return the number that is to be added, averaged or ranked, from a column's name, SQL or ibis."""
        found = self.scalar(value)
        kind = self.type(found)
        if kind not in NUMBER_TYPES:
            raise UnsupportedQuery(
                "only numbers are added, averaged or ranked",
                construct="value",
                rule="an INTEGER, FLOAT or DECIMAL value",
                got=f"{found} is {kind}",
                next_step=f"name a numeric column, or CAST it; {DECLARE}",
            )
        return found

    def type(self, scalar: Scalar) -> Type:
        """Return the type of a scalar."""
        return type_of(scalar, self.engine.schema)

    def condition(self, value: Any) -> Expression:
        """Return a condition whose rows are counted, from SQL, ibis or ready made."""
        found = self._predicate(value)
        assert found is not None  # noqa: S101  # something was given
        return found

    def range(self, lower: float | None, upper: float | None, bounds: Bounds | None) -> tuple[float, float]:
        """Return the clamps of a value: those named, or those of the bounds."""
        default = self._bounds(bounds)
        low, high = (lower, upper) if (lower, upper) != (None, None) else (default.lower, default.upper)
        if low is None or high is None:
            raise InvalidBounds(
                "lower and upper are missing",
                rule="values are clamped into [lower, upper], so that one unit can only move the answer so far",
                got=f"lower={low!r}, upper={high!r}",
                next_step="pass lower=0, upper=200, numbers that fit the column; Bounds.auto finds some privately",
                missing="" if (low, high) != (None, None) else "clamps",
            )
        Bounds(lower=low, upper=high)  # refuses what is not a range
        return float(low) + 0.0, float(high) + 0.0  # -0.0 is 0.0: one question

    def _fanned(self, joins: tuple[Join, ...], bounds: Bounds) -> tuple[Join, ...]:
        """Return joins with the most rows that one row may become, which one row as unit needs declared."""
        if not joins or not self.unit.is_row:
            return joins
        if bounds.max_rows is None:
            raise InvalidBounds(
                "max_rows missing for a join where one row is the unit",
                rule="a row may meet several rows of the joined table; max_rows says how many at most",
                got=", ".join(join.table for join in joins),
                next_step="bounds=Bounds(max_rows=1) where each row meets one, as with a table of codes and names",
            )
        return tuple(replace(join, fan_out=bounds.max_rows) for join in joins)

    def _bounds(self, bounds: object) -> Bounds:
        """Return the bounds of a question."""
        return named_bounds(self.bounds if bounds is None else bounds)

    def _groupings(self, by: Any) -> tuple[tuple[str, ...], dict[str, Scalar]]:
        """Return the names that are grouped by, and what those are that are not columns."""
        given = (by,) if isinstance(by, str) else by or ()
        if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
            return tuple(given), {name: self.scalar(value) for name, value in given.items()}
        if not isinstance(given, list | tuple) or not all(isinstance(column, str) for column in given):
            raise UnsupportedQuery(
                "by does not name columns",
                construct="GROUP BY",
                rule="by is a column's name, a list of them, or a mapping of new names to expressions",
                got=repr(by)[:80],
                next_step='by="dest", by=["dest", "month"], or by={"decade": "FLOOR(age / 10) * 10"}',
            )
        for column in given:
            self.engine.schema.require(column)
        return tuple(given), {}

    def _predicate(self, where: Any) -> Expression | None:
        """Return a predicate, from SQL, ibis or ready made."""
        schema = self.engine.schema
        if where is None:
            return None
        from farthing.sql import ibis_predicate, is_ibis, parse_predicate

        if isinstance(where, str):
            return parse_predicate(where, schema)
        if is_ibis(where):
            return ibis_predicate(where, schema)
        check_expression(where, schema)
        checked: Expression = where
        return checked

    def _query(  # noqa: PLR0917  # the parts of a SELECT, in their order
        self,
        by: tuple[str, ...],
        keys: Any,
        where: Expression | None,
        outputs: tuple[NamedAggregate, ...],
        bounds: Bounds,
        groupings: Mapping[str, Scalar],
        joins: tuple[Join, ...],
        made_of: tuple[tuple[Derived, ...], str | None] = ((), None),
    ) -> CheckedQuestion:
        """Return the checked question; of the rows of a unit that are made first, and which of them, or the table."""
        derived, source = made_of
        schema = scope(self.engine, joins, unit=self.unit.column, derived=derived, source=source)
        plain = {name: value for name, value in groupings.items() if value != Column(name)}
        kinds = _kinds(by, plain, schema)
        for output in outputs:
            check_names(output.name, by)
        private = isinstance(keys, str) and keys == PRIVATE
        if private and not by:
            raise InvalidKeys(
                "there are no groups to be found",
                rule='keys="private" finds the groups of by= or GROUP BY',
                got="no grouping column",
                next_step="name the columns, or leave keys out",
            )
        listed = None if private else Keys.of(by, self._listed(self._with_defaults(by, keys, plain)), Schema.of(kinds))
        made = Query(
            table=self.engine.name,
            by=by,
            keys=listed,
            where=where,
            outputs=() if private and by else outputs,
            unit=self.unit,
            bounds=bounds,
            part=self.part,
            groupings=tuple(plain.items()),
            joins=joins,
            derived=derived,
            source=source,
        )
        return CheckedQuestion(made, outputs)

    def _with_defaults(self, by: tuple[str, ...], keys: Any, groupings: Mapping[str, Scalar]) -> Any:
        """Return the keys of a question, and the default ones of the grouping columns that it lists none for."""

        def listed(name: str, given: Any) -> Any:
            """Return the list that default keys refer to."""
            return self._values(name, given) if isinstance(given, str) else given

        return with_defaults(keys, by, groupings, self.keys, listed=listed, schema=self.engine.schema)

    def _listed(self, keys: Any) -> Any:
        """Return keys with every "table.column" of a public table read from it, and "enum" from the column's type."""
        if not isinstance(keys, Mapping):
            return keys
        return {name: self._values(name, given) if isinstance(given, str) else given for name, given in keys.items()}

    def _values(self, name: str, given: str) -> Any:
        """Return the keys that a text refers to."""
        table, _, column = given.partition(".")
        if given == "enum" or table in self.engine.public:
            return self.engine.listed(name if given == "enum" else column, None if given == "enum" else table)
        raise InvalidKeys(
            f"keys of {name!r} are not a list",
            got=repr(given),
            rule='a list, "table.column" of a declared public table, or "enum" for the categories of the type',
            next_step='keys="private" finds all groups privately; the public tables are '
            + (", ".join(sorted(self.engine.public)) or "none: Session(public={...})"),
        )


def named_bounds(given: object) -> Bounds:
    """Return bounds that were named; refuse what is none, or would have to be chosen first."""
    if not isinstance(given, Bounds):
        raise _no_bounds(given)
    return given


def _no_bounds(given: object) -> InvalidBounds:
    """Return the error of a question whose bounds are none, or would have to be chosen first."""
    if isinstance(given, AutoBounds):
        return InvalidBounds(
            "bounds are not chosen for this kind of question",
            rule="Bounds.auto is for one question of aggregates; releases and online queries name theirs",
            got="Bounds.auto()",
            next_step="pass bounds=Bounds(max_groups=5, max_rows=20), with numbers that fit the data; "
            "session.bounds_report(...) tells what they cut",
        )
    return InvalidBounds(
        "bounds is not a farthing.Bounds",
        rule="bounds=farthing.Bounds(max_groups=, max_rows=)",
        got="Bounds.auto, which is a function" if given is Bounds.auto else type(given).__name__,
        next_step="pass bounds=Bounds(max_groups=5, max_rows=20)",
    )


def _unlisted(columns: tuple[str, ...], given: Any) -> InvalidKeys:
    """Return the error of a release whose columns are not all listed, or others are."""
    if given == PRIVATE:
        return InvalidKeys(
            "many tables at once do not find their groups",
            rule="the values of each column are listed: they are public",
            got='keys="private"',
            next_step='session.count(by="zone", keys="private") finds those of a column, at a price; then list them',
        )
    named = sorted(map(str, given)) if isinstance(given, Mapping) else []
    left = [column for column in columns if column not in named]
    return InvalidKeys(
        "a release needs the listed values of each of its columns",
        rule="keys is a mapping with one list for each column of the workload, and no others",
        got=f"keys for {', '.join(named) or 'none'}" + (f"; not for {', '.join(left)}" if named and left else ""),
        next_step=("list more: " if named and left else "")
        + "keys={"
        + ", ".join(f"{column!r}: [...]" for column in left or columns)
        + "}",
        missing="keys" if (given is None or isinstance(given, Mapping)) and set(named) < set(columns) else "",
    )


def kinds_of(engine: Door, query: Query) -> dict[str, Type]:
    """Return the types of a question's grouping columns."""
    found = scope(engine, query.joins, unit=query.unit.column, derived=query.derived, source=query.source)
    return _kinds(query.by, dict(query.groupings), found)


def _kinds(by: tuple[str, ...], groupings: Mapping[str, Scalar], schema: Schema) -> dict[str, Type]:
    """Return the types of grouping columns."""
    return {name: type_of(groupings.get(name, Column(name)), schema) for name in by}
