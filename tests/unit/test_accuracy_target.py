"""What may be asked for, and what is said when it may not."""

import math

import pytest

from farthing.accuracy import Target
from farthing.errors import InvalidTarget


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({}, "there is no accuracy target"),
        ({"relative": 0, "absolute": 0}, "there is no accuracy target"),
        ({"relative": -0.1}, "relative must not be negative"),
        ({"relative": 5}, "for 5 % write relative=0.05"),
        ({"relative": 1}, "for 1 % write relative=0.01"),
        ({"relative": 500}, "write 0.05 for 5 %"),
        ({"relative": "5%"}, 'write relative=0.05 for "5%"'),
        ({"relative": math.nan}, "relative must be a finite number"),
        ({"relative": True}, "relative must be a finite number"),
        ({"relative": None}, "relative must be a finite number"),
        ({"absolute": -1}, "absolute must not be negative"),
        ({"absolute": math.inf}, "absolute must be a finite number"),
        ({"absolute": "many"}, "write absolute=100"),
        ({"absolute": 1, "confidence": 95}, "for 95 % write confidence=0.95"),
        ({"absolute": 1, "confidence": 1}, "noise has no certain bound"),
        ({"absolute": 1, "confidence": 0}, "0.5 <= confidence < 1"),
        ({"absolute": 1, "confidence": 0.3}, "0.5 <= confidence < 1"),
        ({"absolute": 1, "confidence": math.nan}, "confidence must be a finite number"),
    ],
)
def test_bad_targets_say_what_to_write(facts, says):
    """A target that cannot be met is refused with the rule it breaks and the way to write it."""
    with pytest.raises(InvalidTarget) as caught:
        Target(**facts)

    assert says in str(caught.value)


def test_beta_is_shared_only_among_simultaneous_groups():
    """The chance of a miss is per group, unless all groups are promised at once."""
    assert Target(relative=0.1).beta(groups=100) == 0.05
    assert Target(relative=0.1, simultaneous=True).beta(groups=100) == pytest.approx(0.0005)


def test_too_many_simultaneous_groups_are_refused():
    """A share of beta below what is calibrated is an error, not a guess."""
    with pytest.raises(InvalidTarget, match="too close to 1"):
        Target(absolute=1, confidence=1 - 1e-9, simultaneous=True).beta(groups=10_000)


def test_tightest_takes_the_smaller_of_each():
    """The tightest of two targets is componentwise the smaller, confidence included."""
    both = Target(0.1, 50, 0.9).tightest(Target(0.05, 100, 0.99))

    assert (0.05, 50) == (both.relative, both.absolute)
    assert both.beta() == pytest.approx(0.01)


def test_tightest_returns_a_target_that_already_implies_the_other():
    """Asking the same, or less, changes nothing."""
    strict, loose = Target(0.05, 50, 0.99), Target(0.1, 100)

    assert strict is strict.tightest(loose)
    assert strict is loose.tightest(strict)
    assert loose.at_least_as_loose_as(strict)
    assert not strict.at_least_as_loose_as(loose)


def test_simultaneous_is_tighter_than_per_group():
    """Sharing beta among groups is a tighter promise for each of them."""
    assert Target(0.1, simultaneous=True).at_least_as_tight_as(Target(0.1), groups=7)
    assert not Target(0.1).at_least_as_tight_as(Target(0.1, simultaneous=True), groups=7)
