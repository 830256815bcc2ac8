"""Engines beyond the embedded DuckDB: ibis tables, each on its own backend."""

from farthing.engines.foreign.base import IbisEngine

__all__ = ["IbisEngine"]
