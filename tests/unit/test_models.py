"""Ridge and logistic regression to a target: what they find, what they cost, what they refuse."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import farthing
from farthing.errors import BudgetExceeded, DataError, InvalidBounds, InvalidBudget, InvalidTarget
from farthing.mechanisms.gaussian import GRAIN
from farthing.models import Fitted, Promise, logistic, regressions, ridge
from farthing.models.bounds import theory_coins
from farthing.models.looks import VectorLooks
from farthing.models.problems import Logistic, Ridge
from farthing.models.purses import Purse
from farthing.models.rows import LEAST_BOUND, TAPER, UnitBallFrame, signs, together, weight
from farthing.models.stops import NoStop
from farthing.models.vectors import Output, Statistics
from farthing.noise.bits import seeded
from farthing.privacy import Approx, Gdp, Pure, Zcdp
from farthing.rounding import FARTHING

N = 20_000
X = np.sin(np.outer(np.arange(N), [1.0, 2.3, 0.7]))
Y = X @ [1.0, -0.4, 0.0] + 0.3
COMMON = {"target": 0.01, "rows": N, "bound_x": 1.8}
RIDGE = {**COMMON, "bound_y": 2.0}
CAPS = [Gdp(4), Zcdp(8), Approx(20, 1e-6), Pure(20)]


def fits(cap, **how):
    """Return a ridge and a logistic fit under a cap."""
    chosen = {key: value for key, value in how.items() if key not in {"where", "norm"}}
    return [
        ridge(X, Y, cap=cap, bits=seeded(1), **RIDGE, **how),
        logistic(X, Y > 0, cap=cap, bits=seeded(2), method="reduction", **COMMON, **chosen),
    ]


def total(fitted, cap):
    """Return what a fit must have cost, from its levels and its test alone: the accounting oracle."""
    test = fitted.test or Pure(0)
    level = Fraction(fitted.stopped_at)
    if isinstance(cap, Pure):
        return float(level + test.amount)
    if isinstance(cap, Gdp):
        return math.sqrt(level**2 + test.to(Gdp).amount)
    if isinstance(cap, Zcdp):
        return float(level**2 / 2 + test.to(Zcdp).amount)
    tight = (math.sqrt(-math.log(1e-6) + 5) - math.sqrt(-math.log(1e-6))) ** 2 * 2  # V where u(V) = 20/4
    length = -math.log(1e-6)
    return float(level**2 / 2 + test.amount) + math.sqrt(length / 2) * (math.sqrt(tight) + level**2 / math.sqrt(tight))


@pytest.mark.parametrize("cap", CAPS, ids=repr)
@pytest.mark.parametrize("stop", [None, "test", "reduced"])
def test_a_fit_meets_its_target_and_tells_all_of_its_price(cap, stop):
    """The loss is the last level's and the test's together, below the cap; a test that is not charged shows."""
    if stop == "reduced" and isinstance(cap, Gdp | Zcdp):
        with pytest.raises(InvalidTarget, match="no ex-post price"):
            fits(cap, stop=stop)
        return
    for fitted in [ridge(X, Y, cap=cap, bits=seeded(1), stop=stop, **RIDGE), *fits(cap, stop=stop or "test")[1:]]:
        assert fitted.met
        assert fitted.loss <= cap
        assert total(fitted, cap) == pytest.approx(fitted.loss.value, rel=1e-9)
        if fitted.promise.by in {"test", "reduced"}:
            assert fitted.test > Pure(0)
            assert total(Fitted(**{**fields(fitted), "test": None}), cap) < 0.999 * fitted.loss.value
        assert list(fitted.levels) == sorted(set(fitted.levels))
        assert fitted.levels[-1] == fitted.stopped_at


def fields(fitted):
    """Return a fit as a mapping."""
    return {name: getattr(fitted, name) for name in Fitted.__slots__}


@pytest.mark.parametrize("cap", [Gdp(8), Pure(200)], ids=repr)
@pytest.mark.parametrize("where", ["statistics", "output"])
def test_the_model_found_is_near_the_best_one(cap, where):
    """Coefficients are in the data's units: the excess risk of what is predicted is within the target."""
    fitted = ridge(X, Y, cap=cap, where=where, bits=seeded(3), **RIDGE)
    frame = UnitBallFrame(1.8, 2.0, "l2" if isinstance(cap, Gdp) else "l1")
    best = Ridge(frame.points(X), frame.responses(Y, N), N, 0.005)
    coefficients, intercept = frame.coefficients(best.minimiser())
    ideal = Fitted(coefficients, intercept, cap, None, (1.0,), 1.0, Promise(0.01, 0.9, "theory", N))

    assert fitted.met
    theta = np.append(fitted.coefficients * 1.8, fitted.intercept) / (2.0 * frame.share)
    assert best.excess(theta) * 2.0**2 <= 0.01
    assert np.abs(ideal.predict(X) - Y).mean() < 0.2
    assert np.corrcoef(fitted.predict(X), ideal.predict(X))[0, 1] > 0.98


