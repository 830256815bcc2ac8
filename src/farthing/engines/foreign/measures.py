"""Questions as ibis expressions: one each, every measure side by side, contributions cut last.

A *cell* is what one unit has in one group. Cells are computed first, each cut to the bound on rows; then a keyed hash
chooses the groups that a unit keeps; then they are added. Rows that are units themselves have nothing to cut and are
added at once.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.foreign.cells import IbisCells, bucket, leaf, log2, on_grid, present
from farthing.engines.foreign.keys import KEYS, met, numbered, with_places
from farthing.engines.foreign.rows import IbisCatalog, IbisRows
from farthing.engines.foreign.terms import null, real, whole
from farthing.query.measures import Distinct, Total, Units
from farthing.query.measures import Rows as Counted
from farthing.query.ranges import FINE_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.engine import Shares
    from farthing.engines.foreign.backend import Backend
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.measures import Measure


def measuring(query: BoundedQuery, catalog: IbisCatalog, backend: Backend, hash_key: int) -> Any:
    """Return the table of (i, m0, m1, ...): the group's place in the key list and its bounded measures."""
    rows = IbisRows(query, catalog, backend, hash_key)
    keys = rows.groups()
    names = {f"m{place}": measure for place, measure in enumerate(query.measures)}
    if query.unit.is_row:
        sums = {name: _of_rows(query, rows, measure) for name, measure in names.items()}
        return _listed(query, rows, keys, sums)
    if isinstance(query.measures[0], Distinct):
        return _told_apart(query, query.measures[0], rows, hash_key)
    cells = IbisCells(query, rows)
    added = {name: measure for name, measure in names.items() if not isinstance(measure, Distinct)}
    cuts = {name: _cut(query, rows, cells, measure) for name, measure in added.items()}
    kept = _chosen(query, backend, cells.table(keys, listed=True), hash_key)
    parts = {f"{name}_{part}": one for name, build in cuts.items() for part, one in enumerate(build(kept))}
    cut = kept.select("i", **parts)
    return cut.group_by("i").agg(**{name: _rounded(backend, _parts(cut, name)) for name in cuts})


def _told_apart(query: BoundedQuery, measure: Distinct, rows: IbisRows, hash_key: int) -> Any:
    """Return the table of (i, m0): the different values of each group, of each unit those that a hash puts first.

    Guarantee: one unit adds at most `measure.sensitivity(query.max_rows)` to one group.
    Proof: docs/proofs/engines.bounded.md, "Different values".
    Assumes: a hash that is a function of its arguments.
    Rounds: nothing.
    """
    import ibis

    keys, cells, backend = rows.groups(), IbisCells(query, rows), rows.backend
    name = cells.value(rows.scalars.group(measure.value).expr)
    kept = _chosen(query, backend, cells.table([*keys, name], listed=True), hash_key, dense=True)
    there = _numbers(kept.filter(~backend.is_null(kept[name])), [name], backend)
    there = there.select("u", "i", v=there[name])
    ranked = there.mutate(h=backend.hash(there.u, [there.i, there.v], hash_key))
    window = ibis.window(group_by=[ranked.u, ranked.i], order_by=[ranked.h, ranked.v])
    few = ranked.mutate(r=ibis.row_number().over(window))
    few = few.filter(few.r < query.max_rows)
    return few.group_by("i").agg(m0=backend.different(few.v))


def histogram(query: BoundedQuery, quantile: Quantile, catalog: IbisCatalog, backend: Backend, hash_key: int) -> Any:
    """Return the table of (i, leaf, n): the bounded rows of each group and leaf."""
    import ibis

    rows = IbisRows(query, catalog, backend, hash_key)
    keys = rows.groups()
    if query.unit.is_row:
        place = rows.show(leaf(rows, quantile), "v")
        found = _listed(query, rows, keys, {"n": lambda table: table.count()}, also=place)
        return found.filter(found[place].notnull()).select("i", leaf=found[place], n=found.n)
    cells = IbisCells(query, rows)
    place = cells.value(leaf(rows, quantile))
    table = cells.table([*keys, place], listed=True)
    kept = _chosen(query, backend, table, hash_key, dense=True)
    kept = kept.filter(kept[place].notnull()).select("u", "i", leaf=kept[place], c=kept[cells.found])
    # A hash chooses which rows of a unit count beyond max_rows; rows of one leaf are all alike.
    ranked = kept.mutate(h=backend.hash(kept.u, [kept.i, kept.leaf], hash_key))
    window = ibis.cumulative_window(group_by=[ranked.u, ranked.i], order_by=[ranked.h, ranked.leaf])
    added = ranked.mutate(s=ranked.c.sum().over(window).cast("int64"))
    cut = added.select("i", "leaf", c=ibis.least(added.c, whole(query.max_rows) - (added.s - added.c)))
    cut = cut.filter(cut.c > 0)
    return cut.group_by("i", "leaf").agg(n=_sum(cut.c))


