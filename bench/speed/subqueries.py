"""TPC-H with the customer as privacy unit: which of the 22 questions are answered, at what time and error.

    python bench/speed/subqueries.py --data DIR        # DIR has the eight tables as Parquet: customer.parquet, ...
    python bench/speed/subqueries.py --make DIR        # makes them first, by DuckDB's extension tpch, scale 0.1, which
                                                       # pip installs into an environment of its own
    python bench/speed/subqueries.py --data DIR --json out.json

The tables of people are customer, orders and lineitem, each with the customer's number as custkey; part, supplier,
partsupp, nation and region are public. An answered question says the same as the original: joins are written with ON,
EXISTS within an order as groups of that order, values have clamps, groups have keys that are public. Beside each answer
stands the original on the same DuckDB: its time, and the median distance of the groups' numbers from it, at a loss of
mu 1 a question.
"""

# ruff: noqa: E501  questions are easier to read beside the originals in long lines

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PUBLIC = ("part", "supplier", "partsupp", "nation", "region")
OWNED = {
    "customer": "SELECT * RENAME (c_custkey AS custkey) FROM '{}/customer.parquet'",
    "orders": "SELECT * RENAME (o_custkey AS custkey) FROM '{}/orders.parquet'",
    "lineitem": "SELECT l.*, o_custkey AS custkey FROM '{0}/lineitem.parquet' l JOIN '{0}/orders.parquet' "
    "ON l_orderkey = o_orderkey",
}
NATIONS = ["FRANCE", "GERMANY"]
YEARS = list(range(1992, 1999))
VOLUME = "l_extendedprice * (1 - l_discount)"
CLAMPED = f"CLAMP({VOLUME}, 0, 100000)"
ORDERS = "JOIN orders ON lineitem.custkey = orders.custkey AND l_orderkey = o_orderkey"
CUSTOMERS = "JOIN customer ON lineitem.custkey = customer.custkey"
SUPPLIED = "JOIN supplier ON l_suppkey = s_suppkey"
LATE = "l_receiptdate > l_commitdate"

PARTS = (
    "l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' AND ("
    "(p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity BETWEEN 1 AND 11 AND "
    "p_size BETWEEN 1 AND 5) OR "
    "(p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') AND l_quantity BETWEEN 10 AND 20 "
    "AND p_size BETWEEN 1 AND 10) OR "
    "(p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') AND l_quantity BETWEEN 20 AND 30 AND "
    "p_size BETWEEN 1 AND 15))"
)


@dataclass(frozen=True)
class Asked:
    """A question in its answered form.

    Attributes:
        text: our SQL; its last column is compared.
        exact: the original's SQL, group columns first and the compared number last.
        keys: the public groups; for a text, of a public table.
        most: the most groups and rows in each.
        table: the protected table that it is asked of.
        note: how it differs.
    """

    text: str
    exact: str
    keys: dict[str, Any] = field(default_factory=dict)
    most: tuple[int, int] = (1, 1)
    table: str = "lineitem"
    note: str = ""