def test_the_exact_problems_agree_with_a_general_solver():
    """Ridge and logistic minimisers are those of scipy's L-BFGS; excess risks are differences of risks."""
    from scipy.optimize import minimize

    frame = UnitBallFrame(1.8, 2.0)
    points, v, s = frame.points(X[:500]), frame.responses(Y[:500], 500), signs(Y[:500] > 0, 500)

    def ridge_risk(theta):
        return float(((v - points @ theta) ** 2).sum() / 2 * weight(500, 400) + 0.05 / 2 * theta @ theta)

    def logistic_risk(theta):
        return float(np.logaddexp(0, -s * (points @ theta)).sum() * weight(500, 400) + 0.05 / 2 * theta @ theta)

    exact = [Ridge(points, v, 400, 0.05), Logistic(points * s[:, None], 400, 0.05)]
    for problem, risk in zip(exact, (ridge_risk, logistic_risk), strict=True):
        found = minimize(risk, np.zeros(4), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
        assert found.x == pytest.approx(problem.minimiser(), abs=1e-4)
        away = problem.minimiser() + np.array([0.3, -0.2, 0.5, 0.1])
        assert risk(away) - risk(problem.minimiser()) == pytest.approx(problem.excess(away), rel=1e-8)


def test_the_minimiser_stays_in_its_ball_when_there_are_more_rows_than_said():
    """With 20,000 rows where 50 were declared the ball binds: privacy does not depend on the declaration."""
    frame = UnitBallFrame(1.8, 2.0)
    problem = Ridge(frame.points(X), np.sign(frame.responses(Y, N)), 50, 1.0)
    inside = problem.minimiser()
    flat = Ridge(frame.points(X) * 0.01, np.sign(frame.responses(Y, N)), 50, 0.05).minimiser()

    assert np.linalg.norm(inside) <= problem.radius * (1 + 1e-12)
    assert np.linalg.norm(flat) == pytest.approx(1 / math.sqrt(0.05), rel=1e-12)


def test_scikit_learn_finds_the_same_models():
    """On diabetes and breast_cancer a large cap gives the regressions that scikit-learn gives without noise."""
    datasets = pytest.importorskip("sklearn.datasets")
    linear = pytest.importorskip("sklearn.linear_model")
    tumours = datasets.load_breast_cancer()
    rows = (tumours.data - tumours.data.mean(0)) / tumours.data.std(0)
    frame = UnitBallFrame(6.0)
    points, n = frame.points(rows), len(rows)
    own = Logistic(points * signs(tumours.target, n)[:, None], n, 0.01)
    theirs = linear.LogisticRegression(C=1 / (n * 0.01), fit_intercept=False, tol=1e-10, max_iter=5000)
    assert theirs.fit(points, tumours.target).coef_[0] == pytest.approx(own.minimiser(), abs=1e-5)

    people = datasets.load_diabetes()
    frame, n = UnitBallFrame(0.3, 200.0), len(people.data)
    points, v = frame.points(people.data), frame.responses(people.target - 150, n)
    theirs = linear.Ridge(n * 0.01, fit_intercept=False).fit(points, v)
    assert theirs.coef_ == pytest.approx(Ridge(points, v, n, 0.01).minimiser(), abs=1e-8)


@pytest.mark.parametrize("cap", [Gdp(4), Pure(20)], ids=repr)
def test_doubling_pays_for_every_look_and_reduction_for_the_last(cap):
    """Levels that double in price: the sum is less than twice the last one, and more than the last one."""
    reduced = ridge(X, Y, cap=cap, stop="test", bits=seeded(4), **RIDGE)
    doubled = ridge(X, Y, cap=cap, stop="test", method="doubling", bits=seeded(4), **RIDGE)
    vector = doubled.loss.amount - doubled.test.to(type(cap)).amount
    last = Fraction(doubled.stopped_at) ** (2 if isinstance(cap, Gdp) else 1)
    levels = [Fraction(level) ** (2 if isinstance(cap, Gdp) else 1) for level in doubled.levels]

    assert float(vector) == pytest.approx(float(sum(levels)), rel=1e-9)
    assert last < vector < 2 * last
    assert reduced.met


def test_theory_is_one_look_at_a_public_level():
    """The level of theory depends on no row, and is met by it."""
    fitted = logistic(X, Y > 0, cap=Gdp(4), **COMMON)
    other = logistic(-X[::-1], Y < 5, cap=Gdp(4), method="theory", **COMMON)

    assert (1, "theory", None) == (len(fitted.levels), fitted.promise.by, fitted.test)
    assert fitted.loss == other.loss


def test_no_fit_pays_more_than_theory_and_a_test():
    """The schedule ends at the level of theory; there the fit ends as met, whatever the test said."""
    theory = logistic(X, Y > 0, cap=Gdp(4), method="theory", confidence=0.99, **COMMON)
    for seed in range(5):
        fitted = logistic(X, Y > 0, cap=Gdp(4), method="reduction", bits=seeded(seed), **COMMON)
        assert fitted.loss.amount <= theory.loss.amount * 1.01 + (fitted.test or Pure(0)).to(Gdp).amount


def test_a_cap_that_ends_the_fit_says_that_the_target_was_not_met():
    """The last look is released, what it cost is told, and no promise is made."""
    fitted = ridge(X[:200], Y[:200], target=0.001, cap=Gdp(0.5), rows=200, bound_x=1.8, bound_y=2.0, bits=seeded(5))

    assert (False, "nothing") == (fitted.met, fitted.promise.by)
    assert Gdp(0.1) < fitted.loss <= Gdp(0.5)


def test_levels_of_ones_own_are_used_as_they_are():
    """Three epsilons are looked at, and no others."""
    fitted = ridge(X, Y, cap=Pure(20), levels=(0.001, 0.01, 15.0), bits=seeded(6), **RIDGE)

    assert [0.001, 0.01, 15.0] == pytest.approx(fitted.levels)
    assert fitted.met


def test_statements_say_what_a_loss_means():
    """An ex-post epsilon, a charge to a filter, and a statement that holds but for delta."""
    words = {type(cap).__name__: fits(cap)[0].statement for cap in CAPS}

    assert "surely" in words["Pure"]
    assert "but for delta" in words["Approx"]
    assert "filter" in words["Gdp"]
    assert "filter" in words["Zcdp"]


@pytest.mark.parametrize("rows", [20_000, 40])
@pytest.mark.parametrize("cap", [*CAPS, Pure(1e-6)], ids=repr)
@pytest.mark.parametrize("how", [{}, {"stop": "test"}, {"method": "theory"}, {"method": "doubling"}, {"norm": "l2"}])
def test_a_target_that_zero_meets_is_free(cap, how, rows):
    """From the largest excess risk of the coefficients 0 up they are returned free of charge, under any cap."""
    own = {key: value for key, value in how.items() if key != "norm"}
    trivial = [
        ridge(X[:rows], Y[:rows], target=2.0, cap=cap, rows=rows, bound_x=1.8, bound_y=2.0, **how),
        logistic(X[:rows], Y[:rows] > 0, target=0.7, cap=cap, rows=rows, bound_x=1.8, **own),
    ]
    for fitted in trivial:
        assert (True, "theory", 0, None, ()) == (
            fitted.met,
            fitted.promise.by,
            fitted.loss.amount,
            fitted.test,
            fitted.levels,
        )
        assert [0, 0, 0, 0] == [*fitted.coefficients, fitted.intercept]


def test_what_zero_risks_is_bounded_sharply():
    """Rows that one direction explains nearly reach the bound, of either problem; no rows pass it."""
    points = np.ones((100, 1))
    far = [Ridge(points, np.ones(100), 100, 1e-4), Logistic(points, 100, 1e-4)]
    frame = UnitBallFrame(1.8, 2.0)
    usual = [
        Ridge(frame.points(X), frame.responses(Y, N), N, 0.005),
        Logistic(frame.points(X) * signs(Y > 0, N)[:, None], N, 0.005),
    ]

    assert [0.5, math.log(2)] == [problem.idle for problem in far]
    assert all(0.98 * problem.idle < problem.excess(np.zeros(1)) <= problem.idle for problem in far)
    assert all(problem.excess(np.zeros(4)) <= problem.idle for problem in usual)


def test_a_target_just_below_is_paid_for():
    """Below what 0 is known to meet, a fit looks and pays."""
    fitted = ridge(X, Y, cap=Gdp(4), bits=seeded(9), **{**RIDGE, "target": 1.9})

    assert fitted.met
    assert fitted.loss > Gdp(0)


def test_the_promise_says_what_it_needs():
    """The statement names the rows that the promise rests on; a fit that ended unmet promises nothing."""
    fitted = ridge(X, Y, cap=Gdp(4), bits=seeded(1), **RIDGE)
    unmet = Fitted(**{**fields(fitted), "promise": Promise(0.01, 0.9, "nothing", N)})

    assert "no more than the 20,000 rows" in fitted.statement
    assert N == fitted.promise.rows
    assert "nothing is promised" in unmet.statement


def test_a_model_is_shown_in_one_short_line():
    """What it met, by what and at which loss; no coefficient and no long level."""
    fitted = ridge(X, Y, cap=Gdp(4), bits=seeded(1), **RIDGE)

    assert repr(fitted).startswith("Fitted(3 columns, met=True, by='shown', target=0.01, loss=Gdp(mu=")
    assert len(repr(fitted)) < 120


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((2, 2)), "3 columns"),
        (np.zeros(3), "1 dimensions"),
        (np.zeros((2, 0)), "no column"),
        (np.zeros((2, 3), "datetime64[s]"), "not numbers"),
    ],
)
def test_tables_of_another_shape_are_refused_by_their_fault(features, words):
    """Columns, dimensions and types each have their own message."""
    fitted = Fitted(np.ones(3), 0.0, Gdp(1), None, (1.0,), 1.0, Promise(0.01, 0.9, "theory", N))
    with pytest.raises(DataError, match=words):
        fitted.predict(features)


