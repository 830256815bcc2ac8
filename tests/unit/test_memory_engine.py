"""The slow engine: measures, histograms, found keys, spreads and joins of a few rows, by hand."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.engines.contributions import bucket, contribution, leaf
from farthing.engines.engine import BUCKETS
from farthing.engines.memory.engine import Beside, MemoryEngine
from farthing.errors import InvalidKeys, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum, Variance
from farthing.query.expressions import And, Call, Column, Compare, FunctionName, Literal, Operator
from farthing.query.joins import Join
from farthing.query.measures import Rows, Total, Units
from farthing.query.part import QueryPart
from farthing.query.ranges import FINE_BITS, rounded

SCHEMA = Schema.of({"u": Type.STRING, "g": Type.STRING, "x": Type.FLOAT, "n": Type.INTEGER, "d": Type.DATE})
G = ("a", "b", "c")


def rows(*values):
    """Return rows of (u, g, x), n and d told by them."""
    return [
        {"u": u, "g": g, "x": x, "n": place, "d": dt.date(2013, place % 12 + 1, 1)}
        for place, (u, g, x) in enumerate(values)
    ]


def asked(*aggregates, by=("g",), unit="u", groups=9, most=2, where=None, **rest):
    """Return a question; keys are a, b, c."""
    keys = Keys.of(by, {"g": list(G)} if by else None, SCHEMA) if aggregates else None
    outputs = tuple(NamedAggregate(f"o{place}", aggregate) for place, aggregate in enumerate(aggregates))
    bounds = Bounds(groups, most)
    return Query("data", by, keys, where, outputs, PrivacyUnit(unit), bounds, **rest)


def measured(data, *aggregates, engine=MemoryEngine, **options):
    """Return the measures of a question."""
    return engine(data, SCHEMA).measure(asked(*aggregates, **options), 7).tolist()


X = Column("x")
DATA = rows(
    ("ann", "a", 1.0), ("ann", "a", 3.0), ("ann", "a", 8.0), ("ann", "b", None), ("bob", "a", -50.0),
    ("bob", "b", math.nan), ("bob", "b", math.inf), ("cy", "z", 1.0), (None, "a", 1.0), ("dee", None, 1.0),
)  # fmt: skip


def test_counts_are_cut_to_rows():
    """Of three rows of one unit two count; NULL and NaN are no values; unlisted groups and NULL units do not count."""
    assert [[3, 3, 0], [3, 1, 0], [2, 2, 0]] == measured(DATA, Count(), Count(X), CountUnits())
    assert [[4, 3, 0]] == measured(DATA, Count(), most=9)
    assert [[5, 3, 0]] == measured(DATA, Count(), unit=None)


def test_totals_are_clamped_scaled_and_exact():
    """Ann's 1 + 3 + 8 counts as two thirds of 12, bob's -50 as 0, infinity as the upper bound."""
    step = Total(X, 0, 10).step

    assert [[int(8 / step), int(10 / step), 0]] == measured(DATA, Sum(X, 0, 10))
    assert [[int(8 / step) + int(-10 / step), int(10 / step), 0]] == measured(DATA, Sum(X, -10, 10))


def test_means_and_variances_are_centred():
    """Sums of first and second powers about the middle: -4, -2, 3 of ann and -5 of bob, with bounds of 0 and 10."""
    count, first, second = measured(DATA, Variance(X, 0, 10), most=3)
    one, two = Variance(X, 0, 10).measures[1:]

    assert ([4, 1, 0], 5.0) == (count, one.centre)
    assert [-8 / one.step, 5 / one.step, 0] == first
    assert [(54 - 4 * 12.5) / two.step, (25 - 12.5) / two.step, 0] == second
    assert [count, first] == measured(DATA, Mean(X, 0, 10), most=3)


@given(
    values=st.lists(st.none() | st.floats() | st.integers(-(2**63), 2**63 - 1), max_size=8),
    lower=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    power=st.sampled_from([1, 2]),
    max_rows=st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_no_unit_adds_more_than_the_sensitivity(values, lower, width, power, max_rows):
    """Whatever the values, a unit's whole number is within its sensitivity, and within a step a value of the truth."""
    centred = Mean(X, lower, lower + width).measures[1]
    for total in (Total(X, lower, lower + width), Total(X, lower, lower + width, centred.centre, power)):
        found = contribution(total, values, max_rows)
        numbers = [float(value) for value in values if value is not None and not math.isnan(value)]
        clamped = [min(max(value, lower), lower + width) - total.centre for value in numbers]
        truth = sum((Fraction(value) ** total.power for value in clamped), Fraction(0))
        share = min(Fraction(1), Fraction(max_rows, max(len(numbers), 1)))
        assert abs(found) <= total.finest(max_rows) <= total.sensitivity(max_rows) << FINE_BITS
        assert abs(found - truth * share / Fraction(total.step) * 2**FINE_BITS) <= len(numbers) + 1
    assert contribution(Rows(X), values, max_rows) <= Rows(X).sensitivity(max_rows)
    assert contribution(Units(X), values, max_rows) <= 1


