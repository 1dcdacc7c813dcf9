"""From emitted source to callable functions: a cache directory keyed by content, numba, or plain Python."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np

from spec.engines.explicit import kernel
from spec.engines.explicit.emit import Program
from spec.lang.errors import SpecError

IMPORTS = '''import numba
from numpy import int64

from spec.engines.explicit.kernel import apply, fail, hash_writes, insert, store, undo, unpack

njit = numba.njit
INNER = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
OUTER = {"nogil": True, "error_model": "numpy", "cache": True}
'''


@dataclass(frozen=True)
class Built:
    """The search function of a model, where its source lies, and whether it must be compiled first."""

    block: Callable[..., int]
    path: Path | None
    cold: bool


def cache_dir() -> Path:
    """Where compiled models are kept: $VSR_CACHE, else viewproof in the user's cache directory (XDG)."""
    own = os.environ.get("VSR_CACHE")
    if own:
        return Path(own) / "explicit"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "viewproof" / "explicit"


def build(program: Program, *, python: bool = False) -> Built:
    """Make the model's functions; `python` executes the emitted source without numba (slow; for tests)."""
    if python:
        namespace = _plain_namespace()
        exec(compile(program.source, "<explicit model>", "exec"), namespace)
        return Built(namespace["block"], None, False)
    text = IMPORTS + program.source
    parts = [text, Path(kernel.__file__).read_text(), numba.__version__, np.__version__, sys.version]
    key = hashlib.blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
    folder = cache_dir() / key
    path = folder / "model.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            fresh = folder / f"model.{os.getpid()}.tmp"
            fresh.write_text(text)
            fresh.replace(path)
    except OSError as problem:
        message = f"explicit: cannot write the compiled model to {folder} ({problem}); set VSR_CACHE"
        raise SpecError(message) from problem
    cold = not any(folder.glob("__pycache__/*.nbi"))
    return Built(_load(path, key).block, path, cold)


def _load(path: Path, key: str) -> ModuleType:
    name = f"viewproof_explicit_{key}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _plain_namespace() -> dict[str, Any]:
    def njit(**_: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return lambda fn: fn

    names = ("apply", "fail", "hash_writes", "insert", "store", "undo", "unpack")
    shared = {name: getattr(kernel, name) for name in names}
    return {"njit": njit, "INNER": {}, "OUTER": {}, "int64": int, **shared}


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Elapsed wall time."""
        return time.perf_counter() - self.start
