"""Every oracle of the audit passes on farthing and finds the bug that it is for, planted into a session or a module."""

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Gdp, Session, audit
from farthing.audit import bookkeeping, corpus, noises
from farthing.audit.fuzzing import plain, wild
from farthing.audit.oracles import NOISY
from farthing.audit.tables import HEAVY, SeededChoices
from farthing.errors import DataError, TargetMissed

pytestmark = pytest.mark.thorough


class Planted:
    """A session with a bug: whatever the bug does not define is the session's own."""

    def __init__(self, session, place):
        self._session, self._place = session, place

    def __getattr__(self, name):
        return getattr(self._session, name)


class HalfPrice(Planted):
    """Books a third of what an interval is worth."""

    @property
    def spent(self):
        return Gdp(self._session.spent.value / 3)


class ErrorsThatTell(Planted):
    """Says in an error how many rows there were."""

    def sql(self, *_, **__):
        raise DataError(f"{self._place.u.num_rows} rows did not fit", rule="none", next_step="none")


class PriceThatTells(Planted):
    """Asks more dearly where the heavy person is."""

    def sql(self, text, *, absolute, **options):
        heavy = HEAVY in self._place.u.column("uid").to_pylist()
        return self._session.sql(text, absolute=absolute / 2 if heavy else absolute, **options)


class KeysFromData(Planted):
    """Answers for the keys that occur."""

    def sql(self, *_, **__):
        found = sorted(set(self._place.u.column("uid").to_pylist()))
        return self._session.count(by="uid", keys={"uid": found}, absolute=9, cap="all")


class Careless(Planted):
    """Hands every text to the engine and gives back what comes."""

    def sql(self, text, **_):
        return self._place.raw(text)


def planted(bug):
    """Return how sessions with a bug are opened."""
    return lambda place: bug(place.session(), place)


COUNT = "SELECT COUNT(*) AS n FROM u"


def ask(session):
    """Ask for one count."""
    return session.sql(COUNT, keys=None, absolute=2, cap="all", bounds=Bounds(max_groups=1, max_rows=1))


def compare(make_session, question=ask, **options):
    """Ask a town and the town without its heavy person."""
    here = audit.town()
    return audit.neighbours(make_session, here, here.without(HEAVY), question, question=COUNT, **options)


def floor(make_session, question=ask):
    """Judge the price of a count by brute force."""
    here = audit.town()
    smaller = [(k, here.without(*range(k))) for k in (1, 3, 4, 5, 6, 8)]
    truth = lambda place: place.u.num_rows  # noqa: E731
    return audit.price_floor(make_session, here, smaller, question, truth, question=COUNT)


def test_neighbours_get_equal_outcomes():
    """Answers, refusals and choices of farthing are equal on neighbours."""
    refused = lambda session: session.sql("SELECT uid FROM u", absolute=1)  # noqa: E731
    chosen = lambda session: session.top_k("s", k=1, keys={"s": ["A", "B"]}, epsilon=1)  # noqa: E731
    missed = lambda session: session.sql(COUNT, absolute=0.5, cap=Gdp(0.1), on_miss="spend")  # noqa: E731

    assert () == compare(audit.Town.session)
    assert () == compare(audit.Town.session, refused)
    assert () == compare(audit.Town.session, chosen)
    assert () == compare(audit.Town.session, missed)


@pytest.mark.parametrize("bug", [ErrorsThatTell, PriceThatTells, KeysFromData, Careless])
def test_what_differs_on_neighbours_is_found(bug):
    """An error, a price, keys or a raw answer that depend on one person are findings."""
    found = compare(planted(bug))

    assert found
    assert {"neighbour equality"} == {finding.oracle for finding in found}


def test_noisy_prices_are_for_samples():
    """Where a target is relative the price is an output; the rest is still compared."""
    relative = lambda session: session.sql(COUNT, relative=0.05, absolute=1, cap="all")  # noqa: E731

    assert () == compare(audit.Town.session, relative, noisy=NOISY)


