"""One loss shared among many counts, beside even shares: python bench/accuracy/workload.py."""

from __future__ import annotations

import numpy as np

from farthing.accuracy.shared_loss import SharedLoss
from farthing.accuracy.stop_rule import two_sided

PER_GRAIN = 2.0**-56
RUNS = 20
CASES = (  # counts, their fall, the largest, the targets, mu
    (40, 1.2, 1e5, 0.01, 5.0, 0.25),
    (200, 1.5, 1e6, 0.05, 5.0, 1.0),
    (200, 1.5, 1e6, 0.05, 5.0, 0.1),
)


def main() -> None:
    """Print the worst error in targets, and the share of counts within theirs: even shares, and together."""
    print("counts  least  largest  target  mu  worst even  together  met even  together  paid")
    for many, fall, largest, relative, absolute, mu in CASES:
        sizes = largest * np.arange(1, many + 1) ** -fall
        limit = int(mu**2 * 2**56)
        batch = SharedLoss(
            question=np.arange(many),
            max_groups=(1,) * many,
            per_grain=np.full(many, PER_GRAIN),
            relative=np.full(many, relative),
            absolute=np.full(many, absolute),
            critical=np.full(many, two_sided(0.05)),
            limit=limit,
        )
        half = two_sided(0.05) / np.sqrt(limit / many * PER_GRAIN)
        even = half / np.maximum(relative * sizes, absolute)
        rng, worst, met, paid = np.random.default_rng(0), [], [], []
        for _ in range(RUNS):
            values, grains, spent = batch.run(
                lambda cells, grains, sizes=sizes, rng=rng: (
                    sizes[cells] + rng.normal(size=len(cells)) / np.sqrt(grains * PER_GRAIN)
                )
            )
            worst.append((batch.half_widths(grains) / np.maximum(relative * sizes, absolute)).max())
            met.append(np.mean(batch.off(values, grains) <= 1))
            paid.append(batch.cost(spent) / limit)
        told = f"{many}  {sizes[-1]:,.0f}  {largest:,.0f}  {100 * relative:g} % or {absolute:g}  {mu:g}"
        print(f"{told}  {even.max():.1f}  {np.mean(worst):.1f}", end="  ")
        print(f"{np.mean(even <= 1):.0%}  {np.mean(met):.0%}  {np.mean(paid):.2f}")


if __name__ == "__main__":
    main()
