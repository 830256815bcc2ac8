"""What bounds cut, told privately; bounds chosen from that; the warning in answers."""

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, BudgetExceeded, Gdp, InvalidBounds, InvalidTarget, Pure, Session, UnsupportedQuery

UNITS = 4_000
ROWS = np.where(np.arange(UNITS) % 10 == 0, 64, 4)  # a tenth of the units has most of the rows
TABLE = pa.table({
    "who": np.repeat(np.arange(UNITS), ROWS),
    "day": np.arange(ROWS.sum()) % 3,
    "fare": np.where(np.arange(ROWS.sum()) % 50 == 0, 500.0, 12.0),
})  # fmt: skip
BUDGET = Budget(mu=2)
DAYS = {"by": "day", "keys": {"day": [0, 1, 2]}}


def opened(**options):
    """Open the table."""
    return Session(TABLE, **({"unit": "who", "budget": BUDGET, "bounds": Bounds(max_groups=3, max_rows=2)} | options))


def test_the_report_knows_what_is_cut():
    """Its intervals hold the true shares, to a factor of two as it says; it names its price."""
    with opened() as session:
        cut = session.bounds_report("fare", **DAYS, loss=Gdp(0.5), bounds=Bounds(3, 2, 0, 100))

        assert 0 == pytest.approx(cut.report.groups.value, abs=0.05)
        fullest = np.ceil(ROWS / 3)
        share = 1 - np.minimum(fullest, 2).sum() / fullest.sum()
        assert cut.report.rows.lower <= share <= cut.report.rows.upper
        assert 0.2 < cut.report.units_value.upper
        assert "max_rows cuts" in str(cut)
        assert Gdp(0.5) >= cut.paid == session.spent


def test_a_report_on_a_value_is_about_the_rows_that_have_it():
    """Where most values are NULL the bounds cut few of those that are there; a report on rows says what it said."""
    there = np.arange(TABLE.num_rows) % 16 == 0
    few = TABLE.set_column(2, "fare", pa.array(TABLE["fare"].to_numpy(), mask=~there))
    who = few["who"].to_numpy()
    kept = [np.minimum(np.bincount(each), 6).sum() / len(each) for each in (who, who[there])]
    with Session(few, unit="who", budget=Budget(mu=20), bounds=Bounds(max_rows=6)) as session:
        every = session.bounds_report(loss=Gdp(8))  # noise that is nearly none: what is left are the powers of two
        valued = session.bounds_report("fare", loss=Gdp(8), bounds=Bounds(1, 6, 0, 100))
        answer = session.sql("SELECT COUNT(fare) AS n FROM data", absolute=500)

    assert kept[0] < 0.55
    assert kept[1] > 0.99
    for share, cut in zip(kept, (every, valued), strict=True):
        assert cut.report.kept.lower <= share <= cut.report.kept.upper
    assert every.report.kept.value + 0.25 < valued.report.kept.value
    assert valued.report.kept.value == answer.kept.value


def test_it_is_measured_once():
    """Reports on other bounds of the same question are free; a finer one is paid for."""
    with opened() as session:
        session.bounds_report(**DAYS, loss=Gdp(0.2))
        assert not session.bounds_report(**DAYS, loss=Gdp(0.2), bounds=Bounds(1, 50)).paid
        assert not session.bounds_report(**DAYS, loss=Gdp(0.1)).paid
        assert session.bounds_report(**DAYS, loss=Gdp(0.3)).paid


def test_answers_warn_where_the_cut_is_larger_than_the_target():
    """Once the cut is known, answers whose target it exceeds say so."""
    with opened() as session:
        before = session.count(**DAYS, relative=0.05, absolute=100)
        session.bounds_report(**DAYS, loss=Gdp(0.5))
        after = session.count(**DAYS, relative=0.06, absolute=100)
        wide = session.count(**DAYS, relative=0.06, absolute=100, bounds=Bounds(3, 64))
        cut = session.bounds_report(**DAYS)

    assert "note: the bounds cut" not in before.about
    assert "note: the bounds cut about" in after.about
    assert "note: the bounds cut" not in wide.about
    assert before.kept is None
    assert "kept" not in before.to_arrow().column_names
    assert after.kept.lower <= after.kept.value == cut.report.kept.value <= after.kept.upper < wide.kept.upper
    assert {after.kept.value} == set(after.to_arrow()["kept"].to_pylist())
    assert f"; counts about {after.kept} of the rows" in after.caption
    assert after.to_dict()["kept"] == after.kept._asdict()


SAME_ROWS = {
    "COUNT(*) AS n": 9_000,
    "COUNT(fare) AS n": 9_000,
    "SUM(CLAMP(fare, 0, 100)) AS n": 900_000,
    "AVG(CLAMP(fare, 0, 100)) AS n": 50,
    "MEDIAN(CLAMP(fare, 0, 100)) AS n": 50,
    "AVG(CLAMP(fare, 0, 100)) - AVG(CLAMP(fare, 0, 50)) AS n": 90,
    "COUNT(*) / SUM(COUNT(*)) OVER () AS n": 0.5,
}


