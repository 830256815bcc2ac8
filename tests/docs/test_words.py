"""One word, one meaning: the glossary is held against the code; no class name stands twice, no imports in circles."""

import ast
import re

import naming
import pytest

code = naming.modules
TEXT = naming.PAGE.read_text(encoding="utf-8")

pytestmark = pytest.mark.xdist_group("syntax")  # the files are parsed once


def unknown(trees, text):
    """Return the words of the code that the glossary does not have."""
    return naming.words(trees) - set(naming.terms(text)) - set(naming.plain(text))


def twice(trees):
    """Return the class names that stand in several modules, with the modules."""
    return {name: places for name, places in naming.classes(trees).items() if len(places) > 1}


def test_every_word_is_in_the_glossary():
    """Whoever makes a new module or public name of a new word says there what it means, or finds the word there is."""
    assert set() == unknown(code(), TEXT)


def test_every_file_of_the_page_is_there():
    """What the page sends a reader to exists: a module that moved is named anew here."""
    paths = re.findall(r"`(?!tests/)([a-z_]+/[a-z_/]+\.py)`", TEXT)

    assert len(paths) > 60
    assert [] == [path for path in paths if not (naming.SOURCE / path).is_file()]


def test_every_proof_has_the_name_of_its_module():
    """A page of proofs is found from the code, and the code from the page, by the name alone."""
    pages = {page.stem for page in (naming.ROOT / "docs" / "proofs").glob("*.md")} - {"index"}

    assert len(pages) > 40
    assert set() == pages - set(code())


def missing_code(text):
    """Return what a page names behind "Code:" that is neither a module nor defined in the one that is named before."""
    missing, package, module = [], "", ""
    for name in re.findall(r"`([a-z_.]*\w+)`", " ".join(re.findall(r"^Code: .*", text, re.MULTILINE))):
        found, inner = name.removeprefix("farthing."), name.rpartition(".")[0].removeprefix("farthing.")
        if not name.startswith("farthing."):
            found = f"{package}.{name.lstrip('.')}"
            known = found in code() or name in defined(module)
        else:
            known = found in code() or (inner in code() and name.rpartition(".")[2] in defined(inner))
            module = found if found in code() else inner
            package = module.rpartition(".")[0]
        missing += [] if known else [name]
    return missing


def defined(module):
    """Return the names of classes, functions and arguments of a module, or of all modules of a package."""
    inside = [tree for name, tree in code().items() if name == module or name.startswith(f"{module}.")]
    kinds = (ast.ClassDef, ast.FunctionDef)
    nodes = [node for tree in inside for node in ast.walk(tree)]
    return {node.name for node in nodes if isinstance(node, kinds)} | {
        node.arg for node in nodes if isinstance(node, ast.arg)
    }


def test_the_code_of_every_proof_is_there():
    """What a page of proofs calls its code exists: a page follows the modules that it is about."""
    pages = sorted((naming.ROOT / "docs" / "proofs").glob("*.md"))
    found = {page.stem: missing_code(page.read_text(encoding="utf-8")) for page in pages}

    assert {} == {page: missing for page, missing in found.items() if missing}
    assert ["ordering"] == missing_code("Code: `farthing.session.choosing.top_k`, `most_common`, `ordering`.")


def test_every_word_of_the_glossary_is_used():
    """No word is explained that no module or public name has; none is explained twice, or both explained and plain."""
    terms, plain = naming.terms(TEXT), naming.plain(TEXT)

    assert set() == {*terms, *plain} - naming.words(code())
    assert len(terms) == len(set(terms))
    assert plain == sorted(set(plain))
    assert set() == set(terms) & set(plain)


def test_no_class_name_twice():
    """A class name means one thing; a package may give its class to users by a shorter name of its own."""
    assert {} == twice(code())


def test_no_import_runs_in_a_circle():
    """Modules do not import one another, at their tops, within functions, or for types."""
    assert [] == naming.cycles(naming.imports(code()))


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import farthing.accuracy.stop_rule", []),
        ("from farthing.session import Session", [["accuracy.planted", "session", "session.facade"]]),
        ("def f():\n    from farthing.session import Session", [["accuracy.planted", "session", "session.facade"]]),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from farthing.session import Session",
            [["accuracy.planted", "session", "session.facade"]],
        ),
    ],
    ids=["downward", "at the top", "within a function", "for types"],
)
def test_a_planted_circle_is_seen(source, seen):
    """An import that runs up is found wherever it stands, and one that runs down is none."""
    planted = {
        "session": ast.parse("from farthing.session.facade import Session"),
        "session.facade": ast.parse("from farthing.accuracy import planted"),
        "accuracy.stop_rule": ast.parse(""),
        "accuracy.planted": ast.parse(source),
    }

    assert seen == naming.cycles(naming.imports(planted))


def test_a_planted_word_is_seen():
    """A module of a word that nobody explained is found, and so is a class of a name that is taken."""
    planted = {**code(), "accuracy.quibble": ast.parse("class Receipt: pass")}

    assert {"quibble"} == unknown(planted, TEXT)
    assert ["accuracy.quibble", "ledger.entry"] == sorted(twice(planted)["Receipt"])
