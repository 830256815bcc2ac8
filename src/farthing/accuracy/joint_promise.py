"""What a question of several measures promised, and whether another promise asks for more.

A promise is beta, the cap below zero, and the relative and the absolute target of each answer, in this order: of each
of these numbers a smaller one is sharper, but that two targets of 0 name none.
"""

from __future__ import annotations


def is_sharper(asked: tuple[float, ...], held: tuple[float, ...]) -> bool:
    """Return whether a promise asks for anything that the one that is held does not.

    >>> held = (0.05, -9.0, 0.2, 0.0)
    >>> is_sharper((0.05, -9.0, 0.1, 0.0), held), is_sharper((0.05, -5.0, 0.2, 0.0), held)
    (True, False)
    """
    named = len(held) == len(asked) and any(held[2:]) is not any(asked[2:])
    return named or any(mine < theirs for mine, theirs in zip(asked, held, strict=False))


def is_no_easier(asked: tuple[float, ...], held: tuple[float, ...]) -> bool:
    """Return whether a promise is as sharp as the one that is held, or sharper, under no larger a cap.

    >>> held = (0.05, -9.0, 0.2, 0.0)
    >>> is_no_easier((0.05, -9.0, 0.1, 0.0), held), is_no_easier((0.05, -10.0, 0.1, 0.0), held)
    (True, False)
    """
    if len(held) != len(asked):
        return False
    (beta, cap, *widths), (beta_held, cap_held, *widths_held) = asked, held
    sharp = all(mine <= theirs for mine, theirs in zip((beta, *widths), (beta_held, *widths_held), strict=True))
    return sharp and cap >= cap_held
