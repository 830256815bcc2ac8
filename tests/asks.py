"""One ask of every kind about a table of large groups, for tests of what a measurement leaves behind."""

import numpy as np
import pyarrow as pa

from farthing import Bounds, Budget, Gdp, Session
from farthing.workloads import marginals, prefixes

SIZES = (73_913, 4_021, 917, 311, 20_717, 1_303)
NAMES = [f"zone{place}" for place in range(len(SIZES))]
TABLE = pa.table({
    "u": np.arange(sum(SIZES)),
    "g": np.repeat(np.array(NAMES), SIZES),
    "x": np.arange(sum(SIZES)) % 1009 / 1009,
})  # fmt: skip
BY = {"by": "g", "keys": {"g": NAMES}}
ASKS = {
    "count": lambda s, **how: s.count(**BY, relative=0.05, absolute=30, **how),
    "count of a share": lambda s, **how: s.count(**BY, relative=0.05, absolute=30, share=0.5, **how),
    "sum": lambda s, **how: s.sum("x", lower=0, upper=1, **BY, absolute=30, **how),
    "mean": lambda s, **how: s.mean("x", lower=0, upper=1, **BY, absolute=0.1, **how),
    "variance": lambda s, **how: s.variance("x", lower=0, upper=1, **BY, absolute=0.2, **how),
    "correlation": lambda s, **how: s.correlation("x", "1 - x", **BY, absolute=0.4, **how),
    "quantile": lambda s, **how: s.quantile("x", 0.5, lower=0, upper=1, **BY, rank=0.1, **how),
    "quartiles": lambda s, **how: s.quantile("x", (0.25, 0.5, 0.75), lower=0, upper=1, **BY, rank=0.2, **how),
    "several": lambda s, **how: s.sql("SELECT g, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY g", keys=BY["keys"],
                                      bounds=Bounds(1, 1, 0, 1), absolute={"n": 50, "m": 0.1}, **how),
    "shares": lambda s, **how: s.sql("SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM data GROUP BY g",
                                     keys=BY["keys"], absolute=0.02, **how),
    "running totals": lambda s, **how: s.sql("SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS n FROM data GROUP BY g",
                                             keys=BY["keys"], relative=0.05, absolute=30, **how),
    "mechanism": lambda s, **how: s.count(**BY, relative=0.2, absolute=30, mechanism="asinh", cap="all", **how),
}  # fmt: skip
SILENT = {
    "workload": lambda s: s.workload([BY, BY | {"where": "x > 0.5"}], absolute=50),
    "largest": lambda s: s.workload([BY, BY | {"where": "x > 0.5"}], relative=0.2, strategy="largest"),
    "ranking": lambda s: s.ranking("g", k=2, keys=BY["keys"], cap="all"),
    "top_k": lambda s: s.top_k("g", k=2, keys=BY["keys"], epsilon=0.1),
    "unlisted top_k": lambda s: s.top_k("g", k=2, keys="private", epsilon=0.1),
    "search": lambda s: s.count("g", keys="private", found_above=50, absolute=50, cap="all"),
    "release": lambda s: s.release(marginals(["g"], ways=1), keys=BY["keys"], absolute=50, cap="all"),
    "relative release": lambda s: s.release(
        marginals(["g"], ways=1), keys=BY["keys"], relative=0.1, absolute=50, cap="all"
    ),
    "release of products": lambda s: s.release(prefixes("x", [0, 0.1, 0.3, 0.6, 1]), absolute=50, cap="all"),
    **{
        f"release by {name}": lambda s, name=name: s.release(
            marginals(["g"], ways=1), keys=BY["keys"], loss=Gdp(0.5), mechanism=name
        )
        for name in ("tree", "adaptive", "mwem", "projection", "small database")
    },
    "release of products by a model": lambda s: s.release(
        prefixes("x", [0, 0.1, 0.3, 0.6, 1]), loss=Gdp(0.5), mechanism="projection"
    ),
    "online": lambda s: s.online(keys=BY["keys"], absolute=50_000, queries=9, rows=110_000).ask(g=NAMES[:1]),
    "best_of": lambda s: s.best_of(lambda: (1, "a"), loss=Gdp(0.01), runs=9),
    "bounds_report": lambda s: s.bounds_report("x", **BY, loss=Gdp(0.1)),
}
PURE = (
    "count",
    "sum",
    "mean",
    "variance",
    "correlation",
    "quantile",
    "quartiles",
    "several",
    "shares",
    "running totals",
)


def opened_session(*, pure=False):
    """Open the table with a large budget, of either kind."""
    budget = Budget(epsilon=40) if pure else Budget(mu=10, delta=1e-3, keys_delta=1e-4)
    return Session(TABLE, unit="u", budget=budget, bounds=Bounds(1, 1, 0, 1), name="data")
