"""Put mutants to their checks: on a copy of the source, each in a process of its own; the tree is never touched."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attacks.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
CHECKER = Path(__file__).with_name("mutant_checks.py")
PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        name: the mutant's.
        killed_by: the check that failed; "" where it survived.
        found: what the check said.
        seconds: of all its checks, without the start of the process.
    """

    name: str
    killed_by: str
    found: str
    seconds: float


@contextmanager
def copied(source: Path = ROOT / "src") -> Iterator[Path]:
    """Give a copy of the source, taken now."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy)
        yield copy


def judged(mutant: Mutant, copy: Path) -> Verdict:
    """Return what a mutant's checks see of it; the copy is left as it was."""
    path = copy / "farthing" / mutant.file
    clean = path.read_text()
    bad = mutant.applied(copy / "farthing")
    try:
        written(path, bad)
        lines = checked(mutant.checks, copy)
    finally:
        written(path, clean)
    failed = next((line for line in lines if line["found"]), None)
    seconds = sum(line["seconds"] for line in lines)
    if failed is None:
        return Verdict(mutant.name, "", "", seconds)
    return Verdict(mutant.name, failed["check"], failed["found"][0], seconds)


def written(path: Path, text: str) -> None:
    """Write a module and forget its compiled form, which is known by a time in seconds and a size."""
    path.write_text(text)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def checked(names: tuple[str, ...], copy: Path) -> list[dict[str, Any]]:
    """Run checks in turn on a copy, until one fails; a farthing that does not even start has failed the first.

    Raises:
        RuntimeError: the checks ran on another farthing than the copy.
    """
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # an edit of the same size within a second would not be seen
    command = [sys.executable, "-W", "ignore", str(CHECKER), *names]
    begun = time.perf_counter()
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment, cwd=copy
        )
    except subprocess.TimeoutExpired:
        return [{"check": names[0], "found": ["no end"], "seconds": float(PATIENCE_S)}]
    first, *lines = [json.loads(line) for line in ended.stdout.splitlines()] or [{}]
    if first and not Path(first["farthing"]).is_relative_to(copy):
        raise RuntimeError(f"checked {first['farthing']}, not the copy")
    if ended.returncode:
        words = ended.stderr.strip().splitlines()[-1:]
        return [*lines, {"check": names[0], "found": words or ["died"], "seconds": time.perf_counter() - begun}]
    return lines
