"""Why a mutant that no shape notices need not be noticed: by model, and by the mutant's id (or its beginning)."""

from __future__ import annotations

REASONS: dict[str, dict[str, str]] = {"core": {}}
"""Model → mutant id, or its beginning → why."""
