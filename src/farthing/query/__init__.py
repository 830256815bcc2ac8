"""Questions as values: schema, bounds, public keys, predicates and the query that joins them."""

from farthing.query.aggregates import Count, NamedAggregate, counting
from farthing.query.bounding import AutoBounds, Bounds
from farthing.query.keys import Keys
from farthing.query.query import Query
from farthing.query.schema import Schema, Type

__all__ = ["AutoBounds", "Bounds", "Count", "Keys", "NamedAggregate", "Query", "Schema", "Type", "counting"]
