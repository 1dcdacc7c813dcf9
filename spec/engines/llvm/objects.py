"""Machine code on disk: one object per unit of source, kept by content and linked in memory."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from viewproof.spec.engines.llvm import machine
from viewproof.spec.lang.errors import SpecError

_linking = threading.Lock()
"""What `external` names is known to the whole process while an engine is linked."""
_own: list[tempfile.TemporaryDirectory[str]] = []
"""The cache of this process, where the user's cannot be written to; it goes with the process."""
PARALLEL_MIN = 16
"""So many units to compile are spread over the cores."""
NAME = "@NAME@"
DIGEST_BYTES = 16
"""A compiled unit is stored after its checksum: one that was cut off or damaged is compiled again."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Source of one function, or of several that belong together; `title` says whose."""

    title: str
    symbol: str
    source: str


def unit(title: str, source: str) -> Unit:
    """A unit whose function is named by its content."""
    symbol = "f_" + hashlib.blake2b(source.encode(), digest_size=12).hexdigest()
    return Unit(title, symbol, source.replace(NAME, symbol))


def unit_of(title: str, *modules: ModuleType) -> Unit:
    """The functions of modules that are written in the subset, as one unit: those of the later ones may call those of
    the earlier ones, and imports count for nothing.
    """
    sources = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules]
    return Unit(title, title.replace(" ", "_"), "\n".join(sources))


def cache_dir() -> Path:
    """Where compiled units are kept: $VSR_CACHE, else viewproof in the user's cache directory (XDG)."""
    return _cache_dir(os.environ.get("VSR_CACHE"), os.environ.get("XDG_CACHE_HOME"))


@cache
def _cache_dir(own: str | None, base: str | None) -> Path:
    if own:
        return Path(own) / "explicit"
    return (Path(base) if base else Path.home() / ".cache") / "viewproof" / "explicit"


def _make_room() -> None:
    """Where the cache cannot be written to, this process and those that it starts have one of their own."""
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
        why = "no permission"
    except OSError as problem:
        why = str(problem)
    try:
        _own.append(tempfile.TemporaryDirectory(prefix="viewproof-"))
    except OSError as problem:
        raise SpecError(f"cannot write compiled code to {folder} ({why}), nor elsewhere ({problem})") from problem
    os.environ["VSR_CACHE"] = _own[-1].name
    text = "cannot write compiled code to %s (%s): it is kept for this process only; VSR_CACHE names another place"
    logging.getLogger(__name__).warning(text, folder, why)


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
def identity() -> bytes:
    """What an object depends on besides its source."""
    parts = (Path(machine.__file__).read_text(encoding="utf-8"), Path(__file__).read_text(encoding="utf-8"))
    host = (
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return "\0".join((*parts, *host)).encode()


def key_of(unit: Unit) -> str:
    """The name of a unit's object code: equal where all that it depends on is."""
    return hashlib.blake2b(identity() + unit.source.encode(), digest_size=16).hexdigest()


def _path(key: str) -> Path:
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
    write_whole(_path(key_of(unit)), code)
    return code


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=DIGEST_BYTES).digest()


def write_whole(path: Path, data: bytes) -> None:
    """Put data into a file of the cache, with a checksum, at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_bytes(_digest(data) + data)
        fresh.replace(path)
    except OSError as problem:
        message = f"cannot write compiled code to {path.parent} ({problem}); set VSR_CACHE"
        raise SpecError(message) from problem


def read_whole(path: Path) -> bytes | None:
    """What `write_whole` put there; None if it is not there, or damaged."""
    try:
        found = path.read_bytes()
    except OSError:
        return None
    digest, data = found[:DIGEST_BYTES], found[DIGEST_BYTES:]
    return data if data and digest == _digest(data) else None


def kept(key: str) -> bytes | None:
    """The object code of that name, if it is in the cache and whole."""
    return read_whole(_path(key))


def objects(units: Iterable[Unit], notify: Callable[[int, int], None] | None = None) -> tuple[list[bytes], int]:
    """The object code of units, each once, and how many of them were not in the cache: these are compiled, over all
    cores where it is much. `notify(missing, all)` is told before that.
    """
    once = list({u.symbol: u for u in units}.values())
    found = {u.symbol: kept(key_of(u)) for u in once}
    missing = [u for u in once if found[u.symbol] is None]
    if notify is not None and len(missing) > 1:
        notify(len(missing), len(once))
    _compile(missing)
    return [found[u.symbol] or kept(key_of(u)) or compile_unit(u) for u in once], len(missing)


def link(codes: Iterable[bytes], symbols: Mapping[str, int] | None = None) -> Any:
    """An engine that holds the code, to be kept as long as its functions are. `symbols` are what `external` names."""
    with _linking:
        for name, value in (symbols or {}).items():
            llvm.add_symbol(name, value)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_target())
        for code in codes:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    return engine


def _compile(missing: Sequence[Unit]) -> None:
    """Compile units; many are shared with other processes, one per core (LLVM works on one thread of a process)."""
    if missing:
        _make_room()
    others = min(os.cpu_count() or 1, 8) - 1 if len(missing) >= PARALLEL_MIN else 0
    shares = [list(missing[n :: others + 1]) for n in range(others + 1)]
    helpers = [_helper(share) for share in shares[1:]]
    for unit in shares[0]:
        compile_unit(unit)
    for helper in helpers:
        helper.wait()


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


def signatures(unit: Unit) -> dict[str, int]:
    """Number of arguments of the functions of a unit."""
    tree = ast.parse(unit.source)
    known = machine.records(tree)
    return {n.name: len(machine.parameters(n, known)) for n in tree.body if isinstance(n, ast.FunctionDef)}


def loaded(unit: Unit) -> tuple[dict[str, Callable[..., int]], Any]:
    """The functions of a unit by name, compiled where it is not in the cache, and the engine that keeps them."""
    engine = link(objects([unit])[0])
    return {name: function(engine, name, count) for name, count in signatures(unit).items()}, engine


def function(engine: Any, name: str, args: int) -> Callable[..., int]:
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
