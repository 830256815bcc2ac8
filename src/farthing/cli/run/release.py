"""What `farthing release` does: measures many tables at once, and writes or shows them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input import released, typed
from farthing.cli.input.options.question import QuestionOptions
from farthing.cli.input.question import listed_bounds, question_keys, require_bounds, schema_of
from farthing.cli.input.session import opened
from farthing.cli.run.plan import tell_plan
from farthing.cli.run.progress import working
from farthing.errors import InvalidOption, InvalidTarget, whole
from farthing.folders import beside, require_free, writing
from farthing.privacy.words import state
from farthing.released_synthetic import BaseSynthetic
from farthing.session.answering.release_options import ROWS
from farthing.workloads import Marginals

if TYPE_CHECKING:
    from farthing.cli.input.config import Config
    from farthing.cli.input.options.release import ReleaseOptions
    from farthing.released_tables import BaseRelease, ReleasedTable
    from farthing.session import Session
    from farthing.synthetic import SyntheticRows


def release(wanted: ReleaseOptions, config: str | None, *, as_json: bool) -> None:
    """Release tables, or with --dry-run tell what that would cost."""
    most = _most(wanted)
    workload = released.workload(wanted)
    wanted = _for_rows(wanted, workload)
    file = _new_file(wanted, workload)
    _goal(wanted)  # what cannot be read is refused before books are opened
    chosen = settings.read(config)
    with opened(chosen) as session:
        columns = released.columns_of(workload)
        asked = whole(lambda left: _asked(wanted, columns, chosen, session, left))
        if wanted.dry_run:
            with working("looking for the cheapest noise"):
                plan = session.plan_release(workload, **asked)
            tell_plan(plan, as_json=as_json)
            return
        folder = None if wanted.to is None else Path(wanted.to)
        for place in (folder, file):
            if place is not None:
                require_free(place)
        with working("looking for the cheapest noise, and measuring"):
            made = session.release(workload, **asked)
    rows = None if file is None else made.synthetic()
    if rows is not None and file is not None:
        _write(rows.table, file)
    files = [] if folder is None else made.to_parquet(folder)
    if as_json:
        facts = _errors(made) if isinstance(made, BaseSynthetic) else _facts(made, files)
        show.echo_json(facts | ({} if rows is None else {"synthetic": _near(rows, file)}))
        return
    if isinstance(made, BaseSynthetic):
        show.say(str(made))
    else:
        _show(made, files, most)
    for line in () if rows is None else (str(file), *rows.footer):
        show.say(line)


def _for_rows(wanted: ReleaseOptions, workload: Any) -> ReleaseOptions:
    """Return what is wanted, by the better mechanism for rows where rows are all that a price is to buy."""
    rows_alone = wanted.synthetic is not None and wanted.loss is not None and wanted.to is None
    if wanted.mechanism is None and rows_alone and isinstance(workload, Marginals):
        return replace(wanted, mechanism=ROWS)
    return wanted


def _most(wanted: ReleaseOptions) -> int | None:
    """Return the most rows of a table to show; refuse what goes with no other, before anything is paid."""
    for option, written in (("--to", wanted.to), ("--synthetic", wanted.synthetic)):
        if wanted.dry_run and written is not None:
            raise InvalidOption(
                f"{option} with --dry-run",
                rule="a price is told, and nothing is released",
                got=f"{option} {written}",
                next_step="drop one of them",
            )
    if wanted.rows is not None:
        return typed.rows(wanted.rows)
    return show.MOST_ROWS if sys.stdout.isatty() else None


def _new_file(wanted: ReleaseOptions, workload: Any) -> Path | None:
    """Return the file that synthetic rows go into; refuse what cannot be written, before anything is paid."""
    model = wanted.mechanism is not None and wanted.mechanism != "residuals"
    if model and wanted.to is not None:
        raise InvalidOption(
            "--to with a model of the data",
            rule="its tables have no intervals of their own; --synthetic writes its rows",
            got=f"--mechanism {wanted.mechanism}",
            next_step="--synthetic rows.parquet",
        )
    if wanted.synthetic is None:
        return None
    file = Path(wanted.synthetic)
    checks = {
        "of prefix sums, ranges, conditions or matrices": not isinstance(workload, Marginals) and not model,
        "into a file that is there already": file.exists() or file.is_symlink(),
        "into a folder that is not there": not file.absolute().parent.is_dir(),
        "into a file that is not .parquet": file.suffix.lower() not in {".parquet", ".pq"},
    }
    for words, wrong in checks.items():
        if wrong:
            raise InvalidOption(
                f"--synthetic {words}",
                rule="rows of a release of tables, or by a model, in a new Parquet file: files are not written over",
                got=f"--synthetic {file}",
                next_step="--columns zone,month --synthetic rows.parquet",
            )
    return file


def _write(table: Any, file: Path) -> None:
    """Write rows as Parquet: the file is whole, or not there."""
    import pyarrow.parquet as pq

    with beside(file) as near, writing(file):
        pq.write_table(table, near / file.name)
        (near / file.name).rename(file)


def _near(rows: SyntheticRows, file: Path | None) -> dict[str, Any]:
    """Return what was written as plain values: how many rows, and how near each table is."""
    return {"file": str(file), "rows": rows.table.num_rows, "seed": rows.seed, "errors": rows.report().to_pylist()}


def _errors(made: BaseSynthetic) -> dict[str, Any]:
    """Return a release by a model as plain values: the errors of its tables, its promise and its price."""
    return {
        "tables": made.to_arrow().to_pylist(),
        "mechanism": made.mechanism,
        "confidence": made.confidence,
        "paid": state(made.paid, made.delta),
        "remaining": state(made.remaining, made.delta),
        "about": made.about,
    }


def _goal(wanted: ReleaseOptions) -> dict[str, Any]:
    """Return how accurately, and at what price at most."""
    found = {
        "relative": typed.widths("--relative", wanted.relative, ["count"]),
        "absolute": typed.widths("--absolute", wanted.absolute, ["count"]),
        "rms": wanted.rms and typed.amount("--rms", wanted.rms),
        "confidence": wanted.confidence and typed.fraction("--confidence", wanted.confidence),
        "loss": None if wanted.loss is None else typed.loss("--loss", wanted.loss),
        "max_epsilon": None if wanted.max_epsilon is None else typed.amount("--max-epsilon", wanted.max_epsilon),
        "mechanism": wanted.mechanism,
        "cap": None if wanted.cap is None else typed.cap(wanted.cap),
    }
    given = {name: value for name, value in found.items() if value is not None}
    return given | ({"simultaneous": True} if wanted.simultaneous else {})


def _asked(
    wanted: ReleaseOptions, columns: tuple[str, ...], chosen: Config, session: Session, left: frozenset[str]
) -> dict[str, Any]:
    """Return which rows count, the listed values of each column and the goal, but for what is known to be left out."""
    options, goal = QuestionOptions.of(wanted), _goal(wanted)
    if "target" not in left and not chosen.target and not goal.keys() & {"absolute", "rms", "loss"}:
        raise InvalidTarget(
            "no accuracy was asked for",
            rule="one of --absolute (every cell, also with --relative), --rms (the mean error), --loss (the price)",
            next_step="--absolute 50: the interval of every cell is at most that to each side",
            missing="target",
        )
    bounds = listed_bounds(options, chosen)
    if "bounds" not in left:
        require_bounds(bounds, chosen, grouped=True, findable=False)
    schema = schema_of(session)
    kinds = {name: schema.require(name).value for name in columns}
    keys = {} if "keys" in left else question_keys(options, kinds, chosen, session, findable=False) or {}
    return goal | {"keys": keys, "bounds": bounds} | ({} if wanted.where is None else {"where": wanted.where})


def _facts(made: BaseRelease, files: list[Path]) -> dict[str, Any]:
    """Return a release as plain values: its tables, or the files that they went into."""
    tables = []
    for place, (words, table) in enumerate(made.parts):
        width = float(table.half_width.max())
        facts = {"words": words, "columns": list(table.keys), "cells": table.value.size, "half_width": width}
        tables.append(facts | ({"file": str(files[place])} if files else {"rows": table.rows()}))
    return made.to_dict() | {"tables": tables}


def _show(made: BaseRelease, files: list[Path], most: int | None) -> None:
    """Print a release: its tables, or the files that they went into; its promise, its price."""
    out = show.console()
    for table in () if files else (table for _, table in made.parts):
        _print_table(table, most)
    for file in files:
        out.print(str(file))
    out.print(made.caption)
    out.print(f"paid {show.money(made.paid, made.delta)}")
    out.print(f"left {show.money(made.remaining, made.delta)}")
    out.print(made.about, style="dim")


def _print_table(table: ReleasedTable, most: int | None) -> None:
    """Print one table, of too many cells the largest."""
    out, cells = show.console(), table.rows()
    shown = cells if most is None else sorted(cells, key=lambda cell: -cell[table.name])[:most]
    digits = show.digits_of([float(table.half_width.min())])
    heads = [*((column, False) for column in table.keys), (table.name, True)]
    rows = [
        [*("NULL" if cell[column] is None else str(cell[column]) for column in table.keys),
         show.number(cell[table.name], digits)]
        for cell in shown
    ]  # fmt: skip
    out.print(show.columns_table(heads, rows))
    if len(shown) < len(cells):
        out.print(f"the {len(shown):,} largest of {len(cells):,} cells; --rows all shows every one", style="dim")
    out.print(f"{table.caption}\n")
