"""From emitted sources to machine code: one object per unit, kept on disk by content, linked in memory."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from viewproof.spec.engines.explicit import kernel, machine
from viewproof.spec.engines.explicit.emit import Program, Unit
from viewproof.spec.lang.errors import SpecError

PARALLEL_MIN = 16
"""So many units to compile are spread over the cores."""


@dataclass
class Built:
    """The functions of a model, ready to be called; `compiled` units were not in the cache."""

    functions: dict[str, Callable[..., int]]
    compiled: int
    seconds: float
    engine: Any


def cache_dir() -> Path:
    """Where compiled units are kept: $VSR_CACHE, else viewproof in the user's cache directory (XDG)."""
    own = os.environ.get("VSR_CACHE")
    if own:
        return Path(own) / "explicit"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "viewproof" / "explicit"


def _new_target() -> Any:
    """A target machine; one that is given to an engine dies with it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic", codemodel="small", jit=True
    )


_target = cache(_new_target)


@cache
def _identity() -> bytes:
    """What an object depends on besides its source."""
    parts = (Path(machine.__file__).read_text(), Path(__file__).read_text())
    host = (
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return "\0".join((*parts, *host)).encode()


def _path(unit: Unit) -> Path:
    key = hashlib.blake2b(_identity() + unit.source.encode(), digest_size=16).hexdigest()
    return cache_dir() / key[:2] / f"{key}.o"


def compile_unit(unit: Unit) -> bytes:
    """Object code of a unit; written to the cache."""
    text = machine.Translator(unit.symbol, unit.source).translate()
    module = llvm.parse_assembly(text)
    target = _target()
    module.triple, module.data_layout = target.triple, str(target.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    code: bytes = target.emit_object(module)
    path = _path(unit)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_bytes(code)
        fresh.replace(path)
    except OSError as problem:
        message = f"explicit: cannot write compiled code to {path.parent} ({problem}); set VSR_CACHE"
        raise SpecError(message) from problem
    return code


@cache
def _kernel_unit() -> Unit:
    return Unit("inner loops", "kernel", Path(kernel.__file__).read_text())


def build(program: Program, notify: Callable[[str], None] | None = None) -> Built:
    """Compile what is not in the cache, over all cores where it is much, and link the model."""
    started = time.perf_counter()
    units = list({u.symbol: u for u in (_kernel_unit(), *program.units)}.values())
    missing = [u for u in units if not _path(u).exists()]
    if notify is not None and len(missing) > 1:
        notify(f"compiling {program.spec.name}: {len(missing)} of {len(units)} parts …")
    _compile(missing)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_target())
    for unit in units:
        engine.add_object_file(llvm.ObjectFileRef.from_data(_path(unit).read_bytes()))
    engine.finalize_object()
    functions = {name: _function(engine, name, args) for name, args in _signatures().items()}
    return Built(functions, len(missing), time.perf_counter() - started, engine)


def _compile(missing: Sequence[Unit]) -> None:
    """Compile units; many are shared with other processes, one per core (LLVM works on one thread of a process)."""
    others = min(os.cpu_count() or 1, 8) - 1 if len(missing) >= PARALLEL_MIN else 0
    shares = [list(missing[n :: others + 1]) for n in range(others + 1)]
    helpers = [_helper(share) for share in shares[1:]]
    for unit in shares[0]:
        compile_unit(unit)
    for helper in helpers:
        helper.wait()
    for unit in missing:
        if not _path(unit).exists():
            compile_unit(unit)


def _helper(share: Sequence[Unit]) -> subprocess.Popen[bytes]:
    """Another process that compiles these units into the cache."""
    root = str(Path(__file__).parents[4])
    code = f"import sys; sys.path.insert(0, sys.argv[1]); from {__name__} import serve; serve()"
    helper = subprocess.Popen([sys.executable, "-c", code, root], stdin=subprocess.PIPE)
    assert helper.stdin is not None
    helper.stdin.write(json.dumps([[u.title, u.symbol, u.source] for u in share]).encode())
    helper.stdin.close()
    return helper


def serve() -> None:
    """Compile the units listed on standard input (of a helper process)."""
    for title, symbol, source in json.load(sys.stdin):
        compile_unit(Unit(title, symbol, source))


@cache
def _signatures() -> dict[str, int]:
    """Number of arguments of the inner loops."""
    tree = ast.parse(_kernel_unit().source)
    known = machine.records(tree)
    return {n.name: len(machine.parameters(n, known)) for n in tree.body if isinstance(n, ast.FunctionDef)}


def _function(engine: Any, name: str, args: int) -> Callable[..., int]:
    """A function of numbers, arrays and records; while it runs other Python threads may run too."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * args)
    function = kind(engine.get_function_address(name))

    def call(*given: Any) -> int:
        words: list[int] = []
        for value in given:
            if isinstance(value, machine.Record):
                words += value.as_words()
            else:
                words.append(value if isinstance(value, int) else value.ctypes.data)
        return int(function(*words))

    return call
