"""The attacks: what they ask, what they guess, and how they end where there is nothing to guess from."""

import duckdb
import numpy as np
import pytest

from farthing import attacks
from farthing.attacks import Claim, Coins, Question, Refused, targets
from farthing.attacks.compilers import COMPILERS
from farthing.attacks.rewriting import rewrites, same_predicates
from farthing.errors import DataError

pytestmark = pytest.mark.thorough

PEOPLE = attacks.secrets(60, seed=2)
BITS = PEOPLE.bits


@pytest.fixture(scope="module")
def database():
    """Return a connection to the people, who answer exactly."""
    connection = duckdb.connect()
    connection.register("loaded", PEOPLE.to_arrow())
    connection.execute("CREATE TABLE people AS SELECT * FROM loaded")
    yield connection
    connection.close()


@pytest.mark.parametrize("name", COMPILERS)
def test_what_is_asked_is_what_the_matrix_says(database, name):
    """Each compiler's rows count exactly those whom its questions count."""
    design = COMPILERS[name](PEOPLE, 200, Coins(0, name))
    expected = (design.rows & BITS).sum(axis=1)
    if name == "vectors":
        asked = [targets.Exact(BITS).ask(question) for question in design.questions]
    else:
        asked = [targets.Database(database, PEOPLE).ask(question) for question in design.questions]

    assert expected.tolist() == asked
    assert (200, 60) == design.rows.shape


@pytest.mark.parametrize("name", [name for name in COMPILERS if name != "vectors"])
def test_one_attack_speaks_all_languages(database, name):
    """The linear attack breaks an exact database with each compiler; marginals leave some people open."""
    result = attacks.linear(targets.Database(database, PEOPLE), queries=480, compiler=name)
    assert "broken" == result.verdict
    assert (0.85 if name == "marginals" else 1.0) <= result.accuracy


def test_a_database_gets_hash_predicates():
    """SQL targets are asked with one condition; ids that are texts are listed."""
    texts = []
    attacks.linear(targets.SqlFunction(lambda text: texts.append(text) or 0, PEOPLE), queries=5)
    assert all("POWER(id * " in text for text in texts)
    named = attacks.People(BITS, {"id": np.array([f"p{k}" for k in range(60)])})
    attacks.linear(targets.SqlFunction(lambda text: texts.append(text) or 0, named), queries=5)
    assert "id IN ('p" in texts[-1]
    with pytest.raises(DataError, match="no digits"):
        attacks.linear(targets.SqlFunction(lambda _: 0, named), compiler="hashes")
    with pytest.raises(DataError, match="compiler"):
        attacks.linear(targets.Exact(BITS), compiler="telepathy")


@pytest.mark.parametrize("method", ["l1", "box", "least_squares", "linf"])
def test_every_method_reconstructs(method):
    """Rounding hides nothing from any of them."""
    result = attacks.linear(targets.Rounded(BITS, 5), queries=600, method=method)
    assert "broken" == result.verdict
    assert 0.95 <= result.accuracy


@pytest.mark.parametrize("method", ["l1", "box", "least_squares", "linf"])
def test_the_intercept_takes_a_common_error(method):
    """An error that all answers share costs nothing with an intercept."""
    result = attacks.linear(lambda chosen: int((chosen & BITS).sum()) + 1000, bits=BITS, method=method)
    assert 1.0 == result.accuracy


def test_the_linear_program_is_the_least_absolute_error():
    """The dual's multipliers reach the value that the primal program reaches."""
    from scipy.optimize import linprog

    rows = Coins(1, "primal").bits(90, 20)
    answers = rows @ Coins(2, "primal").bits(20) + Coins(3, "primal").laplace(2.0, 90)
    x = attacks.solve(rows, answers, intercept=False)
    m, n = rows.shape
    primal = linprog(
        np.r_[np.zeros(n), np.ones(2 * m)], A_eq=np.c_[rows.astype(float), np.eye(m), -np.eye(m)], b_eq=answers,
        bounds=[(0, 1)] * n + [(0, None)] * (2 * m),
    )  # fmt: skip
    assert primal.fun == pytest.approx(np.abs(rows @ x - answers).sum(), rel=1e-6)


def test_refusals_are_left_out():
    """A target that answers every other question is reconstructed from the rest."""
    turns = iter(range(10**6))
    result = attacks.linear(
        lambda chosen: int((chosen & BITS).sum()) if next(turns) % 2 else Refused("not today"), queries=400, bits=BITS
    )
    assert (400, 200, 200, 1.0, "broken") == (
        result.sent, result.answered, result.refused, result.accuracy, result.verdict
    )  # fmt: skip
    assert ["not today"] == result.details["refusals"]


