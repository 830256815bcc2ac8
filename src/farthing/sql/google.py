"""What stands before the SELECT list and no parser reads: EXPLAIN, and GoogleSQL's WITH DIFFERENTIAL_PRIVACY.

Both are cut out of the text, every other letter keeping its place, so that what the parser says of the rest is true of
the text as it was asked.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from farthing.sql.asked import Options
from farthing.sql.text import SqlText, sized

if TYPE_CHECKING:
    from farthing.privacy.unit import PrivacyUnit


@dataclass(frozen=True, slots=True)
class Opened:
    """A text without what stands before its SELECT list.

    Attributes:
        text: what is left for the parser, blanks in place of what was cut.
        explain: whether it began with EXPLAIN.
        options: what its OPTIONS set.
    """

    text: str
    explain: bool
    options: Options


def opened(source: SqlText, unit: PrivacyUnit) -> Opened:
    """Return a text without EXPLAIN and OPTIONS, and what they said.

    Raises:
        UnsupportedQuery: a statement that is not a SELECT, an unknown option, a value it cannot have, another unit.

    >>> from farthing.privacy.unit import PrivacyUnit
    >>> text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 2) COUNT(*) FROM t"
    >>> opened(SqlText(text), PrivacyUnit("uid")).options.max_groups
    2
    """
    tokens = sized(source)
    words = [token.text.upper() for token in tokens]
    _refuse_commands(source, tokens, words)
    _refuse_old_names(source, tokens, words)
    first = 1 if words[:1] == ["EXPLAIN"] else 0
    cuts = [(0, 1)] if first else []
    options = Options()
    if words[first : first + 2] == ["SELECT", "WITH"]:
        end, options = _Clause(source, tokens, words, unit).read(first + 2)
        cuts.append((first + 1, end))
    return Opened(_without(source.text, tokens, cuts), bool(first), options)


def _without(text: str, tokens: list[Any], cuts: list[tuple[int, int]]) -> str:
    """Return a text with blanks in place of some runs of tokens; lines stay lines."""
    for start, end in cuts:
        low, high = tokens[start].start, tokens[end - 1].end + 1
        blank = "".join(letter if letter == "\n" else " " for letter in text[low:high])
        text = text[:low] + blank + text[high:]
    return text


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


@dataclass(frozen=True, slots=True)
class _Clause:
    """Reads WITH DIFFERENTIAL_PRIVACY OPTIONS (name = value, ...)."""

    source: SqlText
    tokens: list[Any]
    words: list[str]
    unit: PrivacyUnit

    def read(self, at: int) -> tuple[int, Options]:
        """Return the place after the clause, and what it set; `at` is that of the word after WITH."""
        if self._word(at) != "DIFFERENTIAL_PRIVACY":
            raise self._refuse(
                f"SELECT WITH {self._word(at)[:40]}", at, "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...)"
            )
        at += 1
        if self._word(at) != "OPTIONS":
            return at, Options()
        self._expect("(", at + 1)
        at, options = at + 2, Options()
        while self._word(at) != ")":
            self._expect("=", at + 1)
            options, after = self._option(options, self._word(at).lower(), at)
            if self._word(after) != ")":
                self._expect(",", after)
                after += 1
            at = after
        return at + 1, options

    def _option(self, options: Options, name: str, at: int) -> tuple[Options, int]:
        """Return the options with one more, and the place after it."""
        if name == "privacy_unit_column":
            return self._unit(options, at + 2)
        if name not in _NUMBERS:
            advice = _INSTEAD.get(name, "the options are " + ", ".join(("privacy_unit_column", *_NUMBERS)))
            raise self._refuse(f"option {name[:40]}", at, advice)
        field, least, most, whole = _NUMBERS[name]
        if getattr(options, field) is not None:
            raise self._refuse(f"option {name} twice", at, "set each option once")
        value, after = self._number(name, at + 2)
        if not (least < value < most) and not (name in _ZERO and abs(value) <= 0):
            raise self._refuse(f"{name} = {value:g}", at + 2, f"{name} is above {least:g} and below {most:g}")
        if whole and not value.is_integer():
            raise self._refuse(f"{name} = {value:g}", at + 2, f"{name} is a whole number")
        return Options(**{**asdict(options), field: int(value) if whole else value}), after

    def _number(self, name: str, at: int) -> tuple[float, int]:
        """Return a number and the place after it."""
        sign = -1.0 if self._word(at) == "-" else 1.0
        at += self._word(at) in ("-", "+")
        point = "." if self._word(at) == "." else ""
        at += len(point)
        try:
            value = float(point + self._word(at))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self._refuse(f"{name} = {self._word(at)[:40]}", at, f"{name} is a number")
        return sign * value, at + 1

    def _unit(self, options: Options, at: int) -> tuple[Options, int]:
        """Return the options with the unit column, which is the session's, and the place after it."""
        parts = [at]
        while self._word(parts[-1] + 1) == "." and parts[-1] + 2 < len(self.tokens):
            parts.append(parts[-1] + 2)
        named = self.tokens[parts[-1]].text if parts[-1] < len(self.tokens) else ""
        if self.unit.column is None or named.casefold() != self.unit.column.casefold():
            unit = "one row" if self.unit.column is None else repr(self.unit.column)
            raise self._refuse(
                f"privacy_unit_column = {named[:40]}",
                at,
                f"the owner of the table chose the privacy unit: {unit}; leave the option out",
            )
        return replace(options, unit=self.unit.column), parts[-1] + 1

    def _word(self, at: int) -> str:
        """Return a word in capitals, "" after the end."""
        return self.words[at] if at < len(self.words) else ""

    def _expect(self, wanted: str, at: int) -> None:
        """Refuse any other word."""
        if self._word(at) != wanted:
            offset = self.tokens[min(at, len(self.tokens) - 1)].start
            raise self.source.unreadable(f"expected {wanted} in OPTIONS (name = value, ...)", self.source.at(offset))

    def _refuse(self, construct: str, at: int, advice: str) -> Exception:
        """Return a refusal with the place of a token."""
        return self.source.refuse(construct, advice, at=self.tokens[min(at, len(self.tokens) - 1)].start)


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
