"""Every result that is a table is shown, escaped and handed on in one way."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pyarrow as pa
import pytest
from sources import nodes

import farthing
from farthing import client, tabular
from farthing.query import outward
from farthing.tabular import Tabular

SOURCE = Path(farthing.__file__).parent
DOORS = {"to_pandas", "to_polars", "to_csv", "_repr_html_"}
HOSTILE = ["=1+1", "a\x1b[31m", "<b>", None]


def modules():
    """Return all modules of the library that can be imported."""
    names = [each.name for each in pkgutil.walk_packages([str(SOURCE)], "farthing.")]
    return [importlib.import_module(name) for name in names]


def results():
    """Return every class of the library that is a table, found by what it inherits, but bases of others."""
    there = {id(each): each for module in modules() for each in vars(module).values() if isinstance(each, type)}
    tables = {each for each in there.values() if Tabular in each.__mro__ and each is not Tabular}
    return {each for each in tables if not any(each in other.__mro__[1:] for other in tables)}


def defined(names):
    """Return where methods and functions of these names are written."""
    return {
        (path.relative_to(SOURCE).as_posix(), node.name)
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.name in names
    }


@pytest.mark.xdist_group("syntax")
def test_one_module_renders():
    """Frames, CSV and notebook views are written in one place, and so is the escaping of HTML."""
    assert {("tabular.py", name) for name in DOORS} == defined(DOORS)
    escapers = {path.name for path in SOURCE.rglob("*.py") if "from html import" in path.read_text(encoding="utf-8")}
    assert {"tabular.py"} == escapers


def test_whatever_has_rows_inherits_them():
    """A class with `to_arrow` is a result that inherits the renderer, or a table of people to attack."""
    tables = {each.__name__ for each in results()}
    found_here = {
        "Answer",
        "Trace",
        "Chosen",
        "Ranking",
        "Workload",
        "Plan",
        "Cut",
        "AttackReport",
        "History",
        "Status",
    }
    assert found_here <= tables
    owners = {file for file, _ in defined({"to_arrow"})} - {"tabular.py", "attacks/tables.py", "attacks/target.py"}
    writers = {next(kind for kind in each.__mro__ if "to_arrow" in vars(kind)) for each in results()}
    found = {Path(importlib.import_module(each.__module__).__file__).relative_to(SOURCE).as_posix() for each in writers}
    assert owners == found


def test_results_say_their_rows_and_their_footer():
    """Each result, or the one that it is a kind of, writes both, and none a repr or a notebook's view of its own."""
    for each in results():
        said = {name for kind in each.__mro__ if kind is not Tabular for name in vars(kind)}
        assert {"to_arrow", "footer"} <= said, each
        assert each.__repr__ is Tabular.__repr__, each


class Found(Tabular):
    """A result with hostile keys."""

    @property
    def footer(self):
        return ("about\x1b[31m <b>",)

    def to_arrow(self):
        return pa.table({"=zone": HOSTILE, "n": [1.0, -2.0, 3.5, 40_000.0], "met": [True, False, True, None]})


def test_all_doors_guard_text():
    """Text and HTML obey no key; a sheet runs none; frames and Arrow hold what was there."""
    found = Found()
    assert "\x1b" not in repr(found)
    assert "\x1b" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert ['"\'=zone","n","met"', '"\'=1+1",1,true'] == found.to_csv().splitlines()[:2]
    assert HOSTILE == [row["=zone"] for row in found.rows()]
    assert HOSTILE[:3] == list(found.to_pandas()["=zone"])[:3]
    assert HOSTILE == found.to_polars()["=zone"].to_list()


def test_a_renderer_without_the_guard_is_seen(monkeypatch):
    """The test above has power: without the door of texts, the escape is in the repr and the formula in the sheet."""
    monkeypatch.setattr(outward, "line", str)
    monkeypatch.setattr(outward, "cell", str)
    assert "\x1b" in repr(Found())
    assert Found().to_csv().startswith('"=zone"')


def test_csv_is_written_where_it_is_wished(tmp_path):
    """With a path the same text is in the file."""
    assert Found().to_csv(tmp_path / "found.csv") == (tmp_path / "found.csv").read_bytes().decode()


