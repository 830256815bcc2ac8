"""The privacy unit: whose presence is hidden."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """What one neighbouring data set adds or removes: a row, or every row that shares a value of one column.

    Two values of the column are the same unit when the engine groups them together; rows without a value (NULL) belong
    to nobody and are left out of every answer.

    Attributes:
        column: the column that names the unit, or None when one row is the unit.

    >>> PrivacyUnit("tailnum").label
    'column:tailnum'
    >>> PrivacyUnit().is_row
    True
    """

    column: str | None = None

    @property
    def is_row(self) -> bool:
        """Return whether one row is the unit."""
        return self.column is None

    @property
    def label(self) -> str:
        """Return the unit as one word, for ledgers and reports."""
        return "row" if self.column is None else f"column:{self.column}"
