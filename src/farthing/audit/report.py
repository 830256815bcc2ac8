"""What an audit of farthing found, on one page: claims, lower bounds, power, oracles, and the limits that remain."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from farthing.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.audit.clock import Timing
    from farthing.audit.findings import Finding

Verdict: TypeAlias = Literal["holds", "broken", "undecided"]

EXIT_CODES: Final[dict[Verdict, int]] = {"holds": 0, "broken": 10, "undecided": 11}
"""What the command line returns for a verdict."""


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism: what it claims, what it surely loses, and what the test would have seen.

    Attributes:
        name: the mechanism, and how it was asked.
        parameter: what the losses are: "mu", "rho", "epsilon", or the "delta" of found keys.
        claimed: the loss that was charged or promised.
        found: the lower bound.
        broken: whether the bound passes the claim.
        sees: by what factor noise must be too narrow, at the least, for this very bound to pass the claim; inf if none.
        bug: the planted bug.
        caught: whether the same test called it broken.
        event: what told most.
        samples: outputs on each of the two data sets.
        seconds: how long it took.
    """

    name: str
    parameter: str
    claimed: float
    found: float
    broken: bool
    sees: float
    bug: str
    caught: bool
    event: str
    samples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Check:
    """One oracle: how much it looked at, and what it found.

    Attributes:
        name: what must hold.
        findings: where it does not.
        seconds: how long it took.
    """

    name: str
    findings: tuple[Finding, ...]
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport(Tabular):
    """The page.

    Attributes:
        version: of farthing, as installed.
        quick: whether it was the quick battery.
        seed: of the questions that were made at random; noise has none.
        confidence: the chance that no bound of the whole page is wrong.
        mechanisms: what was found of each mechanism.
        checks: the oracles.
        timing: what a clock sees; stated, not judged.
        seconds: how long it took.

    >>> from farthing.audit import Check, Finding, Report, Row, Timing
    >>> row = Row("count", "mu", 1.0, 0.9, False, 1.1, "half the noise", False, "output above 0", 1000, 0.1)
    >>> page = Report("1", True, 0, 0.999999, (row,), (), Timing(1.0, 1.0, 0.5, 30), 1.0)
    >>> page.verdict, page.exit_code
    ('undecided', 11)
    """

    version: str
    quick: bool
    seed: int
    confidence: float
    mechanisms: tuple[Row, ...]
    checks: tuple[Check, ...]
    timing: Timing
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Broken where anything is; undecided where a planted bug escaped, so that a test means nothing; else holds."""
        if self.findings or any(row.broken for row in self.mechanisms):
            return "broken"
        return "holds" if all(row.caught for row in self.mechanisms) else "undecided"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the oracles found."""
        return tuple(found for check in self.checks for found in check.findings)

    @property
    def exit_code(self) -> int:
        """What the command line returns: 0 holds, 10 broken, 11 undecided."""
        return EXIT_CODES[self.verdict]

    def to_arrow(self) -> pa.Table:
        """Return one row a mechanism: what was claimed and found, and whether a planted bug was seen."""
        import pyarrow as pa

        kinds = {"name": pa.string(), "parameter": pa.string(), "claimed": pa.float64(), "found": pa.float64()}
        kinds |= {"broken": pa.bool_(), "sees": pa.float64(), "bug": pa.string(), "caught": pa.bool_()}
        kinds |= {"event": pa.string(), "samples": pa.int64(), "seconds": pa.float64()}
        return pa.Table.from_pylist([asdict(row) for row in self.mechanisms], pa.schema(kinds.items()))

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the mechanisms: the oracles, the clock, the verdict."""
        return tuple(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Return the page as plain values, for JSON; what no test could see is null."""
        rows = [asdict(row) | {"sees": row.sees if isfinite(row.sees) else None} for row in self.mechanisms]
        return {
            "verdict": self.verdict,
            "version": self.version,
            "quick": self.quick,
            "seed": self.seed,
            "confidence": self.confidence,
            "mechanisms": rows,
            "checks": [asdict(check) for check in self.checks],
            "timing": asdict(self.timing),
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """Return the page in lines of text, below the table of mechanisms."""
        kind = "quick" if self.quick else "full"
        promise = (
            f"farthing {self.version}, {kind} audit, seed {self.seed}, {self.seconds:.0f} s; "
            f"all bounds hold together with confidence {self.confidence:.8g}"
        )
        found = [f"  ! {finding}" for finding in self.findings]
        return [
            *(f"{'ok  ' if not check.findings else 'FAIL'}  {check.name}" for check in self.checks),
            *found,
            f"timing: {self.timing}",
            f"{self.verdict}: {promise}",
        ]

    def __str__(self) -> str:
        wide = max((len(row.name) for row in self.mechanisms), default=0)
        table = [
            f"{row.name:{wide}}  {row.parameter:7} claimed {row.claimed:<8.4g} found {row.found:<8.4g} "
            f"{'BROKEN' if row.broken else 'holds '}  {row.bug}: {'seen' if row.caught else 'NOT SEEN'}"
            for row in self.mechanisms
        ]
        return "\n".join([*table, *self.lines()])


Report = AuditReport
"""The name by which users know it."""
