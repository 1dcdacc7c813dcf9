"""A behaviour as one self-contained HTML page: sequence diagram, steps, state, and why-not."""

from viewproof.refinement.reports.behaviour.page import render, render_drawing, write, write_picture
from viewproof.refinement.reports.behaviour.telling import tell

__all__ = ["render", "render_drawing", "tell", "write", "write_picture"]
