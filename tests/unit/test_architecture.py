"""The house rules that a syntax tree can tell: rounding, names, guarantee blocks, citations, seeds."""

import ast
import re
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from sources import nodes as every_node
from sources import parsed as tree

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "farthing"
EXACT = ("privacy", "noise", "mechanisms")
FILES = sorted(SOURCE.rglob("*.py"))
EXACT_FILES = [path for path in FILES if path.relative_to(SOURCE).parts[0] in EXACT]

pytestmark = pytest.mark.xdist_group("syntax")  # the files are parsed once

CITATION = re.compile(r"\b([A-Z][A-Za-z]+?[0-9]{2})\b(?=[,;\]])")
BRACKET = re.compile(r"\[[A-Z][A-Za-z]+[0-9]{2}[^\]]*\]")
PAGE = re.compile(r"docs/proofs/[\w.-]+\.md")


def nodes(path, kind):
    """Return the nodes of a kind in a file."""
    return [node for node in every_node(path) if isinstance(node, kind)]


def told(paths, broken):
    """Return, by file, the places that break a rule; files that keep it are left out."""
    return {str(path.relative_to(ROOT)): found for path in paths if (found := broken(path))}


def docstrings(path):
    """Return (name, docstring) of the module, its classes and its functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [(getattr(node, "name", path.stem), ast.get_docstring(node)) for node in nodes(path, kinds)]
    return [(name, text) for name, text in found if text]


def calls(path, name):
    """Return the lines that call a builtin of that name."""
    return [node.lineno for node in nodes(path, ast.Call) if isinstance(node.func, ast.Name) and node.func.id == name]


def test_no_round_where_it_matters():
    """round() goes to even and hides a direction; rounding.py names one."""
    assert {} == told(EXACT_FILES, lambda path: calls(path, "round"))


def test_no_float_equality_where_it_matters():
    """No == or != with a float constant or a call of float(); 0 and 1 of exact numbers are written as integers."""

    def floats(path):
        return [
            node.lineno
            for node in nodes(path, ast.Compare)
            if any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
            and any(is_float(side) for side in (node.left, *node.comparators))
        ]

    assert {} == told(EXACT_FILES, floats)


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


def test_banned_names():
    """`alpha` is a Renyi order, an error bound and a test level at once; `eps` is no word for a parameter."""

    def taken(path):
        names = {node.arg: node.lineno for node in nodes(path, ast.arg)}
        names |= {node.id: node.lineno for node in nodes(path, ast.Name) if node.id == "alpha"}
        return {name: line for name, line in names.items() if name in {"alpha", "eps", "sigma_squared", "stddev"}}

    assert {} == told(FILES, taken)


def test_scale_is_no_parameter_outside_of_noise():
    """Where a law is named the parameter is sigma, rate or b; `scale` alone could be any of them."""
    outside = [path for path in FILES if path.parent.name != "noise"]

    assert {} == told(outside, lambda path: [node.lineno for node in nodes(path, ast.arg) if node.arg == "scale"])


def test_seeded_bits_are_for_tests():
    """Nothing in the library draws from bits that anyone can repeat."""

    def used(path):
        found = [
            node.lineno for node in nodes(path, ast.Name) if node.id == "seeded" and isinstance(node.ctx, ast.Load)
        ]
        found += [node.lineno for node in nodes(path, ast.Attribute) if node.attr == "seeded"]
        found += [node.lineno for node in nodes(path, ast.alias) if node.name == "seeded"]
        return found + [
            node.lineno
            for node in nodes(path, ast.Import | ast.ImportFrom)
            if any(alias.name.split(".")[0] == "random" for alias in node.names)
            or getattr(node, "module", "") == "random"
        ]

    assert {} == told(FILES, used)


def test_no_statistical_generator():
    """numpy.random and the like are predictable: noise and hash keys never come from them, but in simulations."""

    def used(path):
        found = [node.lineno for node in nodes(path, ast.Attribute) if node.attr in {"random", "default_rng"}]
        return found + [n.lineno for n in nodes(path, ast.ImportFrom) if n.module in {"random", "numpy.random"}]

    assert {} == told([path for path in FILES if path.name != "chance.py"], used)


def test_guarantee_blocks_are_whole():
    """Whoever guarantees says why it holds, what it assumes and what it rounds."""

    def incomplete(path):
        return {
            name: missing
            for name, text in docstrings(path)
            if "Guarantee:" in text
            and (missing := [label for label in ("Proof:", "Assumes:", "Rounds:") if label not in text])
        }

    assert {} == told(FILES, incomplete)


def guaranteed(node):
    """Tell whether a piece, or a method of it, carries a guarantee block."""
    return any(
        "Guarantee:" in (ast.get_docstring(inner) or "")
        for inner in ast.walk(node)
        if isinstance(inner, ast.ClassDef | ast.FunctionDef)
    )


def names_in(node):
    """Return the names that a piece uses."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def pieces(module):
    """Return the classes and functions of a module by name."""
    return {node.name: node for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def without_guarantee(module):
    """Return the public pieces of a module that draw noise and neither guarantee anything nor serve one that does.

    A piece draws noise if it calls a function of `farthing.noise`, or a piece of its own module that does.
    """
    noise = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("farthing.noise")
        for alias in node.names
        if alias.name.islower() and alias.name != "system_bits"  # functions: a class describes a law and draws nothing
    }
    used = {name: names_in(node) for name, node in pieces(module).items()}
    draws = {name for name in used if used[name] & noise}
    for _ in used:
        draws |= {name for name in used if used[name] & draws}
    sure = {name for name in used if guaranteed(pieces(module)[name])}
    for _ in used:  # a helper of a piece that guarantees is spoken for
        sure |= {name for name in used if any(name in used[other] for other in sure - {name})}
    return sorted(name for name in draws - sure if not name.startswith("_"))


