"""SQL text before it has meaning: size limits, one statement, positions, and the refusals that carry them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from farthing.errors import FarthingError, UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

Node: TypeAlias = Any
"""A node of a syntax tree; the class that all nodes share changed its name between versions."""

LONGEST: Final = 250_000
"""The most letters of a question; longer lists of values belong in the keys."""

DEEPEST: Final = 60
"""The most brackets, NOTs or signs within each other: parsers recurse."""

DEEPEST_TREE: Final = 150
"""The most levels of a syntax tree, chains of AND and OR counted once: what translates it recurses."""

_SHORT: Final = 500
"""Letters of a question whose tree takes 65 kilobytes or so at the most: a thousand of them are kept."""

RULE: Final = (
    "a question is one SELECT of aggregates over rows of the protected table, with WHERE, GROUP BY, HAVING, ORDER BY "
    "and LIMIT"
)


@dataclass(frozen=True, slots=True)
class SqlText:
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
        return next((token.start for token in tokens(self) if token.text.upper().partition(" ")[0] == first), None)

    def refuse(
        self,
        construct: str,
        next_step: str,
        node: Node | None = None,
        word: str = "",
        *,
        at: int | None = None,
        got: object = "",
        rule: str = RULE,
    ) -> UnsupportedQuery:
        """Return the refusal of a construct, by name and with its place: an offset, a keyword or a node."""
        position = self.position(node, word) if at is None else self.at(at)
        return self._error(construct, position, next_step=next_step, got=got, rule=rule)

    def unreadable(self, description: str, offset: tuple[int, int] | None) -> UnsupportedQuery:
        """Return the refusal of text that is not SQL."""
        advice = "look at that place, and just before it"
        return self._error("syntax", offset, got=description, next_step=advice, rule=RULE)

    def _error(self, construct: str, position: tuple[int, int] | None, **facts: Any) -> UnsupportedQuery:
        """Return a refusal with its place in words and as a field."""
        what = "unreadable SQL" if construct == "syntax" else f"refused: {construct}"
        return UnsupportedQuery(what + place(position), construct=construct, position=position, **facts)

    @contextmanager
    def located(self, node: Node) -> Iterator[None]:
        """Give errors that know no place the place of a node."""
        try:
            yield
        except UnsupportedQuery as problem:
            if problem.position is not None:
                raise
            position = self.position(node)
            raise UnsupportedQuery(
                problem.what + place(position),
                construct=problem.construct,
                position=position,
                rule=problem.rule,
                got=problem.got,
                next_step=problem.next_step,
            ) from None
        except FarthingError as problem:
            raise type(problem)(
                problem.what + place(self.position(node)),
                rule=problem.rule,
                got=problem.got,
                next_step=problem.next_step,
                missing=problem.missing,
            ) from None


def place(position: tuple[int, int] | None) -> str:
    """Return a place in words, "" when unknown."""
    return "" if position is None else f" (line {position[0]}, column {position[1]})"


@lru_cache(maxsize=4)
def tokens(source: SqlText) -> list[Any]:
    """Return the tokens of a text; refuse one that has none."""
    from sqlglot.errors import SqlglotError

    from farthing.sql.reader import READER

    try:
        return list(READER.tokenize(source.text))
    except (SqlglotError, ValueError):
        raise source.unreadable("a text or comment that does not end", None) from None


def sized(source: SqlText) -> list[Any]:
    """Return the tokens of a text that no parser would work or recurse on without end.

    Raises:
        UnsupportedQuery: too long, too deep, or text that does not end.
    """
    if len(source.text) > LONGEST:
        advice = f"use at most {LONGEST:,} letters; long lists of values go in keys="
        raise source.refuse("a question this long", advice, at=LONGEST)
    broken = next((place for place, letter in enumerate(source.text) if "\ud800" <= letter <= "\udfff"), None)
    if broken is not None:
        raise source.refuse("broken text", "write valid Unicode", at=broken)
    found = tokens(source)
    _check_depth(source, found)
    return found


def syntax_tree(source: SqlText) -> Node:
    """Return the tree of the only statement of a text; the latest are kept: a workload reads all before it asks one.

    Whoever reads a tree leaves it as it is.

    Raises:
        UnsupportedQuery: empty, several statements, or no SQL.
    """
    return _short_tree(source) if len(source.text) <= _SHORT else _long_tree(source)


def _parsed(source: SqlText) -> Node:
    """Return the tree of the only statement of a text."""
    from sqlglot.errors import SqlglotError

    from farthing.sql.reader import READER

    try:
        trees = [tree for tree in READER.parser().parse(tokens(source), source.text) if tree is not None]
    except SqlglotError as problem:
        first = (getattr(problem, "errors", None) or [{}])[0]
        raise source.unreadable(str(first.get("description", "not SQL")), _start(first)) from None
    except ValueError:  # from the parser's own reading of numbers, as in a path of JSON
        raise source.unreadable("not SQL", None) from None
    except RecursionError:
        raise _too_deep(source, _deepest(source)) from None
    if len(trees) != 1:
        raise source.refuse(
            "several statements" if trees else "an empty question", "ask one SELECT at a time", word=";"
        )
    _check_tree(source, trees[0])
    return trees[0]


_long_tree = lru_cache(maxsize=4)(_parsed)
_short_tree = lru_cache(maxsize=1000)(_parsed)


def _start(error: dict[str, Any]) -> tuple[int, int] | None:
    """Return (line, column) of the word that the parser stumbled over; it reports the word's last letter."""
    if not error.get("line"):
        return None
    return error["line"], max(1, error["col"] - max(0, len(error.get("highlight") or "") - 1))


def _check_depth(source: SqlText, found: list[Any]) -> None:
    """Refuse brackets, signs and casts within each other beyond what is safe to recurse into."""
    depth = run = casts = 0
    before = ""
    for token in found:
        kind = token.token_type.name
        depth += (kind in _OPENING) - (kind in _CLOSING)
        run = run + 1 if kind == before else 0
        before = kind
        casts = 0 if kind in _PAUSES else casts + (kind in _POSTFIX)
        if max(depth, run, casts) > DEEPEST:
            raise _too_deep(source, token.start)


def _deepest(source: SqlText) -> int:
    """Return where brackets are deepest."""
    depth, deepest = 0, (0, 0)
    for token in tokens(source):
        kind = token.token_type.name
        depth += (kind in _OPENING) - (kind in _CLOSING)
        deepest = max(deepest, (depth, -token.start))
    return -deepest[1]


def _check_tree(source: SqlText, tree: Node) -> None:
    """Refuse a tree of more levels than is safe to recurse into; chains of one connective are one level."""
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST_TREE:
            raise _too_deep(source, node=node.parent)  # a leaf, as NULL, may not know its place
        chain = type(node).__name__ in ("And", "Or")
        waiting += [(child, depth + (not chain or type(child) is not type(node))) for child in node.iter_expressions()]


def _too_deep(source: SqlText, offset: int | None = None, node: Node | None = None) -> UnsupportedQuery:
    """Return the refusal of nesting that nobody wrote by hand."""
    return source.refuse("deep nesting", "write it with fewer brackets, or in shorter parts", node, at=offset)


_OPENING: Final = frozenset({"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"})
_CLOSING: Final = frozenset({"R_PAREN", "R_BRACKET", "R_BRACE", "END"})
_POSTFIX: Final = frozenset({"DCOLON", "L_BRACKET", "L_BRACE"})
_PAUSES: Final = frozenset({"COMMA", "AND", "OR", "R_PAREN"})
