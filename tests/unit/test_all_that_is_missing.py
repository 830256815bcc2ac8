"""One error names all that a question leaves out: its target, keys, bounds and clamps, in every combination."""

from __future__ import annotations

import inspect
from functools import cache
from itertools import combinations

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from farthing import Bounds, Budget, Gdp, Session
from farthing.advice import Face, told
from farthing.cli.app import app
from farthing.errors import FarthingError, InvalidBounds, InvalidKeys, InvalidTarget, UnsupportedQuery, whole
from farthing.session.questions import pipeline
from farthing.workloads import marginals, ranges

TABLE = pa.table({"who": [1, 2, 3], "zone": ["a", "b", "a"], "fare": [1.0, 2.0, 3.0]})
PARTS = ("keys", "bounds", "clamps", "target")
SAID = {
    "target": ("no accuracy was asked for", "relative=0.1"),
    "keys": ("GROUP BY without keys", "keys={'zone': [...]}"),
    "bounds": ("max_groups and max_rows missing", "Bounds(max_groups=5"),
    "clamps": ("", "lower=0, upper=200"),
}
SQL = "SELECT zone, SUM(fare) AS s FROM data GROUP BY zone"
GIVEN = {"target": {"absolute": 5.0}, "keys": {"keys": {"zone": ["a", "b"]}}, "clamps": {"lower": 0, "upper": 5}}
TYPES = {"target": InvalidTarget, "keys": InvalidKeys, "bounds": InvalidBounds, "clamps": InvalidBounds}


@cache
def opened(bounds):
    """Return one session for each of the two bounds."""
    return Session(TABLE, unit="who", budget=Budget(epsilon=1, delta=1e-6), bounds=bounds)


def sql(session, given):
    """Ask by SQL."""
    return session.sql(SQL, **given)


def plan(session, given):
    """Price by SQL."""
    return session.plan(SQL, **given)


def method(session, given):
    """Ask by a method."""
    return session.sum("fare", by="zone", **given)


@pytest.mark.parametrize("ask", [sql, plan, method])
@pytest.mark.parametrize("missing", [one for n in (1, 2, 3, 4) for one in combinations(PARTS, n)])
def test_all_that_is_missing_is_said_at_once(ask, missing):
    """Each part that was left out is named with what to do, no other one is, and nothing is paid."""
    session = opened(Bounds() if "bounds" in missing else Bounds(2, 1))
    given = {name: value for part in PARTS if part not in missing for name, value in GIVEN.get(part, {}).items()}
    with pytest.raises(FarthingError) as caught:
        ask(session, given)

    assert not session.spent
    for part, (what, next_step) in SAID.items():
        assert (next_step in caught.value.next_step) == (part in missing)
        assert what in caught.value.what or part not in missing
    assert isinstance(caught.value, tuple({TYPES[part] for part in missing}))
    assert (f"{len(missing)} things are missing" in caught.value.what) == (len(missing) > 1)


