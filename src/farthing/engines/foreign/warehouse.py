"""Warehouses: engines by their dialect, which ibis asks. No test of ours asked one: what is sent is printed.

Beside what `dialect` says, texts lose the collation that a column may have, since one that takes two letters for one
would take two units for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.dialect import DialectBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

CAPITALS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAST_PLAIN: Final = "CASE WHEN {0} IS NULL OR {1} < {0} THEN {1} ELSE {0} END"
GREATEST_PLAIN: Final = "CASE WHEN {0} IS NULL OR {1} > {0} THEN {1} ELSE {0} END"
"""The lesser and the greater of what has no NaN, where the functions of an engine are NULL with any NULL."""


class WarehouseBackend(DialectBackend):
    """The guarded primitives of a warehouse."""

    def text(self, question: Any, beside: Mapping[str, pa.Table]) -> str:
        """Return the whole text of a question as ibis sends it: what is sent is read and printed by sqlglot before."""
        import sqlglot

        dialect = self._connection.compiler.dialect
        return sqlglot.parse_one(super().text(question, beside), dialect=dialect).sql(dialect=dialect)

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question: the one place from which a text reaches rows."""
        return self._connection.sql(self.text(question, beside), schema=question.as_table().schema()).to_pyarrow()

    def _prepare(self, sql: str) -> None:
        """Have the types of a text found, where the warehouse is there: by a dry run, DESCRIBE or PREPARE."""
        if hasattr(self._connection, "sql"):
            self._connection.sql(sql)
