"""Where pages lie and what they are called: four kinds of pages in four folders, and no two names that look alike."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(page.relative_to(DOCS) for page in DOCS.rglob("*.md"))
FOLDERS = {"tutorials", "how-to", "reference", "explanation", "proofs"}
TOP = {"index", "architecture", "known-limits", "figures", "threat-model"}
"""What lies in no folder: the landing page, and what people quote most."""


def letters_apart(one: str, other: str) -> int:
    """Return how many letters must be changed, added or removed to make one word of the other."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row, before = [i], row
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]


def alike(names: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of names that a reader may confuse: equal, or at most two letters apart (one, if very short)."""
    pairs = [(pair, min(2, len(min(pair, key=len)) // 3)) for pair in combinations(names, 2)]
    near = [(pair, most) for pair, most in pairs if abs(len(pair[0]) - len(pair[1])) <= most]
    return [pair for pair, most in near if letters_apart(*pair) <= most]


def test_every_page_is_of_one_kind():
    """A page is a tutorial, a how-to, reference, explanation or proof; only the few that all need are at the top."""
    assert {page.parts[0] for page in PAGES if len(page.parts) > 1} <= FOLDERS
    assert {page.stem for page in PAGES if len(page.parts) == 1} == TOP


def test_no_two_pages_have_names_that_look_alike():
    """Whoever remembers the name of a page finds that page, and not another one."""
    assert [] == alike([page.stem for page in PAGES if page.stem != "index"])


@pytest.mark.parametrize("planted", ["limits", "limit", "ledgersql", "how-to"])
def test_a_name_that_looks_alike_is_seen(planted):
    """The same name in another folder, a letter less and two letters more are found; other names are not."""
    found = alike([planted, "limits", "ledgers", "csv", "cli"])

    assert [] != found or planted == "how-to"
    assert {name for pair in found for name in pair} <= {planted, "limits", "ledgers"}


GALLERY = (DOCS / "reference" / "gallery.md").read_text(encoding="utf-8")
SOURCE = DOCS.parent / "src" / "farthing"


def test_the_gallery_shows_every_picture():
    """Each picture of the docs is in the gallery, beside the script that draws it; each script is there."""
    pictures = {path.name for path in (DOCS / "images").iterdir() if path.suffix in {".svg", ".png"}}

    assert pictures == set(re.findall(r"\]\(\.\./images/([\w-]+\.\w+)\)", GALLERY))
    assert [] == [
        name for name in re.findall(r"`((?:docs|bench)/[\w/]+\.py)`", GALLERY) if not (DOCS.parent / name).is_file()
    ]


def test_the_gallery_names_every_command_that_draws():
    """Each command that draws is in the gallery, with its option."""
    drawing = {path.stem for path in (SOURCE / "cli" / "run").glob("*.py") if "charts.save(" in path.read_text()}

    assert drawing >= {"groups", "select", "attack", "compare"}
    assert drawing | {"ask", "demo"} <= set(re.findall(r"`farthing (\w+)[^`]* --chart", GALLERY))
