"""How the documentation is built: python -m sphinx -W -b html docs build/docs."""  # noqa: INP001  no package

from __future__ import annotations

import gc
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.search.en import SearchEnglish

if TYPE_CHECKING:
    from collections.abc import Iterator

gc.set_threshold(1_000_000, 20, 100)  # a build makes millions of objects that stay; looking for garbage takes long

project = "farthing"
author = "The farthing developers"
release = version = "0.1.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]
html_theme = "furo"
smartquotes = False  # an option keeps its two hyphens, and a message is found by the letters it is printed in
html_title = f"farthing {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # the signature keeps its types; a second list of them would only be longer
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False  # looking for them parses each function again
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_attr_annotations = False
napoleon_custom_sections = [("Keys", "params_style")]
default_role = "code"
add_module_names = False


class _English(SearchEnglish):
    """English, with each word's stem found once, not at each of its places."""

    def __init__(self, options: dict[str, str]) -> None:
        """Remember stems."""
        super().__init__(options)
        self.stem = cache(super().stem)


_LABEL = re.compile(r"^(Guarantee|Proof|Assumes|Rounds): ")
_PROOF = re.compile(r"docs/proofs/([\w.]+)\.md")
_SPECIAL = re.compile(r"([|*\\]|(?<=\w)_(?!\w))")


def setup(app: Any) -> None:
    """Read docstrings as they are written: plain text, with `code`, guarantee blocks and Google sections."""
    app.connect("autodoc-process-docstring", _as_written, priority=1)  # before napoleon
    sys.path.insert(0, str(Path(__file__).parent))
    import citations
    import messages

    app.add_directive("messages", messages.table())
    app.add_directive("citations", citations.listing())
    app.add_search_language(_English)
    app.connect("html-page-context", _navigate_by_titles, priority=1)  # before furo asks for the tree of pages


def _navigate_by_titles(app: Any, page: str, _template: str, context: dict[str, Any], _document: object) -> None:
    """Make the tree of pages, which each page shows, of titles: copying every name of the API took most of a build.

    With `-t checked`, where only warnings are looked for, the landing page alone has the tree: a fifth of a build.
    """
    whole = context.get("toctree")
    if whole is None:
        return
    if app.tags.has("checked") and page != app.config.root_doc:
        context["toctree"] = lambda **_: ""
        return

    def of_titles(**options: Any) -> Any:
        environment, contents = app.env, app.env.tocs
        environment.tocs = _titles(app)
        try:
            return whole(**options)
        finally:
            environment.tocs = contents

    context["toctree"] = of_titles


@cache
def _titles(app: Any) -> dict[str, Any]:
    """Return the title of each page, once a build: when pages are written, all were read."""
    return {page: _title(listed) for page, listed in app.env.tocs.items()}


def _title(listed: Any) -> Any:
    """Return the contents of a page without its headings and names, unless it lists other pages."""
    from sphinx.addnodes import toctree

    if next(listed.findall(toctree), None) is not None:
        return listed
    title = listed.copy()
    for item in listed.children:
        title += item.copy()
        title[-1] += item.children[0].deepcopy()
    return title


def _as_written(_app: object, what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Turn guarantee blocks into fields and leave letters alone that reStructuredText would read as markup."""
    if what in {"property", "attribute", "data"} and lines:
        lines[0] = lines[0].replace(": ", " - ", 1)  # napoleon would take what is before the colon for a type
    lines[:] = list(_fields([_escaped(line) for line in _outside_doctests(lines)]))


def _outside_doctests(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield every line with whether it is prose."""
    example = False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        yield line, not example


def _escaped(line: tuple[str, bool]) -> str:
    """Escape markup outside of backticks, in prose; link proof pages."""
    text, prose = line
    if not prose:
        return text
    parts = text.split("`")
    parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return _PROOF.sub(r":doc:`\1 </proofs/\1>`", "`".join(parts))


def _fields(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with the labels of guarantee blocks as fields."""
    before = ""
    for line in lines:
        labelled = _LABEL.match(line)
        if labelled and before.strip() and not before.startswith((":", " ")):
            yield ""
        shown = f":{labelled[1]}: {line[labelled.end() :]}" if labelled else line
        yield shown
        before = shown
