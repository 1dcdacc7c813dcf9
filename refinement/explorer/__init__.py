"""`vsr explore`: a page on which one chooses the steps of a behaviour; here its server, and what the page asks it."""

from viewproof.refinement.explorer.server import Server, serve
from viewproof.refinement.explorer.subject import Goal, Subject

__all__ = ["Goal", "Server", "Subject", "serve"]