@pytest.mark.parametrize("answer", [lambda _: Refused("no"), lambda _: float("nan"), lambda _: "?"])
def test_too_few_answers_are_undecided(answer):
    """Without answers there is no verdict, and the report says how many it would take."""
    for attack in (attacks.linear, attacks.averaging, attacks.differencing, attacks.single_target, attacks.precision):
        result = attack(answer, bits=BITS)
        assert ("undecided", 0) == (result.verdict, result.answered)
        assert "at least " in result.needs
    sent = 240 if isinstance(answer(BITS), Refused) else 20
    assert f"at least 62 answers; 0 of {sent}" in attacks.linear(answer, bits=BITS).needs
    assert "undecided" == attacks.exhaustive(answer, bits=BITS[:8]).verdict


def ending(answered, then):
    """Return a function that answers exactly for a while, and then does something else."""
    turns = iter(range(10**6))
    return lambda chosen: int((chosen & BITS).sum()) if next(turns) < answered else then()


def failing():
    """Raise."""
    raise ValueError("no more")


@pytest.mark.parametrize("then", [lambda: Refused("spent", "budget"), lambda: Refused("no"), failing])
def test_answers_that_end_are_judged_alike(then):
    """However a target stops, what it said is solved; too little of it is undecided, never a claim that holds."""
    assert "broken" == attacks.linear(ending(61, then), bits=BITS).verdict
    for attack in (attacks.linear, attacks.averaging, attacks.differencing, attacks.single_target):
        result = attack(ending(8, then), bits=BITS)
        assert ("undecided", 8) == (result.verdict, result.answered)
        assert "at least " in result.needs
    report = attacks.run(targets.Function(ending(30, then), BITS))
    assert ("broken", "one-each") == (report.verdict, report.results[0].attack)


def test_a_spent_budget_holds_where_exact_answers_would_not():
    """Fewer answers than people, but exact ones would have been enough: the honest target holds."""
    people = attacks.secrets(100, seed=3).bits
    honest = attacks.linear(targets.Honest(people, 1, 90), queries=120, method="box")
    assert ("holds", 90) == (honest.verdict, honest.answered)
    assert "undecided" == attacks.linear(targets.Honest(people, 1, 20), queries=120).verdict


def test_everybody_is_asked_about_before_anybody_again():
    """A budget that ends has told of all victims."""
    assert 60 == attacks.averaging(ending(60, failing), repeats=5, bits=BITS).attempted


@pytest.mark.parametrize("said", [7, 0.0])
def test_the_same_answer_to_everything_is_undecided(said):
    """It tells nothing, and no attack can have refuted anything."""
    report = attacks.run(targets.Function(lambda _: said, BITS))
    assert "undecided" == report.verdict
    assert f"answers that differ; all 46 were {said:g}" in report.needs
    assert (
        "undecided" == attacks.membership(targets.Function(lambda _: 3, attacks.secrets(50, 1, attributes=40))).verdict
    )


def test_absurd_answers_are_no_counts():
    """One number that is larger than any count is left out, and the attack goes on."""
    turns = iter(range(10**6))
    result = attacks.linear(lambda chosen: int((chosen & BITS).sum()) if next(turns) else 1e300, bits=BITS)
    assert ("broken", 1) == (result.verdict, result.refused)
    assert "larger than any count" in result.details["refusals"][0]


def test_what_is_not_solved_is_no_guess(monkeypatch):
    """A linear program without a solution ends that attack as undecided, with the solver's words."""
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: type("R", (), {"status": 4, "message": "odd"}))
    result = attacks.linear(targets.Honest(BITS, 1, 240))
    assert ("undecided", "odd", 0) == (result.verdict, result.details["unsolved"], result.attempted)


def test_a_dead_target_is_left_alone():
    """What only ever fails is asked 20 times an attack."""
    report = attacks.run(targets.Function(lambda _: failing(), BITS))
    assert {20} == {result.sent for result in report.results}
    assert "answers; none of 120 questions got one" == report.needs


def test_bad_input_of_attacks():
    """Impossible numbers of queries, methods, tricks, words and victims are refused by name."""
    exact = targets.Exact(BITS)
    for wrong, words in [
        (lambda: attacks.linear(exact, queries=0), "no queries"),
        (lambda: attacks.linear(exact, method="magic"), "method"),
        (lambda: attacks.differencing(exact, trick="magic"), "trick"),
        (lambda: attacks.averaging(exact, words="rewritten"), "another way"),
        (lambda: attacks.averaging(exact, victims=61), "victims"),
        (lambda: attacks.averaging([exact, targets.Exact(~BITS)]), "different people"),
        (lambda: attacks.exhaustive(exact), "every world"),
        (lambda: attacks.single_target([exact, targets.Honest(BITS)]), "pooled"),
        (lambda: attacks.before_after([exact, exact]), "snapshots"),
        (lambda: attacks.refinement_gain(np.ones(3), 0), "chains"),
    ]:
        with pytest.raises(DataError, match=words):
            wrong()


