"""How an answer closed in on its target: the looks of one ask, from what was released, and what they cost."""

import json
import math

import numpy as np
import pytest
from rides import BY, KEYS, TABLE, opened
from sweeps import sweep

from farthing import Budget, FarthingError, Progress, Pure, Session
from farthing.session.answering import traced
from farthing.trace import DRAWN, MOST_GROUPS

TARGET = {"relative": 0.05, "absolute": 25}


@pytest.fixture(scope="module", params=["gaussian", "zcdp", "pure"])
def asked(request):
    """An answer by groups, with what was told while it was refined."""
    budget = {"gaussian": Budget(mu=1), "zcdp": Budget(rho=1), "pure": Budget(epsilon=2)}[request.param]
    seen = []
    return Session(TABLE, budget=budget).count(**BY, **TARGET, cap="all", progress=seen.append), seen


def test_the_last_row_of_each_group_is_its_answer(asked):
    """Values, intervals and prices of the final rows are those of the answer, in its order."""
    answer, _ = asked
    trace = answer.trace()
    final = np.flatnonzero(trace.final)

    assert list(range(4)) == trace.group[final].tolist()
    assert answer.value.tolist() == trace.value[final].tolist()
    assert answer.lower.tolist() == trace.lower[final].tolist()
    assert answer.upper.tolist() == trace.upper[final].tolist()
    assert answer.paid_by_group.tolist() == pytest.approx(trace.paid[final].tolist())
    assert KEYS["k"] == trace.to_arrow().filter(trace.final).column("k").to_pylist()


def test_a_group_pays_more_and_is_surer_with_every_look(asked):
    """Looks, prices rise and intervals close in, group by group; the first look is coarse."""
    trace = asked[0].trace()
    for group in range(4):
        mine = (trace.group == group) & ~trace.final
        half = ((trace.upper - trace.lower) / 2)[mine]

        assert (np.diff(trace.look[mine]) > 0).all()
        assert (np.diff(trace.paid[mine]) > 0).all()
        assert (np.diff(half) < 0).all()
        assert half[0] > 100 * half[-1]


def test_what_is_told_on_the_way(asked):
    """Progress tells the interval furthest from its target, and what was paid so far; the last is the price."""
    answer, seen = asked

    assert answer.paid == seen[-1].paid
    assert [one.paid for one in seen] == sorted(one.paid for one in seen)
    assert all(one.furthest > one.target for one in seen[:-1])
    assert seen[-1].furthest <= seen[-1].target * (1 + 1e-9)
    assert " on the way to +/-" in seen[-1].closing
    assert seen[-1].look == len(seen) >= asked[0].trace().look.max()


def test_a_free_answer_has_one_row_a_group():
    """Nothing was looked at; look 0 is what was known."""
    session = opened()
    session.count(**BY, **TARGET)
    trace = session.count(**BY, **TARGET).trace()

    assert ([0] * 4, [0.0] * 4, [True] * 4) == (trace.look.tolist(), trace.paid.tolist(), trace.final.tolist())


def test_a_sharper_answer_begins_with_what_was_known():
    """Look 0 of a refined answer has the value of the first one, at no price."""
    session = opened()
    first = session.count(absolute=80)
    trace = first.refine(absolute=20).trace()

    assert (0, 0.0, first.value) == (trace.look[0], trace.paid[0], trace.value[0])
    assert trace.final.tolist() == [False, True]


def test_rows_follow_the_answer():
    """HAVING, ORDER BY and LIMIT, and dropped groups, keep the looks of what is shown, in its order."""
    session = opened()
    text = "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 2"
    shown = session.sql(text, keys=KEYS, **TARGET)
    dropped = opened().count(**BY, absolute=0.5, relative=0.1, on_miss="drop")

    assert ["many", "some"] == list(dict.fromkeys(row["k"] for row in shown.trace().rows()))
    assert set(dropped.keys.column("k").to_pylist()) == {row["k"] for row in dropped.trace().rows()}
    assert dropped.keys.num_rows < 4


def test_keys_in_another_order():
    """Groups are told in the order that was asked, whatever order they are measured in."""
    listed = ["some", "none", "many", "few"]
    answer = opened().count(by="k", keys={"k": listed}, **TARGET)
    final = answer.trace().to_arrow().filter(answer.trace().final)

    assert listed == final.column("k").to_pylist()
    assert answer.value.tolist() == final.column("value").to_pylist()


