"""Names of files as code hosts want them: below the repository's root, with slashes."""

from __future__ import annotations

import os
from pathlib import Path


def in_repository(file: str) -> str:
    """The file below the repository that is worked on (`GITHUB_WORKSPACE`, `CI_PROJECT_DIR`, or here), if it is."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or Path.cwd()).absolute()
    path = Path(os.path.normpath(Path.cwd() / file))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else Path(file).as_posix()
