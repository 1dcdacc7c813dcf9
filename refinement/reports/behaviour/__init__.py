"""A behaviour as one self-contained HTML page: sequence diagram, steps, state, and why-not."""

from viewproof.refinement.reports.behaviour.page import render, write

__all__ = ["render", "write"]
