"""Rows that are made of one unit's rows each, as DuckDB SQL: named relations in front of a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines.bounded import gathering
from farthing.engines.duck.cells import INFINITY, present
from farthing.engines.duck.functions import Text
from farthing.engines.duck.rows import DuckCatalog, DuckRelation, DuckRows
from farthing.engines.duck.rows import check as check_joins
from farthing.engines.duck.terms import double, quoted
from farthing.query.per_unit import COARSEST, FINEST, FURTHEST, FeatureKind
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.duck.measures import SelectText
    from farthing.query.expressions import Scalar
    from farthing.query.per_unit import Feature, PerUnit

MADE: Final = "farthing_made"

_NATIVE: Final = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.DECIMAL: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class DuckMade:
    """A question's derived rows.

    Attributes:
        catalog: the tables that the question itself sees, derived ones among them.
        named: the names and the SQL of derived ones, in order.
        columns: the columns that these read of each view.
    """

    catalog: DuckCatalog
    named: tuple[tuple[str, str], ...]
    columns: dict[str, set[str]]

    def around(self, question: SelectText) -> SelectText:
        """Return a question with its derived rows in front of it."""
        if not self.named:
            return question
        derived = ", ".join(f"{name} AS ({sql})" for name, sql in self.named)
        columns = _merged(self.columns, question.columns, {name for name, _ in self.named})
        return replace(question, sql=f"WITH {derived} {question.sql}", columns=columns)


def made(query: BoundedQuery, catalog: DuckCatalog) -> DuckMade:
    """Return the derived rows of a question."""
    named: list[tuple[str, str]] = []
    columns: dict[str, set[str]] = {}
    joined = dict(catalog.joined)
    known: dict[str | None, DuckRelation] = {name: table for name, table in joined.items() if not table.public}
    known[None] = catalog.own
    for place, each in enumerate(query.derived):
        view = f"{MADE}_{place}"
        here = DuckCatalog(known[each.source], joined)
        sql, relation, read = _gathered(each, gathering(each, query), here, view)
        named.append((view, sql))
        columns = _merged(columns, read, {name for name, _ in named})
        known[each.name] = joined[each.name] = relation
    return DuckMade(DuckCatalog(known[query.source], joined), tuple(named), columns)


def check(query: BoundedQuery, catalog: DuckCatalog) -> None:
    """Refuse joins that the engine cannot run, of a question and of its derived rows; see `engines.joining`."""
    found = made(query, catalog)
    for each in query.derived:
        own = catalog.own if each.source is None else found.catalog.joined[each.source]
        check_joins(gathering(each, query), DuckCatalog(own, found.catalog.joined))
    check_joins(query, found.catalog)


def _gathered(
    each: PerUnit, query: BoundedQuery, catalog: DuckCatalog, view: str
) -> tuple[str, DuckRelation, dict[str, set[str]]]:
    """Return the SQL of derived rows, the relation that they are, and the columns that are read."""
    rows, unit = DuckRows(query, catalog), query.unit.column or ""
    keys = [rows.show(rows.scalars.group(scalar), "k") for _, scalar in each.by]
    kinds = [rows.scalars.scalar(scalar) for _, scalar in each.by]
    features = DuckFeatures(rows, [*keys])
    aggregates = [features.sql(one) for _, one in each.features]
    told = {unit: catalog.own.native[unit]}
    shown = [f"t.u AS {quoted(unit)}"]
    schema = [(unit, catalog.own.schema.require(unit))]
    for (name, _), key, text in zip(each.by, keys, kinds, strict=True):
        told[name] = "UBIGINT" if text.wide else _NATIVE[text.type]
        shown.append(f"t.{key} AS {quoted(name)}")
        schema.append((name, Type.FLOAT if text.real else text.type))
    for (name, _), (sql, kind) in zip(each.features, aggregates, strict=True):
        told[name] = _NATIVE[kind]
        shown.append(f"{sql} AS {quoted(name)}")
        schema.append((name, kind))
    grouped = ", ".join(["t.u", *(f"t.{key}" for key in keys)])
    sql = f"SELECT {', '.join(shown)} FROM {features.over(rows.sql())} AS t GROUP BY {grouped}"
    return sql, DuckRelation(view, told, Schema(tuple(schema))), rows.columns


class DuckFeatures:
    """The features of one SELECT: aggregates over shown columns, of which some are chosen by a window before.

    Guarantee: each is a function of the rows of its group, whatever their order.
    Proof: docs/proofs/query.per_unit.md.
    Assumes: fewer than 2^31 rows of one unit.
    Rounds: reals that are added, each to 2^-32.
    """

    def __init__(self, rows: DuckRows, keys: list[str]) -> None:
        self._rows = rows
        self._parted = ", ".join(["t.u", *(f"t.{key}" for key in keys)])
        self._best: dict[str, str] = {}

    def over(self, relation: str) -> str:
        """Return the rows with what windows tell of them."""
        told = "".join(f", {sql} AS {name}" for sql, name in self._best.items())
        return f"(SELECT t.*{told} FROM ({relation}) AS t)" if told else f"({relation})"

    def sql(self, one: Feature) -> tuple[str, Type]:  # noqa: PLR0911  # one return a case
        """Return a feature, and its type."""
        if one.value is None:
            return "count(*)", Type.INTEGER
        value = self._value(one.value)
        name = self._rows.show(value, "v")
        kind = Type.FLOAT if value.real else value.type
        match one.kind:
            case FeatureKind.COUNT:
                return f"count(t.{self._rows.show(present(self._rows, one.value), 'v')})", Type.INTEGER
            case FeatureKind.DISTINCT:
                return f"count(DISTINCT t.{name})", Type.INTEGER
            case FeatureKind.SUM:
                if value.real:
                    return self._added(value), Type.FLOAT
                return f"TRY_CAST(sum(t.{name}) AS BIGINT)", Type.INTEGER
            case FeatureKind.MEAN:
                count = f"count(t.{name})"
                return f"CASE WHEN {count} > 0 THEN {self._added(value)} / {count}::DOUBLE END", Type.FLOAT
            case FeatureKind.MIN | FeatureKind.MAX:
                return f"{one.kind.value}(t.{name})", kind
            case FeatureKind.FIRST | FeatureKind.LAST:
                return self._chosen(one, name), kind
            case _:
                assert_never(one.kind)

    def _value(self, scalar: Scalar) -> Text:
        """Return a value that is NULL where it is NaN or beyond 64 bits, with one zero."""
        value = self._rows.scalars.group(scalar).narrow
        if not value.real:
            return value
        x = self._rows.scalars.bind(value)
        return Text(f"CASE WHEN {x.sql} <= {INFINITY} THEN {x.sql} END", Type.FLOAT, x.level)

    def _added(self, value: Text) -> str:
        """Return a sum of reals: of three whole numbers each, that add up in any order to the same."""
        bind, show = self._rows.scalars.bind, self._rows.show
        x = bind(Text(value.double, Type.FLOAT, value.level))
        inside = f"least(greatest({x.sql}, {double(-FURTHEST)}), {double(FURTHEST)})"
        x = bind(Text(f"CASE WHEN {x.sql} IS NOT NULL THEN {inside} END", Type.FLOAT, x.level))
        above = f"floor({x.sql} * {double(2.0**-COARSEST)})"
        rest = bind(Text(f"({x.sql} - {above} * {double(2.0**COARSEST)})", Type.FLOAT, x.level))
        below = f"floor(({rest.sql} - floor({rest.sql})) * {double(2.0**FINEST)} + {double(0.5)})"
        texts = (
            Text(above, Type.FLOAT, x.level),
            *(Text(sql, Type.FLOAT, rest.level) for sql in (f"floor({rest.sql})", below)),
        )
        parts = [f"CAST(sum(CAST(t.{show(text, 'p')} AS BIGINT)) AS DOUBLE)" for text in texts]
        return f"({parts[0]} * {double(2.0**COARSEST)} + {parts[1]} + {parts[2]} * {double(2.0**-FINEST)})"

    def _chosen(self, one: Feature, name: str) -> str:
        """Return the least value of the rows with the least or greatest key, among those that have both."""
        assert one.key is not None, "it has a key"  # noqa: S101
        key = self._rows.show(self._value(one.key), "v")
        word = "min" if one.kind is FeatureKind.FIRST else "max"
        there = f"CASE WHEN t.{name} IS NOT NULL THEN t.{key} END"
        best = self._best.setdefault(f"{word}({there}) OVER (PARTITION BY {self._parted})", f"b{len(self._best)}")
        return f"min(CASE WHEN t.{key} = t.{best} THEN t.{name} END)"


def _merged(one: dict[str, set[str]], other: dict[str, set[str]], made: set[str]) -> dict[str, set[str]]:
    """Return the columns that two texts read of tables, without those of derived rows."""
    views = {*one, *other} - made
    return {view: one.get(view, set()) | other.get(view, set()) for view in views}
