"""Exact bounded counts on the user's own engine. Raw truths: only the session may import this package."""

from farthing.engines.engine import Engine
from farthing.engines.opening import open_table

__all__ = ["Engine", "open_table"]