def found(query: BoundedQuery, catalog: IbisCatalog, backend: Backend, hash_key: int, shares: Shares = ()) -> Any:
    """Return the table of (k0, k1, ..., n): the groups that exist, and their units that count. NaN is not a key."""
    import ibis

    rows = IbisRows(query, catalog, backend, hash_key)
    keys = rows.groups()
    named = {f"k{place}": key for place, key in enumerate(keys)}
    if query.unit.is_row and not shares:
        number = rows.number() if query.joins else ""
        table = _numbers(rows.table(), keys, backend)
        units = backend.different(table[number]) if number else table.count()
        return table.group_by(keys).agg(n=units).select("n", **{name: ibis._[key] for name, key in named.items()})
    cells = _numbers(IbisCells(query, rows).table(keys, listed=False), keys, backend)
    cells = cells.select("u", **{name: cells[key] for name, key in named.items()})
    if query.max_groups is None:  # a row that is a unit keeps all its groups
        return _shared(cells, list(named), shares)
    # NULL leaves some hashes as they were, so that a flag tells it apart
    flags = [ibis.ifelse(backend.is_null(cells[name]), whole(1), whole(0)) for name in named]
    ranked = cells.mutate(h=backend.hash(cells.u, [*(cells[name] for name in named), *flags], hash_key))
    window = ibis.window(group_by=ranked.u, order_by=[ranked.h, *(ranked[name] for name in named)])
    ranked = ranked.mutate(r=ibis.row_number().over(window))
    return _shared(ranked.filter(ranked.r < query.max_groups), list(named), shares)


def _shared(kept: Any, names: list[str], shares: Shares) -> Any:
    """Return the table of (names, n): what units count by in the groups that they keep."""
    import ibis

    if not shares:
        return kept.group_by(names).agg(n=kept.count())
    kept = kept.mutate(many=kept.count().over(ibis.window(group_by=kept.u)))
    steps = [(kept.many <= whole(most), whole(share)) for most, share in shares[:-1]]
    kept = kept.mutate(c=ibis.cases(*steps, else_=whole(shares[-1][1])) if steps else whole(shares[-1][1]))
    return kept.group_by(names).agg(n=_sum(kept.c))


def crossed(query: BoundedQuery, crossing: Crossing, catalog: IbisCatalog, backend: Backend, hash_key: int) -> Any:
    """Return the table of (s, i, n): the bounded rows of each cell, by its set and its place in the set's counts."""
    import ibis

    rows = IbisRows(query, catalog, backend, hash_key)
    keys = rows.groups()
    names = [f"i{place}" for place in range(len(keys))]
    if query.unit.is_row:
        table, found = rows.table(), None
    else:
        cells = IbisCells(query, rows)
        table, found = cells.table(keys, listed=False), cells.found
    table = table.select(*keys, **({} if found is None else {"u": table.u, "c": table[found]}))
    for place, (key, values) in enumerate(zip(keys, crossing.lists, strict=True)):
        table = met(backend, table, [key], backend.beside(numbered(values), f"{KEYS}_{place}"), names[place])
    if query.max_groups is not None:
        ranked = table.mutate(h=backend.hash(table.u, [table[name] for name in names], hash_key))
        window = ibis.window(group_by=ranked.u, order_by=[ranked.h, *(ranked[name] for name in names)])
        ranked = ranked.mutate(r=ibis.row_number().over(window))
        table = ranked.filter(ranked.r < query.max_groups)
    cut = {} if found is None else {"c": ibis.least(table.c, whole(query.max_rows))}
    table = table.select(*names, **cut)
    joint = table.group_by(names).agg(n=table.count() if found is None else _sum(table.c))
    told = [_by_set(joint, crossing, number) for number in range(len(crossing.sets))]
    return reduce(lambda one, other: one.union(other), told)


def _by_set(joint: Any, crossing: Crossing, number: int) -> Any:
    """Return the rows of (s, i, n) of one set."""
    places = crossing.sets[number]
    steps = zip(places, crossing.strides(places), strict=True)
    cell = sum((joint[f"i{at}"].cast("int64") * whole(step) for at, step in steps), whole(0))
    told = joint.select(i=cell, n=joint.n)
    return told.group_by("i").agg(n=_sum(told.n)).select("i", "n", s=whole(number)).select("s", "i", "n")


