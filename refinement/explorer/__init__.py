"""`vsr explore`: a page on which one chooses the steps of a behaviour, or looks at a run event by event; here its
server, and what the page asks it.
"""

from viewproof.refinement.explorer.server import Server, serve
from viewproof.refinement.explorer.subject import Goal, Subject
from viewproof.refinement.explorer.trace import Trace

__all__ = ["Goal", "Server", "Subject", "Trace", "serve"]