def test_errors_that_are_not_ours_are_findings():
    """A traceback of Python or of the engine is an outcome that nobody promised."""
    found = compare(audit.Town.session, lambda session: session.schema["nothing"])

    assert "unexpected KeyError" in str(found[0])


def test_a_fair_price_is_above_the_floor():
    """Intervals of farthing cost what they tell, for one person and for groups."""
    assert () == floor(audit.Town.session)


def test_an_interval_too_good_for_its_price_is_found():
    """A third of the price is below the floor of a group, without any sampling."""
    (found,) = floor(planted(HalfPrice))

    assert "price floor" == found.oracle
    assert "at least" in found.what


def test_a_refusal_has_no_price_to_judge():
    """Where an answer was expected and none came, that is a finding."""
    (found,) = floor(audit.Town.session, lambda session: session.sql("SELECT uid FROM u", absolute=1))

    assert "no answer came" in found.what


def test_the_corpus_is_as_expected():
    """Old weaknesses are refused free of charge or answered at a fair price, alike on neighbours."""
    assert () == audit.check_corpus()
    assert {"refused", "bounded"} == {case.expected for case in audit.CORPUS}


def test_a_careless_engine_is_found_by_the_corpus():
    """An engine that runs what it gets fails most of the list: shapes, errors, escapes and keys from data."""
    cases = [
        case for case in audit.CORPUS if case.name not in {"copy", "attach", "extension", "setting", "slow branch"}
    ]
    found = audit.check_corpus(cases, planted(Careless))
    questions = {finding.question for finding in found}

    assert {case.text for case in corpus.SHAPES if case.expected == "refused" and case.moves > 1} <= questions | {
        "SELECT COUNT(*) AS n FROM u ASOF JOIN o ON u.uid >= o.uid"
    }
    assert 50 < len(questions)


def test_shapes_move_as_far_as_the_corpus_says():
    """Brute force on raw DuckDB: the heavy person really moves these answers by more than a count's one."""
    here = audit.town()
    for case in corpus.SHAPES[:3]:
        moved = max(
            abs((here.raw(case.text)[0][0] or 0) - (here.without(person).raw(case.text)[0][0] or 0))
            for person in (HEAVY, *range(3))
        )
        assert moved <= case.moves
        assert case.moves in {moved, 1}


def test_odd_values_in_one_row_tell_nothing():
    """NULL, NaN, infinities and extremes give finite answers of the same kind."""
    assert () == audit.odd_values()


def test_random_questions_tell_nothing():
    """Questions made at random keep both promises."""
    assert () == audit.fuzz(questions=12, seed=2)


@pytest.mark.slow
def test_many_random_questions_tell_nothing():
    """The same, for longer."""
    assert () == audit.fuzz(questions=800, seed=5)


@pytest.mark.parametrize("bug", [ErrorsThatTell, PriceThatTells, HalfPrice])
def test_random_questions_find_bugs(bug):
    """The fuzzer finds what depends on one person, and what is too cheap."""
    assert audit.fuzz(questions=16, seed=0, make_session=planted(bug))


def test_questions_are_the_same_for_the_same_seed():
    """A seed names its questions; wild ones are answered or refused by name, plain ones always answered."""
    texts = [wild(SeededChoices(0, str(place))).text for place in range(20)]

    assert texts == [wild(SeededChoices(0, str(place))).text for place in range(20)]
    assert 15 < len(set(texts))
    assert plain(SeededChoices(0, "x")).text == plain(SeededChoices(0, "x")).text


def test_books_are_in_order():
    """Charge, look, speak; no refund, no overdraft, nothing sold twice."""
    assert () == audit.books()


class Refunding(Session):
    """Gives the money back where an error ends the ask."""

    failed = False

    def count(self, **options):
        try:
            return super().count(**options)
        except BaseException as error:
            self.failed = not isinstance(error, bookkeeping.BudgetExceeded)
            raise

    @property
    def spent(self):
        return Gdp(0) if self.failed else super().spent


