"""How often membership inference calls honest systems broken, and broken ones, on attributes of several kinds.

Honest systems add noise at the epsilon that they claim. Beside the verdict as it is, the old one, by the members that
were found and the false-positive rate of an assumed population: attributes of other shares, and copied ones, break it.

    python bench/membership.py
"""

from __future__ import annotations

import numpy as np

from farthing import attacks
from farthing.attacks import Claim, People, targets

RUNS = 40
KINDS = ("fair coins", "shares of 0.3", "copied")


def people(kind: str, seed: int, n: int = 200, attributes: int = 250) -> People:
    """Return candidates with attributes of a kind."""
    coins = np.random.default_rng(seed)
    rows = coins.random((attributes, n)) < (0.3 if kind == "shares of 0.3" else 0.5)
    if kind == "copied":
        rows = np.repeat(rows[: max(attributes // 50, 1)], 50, axis=0)[:attributes]
    columns = {"id": np.arange(n)} | {f"a{place}": row.astype(int) for place, row in enumerate(rows)}
    return People(attacks.secrets(n, seed).bits, columns)


def by_found(result: attacks.AttackResult, epsilon: float) -> bool:
    """Return whether the old rule calls a system broken."""
    told = result.details
    found = round(told["true_positives"] * told["members"])
    return attacks.found_p_value(found, result.n, told["false_positives_at_most"], epsilon) <= 0.9e-3


def main() -> None:
    """Print size and power."""
    print(f"{'attributes':>14}  {'honest, broken':>14}  {'by found':>8}  {'exact, broken':>13}  of {RUNS}")
    for kind in KINDS:
        honest = old = exact = 0
        for seed in range(RUNS):
            crowd = people(kind, seed)
            result = attacks.membership(targets.Honest(crowd, 1, 251, seed), seed=seed, draws=1_000)
            honest += result.verdict == "broken"
            old += by_found(result, 1.0)
            plain = targets.Claimed(targets.Exact(crowd), Claim(0.5))
            exact += attacks.membership(plain, seed=seed, draws=1_000).verdict == "broken"
        print(f"{kind:>14}  {honest:14}  {old:8}  {exact:13}")


if __name__ == "__main__":
    main()
