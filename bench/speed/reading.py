"""Reading a CSV file: a question's whole scan, beside DuckDB's own reader of CSV, in one process, as ratios.

    python bench/speed/reading.py [--lines 1e6] [--repeats 5] [--json FILE]

Both count rows and add up clamped fares by zone, types declared: DuckDB's `read_csv` with `columns=` and
`ignore_errors`, ours line by line so that no line changes how another is read. Both sides run alternately; ratios are
medians of pairs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from queries import LOWER, UPPER, interleaved, question, rides

KINDS = {"rider": "integer", "zone": "integer", "place": "integer", "fare": "float"}
DUCK = {"rider": "BIGINT", "zone": "BIGINT", "place": "BIGINT", "fare": "DOUBLE"}
DATES = {"day": ("date", "DATE"), "note": ("text", "VARCHAR")}


def written(lines, folder, *, wide):
    """Return a CSV file of the ride table, with a date and a quoted text in each line if it is `wide`."""
    import duckdb

    path = Path(folder) / f"rides-{'wide' if wide else 'narrow'}.csv"
    more = ", DATE '2026-01-01' + place % 365 AS day, 'seen, by \"' || rider || '\"' AS note" if wide else ""
    text = f"COPY (SELECT *{more} FROM read_parquet('{rides(lines)}')) TO '{path}' (HEADER, DELIMITER ',')"
    duckdb.connect().execute(text)
    return path


def measured(path, repeats, *, wide):
    """Return seconds and ratios of one file."""
    import duckdb

    import farthing
    from farthing.engines import open_table
    from farthing.query.aggregates import Count, NamedAggregate, Sum
    from farthing.query.expressions import Column

    ours = KINDS | ({name: kind for name, (kind, _) in DATES.items() if kind != "text"} if wide else {})
    theirs = DUCK | ({name: kind for name, (_, kind) in DATES.items()} if wide else {})
    engine = open_table(farthing.Csv(str(path), columns=ours), name="rides")
    connection = duckdb.connect()
    files = f"read_csv('{path}', header = true, ignore_errors = true, columns = {theirs})"
    last = Column("note" if wide else "place")
    clamped = f"sum(least(greatest(fare, {LOWER}), {UPPER}))"
    asks = {
        "count": ((Count(),), "count(*)"),
        "count, sum": ((Count(), Sum(Column("fare"), LOWER, UPPER)), f"count(*), {clamped}"),
        "count of another column, sum": (
            (Count(last), Sum(Column("fare"), LOWER, UPPER)),
            f"count({last.name}), {clamped}",
        ),
    }
    found = {}
    for name, (aggregates, row) in asks.items():
        listed = tuple(NamedAggregate(f"o{place}", one) for place, one in enumerate(aggregates))
        query = question(engine, None, listed)
        text = f"SELECT zone, {row} FROM {files} GROUP BY zone"
        found[name] = interleaved(
            lambda text=text: connection.execute(text).fetchall(), lambda query=query: engine.measure(query, 7), repeats
        )
    return found


def main():
    """Run, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    results = {}
    print(f"{'lines':8} {'asked':30} {'duckdb s':>9} {'ours s':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for wide in (False, True):
            path = written(int(options.lines), folder, wide=wide)
            for name, row in measured(path, options.repeats, wide=wide).items():
                kind = "wide" if wide else "narrow"
                results[f"{kind}, {name}"] = row
                print(
                    f"{kind:8} {name:30} {row['exact_s']:9.3f} {row['farthing_s']:9.3f} {row['ratio']:7.2f}", flush=True
                )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