def test_a_row_with_a_gap_has_no_response():
    """Words, NaN and infinities have no response; all other rows have theirs."""
    fitted = Fitted(np.ones(3), 1.0, Gdp(1), None, (1.0,), 1.0, Promise(0.01, 0.9, "theory", N))
    told = fitted.predict([["a", "b", "c"], [1, 2, 3], [math.nan, 0, 0], [math.inf, 0, 0]])

    assert [True, False, True, True] == np.isnan(told).tolist()
    assert 7 == told[1]


@pytest.mark.parametrize("cap", CAPS, ids=repr)
def test_a_purse_holds_what_it_can_pay(cap):
    """The finest level that fits costs at most the cap, and the next one more, or cannot be drawn."""
    purse = Purse(cap)
    most = purse.most(Fraction(1, 8))

    assert purse.total(most, Fraction(1, 8)).amount <= cap.amount
    assert not purse.holds(most + 1, Fraction(1, 8))
    assert most == pytest.approx(purse.coins(purse.level(most)), rel=1e-9)
    assert purse.total(1, Fraction(0)).amount > 0


def test_looks_sharpen_and_must_rise():
    """Each look's values come nearer to the truth; what is paid is the last level; a lower level is refused."""
    vector = Statistics.of(Ridge(np.full((500, 1), 0.5), np.full(500, 0.5), 500, 0.1), "l2")
    for cap, coins in ((Gdp(8), [1 << 40, 1 << 60]), (Pure(900), [1 << 36, 900 << 40])):
        looks = VectorLooks(vector, Purse(cap), fresh=False, bits=seeded(7))
        coarse, fine = looks.show(coins[0]), looks.show(coins[1])
        assert np.abs(fine - 125).max() < 2 < np.abs(coarse - 125).max()
        assert coins[1] == looks.paid
        with pytest.raises(InvalidBudget, match="levels rise"):
            looks.show(coins[1])


