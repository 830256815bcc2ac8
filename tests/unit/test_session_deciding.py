"""What an answer tells of itself together with those before it, and how all of them are held at one confidence."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing import Budget, InvalidTarget, Session
from farthing.accuracy.claim_chances import MOST, holds, next_chance, together, worst
from farthing.cli.app import app
from farthing.session.core import records
from farthing.session.core.records import claims_of, with_claims

pytestmark = pytest.mark.thorough

TABLE = pa.table({"g": np.repeat(np.arange(3), 4_000), "v": np.random.default_rng(3).uniform(0, 100, 12_000)})
CLAMPS = {"lower": 0, "upper": 100}
BY = {"by": "g", "keys": {"g": [0, 1, 2]}}
TEXT = "SELECT g, COUNT(*) AS n, AVG(CLAMP(v, 0, 100)) AS m FROM data GROUP BY g"
GAUSSIAN, PURE = Budget(mu=4), Budget(epsilon=40)
ASKS = {
    "count": (GAUSSIAN, lambda s, w, **how: s.count(**BY, absolute=100 * w, **how)),
    "relative": (GAUSSIAN, lambda s, w, **how: s.count(**BY, relative=0.1 * w, **how)),
    "pure": (PURE, lambda s, w, **how: s.count(**BY, absolute=100 * w, **how)),
    "sum": (GAUSSIAN, lambda s, w, **how: s.sum("v", **CLAMPS, **BY, absolute=9_000 * w, **how)),
    "mean": (GAUSSIAN, lambda s, w, **how: s.mean("v", **CLAMPS, **BY, absolute=4 * w, **how)),
    "pure mean": (PURE, lambda s, w, **how: s.mean("v", **CLAMPS, **BY, absolute=4 * w, **how)),
    "variance": (GAUSSIAN, lambda s, w, **how: s.variance("v", **CLAMPS, **BY, relative=0.2 * w, **how)),
    "quantile": (GAUSSIAN, lambda s, w, **how: s.quantile("v", 0.5, **CLAMPS, **BY, absolute=30 * w, **how)),
    "rank": (PURE, lambda s, w, **how: s.quantile("v", 0.5, **CLAMPS, **BY, rank=0.05 * w, **how)),
    "several": (GAUSSIAN, lambda s, w, **how: s.sql(TEXT, keys=BY["keys"], relative=0.1 * w, **how)),
    "mechanism": (
        Budget(rho=10),
        lambda s, w, **how: s.count(**BY, relative=0.1 * w, absolute=80 * w, mechanism="linear-log", **how),
    ),
}


@pytest.fixture(params=ASKS)
def game(request):
    """A session, and an ask of it at a relative width."""
    budget, ask = ASKS[request.param]
    with Session(TABLE, budget=budget) as session:
        yield session, ask


def test_chances_add_up_and_answers_told_again_add_none(game):
    """0.95 of the first, less than 0.90 of a sharper one, less of the next; asked again, each tells what was told."""
    session, ask = game
    told = [ask(session, width).confidence_together for width in (1, 0.6, 0.6, 0.4)]

    two, three = together((0.05,) * 2), together((0.05,) * 3)
    assert told == pytest.approx([0.95, two, two, three])
    assert two < 0.9
    assert three < 0.85
    assert ask(session, 0.4).confidence == pytest.approx(0.95)


@pytest.mark.thorough
def test_together_never_falls_below_the_confidence(game):
    """However often it is sharpened, parts as 1/2, 1/6, 1/12 of the chance of a miss, and what stands is free."""
    session, ask = game
    first, second, again, third = (ask(session, width, together=True) for width in (1, 0.6, 0.6, 0.4))

    parts = [next_chance((), 0.05)]
    parts = [parts[0], parts[0] / 3, parts[0] / 6]
    told = [answer.confidence_together for answer in (first, second, third)]
    assert told == pytest.approx([1 - worst(tuple(parts[: k + 1])) for k in range(3)])
    assert min(told) > 0.95
    assert not again.paid
    assert np.array_equal(again.value, second.value)


@pytest.mark.thorough
def test_what_is_used_up_is_refused_for_nothing(game):
    """After an ordinary answer no other one can hold together with it at the same confidence; at a lower one it can."""
    session, ask = game
    ask(session, 1)
    before = session.spent
    assert not ask(session, 1, together=True).paid
    with pytest.raises(InvalidTarget, match="together"):
        ask(session, 0.6, together=True)

    assert session.spent == before
    assert 0.9 <= ask(session, 0.6, together=True, confidence=0.9).confidence_together < 0.95


def test_it_stays_known_to_the_next_session(tmp_path):
    """The record keeps the chances of what was shown."""
    for number in (1, 2):
        with Session(TABLE, budget=GAUSSIAN, ledger=tmp_path / "a.ledger") as session:
            answer = session.count(absolute=100 / number)
            assert answer.confidence_together == pytest.approx(together((0.05,) * number))


def test_all_groups_at_once():
    """Simultaneous answers, too: the chances are those of each number, times the numbers."""
    session = Session(TABLE, budget=GAUSSIAN)
    session.count(**BY, absolute=100, simultaneous=True)
    answer = session.count(**BY, absolute=50, simultaneous=True)

    assert answer.confidence_together == pytest.approx(together((0.05 / 3,) * 2, 3))
    assert session.count(**BY, absolute=50).confidence_together == pytest.approx(together((0.05 / 3, 0.05)))


def test_a_record_of_before_counts_what_the_books_tell(monkeypatch):
    """A record without its claims: every entry of its question counts as one."""
    session = Session(TABLE, budget=GAUSSIAN)
    with monkeypatch.context() as before:
        before.setattr("farthing.session.answering.one_question.with_claims", lambda blob, *_: blob)
        session.count(absolute=100)
        session.count(absolute=50)

    assert session.count(absolute=50).confidence_together == pytest.approx(together((0.05,) * 2))
    assert session.count(absolute=20).confidence_together == pytest.approx(together((0.05,) * 3))


def test_claims_lie_beside_the_record():
    """Any blob may carry them; what it held is unchanged."""
    blob = records.write_blob({"x": np.arange(3)}, {b"form": b'{"y": 1}'})
    marked = with_claims(with_claims(blob, (0.05,)), (0.05, 0.01))

    assert claims_of(None) == ()
    assert claims_of(blob) is None
    assert claims_of(marked) == (0.05, 0.01)
    assert records.read_blob(marked, b"form")[1] == {"y": 1}


def test_the_parts_of_a_chance_never_add_up_to_more():
    """However many claims, whatever came first; after the last that may be there is none."""
    claims = ()
    while len(claims) < MOST:
        claims = (*claims, next_chance(claims, 0.05))
    assert holds(claims, 0.05)
    assert all(worst(claims[:k]) < worst(claims[: k + 1]) for k in range(MOST))
    with pytest.raises(InvalidTarget, match="leave no room"):
        next_chance(claims, 0.05)
    assert holds((0.03, next_chance((0.03,), 0.05)), 0.05)
    assert together((0.6, 0.6)) == 0


def test_the_answer_says_so():
    """In words where it is less than the confidence; always in JSON."""
    session = Session(TABLE, budget=GAUSSIAN)

    assert "together" not in session.count(absolute=100).caption
    assert "0.95 confidence (0.8877 together with earlier answers)" in repr(session.count(absolute=50))


def test_the_command_line(tmp_path, monkeypatch):
    """`--together`, and `confidence_together` in JSON."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "rows.parquet")
    runner = CliRunner()
    assert 0 == runner.invoke(app, ["init", "rows.parquet", "--epsilon", "1", "--delta", "1e-6"]).exit_code
    question = ["ask", "SELECT COUNT(*) AS n FROM rows", "--json", "--together"]
    told = [
        json.loads(runner.invoke(app, [*question, "--absolute", width]).stdout)["confidence_together"]
        for width in ("200", "100")
    ]

    first = next_chance((), 0.05)
    assert told == pytest.approx([1 - first, together((first, first / 3))])


def test_together_is_true_or_false():
    """Anything else is refused by name."""
    with pytest.raises(InvalidTarget, match="together"):
        Session(TABLE, budget=GAUSSIAN).count(absolute=100, together="yes")
