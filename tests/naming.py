"""The names of the code, as text tells them: modules, public names, classes and imports, for the tests of words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from sources import parsed

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "farthing"
PAGE = ROOT / "docs" / "reference" / "words.md"

TERM = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)
PLAIN = re.compile(r"## Plain words\n.*?```text\n(.*?)```", re.DOTALL)


def split(name: str) -> list[str]:
    """Return the words of a name: `RefinedMax` is refined and max, `top_k` is top and k."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


@cache
def modules(source: Path = SOURCE) -> dict[str, ast.Module]:
    """Return every module by its dotted name below the package, as syntax."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = parsed(path)
    return found


def exported(trees: dict[str, ast.Module]) -> set[str]:
    """Return the names in `__all__` of the package, its packages and its modules."""
    names = set()
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and "__all__" in [getattr(target, "id", "") for target in node.targets]:
                names |= {item.value for item in getattr(node.value, "elts", []) if isinstance(item, ast.Constant)}
    return names


def words(trees: dict[str, ast.Module]) -> set[str]:
    """Return every word of a module's name or of a public name."""
    names = {part for name in trees for part in name.split(".")} | exported(trees)
    return {word for name in names for word in split(name)}


def terms(text: str) -> list[str]:
    """Return the words of the glossary's tables, in order; a row may tell several."""
    return [word for row in TERM.findall(text) for name in re.findall(r"`([^`]+)`", row) for word in split(name)]


def plain(text: str) -> list[str]:
    """Return the words that mean here what they mean anywhere."""
    found = PLAIN.search(text)
    return found[1].split() if found else []


def classes(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the modules in which a class of each name is defined."""
    found = defaultdict(list)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return dict(found)


def imports(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that each module imports: at its top, within functions and for types alike."""
    found: dict[str, set[str]] = {module: set() for module in trees}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "farthing":
                base = (node.module or "").partition(".")[2]
                for alias in node.names:
                    inner = f"{base}.{alias.name}".lstrip(".")
                    found[module].add(inner if inner in trees else base)
            elif isinstance(node, ast.Import):
                names = {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("farthing.")}
                found[module] |= names & set(trees)
        found[module] -= {module, ""}
    return found


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import one another, each sorted."""
    reach = {module: _reached(edges, module) for module in edges}
    groups = {
        tuple(sorted({module, *(other for other in reach[module] if module in reach.get(other, ()))}))
        for module in edges
        if module in reach[module]
    }
    return [list(group) for group in sorted(groups)]


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    """Return what a module imports, by whatever way."""
    seen: set[str] = set()
    left = [*edges[start]]
    while left:
        module = left.pop()
        if module not in seen:
            seen.add(module)
            left += edges.get(module, ())
    return seen


def filled(text: str, known: set[str]) -> str:
    """Return the glossary with the plain words that the code uses and no table explains."""
    left = sorted(known - set(terms(text)))
    lines, line = [], ""
    for word in left:
        if len(line) + len(word) > 110:
            lines.append(line.rstrip())
            line = ""
        line += f"{word} "
    lines.append(line.rstrip())
    start, end = PLAIN.search(text).span(1)  # type: ignore[union-attr]
    return text[:start] + "\n".join(lines) + "\n" + text[end:]
