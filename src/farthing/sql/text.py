"""SQL text before it has meaning: size limits, one statement, positions, and the refusals that carry them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

Node: TypeAlias = Any
"""A node of a syntax tree; the class that all nodes share changed its name between versions."""

LONGEST: Final = 100_000
"""The most letters of a question; longer lists of values belong in the keys."""

DEEPEST: Final = 60
"""The most brackets, NOTs or signs within each other: parsers recurse."""

DIALECT: Final = "duckdb"
RULE: Final = "a question is one SELECT of COUNT(*) over the protected table, with WHERE and GROUP BY of columns"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a question, able to say where things are in it."""

    text: str

    def at(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of an offset, counted from 1."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def position(self, node: Node | None, word: str = "") -> tuple[int, int] | None:
        """Return where a word of the text, or else a node, begins."""
        offset = self._word(word)
        if offset is None and node is not None:
            starts = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
            offset = min(starts, default=None)
        return None if offset is None else self.at(offset)

    def _word(self, word: str) -> int | None:
        """Return the offset of a keyword outside of strings and comments, or None."""
        if not word:
            return None
        first = word.split(maxsplit=1)[0]
        return next((token.start for token in _tokens(self) if token.text.upper().partition(" ")[0] == first), None)

    def refuse(
        self,
        construct: str,
        next_step: str,
        node: Node | None = None,
        word: str = "",
        *,
        at: int | None = None,
    ) -> UnsupportedQuery:
        """Return the refusal of a construct, by name and with its place: an offset, a keyword or a node."""
        position = self.position(node, word) if at is None else self.at(at)
        return self._error(construct, position, next_step=next_step)

    def unreadable(self, description: str, offset: tuple[int, int] | None) -> UnsupportedQuery:
        """Return the refusal of text that is no SQL."""
        return self._error("syntax", offset, got=description)

    def _error(self, construct: str, position: tuple[int, int] | None, **facts: Any) -> UnsupportedQuery:
        """Return a refusal with its place in words and as a field."""
        what = "unreadable SQL" if construct == "syntax" else f"refused: {construct}"
        return UnsupportedQuery(what + _place(position), construct=construct, position=position, rule=RULE, **facts)

    @contextmanager
    def located(self, node: Node) -> Iterator[None]:
        """Give refusals that know no place the place of a node."""
        try:
            yield
        except UnsupportedQuery as problem:
            if problem.position is not None:
                raise
            position = self.position(node)
            raise UnsupportedQuery(
                problem.what + _place(position),
                construct=problem.construct,
                position=position,
                rule=problem.rule,
                got=problem.got,
                next_step=problem.next_step,
            ) from None


def _place(position: tuple[int, int] | None) -> str:
    """Return a place in words, "" when unknown."""
    return "" if position is None else f" (line {position[0]}, column {position[1]})"


def _tokens(source: Source) -> list[Any]:
    """Return the tokens of a text; refuse one that has none."""
    from sqlglot import Dialect
    from sqlglot.errors import SqlglotError

    try:
        return list(Dialect.get_or_raise(DIALECT).tokenize(source.text))
    except (SqlglotError, ValueError):
        raise source.unreadable("a text or comment that does not end", None) from None


def syntax_tree(source: Source) -> Node:
    """Return the tree of the only statement of a text.

    Raises:
        UnsupportedQuery: too long, too deep, empty, several statements, or no SQL.
    """
    from sqlglot import parse
    from sqlglot.errors import SqlglotError

    _check_size(source)
    try:
        trees = [tree for tree in parse(source.text, dialect=DIALECT) if tree is not None]
    except SqlglotError as problem:
        first = (getattr(problem, "errors", None) or [{}])[0]
        raise source.unreadable(str(first.get("description", "not SQL")), _start(first)) from None
    except RecursionError:
        raise source.refuse("deep nesting", "write it with fewer brackets") from None
    if len(trees) != 1:
        raise source.refuse(
            "several statements" if trees else "an empty question", "ask one SELECT at a time", word=";"
        )
    return trees[0]


def _start(error: dict[str, Any]) -> tuple[int, int] | None:
    """Return (line, column) of the word that the parser stumbled over; it reports the word's last letter."""
    if not error.get("line"):
        return None
    return error["line"], max(1, error["col"] - max(0, len(error.get("highlight") or "") - 1))


def _check_size(source: Source) -> None:
    """Refuse text that would make a parser work or recurse without end."""
    if len(source.text) > LONGEST:
        raise source.refuse("a question this long", f"use at most {LONGEST} letters; long lists of values go in keys=")
    if any("\ud800" <= letter <= "\udfff" for letter in source.text):
        raise source.refuse("broken text", "write valid Unicode")
    tokens = _tokens(source)
    if tokens and tokens[0].text.upper() not in _STARTS and tokens[0].token_type.name in _COMMANDS:
        raise source.refuse(f"{tokens[0].text.upper()} statement", "ask with SELECT", word=tokens[0].text.upper())
    _check_depth(source, tokens)


def _check_depth(source: Source, tokens: list[Any]) -> None:
    """Refuse brackets, signs and casts within each other beyond what is safe to recurse into."""
    depth = run = casts = 0
    before = ""
    for token in tokens:
        kind = token.token_type.name
        depth += (kind in _OPENING) - (kind in _CLOSING)
        run = run + 1 if kind == before else 0
        before = kind
        casts += kind in ("DCOLON", "L_BRACKET", "L_BRACE")
        if max(depth, run, casts) > DEEPEST:
            raise source.refuse("deep nesting", "write it with fewer brackets", at=token.start)


_STARTS: Final = frozenset({"SELECT", "WITH", "(", "FROM"})
_COMMANDS: Final = frozenset(
    {"ALTER", "ANALYZE", "ATTACH", "CACHE", "COMMAND", "COMMENT", "COMMIT", "COPY", "CREATE", "DELETE", "DESCRIBE"}
    | {"DETACH", "DROP", "EXECUTE", "EXPORT", "FETCH", "GRANT", "INSERT", "INSTALL", "KILL", "LOAD", "LOCK", "MERGE"}
    | {"PRAGMA", "REFRESH", "REPLACE", "RESET", "REVOKE", "ROLLBACK", "SET", "SHOW", "SUMMARIZE", "TRUNCATE"}
    | {"UNCACHE", "UPDATE", "USE", "VALUES"}
)
_OPENING: Final = frozenset({"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"})
_CLOSING: Final = frozenset({"R_PAREN", "R_BRACKET", "R_BRACE", "END"})
