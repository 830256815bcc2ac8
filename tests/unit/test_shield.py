"""No exact number is in a repr, in a frame that a callback or an error can reach, or behind what stands there."""

import ast
import copy
import dataclasses
import functools
import importlib
import inspect
import pickle
import pkgutil
import types
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from asks import ASKS, PURE, SILENT, SIZES, opened_session
from sources import parsed

from farthing import accuracy, mechanisms, models, session
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.joint_quantiles import NoisyJointRanks
from farthing.accuracy.quantile_chains import ShownRanks
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.mechanisms.gaussian import GaussianMeasurements
from farthing.mechanisms.geometric import GeometricRelease
from farthing.mechanisms.laplace import LaplaceChain
from farthing.mechanisms.linear_queries import uniform
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun
from farthing.models.problems import Logistic, Ridge
from farthing.models.vectors import Output, Statistics
from farthing.noise.bits import KeyStream
from farthing.sealed import opened, sealed
from farthing.session.core import shield

pytestmark = pytest.mark.thorough

DEEP = 7
CASES = [(name, False) for name in (*ASKS, *SILENT) if name != "best_of"] + [(name, True) for name in PURE]
"""Of `best_of` the engine is asked nothing: what reads the rows is the caller's own."""


class Secrets:
    """What the engine of a session returned: arrays of several numbers, each a secret."""

    def __init__(self, session, monkeypatch):
        self.arrays = []
        kind = type(session._engine)
        for way in ("measure", "histogram", "found", "spread", "crossed"):
            monkeypatch.setattr(kind, way, self._listening(getattr(kind, way)))

    def _listening(self, asked):
        """Return a way that notes what it returns."""

        def way(*given):
            made = asked(*given)
            if isinstance(made, np.ndarray | list | tuple):
                parts = [made] if isinstance(made, np.ndarray) else list(made)
            else:
                parts = [getattr(made, one.name) for one in dataclasses.fields(made)]
            for part in parts:
                if isinstance(part, np.ndarray):
                    self.arrays += [row.copy() for row in np.atleast_2d(part) if len(np.unique(row)) > 3]
            return made

        return way

    def __contains__(self, value):
        """Tell whether a value is one of them, in any shape, order kept, whole or as running sums."""
        try:
            found = np.asarray(value, np.float64).ravel()
        except (TypeError, ValueError):
            return False
        sums = [np.concatenate([[0], np.cumsum(one)]) for one in self.arrays]
        return any(np.array_equal(found, one) for one in (*self.arrays, *sums))


