"""The house rules that a syntax tree can tell: rounding, names, guarantee blocks, citations, seeds."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "farthing"
EXACT = ("privacy", "noise", "mechanisms")
FILES = sorted(SOURCE.rglob("*.py"))
EXACT_FILES = [path for path in FILES if path.relative_to(SOURCE).parts[0] in EXACT]

CITATION = re.compile(r"\b([A-Z][A-Za-z]+?[0-9]{2})\b(?=[,;\]])")
BRACKET = re.compile(r"\[[A-Z][A-Za-z]+[0-9]{2}[^\]]*\]")
PAGE = re.compile(r"docs/proofs/[a-z_.]+\.md")


def each(paths, excused=(), reason=""):
    """Return a parametrize mark over files; excused ones are known to fail, and tell when they no longer do."""
    cases = [
        pytest.param(path, marks=pytest.mark.xfail(reason=reason, strict=True)) if path.name in excused else path
        for path in paths
    ]
    return pytest.mark.parametrize("path", cases, ids=[str(path.relative_to(SOURCE)) for path in paths])


def tree(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path, kind):
    """Return the nodes of a kind in a file."""
    return [node for node in ast.walk(tree(path)) if isinstance(node, kind)]


def docstrings(path):
    """Return (name, docstring) of the module, its classes and its functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [(getattr(node, "name", path.stem), ast.get_docstring(node)) for node in nodes(path, kinds)]
    return [(name, text) for name, text in found if text]


def calls(path, name):
    """Return the lines that call a builtin of that name."""
    return [node.lineno for node in nodes(path, ast.Call) if isinstance(node.func, ast.Name) and node.func.id == name]


@each(EXACT_FILES)
def test_no_round_where_it_matters(path):
    """round() goes to even and hides a direction; rounding.py names one."""
    assert [] == calls(path, "round")


@each(EXACT_FILES)
def test_no_float_equality_where_it_matters(path):
    """No == or != with a float constant or a call of float(); 0 and 1 of exact numbers are written as integers."""
    floats = [
        node.lineno
        for node in nodes(path, ast.Compare)
        if any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        and any(is_float(side) for side in (node.left, *node.comparators))
    ]

    assert [] == floats


def is_float(node):
    """Tell whether an expression is surely a float: a constant, a negated one, float(...) or math.x."""
    match node:
        case ast.Constant(value=float()):
            return True
        case ast.UnaryOp(operand=operand):
            return is_float(operand)
        case ast.Call(func=ast.Name(id="float")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=attr)):
            return attr not in {"floor", "ceil", "isfinite", "isnan", "isinf", "gcd", "comb"}
    return False


@each(FILES)
def test_banned_names(path):
    """`alpha` is a Renyi order, an error bound and a test level at once; `eps` is no word for a parameter."""
    taken = {node.arg: node.lineno for node in nodes(path, ast.arg)}
    taken |= {node.id: node.lineno for node in nodes(path, ast.Name) if node.id == "alpha"}

    assert {} == {name: line for name, line in taken.items() if name in {"alpha", "eps", "sigma_squared", "stddev"}}


@each([path for path in FILES if path.parent.name != "noise"])
def test_scale_is_no_parameter_outside_of_noise(path):
    """Where a law is named the parameter is sigma, rate or b; `scale` alone could be any of them."""
    assert [] == [node.lineno for node in nodes(path, ast.arg) if node.arg == "scale"]


@each(FILES)
def test_seeded_bits_are_for_tests(path):
    """Nothing in the library draws from bits that anyone can repeat."""
    used = [node.lineno for node in nodes(path, ast.Name) if node.id == "seeded" and isinstance(node.ctx, ast.Load)]
    used += [node.lineno for node in nodes(path, ast.Attribute) if node.attr == "seeded"]
    used += [node.lineno for node in nodes(path, ast.alias) if node.name == "seeded"]
    used += [
        node.lineno
        for node in nodes(path, ast.Import | ast.ImportFrom)
        if any(alias.name.split(".")[0] == "random" for alias in node.names) or getattr(node, "module", "") == "random"
    ]

    assert [] == used


@each([path for path in FILES if path.name != "chance.py"])
def test_no_statistical_generator(path):
    """numpy.random and the like are predictable: noise and hash keys never come from them, but in simulations."""
    used = [node.lineno for node in nodes(path, ast.Attribute) if node.attr in {"random", "default_rng"}]
    used += [node.lineno for node in nodes(path, ast.ImportFrom) if node.module in {"random", "numpy.random"}]

    assert [] == used