EXACT = "FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
ANSWERED = {
    1: Asked(
        "SELECT l_returnflag, l_linestatus, SUM(CLAMP(l_quantity, 0, 50)) AS sum_qty, SUM(CLAMP(l_extendedprice, 0, 100000)) AS "
        f"sum_base_price, SUM({CLAMPED}) AS sum_disc_price, SUM(CLAMP({VOLUME} * (1 + l_tax), 0, 110000)) AS sum_charge, "
        "AVG(CLAMP(l_quantity, 0, 50)) AS avg_qty, AVG(CLAMP(l_extendedprice, 0, 100000)) AS avg_price, AVG(CLAMP(l_discount, 0, "
        "0.1)) AS avg_disc, COUNT(*) AS count_order FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2",
        "SELECT l_returnflag, l_linestatus, count(*) FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL",
        {"l_returnflag": ["A", "N", "R"], "l_linestatus": ["F", "O"]},
        (4, 80),
    ),
    4: Asked(
        f"SELECT o_orderpriority, COUNT(*) AS n FROM (SELECT lineitem.custkey, l_orderkey, o_orderpriority FROM lineitem "
        f"{ORDERS} WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND l_commitdate < "
        "l_receiptdate GROUP BY ALL) GROUP BY 1",
        "SELECT o_orderpriority, count(*) FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE "
        "'1993-10-01' AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) "
        "GROUP BY ALL",
        {"o_orderpriority": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]},
        (3, 2),
        note="EXISTS as groups of an order, which is of one customer",
    ),
    5: Asked(
        f"SELECT n_name, SUM({CLAMPED}) AS revenue FROM lineitem {ORDERS} {CUSTOMERS} {SUPPLIED} AND c_nationkey = "
        "s_nationkey JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA' "
        "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY 1",
        f"SELECT n_name, sum({VOLUME}) {EXACT} JOIN customer ON customer.custkey = orders.custkey {SUPPLIED} AND "
        "c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey WHERE "
        "r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY ALL",
        {"n_name": ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"]},
        (1, 4),
    ),
    6: Asked(
        "SELECT SUM(CLAMP(l_extendedprice * l_discount, 0, 10000)) AS revenue FROM lineitem WHERE l_shipdate >= DATE "
        "'1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE "
        "'1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        most=(1, 5),
    ),
    7: Asked(
        f"SELECT nation.n_name AS supp, nation2.n_name AS cust, EXTRACT(year FROM l_shipdate) AS y, SUM({CLAMPED}) AS revenue "
        f"FROM lineitem {CUSTOMERS} {SUPPLIED} JOIN nation ON s_nationkey = nation.n_nationkey JOIN nation2 ON c_nationkey = "
        "nation2.n_nationkey WHERE nation.n_name <> nation2.n_name AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE "
        "'1996-12-31' GROUP BY ALL",
        f"SELECT a.n_name, b.n_name, year(l_shipdate), sum({VOLUME}) {EXACT} JOIN customer ON customer.custkey = "
        f"orders.custkey {SUPPLIED} JOIN nation a ON s_nationkey = a.n_nationkey JOIN nation b ON c_nationkey = b.n_nationkey "
        "WHERE a.n_name <> b.n_name AND a.n_name IN ('FRANCE', 'GERMANY') AND b.n_name IN ('FRANCE', 'GERMANY') AND "
        "l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' GROUP BY ALL",
        {"supp": NATIONS, "cust": NATIONS, "y": [1995, 1996]},
        (2, 4),
        note="the second role of nation is declared as nation2",
    ),
    8: Asked(
        f"SELECT EXTRACT(year FROM o_orderdate) AS y, SUM(CASE WHEN nation2.n_name = 'BRAZIL' THEN {CLAMPED} ELSE 0 END) / "
        f"SUM({CLAMPED}) AS share FROM lineitem {ORDERS} {CUSTOMERS} {SUPPLIED} JOIN part ON p_partkey = l_partkey JOIN nation "
        "ON c_nationkey = nation.n_nationkey JOIN region ON nation.n_regionkey = r_regionkey JOIN nation2 ON s_nationkey = "
        "nation2.n_nationkey WHERE r_name = 'AMERICA' AND p_type = 'ECONOMY ANODIZED STEEL' AND o_orderdate BETWEEN DATE '1995-01-01' AND "
        "DATE '1996-12-31' GROUP BY 1",
        f"SELECT year(o_orderdate), sum(CASE WHEN b.n_name = 'BRAZIL' THEN {VOLUME} ELSE 0 END) / sum({VOLUME}) {EXACT} JOIN "
        f"customer ON customer.custkey = orders.custkey {SUPPLIED} JOIN part ON p_partkey = l_partkey JOIN nation a ON "
        "c_nationkey = a.n_nationkey JOIN region ON a.n_regionkey = r_regionkey JOIN nation b ON s_nationkey = b.n_nationkey "
        "WHERE r_name = 'AMERICA' AND p_type = 'ECONOMY ANODIZED STEEL' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' "
        "GROUP BY ALL",
        {"y": [1995, 1996]},
        (2, 2),
        note="few rows at this scale",
    ),
    9: Asked(
        "SELECT n_name, EXTRACT(year FROM o_orderdate) AS y, SUM(CLAMP(l_extendedprice * (1 - l_discount) - ps_supplycost * "
        f"l_quantity, -50000, 100000)) AS profit FROM lineitem {ORDERS} {SUPPLIED} JOIN part ON p_partkey = l_partkey JOIN "
        "partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey JOIN nation ON s_nationkey = n_nationkey WHERE p_name "
        "LIKE '%green%' GROUP BY 1, 2",
        "SELECT n_name, year(o_orderdate), sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) "
        f"{EXACT} {SUPPLIED} JOIN part ON p_partkey = l_partkey JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = "
        "l_partkey JOIN nation ON s_nationkey = n_nationkey WHERE p_name LIKE '%green%' GROUP BY ALL",
        {"n_name": "nation.n_name", "y": YEARS},
        (8, 2),
    ),
    12: Asked(
        "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN "
        f"o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low FROM lineitem {ORDERS} WHERE l_commitdate < "
        "l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE "
        "'1995-01-01' GROUP BY 1",
        f"SELECT l_shipmode, count(*) FILTER (o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) {EXACT} WHERE l_shipmode IN "
        "('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE "
        "'1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY ALL",
        {"l_shipmode": ["MAIL", "SHIP"]},
        (2, 3),
    ),
    13: Asked(
        "SELECT c_count, COUNT(*) AS custdist FROM (SELECT customer.custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT "
        "JOIN orders ON customer.custkey = orders.custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY "
        "customer.custkey) GROUP BY c_count",
        "SELECT c_count, count(*) FROM (SELECT customer.custkey, count(o_orderkey) AS c_count FROM customer LEFT JOIN orders "
        "ON customer.custkey = orders.custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY 1) WHERE c_count <= 40 "
        "GROUP BY ALL",
        {"c_count": list(range(41))},
        table="customer",
    ),
    14: Asked(
        f"SELECT 100.0 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN {CLAMPED} ELSE 0 END) / SUM({CLAMPED}) AS promo FROM lineitem "
        "JOIN part ON l_partkey = p_partkey WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
        f"SELECT 100.0 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {VOLUME} ELSE 0 END) / sum({VOLUME}) FROM lineitem JOIN part ON "
        "l_partkey = p_partkey WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
        most=(1, 8),
    ),
    15: Asked(
        f"SELECT l_suppkey, SUM({CLAMPED}) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE "
        "'1996-04-01' GROUP BY l_suppkey ORDER BY revenue DESC LIMIT 1",
        f"SELECT l_suppkey, sum({VOLUME}) AS r FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE "
        "'1996-04-01' GROUP BY ALL",
        {"l_suppkey": "supplier.s_suppkey"},
        (8, 1),
        note="name and address are public; a customer counts with 8 suppliers, and the first is as good as many others at this scale",
    ),
    19: Asked(
        f"SELECT SUM({CLAMPED}) AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey WHERE {PARTS}",
        f"SELECT sum({VOLUME}) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE {PARTS}",
        note="few rows at this scale",
    ),
    21: Asked(
        f"SELECT s_name, SUM(CLAMP(late, 0, 7)) AS numwait FROM (SELECT lineitem.custkey, l_orderkey, MIN(l_suppkey) FILTER "
        f"(WHERE {LATE}) AS who, COUNT(*) FILTER (WHERE {LATE}) AS late FROM lineitem {ORDERS} WHERE o_orderstatus = 'F' GROUP "
        f"BY ALL HAVING COUNT(DISTINCT l_suppkey) > 1 AND COUNT(DISTINCT l_suppkey) FILTER (WHERE {LATE}) = 1) v JOIN supplier "
        "ON who = s_suppkey JOIN nation ON s_nationkey = n_nationkey WHERE n_name = 'SAUDI ARABIA' GROUP BY s_name",
        "SELECT s_name, count(*) FROM supplier JOIN lineitem l1 ON s_suppkey = l1.l_suppkey JOIN orders ON o_orderkey = "
        "l1.l_orderkey JOIN nation ON s_nationkey = n_nationkey WHERE o_orderstatus = 'F' AND l1.l_receiptdate > "
        "l1.l_commitdate AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> "
        "l1.l_suppkey) AND NOT EXISTS (SELECT 1 FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> "
        "l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate) AND n_name = 'SAUDI ARABIA' GROUP BY ALL",
        {"s_name": "supplier.s_name"},
        (2, 1),
        note="EXISTS and NOT EXISTS as counts within an order; a supplier has ten of them at this scale",
    ),
    22: Asked(
        "SELECT SUBSTRING(c_phone, 1, 2) AS code, COUNT(*) AS n, SUM(CLAMP(c_acctbal, 0, 10000)) AS total FROM customer LEFT JOIN "
        "orders ON customer.custkey = orders.custkey WHERE c_acctbal > 5000 AND o_orderkey IS NULL GROUP BY 1",
        "SELECT substring(c_phone, 1, 2), sum(c_acctbal) FROM customer WHERE c_acctbal > 5000 AND NOT EXISTS (SELECT 1 FROM "
        "orders WHERE orders.custkey = customer.custkey) AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', "
        "'17') GROUP BY ALL",
        {"code": ["13", "31", "23", "29", "30", "18", "17"]},
        (1, 1),
        table="customer",
        note="the average balance is a question of its own, asked first",
    ),
}
REFUSED = {
    2: "reads public tables alone: ask them exactly",
    3: "shows single orders: groups by an order's number",
    10: "shows single customers, with address and phone",
    11: "reads public tables alone: ask them exactly",
    16: "reads public tables alone: ask them exactly",
    17: "compares a row with the mean of other customers' rows of that part: mixes units",
    18: "shows single orders and customers",
    20: "compares a public row with a sum over customers: groups of parts and suppliers that few customers are in",
}


