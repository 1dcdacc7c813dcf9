"""A behaviour as one self-contained HTML page: sequence diagram, steps, state, and why-not."""

from viewproof.refinement.reports.behaviour.page import render, render_drawing, write, write_picture
from viewproof.refinement.reports.behaviour.scene import Beat, Scene, scene_of
from viewproof.refinement.reports.behaviour.telling import tell

__all__ = ["Beat", "Scene", "render", "render_drawing", "scene_of", "tell", "write", "write_picture"]
