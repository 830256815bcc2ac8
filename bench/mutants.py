"""Put hand-written bugs of farthing to the audit: which check sees each, and that none is seen without a bug.

    python bench/mutants.py [--only WORDS] [--json FILE] [--markdown FILE]

The list is tests/attacks/mutants.py. Each bug is an edit of a copy of the source; the tree is never touched. Beforehand
every check that is named in the list runs on the copy as it is, and must be silent. Exit code 0 if every bug was seen,
10 if one survived, 11 if a check cries on sound source.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.pop(0)  # this folder, whose attacks.py is a script
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from attacks.mutants import MUTANTS
from attacks.mutating import Verdict, checked, copied, judged


def markdown(verdicts: list[Verdict]) -> str:
    """Return the table of the page."""
    rows = [f"| {one.name} | {one.killed_by or '**none**'} | {one.seconds:.1f} |" for one in verdicts]
    return "\n".join(["| bug | seen by | seconds |", "| --- | --- | --- |", *rows])


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose name holds these words")
    parser.add_argument("--json", type=Path, help="write the verdicts here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.name]
    verdicts: list[Verdict] = []
    with copied() as copy:
        for mutant in chosen:
            mutant.applied(copy / "farthing")  # fails at once where the source moved on
        names = tuple(dict.fromkeys(check for mutant in chosen for check in mutant.checks))
        cries = [line for line in checked(names, copy) if line["found"]]
        for line in cries:
            print(f"sound source fails {line['check']}: {line['found']}", flush=True)
        for mutant in chosen if not cries else ():
            one = judged(mutant, copy)
            verdicts.append(one)
            print(f"{one.killed_by or 'SURVIVED':12} {one.seconds:5.1f} s  {one.name}: {one.found[:90]}", flush=True)
    killed = sum(bool(one.killed_by) for one in verdicts)
    print(f"{killed} of {len(verdicts)} bugs seen, {sum(one.seconds for one in verdicts):.0f} s of checks")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in verdicts], indent=1))
    if options.markdown:
        options.markdown.write_text(markdown(verdicts) + "\n")
    return 11 if cries else 0 if killed == len(chosen) else 10


if __name__ == "__main__":
    raise SystemExit(main())
