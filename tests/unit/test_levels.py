"""What a test may depend on: luck only within a counted false-alarm budget, and never a clock."""

import ast
import hashlib
import math
import re
from functools import cache
from pathlib import Path

import pytest
from levels import ALPHA, FAMILY_ALPHA, TESTS, dkw_band
from sources import nodes, parsed

from farthing.noise.bits import KeyStream, system_bits

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shared():
    """Return bits that were drawn for all tests of this file."""
    return system_bits().words(4).tolist()


def test_what_tests_share_is_drawn_from_what_its_name_fixes(shared, request):
    """The noise of a fixture of a module is the same in every run."""
    name = f"{request.node.nodeid.split('::')[0]} shared 0"

    assert shared == KeyStream(hashlib.sha256(name.encode()).digest()).words(4).tolist()


def statistical_tests():
    """Return the test functions marked statistical, alone or with their module, by file, from their syntax trees."""
    return [
        (path.name, node.name, cases(node, path))
        for path in sorted(ROOT.rglob("test_*.py"))
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and statistical(node, path)
    ]


def statistical(function, path):
    """Return whether a test, or its whole module, is marked statistical."""
    of_module = assigned(path).get("pytestmark", ast.List([]))
    marks = [*function.decorator_list, *(of_module.elts if isinstance(of_module, ast.List) else [of_module])]
    return "pytest.mark.statistical" in {ast.unparse(mark) for mark in marks}


def cases(function, path):
    """Return how many cases parametrize makes of a test; names of lists are looked up in its module."""
    module = assigned(path)
    count = 1
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize":
            count *= size(mark.args[1], module)
    return count


@cache
def assigned(path):
    """Return what a module assigns to names, and what the test modules assign from which it imports."""
    tree = parsed(path)
    homes = [
        ROOT / f"{(node.module or '').replace('.', '/')}.py" for node in tree.body if isinstance(node, ast.ImportFrom)
    ]
    found = {}
    for home in homes:
        found |= assigned(home) if home.exists() else {}
    return found | {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def size(values, module):
    """Return the length of a literal, of a named one, of its .values() or range; the most where some are left out."""
    match values:
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
            return sum(size(each.value, module) if isinstance(each, ast.Starred) else 1 for each in elts)
        case ast.Dict(keys=keys):
            return len(keys)
        case ast.Name(id=name):
            return size(module[name], module)
        case (
            ast.Call(func=ast.Name(id="cases"), args=[inner])
            | ast.ListComp(generators=[ast.comprehension(iter=inner)])
            | ast.DictComp(generators=[ast.comprehension(iter=inner)])
            | ast.GeneratorExp(generators=[ast.comprehension(iter=inner)])
        ):
            return size(inner, module)
        case ast.Call(func=ast.Attribute(value=value)):
            return size(value, module)
        case ast.Call(func=ast.Name(id="range"), args=args):
            return len(range(*(ast.literal_eval(arg) for arg in args)))
    raise AssertionError(ast.unparse(values))


@pytest.mark.thorough
def test_every_statistical_test_is_counted():
    """Each case of each marked test has its share of the family's false-alarm budget."""
    assert sum(count for _, _, count in statistical_tests()) <= TESTS


@pytest.mark.thorough
def test_the_count_sees_tests():
    """The counter finds the tests it should: several files, some with cases, some marked by their module alone."""
    found = statistical_tests()

    assert 4 <= len({name for name, _, _ in found})
    assert any(count > 1 for _, _, count in found)
    assert {"test_models_law.py", "test_experiments_laws.py"} <= {name for name, _, _ in found}
    assert all(8 <= count for _, name, count in found if name == "test_hash_keys_are_independent")  # its list has stars


def test_shares_add_up():
    """ALPHA is an equal share of the family's budget."""
    assert math.isclose(FAMILY_ALPHA, ALPHA * TESTS)


def test_the_band_is_dkw():
    """Wider for fewer draws and smaller levels; the closed form of Massart."""
    assert math.isclose(2 * math.exp(-2 * 1000 * dkw_band(1000) ** 2), ALPHA)
    assert dkw_band(1000) > dkw_band(4000) * 1.99


CLOCK = r"\btime\b"
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "time_ns", "thread_time"}


def clocked(function):
    """Return the lines of a function that assert something of a clock, or of what was computed from one."""
    timed = set()

    def from_clock(node):
        return any(
            (isinstance(inner, ast.Attribute) and inner.attr in CLOCKS)
            or (isinstance(inner, ast.Name) and inner.id in CLOCKS | timed)
            or (isinstance(inner, ast.Call) and ast.unparse(inner.func) == "time.time")
            for inner in ast.walk(node)
        )

    for _ in range(3):  # what is computed from what is computed from a clock
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign) and from_clock(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                timed |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return [node.lineno for node in ast.walk(function) if isinstance(node, ast.Assert) and from_clock(node.test)]


def functions(source):
    """Return the functions of a source."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]


def test_no_test_asserts_a_time():
    """A busy machine is no bug: work is counted (`work.calls_of`), and speed is measured in bench/."""
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        if re.search(CLOCK, source := path.read_text(encoding="utf-8"))
        for function in functions(source)
        for line in clocked(function)
    }

    assert set() == found


def test_an_asserted_time_is_seen():
    """The rule sees a clock in the assertion and one that a name stands for, and lets a deadline be."""
    direct = "def f():\n    assert time.perf_counter() - start < 2"
    named = "def f():\n    start = time.monotonic()\n    took = clock() - start\n    assert took < 2"
    waits = "def f():\n    end = time.monotonic() + 9\n    while time.monotonic() < end:\n        pass\n    assert done"

    assert [[2], [4], []] == [clocked(functions(source)[0]) for source in (direct, named, waits)]
