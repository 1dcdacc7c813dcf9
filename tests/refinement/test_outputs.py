"""What a command writes: never over what it reads, checked before the work, the verdict printed first."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies

OPTIONS = ("--json", "--html", "--junit", "--sarif", "--violations")


def vsr(*words: str | int | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)), obj=Dependencies(fakes.check_run))


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    fakes.write_run(tmp_path / "t", fakes.records("r"))
    return tmp_path / "t"


def same(path: Path) -> Path:
    return path


def through_a_link(path: Path) -> Path:
    link = path.parents[2] / "link.ndjson"
    link.symlink_to(path)
    return link


def hard_link(path: Path) -> Path:
    link = path.parents[2] / "hard.ndjson"
    link.hardlink_to(path)
    return link


def with_dots(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("way", [same, through_a_link, hard_link, with_dots])
def test_an_output_over_an_input_is_refused(traces: Path, option: str, way: Callable[[Path], Path]) -> None:
    file = traces / "r" / "replica-0.ndjson"
    before = file.read_bytes()
    for given in (traces, file, f"{traces}/r/*.ndjson"):
        output = way(file) if given == traces or way in (same, with_dots) else traces.parent / f"{_name(way)}.ndjson"
        result = vsr("audit", given, option, output)
        assert result.exit_code == 2
        assert option in result.stderr
        assert "would be overwritten" in result.stderr or "lies among traces" in result.stderr
        assert not result.stdout
        assert file.read_bytes() == before


def _name(way: Callable[[Path], Path]) -> str:
    return "link" if way is through_a_link else "hard"


def test_an_output_is_refused_under_a_traces_name_in_an_audited_directory(traces: Path) -> None:
    result = vsr("audit", traces, "--violations", traces / "v.ndjson")
    assert result.exit_code == 2
    assert "has the name of a trace and lies among traces" in result.stderr
    assert not (traces / "v.ndjson").exists()
    assert vsr("audit", traces, "--json", traces / "v.json").exit_code == 0


def test_an_input_that_is_refused_is_not_overwritten_either(traces: Path) -> None:
    file = traces / "r" / "replica-0.ndjson"
    before = file.read_bytes()
    assert vsr("audit", traces, traces / "nowhere", "--json", file).exit_code == 2
    notes = traces.parent / "notes.txt"
    notes.write_text("mine")
    assert vsr("audit", notes, "--json", notes).exit_code == 2
    assert (file.read_bytes(), notes.read_text()) == (before, "mine")


def test_one_file_for_two_outputs_is_refused_but_not_a_device(traces: Path, tmp_path: Path) -> None:
    result = vsr("audit", traces, "--json", tmp_path / "o", "--html", tmp_path / "." / "o")
    assert result.exit_code == 2
    assert "is written by --json too" in result.stderr
    assert vsr("audit", traces, "--json", "/dev/null", "--html", "/dev/null").exit_code == 0


@pytest.mark.parametrize("option", OPTIONS)
def test_an_output_that_cannot_be_written_is_refused_before_the_audit(traces: Path, option: str) -> None:
    for path in (traces.parent / "no" / "o.parquet", traces.parent, traces / "r" / "replica-0.ndjson" / "o.parquet"):
        result = vsr("audit", traces, option, path)
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr
        assert not result.stdout


def test_the_verdict_is_printed_and_other_files_written_where_one_fails(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("viewproof.refinement.reports.junit.write", full)
    result = vsr("audit", traces, "--junit", tmp_path / "j", "--html", tmp_path / "h")
    assert result.exit_code == 2
    assert "verdict: conforms" in result.stdout
    assert f"--junit {tmp_path / 'j'} is not written: " in result.stderr
    assert "No space left" in result.stderr
    assert (tmp_path / "h").exists()


def test_other_commands_do_not_write_over_what_they_read_or_make(tmp_path: Path) -> None:
    assert vsr("format", tmp_path / "d", "--replica", 0).exit_code == 0
    before = {file: file.read_bytes() for file in (tmp_path / "d").iterdir()}
    for file in before:
        assert vsr("inspect", tmp_path / "d", "--json", file).exit_code == 2
    assert {file: file.read_bytes() for file in (tmp_path / "d").iterdir()} == before
    out = tmp_path / "t"
    result = vsr("simulate", "--requests", 5, "--out", out, "--json", out / "seed-1" / "replica-0.ndjson")
    assert result.exit_code == 2
    assert not out.exists()
    assert vsr("simulate", "--requests", 5, "--out", out, "--json", out / "r.json").exit_code == 0
    assert vsr("export", "tla", "core", "--out", out, "--json", out / "core.cfg").exit_code in (0, 2)
    words = ("start", tmp_path / "d", "--replica", 0, "--addresses", "127.0.0.1:1")
    result = vsr(*words, "--trace", tmp_path / "x", "--json", tmp_path / "x")
    assert result.exit_code == 2
    assert "is written by --trace too" in result.stderr


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "1e999", "0", "-1"])
def test_seconds_are_finite_and_above_0(value: str, tmp_path: Path) -> None:
    for words in (
        ("start", tmp_path, "--replica", "0", "--addresses", "127.0.0.1:1", "--tick", value),
        ("status", "--addresses", "127.0.0.1:1", "--timeout", value),
        ("bench", "--seconds", value),
    ):
        result = vsr(*words)
        assert result.exit_code == 2
        assert any(text in result.stderr for text in ("Invalid value for", "(option --tick)")), result.stderr


@pytest.mark.parametrize(
    "words", [("prove", "core", "--bmc", "1", "--timeout", "nan"), ("simulate", "--runs", "1" + "0" * 20)]
)
def test_a_number_that_is_none_or_too_large_is_refused_at_once(words: tuple[str, ...]) -> None:
    result = vsr(*words)
    assert result.exit_code == 2
    assert "Invalid value for" in result.stderr


@pytest.mark.parametrize(
    ("fault", "text"), [("state.getstate_truncates", "no trace event shows"), ("no.such", "unknown fault no.such")]
)
def test_a_fault_that_cannot_be_allowed_is_refused_before_any_run(traces: Path, fault: str, text: str) -> None:
    result = vsr("audit", traces, "--allow", "commit.apply_at_replicate", "--allow", fault)
    assert result.exit_code == 2
    assert "--allow" in result.stderr
    assert text in result.stderr
    assert not result.stdout
    assert vsr("audit", traces, "--allow", "commit.apply_at_replicate").exit_code == 0


@pytest.mark.parametrize(
    ("settings", "redirection"),
    [
        ({"PYTHONIOENCODING": "ascii"}, ""),
        ({"PYTHONIOENCODING": "latin-1"}, ""),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ""),
        ({"HOME": "/proc/none", "XDG_CACHE_HOME": ""}, ""),
        ({}, ">&-"),
        ({}, "2>&-"),
    ],
    ids=["ascii", "latin-1", "C locale", "no home", "output closed", "errors closed"],
)
def test_the_exit_code_and_the_verdict_come_out_of_any_terminal(
    tmp_path: Path, settings: dict[str, str], redirection: str
) -> None:
    records = [{**record, "status": "norm\u00e4l \u2713"} for record in fakes.records("r", ops=1)]
    fakes.write_run(tmp_path / "t", records)
    command = shlex.join([sys.executable, "-m", "viewproof", "audit", str(tmp_path / "t")])
    done = subprocess.run(
        f"{command} {redirection}", shell=True, capture_output=True, env={**os.environ, **settings}, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr
    assert (b"verdict: error (exit code 2)" in done.stdout) is (redirection != ">&-")
    if not redirection:
        assert b"replica-0.ndjson:1: status: expected one of" in done.stdout
    if settings.get("PYTHONIOENCODING") == "latin-1":
        assert b'"norm\xe4l \\u2713"' in done.stdout, done.stdout


def test_a_shell_can_complete_words() -> None:
    settings = {**os.environ, "COMP_WORDS": "vsr aud", "COMP_CWORD": "1", "_VSR_COMPLETE": "bash_complete"}
    vsr_command = Path(sys.executable).with_name("vsr")
    done = subprocess.run([vsr_command], capture_output=True, text=True, env=settings, timeout=120, check=True)
    assert done.stdout.split() == ["plain,audit"]
