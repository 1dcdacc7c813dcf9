"""Refinement: trace schema, mapping onto the spec, the audit (local and Spark), reports and the command line."""