def test_scaled_sums_round_down():
    """Two thirds of 4 fine steps are 2, of -4 steps -3; with as many rows as may count nothing is scaled."""
    total = Total(X, -1, 1)
    fine = total.step / 2**FINE_BITS
    values = [fine, fine, 2 * fine]

    assert 2 == contribution(total, values, 2)
    assert -3 == contribution(total, [-value for value in values], 2)
    assert 4 == contribution(total, values, 3)


@given(one=st.integers(-(2**90), 2**90), apart=st.integers(0, 2**40), steps=st.integers(0, 2**50))
def test_rounding_a_total_keeps_whole_distances(one, apart, steps):
    """Totals at most D steps apart, D whole, are at most D apart when rounded: the sensitivity is untouched."""
    far = one + min(apart, steps << FINE_BITS)

    assert abs(rounded(far) - rounded(one)) <= steps


def test_a_keyed_hash_chooses_groups():
    """With one group a unit, each unit is in exactly one of its groups; another key chooses others."""
    data = rows(*[(f"u{unit}", group, 1.0) for unit in range(60) for group in G])
    engine = MemoryEngine(data, SCHEMA)
    answers = [engine.measure(asked(CountUnits(), Count(), groups=1), key) for key in (1, 2)]

    assert [60, 60] == [int(answer[0].sum()) for answer in answers]
    assert answers[0].tolist() != answers[1].tolist()
    assert all((answer[0] == answer[1]).all() for answer in answers)
    assert (answers[0][0] > 8).all()


def test_groups_may_be_expressions():
    """A grouping column may be computed; NULL matches a listed NULL."""
    initial = Call(FunctionName.SUBSTRING, (Column("u"), Literal(1), Literal(1)))
    schema = Schema.of({"g": Type.STRING})
    keys = Keys.of(("g",), {"g": ["a", "c", None]}, schema)
    query = Query(
        "data",
        ("g",),
        keys,
        None,
        (NamedAggregate("n", Count()),),
        PrivacyUnit(),
        Bounds(),
        groupings=(("g", initial),),
    )

    assert [[4, 1, 1]] == MemoryEngine(DATA, SCHEMA).measure(query, 0).tolist()


def test_parts_do_not_depend_on_what_is_asked():
    """A unit counts in one part, whatever else is asked: conditions, joins and groups leave its home as it is."""
    data = rows(*[(f"u{unit}", group, float(unit)) for unit in range(40) for group in G])
    choices = tuple(map(Literal, G))
    beside = {"t": Beside([{"g": "a"}], Schema.of({"g": Type.STRING}))}
    join = Join("t", Compare(Column("g"), Operator.EQ, Column("t.g")))
    engine = MemoryEngine(data, SCHEMA, beside=beside)
    found = [
        engine.measure(asked(Count(), by=(), part=QueryPart("g", choices, place), **rest), 3)[0, 0]
        for place in range(3)
        for rest in ({}, {"joins": (join,)}, {"where": Compare(X, Operator.GE, Literal(0))})
    ]

    assert 40 == sum(found[::3]) == sum(found[2::3])
    assert [found[0], 0, 0] == found[1::3]


def test_histograms_keep_max_rows_of_a_unit():
    """Of a unit's rows in one group max_rows count, chosen by hash; NULL and NaN rows do not."""
    quantile = Quantile(X, 0.5, 0, 8, leaves_log2=3)
    every = MemoryEngine(DATA, SCHEMA).histogram(asked(quantile, most=9), quantile, 0)
    data = rows(*[("ann", "a", float(value % 5)) for value in range(20)], ("bob", "b", 2.5))
    some = [MemoryEngine(data, SCHEMA).histogram(asked(quantile, most=3), quantile, key) for key in range(20)]

    assert [(0, 0, 1), (0, 1, 1), (0, 3, 1), (0, 7, 1), (1, 7, 1)] == list(
        zip(every.groups.tolist(), every.leaves.tolist(), every.counts.tolist(), strict=True)
    )
    assert {(3, 1)} == {(int(h.counts[h.groups == 0].sum()), int(h.counts[h.groups == 1].sum())) for h in some}
    assert len({tuple(h.leaves.tolist()) for h in some}) > 3
    empty = MemoryEngine([], SCHEMA).histogram(asked(quantile), quantile, 0)
    assert (0, np.int64) == (len(empty.counts), empty.groups.dtype)


