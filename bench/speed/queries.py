"""Every aggregate beside its exact bounded SQL in the same DuckDB, in one process, as ratios.

    python bench/speed/queries.py                # 10,000,000 rows
    python bench/speed/queries.py --at 1e8       # 100,000,000 rows (about 1 GB of disk)
    python bench/speed/queries.py --only sum five  # some of the aggregates
    python bench/speed/queries.py --arrow        # the same rows as an Arrow table in memory, for both sides
    python bench/speed/queries.py --grid         # what rounding alone costs: each value cast before it is added
    python bench/speed/queries.py --grid --arrow # the same of five aggregates over an Arrow table, part by part
    python bench/speed/queries.py --peers        # OpenDP's Polars context and Tumult Analytics, where installed
    python bench/speed/queries.py --peers-only   # the same, where a peer's pins leave no room for farthing
    python bench/speed/queries.py --json out.json

The exact SQL bounds contributions as ours does: with the rider as unit, at most 5 zones a rider and 20 rows in each. It
is what an analyst would write, without noise. Both sides run alternately; ratios are medians of pairs, of the clock and
of the processor: the second means the same on a busy machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from data import ZONES, rides

LOWER, UPPER = 0, 100
CLAMPED = f"least(greatest(fare, {LOWER}), {UPPER})"
EXACT = {  # of a row x, and of a cell: columns of the cell, and what is added of it
    "count": ("count(*)", "count(*) n", "least(n, 20)"),
    "count value": ("count(fare)", "count(fare) n", "least(n, 20)"),
    "units": ("count(*)", "1 AS n", "n"),
    "sum": (f"sum({CLAMPED})", f"count(fare) n, sum({CLAMPED}) s", "s * least(1, 20 / n)"),
    "mean": (
        f"count(fare), sum({CLAMPED})",
        f"count(fare) n, sum({CLAMPED}) s",
        "least(n, 20)), sum(s * least(1, 20 / n)",
    ),
    "variance": (
        f"count(fare), sum({CLAMPED}), sum({CLAMPED} * {CLAMPED})",
        f"count(fare) n, sum({CLAMPED}) s, sum({CLAMPED} * {CLAMPED}) q",
        "least(n, 20)), sum(s * least(1, 20 / n)), sum(q * least(1, 20 / n)",
    ),
    "five": (
        f"count(*), count(*), sum({CLAMPED}), count(fare), sum({CLAMPED} * {CLAMPED})",
        f"count(*) c, count(fare) n, sum({CLAMPED}) s, sum({CLAMPED} * {CLAMPED}) q",
        "least(c, 20)), sum(1), sum(s * least(1, 20 / n)), sum(least(n, 20)), sum(q * least(1, 20 / n)",
    ),
}
CELLS = (
    "SELECT zone, sum({cut}) FROM (SELECT rider, zone, {cell} FROM read_parquet('{path}') GROUP BY rider, zone "
    "QUALIFY row_number() OVER (PARTITION BY rider ORDER BY hash(rider, zone), zone) <= 5) GROUP BY zone"
)
MEDIAN = {
    "row": "SELECT zone, quantile_cont(" + CLAMPED + ", 0.5) FROM read_parquet('{path}') GROUP BY zone",
    "rider": "SELECT zone, quantile_cont(" + CLAMPED + ", 0.5) FROM (SELECT zone, fare FROM read_parquet('{path}') "
    "QUALIFY row_number() OVER (PARTITION BY rider, zone ORDER BY hash(fare)) <= 20 "
    "AND dense_rank() OVER (PARTITION BY rider ORDER BY hash(rider, zone), zone) <= 5) GROUP BY zone",
}


def outputs():
    """Return the aggregates of every question."""
    from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Sum, Variance
    from farthing.query.expressions import Column

    fare = Column("fare")
    each = {
        "count": Count(),
        "count value": Count(fare),
        "units": CountUnits(),
        "sum": Sum(fare, LOWER, UPPER),
        "mean": Mean(fare, LOWER, UPPER),
        "variance": Variance(fare, LOWER, UPPER),
    }
    named = {name: (NamedAggregate("o", aggregate),) for name, aggregate in each.items()}
    five = ("count", "units", "sum", "mean", "variance")
    return named | {"five": tuple(NamedAggregate(f"o{place}", each[name]) for place, name in enumerate(five))}


def question(engine, unit, listed):
    """Return the question of some aggregates by zone."""
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Bounds, Keys, Query

    keys = Keys.of(("zone",), {"zone": list(range(ZONES))}, engine.schema)
    bounds = Bounds(5, 20) if unit else Bounds()
    return Query(engine.name, ("zone",), keys, None, listed, PrivacyUnit(unit), bounds)


def timed(work):
    """Return the seconds that a call takes."""
    return both(work)[0]


def both(work):
    """Return the seconds that a call takes, of the clock and of the processor."""
    start, began = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - began


def interleaved(exact, ours, repeats):
    """Time two calls one after the other, several times; return their medians and the medians of the ratios."""
    exact(), ours()
    pairs = [(both(exact), both(ours)) for _ in range(repeats)]
    base, mine = (statistics.median(clock for clock, _ in column) for column in zip(*pairs, strict=True))
    ratio, processor = (statistics.median(b[part] / a[part] for a, b in pairs) for part in (0, 1))
    return {"exact_s": base, "farthing_s": mine, "ratio": ratio, "processor": processor}


CASED = (  # as farthing clamps a value
    "CASE WHEN {x} BETWEEN 0 AND 100 THEN {x} WHEN {x} < 0 THEN 0::DOUBLE "
    "WHEN {x} <= 'inf'::DOUBLE THEN 100::DOUBLE END"
)
MAGIC = "(({}) + {}::DOUBLE) - {}::DOUBLE"  # adding 1.5 * 2^52 steps, and taking it away, rounds to whole steps
FINE, COARSE = 1.5 * 2.0**52 / 2**29, 1.5 * 2.0**52 / 2**11


def each(formula):
    """Return a formula of the clamped value, computed once for each entry of a dictionary, as farthing does it."""
    inside = CASED.format(x="v")
    return f"list_transform([fare], lambda v: {formula.replace('{}', inside)})[1]"


GRID = {
    "the sum of clamped values": f"sum({CLAMPED})",
    "each rounded to a whole number first": f"sum(CAST({CLAMPED} AS BIGINT))",
    "the sum of values as they are": "sum(fare)",
    "each rounded first": "sum(CAST(fare AS BIGINT))",
    "in fine steps, as farthing has them": f"sum({each('TRY_CAST(({}) * 536870912::DOUBLE AS BIGINT)')})",
    "in fine steps, no dictionary used": f"sum(TRY_CAST(({CASED.format(x='fare')}) * 536870912::DOUBLE AS BIGINT))",
    "in doubles (exact to 2^17 rows a group)": f"sum({each(MAGIC.format('{}', FINE, FINE))})",
    "in two doubles each (exact)": f"sum({each(MAGIC.format('{}', COARSE, COARSE))}), "
    f"sum({each('({}) - (' + MAGIC.format('{}', COARSE, COARSE) + ')')})",
    "by round()": f"sum({each('round(({}) * 536870912::DOUBLE)')})",
    "as decimals": f"sum({each('TRY_CAST(({}) AS DECIMAL(18, 9))')})",
}


STEPS = (
    "(e - 50::DOUBLE) * 1073741824::DOUBLE",
    "((e - 50::DOUBLE) * (e - 50::DOUBLE) - 1250::DOUBLE) * 33554432::DOUBLE",
)
WHOLE = tuple(f"TRY_CAST({steps} AS BIGINT)" for steps in STEPS)
PARTS = {  # of five aggregates: the value e, what is added of it and of its square, and how
    "the exact query": (CLAMPED, ("e", "e * e"), "sum"),
    "clamped as farthing does": (CASED.format(x="fare"), ("e", "e * e"), "sum"),
    "in steps, not rounded": (CASED.format(x="fare"), STEPS, "sum"),
    "the same, counted only": (CASED.format(x="fare"), STEPS, "count"),
    "in whole steps, counted only": (CASED.format(x="fare"), WHOLE, "count"),
    "in whole steps, as farthing has them": (CASED.format(x="fare"), WHOLE, "sum"),
    "clamped by least and greatest": (CLAMPED, WHOLE, "sum"),
    "by a cast that may fail": (CASED.format(x="fare"), [each.replace("TRY_CAST", "CAST") for each in WHOLE], "sum"),
    "in 32 bits": (
        CASED.format(x="fare"),
        [each.replace("BIGINT", "INTEGER").replace("::DOUBLE AS", "::DOUBLE / 1024 AS") for each in WHOLE],
        "sum",
    ),
}


def parts(path, repeats):
    """Seconds of processor of five aggregates by zone over an Arrow table, one thread, with what a grid takes by parts.

    Last stored values are added up: whole numbers in 128 bits, beside doubles.
    """
    import duckdb
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table, connection = pq.read_table(path, columns=["zone", "fare"]), duckdb.connect(config={"threads": 1})
    whole = pc.cast(pc.round(pc.multiply(pc.fill_null(table.column("fare"), 0), 2.0**20)), "int64")
    connection.register("in_memory", table.append_column("whole", whole))
    texts = {
        name: f"SELECT zone, count(*), count(*), count(v), {how}(v), {how}(w) FROM (SELECT zone, {v} AS v, {w} AS w "
        f"FROM (SELECT zone, {x} AS e FROM in_memory)) GROUP BY zone"
        for name, (x, (v, w), how) in PARTS.items()
    }
    stored = {"doubles as they are stored": "fare", "whole numbers as they are stored": "whole"}
    texts |= {name: f"SELECT zone, sum({column}) FROM in_memory GROUP BY zone" for name, column in stored.items()}
    found = {name: [] for name in texts}
    for _ in range(repeats + 1):
        for name, text in texts.items():
            found[name].append(both(lambda text=text: connection.execute(text).fetchall())[1])
    return {name: min(seconds[1:]) for name, seconds in found.items()}


def grid(path, repeats):
    """Seconds of processor of exact sums by zone, with and without a cast of each value: what rounding costs at least.

    A cast is the least that brings a value to whole numbers, whose sum does not depend on the order of adding. Sums of
    doubles that are whole steps do not depend on it either while they are below 2^53 steps: 2^17 values of 2^36 steps,
    or any number of them where each is added up in two parts.
    """
    import duckdb

    connection, found = duckdb.connect(), {name: [] for name in GRID}
    for _ in range(repeats + 1):
        for name, value in GRID.items():
            text = f"SELECT zone, {value} FROM read_parquet('{path}') GROUP BY zone"
            found[name].append(both(lambda text=text: connection.execute(text).fetchall())[1])
    return {name: min(seconds[1:]) for name, seconds in found.items()}


def aggregates(path, repeats, limit, only=(), *, arrow=False):
    """Every aggregate (or only some) by 265 zones, each row a unit and the rider a unit."""
    import duckdb

    from farthing.engines import open_table
    from farthing.query.aggregates import NamedAggregate, Quantile
    from farthing.query.expressions import Column

    connection, table, results = duckdb.connect(), path, {}
    if arrow:
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        connection.register("in_memory", table)
    engine = open_table(table, name="rides")

    def run(sql):
        spelled = sql.replace(f"read_parquet('{path}')", "in_memory") if arrow else sql
        return lambda: connection.execute(spelled).fetchall()

    for unit in (None, "rider"):
        label = unit or "row"
        for name, listed in outputs().items():
            if only and name not in only:
                continue
            row, cell, cut = EXACT[name]
            spelled = f"SELECT zone, {row} FROM read_parquet('{path}') GROUP BY zone"
            exact = CELLS.format(path=path, cell=cell, cut=cut) if unit else spelled
            query = question(engine, unit, listed)
            measured = interleaved(run(exact), lambda query=query: engine.measure(query, 7), repeats)
            results[f"{name}, {label} unit"] = measured | {"limit": limit}
            show(f"{name}, {label} unit", results[f"{name}, {label} unit"])
        if only and "median" not in only:
            continue
        median = Quantile(Column("fare"), 0.5, LOWER, UPPER)
        query = question(engine, unit, (NamedAggregate("o", median),))
        results[f"median, {label} unit"] = interleaved(
            run(MEDIAN[label].format(path=path)),
            lambda query=query, median=median: engine.histogram(query, median, 7),
            repeats,
        ) | {"limit": limit}
        show(f"median, {label} unit", results[f"median, {label} unit"])
    return results


def show(name, row):
    """Print one line of the table."""
    ratios = f"{row['ratio']:>7.2f} {row['processor']:>10.2f}"
    shown = f"{row['exact_s']:>9.3f} {row['farthing_s']:>9.3f} {ratios} {row['limit']:>6}"
    print(f"{name:<26} {shown}", flush=True)


def planning(path, repeats=30):
    """Parse, plan and price, in a session that has seen a question before."""
    import tempfile

    import farthing

    with tempfile.TemporaryDirectory() as folder:
        session = farthing.Session(
            path, budget=farthing.Budget(epsilon=5, delta=1e-6), ledger=Path(folder) / "bench.ledger", name="rides"
        )

        def once():
            session.plan(
                by="zone", keys={"zone": range(ZONES)}, where="fare > 2 AND place < 5", relative=0.1, absolute=50
            )

        once()
        return {"plan_ms": 1000 * statistics.median(timed(once) for _ in range(repeats)), "limit_ms": 30}


def counted(path, unit):
    """Ask the question that peers are asked: a count by zone, each row a unit or the rider a unit."""
    import farthing

    budget, bounds = farthing.Budget(rho=0.5), farthing.Bounds(max_groups=5, max_rows=20)
    with farthing.Session(path, unit=unit, budget=budget, bounds=bounds) as session:
        session.count(by="zone", keys={"zone": range(ZONES)}, relative=0.1, absolute=100)


def counting(path, repeats):
    """Farthing alone on the question of the peers, to hold against peers that need an environment of their own."""
    if importlib.util.find_spec("farthing") is None:
        return {"skipped": "farthing is not installed"}
    counted(path, None)
    return {
        f"{unit or 'row'}_s": statistics.median(timed(lambda u=unit: counted(path, u)) for _ in range(repeats))
        for unit in (None, "rider")
    }


def opendp_peer(path, repeats):
    """OpenDP's Polars context on the same group-by with public keys, and `Session.count`: rows and riders as units."""
    if importlib.util.find_spec("opendp") is None or importlib.util.find_spec("polars") is None:
        return {
            "skipped": "opendp[polars] is not installed; it pins a Polars of its own, so give it its own environment"
        }
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    listed = pl.LazyFrame({"zone": pl.Series(range(ZONES), dtype=pl.Int32)})

    def theirs(unit, rows):
        query = dp.Context.compositor(
            data=pl.scan_parquet(path),
            privacy_unit=unit,
            privacy_loss=dp.loss_of(rho=0.5),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=200_000_000)],
        ).query()
        query = query if rows is None else query.truncate_per_group(rows)
        query.group_by("zone").agg(dp.len()).with_keys(listed).release().collect()

    found = {}
    for name, unit, rows in (("row", None, None), ("rider", "rider", 100)):
        theirs_unit = dp.unit_of(contributions=1, **({} if unit is None else {"identifier": pl.col(unit)}))
        try:
            theirs(theirs_unit, rows)
        except Exception as error:  # noqa: BLE001  a peer that cannot run is reported, never an error of ours
            return {"skipped": f"{type(error).__name__}: {error}"[:160]}
        counted(path, unit)
        peer = statistics.median(timed(lambda u=theirs_unit, r=rows: theirs(u, r)) for _ in range(repeats))
        mine = statistics.median(timed(lambda u=unit: counted(path, u)) for _ in range(repeats))
        found |= {f"{name}_peer_s": peer, f"{name}_ours_s": mine, f"{name}_ratio": peer / mine}
    return found


