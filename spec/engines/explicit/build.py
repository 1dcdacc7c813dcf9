"""From emitted sources to machine code, linked with the engine's inner loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from viewproof.spec.engines.explicit import kernel
from viewproof.spec.engines.explicit.emit import Program
from viewproof.spec.engines.llvm.objects import Unit, function, link, objects, signatures, unit_of


@dataclass
class Built:
    """The functions of a model, ready to be called; `compiled` units were not in the cache."""

    functions: dict[str, Callable[..., int]]
    compiled: int
    seconds: float
    engine: Any


@cache
def _kernel_unit() -> Unit:
    return unit_of("inner loops", kernel)


@cache
def _signatures() -> dict[str, int]:
    return signatures(_kernel_unit())


def build(program: Program, notify: Callable[[str], None] | None = None) -> Built:
    """Compile what is not in the cache, over all cores where it is much, and link the model."""
    started = time.perf_counter()

    def tell(missing: int, units: int) -> None:
        if notify is not None:
            notify(f"compiling {program.spec.name}: {missing} of {units} parts …")

    codes, compiled = objects((_kernel_unit(), *program.units), tell)
    engine = link(codes)
    functions = {name: function(engine, name, args) for name, args in _signatures().items()}
    return Built(functions, compiled, time.perf_counter() - started, engine)