def test_mechanisms_guarantee():
    """Everything public in `mechanisms` that draws noise carries a guarantee block, or serves a piece that does."""
    files = [path for path in FILES if path.is_relative_to(SOURCE / "mechanisms")]

    assert {} == told(files, lambda path: without_guarantee(tree(path)))


def test_a_mechanism_without_a_guarantee_is_seen():
    """The rule is not empty: the same module passes with a block and is named without it, by a helper's way too."""
    source = """
from farthing.noise.gaussian import rounded_gaussian
def _noisy(x): return rounded_gaussian(x)
class Mean:
    {block}
    def release(self): return _noisy(1)
"""

    assert ["Mean"] == without_guarantee(ast.parse(source.format(block='"""Release."""')))
    assert [] == without_guarantee(ast.parse(source.format(block='"""Release.\n\n    Guarantee: one."""')))


def test_samplers_guarantee():
    """Every public function that turns bits into noise carries a guarantee block."""

    def bare(path):
        return [
            name
            for name, node in pieces(tree(path)).items()
            if isinstance(node, ast.FunctionDef)
            and not name.startswith("_")
            and "bits" in {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]}
            and not guaranteed(node)
        ]

    assert {} == told([path for path in FILES if path.is_relative_to(SOURCE / "noise")], bare)


