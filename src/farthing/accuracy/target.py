"""What the analyst asks for: how far the answer may be from the truth, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from farthing.errors import InvalidTarget

LEAST_BETA: Final = 1e-12
"""The smallest chance of a miss that is calibrated, after sharing it among groups."""

LEAST_RELATIVE: Final = 1e-12
"""The smallest relative target: answers are float64, which knows a number to 1e-16 of itself."""

DISTANCES: Final = (1e-150, 1e150)
"""The smallest and the largest absolute target: their squares are float64, too."""


@dataclass(frozen=True, slots=True)
class Target:
    """`|answer - truth| <= max(relative |truth|, absolute)` with probability at least `confidence`.

    Attributes:
        relative: fraction of the truth, in [0, 1); 0.05 is 5 %.
        absolute: in the units of the answer, >= 0; at relative = 0 it must be positive.
        confidence: in [0.5, 1), for each group; for all groups at once if `simultaneous`.
        simultaneous: whether all groups must be within the target together.

    >>> Target(relative=0.1, absolute=100).beta(groups=265)
    0.05
    >>> Target(relative=0.1, absolute=100, simultaneous=True).beta(groups=10)
    0.005
    """

    relative: float = 0.0
    absolute: float = 0.0
    confidence: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        for name in ("relative", "absolute", "confidence"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        _check_relative(self.relative)
        _check_absolute(self.absolute)
        _check_confidence(self.confidence)
        if self.relative == 0 and self.absolute == 0:
            raise InvalidTarget(
                "there is no accuracy target",
                rule="relative, absolute or both must be positive",
                next_step="say how far off an answer may be, as in relative=0.05, absolute=100",
            )

    def __str__(self) -> str:
        widths = [f"{100 * self.relative:.6g} %"] if self.relative else []
        widths += [f"{self.absolute:,.6g}"] if self.absolute else []
        return " or ".join(widths) + (" for all groups at once" if self.simultaneous else "")

    def beta(self, groups: int = 1) -> float:
        """Return the allowed chance that one group's answer misses, in [1e-12, 0.5].

        >>> Target(absolute=10, confidence=0.99).beta()
        0.01
        """
        beta = round(1 - self.confidence, 15)  # 1 - 0.95 is 0.05 to every reader
        share = beta / groups if self.simultaneous else beta
        if share < LEAST_BETA:
            raise InvalidTarget(
                "the confidence is too close to 1 for this many groups",
                rule=f"1 - confidence, shared among the groups, must be at least {LEAST_BETA}",
                got=f"{share:.3g}",
                next_step="lower the confidence, or drop simultaneous=True",
            )
        return share

    def tightest(self, other: Target, *, groups: int = 1) -> Target:
        """Return the target that implies both: the smaller relative, absolute and chance of a miss of the two.

        It speaks of each group (`simultaneous` is folded into the confidence), for the same number of groups.

        >>> Target(relative=0.1, absolute=50).tightest(Target(relative=0.05, absolute=100, confidence=0.9))
        Target(relative=0.05, absolute=50.0, confidence=0.95, simultaneous=False)
        """
        if self.at_least_as_tight_as(other, groups=groups):
            return self
        if other.at_least_as_tight_as(self, groups=groups):
            return other
        return Target(
            min(self.relative, other.relative),
            min(self.absolute, other.absolute),
            1 - min(self.beta(groups), other.beta(groups)),
        )

    def at_least_as_tight_as(self, other: Target, *, groups: int = 1) -> bool:
        """Return whether an answer to this target also meets the other.

        >>> Target(absolute=10).at_least_as_tight_as(Target(relative=0.1, absolute=10))
        True
        """
        return (
            self.relative <= other.relative
            and self.absolute <= other.absolute
            and self.beta(groups) <= other.beta(groups)
        )

    def at_least_as_loose_as(self, other: Target, *, groups: int = 1) -> bool:
        """Return whether an answer to the other target also meets this one, so that it is free."""
        return other.at_least_as_tight_as(self, groups=groups)


def _number(name: str, got: object) -> float:
    """Return a finite number, or say how to write one."""
    if isinstance(got, str):
        advice = f'write {name}=0.05 for "5%"' if name != "absolute" else "write absolute=100"
        raise InvalidTarget(f"{name} must be a number", rule="a number, not text", got=repr(got), next_step=advice)
    try:
        value = float(got)  # type: ignore[arg-type]  # anything that is not a number is refused below
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(got, bool) or not math.isfinite(value):
        raise InvalidTarget(
            f"{name} must be a finite number",
            got="a whole number of more than 308 digits" if type(got) is int else repr(got),
            next_step=f"leave {name} out if unused",
            rule="a finite number",
        )
    return value


def _check_relative(relative: float) -> None:
    """Refuse what is not a fraction in [0, 1)."""
    if relative < 0:
        raise InvalidTarget(
            "relative must not be negative", rule="0 <= relative < 1", got=relative, next_step="write 0.05 for 5 %"
        )
    if relative >= 1:
        advice = f"for {relative:g} % write relative={relative / 100:g}" if relative < 100 else "write 0.05 for 5 %"
        raise InvalidTarget("relative must be below 1", rule="0 <= relative < 1", got=relative, next_step=advice)
    if 0 < relative < LEAST_RELATIVE:
        raise InvalidTarget(
            "relative is too small",
            rule=f"0, or at least {LEAST_RELATIVE:g}",
            got=relative,
            next_step="name an absolute target: absolute=1 is as near as a count can be",
        )


def _check_absolute(absolute: float) -> None:
    """Refuse what is not a distance."""
    if absolute < 0:
        raise InvalidTarget(
            "absolute must not be negative",
            rule="absolute >= 0, in the units of the answer",
            got=absolute,
            next_step="give the largest error you can accept, as in absolute=100",
        )
    least, largest = DISTANCES
    if absolute and not least <= absolute <= largest:
        raise InvalidTarget(
            "absolute is out of range",
            rule=f"0, or from {least:g} to {largest:g}",
            got=absolute,
            next_step="give the largest error you can accept, as in absolute=100",
        )


def _check_confidence(confidence: float) -> None:
    """Refuse what is not a probability in [0.5, 1)."""
    if 0.5 <= confidence < 1:
        return
    advice = "write 0.95 for 95 %"
    if 50 <= confidence < 100:
        advice = f"for {confidence:g} % write confidence={confidence / 100:g}"
    elif confidence == 1:
        advice = "noise has no certain bound; write confidence=0.999999 if you must"
    raise InvalidTarget(
        "confidence must be a probability of at least one half",
        rule="0.5 <= confidence < 1",
        got=confidence,
        next_step=advice,
    )
