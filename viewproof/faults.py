"""Every known mistake, one record each (`faults.toml`): what the specification, the replica, commands, tests and tables
read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """One mistake. `spec` and `replica` say what is wrong there ("": it has no switch there); `model` are sizes of the
    model in which it shows, `runs` what simulated runs show it.
    """

    id: str
    source: str
    spec: str = ""
    replica: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)
    runs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """Where it has a switch: S the specification, I the implementation."""
        return "S" * bool(self.spec) + "I" * bool(self.replica)


@cache
def records() -> Mapping[str, Record]:
    """Id → record, in the order of the catalogue. Raises `TypeError` for a field that no record has."""
    text = files("viewproof").joinpath("faults.toml").read_text(encoding="utf-8")
    return MappingProxyType({id: Record(id, **fields) for id, fields in tomllib.loads(text).items()})
