"""How long a command takes to start and end, beside an empty Python and beside `import numpy`, as ratios.

    python bench/speed/start.py [--repeats 7] [--json FILE]

Each command runs in a process of its own, from files that were compiled before: an ask that is free again, the same
after another question was charged, `status`, `--help`, and `import farthing`. All run in turn; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROGRAM = "import sys; sys.argv[0] = 'farthing'; from farthing.cli import main; main()"
ZONES = ["ask", "SELECT zone, COUNT(*) AS rides FROM rides GROUP BY zone", "--absolute", "60"]
INIT = ["init", str(EXAMPLES / "rides.csv"), "--epsilon", "1", "--delta", "1e-6", "--keys",
        f"zone=@{EXAMPLES / 'zones.csv'}:id"]  # fmt: skip


def seconds(code, words, env):
    """Return how long a process takes, from its start to its end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *words], env=env, check=True, capture_output=True)
    return time.perf_counter() - began


def measured(folder, repeats):
    """Return the median seconds of each command."""
    os.chdir(folder)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"), "FARTHING_REPEATS": str(Path(folder) / "repeats")}
    asked_anew = env | {"FARTHING_REPEATS": "none"}
    seconds(PROGRAM, INIT, env)
    seconds(PROGRAM, ZONES, env)
    commands = {
        "an empty Python": ("pass", [], env),
        "import numpy": ("import numpy", [], env),
        "import farthing": ("import farthing", [], env),
        "farthing --help": (PROGRAM, ["--help"], env),
        "farthing status": (PROGRAM, ["status"], env),
        "a free repeat": (PROGRAM, ZONES, env),
        "a free repeat after another charge": (PROGRAM, ZONES, asked_anew),
    }
    taken = {name: [] for name in commands}
    for _ in range(repeats + 1):  # the first compiles
        for name, how in commands.items():
            taken[name].append(seconds(*how))
    return {name: statistics.median(all_taken[1:]) for name, all_taken in taken.items()}


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(folder, given.repeats)
    empty, numpy = found["an empty Python"], found["import numpy"]
    print(f"{'command':36}{'seconds':>9}{'/ empty Python':>16}{'/ import numpy':>16}")
    for name, taken in found.items():
        print(f"{name:36}{taken:9.3f}{taken / empty:16.1f}{taken / numpy:16.2f}")
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
