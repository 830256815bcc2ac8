"""A farthing session as a target: the same questions, in SQL, at a named loss or accuracy, until its ledger refuses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Self

from farthing import Bounds, Gdp, Pure, Session, Zcdp
from farthing.attacks.compilers import in_sql
from farthing.attacks.target import Claim, People, Question, Refused, Speaks
from farthing.attacks.targets.adapters import sql_of
from farthing.errors import BudgetExceeded, DataError, FarthingError

if TYPE_CHECKING:
    from farthing import Budget
    from farthing.attacks.tables import Generated

_LESS: Final = 1 - 2.0**-30
"""Shares are a little smaller than equal, so that what is rounded up still fits."""


class FarthingSession:
    """Ask a session through its SQL door.

    What is attacked is the promise to one secret that changes, which is a group of two: a person leaves, and one with
    the other secret comes. `Session.guarantee` states it.

    Args:
        session: over the table of the people, with one row per person.
        people: the same people, as `secrets` made them.
        name: what reports call it.
        **how: a loss or a target for every question, such as loss=Gdp(0.01) or absolute=50, as `Session.sql` takes it.

    >>> import farthing
    >>> from farthing.attacks import secrets
    >>> ours = FarthingSession.over(secrets(50, seed=1), farthing.Budget(epsilon=1, delta=1e-6), absolute=40)
    >>> ours.claim.delta
    1e-06
    """

    speaks: Speaks = "sql"

    def __init__(self, session: Session, people: People | None = None, *, name: str = "farthing", **how: Any) -> None:
        if people is None or not isinstance(session, Session):
            raise DataError(
                "a session does not give its rows away, so that guesses cannot be scored",
                rule="a Session, and the People in its table",
                got=f"{type(session).__name__}, people={people}",
                next_step="FarthingSession(session, people, loss=...)",
            )
        self.session, self.people, self.name, self._how = session, people, name, how

    @classmethod
    def over(cls, people: People, budget: Budget, *, name: str = "farthing", **how: Any) -> Self:
        """Return a new session over the people, with books in memory, as a target."""
        return cls(Session(people.to_arrow(), budget=budget, name=people.table), people, name=name, **how)

    @classmethod
    def of_table(cls, table: Generated, budget: Budget, questions: int, *, name: str = "farthing", **how: Any) -> Self:
        """Return a new session over a table of `farthing.attacks.tables`, with an equal share for each question.

        Args:
            table: the table.
            budget: of everything.
            questions: how many it is divided by.
            name: what reports call it.
            **how: further words for every question, such as lower=1, upper=6 for sums.
        """
        one = Bounds(max_groups=1, max_rows=1)
        session = Session(table.to_arrow(), unit=table.unit, budget=budget, bounds=one, name=table.name)
        return cls(session, table.people, name=name, loss=equal_share(session, questions), **how)

    @property
    def claim(self) -> Claim:
        """What the whole budget promises to one secret."""
        promise = self.session.guarantee(group=2, of="budget")
        return Claim(promise.epsilon, promise.delta)

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question in SQL, or a 0/1 vector as a list of ids."""
        said = question if question.chosen is None else in_sql(self.people, question.chosen)
        try:
            return float(self.session.sql(sql_of(said), **self._how).value)
        except BudgetExceeded as refusal:
            return Refused(refusal.what, "budget")
        except FarthingError as refusal:
            return Refused(refusal.what)


def equal_share(session: Session, questions: int) -> Gdp | Zcdp | Pure:
    """Return the loss at which a session's remaining budget is enough for so many questions.

    >>> import farthing, pyarrow as pa
    >>> session = farthing.Session(pa.table({"x": [1, 2]}), budget=farthing.Budget(mu=1))
    >>> print(f"{equal_share(session, 100).mu:.4f}")
    0.1000
    """
    if questions < 1:
        raise DataError("no questions", rule="questions >= 1", got=questions, next_step="equal_share(session, 100)")
    left = session.remaining
    if isinstance(left, Gdp):
        return Gdp(left.mu / math.sqrt(questions) * _LESS)
    return Zcdp(left.rho / questions * _LESS) if isinstance(left, Zcdp) else Pure(left.value / questions * _LESS)
