"""The audit of farthing itself: lanes, the page, its verdict, and the command."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from farthing import Gdp, Pure, Zcdp, audit
from farthing.audit import itself
from farthing.audit.battery import Lane
from farthing.audit.trials import Transcript, factor_of, scaled
from farthing.cli.app import app
from farthing.errors import InvalidTarget
from farthing.privacy.loss import Approx

ROW = audit.Row("count", "mu", 1.0, 0.9, False, 1.1, "half the noise", True, "output above 0", 1000, 0.1)  # noqa: FBT003
CLOCK = audit.Timing(1.0, 2.0, 0.5, 30)


def page(*, row=ROW, findings=()):
    """Return a page of one row and one oracle."""
    return audit.Report("1", True, 5, 0.999999, (row,), (audit.Check("an oracle", findings, 0.1),), CLOCK, 1.0)  # noqa: FBT003


def row(**changes):
    """Return the row, changed."""
    from dataclasses import replace

    return replace(ROW, **changes)


@pytest.mark.parametrize(
    ("made", "verdict", "code"),
    [
        (page(), "holds", 0),
        (page(row=row(broken=True)), "broken", 10),
        (page(findings=(audit.Finding("a", "b", "c"),)), "broken", 10),
        (page(row=row(caught=False)), "undecided", 11),
        (page(row=row(caught=False, broken=True)), "broken", 10),
    ],
)
def test_verdicts(made, verdict, code):
    """A bound or a finding breaks it; a planted bug that escapes leaves it undecided."""
    assert verdict == made.verdict
    assert code == made.exit_code
    assert verdict in made.lines()[-1]


def test_the_page_is_plain_values():
    """JSON has no infinities: what no test could see is null."""
    told = json.loads(json.dumps(page(row=row(sees=float("inf"))).to_dict()))

    assert told["mechanisms"][0]["sees"] is None
    assert "holds" == told["verdict"]
    assert "seen" in str(page())
    assert "NOT SEEN" in str(page(row=row(caught=False)))


def test_factors_of_every_currency():
    """Twice narrower noise is twice mu and epsilon and four times rho, and back."""
    for loss in (Gdp(0.5), Zcdp(0.5), Pure(0.5)):
        assert pytest.approx(2) == factor_of(scaled(loss, 2), loss.value)
    assert float("inf") == factor_of(Gdp(1), 0)
    with pytest.raises(InvalidTarget):
        scaled(Approx(1, 0.1), 2)


def lane(shift, claim, bug_shift=3.0):
    """Return a lane of normal noise with a claim."""
    rng = np.random.default_rng(1)

    def drawn(trials, moved):
        return Transcript(rng.normal(size=trials), rng.normal(moved, 1, trials), claim)

    return Lane("normal", lambda n: drawn(n, shift), lambda n, _: drawn(n, bug_shift), "three times", 1.0)


def test_judging_a_lane():
    """An honest lane holds and its planted bug is seen; a lane that leaks is broken; a mild bug escapes."""
    honest = itself.judged(lane(1.0, Gdp(1)), 4_000, 1 - 1e-6)
    broken = itself.judged(lane(2.0, Gdp(1)), 4_000, 1 - 1e-6)
    blind = itself.judged(lane(1.0, Gdp(1), bug_shift=1.01), 4_000, 1 - 1e-6)

    assert (False, True) == (honest.broken, honest.caught)
    assert broken.broken
    assert not blind.caught
    assert 1 < honest.sees < 2


def test_the_command_prints_the_page(monkeypatch):
    """Farthing audit --self: a table, the oracles, and the exit code of the verdict."""
    asked = {}

    def fake(*, quick, seed, progress):
        asked.update(quick=quick, seed=seed)
        progress("count", 1, 2)
        return page(row=row(broken=True, found=0.0))

    monkeypatch.setattr(audit, "self_audit", fake)
    ended = CliRunner().invoke(app, ["audit", "--self", "--full", "--seed", "4"])
    told = CliRunner().invoke(app, ["audit", "--self", "--json"])

    assert 10 == ended.exit_code
    assert "BROKEN" in ended.output
    assert "an oracle" in ended.output
    assert 10 == told.exit_code
    assert "broken" == json.loads(told.stdout)["verdict"]
    assert {"quick": True, "seed": None} == asked


def test_the_command_wants_to_know_what():
    """Without --self there is nothing to audit: usage."""
    ended = CliRunner().invoke(app, ["audit"])

    assert 2 == ended.exit_code
    assert "--self" in ended.output