TABLES = marginals(["zone", "fare"], ways=2)
RANGED = ranges("fare", [0, 1, 2]) * marginals(["zone"], ways=1)
CUBE = "SELECT zone, who, COUNT(*) AS n FROM data GROUP BY CUBE (zone, who)"
LISTS = {"fare": [1.0, 2.0], "zone": ["a", "b"], "who": [1, 2]}
AT_ONCE = {
    "release": (lambda s, **given: s.release(TABLES, **given), ("fare", "zone"), {"absolute": 50.0}),
    "its plan": (lambda s, **given: s.plan_release(TABLES, **given), ("fare", "zone"), {"rms": 50.0}),
    "a relative one": (
        lambda s, **given: s.release(TABLES, **({"relative": 0.1} | given)),
        ("fare", "zone"),
        {"absolute": 50.0},
    ),
    "products": (lambda s, **given: s.plan_release(RANGED, **given), ("zone",), {"absolute": 50.0}),
    "a model": (
        lambda s, **given: s.plan_release(TABLES, mechanism="tree", **given),
        ("fare", "zone"),
        {"loss": Gdp(0.01)},
    ),
    "a model of products": (
        lambda s, **given: s.plan_release(RANGED, mechanism="mwem", **given),
        ("zone",),
        {"loss": Gdp(0.01)},
    ),
    "a cube": (lambda s, **given: s.sql(CUBE, **given), ("who", "zone"), {"absolute": 50.0}),
    "the plan of a cube": (lambda s, **given: s.plan(CUBE, **given), ("who", "zone"), {"absolute": 50.0}),
}


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("missing", [one for n in (1, 2, 3) for one in combinations(("keys", "bounds", "target"), n)])
def test_many_tables_at_once_name_all_that_is_missing(name, missing):
    """A release, a model and grouping sets name keys of all columns, bounds and the target together; nothing is paid.

    Of keys that list some columns, the others are named.
    """
    ask, columns, target = AT_ONCE[name]
    whole_keys = {column: LISTS[column] for column in columns}
    some = [None, *({column: LISTS[column]} for column in columns[1:])] if "keys" in missing else [whole_keys]
    for keys in some:
        given = {"keys": keys} | ({} if "target" in missing else target)
        session = opened(Bounds() if "bounds" in missing else Bounds(2, 1))
        with pytest.raises(FarthingError) as caught:
            ask(session, **given)

        said = str(caught.value)
        assert not session.spent
        assert (f"{len(missing)} things are missing" in said) == (len(missing) > 1)
        assert ("max_groups and max_rows missing" in said) == ("bounds" in missing)
        assert ("the listed values of each" in said) == ("keys" in missing)
        assert any(one in said for one in ("accuracy", "has a floor", "is not known before")) == ("target" in missing)
        for column in columns if "keys" in missing else ():
            assert (f"{column!r}: [...]" in caught.value.next_step) == (column not in (keys or {}))


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("keys", ["private", {"zone": ["a"], "fare": [1.0], "who": [1], "more": [1]}])
def test_what_is_wrong_is_not_taken_for_left_out(name, keys):
    """Keys that are to be found, and those of columns that a release does not have, are refused; nothing is paid."""
    ask, _, target = AT_ONCE[name]
    with pytest.raises(InvalidKeys, match="values of each"):
        ask(opened(Bounds(2, 1)), keys=keys, **target)

    assert not opened(Bounds(2, 1)).spent


FARES = {"lower": 0, "upper": 5}
RANGES = {"x_range": (0, 5), "y_range": (0, 5)}
ZONES = {"keys": {"zone": ["a", "b"]}}
OF = {"target": {"absolute": 5.0}, "keys": ZONES, "clamps": FARES}
METHODS = {
    "count": (lambda s, **given: s.count("zone", **given), OF | {"clamps": None}),
    "count_distinct": (lambda s, **given: s.count_distinct("zone", value="fare", **given), OF | {"clamps": None}),
    "sum": (lambda s, **given: s.sum("fare", by="zone", **given), OF),
    "mean": (lambda s, **given: s.mean("fare", by="zone", **given), OF),
    "variance": (lambda s, **given: s.variance("fare", by="zone", **given), OF),
    "quantile": (lambda s, **given: s.quantile("fare", 0.5, by="zone", **given), OF | {"target": {"rank": 0.1}}),
    "histogram": (lambda s, **given: s.histogram("fare", [0, 1], by="zone", **given), OF | {"clamps": None}),
    "ratio": (lambda s, **given: s.ratio("fare", by="zone", **given), OF | {"clamps": {"top_range": (0, 5)}}),
    "correlation": (lambda s, **given: s.correlation("fare", "who", by="zone", **given), OF | {"clamps": RANGES}),
    "covariance": (lambda s, **given: s.covariance("fare", "who", by="zone", **given), OF | {"clamps": RANGES}),
    "slope": (lambda s, **given: s.slope("fare", "who", by="zone", **given), OF | {"clamps": RANGES}),
    "difference": (lambda s, **given: s.difference("zone", ("a", "b"), value="fare", **given), OF | {"keys": None}),
    "sql": (lambda s, **given: s.sql(SQL, **given), OF),
    "most_common": (lambda s, **given: s.most_common("zone", 1, value="fare", **given), OF),
    "top_k": (lambda s, **given: s.top_k("zone", 1, value="fare", **given), OF | {"target": {"within": 5}}),
    "ranking": (lambda s, **given: s.ranking("zone", 1, value="fare", **given), OF | {"target": None}),
}
OTHERWISE = {"bounds_report", "online", "plan"}
"""What takes bounds and is no answer to a target: a report on them, a watch over a histogram, and SQL's plan, above."""