DBGEN = """
import sys
from pathlib import Path
import duckdb, duckdb_extension_tpch
folder, scale, *tables = sys.argv[1:]
found = sorted(Path(duckdb_extension_tpch.__path__[0]).glob("extensions/*/tpch.duckdb_extension"))
with duckdb.connect() as connection:
    connection.execute(f"LOAD '{found[-1]}'")
    connection.execute(f"CALL dbgen(sf={scale})")
    for table in tables:
        connection.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
"""
RELEASE = "1.5.5"
"""The last DuckDB for which its extension tpch comes as a package."""


def make(folder: Path, scale: float = 0.1) -> None:
    """Write the eight tables, by DuckDB's extension, in an environment of their own: it may be an older DuckDB's."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = str(Path(place) / ("Scripts" if os.name == "nt" else "bin") / "python")
        packages = [f"{name}=={RELEASE}" for name in ("duckdb", "duckdb-extension-tpch")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        told = [str(folder), str(scale), *PUBLIC, *OWNED]
        subprocess.run([python, "-c", DBGEN, *told], check=True, env=alone)


def frames(folder: Path) -> dict[str, Any]:
    """Return every table as Arrow, those of people with the unit column."""
    import duckdb

    with duckdb.connect() as connection:
        found = {name: connection.sql(sql.format(folder)).to_arrow_table() for name, sql in OWNED.items()}
        for name in PUBLIC:
            found[name] = connection.sql(f"FROM '{folder / name}.parquet'").to_arrow_table()
    return found


def session(tables: dict[str, Any], table: str) -> Any:
    """Return a session of one of the people's tables, with all others beside it."""
    import farthing

    public = {name: tables[name] for name in PUBLIC} | {"nation2": tables["nation"]}
    others = {name: tables[name] for name in OWNED if name != table}
    budget = farthing.Budget(epsilon=1e5, delta=1e-6)
    return farthing.Session(tables[table], name=table, budget=budget, unit="custkey", public=public, protected=others)


