"""Faults stand in for components: the replica and its disk hold none, and load none."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from viewproof.impl.faults import FAULTS, STAND_INS, FaultError, parts_with, stand_in
from viewproof.impl.replica import Parts
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.parts import RIGHT

IMPL = Path(__file__).parents[2] / "impl"


def test_importing_the_replica_loads_neither_arrow_nor_faults_nor_hosts() -> None:
    code = "import sys, viewproof.impl.replica; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "viewproof.impl.replica.replica" in loaded
    rooms = ("viewproof.impl.faults", "viewproof.impl.sim", "viewproof.impl.net", "viewproof.impl.storage")
    assert [name for name in loaded if name.startswith(("pyarrow", "asyncio", *rooms))] == []


def test_no_component_asks_which_faults_are_on() -> None:
    rooms = [IMPL / name for name in ("replica", "storage", "machine", "interface", "trace")]
    texts = {file: file.read_text() for room in rooms for file in room.rglob("*.py")}
    assert [file for file, text in texts.items() if any(f'"{fault}"' in text for fault in FAULTS)] == []
    asking = [file for file, text in texts.items() if re.search(r"_faults\b|\bfaults:|in (self\.)?faults", text)]
    assert asking == []


AROUND = {"segments", "disk", "inbound", "guard", "peers"}
"""Roles that are no components of the replica."""


def test_each_fault_stands_in_for_a_component_and_for_nothing_else() -> None:
    names = [field.name for field in fields(Parts)]
    assert STAND_INS.keys() == FAULTS.keys()
    for fault, stands_in in STAND_INS.items():
        assert stands_in.keys() <= {*names, *AROUND}
        parts = parts_with({fault}, 0)
        changed = {name for name in names if getattr(parts, name) is not getattr(RIGHT, name)}
        assert changed == stands_in.keys() - AROUND
    assert parts_with(frozenset(), 0) is RIGHT


def test_faults_of_one_component_are_put_on_top_of_each_other() -> None:
    both = stand_in("client_table", ClientTable, {"table.evict_hash_order", "table.evict_forgets"}, 2)
    names = [each.__name__ for each in both.__mro__]
    assert names[:4] == ["FaultyClientTable", "TakesUnknownClients", "EvictsInHashOrder", "AtNode"]


def test_an_unknown_fault_is_refused_by_name() -> None:
    with pytest.raises(FaultError, match=r"unknown fault no\.such; known: boot\.all_zero"):
        parts_with({"no.such"}, 0)
