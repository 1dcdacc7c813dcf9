"""Porcupine's verdict on a history: the library's own search, with the model of `tools/porcupine/main.go`."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from viewproof.impl.net.history import Operation

SOURCE = Path(__file__).resolve().parents[1] / "tools" / "porcupine"


class NoPorcupineError(Exception):
    """There is no Go, or the library cannot be had; the text says which."""


@functools.cache
def program() -> Path:
    """The compiled program. Raises NoPorcupineError."""
    if shutil.which("go") is None:
        raise NoPorcupineError("Porcupine needs Go")
    path = Path(tempfile.mkdtemp(prefix="porcupine-")) / "porcupine"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    built = subprocess.run(["go", "build", "-o", path, "."], cwd=SOURCE, capture_output=True, text=True, check=False)
    if built.returncode:
        raise NoPorcupineError(f"Porcupine does not build here: {built.stderr.strip()}")
    return path


def verdict_of_porcupine(history: Sequence[Operation]) -> str:
    """ok, violation or inconclusive. Raises NoPorcupineError."""
    text = "\n".join(lines_of(history))
    run = subprocess.run([program()], input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def lines_of(history: Sequence[Operation]) -> list[str]:
    """The history as the program reads it: a line of JSON for each operation."""
    return [
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


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
