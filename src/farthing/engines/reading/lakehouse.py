"""Delta and Iceberg tables: the version that is current when a table is opened, as the files that make it up.

Their own libraries say which files these are. Where the files are the table as it is, the embedded engine scans them.
Where columns came later, are renamed or parts of paths, or rows were deleted, rows are handed over as Arrow.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from farthing.engines.reading import delta, iceberg
from farthing.engines.reading.version import shown
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from farthing.engines.reading.version import Version


def version_of(folder: Path) -> Version | None:
    """Return the current version of the Delta or Iceberg table in a folder; None where there is neither.

    Raises:
        DataError: its library is missing, or cannot read it.
    """
    if (folder / "_delta_log").is_dir():
        return _opened(folder, "Delta", "deltalake", delta.opened)
    if any((folder / "metadata").glob("*.metadata.json")):
        return _opened(folder, "Iceberg", "pyiceberg", iceberg.opened)
    return None


def _opened(folder: Path, kind: str, library: str, of: Callable[[Path], Version]) -> Version:
    """Return the version that a library says, or refuse."""
    if find_spec(library) is None:
        raise DataError(
            f"{kind} tables are read by {library}, which is not installed",
            rule=f"a folder with a {kind} table needs {library}",
            got=folder,
            next_step="pip install 'farthing[lakehouse]'",
        )
    found = None
    with suppress(Exception):  # what the library says may be of any kind
        found = of(folder)
    if found is None:
        raise DataError(
            f"the {kind} table cannot be read",
            rule=f"{library} reads which local files its current version has, and it needs no feature of its readers"
            " that is not known here",
            got=folder,
            next_step=f"see what {library} says of it",
        )
    _require_listed(found.cut, found.files)
    return found


def _require_listed(cut: frozenset[str], files: Sequence[str]) -> None:
    """Refuse deleted rows of files that the version does not list: they would be counted.

    Raises:
        DataError: a path of one is not, letter by letter, a path of the other.
    """
    odd = sorted(cut.difference(files))
    if odd:
        raise DataError(
            "rows of the Delta table are deleted from a file that it does not list",
            rule="each file from which rows were deleted is one of the files of the version",
            got=shown(odd[0]),
            next_step="write the table again without deletion vectors: REORG TABLE ... APPLY (PURGE) in Spark",
        )
