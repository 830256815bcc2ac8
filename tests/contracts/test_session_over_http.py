"""One suite of contracts for a session over a table, and for one that asks a server: the same calls and answers."""

from __future__ import annotations

import httpx
import pytest
import servers

import farthing
from farthing import errors
from farthing.client import wire

pytestmark = pytest.mark.thorough

KEYS = {"zone": servers.ZONES}


@pytest.fixture
def world(tmp_path):
    """A server with one table, which listens."""
    made = servers.World(tmp_path)
    with made.listening() as made.address:
        yield made
    made.close()


@pytest.fixture(params=["table", "server"])
def session(request, world):
    """A session in this process, or over HTTP."""
    if request.param == "table":
        opened = world.opened(analyst="alice")
    else:
        opened = farthing.connect(world.address, world.tokens["alice"])
    with opened:
        yield opened


ASKS = {
    "sql": lambda s: s.sql("SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"),
    "count": lambda s: s.count(by="zone", keys=KEYS, relative=0.2, absolute=80),
    "count where": lambda s: s.count(where="x < 10", absolute=100),
    "count of an expression": lambda s: s.count(by={"odd": "x > 20"}, keys={"odd": [True, False]}, absolute=200),
    "sum": lambda s: s.sum("x", lower=0, upper=50, absolute=9000),
    "mean": lambda s: s.mean("x", lower=0, upper=50, absolute=2),
    "quantile": lambda s: s.quantile("x", 0.5, lower=0, upper=50, rank=0.05),
    "private keys": lambda s: s.sql("SELECT x, COUNT(*) AS n FROM rides GROUP BY x LIMIT 3", keys={"x": range(4)}),
}


@pytest.mark.parametrize("name", ASKS)
def test_an_answer(session, name):
    """Columns, intervals, price; the second time free, with the same numbers."""
    first, again = ASKS[name](session), ASKS[name](session)
    assert first.to_arrow().column_names[-2:] == ["met", "paid"]
    assert first.to_arrow().drop(["paid"]).equals(again.to_arrow().drop(["paid"]))
    assert first.paid
    assert not again.paid
    assert session.spent == first.paid


@pytest.mark.parametrize("name", ASKS)
def test_what_one_paid_the_other_has_free(world, name):
    """A question over the wire is the same question as in this process: neither pays for what the other asked."""
    with world.opened(analyst="bob") as here, farthing.connect(world.address, world.tokens["alice"]) as there:
        paid, free = ASKS[name](there), ASKS[name](here)
        assert paid.paid
        assert not free.paid
        assert paid.to_arrow().column("met").to_pylist() == free.to_arrow().column("met").to_pylist()
        assert list(paid.names) == list(free.names)


def test_a_plan_costs_nothing_and_bounds_the_price(session):
    """Planned, then asked: at most what was told."""
    text = "SELECT COUNT(*) AS n FROM rides"
    plan = session.plan(text, absolute=60)
    assert not session.spent
    assert plan.fits
    answer = session.sql(text, absolute=60)
    assert answer.paid.epsilon(1e-6) <= plan.worst_price.epsilon(1e-6) + 1e-9


def test_a_sharper_answer_costs_about_the_difference(session):
    """Refining is a method of the answer."""
    first = session.count(absolute=200)
    second = first.refine(absolute=100)
    assert second.upper - second.lower < first.upper - first.lower
    assert second.met
    assert second.paid


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda s: s.sql("SELECT * FROM rides"), errors.UnsupportedQuery),
        (lambda s: s.count(absolute=-1), errors.InvalidTarget),
        (lambda s: s.count(by="zone", keys={"zone": []}), errors.InvalidKeys),
        (lambda s: s.count(relative=0, absolute=0.001), errors.OutOfReach),
        (lambda s: s.count(by="zone", relative=0.0001, on_miss="raise", max_epsilon=0.05), errors.FarthingError),
    ],
)
def test_errors_are_the_same(session, ask, kind):
    """What is refused is refused with the same type, a rule and a next step."""
    with pytest.raises(kind) as error:
        ask(session)
    assert error.value.rule
    assert error.value.next_step


def test_looks_are_told_on_the_way(session):
    """`progress=` is called after every look, also of a plan that is asked and of a refined answer."""
    seen = []
    answer = session.count(by="zone", relative=0.1, absolute=60, progress=seen.append)
    assert [type(one) for one in seen] == [farthing.Progress] * len(seen)
    assert [one.look for one in seen] == sorted(one.look for one in seen)
    assert (seen[-1].done, seen[-1].groups, seen[-1].paid) == (3, 3, answer.paid)
    told = len(seen)
    assert answer.refine(absolute=30, progress=seen.append).paid
    assert len(seen) > told


def test_a_refusal_is_the_same_where_looks_are_told(session):
    """What is refused before the first look is refused with the same type."""
    with pytest.raises(errors.OutOfReach):
        session.count(relative=0, absolute=0.001, progress=lambda _: None)
    assert not session.spent


def test_a_stream_that_breaks_is_asked_again(world, monkeypatch):
    """The connection ends after the first look: the answer comes by another request, and is charged once."""
    with farthing.connect(world.address, world.tokens["alice"]) as there:
        real = wire._events

        def broken(lines):
            """Give one event."""
            yield next(real(lines))
            raise httpx.ReadError("lost")

        monkeypatch.setattr(wire, "_events", broken)
        answer = there.count(absolute=60, progress=lambda _: None)
        assert answer.value == there.count(absolute=60).value
        assert there.history()[0]["paid"]["epsilon"] == pytest.approx(there.spent.epsilon(1e-6))


def test_a_lost_response_is_not_paid_twice(world, monkeypatch):
    """Every second response is lost: each question is asked again under its key, and is charged once."""
    real, calls = httpx.Client.request, []

    def lossy(self, *given, **how):
        """Lose every second response, after the server has worked."""
        came = real(self, *given, **how)
        calls.append(1)
        if len(calls) % 2:
            raise httpx.ReadError("lost")
        return came

    monkeypatch.setattr(httpx.Client, "request", lossy)
    with farthing.connect(world.address, world.tokens["alice"]) as session:
        answer = session.count(absolute=150)
        assert answer.paid
        assert session.spent == answer.paid


def test_who_is_not_known_and_what_is_not_there(world):
    """A wrong token, a wrong name, a wrong address: one error each, before anything is asked."""
    with pytest.raises(errors.FarthingError, match="not known"):
        farthing.connect(world.address, "mallory.x")
    with pytest.raises(errors.InvalidOption, match="no such data set"):
        farthing.connect(world.address, world.tokens["alice"], dataset="../rides")
    with pytest.raises(errors.DataError, match="cannot be reached"):
        farthing.connect("http://127.0.0.1:9/", "x.y")