def test_exhaustive_is_exact_under_bounded_noise():
    """Random noise of alpha n leaves one world, the true one, long before all subsets are asked."""
    bits = BITS[:14]
    coins = Coins(4, "bounded")
    result = attacks.exhaustive(
        lambda chosen: int((chosen & bits).sum()) + 2.8 * (2 * float(coins.uniform(1)[0]) - 1), error=2.8, bits=bits
    )
    assert (1, 1.0) == (result.details["worlds"], result.accuracy)
    assert result.sent < 2**14


def test_the_bound_of_the_exhaustive_attack_is_tight():
    """Against the worst answers worlds are left that are 4 alpha n from the truth, and none is farther."""
    bits = np.arange(10) % 2 == 0
    target = targets.Adversarial(bits, error=1)
    rows = ((np.arange(1024)[:, None] >> np.arange(10)) & 1).astype(bool)
    answers = np.array([target.answer(row) for row in rows])
    worlds = attacks.consistent(rows, answers, error=1)

    assert 1 == np.abs(answers - rows @ bits.astype(int)).max()
    assert 4 == (worlds != bits).sum(axis=1).max()
    assert 6 == len(worlds)
    assert 6 == attacks.exhaustive(target, error=1).details["worlds"]


def test_exhaustive_finds_the_error_itself():
    """Without a bound the nearest worlds are kept, and the report says how near."""
    result = attacks.exhaustive(targets.Rounded(BITS[:8], 2))
    assert (1.0, 1.0) == (result.details["error"], result.accuracy)


def test_rewrites_mean_the_same(database):
    """Every form of a question has the one answer, on a database."""
    for victim in (0, 7, 59):
        forms = rewrites(PEOPLE, victim)
        assert len(forms) > 100
        assert len({form.text for form in forms}) == len(forms)
        said = {targets.Database(database, PEOPLE).ask(form) for form in forms}
        assert {float(BITS[victim])} == said
    for form in same_predicates("sex", "F"):
        count = database.execute(f"SELECT COUNT(*) FROM people WHERE {form}").fetchone()[0]
        assert count == (PEOPLE.columns["sex"] == "F").sum()


class StickyText:
    """Noise that belongs to the text of a question: asking the same again gains nothing, other words do."""

    speaks, name, claim, people = "sql", "noise by text", None, PEOPLE

    def __init__(self, database):
        self.inner = targets.Database(database, PEOPLE)

    def ask(self, question: Question):
        return self.inner.ask(question) + 1.5 * float(Coins(0, question.text).normal(1)[0])


def test_other_words_average_sticky_noise(database):
    """Verbatim repetitions of a cached answer learn nothing new; rewritten ones learn the secret."""
    verbatim = attacks.averaging(StickyText(database), repeats=60, victims=24)
    rewritten = attacks.averaging(StickyText(database), repeats=60, victims=24, words="rewritten")
    assert verbatim.accuracy < 0.9
    assert 0.95 < rewritten.accuracy
    assert "broken" == rewritten.verdict


def test_sessions_of_several_analysts_are_averaged():
    """A budget for each session is no budget: many sessions over one table give it away together."""
    sessions = [targets.Honest(BITS, epsilon=60, questions=60, seed=seed) for seed in range(40)]
    together = attacks.averaging(sessions, repeats=40)
    alone = attacks.averaging(targets.Honest(BITS, epsilon=60, questions=60), repeats=40)
    assert (60, 2400) == (alone.answered, together.answered)
    assert 0.98 < together.accuracy


@pytest.mark.parametrize("trick", ["pair", "complement", "tracker", "range", "null"])
def test_every_trick_isolates_its_victim(database, trick):
    """In vectors and in SQL the difference is the secret."""
    kept = [targets.Database(database, PEOPLE)] + ([] if trick == "null" else [targets.Exact(BITS)])
    for target in kept:
        result = attacks.differencing(target, trick=trick)
        assert (1.0, 60, "broken") == (result.accuracy, result.attempted, result.verdict)


def test_newcomers_are_seen_in_totals():
    """One question about everybody, before and after each load."""
    snapshots = [targets.Exact(BITS[:many]) for many in range(20, 61)]
    result = attacks.before_after(snapshots)
    assert (40, 40, 41, "broken") == (result.right, result.n, result.sent, result.verdict)


def test_attacks_can_be_repeated():
    """The same seed is the same attack; another one asks other questions."""
    first, same, other = (
        attacks.linear(targets.FreshGaussian(BITS, 8.0), seed=seed).guesses.surety for seed in (1, 1, 2)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_claims_of_functions_are_judged():
    """A function that promises epsilon 4 is held to that."""
    exact = lambda chosen: int((chosen & BITS).sum())  # noqa: E731
    assert "broken" == attacks.linear(exact, bits=BITS, claim=Claim(1)).verdict
    strong = attacks.linear(exact, bits=BITS, claim=Claim(4))
    assert ("undecided", True) == (strong.verdict, strong.stated)
