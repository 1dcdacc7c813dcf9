"""Proofs without sizes: terms over functions, clauses from the IR, and their refutation with z3."""
