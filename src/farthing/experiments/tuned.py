"""The choices of the standard comparison, 10 % at 95 %: read from tuned.csv.

That is written by `python bench/accuracy/paper.py --tune`, which draws from another seed than the comparison does.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farthing.experiments.choice import PublicChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Place = tuple[str, str, str]

STORED: Final = Path(__file__).with_suffix(".csv")
_PLACE: Final = ("task", "epsilon", "method")


@lru_cache(maxsize=1)
def stored() -> Mapping[Place, PublicChoice]:
    """Return the choices by task, epsilon and method.

    >>> stored()["zipf300", "1", "farthing"]
    PublicChoice(eagerness=8.0, share=0.0, batch=0.0, currency='pure', steady=False)
    """
    with STORED.open(encoding="utf-8", newline="") as lines:
        return {(row["task"], row["epsilon"], row["method"]): _choice(row) for row in csv.DictReader(lines)}


def store(found: Iterable[tuple[Place, PublicChoice]], file: Path = STORED) -> None:
    """Write choices in place of those that are stored."""
    with file.open("w", encoding="utf-8", newline="") as text:
        lines = csv.DictWriter(text, [*_PLACE, *PublicChoice._fields], lineterminator="\n")
        lines.writeheader()
        for place, choice in found:
            said = {
                name: f"{value:.4g}" if isinstance(value, float) else value for name, value in choice.said().items()
            }
            lines.writerow(dict(zip(_PLACE, place, strict=True)) | said | ({"steady": "yes"} if choice.steady else {}))
    stored.cache_clear()


def _choice(row: Mapping[str, str]) -> PublicChoice:
    """Return the choice of one line; what is empty there says nothing."""
    numbers = {name: float(row[name] or 0) for name in ("eagerness", "share", "batch")}
    return PublicChoice(**numbers, currency=row["currency"], steady=row["steady"] == "yes")