def test_a_sample_of_the_noise_is_the_noise_that_is_priced():
    """A look at 2^54 grains has mu 1/2: its sigma is twice the sensitivity, in steps."""
    vector = Output.of(Logistic(np.zeros((1, 2)), 1000, 0.1))
    purse = Purse(Gdp(1))

    assert purse.spread(1 << 54, vector.sensitivity("l2")) == pytest.approx(2 * vector.sensitivity("l2"))
    assert Gdp.of_amount((1 << 54) * GRAIN) == purse.total(1 << 54, Fraction(0))
    assert 1 << 40 == Purse(Pure(2)).coins(1.0) == int(1 / FARTHING)


GOOD = {"cap": Gdp(4), **RIDGE}
BAD = [
    ({"target": 0}, InvalidTarget, "target > 0"),
    ({"target": -1.0}, InvalidTarget, "target > 0"),
    ({"target": math.nan}, InvalidTarget, "target > 0"),
    ({"target": "5%"}, InvalidTarget, "target > 0"),
    ({"confidence": 1}, InvalidTarget, "confidence"),
    ({"confidence": 0.0}, InvalidTarget, "confidence"),
    ({"cap": Gdp(0)}, InvalidBudget, "above 0"),
    ({"cap": 1.0}, InvalidBudget, "Pure, Gdp"),
    ({"cap": Approx(1, 0)}, InvalidBudget, "delta > 0"),
    ({"cap": Zcdp(1, 0.1)}, InvalidBudget, "without delta"),
    ({"rows": 0}, InvalidBounds, "rows"),
    ({"rows": 10.5}, InvalidBounds, "rows"),
    ({"rows": 10**20}, InvalidBounds, "rows=67108864"),
    ({"target": 2.0, "stop": "early"}, InvalidTarget, "stop is unknown"),
    ({"target": 2.0, "levels": (0.2, 0.1)}, InvalidBudget, "levels"),
    ({"bound_x": 0}, InvalidBounds, "bound_x"),
    ({"bound_y": math.inf}, InvalidBounds, "bound_y"),
    ({"regularisation": 0}, InvalidBounds, "regularisation"),
    ({"regularisation": 1e-9}, InvalidBounds, "too weak"),
    ({"norm": "l3"}, InvalidBounds, "norm"),
    ({"where": "input"}, InvalidTarget, "where is unknown"),
    ({"stop": "early"}, InvalidTarget, "stop is unknown"),
    ({"method": "luck"}, InvalidTarget, "method is unknown"),
    ({"stop": "shown", "where": "output"}, InvalidTarget, "no bound is known"),
    ({"stop": "shown", "cap": Pure(1)}, InvalidTarget, "no bound is known"),
    ({"levels": ()}, InvalidBudget, "levels"),
    ({"levels": (0.2, 0.2)}, InvalidBudget, "levels"),
    ({"levels": (0.4, 0.2)}, InvalidBudget, "levels"),
    ({"levels": (0, 0.2)}, InvalidBudget, "levels"),
    ({"levels": (5.0, 6.0)}, BudgetExceeded, "the cap"),
    ({"method": "theory", "cap": Gdp(0.01)}, BudgetExceeded, "needed"),
    ({"cap": Pure(1e-4)}, BudgetExceeded, "needed"),
]


