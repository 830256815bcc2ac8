"""The expression tree: types, refusals, identity texts, walks, and the limits of its size."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from farthing.errors import UnsupportedQuery
from farthing.query.expressions import (
    MOST_DEPTH,
    MOST_NODES,
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
    columns_of,
    explicit,
    operand_type,
    rewrite,
    type_of,
    walk,
)
from farthing.query.expressions.signatures import SIGNATURES
from farthing.query.normal import constants, normal
from farthing.query.schema import Schema, Type

SCHEMA = Schema.of({kind.value: kind for kind in Type})
N, F, S, B, D, T, X = (
    Column(kind.value)
    for kind in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP, Type.OTHER)
)
ONE, HALF, WORD, YES = Literal(1), Literal(0.5), Literal("a"), Literal(value=True)


def call(function, *arguments):
    """Return a call."""
    return Call(function, arguments)


def case(*values, otherwise=None):
    """Return a CASE with these values."""
    return Case(tuple((IsNull(N), value) for value in values), otherwise)


def nested(depth):
    """Return an expression of a depth."""
    tree = N
    for _ in range(depth - 1):
        tree = call(FunctionName.NEGATE, tree)
    return tree


@pytest.mark.parametrize(
    ("tree", "kind"),
    [
        (N, Type.INTEGER),
        (Column("decimal"), Type.FLOAT),
        (X, Type.OTHER),
        (HALF, Type.FLOAT),
        (call(FunctionName.ADD, N, ONE), Type.INTEGER),
        (call(FunctionName.ADD, N, HALF), Type.FLOAT),
        (call(FunctionName.MULTIPLY, Column("decimal"), N), Type.FLOAT),
        (call(FunctionName.DIVIDE, N, N), Type.FLOAT),
        (call(FunctionName.INTEGER_DIVIDE, N, N), Type.INTEGER),
        (call(FunctionName.FLOOR, F), Type.FLOAT),
        (call(FunctionName.ROUND, N, Literal(-2)), Type.INTEGER),
        (call(FunctionName.COALESCE, N, F, ONE), Type.FLOAT),
        (call(FunctionName.LEAST, D, D), Type.DATE),
        (call(FunctionName.NULLIF, N, F), Type.INTEGER),
        (call(FunctionName.SUBSTRING, S, ONE), Type.STRING),
        (call(FunctionName.LIKE, S, Literal("a%")), Type.BOOLEAN),
        (call(FunctionName.DATE_TRUNC, Literal("month"), D), Type.DATE),
        (call(FunctionName.DATE_TRUNC, Literal("hour"), T), Type.TIMESTAMP),
        (call(FunctionName.EXTRACT, Literal("week"), D), Type.INTEGER),
        (call(FunctionName.DAYS_BETWEEN, D, T), Type.INTEGER),
        (Cast(S, Type.TIMESTAMP), Type.TIMESTAMP),
        (case(N, HALF), Type.FLOAT),
        (case(WORD, otherwise=S), Type.STRING),
    ],
)
def test_types(tree, kind):
    """A scalar has one type, told by the schema alone."""
    assert kind is type_of(tree, SCHEMA)


def test_every_function_has_a_signature():
    """The table of signatures is whole, so that no function is without a rule."""
    assert set(FunctionName) == set(SIGNATURES)


def test_the_old_name_tells_decimals():
    """A side of a comparison that is a bare column has the column's own type."""
    assert Type.DECIMAL is operand_type(Column("decimal"), SCHEMA)
    assert Type.FLOAT is operand_type(call(FunctionName.NEGATE, Column("decimal")), SCHEMA)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (call(FunctionName.ADD, S, ONE), "string in ADD"),
        (call(FunctionName.ADD, B, ONE), "boolean in ADD"),
        (call(FunctionName.ADD, X, ONE), "other in ADD"),
        (call(FunctionName.MODULO, F, ONE), "float in MODULO"),
        (call(FunctionName.INTEGER_DIVIDE, N, HALF), "float in INTEGER_DIVIDE"),
        (call(FunctionName.ADD, N), "number of arguments of ADD"),
        (call(FunctionName.ADD, N, N, N), "number of arguments of ADD"),
        (call(FunctionName.COALESCE, N), "COALESCE takes 2 or more"),
        (call(FunctionName.SUBSTRING, S), "SUBSTRING takes 2 to 3"),
        (call(FunctionName.COALESCE, N, S), "type mismatch"),
        (call(FunctionName.LEAST, B, B), "boolean in LEAST"),
        (call(FunctionName.NULLIF, N, S), "type mismatch"),
        (call(FunctionName.LENGTH, N), "integer in LENGTH"),
        (call(FunctionName.LIKE, S, S), "argument 2 of LIKE is a constant"),
        (call(FunctionName.ROUND, F, N), "argument 2 of ROUND is a constant"),
        (call(FunctionName.ROUND, F, Literal(16)), "one of -15 to 15"),
        (call(FunctionName.ROUND, F, HALF), "float in ROUND"),
        (call(FunctionName.DATE_TRUNC, Literal("hour"), D), "one of year, quarter, month, week, day"),
        (call(FunctionName.DATE_TRUNC, Literal("century"), T), "one of year"),
        (call(FunctionName.EXTRACT, Literal("second"), D), "one of year"),
        (call(FunctionName.EXTRACT, S, D), "is a constant"),
        (call(FunctionName.DATE_TRUNC, Literal("month"), S), "string in DATE_TRUNC"),
        (Cast(F, Type.STRING), "CAST of float to string"),
        (Cast(N, Type.BOOLEAN), "CAST of integer to boolean"),
        (Cast(N, Type.DECIMAL), "CAST of integer to decimal"),
        (Cast(X, Type.STRING), "CAST of other to string"),
        (case(N, S), "type mismatch"),
        (case(X), "column type"),
        (case(call(FunctionName.ADD, Column("integr"), ONE)), "did you mean 'integer'"),
        (Case(((Compare(S, Operator.EQ, ONE), N),)), "type mismatch"),
    ],
)
def test_ill_typed_scalars_are_refused_by_name(tree, words):
    """A refusal names the construct and says what would do, inside predicates too."""
    with pytest.raises(UnsupportedQuery, match=words) as found:
        type_of(tree, SCHEMA)
    assert found.value.construct
    assert found.value.next_step
    with pytest.raises(UnsupportedQuery, match=words):
        check(Not(IsNull(call(FunctionName.COALESCE, tree, tree))), SCHEMA)


