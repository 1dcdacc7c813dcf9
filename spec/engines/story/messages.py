"""Which messages a step sends and which it uses, from nothing but the declared message variables.

A message variable that a step writes is sent by its declared sender. One that a step reads as received, and that is
set, is used by it; it came from the step that wrote that cell last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines.guards import Reading
from viewproof.spec.lang.schema import Var

Cell = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Sent:
    """A message that a step sends: its name, its sender, and the cells that carry it."""

    message: str
    sender: int
    cells: tuple[Cell, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"message": self.message, "sender": self.sender, "cells": [[v, list(i)] for v, i in self.cells]}


@dataclass(frozen=True)
class Used:
    """A received message that a step used; `step` is the number of the step that sent it."""

    message: str
    sender: int
    step: int
    cells: tuple[Cell, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        cells = [[v, list(i)] for v, i in self.cells]
        return {"message": self.message, "sender": self.sender, "step": self.step, "cells": cells}


def message_name(var: Var) -> str:
    """Name of the message that a variable is a part of."""
    return var.message or var.name


def sender_of(var: Var, index: tuple[int, ...]) -> int:
    """The replica that sends this cell."""
    assert var.sender is not None
    return int(var.sender(*index))


def sent(written: Iterable[tuple[Var, tuple[int, ...]]]) -> tuple[Sent, ...]:
    """Messages among the cells that a step changed, in order of declaration."""
    groups: dict[tuple[str, int], list[Cell]] = {}
    for var, index in written:
        if var.is_message:
            groups.setdefault((message_name(var), sender_of(var, index)), []).append((var.name, index))
    return tuple(Sent(name, sender, tuple(cells)) for (name, sender), cells in groups.items())


def used(readings: Iterable[Reading], written_by: dict[Cell, int]) -> tuple[Used, ...]:
    """Messages among the readings of a step, given which step wrote each cell last."""
    groups: dict[tuple[int, str, int], list[Cell]] = {}
    for reading in readings:
        cell = (reading.var.name, reading.index)
        if reading.receiver is None or reading.value == reading.var.init or cell not in written_by:
            continue
        sender = sender_of(reading.var, reading.index)
        groups.setdefault((written_by[cell], message_name(reading.var), sender), []).append(cell)
    return tuple(Used(name, sender, step, tuple(groups[step, name, sender])) for step, name, sender in sorted(groups))