@pytest.mark.parametrize(("how", "kind", "words"), BAD, ids=[repr(sorted(how.items())) for how, _, _ in BAD])
def test_what_is_no_question_is_refused(how, kind, words):
    """Each argument that is none is refused by its own class, with the rule; nothing is released."""
    with pytest.raises(kind, match=words) as refused:
        ridge(X, Y, **{**GOOD, **how})
    assert refused.value.rule
    assert refused.value.next_step


SECRET = 4242.5
TABLES = [
    (np.full((3, 2), SECRET), [1, 0]),
    (np.full(3, SECRET), [1, 0, 1]),
    ([["4242.5x", "1"], ["1"]], [1, 0]),
    (np.zeros((2, 0)), [1, 0]),
    (np.zeros((2, 2), "datetime64[s]"), [1, 0]),
]


@pytest.mark.parametrize(("features", "responses"), TABLES)
def test_tables_that_are_none_are_refused_without_a_word_about_a_row(features, responses):
    """Shapes and types, which are public: the message holds the rule and no value."""
    for fit, options in ((ridge, GOOD), (logistic, {"cap": Gdp(4), **COMMON})):
        with pytest.raises(DataError) as refused:
            fit(features, responses, **options)
        assert "4242" not in str(refused.value)
        assert refused.value.next_step
        assert refused.value.__context__ is None


