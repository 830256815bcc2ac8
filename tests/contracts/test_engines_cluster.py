"""The same question, and the how-to's script, on a standalone cluster: one master, two workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_servers import cluster

from farthing.engines import open_table
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query
from farthing.query.aggregates import Count, CountUnits, NamedAggregate, Sum
from farthing.query.expressions import Column

ROOT = Path(__file__).parents[2]
ASK = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from test_engines_cluster import question
from farthing.engines import open_table

master, path = sys.argv[1:]
spark = (
    SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "512m").getOrCreate()
)
engine = open_table(spark.read.parquet(path), name="rides")
answer = engine.measure(question(engine), 3)
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is listed too
print("answer", executors, answer.tolist())
spark.stop()
"""


def question(engine):
    """Return a question that cuts rows but no groups, so that every engine has one answer."""
    outputs = (
        NamedAggregate("n", Count()),
        NamedAggregate("units", CountUnits()),
        NamedAggregate("fares", Sum(Column("fare"), 0.0, 50.0)),
    )
    keys = Keys.of(("zone",), {"zone": range(8)}, engine.schema)
    return Query("rides", ("zone",), keys, None, outputs, PrivacyUnit("rider"), Bounds(8, 2))


def run(folder, *command):
    """Run Python in a folder; return the lines that it prints."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", ROOT / "tests" / "contracts")))
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    return done.stdout.strip().splitlines()


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_two_workers_give_the_embedded_engines_answer(tmp_path):
    """Questions run on both workers, and give what the embedded engine gives; the how-to prints what it says."""
    bits, data = np.random.default_rng(5), tmp_path / "data"
    data.mkdir()
    riders, zones = (bits.integers(0, most, 5000) for most in (400, 9))
    table = pa.table({"rider": riders, "zone": zones, "fare": bits.normal(20, 9, 5000)})
    for part in range(4):
        pq.write_table(table.slice(part * 1250, 1250), data / f"{part}.parquet")
    engine = open_table(table, name="rides")
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "how-to" / "spark.md").read_text(), re.DOTALL)
    script, printed = (next(block for block in blocks if block.startswith(word)) for word in ("import sys", "centre"))
    (tmp_path / "rides.py").write_text(script)
    shutil.copy(ROOT / "docs" / "examples" / "rides.csv", tmp_path)
    with cluster() as master:
        answer = run(tmp_path, "-c", ASK, master, str(data))[-1]
        shown = run(tmp_path, "rides.py", master)

    assert f"answer 2 {engine.measure(question(engine), 3).tolist()}" == answer
    assert printed.splitlines() == shown == run(tmp_path, "rides.py")
