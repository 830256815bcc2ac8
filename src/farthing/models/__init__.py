"""Accuracy-first models: ridge and logistic regression to an excess risk that you name, at the least loss.

`ridge` and `logistic` fit; each returns a `Fitted`. They release a model at falling noise and stop at the first one
that is good enough. Words and figures: docs/how-to/fit-a-model.md; proofs: docs/proofs/models.regressions.md.

>>> import numpy as np
>>> from farthing.privacy import Gdp
>>> X = np.sin(np.outer(np.arange(20_000), [1.0, 2.3]))
>>> fitted = ridge(X, X @ [0.5, -0.2], target=0.01, cap=Gdp(4), rows=20_000, bound_x=1.5, bound_y=1)
>>> fitted.met, fitted.loss < Gdp(1)
(True, True)
"""

from farthing.models.fitted import Fitted, Promise
from farthing.models.regressions import logistic, ridge

__all__ = ["Fitted", "Promise", "logistic", "ridge"]


def __dir__() -> list[str]:
    return sorted(__all__)
