"""What mutants of a release are put to: contrasts that are orthogonal, all that is measured charged, a pilot apart."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa

import farthing
from farthing.mechanisms import residuals
from farthing.mechanisms.residuals import ResidualMeasurements
from farthing.workloads import marginals

GRAIN = 2.0**-56


def tables() -> tuple[str, ...]:
    """Look at the contrasts, then at what a release measures beside what it books."""
    return (*_contrasts(), *_booked())


def _contrasts() -> tuple[str, ...]:
    """Return whether contrasts in length 1 are not orthogonal, or are moved by a row further than is priced."""
    found = []
    for sizes in ((5,), (3, 4)):
        cells = np.eye(int(np.prod(sizes)), dtype=np.int64).reshape(-1, *sizes)
        lengths = residuals.lengths_of(sizes)
        rows = np.array([(residuals.contrasts(cell) / lengths).reshape(-1) for cell in cells])
        if not np.allclose(rows.T @ rows, np.eye(rows.shape[1])):
            found.append(f"the contrasts of {sizes} are not orthogonal")
        if not np.allclose((rows**2).sum(axis=1), residuals.price_of(sizes)):
            found.append(f"a row moves the contrasts of {sizes} by more than is priced")
    return tuple(found)


def _booked() -> tuple[str, ...]:
    """Return whether a release with a pilot books less than it measures, or answers with the pilot's noise."""
    real, seen = ResidualMeasurements.measure, list[tuple[tuple[int, ...], int, int]]()

    def noted(self, subset, state, grains):  # as the method has it
        """Note a measurement, and make it."""
        seen.append((subset, state.grains, grains))
        return real(self, subset, state, grains)

    rows = {name: np.arange(40_000) // step % 4 for name, step in (("a", 1), ("b", 4))}
    with farthing.Session(pa.table(rows), budget=farthing.Budget(mu=6)) as session:
        with patch.object(ResidualMeasurements, "measure", noted):
            session.release(
                marginals(["a", "b"]), keys=dict.fromkeys("ab", range(4)), relative=0.1, absolute=20, cap="all"
            )
        booked = float(session.spent.amount)
    measured = sum(grains for _, _, grains in seen) * GRAIN
    last = {subset: before for subset, before, _ in seen}
    found = [f"measured {measured:.6g} of mu squared, booked {booked:.6g}"] * (booked < measured)
    return (*found, *(f"the answer's residual {subset} began with the pilot's" for subset, at in last.items() if at))
