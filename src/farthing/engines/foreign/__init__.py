"""Engines beyond the embedded DuckDB: `base.IbisEngine`, an ibis table on its own backend."""
