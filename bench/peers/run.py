"""Ask the same questions of farthing and its peers in turns, each in an environment of its own, and print the tables.

    python bench/peers/run.py                                   # make the environments (about 4 GB), measure, print
    python bench/peers/run.py --turns 3 --only opendp,tumult
    python bench/peers/run.py --venvs FOLDER --json FILE --docs docs/explanation/farthing-and-others.md

The environments are made once in --venvs and used again. farthing runs in the Python that runs this script. A peer that
cannot be installed, or fails, gets a line with its error. Tumult needs Java 17.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import turns  # noqa: E402  # the scripts' own folder
from data import rides  # noqa: E402  # and the tables of the other benches

PEERS = {
    "opendp": ["opendp[polars]==0.16.0"],
    "tumult": ["tmlt.analytics==0.21.0"],
    "smartnoise": ["smartnoise-sql==1.0.10", "pyarrow"],
    "pipelinedp": ["pipeline-dp==0.3.1", "dp-accounting==0.6.0", "pyarrow"],
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn<1.6", "pyarrow"],  # does not import with later scikit-learn
}
BY_RIDERS = ("opendp", "tumult", "pipelinedp")
BEGIN, END = "<!-- printed by bench/peers/run.py: do not edit -->", "<!-- end of the peers -->"


def python_of(peer: str, folder: Path) -> str:
    """Return the Python of a peer's environment, made on first use; raise with what the installer said."""
    if peer == "farthing":
        return sys.executable
    home = folder / peer
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *PEERS[peer]], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        (home / "ready").touch()
    return str(python)


class Peer:
    """One process that answers in turns."""

    def __init__(self, name: str, path: Path, unit: str, folder: Path) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # as long as the process
        command = [python_of(name, folder), str(HERE / f"ask_{name}.py"), str(path), unit]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True)
        self.ready = self._line()["ready"]

    def _line(self) -> dict[str, Any]:
        """Return the next line of JSON; raise with the last words of a process that ended."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError((self.errors.read().strip().splitlines() or ["ended without a word"])[-1])
        return json.loads(line) if line.startswith("{") else self._line()

    def ask(self) -> dict[str, Any]:
        """Take a turn."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def close(self) -> None:
        """Let the process end."""
        self.process.stdin.close()
        self.process.wait(timeout=60)


def raced(unit: str, rows: int, wanted: list[str], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return seconds, ratios to farthing and errors of everybody, from turns taken one after the other."""
    path = rides(rows)
    found: dict[str, dict[str, Any]] = {name: {"seconds": [], "rms": []} for name in ("farthing", *wanted)}
    racing: dict[str, Peer] = {}
    for name, facts in found.items():
        try:
            racing[name] = Peer(name, path, unit, options.venvs)
            first = racing[name].ask()  # not counted among the turns: everybody warms up
            facts["first"] = racing[name].ready + first["seconds"]
        except RuntimeError as error:
            facts["error"] = str(error)
    alive = [name for name, facts in found.items() if "error" not in facts]
    truth = exact(path) if unit == "row" else None
    for _ in range(options.turns):
        for name in alive:
            answer = racing[name].ask()
            found[name]["seconds"].append(answer["seconds"])
            if truth is not None:
                errors = [(got - true) ** 2 for got, true in zip(answer["counts"], truth, strict=True)]
                found[name]["rms"].append(statistics.fmean(errors) ** 0.5)
    for peer in racing.values():
        peer.close()
    ours = found["farthing"]["seconds"]
    for name in alive:
        pairs = zip(found[name]["seconds"], ours, strict=True)
        found[name]["ratio"] = statistics.median(theirs / mine for theirs, mine in pairs)
    return found


def exact(path: Path) -> list[float]:
    """Return the true counts."""
    import duckdb

    counts = dict(duckdb.connect().sql(f"SELECT zone, count(*) FROM read_parquet('{path}') GROUP BY zone").fetchall())
    return [counts.get(zone, 0) for zone in range(turns.ZONES)]


def prices(wanted: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what everybody's own accountant charges for the same questions."""
    lines = []
    for name in ("farthing", *wanted):
        try:
            command = [python_of(name, options.venvs), str(HERE / f"ask_{name}.py"), "price"]
        except RuntimeError as error:
            lines.append({"name": name, "error": str(error)})
            continue
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong = [{"error": (done.stderr.strip().splitlines() or ["no word"])[-1]}] if not told else []
        lines += [{"name": name} | facts for facts in told + wrong]
    return lines


def speed_table(found: dict[str, dict[str, Any]]) -> str:
    """Return a table of speeds."""
    lines = [
        "| system | seconds | times farthing's | start to first answer | root mean square error |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, facts in found.items():
        if "error" in facts:
            lines.append(f"| {name} | failed: `{facts['error'][:160]}` | | | |")
            continue
        rms = f"{statistics.median(facts['rms']):.2f}" if facts["rms"] else ""
        seconds = statistics.median(facts["seconds"])
        lines.append(f"| {name} | {seconds:.3g} | {facts['ratio']:.3g} | {facts['first']:.2g} s | {rms} |")
    return "\n".join(lines)


def price_table(lines: list[dict[str, Any]]) -> str:
    """Return a table of prices."""
    shown = {"epsilon": "{:.3f}", "rho": "rho {:.4f}", "deviation": "deviation {:.2f} at epsilon 1"}
    rows = ["| system | epsilon at delta 1e-6 | noise and accounting |", "| --- | ---: | --- |"]
    for facts in lines:
        told = next((words.format(facts[name]) for name, words in shown.items() if name in facts), "failed")
        rows.append(f"| {facts['name']} | {told} | {facts.get('how', facts.get('error'))} |")
    return "\n".join(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "farthing-peers")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    wanted = options.only.split(",")
    by_rows = raced("row", options.rows, wanted, options)
    by_riders = raced("rider", options.rows, [name for name in wanted if name in BY_RIDERS], options)
    charged = prices(wanted, options)
    head = f"{options.rows:,} rows, {options.turns} turns"
    parts = [
        f"**Each row a unit**, {head}:",
        speed_table(by_rows),
        f"**A rider is the unit**, at most {turns.MOST_ZONES} zones and {turns.MOST_ROWS} rows in each, {head}:",
        speed_table(by_riders),
        f"**The price of {turns.QUESTIONS} counts**, each within {turns.WITHIN}, 95 times in 100:",
        price_table(charged),
    ]
    printed = "\n\n".join(parts)
    print(printed)
    if options.json:
        options.json.write_text(json.dumps({"rows": by_rows, "riders": by_riders, "prices": charged}, indent=1))
    if options.docs:
        text = options.docs.read_text(encoding="utf-8")
        filled = re.sub(rf"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{printed}\n\n{END}", text, flags=re.DOTALL)
        options.docs.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
