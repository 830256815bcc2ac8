"""The books as tables for people: who asked what and paid what, and what is left; plain lists and mappings, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from farthing.ledger.entry import Entry
    from farthing.privacy.loss import Booked


class History(Tabular, list["Entry"]):
    """The entries of a ledger, newest first: a list that is shown as a table.

    Args:
        entries: of the ledger.
        loss: farthings as a loss of the ledger's currency.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> answer = s.count(absolute=50)
    >>> len(s.history())
    1
    >>> s.history().to_arrow().column_names
    ['id', 'when', 'who', 'question', 'target', 'reserved', 'paid', 'state']
    """

    def __init__(self, entries: Iterable[Entry], loss: Callable[[int], Booked]) -> None:
        list.__init__(self, entries)  # a protocol's own comes first, and takes nothing on
        self._loss = loss

    @property
    def footer(self) -> tuple[str, ...]:
        """The line below the entries: in what they are told."""
        parameter = self._loss(0).parameter
        adds = "their squares add up" if parameter == "mu" else "they add up"
        return (f"reserved and paid in {parameter}: {adds}",) if self else ("nothing was asked yet",)

    def to_arrow(self) -> pa.Table:
        """Return one row an entry; reserved and paid in the ledger's own parameter."""
        import pyarrow as pa

        schema = pa.schema(
            [("id", pa.int64()), ("when", pa.timestamp("s", "UTC"))]
            + [(name, pa.string()) for name in ("who", "question", "target")]
            + [("reserved", pa.float64()), ("paid", pa.float64()), ("state", pa.string())]
        )
        return pa.Table.from_pylist([self._row(entry) for entry in self], schema)

    def _row(self, entry: Entry) -> dict[str, Any]:
        """Return an entry as a row."""
        reserved, paid = (self._loss(farthings).value for farthings in (entry.reserved, entry.charged))
        told = {"id": entry.id, "when": entry.opened_at.replace(microsecond=0), "who": entry.who}
        told |= {"question": entry.label, "target": entry.target}
        return told | {"reserved": reserved, "paid": paid, "state": entry.state}


class Status(Tabular, dict[str, Any]):
    """The state of the books: a mapping of plain values that is shown as a table.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> status = s.status()
    >>> status["remaining"]["epsilon"] < 1.001, status.to_arrow().column_names
    (True, ['what', 'value'])
    """

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the table: what is open."""
        return tuple(f"open: {entry['label']}, process {entry['pid']} on {entry['host']}" for entry in self["open"])

    def to_arrow(self) -> pa.Table:
        """Return what is known of the books, a line each; losses with their epsilon."""
        import pyarrow as pa

        told = {name: _words(value) for name, value in self.items() if name not in {"open", "allotments", "keys_delta"}}
        held = {f"left to {name}": repr(parts["left"]) for name, parts in self.get("allotments", {}).items()}
        lines = {name: text for name, text in (told | held).items() if text}
        return pa.table({"what": pa.array(lines, pa.string()), "value": pa.array(lines.values(), pa.string())})


def _words(value: object) -> str:
    """Return a value in words: a loss with its parameter and epsilon."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:.4g}" for name, number in value.items())
    return "" if value is None else str(value)
