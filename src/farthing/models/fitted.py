"""What leaves a fit: the model, what it cost, and what is promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from farthing.errors import DataError
from farthing.mechanisms.columns import numbers
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from farthing.models.purses import Price
    from farthing.models.rows import Float64

By = Literal["test", "reduced", "shown", "theory", "nothing"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of the excess risk, and by which argument.

    Attributes:
        target: the excess risk asked for.
        confidence: the chance that a fit does not end as "met" with a larger excess risk.
        by: what ended the fit: a "test" or a "reduced" one on the private excess risk, "shown" numbers only, "theory"
            alone, or "nothing": the cap or the levels ended before the target was met.
        rows: the public number of rows that was named. With more rows than this the promise is void.
    """

    target: float
    confidence: float
    by: By
    rows: int

    @property
    def statement(self) -> str:
        """What is promised, in words.

        >>> Promise(0.01, 0.9, "shown", 20_000).statement
        'met: excess risk at most 0.01 with confidence 0.9, if there are no more than the 20,000 rows that were named'
        """
        if self.by == "nothing":
            return "not met: nothing is promised of the excess risk"
        held = f"excess risk at most {self.target:g} with confidence {self.confidence:g}"
        return f"met: {held}, if there are no more than the {self.rows:,} rows that were named"


@dataclass(frozen=True, slots=True, repr=False)
class Fitted:
    """A model that was released, and the account of it.

    Attributes:
        coefficients: float64[columns], in units of the response over those of the features; for `logistic` in log odds
            of the label 1 over them.
        intercept: in units of the response, or log odds.
        loss: what all of it cost, the test included.
        test: what the test cost, of that; None where there was none.
        levels: the levels that were looked at: epsilons under a `Pure` cap, else mus; none where 0 meets the target.
        stopped_at: the last of them, or 0.
        promise: target, confidence, and what ended the fit.
    """

    coefficients: Float64
    intercept: float
    loss: Price
    test: Pure | None
    levels: tuple[float, ...]
    stopped_at: float
    promise: Promise

    @property
    def met(self) -> bool:
        """Whether the fit ended because the target was met, as far as a look could tell."""
        return self.promise.by != "nothing"

    @property
    def statement(self) -> str:
        """The guarantee that `loss` stands for, whatever `rows` was; then the promise, which needs `rows`; in words."""
        match self.loss:
            case Pure():
                meaning = "the epsilon of what came out, surely; a pure ledger adds it"
            case Approx():
                meaning = "the privacy loss of the whole run is at most epsilon, but for delta"
            case Gdp() | Zcdp():
                meaning = "what a filter in this currency is charged; add it to what else was spent there"
        return f"{self.loss!r}: {meaning}\n{self.promise.statement}"

    def __repr__(self) -> str:
        facts = f"met={self.met}, by={self.promise.by!r}, target={self.promise.target:g}, loss={self.loss!r}"
        return f"Fitted({len(self.coefficients)} columns, {facts}, looks={len(self.levels)})"

    def predict(self, features: ArrayLike) -> np.typing.NDArray[np.float64]:
        """Return the response for each row of features; for `logistic` log odds: > 0 is label 1. Free, on any rows.

        Raises:
            DataError: features that are not a table of numbers, or not of as many columns as were fitted. A row with a
                value that is not a finite number has no response: NaN.

        >>> import numpy as np
        >>> Fitted(np.array([2.0]), 1.0, Pure(1), None, (1.0,), 1.0, Promise(0.1, 0.9, "theory", 9)).predict([[3.0]])
        array([7.])
        """
        table = numbers("features", features, dimensions=2)
        if table.shape[1] != len(self.coefficients):
            raise DataError(
                "features have another number of columns than the model",
                rule=f"{len(self.coefficients)} columns, in the order of the fit",
                got=f"{table.shape[1]} columns",
                next_step="take the columns that the model was fitted on",
            )
        there = np.asarray(np.isfinite(table).all(axis=1))
        told = np.where(there[:, None], table, 0.0) @ self.coefficients + self.intercept
        return np.where(there, told, np.nan)