@pytest.mark.parametrize(
    "tree",
    [
        Compare(call(FunctionName.ADD, N, ONE), Operator.GT, HALF),
        Compare(call(FunctionName.CONTAINS, S, WORD), Operator.EQ, YES),
        In(call(FunctionName.LOWER, S), (WORD,)),
        IsNull(Cast(S, Type.DATE)),
        IsNull(X),
        Between(call(FunctionName.DATE_TRUNC, Literal("day"), T), T, T),
    ],
)
def test_predicates_take_any_scalar(tree):
    """Whatever has a value can be compared."""
    check(tree, SCHEMA)


def test_size_is_limited():
    """The largest expression passes, one more level or node is refused, and depth itself is no danger."""
    wide = And((IsNull(N),) * ((MOST_NODES - 1) // 2))

    assert Type.INTEGER is type_of(nested(MOST_DEPTH), SCHEMA)
    check(wide, SCHEMA)
    check(In(N, tuple(map(Literal, range(10_000)))), SCHEMA)
    with pytest.raises(UnsupportedQuery, match="more than 60 levels"):
        type_of(nested(MOST_DEPTH + 1), SCHEMA)
    with pytest.raises(UnsupportedQuery, match="more than 60 levels"):
        type_of(nested(100_000), SCHEMA)
    with pytest.raises(UnsupportedQuery, match="more than 2,000 nodes"):
        check(And((wide, wide)), SCHEMA)


def test_between_counts_as_two_comparisons():
    """Nested ranges stand for a tree that doubles at every level: it is refused, quickly."""
    tree = N
    for _ in range(19):
        tree = Case(((Between(tree, ONE, ONE), ONE),))

    with pytest.raises(UnsupportedQuery, match="expression size"):
        type_of(tree, SCHEMA)


def test_constants_of_three_types_are_three():
    """1, 1.0 and TRUE are no two the same, alone and inside of functions; in a comparison 1 and 1.0 are one text."""
    values = [ONE, Literal(1.0), YES]
    sums = [call(FunctionName.ADD, N, value) for value in values]

    assert len(set(values)) == 3
    assert len({one.canonical() for one in sums}) == 3
    assert len({case(value).canonical() for value in values}) == 3
    assert len({Cast(value, Type.INTEGER).canonical() for value in values}) == 3
    assert Compare(N, Operator.EQ, ONE).canonical() == Compare(N, Operator.EQ, Literal(1.0)).canonical()
    assert call(FunctionName.ADD, N, Literal(0.0)).canonical() == call(FunctionName.ADD, N, Literal(-0.0)).canonical()


def test_identity_texts_cannot_be_forged():
    """Names and texts that look like the texts of other trees are other trees."""
    trees = [
        call(FunctionName.CONCAT, WORD, WORD),
        call(FunctionName.CONCAT, Literal('a" string "a'), WORD),
        call(FunctionName.CONCAT, Column("a"), WORD),
        call(FunctionName.CONCAT, WORD, WORD, WORD),
        call(FunctionName.CONCAT, call(FunctionName.CONCAT, WORD, WORD), WORD),
        call(FunctionName.COALESCE, WORD, WORD),
        case(WORD),
        case(WORD, otherwise=WORD),
        case(WORD, otherwise=Column("null")),
        Cast(WORD, Type.DATE),
        Cast(WORD, Type.INTEGER),
    ]

    assert len({tree.canonical() for tree in trees}) == len(trees)


def test_expressions_read_as_sql():
    """An expression is shown as people write it."""
    shown = {
        "((integer + 1) * (-integer))": call(
            FunctionName.MULTIPLY, call(FunctionName.ADD, N, ONE), call(FunctionName.NEGATE, N)
        ),
        "lower(string) = 'a'": Compare(call(FunctionName.LOWER, S), Operator.EQ, WORD),
        "CASE WHEN integer IS NULL THEN CAST(string AS DATE) ELSE date END": case(Cast(S, Type.DATE), otherwise=D),
        "(string || 'a') IN ('a')": In(call(FunctionName.CONCAT, S, WORD), (WORD,)),
    }

    assert list(shown) == [str(tree) for tree in shown.values()]


def test_walks_see_everything():
    """Columns are found wherever they stand, each node at its depth."""
    tree = Or((Not(Compare(Cast(N, Type.FLOAT), Operator.GT, case(F, otherwise=ONE))), Between(D, D, Column("x"))))

    assert {"integer", "float", "date", "x"} == columns_of(tree)
    assert {"integer", "string"} == columns_of(call(FunctionName.SUBSTRING, S, N))
    assert frozenset() == columns_of()
    assert 6 == max(depth for _, depth in walk(tree))
    assert [(N, 1)] == list(walk(N))


def test_trees_are_rewritten_from_the_leaves():
    """Every node is changed once; the tree itself stays as it was."""
    tree = And(
        (In(call(FunctionName.ADD, N, ONE), (ONE,)), Compare(case(N, otherwise=N), Operator.GT, N), Not(IsNull(N)))
    )
    renamed = rewrite(tree, lambda node: Column("n") if isinstance(node, Column) else node)

    assert str(tree).replace("integer", "n") == str(renamed)
    assert tree == rewrite(tree, lambda node: node)
    assert And(Between(N, ONE, N).comparisons) == rewrite(Between(N, ONE, N), lambda node: node)
    with pytest.raises(FrozenInstanceError):
        tree.operands = ()


def test_hidden_casts_are_written_out():
    """Where integers and reals become one type, and nowhere else."""
    mixed = [call(FunctionName.LEAST, N, F), case(N, HALF), call(FunctionName.COALESCE, case(N), F)]
    alike = [
        call(FunctionName.LEAST, N, N),
        case(HALF, otherwise=F),
        call(FunctionName.ADD, N, F),
        call(FunctionName.NULLIF, N, F),
    ]

    assert ["least(CAST(integer AS FLOAT), float)"] == [str(explicit(tree, SCHEMA)) for tree in mixed[:1]]
    assert all(type_of(tree, SCHEMA) is type_of(explicit(tree, SCHEMA), SCHEMA) for tree in mixed + alike)
    assert alike == [explicit(tree, SCHEMA) for tree in alike]
    assert Compare(explicit(mixed[2], SCHEMA), Operator.EQ, ONE) == explicit(
        Compare(mixed[2], Operator.EQ, ONE), SCHEMA
    )


def test_normal_forms_take_scalars_for_columns():
    """Tests of one scalar are merged, sides ordered, what is inside a scalar is left alone."""
    lowered = call(FunctionName.LOWER, S)
    inside = case(ONE, otherwise=call(FunctionName.ADD, N, Literal(2.0)))

    assert In(lowered, (WORD, Literal("b"))) == normal(
        Or((Compare(lowered, Operator.EQ, Literal("b")), Compare(WORD, Operator.EQ, lowered)))
    )
    assert Compare(inside, Operator.GE, ONE) == normal(Not(Compare(Literal(1.0), Operator.GT, inside)))
    assert constants(In(lowered, (WORD, Literal("b")))) is None
    assert constants(IsNull(lowered)) is None
    assert constants(normal(Compare(WORD, Operator.EQ, lowered))) is None
