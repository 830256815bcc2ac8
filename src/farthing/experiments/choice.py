"""The public numbers of a method, which are fixed before a session starts."""

from __future__ import annotations

from typing import NamedTuple


class PublicChoice(NamedTuple):
    """The public numbers of a method, fixed before a session starts.

    Attributes:
        eagerness: epsilon of a pick times the size that it is meant for: the last that could be paid, or the present.
        share: the part of epsilon and delta on the ex-post side of a concurrent filter.
        batch: how many counts iReduct takes on, over the number that the Laplace oracle pays for.
        currency: what our ledger is kept in: "gdp", "zcdp" or "pure".
        steady: whether our picks have one price for all, as those of the others do.
    """

    eagerness: float = 0.0
    share: float = 0.0
    batch: float = 0.0
    currency: str = ""
    steady: bool = False

    def said(self) -> dict[str, float | str]:
        """Return the numbers that matter."""
        return {name: value for name, value in self._asdict().items() if value}
