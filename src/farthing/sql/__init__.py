"""SQL text to the parts of a question, by whitelist; everything else is refused by name."""

from farthing.sql.asked import Asked, Options
from farthing.sql.from_ibis import from_ibis, ibis_predicate, is_ibis
from farthing.sql.parser import parse, parse_predicate, parse_scalar

__all__ = [
    "Asked",
    "Options",
    "from_ibis",
    "ibis_predicate",
    "is_ibis",
    "parse",
    "parse_predicate",
    "parse_scalar",
]
