"""What a change of the specification changes: two versions of this program side by side (`vsr diff OLD NEW`)."""

from viewproof.refinement.difference.compare import Difference, Plan, compare
from viewproof.refinement.difference.page import page
from viewproof.refinement.difference.versions import OwnModel, Side, Version, file_of, own_model_of, versions

__all__ = [
    "Difference",
    "OwnModel",
    "Plan",
    "Side",
    "Version",
    "compare",
    "file_of",
    "own_model_of",
    "page",
    "versions",
]