def test_leaves_are_half_open_and_the_last_is_closed():
    """A value on an edge is in the step above it, but for the upper bound."""
    quantile = Quantile(X, 0.5, -1, 1, leaves_log2=2)

    assert [0, 0, 1, 2, 3, 3, 3] == [leaf(quantile, x) for x in (-math.inf, -1.0, -0.5, 0.0, 0.5, 1.0, math.inf)]


def test_each_whole_number_is_a_leaf():
    """From the lower bound to the upper one, where the type says that all values are whole numbers."""
    quantile = Quantile.of(X, Type.INTEGER, 0.5, -1.0, 3.0)

    assert [0, 0, 1, 2, 3, 4, 4, 4] == [leaf(quantile, x) for x in (-(2**63), -1, 0, 1, 2, 3, 4, 2**63)]
    assert (5, 3, 8.0) == (quantile.leaves, quantile.leaves_log2, quantile.width)


@pytest.mark.parametrize(
    ("kind", "lower", "upper", "leaves"),
    [
        (Type.INTEGER, 0.0, 1.0, 2),
        (Type.INTEGER, -40_000.0, 25_535.0, 1 << 16),
        (Type.INTEGER, -40_000.0, 25_536.0, None),  # one number too many
        (Type.INTEGER, 0.5, 9.5, None),
        (Type.INTEGER, 2.0**52, 2.0**52 + 8, None),
        (Type.FLOAT, 0.0, 9.0, None),
        (Type.DECIMAL, 0.0, 9.0, None),
    ],
)
def test_what_is_told_apart_number_by_number(kind, lower, upper, leaves):
    """Whole numbers between whole bounds, at most 2^16 of them, all of them exact as doubles."""
    quantile = Quantile.of(X, kind, 0.5, lower, upper)

    assert (leaves is not None, leaves or 1 << 16) == (quantile.whole, quantile.leaves)
    assert quantile.leaves <= 1 << quantile.leaves_log2 < 2 * quantile.leaves


def test_found_keys_are_those_of_counted_rows():
    """Groups that exist, with the units that keep them; NULL is a key, NaN is none; bounds on groups hold."""
    engine = MemoryEngine(DATA, SCHEMA)
    every = engine.found(asked(), 0)
    one = engine.found(asked(groups=1), 0)
    typed = engine.found(asked(by=("x", "d")), 0)

    assert (["a", "b", "z", None], [2, 2, 1, 1]) == (every.keys.column("g").to_pylist(), every.units.tolist())
    assert 4 == one.units.sum()
    assert ["large_string", "double", "date32[day]"] == [
        str(kind) for kind in (every.keys.schema.field("g").type, *(field.type for field in typed.keys.schema))
    ]
    assert not any(x is not None and math.isnan(x) for x in typed.keys.column("x").to_pylist())
    assert 0 == MemoryEngine([], SCHEMA).found(asked(), 0).keys.num_rows


def test_a_text_that_says_nan_is_a_key():
    """Only the number is no key."""
    found = MemoryEngine(rows(("ann", "NaN", 1.0)), SCHEMA).found(asked(), 0)

    assert ["NaN"] == found.keys.column("g").to_pylist()


def test_spread_counts_each_unit_once():
    """Ann has two groups, at most three rows in one, values from 1 to 8; of a value only rows that have it count."""
    spread = MemoryEngine(DATA, SCHEMA).spread(asked(Count()), X, 0)

    assert {1: 2} == {place: count for place, count in enumerate(spread.groups.tolist()) if count}
    assert {0: 1, 1: 1} == {place: count for place, count in enumerate(spread.rows.tolist()) if count}
    assert {bucket(1.0), bucket(-50.0)} == set(np.flatnonzero(spread.least).tolist())
    assert {bucket(8.0), BUCKETS - 1} == set(np.flatnonzero(spread.greatest).tolist())
    every = MemoryEngine(DATA, SCHEMA).spread(asked(Count()), None, 0)
    assert {1: 2} == {place: count for place, count in enumerate(every.rows.tolist()) if count}
    assert 0 == every.least.sum()


def test_buckets_are_powers_of_two():
    """Each place but the last and the middle one holds a factor of two, negative values mirrored."""
    for k in range(1, 65):
        low = 2.0 ** (k - 33)
        assert [64 + k] * 2 == [bucket(low), bucket(math.nextafter(low * 2, 0))]
        assert 64 - k == bucket(-low)
    assert [64, 64, 0, 128] == [bucket(x) for x in (-0.0, math.nextafter(2.0**-32, 0), -1e300, math.inf)]


