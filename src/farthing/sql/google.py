"""What stands before the SELECT list: EXPLAIN, other statements by their first word, and GoogleSQL's options.

The grammar is in `farthing.sql.reader`; here is what its words may be, and what is refused of them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from farthing.sql.asked import Options
from farthing.sql.text import SqlText, sized

if TYPE_CHECKING:
    from farthing.privacy.unit import PrivacyUnit
    from farthing.sql.text import Node


@lru_cache(maxsize=4)
def refuse_others(source: SqlText) -> None:
    """Refuse what no grammar here reads: long and deep texts, statements that are not a SELECT, and older spellings."""
    tokens = sized(source)
    words = [token.text.upper() for token in tokens]
    _refuse_commands(source, tokens, words)
    _refuse_old_names(source, tokens, words)


def read_options(source: SqlText, select: Node, unit: PrivacyUnit) -> Options:
    """Return what the OPTIONS of a SELECT set.

    Raises:
        UnsupportedQuery: an unknown option, a value it cannot have, another unit.

    >>> from farthing.privacy.unit import PrivacyUnit
    >>> from farthing.sql.text import syntax_tree
    >>> text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 2) COUNT(*) FROM t"
    >>> read_options(SqlText(text), syntax_tree(SqlText(text)), PrivacyUnit("uid")).max_groups
    2
    """
    clause, options = select.args.get("hint"), Options()
    if clause is None:
        return options
    kind = clause.name.upper()
    if kind != "DIFFERENTIAL_PRIVACY":
        advice = "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...)"
        raise source.refuse(f"SELECT WITH {kind[:40]}", advice, clause.this)
    for option in clause.expressions:
        if option.name.lower() == "privacy_unit_column":
            options = replace(options, unit=_unit(source, option.expression, unit))
        else:
            options = _with_number(source, option, options)
    return options


def _refuse_commands(source: SqlText, tokens: list[Any], words: list[str]) -> None:
    """Refuse a statement that is not a SELECT by its first word."""
    if tokens and words[0] not in _STARTS and (tokens[0].token_type.name in _COMMANDS or words[0] in _COMMANDS):
        raise source.refuse(f"{words[0]} statement", "ask with SELECT", word=words[0])
    if words[:2] == ["EXPLAIN", "ANALYZE"]:
        raise source.refuse("EXPLAIN ANALYZE", "write EXPLAIN SELECT ...: it gives the price and spends nothing", at=0)


def _refuse_old_names(source: SqlText, tokens: list[Any], words: list[str]) -> None:
    """Refuse the older spelling of GoogleSQL, saying the newer one."""
    for token, word, following in zip(tokens, words, [*words, ""][1:], strict=True):
        if word == "ANONYMIZATION":
            raise source.refuse("WITH ANONYMIZATION", "write WITH DIFFERENTIAL_PRIVACY OPTIONS (...)", at=token.start)
        if word.startswith("ANON_") and following == "(":
            newer = f"{word[5:]}(x, contribution_bounds_per_group => (lower, upper))"
            raise source.refuse(f"aggregate {word}", f"write {newer}", at=token.start)


def _with_number(source: SqlText, option: Node, options: Options) -> Options:
    """Return the options with one more, which is a number."""
    name = option.name.lower()
    if name not in _NUMBERS:
        advice = _INSTEAD.get(name, "the options are " + ", ".join(("privacy_unit_column", *_NUMBERS)))
        raise source.refuse(f"option {name[:40]}", advice, option.this)
    field, least, most, whole = _NUMBERS[name]
    if getattr(options, field) is not None:
        raise source.refuse(f"option {name} twice", "set each option once", option.this)
    value = _number(source, name, option.expression)
    if not (least < value < most) and not (name in _ZERO and abs(value) <= 0):
        advice = f"{name} is above {least:g} and below {most:g}"
        raise source.refuse(f"{name} = {value:g}", advice, option.expression)
    if whole and not value.is_integer():
        raise source.refuse(f"{name} = {value:g}", f"{name} is a whole number", option.expression)
    return Options(**{**asdict(options), field: int(value) if whole else value})


def _number(source: SqlText, name: str, node: Node) -> float:
    """Return the number that a value is."""
    from sqlglot import exp

    sign, digits = (-1.0, node.this) if isinstance(node, exp.Neg) else (1.0, node)
    try:
        value = float(digits.this) if isinstance(digits, exp.Literal) and not digits.is_string else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise source.refuse(f"{name} = {digits.name.upper()[:40]}", f"{name} is a number", node)
    return sign * value


def _unit(source: SqlText, node: Node, unit: PrivacyUnit) -> str:
    """Return the unit column, which is the session's."""
    if unit.column is None or node.name.casefold() != unit.column.casefold():
        chosen = "one row" if unit.column is None else repr(unit.column)
        advice = f"the owner of the table chose the privacy unit: {chosen}; leave the option out"
        raise source.refuse(f"privacy_unit_column = {node.name[:40]}", advice, node)
    return unit.column


_NUMBERS: Final[dict[str, tuple[str, float, float, bool]]] = {
    "epsilon": ("epsilon", 0.0, math.inf, False),
    "delta": ("delta", 0.0, 1.0, False),
    "max_groups_contributed": ("max_groups", 0.0, 2.0**31, True),
    "max_groups": ("max_groups", 0.0, 2.0**31, True),
    "max_rows": ("max_rows", 0.0, 2.0**31, True),
    "relative_error": ("relative", 0.0, 1.0, False),
    "absolute_error": ("absolute", 0.0, math.inf, False),
    "confidence": ("confidence", 0.0, 1.0, False),
    "max_epsilon": ("max_epsilon", 0.0, math.inf, False),
}
"""Option: the field it sets, what it is above and below, and whether it is whole."""

_ZERO: Final = frozenset({"delta", "relative_error"})
_INSTEAD: Final = {
    "max_rows_contributed": "that bounds the rows of a unit in all groups together; write max_groups_contributed "
    "and max_rows, the most rows in each group",
    "kappa": "write max_groups_contributed",
    "k_threshold": 'leave it out: keys="private" chooses the threshold',
    "min_privacy_units_per_group": 'leave it out: keys="private" chooses the threshold',
    "group_selection_strategy": 'leave it out: pass keys="private", or the public keys',
}
_STARTS: Final = frozenset({"SELECT", "WITH", "(", "FROM", "EXPLAIN"})
_COMMANDS: Final = frozenset(
    {"ALTER", "ANALYZE", "ATTACH", "CACHE", "CALL", "CHECKPOINT", "COMMAND", "COMMENT", "COMMIT", "COPY", "CREATE"}
    | {"DEALLOCATE", "DELETE", "DESCRIBE", "DETACH", "DROP", "EXECUTE", "EXPORT", "FETCH", "FORCE", "GRANT", "IMPORT"}
    | {"INSERT", "INSTALL", "KILL", "LOAD", "LOCK", "MERGE", "PIVOT", "PRAGMA", "PREPARE", "REFRESH", "REPLACE"}
    | {"RESET", "REVOKE", "ROLLBACK", "SET", "SHOW", "SUMMARIZE", "TRUNCATE", "UNCACHE", "UNPIVOT", "UPDATE", "USE"}
    | {"VACUUM", "VALUES"}
)
