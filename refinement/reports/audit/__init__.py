"""The report of an audit as one self-contained HTML page: causes first, then what led to each violation."""

from viewproof.refinement.reports.audit.page import write

__all__ = ["write"]