LOOKUP = Beside(
    [{"k": "a", "w": 3}, {"k": "a", "w": 1}, {"k": "a", "w": 2}, {"k": None, "w": 9}],
    Schema.of({"k": Type.STRING, "w": Type.INTEGER}),
)
ON = Compare(Column("g"), Operator.EQ, Column("look.k"))
ONE = Literal(1)


@pytest.mark.parametrize(
    ("left", "fan_out", "expected"), [(False, None, 15), (True, None, 20), (False, 2, 10), (True, 1, 10)]
)
def test_public_joins(left, fan_out, expected):
    """Five rows of a key with three matches, five of keys without: LEFT keeps these, a fan-out the first matches."""
    join = Join("look", ON, left=left, fan_out=fan_out)
    unit = None if fan_out else "u"
    engine = MemoryEngine([row | {"u": "one"} for row in DATA], SCHEMA, beside={"look": LOOKUP})
    least = Compare(Column("look.w"), Operator.LE, ONE)

    assert [[expected]] == engine.measure(asked(Count(), by=(), unit=unit, most=99, joins=(join,)), 0).tolist()
    assert [[5]] == engine.measure(asked(Count(), by=(), unit=unit, most=99, joins=(join,), where=least), 0).tolist()


def test_rows_are_kept_by_the_joined_table_alone():
    """Of each key the same rows stay, in the order of all columns, whatever else ON says."""
    on = And((ON, Compare(Column("look.w"), Operator.GT, ONE)))
    engine = MemoryEngine(DATA, SCHEMA, beside={"look": LOOKUP})
    counts = [
        engine.measure(asked(Count(), by=(), unit=None, joins=(Join("look", on, fan_out=most),)), 0)[0, 0]
        for most in (1, 2, 3)
    ]

    assert [0, 5, 10] == counts


def test_protected_joins_stay_within_a_unit():
    """A row meets the rows of its own unit only, even where ON forgets to say so."""
    beside = Beside([{"u": "ann", "v": 1}, {"u": "bob", "v": 2}, {"u": None, "v": 3}], _VISITS, public=False)
    engine = MemoryEngine(DATA, SCHEMA, beside={"visits": beside})
    on = Compare(Column("visits.v"), Operator.GE, Literal(0))
    query = asked(Count(), CountUnits(), by=(), most=99, joins=(Join("visits", on, public=False),))

    assert [[7], [2]] == engine.measure(query, 0).tolist()
    assert (frozenset(), {"visits": _VISITS}) == (engine.public, engine.tables)
    with pytest.raises(UnsupportedQuery, match="cannot be joined"):
        engine.measure(asked(Count(), by=(), unit=None, joins=query.joins), 0)


_VISITS = Schema.of({"u": Type.STRING, "v": Type.INTEGER})


def test_public_values_are_listed():
    """Keys may be those of a public table's column; Python values declare no categories."""
    engine = MemoryEngine(DATA, SCHEMA, beside={"look": LOOKUP})

    assert [1, 2, 3, 9] == engine.listed("w", "look").to_pylist()
    assert ["a"] == engine.listed("k", "look").to_pylist()
    with pytest.raises(InvalidKeys, match="categories"):
        engine.listed("g", None)


def test_units_of_decimals_stay_apart():
    """Two decimals that are one double are two units and one key."""
    schema = Schema.of({"u": Type.DECIMAL})
    data = [{"u": Decimal(9007199254740993)}, {"u": Decimal(9007199254740992)}]
    query = Query("data", (), None, None, (NamedAggregate("n", CountUnits()),), PrivacyUnit("u"), Bounds(max_rows=1))
    keys = Query("data", ("u",), None, None, (), PrivacyUnit(), Bounds())
    engine = MemoryEngine(data, schema)

    assert [[2]] == engine.measure(query, 0).tolist()
    assert [2.0**53] == engine.found(keys, 0).keys.column("u").to_pylist()


def test_fingerprints_tell_when_a_hash_chooses():
    """Groups, parts and rows of a quantile are chosen; counts within their bounds are not."""
    engine = MemoryEngine(DATA, SCHEMA)
    quantile = Quantile(X, 0.5, 0, 8)

    assert "" == engine.fingerprint(asked(Count()))
    assert "" == engine.fingerprint(asked(quantile, unit=None))
    assert engine.fingerprint(asked(Count(), groups=1))
    assert engine.fingerprint(asked(quantile))
    assert engine.check() is None