def test_several_aggregates_and_kinds():
    """Measures that are refined together tell each claim; kinds side by side tell the answers."""
    session = opened()
    joint = session.sql("SELECT COUNT(*) AS n, AVG(CLAMP(x, 0, 9)) AS m FROM data", relative={"n": 0.05, "m": 0.05})
    kinds = session.sql("SELECT COUNT(*) AS n, MEDIAN(CLAMP(x, 0, 9)) AS m FROM data", absolute=40, rank={"m": 0.1})

    assert {"n", "m"} == {row["column"] for row in joint.trace().rows()}
    assert joint["m"].value.tolist() == [row["value"] for row in joint.trace().rows() if row["final"]][1:]
    assert 2 == len(kinds.trace())


def test_one_release_is_one_look():
    """A mechanism that releases once has one look; so have a share, and a ratio, a final row a group."""
    session = opened(budget=Budget(rho=2))
    once = session.count(**BY, relative=0.2, absolute=50, mechanism="log")
    share = session.count(by="k", keys=KEYS, where="x < 5", relative=0.1, absolute=20, share=0.5)
    ratio = session.ratio("x > 3", absolute=0.05)

    assert [1] * 4 == once.trace().look.tolist()
    assert 4 == share.trace().final.sum() < len(share.trace())
    assert 1 == ratio.trace().final.sum()


def test_no_looks_are_kept_of_many_groups():
    """Above a public number of groups only the answer is told; memory is bounded."""
    keys = {"x": list(range(MOST_GROUPS + 1))}
    answer = opened().count(by="x", keys=keys, relative=0.1, absolute=50)

    assert MOST_GROUPS + 1 == len(answer.trace())
    assert answer.trace().final.all()


def test_planted_a_look_that_is_not_counted(monkeypatch):
    """A run that measures past the watcher tells a price below its own; the last told price shows it."""
    seen = []
    opened().count(absolute=50, progress=seen.append)
    assert seen[-1].paid == opened().count(absolute=50).paid

    real, blind = traced.Watched.measure, []

    def forgetful(self, state, grains, groups=None):
        before = self.information.copy()
        found = real(self, state, grains, groups)
        self.information = before
        return found

    monkeypatch.setattr(traced.Watched, "measure", forgetful)
    answer = opened().count(absolute=50, progress=blind.append)
    assert blind[-1].paid < answer.paid


@pytest.mark.thorough
@pytest.mark.parametrize("asked", sweep(["gaussian"], ["gaussian", "zcdp", "pure"]), indirect=True)
def test_texts_and_pictures(asked, tmp_path):
    """The table says which rows are promised; the picture draws the largest groups, and can be saved."""
    trace = asked[0].trace()
    assert "only a group's last interval is promised" in repr(trace)
    assert "... " in repr(trace)
    assert "... " not in trace.text()
    chart = trace.chart(tmp_path / "trace.svg")
    assert "<svg" in (tmp_path / "trace.svg").read_text(encoding="utf-8")
    assert 4 == len(chart.concat) <= DRAWN
    assert "vega" in str(trace._repr_mimebundle_())


def test_what_is_told_without_a_target():
    """Where nothing is known on the way there is no text; the price comes where it is known."""
    assert "" == Progress(1, 2, 0, math.inf).closing
    assert ": +/-7 on the way to +/-5" == Progress(1, 2, 0, 9.0, 7.0, 5.0).closing
    assert Progress(1, 2, 0, 700.0, 700.0, 5.0, Pure(0.5)).closing.endswith("paid epsilon 0.5")


def test_a_picture_begins_where_looks_came_near():
    """Looks far off are left out but for one; the axis has every look once, and the column names the other."""
    answer = opened().count(relative=0.05, absolute=20)
    picture = answer.trace().chart().to_dict()["concat"][0]
    shown, axis = picture["layer"][0], picture["layer"][0]["encoding"]["x"]["axis"]["values"]
    far = [
        row["look"] for row in answer.trace().rows() if row["upper"] - row["lower"] > 4 * (answer.upper - answer.lower)
    ]

    assert far[-1] == axis[0]
    assert axis == list(range(axis[0], int(answer.trace().look.max()) + 1))
    assert "count" == shown["encoding"]["y"]["title"]


def test_a_trace_without_looks_or_groups():
    """A free answer says so; where no group is left, the caption tells and the picture is refused, as for bad names."""
    session = opened()
    free = [session.count(absolute=50) for _ in range(2)][1].trace()
    assert "known before, nothing was looked at" in free.caption
    assert "before" in json.dumps(free.chart().to_dict())

    nobody = opened().count(**BY, relative=0.0001, on_miss="drop").trace()
    assert "no group is in the answer" in nobody.caption
    assert ["text/plain", "text/html"] == list(nobody._repr_mimebundle_())
    for trace, how in ((nobody, {}), (free, {"column": "nope"}), (free, {"path": 5})):
        with pytest.raises(FarthingError):
            trace.chart(**how)
