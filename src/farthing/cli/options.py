"""What people type, as numbers: percentages, counts, losses. Each is refused by the name of its option."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from farthing.errors import FarthingError, InvalidBudget, InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from farthing.privacy.loss import Gdp, Pure, Zcdp


def fraction(option: str, text: str) -> float:
    """Return a fraction that is written 5% or 0.05.

    >>> fraction("--relative", "5%"), fraction("--confidence", "0.95")
    (0.05, 0.95)
    """
    percent = text.strip().endswith("%")
    hint = "write 95% or 0.95" if option == "--confidence" else "write 5% or 0.05"
    typed = _decimal(option, text.strip().removesuffix("%"), InvalidTarget, text, hint)
    value = typed / 100 if percent else typed
    if value >= 1:
        if typed < 100:
            hint = f"for {typed.normalize():f} % write {typed.normalize():f}% or {(typed / 100).normalize():f}"
        raise InvalidTarget(
            f"{option} must be below 1", rule="a fraction, or a percentage with its %", got=text, next_step=hint
        )
    return float(value)


def absolute(text: str) -> float:
    """Return an error in answer units, such as 50."""
    hint = "give it in the units of the answer, such as 50; percentages go to --relative"
    return float(_decimal("--absolute", text, InvalidTarget, text, hint))


def amount(option: str, text: str) -> float:
    """Return an amount of epsilon, delta, rho or mu."""
    hint = "write a number such as 1, 0.5 or 1e-6"
    value = float(_decimal(option, text, InvalidBudget, text, hint))
    if not 0 <= value < math.inf:
        raise InvalidBudget(f"{option} is out of range", rule="a finite number, not negative", got=text, next_step=hint)
    return value


def loss(option: str, text: str) -> Gdp | Zcdp | Pure:
    """Return a loss that is written mu=0.05, rho=0.001 or epsilon=0.5.

    >>> loss("--loss", "mu=0.05")
    Gdp(mu=0.05)
    """
    from farthing.privacy.loss import Gdp, Pure, Zcdp

    name, _, number = text.partition("=")
    kinds: dict[str, type[Gdp | Zcdp | Pure]] = {"mu": Gdp, "rho": Zcdp, "epsilon": Pure}
    if name.strip() not in kinds:
        raise InvalidTarget(
            f"{option} is no loss",
            rule="mu=, rho= or epsilon=, in the currency of the ledger",
            got=text,
            next_step="write mu=0.05, or use --max-epsilon 0.1, which every ledger understands",
        )
    return kinds[name.strip()](amount(option, number))


def cap(text: str) -> Gdp | Zcdp | Pure | str:
    """Return the most that a question may cost: "all", or a loss."""
    return "all" if text.strip() == "all" else loss("--cap", text)


def on_miss(text: str) -> str:
    """Return what to do with groups that miss the target."""
    known = ("return", "drop", "raise")
    if text not in known:
        raise InvalidTarget(
            "--on-miss is unknown", rule=" or ".join(known), got=text, next_step="leave it out to return them"
        )
    return text


def rows(text: str) -> int | None:
    """Return how many rows to show; None for all of them."""
    if text.strip() == "all":
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise InvalidOption(
            "--rows is no number of rows", rule="a whole number, or all", got=text, next_step="--rows 20"
        )
    return int(text)


def _decimal(option: str, text: str, kind: type[FarthingError], got: str, hint: str) -> Decimal:
    """Return a number as it was written; refuse what is none."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if value.is_nan():
        raise kind(f"{option} is not a number", got=got, next_step=hint)
    return value