def spreading(query: BoundedQuery, value: Scalar | None, catalog: IbisCatalog, backend: Backend, hash_key: int) -> Any:
    """Return the table of (which, place, n): units by place in each of the four histograms of `Spread`."""
    rows = IbisRows(query, catalog, backend, hash_key)
    keys = rows.groups()
    number = null("float64") if value is None else rows.scalars.number(value).expr
    listed = query.keys is not None or not query.by
    if query.unit.is_row and not query.joins:
        name = rows.show(number, "v")
        shown = None if value is None else rows.show(present(rows, value), "v")
        table = rows.table()
        table = with_places(query, backend, table, keys) if listed else _numbers(table, keys, backend)
        table = table if shown is None else table.filter(table[shown].notnull())
        each = table.select(g=whole(1), r=whole(1), low=table[name], high=table[name])
    else:
        cells = IbisCells(query, rows)
        name = cells.value(number)
        least, greatest = cells.column("min", name), cells.column("max", name)
        full = cells.found if value is None else cells.column("count", cells.value(present(rows, value)))
        table = cells.table(keys, listed=listed)
        table = table if listed else _numbers(table, keys, backend)
        each = table.group_by("u").agg(
            g=table.count(), r=table[full].max(), low=table[least].min(), high=table[greatest].max()
        )
        each = each if value is None else each.filter(each.r > 0)
    places = each.select(p0=log2(each.g), p1=log2(each.r), p2=bucket(each.low), p3=bucket(each.high))
    grouped = [places.group_by(place=places[f"p{which}"]).agg(n=places.count()) for which in range(4)]
    counted = [one.mutate(which=whole(which)) for which, one in enumerate(grouped)]
    every = reduce(lambda one, other: one.union(other), counted)
    return every.filter(every.place.notnull()).select("which", "place", "n")


def _chosen(query: BoundedQuery, backend: Backend, cells: Any, hash_key: int, *, dense: bool = False) -> Any:
    """Return the cells of the groups that a unit keeps."""
    import ibis

    if query.max_groups is None:
        return cells
    ranked = cells.mutate(h=backend.hash(cells.u, [cells.i], hash_key))
    rank = ibis.dense_rank() if dense else ibis.row_number()
    ranked = ranked.mutate(r=rank.over(ibis.window(group_by=ranked.u, order_by=[ranked.h, ranked.i])))
    return ranked.filter(ranked.r < query.max_groups).drop("h", "r")


def _numbers(table: Any, keys: Sequence[str], backend: Backend) -> Any:
    """Return the rows whose keys are not NaN."""
    floats = [table[key] for key in keys if table[key].type().is_floating()]
    tests = [backend.is_null(key) | (key <= real(float("inf"))) for key in floats]
    return table.filter(tests) if tests else table


def _listed(
    query: BoundedQuery, rows: IbisRows, keys: Sequence[str], sums: dict[str, Callable[[Any], Any]], also: str = ""
) -> Any:
    """Return a table that groups first and then finds each group's place: the join sees one row per group."""
    table = rows.table()
    told = [*keys, *([also] if also else [])]
    made = {name: build(table) for name, build in sums.items()}
    groups = table.group_by(told).agg(**made) if told else table.agg(**made)
    return with_places(query, rows.backend, groups, keys)


def _sum(column: Any) -> Any:
    """Return a sum of integers, 0 of none."""
    import ibis

    return ibis.coalesce(column.sum().cast("int64"), whole(0))


def _where_there(table: Any, name: str, there: str | None) -> Any:
    """Return a column, NULL where another one is."""
    import ibis

    return table[name] if there is None else ibis.cases((table[there].notnull(), table[name]))


def _of_rows(query: BoundedQuery, rows: IbisRows, measure: Measure) -> Callable[[Any], Any]:
    """Return a measure where each row is a unit: nothing is cut."""
    match measure:
        case Total():
            names = [rows.show(part, "v") for part in on_grid(rows, measure)]
            return lambda table: _rounded(rows.backend, [table[name] for name in names])
        case Units(value) if query.joins:  # one row may be several by now
            number = rows.number()
            there = None if value is None else rows.show(_there(query, rows, value), "v")
            return lambda table: rows.backend.different(_where_there(table, number, there))
        case Distinct(value):
            of = rows.show(rows.scalars.group(value).expr, "v")
            return lambda table: rows.backend.different(_numbers_of(rows.backend, table[of]))
        case Counted(value) | Units(value):
            if value is None:
                return lambda table: table.count()
            name = rows.show(_there(query, rows, value), "v")
            return lambda table: table[name].count()
        case _:
            assert_never(measure)


