"""A release by a model of the data as it is asked: which tables, for which loss; read and checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption, InvalidTarget
from farthing.limits.tables import Residuals
from farthing.mechanisms.adaptive_tables import candidates_of
from farthing.mechanisms.gaussian import Coin
from farthing.mechanisms.linear_queries import MOST_CELLS, TableQueries
from farthing.mechanisms.small_database import MOST_DATABASES, databases
from farthing.planning.release import RESIDUALS, design_for, first_tables
from farthing.planning.release_plan import Candidate, Goal
from farthing.privacy.loss import Gdp, Zcdp
from farthing.session.answering.release_options import (
    ADAPTIVE,
    MOST_COLUMNS,
    MWEM,
    PROJECTION,
    ROWS,
    SMALL,
    TREE,
    AskedRows,
    identity_of,
    reach_of,
    rows_and_goal,
    source_of,
)
from farthing.session.answering.release_request import MOST_CELLS as MOST_RELEASED
from farthing.session.reading.request import Request
from farthing.synthetic.model import pairs_of
from farthing.synthetic.rows import MOST_CELLS as MOST_RAKED
from farthing.synthetic.rows import MOST_WORK
from farthing.workloads import Marginals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.mechanisms.linear_queries import LinearQueries
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader

MOST_CANDIDATES: Final = 1 << 12
"""The most tables that are chosen from."""

SMALL_ROWS: Final = 4
"""How many rows a small database has."""

HELD: Final = (MWEM, PROJECTION, SMALL)
"""The mechanisms that hold the whole domain, and take any linear workload."""

_OPTIONS: Final = ("loss", "confidence", "simultaneous", "max_epsilon", "cap", "at_most")


@dataclass(frozen=True, slots=True)
class SyntheticRequest:
    """A release by a model, read and checked.

    Attributes:
        context: the data and the books.
        query: the rows, the unit and the bounds, by all columns in the order of their names.
        lists: the listed values of each column, in one order.
        workload: what errors are told of, and what the model is made for.
        request: the price and the confidence.
        mechanism: how.
        name: the answer column.
        contest: where the mechanism was chosen, what each knows of a cell.
    """

    context: Context
    query: Query
    lists: tuple[Keys, ...]
    workload: Any
    request: Request
    mechanism: str
    name: str
    contest: tuple[Candidate, ...] = field(default=(), kw_only=True)

    @property
    def reach(self) -> int:
        """The most rows that one unit adds."""
        return reach_of(self.query, self.lists)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self.lists))

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The places of the columns of each table, in rising order."""
        place = {name: at for at, name in enumerate(self.query.by)}
        return tuple(tuple(sorted(place[column] for column in table)) for table in self.workload.tables)

    @property
    def more(self) -> set[tuple[int, ...]]:
        """The tables that the mechanism reads beside those of the workload."""
        every = tuple(range(len(self.sizes)))
        if self.mechanism == ADAPTIVE:
            return {*candidates_of(self.tables)}
        return {*((at,) for at in every), *pairs_of([every])} if self.mechanism == TREE else {every}

    @property
    def counted(self) -> set[tuple[int, ...]]:
        """The tables that are counted."""
        return {*self.tables, *self.more}

    @property
    def queries(self) -> LinearQueries:
        """What is asked, as queries on the whole domain."""
        return TableQueries(self.sizes, self.tables)

    @property
    def words(self) -> str:
        """The question in words."""
        return f"{self.workload!r} by {self.mechanism} {source_of(self.query)}"

    def question(self, loss: Booked) -> str:
        """Return its identity in the ledger."""
        facts = [self.workload.tables, self.mechanism, loss.farthings]
        facts += [self.workload.weights] if self.mechanism == ADAPTIVE else []  # the others do not read them
        return identity_of(self.context, self.query, self.lists, "synthetic", facts)


def read(
    context: Context,
    reader: QuestionReader,
    workload: object,
    rows: AskedRows,
    options: Mapping[str, Any],
) -> SyntheticRequest:
    """Return a release by a model, read and checked; nothing is charged.

    Args:
        context: the data and the books.
        reader: reads keys and conditions.
        workload: the tables.
        rows: which rows.
        options: mechanism, which may be "rows" for "adaptive"; loss, confidence, simultaneous, max_epsilon, cap,
            at_most.
    """
    typed = str(options["mechanism"])
    if not isinstance(workload, Marginals) or not 1 <= len(workload.columns) <= MOST_COLUMNS:
        raise InvalidOption(
            f"{typed!r} is for tables",
            rule=f"a workload of marginals over 1 to {MOST_COLUMNS} columns",
            got=type(workload).__name__,
            next_step='marginals(["sex", "age"], ways=2); mechanism="auto" for prefixes, ranges and conditions',
        )
    columns = tuple(sorted(workload.columns))
    (query, shown), request = rows_and_goal(
        reader,
        rows,
        options,
        lambda under: under.read(reader, columns, keys=under.keys),
        (lambda given: request_of(typed, given), {"loss": context.loss(1)}),
    )
    lists = tuple(one.arranged() for one in shown)
    mechanism = ADAPTIVE if typed == ROWS else typed
    asked = SyntheticRequest(context, query, lists, workload, request, mechanism, rows.name)
    _check_sizes(asked, typed)
    return asked