def test_every_question_of_a_session_is_among_them():
    """Whatever takes bounds of its own is asked here, or said to be something else."""
    options = {name: inspect.signature(getattr(Session, name)).parameters for name in dir(Session) if name[0] != "_"
               if inspect.isfunction(getattr(Session, name))}  # fmt: skip
    asking = {name for name, given in options.items() if "bounds" in given or "asking" in given}

    assert set(METHODS) | OTHERWISE == asking
    assert not set(METHODS) & OTHERWISE


@pytest.mark.parametrize("name", METHODS)
def test_every_question_names_all_that_it_leaves_out(name):
    """With nothing given all parts are named at once; each part that is given is named no more; nothing is paid."""
    ask, parts = METHODS[name]
    parts = {part: given for part, given in parts.items() if given is not None}
    for left in [set(), *({part} for part in parts)]:
        missing = sorted({*parts, "bounds"} - left)
        with opened_anew() as session:
            with pytest.raises(FarthingError) as caught:
                ask(session, **{key: value for part in left for key, value in parts[part].items()})

            assert f"{len(missing)} things are missing" in caught.value.what
            assert not session.spent


def test_a_question_that_names_one_thing_at_a_time_is_seen(monkeypatch):
    """Planted: what is missing is said as it is found, one by one."""
    monkeypatch.setattr(pipeline, "whole", lambda read: read(frozenset()))
    with opened_anew() as session, pytest.raises(InvalidTarget) as caught:
        session.histogram("fare", [0, 1], by="zone")

    assert "things are missing" not in caught.value.what


def opened_anew():
    """Return a session without bounds."""
    return Session(TABLE, unit="who", budget=Budget(epsilon=1, delta=1e-6), bounds=Bounds())


@pytest.mark.parametrize(("face", "words"), [(Face.TERMINAL, "--relative 0.1"), (Face.HTTP, '"relative": 0.1')])
def test_other_faces_say_it_in_their_words(face, words):
    """A combined error is translated as each of its parts is."""
    with Session(TABLE, budget=Budget(epsilon=1, delta=1e-6)) as session, pytest.raises(InvalidKeys) as caught:
        session.sql("SELECT zone, COUNT(*) AS n FROM data GROUP BY zone")

    assert words in told(caught.value.next_step, face)
    assert "2 things are missing: (1) GROUP BY without keys, (2) no accuracy" in caught.value.what


def test_the_command_line_says_it_too(tmp_path, monkeypatch):
    """Accuracy, bounds and keys, each with its option, and exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rides.csv").write_text("who,zone\n1,a\n2,b\n")
    command = CliRunner().invoke
    command(app, ["init", "rides.csv", "--epsilon", "1", "--delta", "1e-6", "--unit", "who"])
    done = command(app, ["ask", "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"])

    assert done.exit_code == 2
    for word in ("3 things are missing", "--relative", "--max-rows", "--max-groups", "--keys zone="):
        assert word in " ".join(done.output.split())


def test_what_is_wrong_otherwise_comes_as_it_is():
    """A question that is outside the language says that; where parts were missed before, these are said."""
    wrong = UnsupportedQuery("no", construct="x")
    gone = InvalidKeys("no keys", missing="keys")

    def read(left):
        raise wrong if "keys" in left else gone

    with pytest.raises(InvalidKeys, match="no keys"):
        whole(read)
    with pytest.raises(UnsupportedQuery):
        whole(lambda left: read(left | {"keys"}))
