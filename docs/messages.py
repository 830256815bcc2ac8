"""Every error message of the source as a table of the site: the directive `messages` of docs/reference/errors.md."""  # noqa: INP001  no package

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[1] / "src" / "farthing"
REFUSALS = {"refuse", "refused", "_refused"}
"""Functions of the source that make an UnsupportedQuery of a construct and what to do instead."""


class Message(NamedTuple):
    """One message, with what an error says beside it."""

    what: str
    kind: str
    rule: str
    next_step: str
    module: str


def words(node: ast.expr | None, named: dict[str, ast.expr]) -> str:
    """Return a text as the source spells it, with dots for what is filled in; a module's own names are looked up."""
    node = node.value if isinstance(node, ast.FormattedValue) else node
    node = named.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words(value, named) or "..." for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (words(node.left, named) or "...") + (words(node.right, named) or "...")
    if isinstance(node, ast.IfExp):
        either = [words(node.body, named), words(node.orelse, named)]
        return " / ".join(each for each in either if each.strip(". ")) or "..."
    return "" if node is None else "..."


def messages() -> list[Message]:
    """Return the messages of the source in the order of their words."""
    errors = ast.parse((SOURCE / "errors.py").read_text(encoding="utf-8"))
    kinds = {node.name for node in ast.walk(errors) if isinstance(node, ast.ClassDef)} | REFUSALS
    paths = [path for path in SOURCE.rglob("*.py") if "diffix" not in path.parts]  # a simulated system has its own
    found = {message for path in paths for message in _of(path, kinds)}
    return sorted(found, key=lambda message: (re.sub(r"\W", "", message.what).lower(), message))


def _of(path: Path, kinds: set[str]) -> Iterator[Message]:
    """Yield the messages of one module."""
    module = path.relative_to(SOURCE).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = dict(_constants(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        kind = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        what = words(node.args[0], named)
        if kind in kinds and what.strip(". "):
            facts = {keyword.arg: words(keyword.value, named) for keyword in node.keywords}
            if kind in REFUSALS:
                kind, facts = (
                    "UnsupportedQuery",
                    {"next_step": words(node.args[1], named) if len(node.args) > 1 else ""} | facts,
                )
            yield Message(what, kind, facts.get("rule", ""), facts.get("next_step", ""), module)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the texts that a module names at its top."""
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant | ast.JoinedStr | ast.BinOp):
            yield target.id, node.value


def table() -> Any:
    """Return the directive, which is made only where the site is built."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Messages(SphinxDirective):
        """A definition for each message: its kind, its rule, what to do, and the module that says it."""

        has_content: ClassVar[bool] = False

        def run(self) -> list[Any]:
            """Return the list of definitions."""
            listed = nodes.definition_list(classes=["messages"])
            for message in messages():
                facts = {"rule": message.rule, "next": message.next_step}
                told = "; ".join(f"{name}: {fact}" for name, fact in facts.items() if fact.strip(". "))
                body = nodes.paragraph("", f"{told} " if told else "")
                body += [nodes.literal("", message.kind), nodes.Text(" in "), nodes.literal("", message.module)]
                term = nodes.term("", message.what)
                listed += nodes.definition_list_item("", term, nodes.definition("", body))
            return [listed]

    return Messages
