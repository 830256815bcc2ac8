"""Where the source cites each paper, with the theorem: the directive `citations` of docs/reference/literature.md."""  # noqa: INP001  no package

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

SOURCE = Path(__file__).resolve().parents[1] / "src" / "farthing"
_CITED = re.compile(r"\[((?:[A-Z]\w*[A-Z]\d{2})[^\]\n]*)\]")
_PART = re.compile(r"([A-Z]\w*[A-Z]\d{2})(?:, (.*))?")


def citations() -> dict[str, dict[str, list[str]]]:
    """Return for each key of a paper the modules that cite it, with the theorems that each names."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for path in sorted(SOURCE.rglob("*.py")):
        for cited in _CITED.findall(path.read_text(encoding="utf-8")):
            for part in cited.split(";"):
                one = _PART.fullmatch(part.strip())
                if one is not None:
                    theorems = found[one[1]].setdefault(path.relative_to(SOURCE).as_posix(), [])
                    theorems += [one[2]] if one[2] and one[2] not in theorems else []
    return found


def listing() -> Any:
    """Return the directive, which is made only where the site is built."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Citations(SphinxDirective):
        """A definition for each paper: the modules that cite it, and what of it."""

        has_content: ClassVar[bool] = False

        def run(self) -> list[Any]:
            """Return the list of definitions."""
            listed = nodes.definition_list(classes=["citations"])
            for key, modules in sorted(citations().items()):
                told = nodes.bullet_list()
                for module, theorems in modules.items():
                    line = nodes.paragraph("", "", nodes.literal("", module))
                    line += nodes.Text(f": {', '.join(theorems)}" if theorems else "")
                    told += nodes.list_item("", line)
                listed += nodes.definition_list_item("", nodes.term("", key), nodes.definition("", told))
            return [listed]

    return Citations
