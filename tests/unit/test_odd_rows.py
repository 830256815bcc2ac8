"""No outcome depends on one row's odd value: every public function that takes rows is found, fed, and compared."""

import inspect
import math
from functools import cache

import numpy as np
import pytest

from farthing import mechanisms, models
from farthing.mechanisms import (
    DecisionStumps,
    FiniteClass,
    FiniteClassLearner,
    GlobalStability,
    Points,
    Thresholds,
    hypotheses,
)
from farthing.mechanisms.hypotheses import CutHypothesis, Point
from farthing.mechanisms.learner import Learned
from farthing.mechanisms.stable_learner import stable_point
from farthing.privacy import BoundedRange, Gdp, Pure

ARRAYS = ("Array", "Int64", "Float64", "Any")
ROWS = {"features", "labels", "responses"}
"""Parameters that are rows of people, one entry or row each."""

NO_ROWS = {
    **dict.fromkeys(("scores", "counts", "truth", "true_value", "true_values"),
                    "made of rows by the caller, such that a row moves each by at most the sensitivity"),
    **dict.fromkeys(("sizes", "epsilons", "weights", "cuts", "grids", "levels"), "public"),
    **dict.fromkeys(("grains", "farthings", "groups", "information", "first", "second"),
                    "levels and places, which are public"),
    **dict.fromkeys(("values", "value", "mean", "coefficients", "result"), "released"),
    **dict.fromkeys(("learner", "score"), "a function, not an array"),
    "bits": "random bits",
    "loss": "a price",
}  # fmt: skip
"""Other parameters of an array's type, and why no row's odd value can be in them."""

SIZE = 400
LINE = np.linspace(-2, 2, SIZE)
TABLE = np.c_[LINE, np.cos(LINE)]
LABELS = (LINE > 0).astype(float)
CODES = np.arange(SIZE) % 5
ODD = [math.nan, math.inf, -math.inf, None, "x", 1e308, -1e308, 2**70, 0.5, 2, -7, b"\xff", [1], {}, "", True]


def fitting(fit, answers):
    """Return a call of a model."""
    return lambda features, values: fit(features, values, target=0.1, cap=Gdp(4), rows=SIZE, bound_x=2.0, **answers)


LEARNED = Learned(CutHypothesis(0.0), BoundedRange(1))
STUMPS = DecisionStumps({0: [0.0, 1.0], 1: [0.5]})
FITTED = models.ridge(TABLE, LINE, target=0.1, cap=Gdp(4), rows=SIZE, bound_x=2.0, bound_y=2.0)
RECIPES = {
    "CutHypothesis.predict": (lambda x, _: CutHypothesis(0.0).predict(x), LINE, LABELS),
    "DecisionStumps.mistakes": (lambda x, y: STUMPS.mistakes(x, hypotheses.labels_of(y)), TABLE, LABELS),
    "FiniteClass.mistakes": (
        lambda x, y: FiniteClass([CutHypothesis(0.0), Point(1)]).mistakes(x, hypotheses.labels_of(y)), LINE, LABELS),
    "FiniteClassLearner.fit": (lambda x, y: FiniteClassLearner(STUMPS, 1).fit(x, y), TABLE, LABELS),
    "Fitted.predict": (lambda x, _: FITTED.predict(x), TABLE, LABELS),
    "GlobalStability.fit": (lambda x, y: GlobalStability(stable_point, 1, 1e-6, 50).fit(x, y), CODES, LABELS),
    "Hypotheses.mistakes": (lambda x, y: Thresholds([0]).mistakes(x, hypotheses.labels_of(y)), LINE, LABELS),
    "Hypothesis.predict": (lambda x, _: CutHypothesis(0.0).predict(x), LINE, LABELS),
    "Learned.error": (lambda x, y: LEARNED.error(x, y, loss=Pure(1)), LINE, LABELS),
    "Learned.predict": (lambda x, _: LEARNED.predict(x), LINE, LABELS),
    "Point.predict": (lambda x, _: Point(3).predict(x), CODES, LABELS),
    "Points.mistakes": (lambda x, y: Points(5).mistakes(x, hypotheses.labels_of(y)), CODES, LABELS),
    "Thresholds.mistakes": (lambda x, y: Thresholds([0, 1]).mistakes(x, hypotheses.labels_of(y)), LINE, LABELS),
    "logistic": (fitting(models.logistic, {}), TABLE, LABELS),
    "ridge": (fitting(models.ridge, {"bound_y": 2.0}), TABLE, LINE),
}  # fmt: skip
"""A call of each, and rows that it takes."""