def behind(value):  # noqa: C901  # one branch a kind of object
    """Yield what stands behind a value: items, fields, attributes, cells of closures, arguments that are bound."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            yield cell.cell_contents if cell != types.CellType() else None
        yield from (value.__defaults__ or (), value.__kwdefaults__ or {})
    elif isinstance(value, types.MethodType):
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.GeneratorType):
        yield (value.gi_frame.f_locals if value.gi_frame else None)
    elif not isinstance(value, type | types.ModuleType | str | bytes | int | float | np.ndarray | types.FrameType):
        yield getattr(value, "__dict__", None)
        for name in (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())):
            if isinstance(name, str) and name not in {"__weakref__", "__dict__"}:
                yield getattr(value, name, None)


def leaks(frames, secrets):
    """Return the local variables of frames behind which a secret stands, or whose repr shows it."""
    found, seen = [], {}
    for frame in frames:
        for name, local in dict(frame.f_locals).items():
            line = [(local, 0)]
            while line:
                value, depth = line.pop()
                if id(value) in seen or isinstance(value, Secrets) or value is secrets.arrays:
                    continue
                seen[id(value)] = value
                if isinstance(value, np.ndarray | list | tuple) and value in secrets:
                    found.append(f"{frame.f_code.co_qualname} {name}")
                if depth < DEEP:
                    line += [(inner, depth + 1) for inner in behind(value) if inner is not None]
    return found


def stack():
    """Return the frames that a callback can reach: its callers', up to the test's."""
    frames, frame = [], inspect.currentframe()
    while frame is not None and "site-packages" not in frame.f_code.co_filename:
        if frame.f_code.co_filename != __file__:
            frames.append(frame)
        frame = frame.f_back
    return frames


def frames_of(error):
    """Return the frames that an error can reach: of its traceback, of what is behind it, and their callers'."""
    frames, errors = [], [error]
    while errors:
        one = errors.pop()
        errors += [more for more in (one.__cause__, one.__context__) if more is not None]
        trace = one.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            while frame is not None and "site-packages" not in frame.f_code.co_filename:
                frames += [frame] if frame.f_code.co_filename != __file__ else []
                frame = frame.f_back
            trace = trace.tb_next
    return frames


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", [*ASKS])
def test_a_callback_reaches_no_exact_number(name, pure, monkeypatch):
    """Whatever is asked: the frames above `progress=`, and all that stands behind their variables, hold none."""
    if pure and name not in PURE:
        return
    with opened_session(pure=pure) as session:
        secrets, found, told = Secrets(session, monkeypatch), [], []

        def progress(seen):
            """Walk the frames above."""
            told.append(seen)
            found.extend(leaks(stack(), secrets))

        ASKS[name](session, progress=progress)

    assert told or (name, pure) == ("quantile", True)  # one choice, without looks
    assert secrets.arrays
    assert [] == found


def interrupt(monkeypatch, secrets, draws=0):
    """Raise an interrupt at a draw of noise, once the engine was asked."""
    words, left = KeyStream.words, [draws]

    def interrupted(stream, count, /):
        """Draw, or be interrupted."""
        if secrets.arrays:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        return words(stream, count)

    monkeypatch.setattr(KeyStream, "words", interrupted)


@pytest.mark.parametrize(("name", "pure"), CASES)
@pytest.mark.parametrize("draws", [0, 1])
def test_an_error_reaches_no_exact_number(name, pure, draws, monkeypatch):
    """An interrupt in the middle of drawing noise leaves without the frames in which the numbers stood."""
    with opened_session(pure=pure) as session:
        secrets, error = Secrets(session, monkeypatch), None
        interrupt(monkeypatch, secrets, draws)
        try:
            (ASKS | SILENT)[name](session)
        except KeyboardInterrupt as interrupted:
            error = interrupted

    assert secrets.arrays
    assert error is not None or draws
    if error is not None:
        assert [] == leaks(frames_of(error), secrets)
        assert (None, None) == (error.__cause__, error.__context__)


class OwnError(Exception):
    """The asker's own error."""


@pytest.mark.parametrize("name", [*ASKS])
def test_an_error_of_a_callback_keeps_its_own_frames_alone(name, monkeypatch):
    """It comes out as it was raised, with the line that raised it, and reaches no exact number."""
    with opened_session() as session:
        secrets = Secrets(session, monkeypatch)

        def progress(seen):
            """Fail."""
            raise OwnError(seen)

        with pytest.raises(OwnError) as caught:
            ASKS[name](session, progress=progress)

    assert "progress" in [entry.name for entry in caught.traceback]
    assert [] == leaks(frames_of(caught.value), secrets)


