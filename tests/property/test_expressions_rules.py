"""The language on hostile values: nothing raises, types are as told, and the rules of its reference hold."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest
from hostile import (
    DATES,
    FLOATS,
    HOSTILE,
    INTEGERS,
    NUL_STRINGS,
    PATTERNS,
    STRINGS,
    TIMES,
    TYPES,
    oracle,
    predicates,
    rows,
    same,
    scalars,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing.engines.evaluate import evaluate, holds
from farthing.errors import UnsupportedQuery
from farthing.query.expressions import (
    And,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    check,
    explicit,
    type_of,
)
from farthing.query.expressions.signatures import CASTS, CLOCK_UNITS, DAY_PARTS, DAY_UNITS, SIGNATURES
from farthing.query.normal import normal
from farthing.query.schema import Schema, Type

SCHEMA = Schema.of({kind.value[0]: kind for kind in TYPES} | {"j": Type.INTEGER, "g": Type.FLOAT, "z": Type.STRING})
VALUES = HOSTILE | {Type.STRING: STRINGS + NUL_STRINGS}
PYTHON = {
    Type.INTEGER: int,
    Type.FLOAT: float,
    Type.STRING: str,
    Type.BOOLEAN: bool,
    Type.DATE: dt.date,
    Type.TIMESTAMP: dt.datetime,
}
CONSTANTS = {
    FunctionName.ROUND: list(range(-15, 16)),
    FunctionName.LIKE: PATTERNS,
    FunctionName.DATE_TRUNC: DAY_UNITS + CLOCK_UNITS,
    FunctionName.EXTRACT: DAY_PARTS + CLOCK_UNITS,
}
LOOKS_AT_NULL = {FunctionName.COALESCE, FunctionName.LEAST, FunctionName.GREATEST, FunctionName.NULLIF}
LOW, HIGH = -(2**63), 2**63 - 1


drawn = settings(max_examples=sweep(40, 150), deadline=None, suppress_health_check=list(HealthCheck))


def of(function, *values):
    """Return what a function gives for some values."""
    return evaluate(*call(function, values))


def call(function, values):
    """Return a call of a function and the row of its values; what must be constant is."""
    names = [f"a{place}" for place in range(len(values))]
    constant = SIGNATURES[function].constant
    arguments = (Literal(v) if place == constant else Column(f"a{place}") for place, v in enumerate(values))
    return Call(function, tuple(arguments)), dict(zip(names, values, strict=True))


def cast(value, kind):
    """Return a value as another type."""
    return evaluate(Cast(Column("x"), kind), {"x": value})


def tame(value):
    """Return a number as it is computed with, by the words of the reference."""
    value = float(value)
    if math.isnan(value) or abs(value) > 1e150:
        return None
    return 0.0 if abs(value) < 1e-150 else value


def half_up(value):
    """Return a finite number rounded to a whole one, halves away from zero, by exact decimals."""
    with localcontext(prec=400):
        return int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def in_range(value):
    """Return an integer, NULL outside of 64 bits."""
    return value if LOW <= value <= HIGH else None


def is_of(value, kind):
    """Tell whether a value is NULL or of a type."""
    return value is None or (type(value) is PYTHON[kind] and not (kind is Type.INTEGER and not LOW <= value <= HIGH))


def overloads(function):
    """Yield (kinds, constant or None, values of the other places) for up to three arguments of a function."""
    signature = SIGNATURES[function]
    for count in (1, 2, 3):
        if not signature.accepts(count):
            continue
        for kinds in product(*(sorted(signature.kinds(place)) for place in range(count))):
            day = Type.DATE in kinds and signature.constant == 0
            constants = [c for c in CONSTANTS.get(function, [None]) if not (day and c in CLOCK_UNITS)]
            fixed = signature.constant if signature.constant is not None and signature.constant < count else None
            places = [[None, *VALUES[kind]][:: 1 if count < 3 else 5] for kind in kinds]
            for constant in constants if fixed is not None else [None]:
                yield kinds, product(*([constant] if place == fixed else some for place, some in enumerate(places)))


@pytest.mark.parametrize("function", list(FunctionName))
def test_no_call_raises_and_types_are_as_told(function):
    """Every function on every well-typed combination of hostile values gives NULL or a value of its type."""
    tried = 0
    for kinds, combinations in overloads(function):
        schema = Schema.of({f"a{place}": kind for place, kind in enumerate(kinds)})
        ready = None
        for values in combinations:
            tree, row = call(function, values)
            if ready is None:
                try:
                    told = type_of(tree, schema)
                except UnsupportedQuery:  # COALESCE of a text and a number, say
                    break
                ready = explicit(tree, schema)
                assert told is type_of(ready, schema)
            found = evaluate(ready, row)
            assert is_of(found, told), (values, found)
            tried += 1
    assert tried > 0


@pytest.mark.parametrize(("kind", "given"), [(kind, given) for kind in TYPES for given in sorted(CASTS[kind])])
def test_no_cast_raises_and_types_are_as_told(kind, given):
    """Every cast of every hostile value gives NULL or a value of its type."""
    for value in [None, *VALUES[given]]:
        assert is_of(cast(value, kind), kind), value


@pytest.mark.parametrize("function", [f for f in FunctionName if f not in LOOKS_AT_NULL])
def test_null_in_is_null_out(function):
    """But for the four that look for a value, a function of NULL is NULL, whatever stands beside it."""
    for kinds, combinations in overloads(function):
        values = list(next(iter(combinations)))
        for place in range(len(kinds)):
            if place != SIGNATURES[function].constant:
                others = [value if other != place else None for other, value in enumerate(values)]
                assert of(function, *others) is None


def test_functions_that_look_for_a_value():
    """COALESCE takes the first that is there; LEAST and GREATEST skip NULL; NULLIF forgets what equals."""
    assert of(FunctionName.COALESCE, None, 2, None, 3) == 2
    assert of(FunctionName.COALESCE, None, None) is None
    assert (1, 3) == (of(FunctionName.LEAST, 3, None, 1), of(FunctionName.GREATEST, None, 3, 1))
    assert of(FunctionName.LEAST, None, None) is None
    assert math.isnan(of(FunctionName.GREATEST, math.nan, math.inf))
    assert of(FunctionName.LEAST, math.nan, math.inf) == math.inf
    assert ("A", "日本") == (of(FunctionName.LEAST, "a", "日本", "A"), of(FunctionName.GREATEST, "a", "日本", "A"))
    assert (None, 1, 1, None) == tuple(
        of(FunctionName.NULLIF, *pair) for pair in [(1, 1), (1, 2), (1, None), (None, 1)]
    )
    assert of(FunctionName.NULLIF, math.nan, math.nan) is None


def test_integers_are_exact():
    """Integer arithmetic is that of the integers, NULL outside of 64 bits, division truncating towards zero."""
    for one, other in product(INTEGERS, INTEGERS):
        assert in_range(one + other) == of(FunctionName.ADD, one, other)
        assert in_range(one - other) == of(FunctionName.SUBTRACT, one, other)
        assert in_range(one * other) == of(FunctionName.MULTIPLY, one, other)
        whole = None if other == 0 else math.trunc(Fraction(one, other))
        assert (None if whole is None else in_range(whole)) == of(FunctionName.INTEGER_DIVIDE, one, other)
        assert (None if whole is None else one - whole * other) == of(FunctionName.MODULO, one, other)
    for one in INTEGERS:
        assert in_range(-one) == of(FunctionName.NEGATE, one)
        assert in_range(abs(one)) == of(FunctionName.ABS, one)
        assert (one > 0) - (one < 0) == of(FunctionName.SIGN, one)
        assert all(
            of(f, one) == one for f in (FunctionName.FLOOR, FunctionName.CEIL, FunctionName.TRUNC, FunctionName.ROUND)
        )


def test_integers_beyond_64_bits_with_sign_are_null_inside():
    """Unsigned integers compare as they are; any function takes those beyond int64 for NULL."""
    assert of(FunctionName.SUBTRACT, 2**64 - 1, 2**64 - 2) is None
    assert of(FunctionName.COALESCE, 2**63, 1) == 1
    assert cast(2**63, Type.STRING) is None
    assert evaluate(Column("x"), {"x": 2**63}) == 2**63


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (FunctionName.ADD, lambda a, b: a + b),
        (FunctionName.SUBTRACT, lambda a, b: a - b),
        (FunctionName.MULTIPLY, lambda a, b: a * b),
        (FunctionName.DIVIDE, lambda a, b: a / b if b else None),
    ],
)
def test_reals_are_tamed_and_rounded_once(function, exact):
    """Real arithmetic is the exact result for tame operands, rounded once; else NULL. It is never infinite."""
    pairs = [*product(FLOATS, FLOATS), *product(INTEGERS, FLOATS), *product(FLOATS, INTEGERS)]
    pairs += product(INTEGERS, INTEGERS) if function is FunctionName.DIVIDE else []
    for one, other in pairs:
        a, b = tame(one), tame(other)
        expected = None if a is None or b is None else exact(Fraction(a), Fraction(b))
        found = of(function, one, other)
        assert same(None if expected is None else float(expected), found), (one, other)
        assert found is None or math.isfinite(found)


def test_functions_of_one_real():
    """Signs, roots and roundings of tame reals, by exact comparison."""
    for value in FLOATS:
        x = tame(value)
        ones = (
            FunctionName.NEGATE,
            FunctionName.ABS,
            FunctionName.SIGN,
            FunctionName.FLOOR,
            FunctionName.CEIL,
            FunctionName.TRUNC,
        )
        found = {function: of(function, value) for function in (*ones, FunctionName.SQRT, FunctionName.ROUND)}
        if x is None:
            assert set(found.values()) == {None}
            continue
        assert (-x, abs(x)) == (found[FunctionName.NEGATE], found[FunctionName.ABS])
        assert found[FunctionName.SIGN] == (x > 0) - (x < 0)
        floor, ceil = Fraction(found[FunctionName.FLOOR]), Fraction(found[FunctionName.CEIL])
        assert floor <= Fraction(x) < floor + 1
        assert ceil - 1 < Fraction(x) <= ceil
        assert found[FunctionName.TRUNC] == (floor if x > 0 else ceil)
        assert found[FunctionName.ROUND] == half_up(x)
        root = found[FunctionName.SQRT]
        assert root is None if x < 0 else math.isclose(root * root, x, rel_tol=1e-15)


def test_rounding_to_digits():
    """round(x, d) is the rounded x * 10^d over 10^d; exact for integers, NULL outside of 64 bits."""
    for value, digits in product(FLOATS, range(-15, 16)):
        x = tame(value)
        unit = 10.0 ** abs(digits)
        if x is None:
            expected = None
        elif digits >= 0:
            expected = float(half_up(x * unit)) / unit
        else:
            expected = float(half_up(x / unit)) * unit
        assert same(expected, of(FunctionName.ROUND, value, digits)), (value, digits)
    for value, digits in product(INTEGERS, range(-15, 16)):
        with localcontext(prec=60):
            exact = int(Decimal(value).quantize(Decimal((0, (1,), max(-digits, 0))), ROUND_HALF_UP))
        assert in_range(exact) == of(FunctionName.ROUND, value, digits)
    assert (0.13, -0.13, 1300, -1300) == tuple(
        of(FunctionName.ROUND, *pair) for pair in [(0.125, 2), (-0.125, 2), (1250, -2), (-1250, -2)]
    )


def test_exponentials_and_logarithms():
    """exp, ln, log10 and power have their limits where the reference puts them."""
    assert (None, 0.0, None) == tuple(of(FunctionName.EXP, x) for x in (345.1, -345.1, math.nan))
    assert math.isclose(of(FunctionName.EXP, 345.0), 6.785725020057e149, rel_tol=1e-9)
    for x in FLOATS + INTEGERS:
        a = tame(x)
        positive = a is not None and a > 0
        assert positive is (of(FunctionName.LN, x) is not None) is (of(FunctionName.LOG10, x) is not None)
        if positive:
            assert math.isclose(
                of(FunctionName.LN, x), of(FunctionName.LOG10, x) * math.log(10), rel_tol=1e-14, abs_tol=1e-14
            )
    cases = {(0, 2): 0.0, (0, 0): 1.0, (0, -1): None, (-2, 3): -8.0, (-2, 0.5): None, (-2.0, 2): 4.0, (1, 1e150): 1.0}
    cases |= {(10, 149): 1e149, (10, 151): None, (10, -151): None, (math.nan, 0): None, (-1, 2**53): 1.0}
    for (a, b), expected in cases.items():
        assert same(expected, of(FunctionName.POWER, a, b), near=True), (a, b)
    for a, b in product(FLOATS, FLOATS):
        found = of(FunctionName.POWER, a, b)
        assert found is None or found == 0 or 9e-151 < abs(found) < 1.1e150


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        *[(text, Type.INTEGER, int(text)) for text in ("0", "-0", "+1", "007", "123456789012345678")],
        *[
            (text, Type.INTEGER, None)
            for text in ("", " 1", "1 ", "1.", "1.5", "1e5", "٣", "１", "1_0", "1" * 19, "1\n")
        ],
        *[(text, Type.FLOAT, float(text)) for text in ("0", "-1.5e3", "1e99", "1E-99", "123456789012345", "1e+05")],
        *[
            (text, Type.FLOAT, None)
            for text in ("", "1.", ".5", "1e100", "nan", "inf", "0x10", "1234567890123456", "1e")
        ],
        ("0.12345678901234", Type.FLOAT, 0.12345678901234),
        ("0.123456789012345", Type.FLOAT, None),
        ("true", Type.BOOLEAN, True),
        ("TRUE", Type.BOOLEAN, None),
        ("2012-02-29", Type.DATE, dt.date(2012, 2, 29)),
        *[(text, Type.DATE, None) for text in ("2013-02-29", "0000-01-01", "2013-1-1", "2013-01-01 ", "2013-01-01\n")],
        ("2013-01-01 00:00:00", Type.DATE, None),
        ("2013-01-01", Type.TIMESTAMP, None),
        ("2013-01-01T23:59:59.5", Type.TIMESTAMP, dt.datetime(2013, 1, 1, 23, 59, 59, 500000)),
        ("2013-01-01 23:59:59", Type.TIMESTAMP, dt.datetime(2013, 1, 1, 23, 59, 59)),
        *[(f"2013-01-01 {t}", Type.TIMESTAMP, None) for t in ("24:00:00", "23:60:00", "23:59:60", "1:00:00", "12:30")],
        ("2013-01-01 12:30:00.1234567", Type.TIMESTAMP, None),
        ("2013-02-29 12:30:00", Type.TIMESTAMP, None),
    ],
)
def test_text_is_read_strictly(text, kind, expected):
    """Text becomes a value only where it is spelled in the one accepted way."""
    assert same(expected, cast(text, kind))


def test_casts_go_back_and_forth():
    """What is written as text is read as what it was; reals are rounded to integers, halves away from zero."""
    for kind in (Type.DATE, Type.TIMESTAMP, Type.BOOLEAN):
        assert VALUES[kind] == [cast(cast(value, Type.STRING), kind) for value in VALUES[kind]]
    for value in INTEGERS:
        assert str(value) == cast(value, Type.STRING)
        assert same(float(value), cast(value, Type.FLOAT))
        short = len(str(abs(value))) <= 18
        assert (value if short else None) == cast(cast(value, Type.STRING), Type.INTEGER)
    for value in FLOATS:
        expected = in_range(half_up(value)) if math.isfinite(value) else None
        assert expected == cast(value, Type.INTEGER)
    assert [1, 0] == [cast(value, Type.INTEGER) for value in (True, False)]
    for moment in TIMES:
        midnight = cast(cast(moment, Type.DATE), Type.TIMESTAMP)
        assert dt.timedelta(0) <= moment - midnight < dt.timedelta(days=1)
        assert midnight.time() == dt.time(0)


def test_letters_are_code_points():
    """Case changes ASCII only, lengths and places count code points, TRIM takes spaces only."""
    for text in STRINGS + NUL_STRINGS:
        assert len(text) == of(FunctionName.LENGTH, text)
        lowered, raised = of(FunctionName.LOWER, text), of(FunctionName.UPPER, text)
        assert [c.lower() if c.isascii() else c for c in text] == list(lowered)
        assert [c.upper() if c.isascii() else c for c in text] == list(raised)
        left, right = of(FunctionName.LTRIM, text), of(FunctionName.RTRIM, text)
        assert text == " " * (len(text) - len(left)) + left
        assert text == right + " " * (len(text) - len(right))
        assert not left.startswith(" ")
        assert not right.endswith(" ")
        assert of(FunctionName.TRIM, text) == of(FunctionName.LTRIM, right)


def test_substrings_are_as_in_sql():
    """SUBSTRING counts from one; a start below one or a negative length is NULL."""
    for text, start, length in product(
        ["", "a", "日本語", "ab" * 50], [*range(-1, 6), HIGH, LOW], [-1, 0, 1, 2, HIGH, LOW]
    ):
        letters = dict(enumerate(text, 1))
        valid = start >= 1 and length >= 0
        expected = "".join(letter for place, letter in letters.items() if start <= place < start + length)
        assert (expected if valid else None) == of(FunctionName.SUBSTRING, text, start, length)
        rest = "".join(letter for place, letter in letters.items() if start <= place)
        assert (rest if start >= 1 else None) == of(FunctionName.SUBSTRING, text, start)


def test_searches_are_plain():
    """LIKE knows % and _ and no escape; the other three compare code points."""
    short = [text for text in STRINGS + NUL_STRINGS if len(text) < 100]
    for text, pattern in product(short, PATTERNS + short):
        parts = {"%": ".*", "_": "."}
        regex = "".join(parts.get(letter, re.escape(letter)) for letter in pattern)
        assert (re.fullmatch(regex, text, re.DOTALL) is not None) is of(FunctionName.LIKE, text, pattern), (
            text,
            pattern,
        )
        assert (text[: len(pattern)] == pattern) is of(FunctionName.STARTS_WITH, text, pattern)
        assert (text[max(len(text) - len(pattern), 0) :] == pattern) is of(FunctionName.ENDS_WITH, text, pattern)
        assert (text.find(pattern) >= 0) is of(FunctionName.CONTAINS, text, pattern)


def test_a_pattern_of_many_stars_is_quick():
    """A pattern that would send a backtracking search into years is answered at once."""
    assert of(FunctionName.LIKE, "a" * 2000, "%a" * 50 + "%b") is False


def test_concatenation_has_a_limit():
    """More than 2^20 code points are NULL, one fewer are not."""
    half = "é" * 2**19

    assert len(of(FunctionName.CONCAT, half, half)) == 2**20
    assert of(FunctionName.CONCAT, half, half, "x") is None
    assert of(FunctionName.CONCAT, "a", None) is None
    assert "xbxb" == of(FunctionName.REPLACE, "abab", "a", "x")
    assert "abab" == of(FunctionName.REPLACE, "abab", "", "x")
    assert "ba" == of(FunctionName.REPLACE, "aaa", "aa", "b")
    assert of(FunctionName.REPLACE, half, "x", "yyyy") is None
    assert of(FunctionName.REPLACE, "a", None, "b") is None


LENGTHS = {"week": 7, "month": 31, "quarter": 92, "year": 366, "day": 1}


def test_truncated_dates():
    """What is cut is less than one unit; the start of a unit is its own start; a day stays a day."""
    for unit, moment in product(DAY_UNITS, [*DATES, *TIMES]):
        start = of(FunctionName.DATE_TRUNC, unit, moment)
        assert type(start) is type(moment)
        assert dt.timedelta(0) <= moment - start < dt.timedelta(days=LENGTHS[unit])
        assert start == of(FunctionName.DATE_TRUNC, unit, start)
        assert unit != "week" or start.weekday() == 0
        assert unit in ("week", "day") or start.day == 1
    for unit, moment in product(CLOCK_UNITS, TIMES):
        start = of(FunctionName.DATE_TRUNC, unit, moment)
        kept = {"hour": 4, "minute": 5, "second": 6}[unit]
        assert (*moment.timetuple()[:kept], *[0] * (6 - kept)) == start.timetuple()[:6]
        assert start.microsecond == 0


def test_parts_of_dates():
    """Parts make the date again; days between are those of the calendar."""
    for moment in [*DATES, *TIMES]:
        year, month, day = (of(FunctionName.EXTRACT, part, moment) for part in ("year", "month", "day"))
        assert (year, month, day) == moment.timetuple()[:3]
        assert of(FunctionName.EXTRACT, "quarter", moment) == math.ceil(month / 3)
        first = dt.date(year, 1, 1)
        assert of(FunctionName.EXTRACT, "doy", moment) == of(FunctionName.DAYS_BETWEEN, first, moment) + 1
        week, weekday = of(FunctionName.EXTRACT, "week", moment), of(FunctionName.EXTRACT, "dow", moment)
        if 1 < year < 9999:
            of_year = year + (week == 1 and month == 12) - (week >= 52 and month == 1)
            assert dt.date.fromisocalendar(of_year, week, weekday) == cast(moment, Type.DATE)
        assert of(FunctionName.DAYS_BETWEEN, moment, moment) == 0
    for moment in TIMES:
        clock = [of(FunctionName.EXTRACT, part, moment) for part in CLOCK_UNITS]
        assert clock == list(moment.timetuple()[3:6])
    assert -3652058 == of(FunctionName.DAYS_BETWEEN, dt.date(9999, 12, 31), dt.datetime(1, 1, 1))
    assert 1 == of(FunctionName.DAYS_BETWEEN, dt.datetime(2013, 1, 1, 23, 59), dt.datetime(2013, 1, 2))


def test_comparisons_are_one_total_order():
    """Of two values that are there exactly one of <, =, > holds; NaN is greatest; NULL is unknown."""
    signs = (Operator.LT, Operator.EQ, Operator.GT)
    for kind in (Type.INTEGER, Type.FLOAT, Type.DATE, Type.TIMESTAMP):
        for one, other in product(VALUES[kind], VALUES[kind]):
            row = {"a": one, "b": other}
            truths = [holds(Compare(Column("a"), sign, Column("b")), row) for sign in signs]
            assert truths.count(True) == 1
            assert all(
                holds(Compare(Column("b"), sign.flipped, Column("a")), row) is truth
                for sign, truth in zip(signs, truths, strict=True)
            )
    assert holds(Compare(Column("a"), Operator.GT, Literal(1e308)), {"a": math.nan}) is True
    assert holds(Compare(Column("a"), Operator.EQ, Literal(1)), {"a": None}) is None
    assert holds(Compare(Literal(2**53 + 1), Operator.EQ, Literal(2**53)), {}) is False
    assert holds(Compare(Literal(2**53 + 1), Operator.EQ, Literal(2.0**53)), {}) is True


def test_three_valued_logic():
    """AND and OR are the least and greatest of FALSE < unknown < TRUE, NOT turns them round."""
    rank = {False: 0, None: 1, True: 2}
    truth = {
        value: Compare(Column("b") if value is None else Literal(value), Operator.EQ, Literal(value=True))
        for value in rank
    }
    for one, other in product(rank, rank):
        parts = (truth[one], truth[other])
        assert rank[holds(And(parts), {"b": None})] == min(rank[one], rank[other])
        assert rank[holds(Or(parts), {"b": None})] == max(rank[one], rank[other])
        assert rank[holds(Not(truth[one]), {"b": None})] == 2 - rank[one]


@given(row=rows(SCHEMA), data=st.data())
@drawn
def test_random_scalars_are_total(row, data):
    """Any well-typed scalar, however nested, has a value of its type or NULL; hidden casts change nothing but types."""
    kind = data.draw(st.sampled_from(TYPES))
    tree = data.draw(scalars(SCHEMA, kind))

    assert kind is type_of(tree, SCHEMA)
    assert is_of(oracle(tree, SCHEMA)(row), kind)
    assert explicit(explicit(tree, SCHEMA), SCHEMA) == explicit(tree, SCHEMA)


@given(row=rows(SCHEMA), tree=predicates(SCHEMA))
@drawn
def test_random_predicates_and_their_normal_form_agree(row, tree):
    """The normal form is TRUE, FALSE and unknown exactly where the predicate is, and is its own normal form."""
    check(tree, SCHEMA)
    form = normal(tree)

    assert oracle(tree, SCHEMA)(row) is oracle(form, SCHEMA)(row)
    assert normal(form) == form
    assert normal(Not(Not(tree))) == form


@given(row=rows(SCHEMA), data=st.data())
@drawn
def test_membership_and_ranges_are_comparisons(row, data):
    """IN is OR of equalities, BETWEEN is two comparisons, IS NULL is whether a value is there."""
    operand = data.draw(scalars(SCHEMA, Type.FLOAT, depth=2))
    low, high = (data.draw(scalars(SCHEMA, Type.INTEGER, depth=1)) for _ in range(2))
    choices = (Literal(1), Literal(2.5), Literal(-7))
    equal = Or(tuple(Compare(operand, Operator.EQ, choice) for choice in choices))
    inside = And((Compare(low, Operator.LE, operand), Compare(high, Operator.GE, operand)))
    case = Case(((IsNull(operand), Literal(value=True)),), Literal(value=False))

    truth = {tree: oracle(tree, SCHEMA)(row) for tree in (equal, inside, case)}
    assert truth[equal] is oracle(In(operand, choices), SCHEMA)(row)
    assert truth[inside] is oracle(Between(operand, low, high), SCHEMA)(row)
    assert truth[case] is (oracle(operand, SCHEMA)(row) is None)
