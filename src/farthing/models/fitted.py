"""What leaves a fit: the model, what it cost, and what is promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from farthing.models.rows import numbers
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp

if TYPE_CHECKING:
    import numpy as np
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
    """

    target: float
    confidence: float
    by: By


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model that was released, and the account of it.

    Attributes:
        coefficients: float64[columns], in units of the response over those of the features; log odds for `logistic`.
        intercept: in units of the response, or log odds.
        loss: what all of it cost, the test included.
        test: what the test cost, of that; None where there was none.
        levels: the levels that were looked at: epsilons under a `Pure` cap, else mus.
        stopped_at: the last of them.
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
        """The guarantee that `loss` stands for, in words."""
        match self.loss:
            case Pure():
                return f"{self.loss!r}: the epsilon of what came out, surely; a pure ledger adds it"
            case Approx():
                return f"{self.loss!r}: the privacy loss of the whole run is at most epsilon, but for delta"
            case Gdp() | Zcdp():
                return f"{self.loss!r}: what a filter in this currency is charged; add it to what else was spent there"

    def predict(self, features: ArrayLike) -> np.typing.NDArray[np.float64]:
        """Return the response, or the log odds, for each row of features; free, on any rows.

        >>> import numpy as np
        >>> Fitted(np.array([2.0]), 1.0, Pure(1), None, (1.0,), 1.0, Promise(0.1, 0.9, "theory")).predict([[3.0]])
        array([7.])
        """
        return numbers("features", features, dimensions=2) @ self.coefficients + self.intercept
