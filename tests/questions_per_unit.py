"""The generator of questions of rows that are made of one unit's rows each: nested, joined, and grouped."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from questions import COST, PUBLIC, SCHEMA, VALUES, VISITS, WHOLE, Asked, F

from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum
from farthing.query.expressions import Call, Column, Compare, FunctionName, IsNull, Literal, Not, Operator
from farthing.query.joins import Join
from farthing.query.per_row import (
    AGGREGATES,
    ONE_ROW,
    PLACES,
    SortKey,
    Stacked,
    StackedPart,
    Window,
    Windowed,
    WindowFrame,
    WindowKind,
)
from farthing.query.per_unit import Derived, Feature, FeatureKind, PerUnit, columns_of_source, scoped

TABLES = {name: Schema.of(kinds) for name, (kinds, _) in PUBLIC.items()} | {"visits": Schema.of(VISITS)}
ROOT = Call(FunctionName.SQRT, (Call(FunctionName.ABS, (F,)),))
TENTH = Call(FunctionName.MULTIPLY, (F, Literal(0.1)))
FEATURES = (
    *(Feature(FeatureKind.COUNT), Feature(FeatureKind.COUNT, F), Feature(FeatureKind.COUNT, Column("s"))),
    *(Feature(FeatureKind.DISTINCT, Column(name)) for name in "sfibdt"),
    *(Feature(FeatureKind.SUM, one) for one in (F, WHOLE, ROOT, TENTH)),
    *(Feature(FeatureKind.MEAN, one) for one in (F, WHOLE)),
    *(Feature(kind, Column(name)) for kind in (FeatureKind.MIN, FeatureKind.MAX) for name in "sfidtz"),
    *(Feature(FeatureKind.LAST, Column(one), Column(key)) for one, key in ("st", "fi", "if", "df", "ss")),
    *(Feature(FeatureKind.FIRST, Column(one), Column(key)) for one, key in ("fd", "is", "tf")),
)
VISITED = (
    Feature(FeatureKind.COUNT),
    *(
        Feature(kind, Column("cost"))
        for kind in (FeatureKind.SUM, FeatureKind.MEAN, FeatureKind.MAX, FeatureKind.COUNT)
    ),
)
WHERE = (
    None,
    None,
    Compare(WHOLE, Operator.GE, Literal(0)),
    Compare(ROOT, Operator.LE, Literal(2.0)),
    Not(IsNull(Column("s"))),
)
LISTED = {
    Type.INTEGER: [0, 1, 2, 3, 7, -1, None],
    Type.FLOAT: [0.0, 1.5, -2.5, 99.0, 2.0, None],
    Type.STRING: ["", "a", "A", "é", "%", None],
    Type.DATE: [dt.date(1, 1, 1), dt.date(2013, 1, 31), dt.date(9999, 12, 31), None],
    Type.TIMESTAMP: [*VALUES["t"], None],
    Type.BOOLEAN: [True, False, None],
}


FRAMES = (
    None,
    None,
    WindowFrame(None, 0),
    WindowFrame(-1, 0),
    WindowFrame(-2, -1),
    WindowFrame(0, None),
    WindowFrame(1, 2),
    WindowFrame(None, None),
)
SUMMED = (F, WHOLE, ROOT, TENTH)


@st.composite
def asked_per_unit(draw: Any, ask: str, palette: dict[str, list[Any]]) -> Asked:
    """Return one question of derived rows."""
    return draw(_asked(ask, palette, _derived))


@st.composite
def asked_per_row(draw: Any, ask: str, palette: dict[str, list[Any]]) -> Asked:
    """Return one question of rows beside windows by the unit, and of the rows of several tables."""
    return draw(_asked(ask, palette, _kept))


@st.composite
def _asked(draw: Any, ask: str, palette: dict[str, list[Any]], rows: Any) -> Asked:  # noqa: ARG001  # keys are few
    """Return one question of derived rows."""
    unit = draw(st.sampled_from("uuv"))
    derived, source, joins = draw(rows(unit))
    schemas = scoped(SCHEMA, TABLES, unit, derived)
    scope = columns_of_source(schemas, source, joins)
    plain = [(name, kind) for name, kind in scope.columns if name != unit and not name.startswith("visits")]
    by = tuple(draw(st.lists(st.sampled_from(plain), min_size=int(ask == "found"), max_size=1)))
    names = tuple("g" for _ in by)
    groupings = tuple(("g", Column(name)) for name, _ in by)
    kinds = dict(zip(names, (kind for _, kind in by), strict=True))
    lists = {name: draw(st.permutations(LISTED[kind]))[1:] for name, kind in kinds.items()}
    keys = None if ask == "found" else Keys.of(names, lists or None, Schema.of(kinds))
    numbers = [Column(name) for name, kind in scope.columns if kind in (Type.INTEGER, Type.FLOAT) and name != unit]
    some = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3, unique=True)) if numbers else []
    outputs = _outputs(ask, some, scope)
    if ask == "histogram" and not numbers:
        outputs = (NamedAggregate("q", Quantile(Literal(1), 0.5, 0.0, 2.0, 2)),)
    where = draw(
        st.sampled_from([None, *(Compare(one, Operator.GT, Literal(0)) for one in numbers), *_firsts(derived)])
    )
    bounds = Bounds(draw(st.sampled_from([1, 2, 3])), draw(st.integers(1, 3)))
    query = Query(
        *("data", names, keys, where, outputs, PrivacyUnit(unit), bounds),
        groupings=groupings,
        joins=joins,
        derived=derived,
        source=source,
    )
    value = draw(st.sampled_from([None, *numbers])) if ask == "spread" else None
    return Asked(ask, (query,), value, draw(st.sampled_from([0, 7, 2**64 - 1])))


def _quantile(number: Any, scope: Schema) -> Quantile:
    """Return a quantile of a column, of which whole numbers have a leaf each."""
    quantile = Quantile.of(number, scope.require(number.name), 0.5, -5.0, 20.0)
    return quantile if quantile.whole else replace(quantile, leaves_log2=4)


def _outputs(ask: str, numbers: list[Any], scope: Schema) -> tuple[NamedAggregate, ...]:
    """Return what is asked of each group."""
    match ask:
        case "measure":
            each = [one for x in numbers for one in (Count(x), Sum(x, -3.0, 10.0), Mean(x, 0.0, 4.0))]
            return tuple(NamedAggregate(f"o{place}", one) for place, one in enumerate((Count(), CountUnits(), *each)))
        case "histogram" if numbers:
            return (NamedAggregate("q", _quantile(numbers[0], scope)),)
        case "spread":
            return counting("n")
    return ()


def _firsts(derived: tuple[Derived, ...]) -> list[Any]:
    """Return conditions by which a unit has one row: that a window numbers 1."""
    own = derived[-1]
    return [
        Compare(Column(name), Operator.EQ, Literal(1))
        for name, one in (own.windows if isinstance(own, Windowed) else ())
        if one.kind is WindowKind.ROW_NUMBER
    ]


@st.composite
def window(draw: Any) -> Window:
    """Return a window over the rows of the protected table."""
    kind = draw(st.sampled_from([*WindowKind, WindowKind.ROW_NUMBER, WindowKind.LAG, WindowKind.SUM]))
    by = tuple(Column(name) for name in draw(st.lists(st.sampled_from("sfb"), max_size=1)))
    needs = kind in PLACES or kind in ONE_ROW
    keys = draw(st.lists(st.sampled_from("fidtsbz"), min_size=int(needs), max_size=2, unique=True))
    order = tuple(SortKey(Column(name), draw(st.booleans()), draw(st.booleans())) for name in keys)
    value = draw(st.sampled_from([*SUMMED, None] if kind is WindowKind.COUNT else SUMMED))
    if kind in ONE_ROW | {WindowKind.MIN, WindowKind.MAX}:
        value = Column(draw(st.sampled_from("sfidt")))
    frame = draw(st.sampled_from(FRAMES)) if order and kind in AGGREGATES else None
    if kind in (WindowKind.FIRST_VALUE, WindowKind.LAST_VALUE):
        frame = draw(st.sampled_from(FRAMES[2:]))
    return Window(kind, None if kind in PLACES else value, by, order, frame, draw(st.sampled_from([1, 1, 2, 0])))


@st.composite
def _windowed(draw: Any, unit: str, name: str = "w") -> Windowed:
    """Return rows of the protected table, perhaps beside another, with windows by the unit."""
    columns = draw(st.lists(st.sampled_from("sifdtb"), max_size=3, unique=True))
    windows = draw(st.lists(window(), min_size=1, max_size=3))
    joins = (_met(unit, "visits", left=True),) if draw(st.integers(0, 3)) == 0 else ()
    kept = tuple((f"c{place}", Column(column)) for place, column in enumerate(columns))
    told = tuple((f"w{place}", one) for place, one in enumerate(windows))
    return Windowed(name, None, joins, draw(st.sampled_from(WHERE)), kept, told)


@st.composite
def _stacked(draw: Any, unit: str) -> tuple[tuple[Derived, ...], str, tuple[Join, ...]]:
    """Return the rows of several tables, and of what is made of them, one below the other."""
    made = draw(_made(("a", None), [], st.just(Feature(FeatureKind.MEAN, F)), unit))
    branches = [
        StackedPart(None, (), draw(st.sampled_from(WHERE)), (F, Column("s"))),
        StackedPart("visits", (), None, (Column("cost"), Column("u") if unit == "u" else Literal("a"))),
        StackedPart("a", (), None, (Column("f0"), Literal("b"))),
        StackedPart(None, (_met(unit, "visits", left=True),), None, (COST, Column("s"))),
        StackedPart(None, (), None, (ROOT, Literal(""))),
    ]
    some = draw(st.lists(st.sampled_from(branches), min_size=2, max_size=3))
    return (made, Stacked("n", ("c0", "c1"), tuple(some))), "n", ()


@st.composite
def _kept(draw: Any, unit: str) -> tuple[tuple[Derived, ...], str | None, tuple[Join, ...]]:
    """Return rows beside windows or from several tables, alone, joined, or with features made of them."""
    shape = draw(st.sampled_from(["windows", "windows", "union", "union", "joined", "features", "above"]))
    if shape == "union":
        return draw(_stacked(unit))
    made = draw(_windowed(unit))
    if shape == "windows":
        return (made,), "w", ()
    if shape == "joined":
        other = draw(_made(("b", None), [], st.sampled_from(FEATURES), unit))
        return (made, other), "w", (_met(unit, "b", left=draw(st.booleans())),)
    schema = scoped(SCHEMA, TABLES, unit, (made,))["w"]
    numbers = [Column(name) for name, kind in schema.columns if kind in (Type.INTEGER, Type.FLOAT) and name != unit]
    if shape == "above" or not numbers:
        below = draw(_stacked(unit))[0]
        order = (SortKey(Column("c1")), SortKey(Column("c0"), descending=True))
        kinds = draw(st.sampled_from([WindowKind.ROW_NUMBER, WindowKind.LAG, WindowKind.SUM]))
        over = Window(kinds, None if kinds in PLACES else Column("c0"), (), order, None)
        return (*below, Windowed("w", "n", (), None, (("c0", Column("c0")),), (("w0", over),))), "w", ()
    features = tuple((f"f{place}", Feature(FeatureKind.SUM, one)) for place, one in enumerate(numbers[:3]))
    return (made, PerUnit("b", "w", (), None, (), features)), "b", ()


@st.composite
def _derived(draw: Any, unit: str) -> tuple[tuple[PerUnit, ...], str | None, tuple[Join, ...]]:
    """Return derived rows, which of them are asked, and what they are joined with."""
    columns = st.lists(st.sampled_from("sifdtb"), max_size=2, unique=True)
    made = draw(_made(("a", None), [Column(name) for name in draw(columns)], st.sampled_from(FEATURES), unit))
    shape = draw(st.sampled_from(["one", "one", "nested", "joined", "beside", "other"]))
    if shape == "other":
        other = draw(_made(("b", "visits"), [], st.sampled_from(VISITED), unit))
        return (made, other), draw(st.sampled_from(["a", "b"])), ()
    if shape == "one":
        return (made,), "a", ()
    if shape == "beside":
        return (made,), None, (_met(unit, "a", left=draw(st.booleans())),)
    if shape == "joined":
        other = draw(_made(("b", None), [], st.sampled_from(FEATURES), unit))
        return (made, other), "a", (_met(unit, "b", left=draw(st.booleans())),)
    schema = scoped(SCHEMA, TABLES, unit, (made,))["a"]
    inner = [Column(name) for name, kind in schema.columns if name != unit and kind is not Type.BOOLEAN]
    above = [Feature(FeatureKind.COUNT)]
    kinds = (FeatureKind.MAX, FeatureKind.DISTINCT, FeatureKind.COUNT)
    above += [Feature(kind, one) for one in inner for kind in kinds]
    above += [Feature(FeatureKind.SUM, one) for one in inner if schema.require(one.name) in (Type.INTEGER, Type.FLOAT)]
    by = draw(st.lists(st.sampled_from(inner), max_size=1)) if inner else []
    return (made, draw(_made(("b", "a"), by, st.sampled_from(above), unit))), "b", ()


@st.composite
def _made(draw: Any, named: tuple[str, str | None], by: list[Any], one: Any, unit: str) -> PerUnit:
    """Return rows of each unit, by some columns."""
    name, source = named
    nested = source is not None
    features = draw(st.lists(one, min_size=1, max_size=4))
    joins = (_met(unit, "visits", left=True),) if not nested and draw(st.integers(0, 3)) == 0 else ()
    where = None if nested else draw(st.sampled_from(WHERE))
    keys = tuple((f"k{place}", scalar) for place, scalar in enumerate(by))
    return PerUnit(name, source, joins, where, keys, tuple((f"f{place}", each) for place, each in enumerate(features)))


def _met(unit: str, table: str, *, left: bool) -> Join:
    """Return a join on the unit."""
    return Join(table, Compare(Column(unit), Operator.EQ, Column(f"{table}.{unit}")), left=left, public=False)