def measured(number: int, asked: Asked, opened: Any, exact: Any) -> dict[str, Any]:
    """Return time and error of one question beside the original."""
    import farthing

    loss = farthing.Gdp(1)
    rows = exact.execute(asked.exact).fetchall()
    began = time.perf_counter()
    exact.execute(asked.exact).fetchall()
    alone = time.perf_counter() - began
    bounds = farthing.Bounds(max_groups=asked.most[0], max_rows=asked.most[1])
    began = time.perf_counter()
    answer = opened.sql(asked.text, keys=asked.keys or None, bounds=bounds, loss=loss)
    took = time.perf_counter() - began
    table = answer.to_arrow() if asked.keys else None
    if table is None:
        pairs = [(rows[0][-1], answer.value)]
    else:
        groups = len(asked.keys)
        columns = [table.column(place).to_pylist() for place in range(groups)]
        value = table.column(re.findall(r" AS (\w+) FROM (?:lineitem|customer|\()", asked.text)[0]).to_pylist()
        found = {tuple(map(str, key)): one for key, one in zip(zip(*columns, strict=True), value, strict=True)}
        pairs = [(row[-1], found[key]) for row in rows if (key := tuple(map(str, row[:-1]))) in found]
    errors = [
        abs(float(ours) - float(truth)) / max(abs(float(truth)), 1e-9) for truth, ours in pairs if ours is not None
    ]
    return {
        "question": number,
        "answered": True,
        "groups": len(pairs),
        "error": statistics.median(errors),
        "seconds": took,
        "over_exact": took / alone,
        "note": asked.note,
    }


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--make", type=Path)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.make:
        make(options.make)
    import duckdb

    tables, exact = frames(options.data or options.make), duckdb.connect()
    for name, table in tables.items():
        exact.register(name, table)
    opened, told = {table: session(tables, table) for table in ("lineitem", "customer")}, list[dict[str, Any]]()
    for number in range(1, 23):
        if options.only and number not in options.only:
            continue
        if number in REFUSED:
            told.append({"question": number, "answered": False, "note": REFUSED[number]})
            print(f"{number:>3}  refused   {REFUSED[number]}")
            continue
        one = measured(number, ANSWERED[number], opened[ANSWERED[number].table], exact)
        told.append(one)
        print(
            f"{number:>3}  answered  {one['groups']:>4} groups  error {one['error']:7.2%}  {one['seconds']:6.2f} s  "
            f"{one['over_exact']:6.1f}x  {one['note']}"
        )
    print(f"{sum(one['answered'] for one in told)} of {len(told)} answered")
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
