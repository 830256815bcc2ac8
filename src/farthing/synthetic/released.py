"""Synthetic rows of a release of tables with intervals: what its tables tell, and what their noise leaves open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.residuals import precision_of
from farthing.planning.release_shaped import ShapedDesign
from farthing.synthetic.rows import made, model_of, noise_reach, scaled, subsets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.planning.release import ReleasePlan
    from farthing.synthetic.rows import SyntheticRows

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]


def synthetic(  # noqa: PLR0917  # what a release knows of itself
    tables: tuple[tuple[str, ...], ...],
    released: Callable[[tuple[str, ...]], tuple[Float64, float]],
    plan: ReleasePlan,
    keys: Mapping[str, pa.Array],
    rows: int | None,
    seed: int,
) -> SyntheticRows:
    """Return synthetic rows of a release.

    Args:
        tables: the columns of each table of the workload.
        released: the counts by some columns, and their standard deviation.
        plan: how it was measured.
        keys: the listed values of each column.
        rows: as of `Release.synthetic`.
        seed: as of `Release.synthetic`.

    Guarantee: a function of released numbers and the seed; the error of each table of the workload is within the ends
        of the report with the confidence of the release.
    Proof: docs/proofs/synthetic.rows.md.
    Assumes: as the release.
    Rounds: nothing.
    """
    names, sizes = tuple(keys), tuple(map(len, keys.values()))

    def told(places: tuple[int, ...]) -> tuple[Float64, float]:
        """Return the released counts by some columns, and their standard deviation."""
        return released(tuple(names[place] for place in places))

    places = tuple(tuple(names.index(name) for name in table) for table in tables)
    model = model_of(told, sizes, places, parted=not isinstance(plan.design, ShapedDesign))

    def known(number: int, rows: Int64) -> tuple[float, float, float]:
        """Return how far synthetic counts are from the released ones, and those from the truth, of twice the rows."""
        counts = scaled(rows, model.total, sizes, places[number])
        return float(abs(counts - released(tables[number])[0]).sum()), _reach(plan, number), 2 * model.total

    return made(model, keys, tables, known, rows, seed, plan.goal.confidence)


def _reach(plan: ReleasePlan, number: int) -> float:
    """Return how far, in the sum over cells, the noise of a table of the workload reaches, by its number."""
    basis, design = plan.design.basis, plan.design
    columns = basis.tables[number]
    if isinstance(design, ShapedDesign):  # the mean of a sum of sizes, and its concentration
        mean = math.sqrt(2 / math.pi) * float(np.sqrt(design.by_table[number]).sum())
        return mean + math.sqrt(2 * math.log(1 / plan.goal.beta) * design.signed(number))
    grains = dict(zip(basis.subsets, design.grains.tolist(), strict=True))
    parts = {}
    for subset in subsets_of(tuple(place for place in columns if basis.sizes[place] > 1)):
        precision = precision_of(int(grains[subset]), [basis.sizes[place] for place in subset], design.reach)
        parts[tuple(columns.index(place) for place in subset)] = 1 / precision
    return noise_reach(parts, tuple(basis.sizes[place] for place in columns), plan.goal.beta)
