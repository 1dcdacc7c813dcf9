"""The compiler: its arithmetic and control flow are Python's; one changed guard compiles one action again."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from viewproof.spec.engines import explicit
from viewproof.spec.engines.explicit.build import build
from viewproof.spec.engines.explicit.emit import emit
from viewproof.spec.engines.llvm.machine import MachineError, Translator
from viewproof.spec.engines.llvm.objects import Unit, _new_target, compile_unit, kept, key_of
from viewproof.spec.lang import require
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core import normal

SOURCE = """
def arithmetic(a: I64, b: I64):
    c = (a * 7 - b) % 5 + min(a, b) * 3 - max(a, -b)
    if a < b <= 9 or not (a == 3):
        c += 100
    elif b != 2 and a >= b:
        c -= 1000
    return c + (1 if a > b else 2) + int64(a == b) + (a & 12) + (a ^ b) + (a << 2) + ((a | b) >> 1)


def loops(a: I64, b: I64):
    total = 0
    for i in range(a, b):
        if i == 4:
            continue
        for j in range(i):
            if j == 3:
                break
            total += i * j
        i = 50
    n = 0
    while True:
        n += 1
        if n * n > b:
            break
    return total + n


def calls(a: I64, b: I64):
    return arithmetic(b, a) + loops(0, a) if a != b else arithmetic(a, a)
"""


def compiled(source: str, name: str) -> tuple[Any, Any]:
    """A function of two integers, and the engine that keeps it."""
    unit = Unit("test", "test", source)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(compile_unit(unit)))
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return kind(engine.get_function_address(name)), engine


@pytest.mark.parametrize("name", ["arithmetic", "loops", "calls"])
def test_machine_code_does_what_python_does(name: str) -> None:
    namespace: dict[str, Any] = {"I64": int, "int64": int}
    exec(SOURCE, namespace)
    function, _engine = compiled(SOURCE, name)
    for a, b in itertools.product(range(-6, 12), repeat=2):
        assert function(a, b) == namespace[name](a, b), (a, b)


def test_elements_are_as_wide_as_declared_and_shifts_fill_with_zeros() -> None:
    source = """
def put(p: U8P, q: U16P, r: U32P, s: I64P):
    p[1] = p[0] + 255
    q[0] = q[0] - 1
    r[1] = r[0] * 2
    s[0] = lshr(s[0], 60)
    prefetch(s, 0)
    return p[1] + q[0]
"""
    function, _engine = compiled(source, "put")
    p, q = (ctypes.c_uint8 * 2)(3, 0), (ctypes.c_uint16 * 1)(0)
    r, s = (ctypes.c_uint32 * 2)(1 << 31, 5), (ctypes.c_int64 * 1)(-1)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
    assert kind(ctypes.cast(function, ctypes.c_void_p).value)(*(ctypes.addressof(x) for x in (p, q, r, s))) == 65537
    assert (p[1], q[0], r[1], s[0]) == (2, 65535, 0, 15)


def test_words_are_read_and_written_at_addresses() -> None:
    source = (
        "def swap(a: I64, b: I64):\n    x = load(a)\n    store(a, load(b + 8))\n    store(b + 8, x)\n    return x\n"
    )
    function, _engine = compiled(source, "swap")
    words = (ctypes.c_int64 * 3)(7, 8, -9)
    assert function(ctypes.addressof(words), ctypes.addressof(words) + 8) == 7
    assert list(words) == [-9, 8, 7]


def test_a_word_that_is_given_for_a_pointer_is_its_address() -> None:
    source = """
def second(p: I64P, n: I64):
    return p[1] + n


def at(a: I64, b: I64):
    return second(load(a), b)
"""
    function, _engine = compiled(source, "at")
    words = (ctypes.c_int64 * 2)(7, 8)
    place = ctypes.c_int64(ctypes.addressof(words))
    assert function(ctypes.addressof(place), 5) == 13


@pytest.mark.parametrize("body", ["return a / b", "x.y = 1", "z[0] = 1", "import os", "return [a]"])
def test_what_the_subset_does_not_have_is_refused(body: str) -> None:
    with pytest.raises((MachineError, AssertionError)):
        Translator("bad", f"def bad(a: I64, b: I64):\n    {body}\n").translate()


def test_a_changed_guard_compiles_one_action_and_the_list_of_actions(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("VSR_CACHE", str(tmp_path))
    spec = model("core", replicas=2, views=2, ops=1, requests=1)
    program = emit(spec)
    assert build(program).compiled == len({u.symbol for u in program.units}) + 1
    assert build(program).compiled == 0

    def append(state: Any, r: Any, o: Any) -> None:
        require(state.view[r] < 2)
        normal.append.fn(state, r, o)

    changed = spec.with_actions({"append": replace(normal.append, fn=append)})
    assert build(emit(changed)).compiled == 2
    found = explicit.explore(changed, notify=lambda text: None)
    assert found.coverage[2].guards[0][0].startswith("require(state.view[r] < 2)")


def test_a_function_does_not_take_the_name_of_one_that_is_built_in() -> None:
    with pytest.raises(MachineError, match="store is built in"):
        Translator("bad", "def store(a: I64, b: I64):\n    return a\n").translate()


def test_a_damaged_object_is_compiled_again(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("VSR_CACHE", str(tmp_path))
    unit = Unit("test", "one", "def one(a: I64, b: I64):\n    return a + b\n")
    code = compile_unit(unit)
    (file,) = tmp_path.rglob("*.o")
    assert kept(key_of(unit)) == code
    file.write_bytes(file.read_bytes()[:-7])
    assert kept(key_of(unit)) is None
