"""Porcupine's verdict on a history: the library's own search, with the model of `tools/porcupine/main.go`."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from viewproof.impl.net.history import Operation

SOURCE = Path(__file__).resolve().parents[3] / "tools" / "porcupine"


@functools.cache
def _program() -> Path:
    """The compiled program. Skips the test where there is no Go, or the library cannot be had."""
    if shutil.which("go") is None:
        pytest.skip("Porcupine needs Go")
    program = Path(tempfile.mkdtemp(prefix="porcupine-")) / "porcupine"
    built = subprocess.run(["go", "build", "-o", program, "."], cwd=SOURCE, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"Porcupine does not build here: {built.stderr.strip()}")
    return program


def verdict_of_porcupine(history: Sequence[Operation]) -> str:
    """ok, violation or inconclusive."""
    lines = [
        json.dumps(
            {
                "client": op.client,
                "kind": op.kind,
                "key": op.key.hex(),
                "called": op.called,
                "returned": op.returned,
                "argument": _hex(op.argument),
                "expected": _hex(op.expected),
                "value": _hex(op.value),
                "success": op.success,
            }
        )
        for op in history
    ]
    run = subprocess.run([_program()], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
