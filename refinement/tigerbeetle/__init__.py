"""Audit of the debug logs that TigerBeetle's own simulators print: tables of log lines, parser, mapping, verdicts."""
