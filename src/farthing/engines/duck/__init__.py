"""The embedded DuckDB: `engine.DuckDBEngine`."""