@cache
def taking():
    """Return every public function and method that takes arrays, with the names of these, by asking the packages."""
    public = {name: getattr(module, name) for module in (mechanisms, models) for name in module.__all__}
    public |= {name: getattr(hypotheses, name) for name in hypotheses.__all__} | {"Learned": Learned}
    found = {}
    for name, one in public.items():
        members = {name: one} if inspect.isfunction(one) else dict(inspect.getmembers(one))
        for member, bound in members.items():
            function = getattr(bound, "__func__", bound)
            if not inspect.isfunction(function) or (member.startswith("_") and member != "__init__"):
                continue
            parameters = inspect.signature(function).parameters.values()
            arrays = {each.name for each in parameters if any(kind in str(each.annotation) for kind in ARRAYS)}
            if arrays:
                found[name if inspect.isfunction(one) else f"{name}.{member}"] = arrays
    return found


def test_every_array_is_rows_or_has_a_reason():
    """A new parameter of an array's type is named here, and what takes rows has a recipe."""
    named = {name for arrays in taking().values() for name in arrays}

    assert named <= ROWS | set(NO_ROWS)
    assert {name for name, arrays in taking().items() if arrays & ROWS} == set(RECIPES)


def outcome(call, features, values):
    """Return what comes of a call: the type of its answer and its shape, or of its error, with what that says."""
    try:
        answer = call(features, values)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is an outcome
        return type(error), str(error)
    return ("answer", getattr(answer, "shape", None)) if isinstance(answer, np.ndarray | np.generic) else "answer"


def spoiled(rows, odd, kind):
    """Return rows with one odd value, as an array of numbers or of objects, or as a list; None where it has none."""
    if kind is float:
        if not isinstance(odd, int | float) or isinstance(odd, bool):
            return None
        changed = np.array(rows, float)
    else:
        changed = np.array(rows, object)
    changed[(7, 0) if changed.ndim == 2 else 7] = odd
    return changed.tolist() if kind is list else changed


@pytest.mark.parametrize("kind", [float, object, list])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_one_odd_value_changes_no_outcome(name, kind):
    """Features, labels and responses with one odd value give what they give without it: an answer of the same type."""
    call, features, values = RECIPES[name]
    plain = [spoiled(rows, 0.0, kind) for rows in (features, values)]
    expected = outcome(call, *plain)

    assert expected == "answer" or expected[0] == "answer"
    for odd in ODD:
        for place in (0, 1):
            changed = spoiled((features, values)[place], odd, kind)
            if changed is not None:
                asked = [changed if at == place else rows for at, rows in enumerate(plain)]
                assert expected == outcome(call, *asked), (odd, place)


def test_a_refusal_by_one_row_is_seen(monkeypatch):
    """Planted: labels that are not all 0 or 1 are refused, as they were."""

    def strict(labels):
        given = np.asarray(labels)
        if not np.isin(given, (0, 1)).all():
            raise ValueError("these are no labels")
        return given.astype(np.int64)

    monkeypatch.setattr("farthing.mechanisms.learner.labels_of", strict)
    call, features, labels = RECIPES["FiniteClassLearner.fit"]

    assert outcome(call, features, labels) != outcome(call, features, spoiled(labels, 2.0, float))


def test_what_an_odd_row_counts():
    """A row without a label counts nowhere; a feature that is no number is above no cut, a point of no class."""
    labels = hypotheses.labels_of([1, 0, 0.5])

    assert [1, 1] == Thresholds([0, 1]).mistakes([math.nan, -1, 5], labels).tolist()
    assert [1, 1] == DecisionStumps({0: [0.0]}).mistakes(np.array([[math.nan], [-1], [5]]), labels).tolist()
    assert [1, 1, 1] == Points(3).mistakes([math.nan, 7, 1], labels).tolist()
    assert [0, 1] == CutHypothesis(0.0).predict([None, 3]).tolist()