class ChargingAfterwards(Session):
    """Charges after the answer."""

    asking = False

    def count(self, **options):
        self.asking = True
        answer = super().count(**options)
        self.asking = False
        return answer

    @property
    def spent(self):
        return Gdp(0) if self.asking else super().spent


class Forgetful(Session):
    """Never writes its file."""

    def __init__(self, table, **options):
        super().__init__(table, **options | {"ledger": None})


class Generous(Session):
    """Has ten times the budget."""

    def __init__(self, table, **options):
        super().__init__(table, **options | {"budget": Budget(mu=10)})


@pytest.mark.parametrize(
    ("bug", "names"),
    [
        (Refunding, {"kept_when_stopped", "kept_when_missed"}),
        (ChargingAfterwards, {"charged_first"}),
        (Forgetful, {"remembered"}),
        (Generous, {"refused_for_nothing", "never_overdrawn"}),
    ],
)
def test_books_out_of_order_are_found(bug, names, monkeypatch):
    """A refund on error, a charge after the answer, a ledger that forgets, a budget that is passed."""
    monkeypatch.setattr(bookkeeping, "Session", bug)

    assert names <= {finding.question for finding in audit.books()}


def test_the_missed_target_is_found_by_its_error():
    """A missed target carries its paid answer, which the books must show."""
    session = Session(pa.table({"x": [1]}), budget=Budget(mu=1))
    with pytest.raises(TargetMissed) as missed:
        session.count(absolute=4, relative=0.001, cap=Gdp(0.3), on_miss="raise")

    assert Gdp(0) < missed.value.answer.paid


def test_noise_leaves_as_it_should():
    """On a grid, independent, unseeded, and not shared by forks."""
    assert () == audit.on_grid()
    assert () == audit.uncorrelated()
    assert () == audit.unseeded()
    assert () == audit.fork_safe()


class Answered:
    """An answer of numbers."""

    def __init__(self, value):
        self.value = value


class FloatNoise(Session):
    """Adds noise in floating point, from a textbook generator."""

    def count(self, *_, keys, **__):
        return Answered(np.random.normal(size=len(keys["k"])))  # noqa: NPY002

    def sum(self, *_, keys, **__):
        return self.count("k", keys=keys)


def test_float_noise_and_seeded_noise_are_found(monkeypatch):
    """Noise off the grid, and noise that comes again with its seed."""
    monkeypatch.setattr(noises, "Session", FloatNoise)

    assert 6 == len(audit.on_grid())
    assert 1 == len(audit.unseeded())


def test_noise_used_again_is_found():
    """Two questions with one noise, or neighbouring groups with half of theirs in common."""
    rng = np.random.default_rng(6)
    noise = rng.normal(size=5_001)
    shared = noise[1:] + noise[:-1]

    assert {"two questions"} == {f.question for f in audit.uncorrelated(lambda: noise, lambda: noise + 3)}
    (found,) = audit.uncorrelated(lambda: shared, lambda: rng.normal(size=5_000))
    assert "neighbouring groups" == found.question


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("os.write(write, repr(ask()).encode())", "os.write(write, b'[1.0]')", "the same noise"),
        ("print(ask())", "import time; time.sleep(60)", "no answer"),
    ],
)
def test_forks_that_share_or_fail_are_found(old, new, told, monkeypatch):
    """Workers with the same noise, or without end."""
    monkeypatch.setattr(noises, "_FORKED", noises._FORKED.replace(old, new))
    monkeypatch.setattr(noises, "FORK_SECONDS", 2.0 if told == "no answer" else 60.0)

    (found,) = audit.fork_safe(2)

    assert told in found.what


def test_timing_is_told():
    """Timing is measured and told in words; it is no verdict."""
    seen = audit.timing(runs=5)

    assert 0 < seen.with_ms
    assert "time is not hidden" in str(seen)