HOLDERS = {
    GaussianMeasurements: GaussianMeasurements,
    GeometricRelease: GeometricRelease,
    LaplaceChain: LaplaceChain,
    Ranks: lambda exact: Ranks.of(np.arange(6), np.zeros(6, np.int64), exact, groups=6, leaves_log2=2),
    NoisyRanks: lambda exact: NoisyRanks(HOLDERS[Ranks](exact), QuantileGoal(0.5, 0.0, 1.0, leaves_log2=2)),
    NoisyJointRanks: lambda exact: NoisyJointRanks(HOLDERS[Ranks](exact), 1),
    ShownRanks: lambda exact: ShownRanks(HOLDERS[Ranks](exact), 1),
    ShownJointRanks: lambda exact: ShownJointRanks(HOLDERS[Ranks](exact), 1),
    OnlineRun: lambda exact: OnlineRun(
        OnlineRule(absolute=20_000, queries=100, cells=len(exact), rows=100_000),
        sealed(exact), uniform(len(exact), 80_000.0), 80_000.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOLDERS)
def test_what_holds_exact_numbers_shows_none(kind):
    """Neither its repr nor its fields; it is not pickled."""
    holder = HOLDERS[kind](np.array(SIZES))

    assert "73913" not in repr(holder)
    assert "917" not in repr(holder)
    with pytest.raises(TypeError, match="exact numbers"):
        pickle.dumps(holder)


RAW = {"truth", "ranks", "_raw", "points", "responses", "_best", "_hessian", "_tilt"}
"""Fields of exact numbers."""


def dataclasses_of_the_library():
    """Return every dataclass of the packages that hold exact numbers."""
    found = set()
    for package in (mechanisms, accuracy, models, session):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for kind in vars(importlib.import_module(module.name)).values():
                if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.name:
                    found.add(kind)
    return found


def test_every_field_of_exact_numbers_is_left_out_of_reprs():
    """Or is a box: mechanisms, ranks and problems; nothing that holds one is forgotten here."""
    holders = {kind for kind in dataclasses_of_the_library() if RAW & {one.name for one in dataclasses.fields(kind)}}
    shown = {
        f"{kind.__name__}.{one.name}"
        for kind in holders
        for one in dataclasses.fields(kind)
        if one.name in RAW and one.repr and kind.__dataclass_params__.repr
    }

    assert set(HOLDERS) | {Ridge, Logistic, Statistics, Output} == holders
    assert {
        "NoisyRanks.ranks",
        "NoisyJointRanks.ranks",
        "ShownRanks.ranks",
        "ShownJointRanks.ranks",
        "Ranks._raw",
    } == shown  # a box, and what holds only a box


def test_a_box_is_opened_by_those_who_have_it():
    """It holds what was put in as long as it lives; it is sealed once, and not copied."""
    box = sealed([1, 2])

    assert [1, 2] == opened(box)
    assert box is sealed(box)
    assert 3 == opened(3)
    with pytest.raises(TypeError, match="exact numbers"):
        copy.copy(box)


def test_a_leak_is_found(monkeypatch):
    """Planted: without the shield the frames of the measurement come out; with numbers that are not sealed too."""
    with opened_session() as session, monkeypatch.context() as patch:
        secrets = Secrets(session, patch)
        patch.setattr("farthing.session.core.transaction.shielded", lambda work, *given: work(*given))
        interrupt(patch, secrets)
        with pytest.raises(KeyboardInterrupt) as caught:
            ASKS["count"](session)
        assert leaks(frames_of(caught.value), secrets)
    with opened_session() as session, monkeypatch.context() as patch:
        secrets, found = Secrets(session, patch), []
        patch.setattr("farthing.mechanisms.gaussian.sealed", lambda exact: exact)
        ASKS["count"](session, progress=lambda _: found.extend(leaks(stack(), secrets)))
        assert found
    assert shield.shielded(lambda x: x + 1, 2) == 3


def uninitialised(tree):
    """Return the functions that are given a callback and take memory as it was left."""
    return [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and "progress" in {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"np.empty", "np.empty_like"}
    ]


def test_no_memory_that_was_used_before_is_seen_by_a_callback():
    """NumPy hands out memory as it was left, with exact numbers in it: what a callback can reach begins as zeros."""
    source = Path(session.__file__).parents[1]
    assert [] == [(path.name, name) for path in source.rglob("*.py") for name in uninitialised(parsed(path))]
    assert ["refine"] == uninitialised(ast.parse("def refine(progress):\n    mean = np.empty(3)"))