def test_without_polars_the_advice_is_an_extra(monkeypatch):
    """Polars is not needed for anything else."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(farthing.FarthingError, match="Polars is not installed"):
        Found().to_polars()


@pytest.mark.parametrize(("most", "told"), [(2, "... 2 more rows"), (None, "40,000"), (4, "40,000")])
def test_rows_that_are_not_shown_are_counted(most, told):
    """At most so many rows are shown, and it is told how many there are besides."""
    shown = tabular.text(Found().to_arrow(), most=most)
    assert told in shown
    assert ("more rows" in shown) == (most == 2)


WRITTEN = {
    "AutoBounds", "BoundedRange", "Bounds", "Budget", "Claim", "Csv", "Gdp", "Goal", "Pure", "Strategy", "Target",
    "Type", "WorkloadProduct", "Zcdp",
}  # fmt: skip
"""Values that people write themselves: a notebook shows the code that makes them."""

PIECES = {
    "Candidate", "Cells", "Coin", "Entry", "Floats", "Literal", "OnlineRule", "People", "ProductDesign", "Profile",
    "Progress", "Promised", "Refused", "ReleaseDesign", "Residuals", "Rule", "Share", "Step", "Use", "Way", "Ways",
}  # fmt: skip
"""Parts of what is shown, for programs that read them one by one."""


def handed_out():
    """Return every class of the library that a session, or what it returns, hands out by a public name."""
    ours = {each for module in modules() for each in vars(module).values() if isinstance(each, type)}
    there = {each.__name__: each for each in ours if each.__module__.startswith("farthing")}
    rest = [client.RemoteSession, *(getattr(farthing, name) for name in farthing.__all__)]
    found = set()
    while rest:
        kind = rest.pop()
        if not isinstance(kind, type) or kind in found or issubclass(kind, BaseException) or kind not in there.values():
            continue
        found.add(kind)
        told = [annotation for each in kind.__mro__ for annotation in getattr(each, "__annotations__", {}).items()]
        told += [(name, returned(inspect.getattr_static(kind, name))) for name in dir(kind)]
        told += [("of a dictionary", str(base)) for base in getattr(kind, "__orig_bases__", ())]
        words = {word for name, text in told if not name.startswith("_") for word in re.findall(r"\w+", str(text))}
        rest += [there[word] for word in words & there.keys()]
    return found


def returned(member):
    """Return what a method or a property says that it returns."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
    return getattr(function, "__annotations__", {}).get("return", "")


def test_a_notebook_shows_whatever_is_handed_out():
    """Each value that a session hands out has a notebook's view or a text of its own, or is code or a piece."""
    kinds = {kind for kind in handed_out() if not inspect.isabstract(kind)}
    names = {kind.__name__ for kind in kinds}
    assert names >= {"Guarantee", "Partition", "Part", "ReleasePlan", "RemotePlan", "Online", "OnlineAnswer", "History"}
    shown = {kind for kind in kinds if hasattr(kind, "_repr_html_") or worded(kind)}
    assert sorted(WRITTEN | PIECES) == sorted(kind.__name__ for kind in kinds - shown)


def worded(kind):
    """Return whether a person wrote the repr of a class, and not a dataclass."""
    made = getattr(vars(kind).get("__repr__"), "__code__", None)
    return made is not None and Path(made.co_filename).is_relative_to(SOURCE)


def test_a_promise_and_parts_are_shown_in_words():
    """A guarantee in a notebook is its sentence, a partition a line a part, and neither is a dataclass."""
    session = farthing.Session(pa.table({"zone": ["a", "b"]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    assert session.guarantee()._repr_html_() == f"<pre>{session.guarantee()}</pre>"
    parts = session.partition(by="zone", keys=["a", "<b>"])
    assert parts._repr_html_().count("\n") == 1
    assert "part zone = &#x27;&lt;b&gt;&#x27;" in parts._repr_html_()
    assert "part zone = &#x27;a&#x27;" in parts["a"]._repr_html_()
