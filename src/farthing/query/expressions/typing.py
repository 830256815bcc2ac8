"""The types of expressions: whatever is not well typed is refused, by name, before any engine sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, assert_never, cast

from farthing.query.expressions.signatures import (
    CASTS,
    CLOCK_UNITS,
    DAY_PARTS,
    DAY_UNITS,
    MOST_DIGITS,
    NUMBER,
    SIGNATURES,
)
from farthing.query.expressions.tree import (
    And,
    Between,
    Call,
    Case,
    Cast,
    Compare,
    Expression,
    In,
    IsNull,
    Node,
    Not,
    Or,
    Scalar,
)
from farthing.query.expressions.values import Column, FunctionName, Literal, Operator, refused
from farthing.query.expressions.walking import rewrite, walk
from farthing.query.reading import DECLARE
from farthing.query.schema import NUMBER_TYPES, REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DEPTH: Final = 60
"""The deepest expression: what walks over it may recurse."""

MOST_NODES: Final = 2_000
"""The largest expression; the constants of IN are not counted, and the operand of BETWEEN is counted twice."""

_Tree = TypeVar("_Tree", bound=Node)
_READ_AS = "write it with the functions of the language, or change a type with CAST"


def check(expression: Expression, schema: Schema) -> None:
    """Refuse, by name, an expression that is too large, or not well typed for a schema.

    Raises:
        UnsupportedQuery: an unknown column, a function of other types, or a comparison of types that do not compare.

    >>> schema = Schema.of({"dest": Type.STRING})
    >>> check(Compare(Column("dest"), Operator.EQ, Literal("ORD")), schema)
    """
    _check_size(expression)
    _check(expression, schema)


def type_of(scalar: Scalar, schema: Schema) -> Type:
    """Return the type of a scalar; refuse, by name, one that is too large or ill-typed. A DECIMAL column is a FLOAT.

    Raises:
        UnsupportedQuery: an unknown column, or a function of other types.

    >>> schema = Schema.of({"delay": Type.INTEGER})
    >>> type_of(Call(FunctionName.DIVIDE, (Column("delay"), Literal(2))), schema).value
    'float'
    """
    _check_size(scalar)
    return _type(scalar, schema)


def operand_type(operand: Scalar, schema: Schema) -> Type:
    """Return the type of a side of a comparison; DECIMAL for a column of decimals."""
    return schema.require(operand.name) if isinstance(operand, Column) else _type(operand, schema)


def explicit(tree: _Tree, schema: Schema) -> _Tree:
    """Return a well-typed tree with its hidden casts written out: where integers and reals become one type.

    These are the arguments of LEAST, GREATEST and COALESCE and the values of CASE. BETWEEN becomes its comparisons.

    >>> tree = Call(FunctionName.COALESCE, (Column("delay"), Literal(0.5)))
    >>> str(explicit(tree, Schema.of({"delay": Type.INTEGER})))
    'coalesce(CAST(delay AS FLOAT), 0.5)'
    """

    def change(node: Node) -> Node:
        match node:
            case Call(FunctionName.LEAST | FunctionName.GREATEST | FunctionName.COALESCE, arguments):
                return Call(node.function, tuple(_reals(arguments, schema)))
            case Case(branches, otherwise):
                values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
                cast_values = list(_reals(values, schema))
                pairs = tuple((condition, cast_values[place]) for place, (condition, _) in enumerate(branches))
                return Case(pairs, None if otherwise is None else cast_values[-1])
            case _:
                return node

    return cast("_Tree", rewrite(tree, change))


def _reals(scalars: Iterable[Scalar], schema: Schema) -> Iterable[Scalar]:
    """Yield scalars, the integers among them cast to reals if there are both."""
    kinds = [(scalar, _type(scalar, schema)) for scalar in scalars]
    mixed = {kind for _, kind in kinds} >= NUMBER
    for scalar, kind in kinds:
        yield Cast(scalar, Type.FLOAT) if mixed and kind is Type.INTEGER else scalar


def _check_size(node: Node) -> None:
    """Refuse a tree that is too deep or too large; looks at no more of it than that takes."""
    for place, (_, depth) in enumerate(walk(node), 1):
        if depth > MOST_DEPTH or place > MOST_NODES:
            raise refused(
                "expression size",
                f"an expression has at most {MOST_NODES:,} nodes and is at most {MOST_DEPTH} deep",
                f"more than {MOST_NODES:,} nodes" if place > MOST_NODES else f"more than {MOST_DEPTH} levels",
                "write it shorter; for many constants of one column, use IN (...)",
            )


def _check(expression: Expression, schema: Schema) -> None:
    """Refuse an ill-typed predicate."""
    match expression:
        case Compare(left, operator, right):
            kinds = operand_type(left, schema), operand_type(right, schema)
            _check_comparison((left, right), operator, kinds)
        case And(operands) | Or(operands):
            for operand in operands:
                _check(operand, schema)
        case Not(operand):
            _check(operand, schema)
        case IsNull(operand):
            operand_type(operand, schema)
        case In(operand, choices):
            kind = operand_type(operand, schema)
            for choice in choices:
                _check_comparison((operand, choice), Operator.EQ, (kind, choice.type))
        case Between():
            for comparison in expression.comparisons:
                _check(comparison, schema)
        case _:
            assert_never(expression)


def _type(scalar: Scalar, schema: Schema) -> Type:
    """Return the type of a scalar."""
    match scalar:
        case Column(name):
            kind = schema.require(name)
            return Type.FLOAT if kind in REAL_TYPES else kind
        case Literal():
            return scalar.type
        case Call():
            return _call(scalar, schema)
        case Cast(operand, kind):
            return _cast(operand, kind, schema)
        case Case(branches, otherwise):
            for condition, _ in branches:
                _check(condition, schema)
            values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
            return _common([_type(value, schema) for value in values], scalar)
        case _:
            assert_never(scalar)


def _call(call: Call, schema: Schema) -> Type:
    """Return the type of what a function gives; refuse arguments it does not take."""
    signature, name = SIGNATURES[call.function], call.function.name
    if not signature.accepts(len(call.arguments)):
        least, most = len(signature.takes) - signature.optional, len(signature.takes)
        more = " or more" if signature.repeats else f" to {most}" if signature.optional else ""
        raise refused(
            f"number of arguments of {name}",
            f"{name} takes {least}{more}",
            len(call.arguments),
            "add or drop some",
        )
    kinds = [_type(argument, schema) for argument in call.arguments]
    for place, kind in enumerate(kinds):
        if kind not in signature.kinds(place):
            wanted = " or ".join(sorted(signature.kinds(place)))
            raise refused(f"{kind} in {name}", f"argument {place + 1} is {wanted}", _shown(call), _READ_AS)
    _check_constant(call, signature.constant, kinds)
    if call.function is FunctionName.NULLIF:
        _check_comparison(call.arguments, Operator.EQ, (kinds[0], kinds[1]))
    match signature.gives:
        case Type() as kind:
            return kind
        case int() as place:
            return kinds[place]
        case None:
            return _common(kinds, call)


def _check_constant(call: Call, place: int | None, kinds: list[Type]) -> None:
    """Refuse a unit, part, digit count or pattern that is not a constant, or none of those there are."""
    if place is None or place >= len(call.arguments):
        return
    given = call.arguments[place]
    name = call.function.name
    if not isinstance(given, Literal):
        raise refused(f"argument of {name}", f"argument {place + 1} of {name} is a constant", _shown(given), _READ_AS)
    known: tuple[object, ...] | None = None
    if call.function is FunctionName.ROUND:
        known = tuple(range(-MOST_DIGITS, MOST_DIGITS + 1))
    elif call.function in (FunctionName.DATE_TRUNC, FunctionName.EXTRACT):
        days = DAY_UNITS if call.function is FunctionName.DATE_TRUNC else DAY_PARTS
        known = days if kinds[1] is Type.DATE else (*days, *CLOCK_UNITS)
    if known is not None and given.value not in known:
        words = (
            f"{-MOST_DIGITS} to {MOST_DIGITS}" if call.function is FunctionName.ROUND else ", ".join(map(str, known))
        )
        raise refused(f"argument of {name}", f"for these arguments it is one of {words}", _shown(given), _READ_AS)


def _cast(operand: Scalar, kind: Type, schema: Schema) -> Type:
    """Return the type of a cast; refuse one that the language does not have."""
    given = _type(operand, schema)
    if given not in CASTS.get(kind, frozenset()):
        takes = ", ".join(sorted(CASTS.get(kind, ()))) or "nothing"
        raise refused(
            f"CAST of {given} to {kind}", f"{kind} can be made of {takes}", _shown(operand), "leave the value as it is"
        )
    return kind


def _common(kinds: list[Type], scalar: Scalar) -> Type:
    """Return the type that several values share; integers and reals together are reals."""
    found = set(kinds)
    if len(found) == 1 and Type.OTHER not in found:
        return kinds[0]
    if found and found <= NUMBER:
        return Type.FLOAT
    if Type.OTHER in found:
        raise refused(
            "column type", "only numbers, texts, truth values, dates and times have values", _shown(scalar), _READ_AS
        )
    raise refused(
        "type mismatch",
        "the values of one expression are of one type",
        f"{' and '.join(kinds)} in {_shown(scalar)}",
        _READ_AS,
    )


def _check_comparison(sides: tuple[Scalar, ...], operator: Operator, kinds: tuple[Type, Type]) -> None:
    """Refuse a comparison whose sides do not compare."""
    if Type.OTHER in kinds:
        raise refused("column type", "only numbers, texts, truth values, dates and times compare", _shown(*sides))
    if kinds[0] is not Type.BOOLEAN and operator is Operator.EQ and sides[1] == Literal(value=True):
        shown, known = _shown(sides[0]), "> 0" if kinds[0] in NUMBER_TYPES else "IS NOT NULL"
        raise refused(
            "type mismatch",
            "a condition is true or false on each row",
            f"{kinds[0]} {shown}",
            f"say what is to hold of it, as in {shown} {known}; {DECLARE}",
        )
    if kinds[0] != kinds[1] and not set(kinds) <= NUMBER_TYPES:
        raise refused(
            "type mismatch",
            "both sides of a comparison are of one type",
            f"{kinds[0]} {operator} {kinds[1]} in {_shown(*sides)}",
            f"compare values of one type, with CAST where need be; {DECLARE}",
        )
    if kinds[0] is Type.BOOLEAN and operator not in (Operator.EQ, Operator.NE):
        raise refused("order of truth values", "truth values are compared with = or <>", _shown(*sides))


def _shown(*operands: Scalar) -> str:
    """Return operands as the asker wrote them, for a message."""
    return ", ".join(_word(operand) for operand in operands)


def _word(operand: Scalar) -> str:
    """Return one operand, cut to a readable length."""
    match operand:
        case Column(name):
            return name
        case Literal(value):
            return repr(value)[:80]
        case _:
            return str(operand)[:80]
