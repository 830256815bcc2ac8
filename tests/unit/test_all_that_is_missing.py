"""One error names all that a question leaves out: its target, keys, bounds and clamps, in every combination."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from farthing import Bounds, Budget, Session
from farthing.advice import Face, told
from farthing.cli.app import app
from farthing.errors import FarthingError, InvalidBounds, InvalidKeys, InvalidTarget, UnsupportedQuery, whole

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