def _cut(
    query: BoundedQuery, rows: IbisRows, cells: IbisCells, measure: Counted | Units | Total
) -> Callable[[Any], Sequence[Any]]:
    """Return what one cell adds to a measure, within its sensitivity; for a total in two parts, as `on_grid`.

    Guarantee: at most `measure.sensitivity(query.max_rows)` in magnitude; a total at most `finest` of as many rows.
    Proof: docs/proofs/engines.bounded.md.
    Assumes: each row adds at most `measure.sensitivity(1)`, to a total at most `measure.finest(1)`.
    Rounds: a total that is cut, down.
    """
    import ibis

    small = "int32" if measure.sensitivity(query.max_rows) < 2**31 else "int64"  # sums of int32 are quick everywhere
    match measure:
        case Units(None):
            return lambda _: [ibis.literal(1).cast("int32")]
        case Units(value) | Counted(value):
            most = 1 if isinstance(measure, Units) else query.max_rows
            count = cells.found if value is None else cells.column("count", cells.value(_there(query, rows, value)))
            return lambda table: [ibis.least(table[count], whole(most)).cast(small)]
        case Total():
            parts = [cells.value(part) for part in on_grid(rows, measure)]
            n, high, low = cells.column("count", parts[0]), *(cells.column("sum", part) for part in parts)
            return lambda table: _shrunk(rows.backend, (table[high], table[low]), table[n], query.max_rows)
        case _:
            assert_never(measure)


def _numbers_of(backend: Backend, value: Any) -> Any:
    """Return a value that is NULL where it is NaN."""
    import ibis

    if not value.type().is_floating():
        return value
    return ibis.cases((~backend.is_null(value) & (value <= real(float("inf"))), value))


def _shrunk(backend: Backend, total: tuple[Any, Any], count: Any, most: int) -> list[Any]:
    """Return total * most / count rounded down where count is above most, else the total; in two parts.

    Each part is q * count + r, so that part * most / count is q * most + r * most / count. What the first leaves of its
    r joins the second one's: nothing leaves 64 bits.
    """
    import ibis

    high, low = (part.cast("int64") for part in total)
    divisor = ibis.greatest(count, whole(1))

    def halves(part: Any) -> tuple[Any, Any]:
        return backend.divided("div", part, divisor), backend.divided("mod", part, divisor)

    (q, r), (p, s) = halves(high), halves(low)
    more, left = halves(r * most)
    rest = left * (1 << FINE_BITS) + s * most
    down = backend.divided("div", rest, divisor)
    down = ibis.ifelse(backend.divided("mod", rest, divisor) < whole(0), down - whole(1), down)
    cut = (q * most + more, p * most + down)
    return [ibis.ifelse(count <= most, whole_part, one) for whole_part, one in zip((high, low), cut, strict=True)]


def _parts(table: Any, name: str) -> list[Any]:
    """Return the columns of a measure's parts."""
    return [table[column] for column in table.columns if column.rpartition("_")[0] == name]


def _rounded(backend: Backend, parts: Sequence[Any]) -> Any:
    """Return the sum of a measure: of a total in two parts, in steps, halves up: the one rounding that rows share.

    Guarantee: totals at most D steps apart, D whole, are so when rounded.
    Proof: docs/proofs/engines.bounded.md, "One rounding a group".
    Assumes: sums of parts that fit 64 bits.
    Rounds: to the nearest step, once.
    """
    import ibis

    if len(parts) == 1:
        return _sum(parts[0])
    # A sum of 64-bit integers is a decimal on some backends, of which ibis knows nothing: a cast to one makes it cast.
    high, low = (ibis.coalesce(part.sum().cast("decimal(38, 0)").cast("int64"), whole(0)) for part in parts)
    half = whole(1 << (FINE_BITS - 1))
    down, rest = (backend.divided(word, low + half, whole(1 << FINE_BITS)) for word in ("div", "mod"))
    return high + down - ibis.ifelse(rest < whole(0), whole(1), whole(0))


def _there(query: BoundedQuery, rows: IbisRows, value: Scalar) -> Any:
    """Return an expression that is NULL where a value is not there: the same as a total's, to share one count."""
    totals = (measure for measure in query.measures if isinstance(measure, Total) and measure.value == value)
    total = next(totals, None)
    return present(rows, value) if total is None else on_grid(rows, total)[0]
