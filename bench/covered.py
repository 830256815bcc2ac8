"""Which share of the code the tests run, package by package: lines and branches.

    python -m pip install coverage
    python bench/covered.py [--docs docs/reference/support.md] [--tenths 2] [PYTEST ARGUMENT ...]

Without arguments it is the quick tier, in one process, so that every line is seen; with -m "not slow" it is the
thorough tier as well. --tenths 2 runs two tests in ten, chosen by a hash of the name. --docs writes the table into a
page. Processes that tests start (servers, Spark, kill loops) are not counted, so the true share is higher.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TENTHS = "COVERED_TENTHS"
BEGIN, END = "<!-- printed by bench/covered.py: do not edit -->", "<!-- end of the coverage -->"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep so many tests in ten: this file is a plugin of the run that it starts."""
    tenths = int(os.environ.get(TENTHS, "10"))
    left = [item for item in items if int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16) % 10 >= tenths]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


def measured(arguments: list[str], tenths: int) -> dict[str, dict[str, int]]:
    """Run the tests, and return each module's counts."""
    with tempfile.TemporaryDirectory() as folder:
        data, found = Path(folder) / "data", Path(folder) / "found.json"
        here = [sys.executable, "-m", "coverage"]
        run = [*here, "run", "--branch", f"--data-file={data}", f"--source={ROOT / 'src' / 'farthing'}"]
        env = os.environ | {TENTHS: str(tenths), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'bench'}"}
        tests = subprocess.run(
            [*run, "-m", "pytest", "-q", "-n0", "-p", "covered", *arguments], cwd=ROOT, env=env, check=False
        )
        subprocess.run([*here, "json", "-q", f"--data-file={data}", "-o", str(found)], cwd=ROOT, check=True)
        if tests.returncode:
            sys.exit("the tests failed: what they cover says nothing")
        files = json.loads(found.read_text(encoding="utf-8"))["files"]
    return {name: file["summary"] for name, file in files.items()}


def shares(modules: dict[str, dict[str, int]]) -> dict[str, tuple[int, float, float]]:
    """Return for each package, and for all: lines, the share of them that ran, and the share of branches."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, counts in modules.items():
        inside = Path(name).parts[Path(name).parts.index("farthing") + 1 :]
        for package in (inside[0].removesuffix(".py"), "all"):
            for fact in ("num_statements", "covered_lines", "num_branches", "covered_branches"):
                sums[package][fact] += counts[fact]
    return {
        package: (
            counts["num_statements"],
            counts["covered_lines"] / max(1, counts["num_statements"]),
            counts["covered_branches"] / max(1, counts["num_branches"]),
        )
        for package, counts in sorted(sums.items(), key=lambda item: (item[0] != "all", item[0]))
        if counts["num_statements"]
    }


def table(found: dict[str, tuple[int, float, float]]) -> str:
    """Return the table in Markdown."""
    rows = [f"| {name} | {lines:,} | {ran:.1%} | {taken:.1%} |" for name, (lines, ran, taken) in found.items()]
    return "\n".join(["| package | statements | run | branches taken |", "| --- | ---: | ---: | ---: |", *rows])


def main() -> None:
    """Measure, print, and write into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--tenths", type=int, default=10)
    options, arguments = parser.parse_known_args()
    printed = table(shares(measured(arguments, options.tenths)))
    print(printed)
    if options.docs:
        text = options.docs.read_text(encoding="utf-8")
        filled = re.sub(rf"{BEGIN}.*{END}", f"{BEGIN}\n\n{printed}\n\n{END}", text, flags=re.DOTALL)
        options.docs.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
