"""What people type, as numbers: percentages, counts, losses. Each is refused by the name of its option."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import TYPE_CHECKING

from farthing.errors import FarthingError, InvalidBounds, InvalidBudget, InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from farthing.privacy.loss import Booked, Gdp, Pure, Zcdp
    from farthing.query.bounding import AutoBounds


def fraction(option: str, text: str) -> float:
    """Return a fraction that is written 5% or 0.05.

    >>> fraction("--relative", "5%"), fraction("--confidence", "0.95")
    (0.05, 0.95)
    """
    percent = text.strip().endswith("%")
    hint = "write 95% or 0.95" if option == "--confidence" else "write 5% or 0.05"
    typed = _decimal(option, text.strip().removesuffix("%"), InvalidTarget, text, hint)
    value = typed / 100 if percent else typed
    whole = option == "--share"  # all of the groups may be asked for
    if value > 1 or (value == 1 and not whole):
        if typed < 100:
            hint = f"for {typed.normalize():f} % write {typed.normalize():f}% or {(typed / 100).normalize():f}"
        raise InvalidTarget(
            f"{option} must be {'at most' if whole else 'below'} 1",
            rule="a fraction, or a percentage with its %",
            got=text,
            next_step=hint,
        )
    return float(value)


def absolute(text: str) -> float:
    """Return an error in answer units, such as 50."""
    hint = "give it in the units of the answer, such as 50; percentages go to --relative"
    return float(_decimal("--absolute", text, InvalidTarget, text, hint))


def widths(option: str, texts: Sequence[str] | None, names: Sequence[str]) -> float | dict[str, float] | None:
    """Return errors allowed, one for all columns or by name: 50, n=50, or both (50 is for the others then).

    Args:
        option: --relative, --absolute or --rank.
        texts: what was typed, None if there is nothing.
        names: the columns that may be named, and that a plain number is for.

    >>> widths("--absolute", ["50", "avg_fare=2"], ["n", "avg_fare"])
    {'n': 50.0, 'avg_fare': 2.0}
    """
    if not texts:
        return None
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if name.strip() in found:
            raise InvalidTarget(
                f"{option} was given twice" + (f" for {name.strip()!r}" if name else ""),
                rule="one error a column",
                got=" and ".join(texts),
                next_step=f"{option} 50 for all columns, {option} {names[0]}=50 for one",
            )
        if name and name.strip() not in names:
            raise InvalidTarget(
                f"{option} names {name.strip()!r}, which is not a column of the answer with an error of its own",
                rule="an error by name belongs to a column of the answer",
                got=text,
                next_step=nearest(name.strip(), names),
            )
        found[name.strip()] = absolute(number) if option == "--absolute" else fraction(option, number)
    if list(found) == [""] and option != "--rank":
        return found[""]
    others = found.pop("", None)
    return {name: found.get(name, others) for name in names if found.get(name, others) is not None}  # type: ignore[misc]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return advice about an unknown name: the nearest known one, or all of them.

    >>> nearest("zoen", ["zone", "day"]), nearest("x", ["zone", "day"])
    ("did you mean 'zone'?", 'choose one of zone, day')
    """
    names = list(known)
    near = get_close_matches(name[:100], names, n=1) or [each for each in names if each.casefold() == name.casefold()]
    return f"did you mean {near[0]!r}?" if near else "choose one of " + ", ".join(names[:20])


def clamp(option: str, text: str) -> float:
    """Return an end of the range that values are clamped into."""
    return float(_decimal(option, text, InvalidBounds, text, f"give a number, as in {option} 200"))


def auto_bounds(text: str) -> AutoBounds:
    """Return bounds to be chosen privately: auto, or auto:mu=0.02 for that price.

    >>> auto_bounds("auto:mu=0.02")
    AutoBounds(loss=Gdp(mu=0.02))
    """
    from farthing.query.bounding import Bounds

    word, colon, price = text.strip().partition(":")
    if word != "auto":
        raise InvalidOption(
            "--bounds is unknown",
            rule="auto, or auto:mu=0.02 to name its price",
            got=text,
            next_step="--bounds auto; to name bounds write --max-groups 5 --max-rows 20 --lower 0 --upper 200",
        )
    paid: Booked | None = loss("--bounds", price) if colon else None
    return Bounds.auto(paid)


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
            f"{option} is not a loss",
            rule="it begins with mu=, rho= or 'epsilon=', as the ledger is kept",
            got=text,
            next_step="write mu=0.05 or 'epsilon=0.05', or use --max-epsilon 0.1, which every ledger understands",
        )
    return kinds[name.strip()](amount(option, number))


def cap(text: str) -> Gdp | Zcdp | Pure | str:
    """Return the most that a question may cost: "all", or a loss."""
    return "all" if text.strip() == "all" else loss("--cap", text)


def on_miss(text: str) -> str:
    """Return what to do with groups that miss the target."""
    known = ("return", "drop", "raise", "spend")
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
            "--rows is not a number of rows", rule="a whole number, or all", got=text, next_step="--rows 20"
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
