"""A real Spark for the tests: local[2] once a process, or a standalone cluster of one master and two workers.

Where none can be had, tests skip and say why; with FARTHING_REQUIRE_SPARK=1 (as in the gate) they fail instead.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "Europe/Berlin",  # a zone with gaps: nothing may depend on it
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small questions: compile quickly
}


def spark_session():
    """Return the session of this process, or skip loudly."""
    try:
        return _session()
    except (ImportError, OSError, RuntimeError, LookupError) as why:
        unavailable(why)


def unavailable(why):
    """Skip, or fail where Spark is required."""
    reason = f"NOT TESTED ON SPARK: {why}; install pyspark and a Java runtime (17 or later)"
    if os.environ.get("FARTHING_REQUIRE_SPARK"):
        pytest.fail(reason)
    pytest.skip(reason)


@lru_cache(maxsize=1)
def _session():
    """Start Spark, once a process."""
    if shutil.which("java") is None:
        raise LookupError("no Java is installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("farthing-tests")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        folder = tempfile.mkdtemp(prefix="farthing-spark-")
        session = builder.config("spark.local.dir", folder).config("spark.sql.warehouse.dir", folder).getOrCreate()
    owner = os.getpid()

    def stop():
        if os.getpid() == owner:
            session.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return session


@contextmanager
def cluster():
    """Give the URL of a standalone cluster on the loopback: one master, two workers of one core each."""
    if shutil.which("java") is None:
        unavailable("no Java is installed")
    try:
        import pyspark
    except ImportError as why:
        unavailable(why)
    folder = Path(tempfile.mkdtemp(prefix="farthing-cluster-"))
    port, page = _port(), _port()
    runner = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_HOME": str(runner.parents[1]), "SPARK_LOCAL_IP": "127.0.0.1",
                   "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    started = []

    def start(name, *arguments):
        command = [str(runner), f"org.apache.spark.deploy.{name}", *arguments]
        with (folder / f"{name}-{len(started)}.log").open("w") as log:
            started.append(subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log))

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
        url = f"spark://127.0.0.1:{port}"
        for number in (1, 2):
            start("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "512m",
                  "--webui-port", "0", "--work-dir", str(folder / f"work{number}"), url)  # fmt: skip
        _wait_for_workers(page)
        yield url
    finally:
        for process in started:  # only those started here
            process.terminate()
        for process in started:
            process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_workers(page):
    """Wait until the master tells of two workers."""
    import json

    until = time.monotonic() + 90
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:  # our own
                if json.load(answer)["aliveworkers"] == 2:
                    return
        except (OSError, ValueError):
            pass
        time.sleep(0.5)
    raise RuntimeError("the workers did not come up")


def _port():
    """Return a free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
