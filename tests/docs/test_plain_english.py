"""Plain English: the usual word in every page, docstring, help text and error, and first who a page is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sources import nodes

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "images" not in page.parts)]
LANDING = {ROOT / "README.md", DOCS / "index.md"}
SOURCES = sorted((ROOT / "src" / "farthing").rglob("*.py"))
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

USUAL = {
    r"dear(?:er|est|ly)?": "expensive",
    r"(?:is|are|was|were) no part of": "must be in; is not in",
    r"(?:may|must|can|will|shall) but": "may only",
    r"anew": "again",
    r"afresh": "again, from the beginning",
    r"for nothing": "free",
    r"lest": "so that not",
    r"ought(?: to)?": "should",
    r"at one's wish|on wish|at wish": "on request",
    r"to be had": "available",
    r"whosoever|whomsoever|howsoever|wheresoever": "whoever",
    r"thereby|whereby|whereof|wherefore|thereof|therein|hitherto|henceforth": "by this, of which, therefore",
    r"so-called": "called",
    r"middling": "medium",
    r"give(?:s|n)? (?:anybody|anyone|nobody|somebody|people|rows|a unit|units) away": "identifies",
    r"none but": "only",
    r"no sooner": "as soon as",
    r"nor (?:has|have|is|are|was|were|does|do|did|can|may|must|need)": "and ... not",
    r"be it": "whether it is",
    r"ere": "before",
    r"upon": "on",
    r"amongst|whilst|amidst": "among, while",
    r"in vain": "without success",
    r"forbid(?:s|den)? oneself": "must not",
    r"had better": "should",
    r"(?:can(?:not)?|could) be had": "is available, is possible",
    r"to be told": "to be shown",
    r"stands? out of the": "stands out from the",
    r"out of nothing": "from the beginning",
    r"side doors?": "side channel",
    r"smaller than life|than in life": "than it really is",
    r"buys? ranks": "allows rank targets only",
    r"not both and not neither": "either ... or",
    r"no such (?:number|size|order|price|claim|prior|spread)s?": "is out of range",
    r"these are no": "these are not",
    r"save for": "except",
    r"leav(?:e|ing|es) [\w=]+ away": "leave out",
    r"unasked": "without being asked",
    r"otherwise than": "differently from",
    r"(?<!there )(?:is|are) no (?!longer|more|less|better|worse|wider|larger|smaller|finer|lower)\w+": "is not a",
}
"""Idioms that a reader may have to think about, each with the word to use in its place."""


def sentences(page: Path) -> list[tuple[int, str]]:
    """Return the lines of a page outside of its examples, numbered."""
    blank = FENCE.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
    return list(enumerate(re.sub(r"`[^`\n]*`", "", blank).split("\n"), 1))


def texts(source: Path) -> list[tuple[int, str]]:
    """Return every string constant of a module with its line: docstrings, help, errors and words of answers."""
    return [
        (node.lineno, node.value)
        for node in nodes(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


ANY = re.compile("|".join(rf"\b(?:{idiom})\b" for idiom in USUAL), re.IGNORECASE)


def idioms(lines: list[tuple[int, str]]) -> list[str]:
    """Return where an idiom stands, and the usual word."""
    return [
        f"line {line}: {found[0]!r}: write {usual!r}"
        for line, text in lines
        if ANY.search(text)
        for idiom, usual in USUAL.items()
        for found in re.finditer(rf"\b(?:{idiom})\b", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_the_usual_word(page: Path) -> None:
    """No page of the docs holds an idiom of the list."""
    assert not idioms(sentences(page))


@pytest.mark.xdist_group("syntax")
def test_code_speaks_with_the_usual_word() -> None:
    """No docstring, help text or error holds an idiom of the list."""
    found = {str(source.relative_to(ROOT)): idioms(texts(source)) for source in SOURCES}
    assert not {name: places for name, places in found.items() if places}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in LANDING], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_begin_with_their_reader(page: Path) -> None:
    """Each page begins by saying who it is for and what they can do with it."""
    _, _, rest = page.read_text(encoding="utf-8").partition("\n")
    assert rest.lstrip("\n").startswith("*For ")


@pytest.mark.parametrize(
    "text",
    [
        "The dearest group pays.",
        "It is no part of (0, 1].",
        "asked for nothing",
        "Nor has it a key.",
        "It is no key.",
        "Leave rows away.",
    ],
)
def test_idioms_are_seen(text: str) -> None:
    """The list finds what it is for."""
    assert idioms([(1, text)])