@each(FILES)
def test_guarantee_blocks_are_whole(path):
    """Whoever guarantees says why it holds, what it assumes and what it rounds."""
    incomplete = {
        name: missing
        for name, text in docstrings(path)
        if "Guarantee:" in text
        and (missing := [label for label in ("Proof:", "Assumes:", "Rounds:") if label not in text])
    }

    assert {} == incomplete


def test_privacy_relevant_pieces_have_guarantees():
    """Mechanisms, losses, filters, samplers, the ledger and the ask carry a guarantee block."""
    named = {name for path in FILES for name, text in docstrings(path) if "Guarantee:" in text}
    pieces = {
        "GaussianMeasurements", "GaussianRefinement", "GeometricRelease", "LaplaceChain", "LaplaceRefinement",
        "ReducedAboveThreshold", "Pure", "Zcdp", "Gdp", "BoundedRange", "AdditiveFilter", "Budget",
        "rounded_gaussian", "two_sided_geometric", "KeyStream", "Ledger", "Query", "Keys", "Engine", "ask",
    }  # fmt: skip

    assert set() == pieces - named


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "docs" / "proofs").glob("*.md"))], ids=lambda path: path.name)
def test_proof_pages_exist(path):
    """Every proof page that is named is there."""
    named = set(PAGE.findall(path.read_text(encoding="utf-8")))

    assert set() == {page for page in named if not (ROOT / page).exists()}


def test_citations_are_in_the_references():
    """Every key in brackets, in code or proof, is an entry of docs/references.bib, and each entry names its year."""
    bib = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    known = set(re.findall(r"@\w+\{(\w+),", bib))
    cited = set()
    for path in [*FILES, *(ROOT / "docs" / "proofs").glob("*.md")]:
        for bracket in BRACKET.findall(path.read_text(encoding="utf-8")):
            cited |= set(CITATION.findall(bracket))
    cited -= {"Int64", "Float64"}  # type parameters

    assert set() == cited - known
    assert len(known) == bib.count("year ")
    assert all(str(2000 + int(key[-2:])) in bib for key in known)


def test_the_page_of_references_lists_what_the_file_does():
    """docs/references.md, for people, and docs/references.bib, for machines, have the same keys."""
    page = ROOT / "docs" / "references.md"
    bib = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- \[(\w+)\]", page.read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert set(re.findall(r"@\w+\{(\w+),", bib)) == listed


@each(FILES)
def test_nothing_swallows_errors(path):
    """No bare except, no `except Exception` that goes on: fail closed, there or in the line after the handlers."""
    swallowed = [
        node.lineno
        for node in nodes(path, ast.ExceptHandler)
        if (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        and node.lineno not in raised_after(path)
    ]

    assert [] == swallowed


def raised_after(path):
    """Return the handlers of the try blocks that a raise follows at once."""
    lists = [getattr(node, name, None) for node in ast.walk(tree(path)) for name in ("body", "orelse", "finalbody")]
    pairs = [pair for body in lists if isinstance(body, list) for pair in pairwise(body)]
    tries = [one for one, after in pairs if isinstance(one, ast.Try) and isinstance(after, ast.Raise)]
    return {handler.lineno for one in tries for handler in one.handlers}


@each(FILES)
def test_small_pieces(path):
    """Modules of about 400 lines at most, functions of 50 (about 30 is meant)."""
    assert 440 >= len(path.read_text(encoding="utf-8").splitlines())
    for function in nodes(path, ast.FunctionDef):
        body = function.body[1:] if ast.get_docstring(function) else function.body
        lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        assert 50 >= lines, f"{function.name}: {lines} lines"


KINDS = {
    "InvalidTarget", "InvalidBudget", "InvalidBounds", "InvalidKeys", "UnsupportedQuery", "BudgetExceeded",
    "LedgerError", "LedgerMismatch", "DataError", "NoiseError", "TargetMissed",
}  # fmt: skip


def test_errors_name_the_rule_and_the_next_step():
    """Every error that is raised on purpose carries both facts."""
    bare = []
    for path in FILES:
        for node in nodes(path, ast.Call):
            facts = {keyword.arg for keyword in node.keywords}
            if isinstance(node.func, ast.Name) and node.func.id in KINDS and None not in facts:
                bare += [f"{path.name}:{node.lineno}"] if {"rule", "next_step"} - facts else []

    assert [] == bare
