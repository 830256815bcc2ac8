"""SQL text to the parts of a question, by whitelist; everything else is refused by name."""

from farthing.sql.parser import Parsed, parse, parse_predicate

__all__ = ["Parsed", "parse", "parse_predicate"]
