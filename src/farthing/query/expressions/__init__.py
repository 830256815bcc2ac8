"""The expression language: small, closed, total and free of side effects.

A *scalar* has a value, or NULL, on every row; a *predicate* is TRUE, FALSE or unknown (NULL), by SQL's three-valued
logic, and a row counts only where it is TRUE. Nothing raises, whatever a row holds: what has no value is NULL. Types
are checked against the schema before any engine sees an expression. The rules of every function are in
docs/reference/language.md, their definition in code is `engines.evaluate`. Those of comparisons, on which engines
differ most:

* numbers are compared as integers when both sides are integers, as doubles otherwise (DECIMAL is read as a double);
* NaN equals NaN and is greater than every number, infinity included; -0.0 equals 0.0;
* strings are compared by code points, case included;
* a comparison with NULL is unknown.
"""

from farthing.query.expressions.tree import (
    MOST_CHOICES,
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
    all_of,
)
from farthing.query.expressions.typing import MOST_DEPTH, MOST_NODES, check, explicit, operand_type, type_of
from farthing.query.expressions.values import Column, FunctionName, Literal, Operand, Operator, Value
from farthing.query.expressions.walking import children, columns_of, rewrite, walk

__all__ = [
    "MOST_CHOICES",
    "MOST_DEPTH",
    "MOST_NODES",
    "And",
    "Between",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Compare",
    "Expression",
    "FunctionName",
    "In",
    "IsNull",
    "Literal",
    "Node",
    "Not",
    "Operand",
    "Operator",
    "Or",
    "Scalar",
    "Value",
    "all_of",
    "check",
    "children",
    "columns_of",
    "explicit",
    "operand_type",
    "rewrite",
    "type_of",
    "walk",
]