def tumult_peer(path, repeats):
    """Tumult Analytics: a noisy count by zone, at most 5 zones a rider and 20 rows in each."""
    if importlib.util.find_spec("tmlt") is None:
        return {"skipped": "tmlt.analytics is not installed"}
    from pyspark.sql import SparkSession
    from tmlt import analytics as tumult

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    frame = spark.read.parquet(str(path))
    keys = tumult.KeySet.from_dict({"zone": list(range(ZONES))})

    def ours():
        session = tumult.Session.from_dataframe(
            privacy_budget=tumult.RhoZCDPBudget(0.5),
            source_id="rides",
            dataframe=frame,
            protected_change=tumult.AddRowsWithID("rider"),
        )
        bounded = tumult.QueryBuilder("rides").enforce(tumult.MaxGroupsPerID("zone", 5))
        bounded = bounded.enforce(tumult.MaxRowsPerGroupPerID("zone", 20))
        session.evaluate(bounded.groupby(keys).count(), tumult.RhoZCDPBudget(0.5)).collect()

    ours()
    return {"peer_s": statistics.median(timed(ours) for _ in range(repeats))}


def main() -> None:
    """Run, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", type=float, default=1e7, help="rows: 1e7 or 1e8")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, default=None, help="folder for the generated tables")
    parser.add_argument("--only", nargs="+", default=(), help="names of aggregates")
    parser.add_argument("--arrow", action="store_true", help="an Arrow table in place of the file")
    parser.add_argument("--grid", action="store_true", help="only what rounding alone costs the exact query")
    parser.add_argument("--peers", action="store_true", help="also OpenDP and Tumult, where installed")
    parser.add_argument("--peers-only", action="store_true", help="nothing but these, in an environment of their own")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    path = rides(int(options.at), options.data)
    results = {}
    if options.grid:
        measured = (parts if options.arrow else grid)(path, options.repeats)
        for name, seconds in measured.items():
            print(f"{name:<40} {seconds:>8.3f} s")
        return
    if not options.peers_only:
        print(f"{'':<26} {'exact s':>9} {'ours s':>9} {'ratio':>7} {'processor':>10} {'limit':>6}")
        limit = 1.3 if options.arrow else 1.15 if options.at > 5e7 else 1.5
        results = aggregates(path, options.repeats, limit, options.only, arrow=options.arrow)
        results["plan"] = planning(path)
    if options.peers or options.peers_only:
        results["farthing"] = counting(path, options.repeats)
        results["OpenDP"] = opendp_peer(path, options.repeats)
        results["Tumult"] = tumult_peer(path, options.repeats)
    for name in ("plan", "farthing", "OpenDP", "Tumult"):
        if name in results:
            print(name, json.dumps(results[name]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