def for_rows(
    context: Context, reader: QuestionReader, workload: object, wanted: Mapping[str, Any]
) -> dict[str, Any] | SyntheticRequest:
    """Return how rows are best made of tables, by public facts: a release by residuals, as its options; or "adaptive".

    Residuals know every cell of every table; "adaptive" at first those of the table that it chose. Residuals are taken
    where they know cells no less precisely than that, and rows can be raked in the combinations of all columns.

    Args:
        context: the data and the books.
        reader: reads keys and conditions.
        workload: the tables.
        wanted: the rows and the price, as for "adaptive", with mechanism="rows".
    """
    asked = read(context, reader, workload, *AskedRows.of(wanted))
    cells, tables = math.prod(asked.sizes), len(asked.tables)
    request, reach, loss = asked.request, asked.reach, asked.request.loss
    if not isinstance(loss, Gdp | Zcdp) or cells > MOST_RAKED or cells * tables > MOST_WORK:
        return asked
    basis = Residuals(asked.sizes, asked.tables, asked.workload.weights)
    goal = Goal(None, None, loss, request.confidence, request.beta(1))
    design = design_for(basis, Coin(type(loss), 1, reach), goal, np.zeros(len(basis.subsets)), reach)
    rest = first_tables(basis, goal, reach)
    width = goal.critical * math.sqrt(float(design.variances.max()))
    ours = Candidate(RESIDUALS, design.rmse, width, rest.price)
    if ours.rmse <= rest.rmse:
        return {**wanted, "mechanism": "auto"}
    return replace(asked, contest=(rest, ours))


def request_of(mechanism: str, options: Mapping[str, Any]) -> Request:
    """Return the price and the confidence; refuse a target, and no loss."""
    given = {name: value for name, value in options.items() if name != "mechanism" and value is not None}
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown or given.get("loss") is None:
        raise InvalidTarget(
            f"the error of {mechanism!r} is not known before it is paid",
            rule="it takes loss=, and tells the error of every table with its answer",
            got=", ".join(unknown) or "no loss",
            next_step='loss=farthing.Gdp(0.1); mechanism="auto" takes absolute=, relative= and rms=',
            missing="" if unknown else "target",
        )
    return Request.of(**given)


def _check_sizes(asked: SyntheticRequest, typed: str) -> None:
    """Refuse domains and tables that a mechanism cannot hold: with their size, the limit, and what would do.

    Args:
        asked: by its mechanism.
        typed: what the mechanism was called.
    """
    tables = {*asked.tables, *(() if asked.mechanism in HELD else asked.more)}
    told = sum(math.prod(asked.sizes[at] for at in table) for table in tables)
    refuse_size("tables", told, MOST_RELEASED, "fewer ways, fewer columns, or fewer listed values")
    if asked.mechanism == ADAPTIVE:
        instead = 'mechanism="tree" chooses among pairs alone; mechanism="residuals" chooses nothing'
        refuse_size(repr(typed), len(tables), MOST_CANDIDATES, instead, counted="tables")
    if asked.mechanism in HELD:
        check_domain(asked, 'mechanism="adaptive", "tree" and "residuals" never hold the domain')


def check_domain(asked: SyntheticRequest, instead: str) -> None:
    """Refuse a domain that cannot be held, or that has too many small databases.

    Args:
        asked: by a mechanism that holds the domain.
        instead: what would do.
    """
    cells = math.prod(asked.sizes)
    refuse_size(f"{asked.mechanism!r}", cells, MOST_CELLS, instead)
    if asked.mechanism == SMALL:
        instead = '"mwem" chooses queries, not databases'
        refuse_size(f"{SMALL!r}", databases(cells, SMALL_ROWS), MOST_DATABASES, instead, counted="databases")


def refuse_size(what: str, size: int, most: int, instead: str, *, counted: str = "cells") -> None:
    """Refuse more than a mechanism can hold.

    Args:
        what: which mechanism.
        size: how many cells there are.
        most: the most there may be.
        instead: what would do.
        counted: what cells are called.
    """
    if size > most:
        raise InvalidOption(
            f"the domain is too large for {what}",
            rule=f"at most {most:,} {counted}",
            got=f"{size:,}",
            next_step=instead,
        )
