"""Every exception of farthing: what went wrong, the rule, what was got, and the next step, as fields.

Errors are outputs. Their text and type may depend on the question, the schema, the target and the ledger, never on a
private row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class FarthingError(Exception):
    """The root of every error that farthing raises on purpose.

    Attributes:
        what: what went wrong, in one clause.
        rule: the rule that was broken, or "".
        got: what was given instead, or "".
        next_step: what to do about it, or "".
        missing: what a question left out, where that alone is wrong: "target", "keys", "bounds" or "clamps"; else "".
        exit_code: what the command line returns: 2 usage, 3 refused by budget, 4 data, ledger or engine.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, *, rule: str = "", got: object = "", next_step: str = "", missing: str = "") -> None:
        self.what = what
        self.missing = missing
        self.rule = rule
        self.got = str(got)
        self.next_step = next_step
        super().__init__(self._message())

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of the error: its one line, which says what to do."""
        return [f"{type(self).__name__}: {self}"]

    def within(self, place: str) -> Self:
        """Return this error, saying where it is about, as in "in question 'q2'"."""
        self.what = f"{place}: {self.what}"
        self.args = (self._message(),)
        return self

    def _message(self) -> str:
        """Join the facts into one readable line."""
        parts = [self.what]
        if self.rule:
            parts.append(f"rule: {self.rule}")
        if self.got:
            parts.append(f"got: {self.got}")
        if self.next_step:
            parts.append(f"next: {self.next_step}")
        return "; ".join(parts)


def whole(read: Callable[[frozenset[str]], T]) -> T:
    """Return what is read of a question; refuse it once, naming all that it leaves out.

    Args:
        read: reads it, with stand-ins for the parts that are named to it (see `FarthingError.missing`); reads no rows.

    Raises:
        FarthingError: of the type of what is missed first; what is wrong otherwise, if nothing was missed before.
    """
    found: dict[str, FarthingError] = {}
    while True:
        try:
            made = read(frozenset(found))
        except FarthingError as problem:
            error = problem
        else:
            if not found:
                return made
            break
        if not error.missing or error.missing in found:
            if not found:
                raise error
            break
        found[error.missing] = error
    raise _together(list(found.values()))


def _together(found: list[FarthingError]) -> FarthingError:
    """Return one error, of the type of the first, that says what several say."""
    if len(found) == 1:
        return found[0]

    def each(facts: list[str]) -> str:
        """Return facts as a numbered list in one line."""
        return ", ".join(f"({place}) {fact}" for place, fact in enumerate(facts, 1))

    return type(found[0])(
        f"{len(found)} things are missing: {each([one.what for one in found])}",
        rule=each([one.rule for one in found]),
        next_step=each([one.next_step for one in found]),
    )


class InvalidTarget(FarthingError, ValueError):
    """An accuracy target that no answer could meet, or none at all."""

    exit_code = 2


class InvalidBudget(FarthingError, ValueError):
    """A budget or loss that is not a budget: negative, zero, infinite, NaN, delta out of range."""

    exit_code = 2


class InvalidBounds(FarthingError, ValueError):
    """Contribution bounds that are missing or not whole numbers of at least one."""

    exit_code = 2


class InvalidKeys(FarthingError, ValueError):
    """Public group keys that are missing, repeated, empty or not of the column's type."""

    exit_code = 2


class UnsupportedQuery(FarthingError, ValueError):
    """A question outside the language, refused by name.

    Attributes:
        construct: the name of the refused construct, for scripts.
        position: (line, column) in the SQL text, counted from 1, or None.
    """

    exit_code = 2

    def __init__(
        self, what: str, *, construct: str = "", position: tuple[int, int] | None = None, **facts: Any
    ) -> None:
        self.construct = construct
        self.position = position
        super().__init__(what, **facts)


class InvalidOption(FarthingError, ValueError):
    """An option, setting or file ending of the command line or a chart that does not exist or cannot be used."""

    exit_code = 2


class BudgetExceeded(FarthingError):
    """The ledger refused a reservation: it would pass the budget. Nothing was charged.

    Attributes:
        needed: the loss that the question could cost.
        left: the loss that is left.
    """

    exit_code = 3

    def __init__(self, what: str, *, needed: object = None, left: object = None, **facts: Any) -> None:
        self.needed = needed
        self.left = left
        super().__init__(what, **facts)


class OutOfReach(BudgetExceeded):
    """A target that no group can meet under the cap of its question: nothing is paid for it unless that is said."""


class PriceRisen(BudgetExceeded):
    """An ask that would be charged more than `at_most=`, or than the plan that it confirms. It is not charged for."""


class Frozen(FarthingError):
    """A charge that the owner has stopped: of this data set, or of who asks. Nothing was charged."""

    exit_code = 3


class LedgerError(FarthingError):
    """A ledger file that cannot be used: not one, truncated, read-only, locked, from a newer version."""


class LedgerLost(LedgerError):
    """Books on a server that cannot be reached, or was lost. What was drawn is kept, and written when it is back."""


class LedgerMismatch(LedgerError):
    """A ledger that was opened with another unit, budget or currency than it was made with."""


class Contested(LedgerError):
    """A reservation that asked to be alone, and is not: others have the question open, or have sharpened it since.

    Nothing was charged. A session waits, or plans again; only who reserves in a ledger by hand sees it.
    """


class DataError(FarthingError):
    """A table that cannot be read, or an engine that failed. Never says anything about a row."""


class NoiseError(FarthingError, ValueError):
    """Noise that cannot be drawn exactly: a scale that is none, a result beyond int64, or bits that never decide."""


class TargetMissed(FarthingError):
    """Raised by `on_miss="raise"`, after the answer was booked; carries it.

    Attributes:
        answer: the `Answer`, paid for, with `met` telling which groups missed their target.
    """

    exit_code = 3

    def __init__(self, what: str, *, answer: Any, **facts: Any) -> None:
        self.answer = answer
        super().__init__(what, **facts)