OTHER_ROWS = {
    "COUNT(*) FILTER (WHERE fare > 13)": 1_000,
    "COUNT(*) FILTER (WHERE fare > 13) / COUNT(*)": 0.4,
    "SUM(CASE WHEN fare > 13 THEN 1 ELSE 0 END)": 1_000,
    "COUNT(*) FILTER (WHERE fare > 13) / SUM(COUNT(*) FILTER (WHERE fare > 13)) OVER ()": 0.3,
    "COUNT(DISTINCT who) / SUM(COUNT(DISTINCT who)) OVER ()": 0.3,
    "COUNT(DISTINCT fare) / SUM(COUNT(DISTINCT fare)) OVER ()": 0.45,
    "COUNT(DISTINCT who) / COUNT(*)": 0.4,
    "COUNT(*) AS m, COUNT(DISTINCT who)": 20_000,
    "SUM(CLAMP(fare, 0, 100)) / COUNT(*)": 90,
}


@pytest.mark.parametrize("value", [None, "fare"])
def test_what_is_kept_is_said_of_every_number_about_the_same_rows(value):
    """Once a report was paid, numbers of its rows tell it; of other rows, groups, units and values nothing.

    A report about rows alone knows nothing of rows with a value: those without it do not count there.
    """
    text, keys = "SELECT day, {} FROM data GROUP BY day", DAYS["keys"]
    with opened(budget=Budget(mu=40, delta=1e-6)) as session:
        cut = session.bounds_report(value, **DAYS, loss=Gdp(0.5))
        told = {}
        for number, absolute in SAME_ROWS.items():
            if (value or "*") in number:
                told[number] = session.sql(text.format(number), keys=keys, absolute=absolute, cap="all")
        spent = session.spent
        assert not session.bounds_report(value, **DAYS, loss=Gdp(0.5)).paid
        other = text.replace("FROM data", "FROM data WHERE fare > 1").format("COUNT(*) AS n")
        units = text.format("COUNT(DISTINCT who) AS n")
        fewer = {"day": list(keys["day"])[:2]}
        apart = [
            session.sql(other, keys=keys, absolute=9_000),
            session.sql(units, keys=keys, absolute=9_000),
            session.sql(text.format("COUNT(*) AS n"), keys=fewer, absolute=9_000),
            session.count(absolute=9_000),
            *(
                session.sql(text.format(f"{number} AS n"), keys=keys, absolute=absolute, cap="all")
                for number, absolute in OTHER_ROWS.items()
            ),
        ]

    assert {cut.report.kept.value} == {answer.kept.value for answer in told.values()}
    assert all("of the rows" in answer.caption for answer in told.values())
    assert [None] * len(apart) == [answer.kept for answer in apart]
    assert not any("note: the bounds cut" in answer.about for answer in apart)
    assert spent


def test_bounds_are_chosen_privately():
    """Bounds.auto takes bounds with little cut for the target; the answer names them, and choosing is booked."""
    with opened(bounds=Bounds.auto(loss=Gdp(0.3))) as session:
        answer = session.count(**DAYS, absolute=1_500, cap="all")
        total = session.sum("fare", **DAYS, absolute=60_000, cap="all")

        assert answer.paid < session.spent
        assert "at most 4 groups" in answer.about or "at most 3 groups" in answer.about
        truth = np.bincount(TABLE["day"].to_numpy())
        assert np.abs(answer.value - truth).max() < 0.5 * truth.max()
        assert "fare clamped into" in total.about


@pytest.mark.parametrize(("ask", "error"), [
    (lambda s: s.bounds_report(loss=Gdp(9)), BudgetExceeded),
    (lambda s: s.bounds_report("fair"), UnsupportedQuery),
    (lambda s: s.count(by="day", keys="private", found_above=50, absolute=100, bounds=Bounds.auto()), InvalidBounds),
])  # fmt: skip
def test_refusals(ask, error):
    """Refused before anything is charged."""
    with opened(budget=Budget(epsilon=1, delta=1e-6, keys_delta=1e-7)) as session:
        with pytest.raises(error):
            ask(session)
        assert not session.spent


def test_a_pure_ledger_has_a_report_by_geometric_noise():
    """It costs its epsilon, once; a finer one is paid whole; what it says is right; bounds are chosen from it."""
    with opened(budget=Budget(epsilon=4)) as session:
        first = session.bounds_report("fare", **DAYS, loss=Pure(0.5), bounds=Bounds(3, 2, 0, 100))
        again = session.bounds_report("fare", **DAYS, loss=Pure(0.4), bounds=Bounds(2, 9, 0, 50))
        finer = session.bounds_report("fare", **DAYS, loss=Pure(1), bounds=Bounds(3, 2, 0, 100))
        chosen = session.count(**DAYS, absolute=1_500, cap="all", bounds=Bounds.auto(loss=Pure(0.5)))
        with pytest.raises(InvalidTarget, match="currency"):
            session.bounds_report(**DAYS, loss=Gdp(0.1))

        assert Pure(0.5) == first.paid
        assert not again.paid
        assert Pure(1) == finer.paid
        assert session.spent == Pure(1.5) + chosen.paid
        assert "at most 3 groups" in chosen.about or "at most 4 groups" in chosen.about
    fullest = np.ceil(ROWS / 3)
    share = 1 - np.minimum(fullest, 2).sum() / fullest.sum()
    for cut in (first, finer):
        assert cut.report.rows.lower <= share <= cut.report.rows.upper < 1
