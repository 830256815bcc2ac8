"""The experiment of Rogers, Samorodnitsky, Wu and Ramdas (2023), rerun: how many counts at 10 % one budget returns.

Every method releases counts within 10 % of the truth, 95 times in 100, until (epsilon, 1e-6) is spent. On the Zipf and
flights tasks it first finds the largest count not yet returned. A user may be in all counts, so their losses add.
Everything is drawn from fixed seeds; the choices of the methods come from a sweep on another one.

    python bench/accuracy/paper.py [--trials 1000] [--json FILE] [--write] [--quick]
    python bench/accuracy/paper.py --tasks flights zipf300 [--trials 1000] [--write]
    python bench/accuracy/paper.py --accounting [--trials 1000] [--write]
    python bench/accuracy/paper.py --tune
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from farthing import charts
from farthing.experiments import laws, picture, tables, tuned
from farthing.experiments.methods import METHODS
from farthing.experiments.runner import DELTA, EPSILONS, QUICK_EPSILONS, Comparison, Plan, compare, sweep
from farthing.experiments.setting import Setting

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "accuracy-first.md"
IMAGE = ROOT / "docs" / "images" / "paper-{}.svg"
BEGIN, END = "<!-- printed by bench/accuracy/paper.py: do not edit -->", "<!-- end of what was printed -->"
BEGIN_ACCOUNTING = BEGIN.replace("paper.py", "paper.py --accounting")
END_ACCOUNTING = "<!-- end of the accountings -->"
OTHERS = (0.05, 0.3)
SMALLER = {"tasks": ("equal", "zipf300", "zipf1e6"), "epsilons": (0.1, 1.0)}
TUNING_SEED = 20231
DRAWN = ("equal", "zipf300", "zipf1e6", "flights")


def tune():
    """Sweep the choices of every method on every task and store the best."""
    found = []
    for name in laws.TASKS:
        task = laws.task(name)
        for epsilon in EPSILONS if task is not None else ():
            setting = Setting(task, epsilon, DELTA, 0.1, 0.95)
            for method in METHODS:
                if len(method.choices(setting)) > 1 and not method.like:
                    found.append(((name, f"{epsilon:g}", method.name), sweep(setting, method, TUNING_SEED)))
                    print(*found[-1], flush=True)
    tuned.store(found)


def run(options):
    """Run the comparison, the main one and those at other targets."""
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    main = compare(Plan(epsilons=epsilons, trials=options.trials), told=say)
    others = [] if options.quick else [compare(Plan(relative=r, trials=options.trials, **SMALLER), told=say)
                                       for r in OTHERS]  # fmt: skip
    return main, others


def say(name, number, total):
    """Say what is being run."""
    print(f"{number + 1}/{total} {name}", flush=True)


def markdown(main, others):
    """Return the tables of the page."""
    parts = [tables.markdown(main), "### Other targets", *(tables.markdown(each, brief=True) for each in others)]
    return "\n\n".join(parts if others else parts[:1])


def write(main, others):
    """Put the tables and the pictures into the documentation."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(text, BEGIN, END, markdown(main, others)), encoding="utf-8")
    for name in DRAWN:
        if name in main.cells:
            charts.save(picture.returned_chart(main, name), Path(str(IMAGE).format(name)))


def between(text, begin, end, printed):
    """Return a page with what was printed between two marks."""
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n{printed}\n\n{end}{after}"


def some(options):
    """Run some tasks at the main target; put each in the place of its own part of the page when asked."""
    found = compare(Plan(tasks=tuple(options.tasks), trials=options.trials), told=say)
    print(tables.markdown(found))
    for name in options.tasks if options.write else ():
        text = PAGE.read_text(encoding="utf-8")
        start = text.index(f"**{name}**: ", text.index(BEGIN))
        end = min(at for mark in ("\n**", "\n### ") if (at := text.find(mark, start)) > 0)
        one = Comparison(found.plan, {name: found.titles[name]}, {name: found.cells[name]}, found.skipped)
        PAGE.write_text(f"{text[:start]}{tables.markdown(one).strip()}\n{text[end:]}", encoding="utf-8")
        if name in DRAWN:
            charts.save(picture.returned_chart(found, name), Path(str(IMAGE).format(name)))


def account(options):
    """Print what the accounting is worth by itself; put it into the documentation when asked."""
    printed = tables.accounting(compare(Plan(tasks=("equal",), trials=options.trials), told=say), "equal")
    print(printed)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(text, BEGIN_ACCOUNTING, END_ACCOUNTING, printed), encoding="utf-8")


def main():
    """Print the tables; write JSON, page and pictures when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000, help="sessions in each cell")
    parser.add_argument("--quick", action="store_true", help="two epsilons, one target")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--write", action="store_true", help="put tables and pictures into the documentation")
    parser.add_argument("--tune", action="store_true", help="sweep the methods' choices and store them")
    parser.add_argument("--tasks", nargs="+", choices=laws.TASKS, help="these tasks only, at the main target")
    parser.add_argument("--accounting", action="store_true", help="one mechanism under three accountings, and ours")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.tune:
        tune()
    elif options.accounting:
        account(options)
    elif options.tasks:
        some(options)
    else:
        found, others = run(options)
        print(markdown(found, others))
        if options.json:
            every = {f"{each.plan.relative:g}": tables.plain(each) for each in (found, *others)}
            options.json.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
        if options.write:
            write(found, others)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
