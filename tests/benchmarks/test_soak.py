"""A minute of everything that may be done to a real cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soak.judge import judge
from benchmarks.soak.run import Soaked
from viewproof.impl.net.history import Operation

ROOT = Path(__file__).resolve().parents[2]


def can_enter() -> bool:
    """True if a network namespace can be made here."""
    if not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    link = ["ip", "link", "add", "bridge0", "type", "bridge"]
    return subprocess.run([*words, "--", *link], capture_output=True, check=False).returncode == 0


@pytest.mark.long
@pytest.mark.skipif(not can_enter(), reason="no network namespace can be made here")
def test_a_minute(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["--seconds", "60", "--directory", str(tmp_path / "soak"), "--json", str(report)]
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 4), run.stdout + run.stderr
    found = json.loads(report.read_text())
    assert found["history, own checker"].startswith("ok")
    assert found["history, Porcupine"] == "ok" or found["history, Porcupine"].startswith("not judged")
    assert found["traces"] == "conforms"
    assert found["strikes"]


def test_a_lost_write_is_told(tmp_path: Path) -> None:
    history = [Operation(1, "put", b"a", 1, 2, b"1"), Operation(1, "get", b"a", 3, 4, value=None)]
    found = judge(Soaked(history, traces=tmp_path / "nothing"), tmp_path)
    assert str(found["history, own checker"]).startswith("violation")
    assert found["code"] == 1
