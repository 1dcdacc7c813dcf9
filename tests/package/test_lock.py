"""The lock file: an exact version of everything that pyproject.toml asks for, on every Python, from no named place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "tools" / "constraints.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ASKED = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
PINS = [Requirement(line) for line in LOCK.splitlines() if line and not line.lstrip().startswith("#")]


def test_each_line_is_one_version_and_no_address() -> None:
    assert [str(pin) for pin in PINS if [one.operator for one in pin.specifier] != ["=="] or pin.url] == []
    assert "://" not in LOCK
    assert not any(line.startswith("-") for line in LOCK.splitlines())


@pytest.mark.parametrize("version", ["3.11.0", "3.11.9", "3.12.1", "3.13.1", "3.14.0"])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_is_asked_for_has_exactly_one_version_that_is_allowed(version: str, system: str) -> None:
    environment = {
        "python_full_version": version,
        "python_version": version.rpartition(".")[0],
        "sys_platform": system,
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    here = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate(environment)]
    names = [canonicalize_name(pin.name) for pin in here]
    assert len(set(names)) == len(names)
    pinned = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in here}
    for line in ASKED:
        asked = Requirement(line)
        assert asked.specifier.contains(pinned[canonicalize_name(asked.name)], prereleases=True), line
