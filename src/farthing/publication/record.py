"""The record of a publication, for machines: in the fields of the public registry of differential privacy deployments.

Its `registry` has the sections and field names of that registry's schema, tier 3; what only the publisher knows and did
not say is `LATER`. Beside it stand the tables with their columns, and the head of the ledger.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from farthing.publication.facts import LATER
from farthing.publication.statement import loss_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.publication.facts import Imprint, Standing
    from farthing.publication.tables import PrintedTable

_VARIANTS: Final = {"pure": "Pure DP", "zcdp": "Zero-concentrated DP", "gdp": "Approximate DP"}
_OWN: Final = {"pure": ("epsilon",), "zcdp": ("rho",), "gdp": ("epsilon", "delta")}


def record(
    tables: Sequence[PrintedTable], names: Sequence[str], imprint: Imprint, standing: Standing
) -> dict[str, Any]:
    """Return the record of a publication as plain values.

    Args:
        tables: what is published.
        names: of each the name of its files.
        imprint: what its publisher says of it.
        standing: what the books say.
    """
    return {
        "registry": {
            "url_slug": re.sub(r"[^a-z0-9]+", "-", (imprint.title or standing.table).lower()).strip("-"),
            "status": "Draft",
            "tier": 3,
            "deployment": _deployment(tables, imprint, standing),
        },
        "tables": [_table(table, name) for table, name in zip(tables, names, strict=True)],
        "promises": [
            {"units": each.many, "who": each.who, "epsilon": _finite(each.epsilon), "delta": _finite(each.delta)}
            for each in standing.promises
        ],
        "ledger": {
            "table": standing.table,
            "data_version": standing.data,
            "unit": standing.unit,
            "currency": standing.currency,
            "budget": dict(standing.budget),
            "spent": dict(standing.spent),
            "records": standing.records,
            "head": standing.head,
        },
        "farthing": standing.version,
    }


def _deployment(tables: Sequence[PrintedTable], imprint: Imprint, standing: Standing) -> dict[str, Any]:
    """Return the sections of a registry's record."""
    return {
        "basic": _basic(imprint, standing),
        "dp_variant": {
            "variant_name": _VARIANTS[standing.currency],
            "data_domain": f"All states of the table {standing.table} with its declared columns.",
            "unprotected_quantities": "The lists of groups that were given as public, the bounds, the targets and the "
            "questions themselves. No statistic of the data is released without noise.",
        },
        "privacy_loss": {
            "privacy_unit": standing.whom,
            "privacy_unit_details": f"Adjacent data sets differ by {standing.whom}, added or removed. "
            + "; ".join(dict.fromkeys(part for table in tables for part in table.footnotes[-1].split("; "))),
            "privacy_parameters": {name: standing.budget[name] for name in _OWN[standing.currency]},
            "privacy_parameters_details": f"The budget of the books, for everything ever released from them: "
            f"{loss_words(standing.budget)}. Spent when this was published: {loss_words(standing.spent)}.",
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": "The curator holds the data and the ledger and is trusted with both. Readers of the tables are "
            "trusted with nothing.",
            "release_type": "One release",
            "release_type_details": "Every later release from the same books is charged to the same budget.",
            "data_source_type": "Static",
            "data_source_type_details": f"The state of the data that its owner calls {standing.data}.",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": " ".join(f"{table.name}: {said}." for table in tables for said in table.treated)
            or "None.",
            "composition": "Each charge is booked in a ledger before noise is drawn; the losses of all releases add up "
            "under a fully adaptive filter and never pass the budget.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "What the curator did before asking is not in the books. "
            "Bounds and groups that farthing chose were charged to the budget.",
            "mechanisms": f"farthing {standing.version}. Noise is drawn exactly, on a grid of whole numbers, from the "
            "operating system's random bits, so that no rounding of floating-point numbers leaks; it is refined until "
            "a target is met, by noisy numbers alone. How long an answer took is not hidden.",
            "justification": "Targets were named and the loss followed: "
            + " ".join(f"{table.name}: {table.caption}." for table in tables),
        },
        "administrative": {
            "sources": imprint.sources or LATER,
            "notes": f"Ledger head {standing.head} after {standing.records} records.",
            "registry_authors": list(imprint.curators) or [LATER],
        },
    }


def _basic(imprint: Imprint, standing: Standing) -> dict[str, Any]:
    """Return the section that says what a publication is."""
    basic = {
        "name": imprint.title or LATER,
        "data_curators": list(imprint.curators) or [LATER],
        "intended_use": imprint.purpose or LATER,
        "data_product_type": "Summary statistics",
        "data_product_region": imprint.region or LATER,
        "description": imprint.description or LATER,
        "publication_date": standing.day,
    }
    return basic | ({"data_product_sector": imprint.sector} if imprint.sector else {})


def _table(table: PrintedTable, name: str) -> dict[str, Any]:
    """Return what a table's files hold."""
    return {
        "name": table.name,
        "question": table.sql,
        "files": [f"tables/{name}.csv", f"tables/{name}.parquet"],
        "columns": {field.name: str(field.type) for field in table.rows.schema},
        "rows": table.rows.num_rows,
        "promise": table.caption,
        "confidence": table.confidence,
        "footnotes": list(table.footnotes),
    }


def _finite(number: float) -> float | None:
    """Return a number for JSON, which has no infinity."""
    return number if math.isfinite(number) else None
