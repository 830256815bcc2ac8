"""What `farthing audit` does: audits what is installed, and prints the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.cli import show
from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from farthing.audit.report import AuditReport


def audit(seed: int | None, *, itself: bool, full: bool, as_json: bool) -> int:
    """Audit, show, and return the exit code."""
    if not itself:
        raise InvalidOption(
            "nothing was named to be audited",
            rule="--self audits the farthing that is installed",
            next_step="farthing audit --self; samples of your own are audited in Python",
        )
    report = _audited(seed, full=full)
    if as_json:
        show.echo_json(report.to_dict())
    else:
        _show(report)
    return report.exit_code


def _audited(seed: int | None, *, full: bool) -> AuditReport:
    """Return the report, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from farthing.audit import self_audit

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("audit", total=None)

        def tell(what: str, done: int, steps: int) -> None:
            """Move the bar."""
            bar.update(task, description=what, completed=done, total=steps)

        return self_audit(quick=not full, seed=seed, progress=tell)


def _show(report: AuditReport) -> None:
    """Print the page."""
    out = show.console()
    heads = (
        ("mechanism", False),
        ("", False),
        ("claimed", True),
        ("found at least", True),
        ("verdict", False),
        ("sees from", True),
        ("planted bug", False),
        ("seen", False),
    )
    rows = [
        (
            row.name,
            row.parameter,
            f"{row.claimed:.4g}",
            f"{row.found:.4g}",
            "BROKEN" if row.broken else "holds",
            f"x {row.sees:.3g}" if row.found else "-",
            row.bug,
            "yes" if row.caught else "NO",
        )
        for row in report.mechanisms
    ]
    out.print(show.columns_table(heads, rows))
    for line in report.lines():
        out.print(line)