ODD = [math.nan, math.inf, -math.inf, None, "word", b"word", 10**400, object(), 1j, 0.5, 2, -1, 1e300, 5e-324]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
@pytest.mark.parametrize("place", ["features", "responses"])
def test_a_row_decides_nothing_but_itself(odd, place):
    """An odd value is clamped or its row left out: every other row is read as it was, and nothing is refused."""
    features, responses = [[0.5, 1.0], [0.1, -2.0], [0.3, 0.2]], [1, 0, 1]
    frame = UnitBallFrame(1.8, 2.0)
    for read in (frame.responses, signs):
        plain, plainly = frame.points(features), read(responses, 3)
        more = [*features, [0.5, odd] if place == "features" else [0.5, 1]]
        points, values = frame.points(more), read([*responses, odd if place == "responses" else 1], 4)

        assert np.array_equal(plain, points[:3])
        assert np.array_equal(plainly, values[:3])
        kept, _ = together(points, values)
        assert len(kept) in {3, 4}
        assert np.linalg.norm(kept, axis=1).max() < 1
    for fit, options in ((ridge, GOOD), (logistic, {"cap": Gdp(4), **COMMON})):
        labels = [*responses, odd if place == "responses" else 1]
        assert isinstance(fit(more, labels, **options), Fitted)


def test_no_rows_are_rows():
    """A table without rows, or with none that counts, has a fit like any other."""
    for features, responses in ((np.zeros((0, 2)), []), (np.full((3, 2), math.nan), [1, 0, 1])):
        for fit, options in ((ridge, GOOD), (logistic, {"cap": Gdp(4), **COMMON})):
            assert isinstance(fit(features, responses, **options), Fitted)


@pytest.mark.parametrize("bound", [LEAST_BOUND, 1e-100, 1.0, 1 / LEAST_BOUND])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_rows_are_clamped_to_any_bound_that_is_taken(bound, norm):
    """Rows of any size, from the least to the largest double, are inside; bounds beyond float64's reach are refused."""
    sizes = np.array([0.0, 5e-324, 1e-200, 0.5 * bound, bound, 1.0, 1e200, 1.7e308])
    rows = np.concatenate([sizes[:, None] * [1.0, 0.3], sizes[:, None] * [1.0, 1.0]])
    points = UnitBallFrame(bound, norm=norm, intercept=False).points(rows)

    assert np.linalg.norm(points, ord=1 if norm == "l1" else 2, axis=1).max() < 1
    assert points[3, 0] == pytest.approx(0.5)
    for beyond in (1e-200, 5e-324, 1e200, math.inf, math.nan):
        with pytest.raises(InvalidBounds, match="bound_x is not a bound"):
            UnitBallFrame(beyond)


@pytest.mark.parametrize("more", [0, 1])
def test_far_more_rows_than_were_named_are_fitted_all_the_same(more):
    """Where float64 could not tell one step of the solver from the next, one row decides nothing either."""
    count = 150_000 + more
    features = np.sin(np.outer(np.arange(count), [1.0, 2.3]))
    fitted = logistic(
        features, features[:, 0] > 0.1, target=0.05, cap=Gdp(4), rows=100, bound_x=1.5, regularisation=0.5
    )

    assert np.isfinite(fitted.coefficients).all()


