"""How much of a processor a command takes from start to end, beside an empty Python and beside `import numpy`.

    python bench/speed/start.py [--repeats 7] [--json FILE]

Each command runs in a process of its own, from files that were compiled before: an ask that is free again, the same
after the command line charged another question, the same where nothing is kept (as after another program charged),
`status`, `--help`, and `import farthing`. All run in turn; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROGRAM = "import sys; sys.argv[0] = 'farthing'; from farthing.cli import main; main()"
ZONES = ["ask", "SELECT zone, COUNT(*) AS rides FROM rides GROUP BY zone", "--absolute", "60"]
OTHER = ["ask", "SELECT COUNT(*) AS n FROM rides WHERE month > {}", "--absolute", "200"]
INIT = ["init", str(EXAMPLES / "rides.csv"), "--unit", "row", "--epsilon", "1", "--delta", "1e-6", "--keys",
        f"zone=@{EXAMPLES / 'zones.csv'}:id"]  # fmt: skip


def seconds(code, words, env):
    """Return the seconds of processor that a process takes, from its start to its end."""
    before = spent()
    subprocess.run([sys.executable, "-c", code, *words], env=env, check=True, capture_output=True)
    return spent() - before


def spent():
    """Return the seconds of processor of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        "another question, charged": (PROGRAM, OTHER, env),
        "a free repeat after it": (PROGRAM, ZONES, env),
        "a free repeat, nothing kept": (PROGRAM, ZONES, asked_anew),
    }
    taken = {name: [] for name in commands}
    for turn in range(repeats + 1):  # the first compiles
        for name, (code, words, shaped) in commands.items():
            taken[name].append(seconds(code, [word.format(turn) for word in words], shaped))
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