def test_losses_and_filters_guarantee():
    """Every loss that can be booked, and everything that spends, carries a guarantee block."""

    def bare(path):
        return [
            name
            for name, node in pieces(tree(path)).items()
            if isinstance(node, ast.ClassDef)
            and not names_in(ast.Tuple(node.bases)) & {"Protocol"}
            and {"spend", "for_group"} & {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
            and name not in {"Loss", "Booked"}
            and not guaranteed(node)
        ]

    files = [path for path in FILES if path.is_relative_to(SOURCE / "privacy")]
    assert {} == told(files, bare)


def test_whoever_settles_guarantees():
    """Every module that books a price, by `settle` of a ledger, says what is guaranteed and where it is proved."""

    def settles(path):
        attributes = [node.func for node in nodes(path, ast.Call) if isinstance(node.func, ast.Attribute)]
        return any(found.attr == "settle" for found in attributes) and not guaranteed(tree(path))

    assert {} == told([path for path in FILES if path.is_relative_to(SOURCE / "session")], settles)


def test_proof_pages_exist():
    """Every proof page that is named is there."""

    def missing(path):
        named = set(PAGE.findall(path.read_text(encoding="utf-8")))
        return sorted(page for page in named if not (ROOT / page).exists())

    assert {} == told([*FILES, *sorted((ROOT / "docs" / "proofs").glob("*.md"))], missing)


ENTRY = re.compile(r"^@\w+\{(\w+),(.*?)^\}", re.MULTILINE | re.DOTALL)
YEAR = re.compile(r"^\s*year\s*=\s*\{(\d{4})\}", re.MULTILINE)


def test_citations_are_in_the_references():
    """Every key in brackets, in code or proof, is an entry of literature.bib, whose own year the key ends with."""
    entries = dict(ENTRY.findall((ROOT / "docs" / "reference" / "literature.bib").read_text(encoding="utf-8")))
    cited = set()
    for path in [*FILES, *(ROOT / "docs" / "proofs").glob("*.md")]:
        for bracket in BRACKET.findall(path.read_text(encoding="utf-8")):
            cited |= set(CITATION.findall(bracket))
    cited -= {"Int64", "Float64"}  # type parameters

    assert set() == cited - set(entries)
    assert {} == {
        key: years for key, text in entries.items() if (years := YEAR.findall(text)) != [century(key) + key[-2:]]
    }


def century(key):
    """Return the century of a reference: none is older than 1950."""
    return "19" if int(key[-2:]) >= 50 else "20"


def test_the_page_of_references_lists_what_the_file_does():
    """docs/reference/literature.md, for people, and docs/reference/literature.bib, for machines, have the same keys."""
    page = ROOT / "docs" / "reference" / "literature.md"
    bib = (ROOT / "docs" / "reference" / "literature.bib").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- \[(\w+)\]", page.read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert set(re.findall(r"@\w+\{(\w+),", bib)) == listed


def ends_in_an_error(path):
    """Return the lines of handlers after which nothing but an error of ours is raised, outside of any handler."""
    found = set()
    for node in every_node(path):
        body = getattr(node, "body", None)
        for first, second in pairwise(body if isinstance(body, list) else []):
            if isinstance(first, ast.Try) and isinstance(second, ast.Raise):
                found |= {handler.lineno for handler in first.handlers}
    return found


RUNS_ALONE = "src/farthing/mechanisms/best_of_many.py"
"""What a private candidate raises is its result, nothing: told as an error it would tell of a row and of a run."""


def test_nothing_swallows_errors():
    """No bare except, no `except Exception` that goes on: fail closed."""

    def swallowed(path):
        return [
            node.lineno
            for node in nodes(path, ast.ExceptHandler)
            if (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
            )
            and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            and node.lineno not in ends_in_an_error(path)
        ]

    found = told(FILES, swallowed)

    assert {RUNS_ALONE} == set(found)
    assert 1 == len(found[RUNS_ALONE])


def test_small_pieces():
    """Modules of about 400 lines at most, functions of 50 (about 30 is meant)."""

    def large(path):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        found = [f"{lines} lines"] if lines > 440 else []
        for function in nodes(path, ast.FunctionDef):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            found += [f"{function.name}: {length} lines"] if length > 50 else []
        return found

    assert {} == told(FILES, large)


def error_classes():
    """Return the names of all errors that farthing raises."""
    return {name for name, node in pieces(tree(SOURCE / "errors.py")).items() if isinstance(node, ast.ClassDef)}


def test_errors_name_the_rule_and_the_next_step():
    """Every error that is raised on purpose carries both facts."""

    def bare(path):
        return [
            node.lineno
            for node in nodes(path, ast.Call)
            if isinstance(node.func, ast.Name)
            and node.func.id in error_classes()
            and None not in (facts := {keyword.arg for keyword in node.keywords})
            and {"rule", "next_step"} - facts
        ]

    assert {} == told(FILES, bare)


BACKENDS = sorted(path for engine in SOURCE.glob("engines/*/engine.py") for path in engine.parent.glob("*.py"))


def annotated(function, name):
    """Return the parameters of a function that are of a type, by its name."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {
        each.arg
        for each in arguments
        if each.annotation is not None and any(getattr(n, "id", "") == name for n in ast.walk(each.annotation))
    }


def own_readings(path):
    """Return where a backend does anything with a question but to hand it to `bounded`."""
    found = []
    for function in nodes(path, ast.FunctionDef):
        questions = annotated(function, "Query")
        handed = {
            id(argument)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bounded"
            for argument in node.args
        }
        found += [
            f"{function.name}, line {node.lineno}: {node.id}"
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id in questions and id(node) not in handed
        ]
    return found


def test_backends_read_nothing_of_a_question():
    """What drops rows before what is said once, in `engines.bounded`: a backend is given that, and no Query."""
    from farthing.engines.bounded import BoundedQuery

    def unknown(path):
        attributes = {
            node.attr
            for node in nodes(path, ast.Attribute)
            if (isinstance(node.value, ast.Name) and node.value.id in {"query", "asked"})
            or (isinstance(node.value, ast.Attribute) and node.value.attr == "_query")
        }
        return sorted(attributes - set(dir(BoundedQuery)))

    def imports(path):
        froms = [node for node in nodes(path, ast.ImportFrom) if "query" in (node.module or "")]
        return [] if path.name == "engine.py" else [a.name for node in froms for a in node.names if a.name == "Query"]

    assert {} == told(BACKENDS, own_readings)
    assert {} == told(BACKENDS, unknown)
    assert {} == told(BACKENDS, imports)


def test_a_backend_that_reads_a_question_is_seen(tmp_path):
    """The test above has power: a part that is read by a backend itself is told, with its line."""
    path = tmp_path / "engine.py"
    path.write_text("def measure(query: Query) -> int:\n    bounded(query)\n    return query.part\n")

    assert ["measure, line 3: query"] == own_readings(path)


def test_all_backends_are_seen():
    """Each folder of `engines` is a backend, with an engine and rows of its own."""
    assert {"duck", "foreign", "memory"} == {path.parent.name for path in BACKENDS}
    assert all((SOURCE / "engines" / name / "rows.py") in BACKENDS for name in ("duck", "foreign", "memory"))


def too_much(function):
    """Return the one field that a function reads of a request which it takes whole; None where it uses more."""
    from farthing.session.reading.request import Request

    fields, asked = set(Request.__dataclass_fields__) | {"spend"}, annotated(function, "Request")
    owners = {id(node.value): node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    uses = [owners.get(id(node)) for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in asked]
    return f"{function.name}: {uses[0]}" if len(set(uses)) == 1 and uses[0] in fields else None


def test_a_request_is_handed_on_whole_only_where_it_is_used():
    """A function that reads one field of a request takes that field; the fields say what it depends on."""
    assert {} == told(
        FILES, lambda path: [found for each in nodes(path, ast.FunctionDef) if (found := too_much(each)) is not None]
    )


def test_a_request_that_is_too_much_is_seen():
    """The test above has power: one field alone is told; two of them, or the whole of it, are not."""
    one, two, whole = (
        ast.parse(f"def of(request: Request): return {body}").body[0]
        for body in ("request.progress", "request.progress or request.share", "plan(request) or request.share")
    )
    assert "of: progress" == too_much(one)
    assert too_much(two) is None
    assert too_much(whole) is None


def test_the_kind_of_plan_is_typed():
    """How a plan is priced is in its type, `Plan[P]`: no method asserts it when private data were read."""

    def asserted(path):
        return [
            node.lineno
            for node in nodes(path, ast.Assert)
            if "isinstance(" in (text := ast.unparse(node.test)) and "pricing" in text.lower()
        ]

    assert {} == told(FILES, asserted)


def test_floors_name_every_module():
    """No module is outside of the floors of its package: each contract of layers is exhaustive."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [contract for contract in contracts if contract["type"] == "layers"]

    assert len(layers) >= 3
    assert [] == [contract["name"] for contract in layers if not contract.get("exhaustive")]


@pytest.mark.thorough
def test_nothing_is_defined_that_nobody_names():
    """Every function and class of the source is named a second time: by the source, a test, a bench or a page."""
    kinds = ("*.py", "*.md", "*.toml")
    folders = [ROOT / name for name in ("src", "tests", "bench", "docs")]
    texts = [path.read_text(encoding="utf-8") for folder in folders for kind in kinds for path in folder.rglob(kind)]
    texts.append(
        "_parse_hint _parse_grouping_set _negate_range load_ipython_extension"
    )  # which sqlglot and IPython call
    named = Counter(word for text in texts for word in re.findall(r"\w+", text))
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    defined = {each.name for path in FILES for each in nodes(path, definitions) if not each.name.startswith("__")}

    assert len(defined) > 3000
    assert set() == {name for name in defined if named[name] == 1}
