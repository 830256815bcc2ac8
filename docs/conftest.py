"""The Python examples of a page run in a folder of their own, which holds the example tables."""  # noqa: INP001

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each page the example tables, and keep what it writes out of the repository."""
    for table in (*EXAMPLES.glob("*.csv"), *EXAMPLES.glob("*.toml")):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
