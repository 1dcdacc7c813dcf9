"""Benchmarks: commands that print a table; no test depends on a time."""
