"""What a change of the specification changes: two versions of this program side by side (`vsr diff OLD NEW`)."""

from viewproof.refinement.difference.compare import Difference, Plan, compare
from viewproof.refinement.difference.page import page
from viewproof.refinement.difference.versions import Version, versions

__all__ = ["Difference", "Plan", "Version", "compare", "page", "versions"]
