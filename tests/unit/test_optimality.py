"""What answers say of the least loss that any unbiased mechanism could have paid for them."""

import math

import numpy as np
import pytest
from rides import BY, KEYS, TABLE

from farthing import Bounds, Budget, Gdp, Pure, Session, UnsupportedQuery, Zcdp
from farthing.limits import for_query
from farthing.planning.relative_count import KINDS

TARGET = {"relative": 0.1, "absolute": 20, "cap": "all"}


def opened(budget=None, **options):
    """Open the table with much to spend."""
    return Session(TABLE, **({"budget": budget or Budget(mu=8)} | options))


def test_a_refined_count_is_within_a_few_percent_of_the_least():
    """One number at an absolute target: the limit knows nothing better than Gaussian noise."""
    with opened() as session:
        limit = session.count(absolute=50).optimality()

    assert 1 <= limit.ratio < 1.02
    assert "the least loss any unbiased mechanism could have paid for this is Gdp(mu=" in str(limit)
    assert "you paid 1.0" in str(limit)


def test_the_limit_is_that_of_the_stated_deviations():
    """For a named loss the deviation is 1/mu, and the limit that of `for_query` at it."""
    with opened() as session:
        limit = session.count(**BY, loss=Gdp(0.25)).optimality()

    expected = for_query(Gdp(0.25), sds=[4.0] * 4)
    assert expected.least.amount == pytest.approx(float(limit.least.amount), rel=1e-5)
    assert expected.groups == limit.groups


def test_all_asks_that_paid_for_it_count():
    """After a refine the price is that of both asks: the increment alone would seem to beat the limit."""
    with opened() as session:
        first = session.count(loss=Gdp(0.3))
        sharper = first.refine(loss=Gdp(0.4))
        free = session.count(absolute=100)

    assert Gdp(0.4).mu == pytest.approx(sharper.optimality().paid.mu, rel=1e-6)
    assert 1 <= sharper.optimality().ratio < 1.2
    assert for_query(sharper.paid, sds=[2.5]).ratio < 1  # the planted mistake
    assert not free.paid
    assert sharper.optimality().paid == free.optimality().paid


@pytest.mark.parametrize(("lower", "upper", "signed"), [(0, 9, False), (-9, 9, True), (-3, 9, False)])
def test_sums_know_how_far_a_unit_moves_them(lower, upper, signed):
    """The sensitivity is rows times the larger clamp; only symmetric clamps let a unit move all groups either way."""
    with opened(unit="u", bounds=Bounds(max_groups=3, max_rows=2)) as session:
        limit = session.sum("x", lower=lower, upper=upper, **BY, loss=Gdp(0.2)).optimality()

    mu = 0.2 / math.sqrt(3)
    expected = for_query(Gdp(0.2), sds=[18 / mu] * 4, sensitivity=18, max_groups=3, signed=signed)
    assert expected.least.amount == pytest.approx(float(limit.least.amount), rel=1e-4)


def test_groups_that_were_given_up_are_paid_for_and_no_answers():
    """Under a small cap small groups miss: the limit rests on those that did not."""
    with opened() as session:
        answer = session.count(**BY, relative=0.1, cap=Gdp(0.02))
        limit = answer.optimality()

        assert 0 < answer.met.sum() < 4
        assert limit.groups <= answer.met.sum()
        assert Gdp(0.02) >= limit.paid
        with pytest.raises(UnsupportedQuery, match="every group was given up"):
            session.count(where="x < 0", relative=0.1, cap=Gdp(0.02)).optimality()


def test_a_pure_answer_has_geometric_noise():
    """Laplace-like noise pays up to sqrt(2) of the limit, in epsilon."""
    with opened(Budget(epsilon=5)) as session:
        limit = session.count(**BY, loss=Pure(0.01)).optimality()

    assert 1.38 < limit.ratio < 1.45


@pytest.mark.parametrize("mechanism", KINDS)
def test_relative_noise_is_compared_at_the_released_sizes(mechanism):
    """The smallest group decides: there the release is within a few percent of what it had to be charged."""
    with opened(Budget(rho=32)) as session:
        answer = session.count(**BY, **TARGET, mechanism=mechanism)
        limit = answer.optimality()

    assert 0.99 < limit.ratio < 2
    assert (Zcdp, answer.paid) == (type(limit.least), limit.paid)


def test_a_release_of_large_groups_only_says_what_small_ones_would_have_cost():
    """Nobody small is there, but the ledger promised them too: the limit at the released sizes is far below."""
    with opened(Budget(rho=32)) as session:
        limit = session.count("k", keys={"k": ["many"]}, **TARGET, mechanism="linear-log").optimality()

    assert limit.ratio > 50
    assert limit.ratio == pytest.approx(400, rel=0.5)  # (4000 / x0)^2, x0 = 200


def test_it_is_about_all_groups_that_were_asked():
    """HAVING and on_miss="drop" hide groups that were paid for; the limit is the same."""
    with opened() as session:
        whole = session.count(**BY, **TARGET)
        shown = session.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k HAVING n > 200", keys=KEYS, **TARGET)

    assert whole.optimality() == shown.optimality()


@pytest.mark.parametrize("asking", [
    lambda s: s.mean("x", lower=0, upper=9, absolute=1),
    lambda s: s.variance("x", lower=0, upper=9, absolute=5),
    lambda s: s.quantile("x", 0.5, lower=0, upper=9, rank=0.1),
    lambda s: s.sql("SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 9)) AS t FROM data", absolute=500),
    lambda s: s.sql("SELECT COUNT(*) AS n, MEDIAN(CLAMP(x, 0, 9)) AS t FROM data", absolute=50),
], ids=["mean", "variance", "quantile", "two", "two kinds"])  # fmt: skip
def test_no_limit_is_claimed_where_none_is_known(asking):
    """It is refused by name, with advice."""
    with opened() as session:
        answer = asking(session)
        with pytest.raises(UnsupportedQuery, match="no least loss is known") as refused:
            answer.optimality()

    assert any(name in str(refused.value) for name in ("AVG", "VAR", "QUANTILE", "COUNT"))
    assert refused.value.next_step


def test_many_groups_are_quick():
    """A hundred thousand released sizes: the smallest decide."""
    from farthing.mechanisms import Asinh
    from farthing.planning.relative_count import RelativeNoise
    from farthing.session.answering.optimality import of_relative

    noise = RelativeNoise("asinh", Asinh(0.05, 100.0), 0.1, 50.0, 0.05, 1, 1)
    few, many = (of_relative(noise, np.linspace(10, top, n), Zcdp) for top, n in ((10, 1), (1e6, 100_000)))

    assert float(few.least.amount) == pytest.approx(float(many.least.amount), rel=1e-9)