@pytest.mark.parametrize("share", [0.5, 1, 3, 100, 512, 1024, 2000])
@pytest.mark.parametrize("strength", [1e-6, 0.005, 5.0])
def test_the_solvers_always_arrive(share, strength):
    """Whatever the rows and however many: the gradient is as short as the sensitivity counts on."""
    rng = np.random.default_rng(7)
    rows = 40
    count = int(share * rows)
    for spread in (1e-6, 1.0, 1e6):
        points = UnitBallFrame(1.0).points(rng.normal(size=(count, 3)) * spread)
        points[::2] = points[0]
        for sign in (np.where(rng.random(count) > 0.5, 1.0, -1.0), np.ones(count), np.sign(points[:, 0] + 1e-300)):
            best = Logistic(points * sign[:, None], rows, strength)
            assert np.linalg.norm(best._gradient(best.minimiser(), best.points.T)) <= best.flat
            linear = Ridge(points, sign, rows, strength)
            assert np.linalg.norm(linear._hessian @ linear._best - linear._tilt) <= linear.flat


def test_weights_of_rows_beyond_those_named_change_slowly():
    """What all others' weights change by, and the new row's own, are at most (1 + TAPER)/N; their sum is bounded."""
    for rows in (1, 7, 1000):
        found = np.unique(np.geomspace(1, 3000 * rows, 400).astype(int))
        one, two = (np.array([weight(int(n) + more, rows) for n in found]) for more in (0, 1))

        assert (found * (one - two) + two <= (1 + TAPER) / rows * (1 + 2.0**-40)).all()
        assert (found * one).max() <= 257
        assert (one[found <= rows] == 1 / rows).all()


def test_labels_may_be_coded_either_way():
    """0/1, -1/1 and bool give the same model."""
    same = [
        logistic(X, labels, cap=Pure(20), bits=seeded(8), **COMMON).coefficients
        for labels in (Y > 0, np.where(Y > 0, 1, -1), (Y > 0).astype(int))
    ]
    assert np.array_equal(same[0], same[1])
    assert np.array_equal(same[0], same[2])


def test_the_package_is_reached_from_the_top():
    """farthing.models is found when it is first used, and holds four names."""
    assert farthing.models.ridge is ridge
    assert ["Fitted", "Promise", "logistic", "ridge"] == farthing.models.__all__


def test_what_never_stops_costs_nothing():
    """The rule of the theory baseline accepts nothing, at no price."""
    assert (False, 0, 0) == (NoStop().accepts(None), NoStop().epsilon, NoStop().worst(5))


def test_theory_asks_for_less_where_the_target_is_looser():
    """Levels of theory fall with the target, in each currency and for each vector; where none is known it says so."""
    frame = UnitBallFrame(1.8, 2.0)
    problem = Ridge(frame.points(X), frame.responses(Y, N), N, 0.05)
    for vector in (Statistics.of(problem, "l2"), Output.of(problem)):
        for cap in (Gdp(8), Pure(500)):
            levels = [theory_coins(problem, vector, Purse(cap), target, 0.1) for target in (0.001, 0.01, 0.1)]
            assert levels == sorted(levels, reverse=True)
            assert len(set(levels)) == 3
    tiny = Ridge(frame.points(X[:5]), frame.responses(Y[:5], 5), 5, 0.001)
    assert theory_coins(tiny, Statistics.of(tiny, "l2"), Purse(Gdp(8)), 1e-6, 0.1) is None


def test_the_schedule_rises_to_the_cap_or_to_theory():
    """Two dozen levels, each sqrt(2) of the one before in epsilon or mu."""
    asked = regressions.FitRequest(0.01, 0.01, 0.9, Purse(Pure(8)), "reduction", None, None)
    plan = regressions._levels(asked, None, 1000)

    assert Purse(Pure(8)).coins(8.0) == plan[-1]
    assert regressions.LOOKS == len(plan)
    assert [2**0.5] * 23 == pytest.approx([b / a for a, b in pairwise(plan)], rel=1e-6)
