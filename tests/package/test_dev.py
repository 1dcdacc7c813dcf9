"""`tools/dev` does what its one word says, and refuses any other before it installs something."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).resolve().parents[2] / "tools" / "dev"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "usage: tools/dev venv | audit"),
        (["nope"], "usage: tools/dev venv | audit"),
        (["audit", "/nope"], "tools/dev audit takes no more words, got: /nope"),
        (["test", "-k", "one"], "tools/dev test takes no more words, got: -k one"),
    ],
)
def test_what_is_no_task_is_refused(words: list[str], told: str) -> None:
    ended = subprocess.run(["bash", str(DEV), *words], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(told)
