"""What random questions found, each by itself."""

from datetime import datetime

import pyarrow as pa
import pytest

import farthing
from farthing.engines import open_table
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query
from farthing.query.aggregates import counting
from farthing.query.expressions import Call, Compare, FunctionName, Literal, Operator
from farthing.query.expressions import Column as Named

OFF_THE_GRID = datetime(2013, 1, 31, 10, 20, 30)  # noqa: DTZ001  # the table's times have no zone
TIMES = pa.table({"at": pa.array([None, datetime(2013, 1, 1), OFF_THE_GRID], pa.timestamp("us"))})  # noqa: DTZ001


@pytest.mark.parametrize(("operator", "rows"), [(Operator.NE, 2), (Operator.EQ, 0), (Operator.LE, 2)])
def test_a_comparison_that_can_be_folded_is_false_of_null(operator, rows):
    """No hour begins at 10:20:30, whatever the row; where there is no time, nothing is true of it."""
    hour = Call(FunctionName.DATE_TRUNC, (Literal("hour"), Named("at")))
    where = Compare(hour, operator, Literal(OFF_THE_GRID))
    query = Query("data", (), None, where, counting("n"), PrivacyUnit(), Bounds())

    assert [[rows]] == open_table(TIMES).measure(query, 1).tolist()


@pytest.mark.parametrize("text", ["SELECT VAR->2.25 FROM data", "SELECT a -> 1e5 FROM data"])
def test_a_path_that_is_none_is_refused(text):
    """The parser's own reading of numbers in paths of JSON does not always end in an error of the parser."""
    budget = farthing.Budget(epsilon=1, delta=1e-6)
    with farthing.Session(TIMES, budget=budget) as session, pytest.raises(UnsupportedQuery):
        session.sql(text, absolute=10)
