"""The package outside of its checkout: what is in the wheel, and every `vsr` command from the wheel, in a directory
where a user has packages `spec`, `impl` and `refinement` of their own.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.package.conftest import Installed, build_wheel, copy_sources, run
from viewproof.impl.net.cluster import free_ports
from viewproof.refinement.cli.root import COMMANDS

pytestmark = pytest.mark.xdist_group("package")

SMALL = ("core", "--views", "2", "--ops", "1", "--requests", "1")
FAULT = ("core", "--fault", "state.getstate_truncates")
ENDINGS = {"py", "ipynb", "j2", "svg", "css", "js", "typed", "md", "ndjson", "json", "toml", "txt"}


def names(wheel: Path) -> set[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def check(done: subprocess.CompletedProcess[str], code: int, said: str) -> str:
    """The output of a command that ended as expected, without a word of a wrong import."""
    told = done.stdout + done.stderr
    assert done.returncode == code, told
    assert said in told
    assert "Traceback" not in told
    return told


def test_site_packages_hold_nothing_else(installed: Installed) -> None:
    found = {path.name for path in installed.packages.iterdir()} - {"dependencies.pth"}
    [info] = [name for name in found if name.endswith(".dist-info")]
    assert found == {"viewproof", info}
    assert {path.name for path in installed.scripts.glob("vsr*")} == {"vsr"}


def test_every_module_and_its_data_are_in_the_wheel(installed: Installed) -> None:
    packed = {name for name in names(installed.wheel) if name.startswith("viewproof/")}
    root = Path(__file__).resolve().parents[2]
    modules = {path for name in ("spec", "impl", "refinement") for path in (root / name).rglob("*.py")}
    assert {f"viewproof/{path.relative_to(root)}" for path in modules} <= packed
    assert {name.rpartition(".")[2] for name in packed} == ENDINGS
    assert {"viewproof/py.typed", "viewproof/docs/api.md", "viewproof/traces/README.md"} <= packed


def test_the_source_archive_gives_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    sources = copy_sources(tmp_path / "sources")
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    (tmp_path / "wheels").mkdir()
    run(sys.executable, "-c", code, tmp_path, cwd=sources)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert not [member.name for member in packed if member.issym() or member.islnk()]
    assert names(build_wheel(archive, tmp_path / "wheels")) == names(installed.wheel)


def test_the_version_and_every_command_are_there(installed: Installed) -> None:
    check(installed.vsr("--version"), 0, "vsr, version 0.1.0")
    told = check(installed.python("-m", "viewproof", "--help"), 0, "Viewstamped Replication")
    assert [name for name in COMMANDS if f"\n  {name} " not in told] == []


def test_the_public_functions_work_and_find_their_files(installed: Installed) -> None:
    code = (
        "import viewproof; found = viewproof.audit(viewproof.samples()); print(found.verdict, found.events > 1000,"
        " (viewproof.documents() / 'audit.md').is_file(), viewproof.__file__)"
    )
    told = check(installed.python("-c", code), 0, f"conforms True True {installed.packages}")
    assert "own" not in told


LESSON = """
import json, pathlib, shutil, sys, viewproof

course = pathlib.Path(shutil.copytree(viewproof.documents() / "course", "course"))
sys.path.insert(0, "course")
cells = json.loads((course / "3-views-and-primaries.ipynb").read_text())["cells"]
names = {}
for cell in cells:
    text = "".join(cell["source"])
    if "exercise" in cell["metadata"].get("tags", ()):
        text = (course / "answers/lesson_3.py").read_text()
    if cell["cell_type"] == "code":
        exec(text if not cell["id"].startswith("check") else f"print({text})", names)
"""


def test_a_lesson_of_the_course_runs_from_a_copy_of_what_the_wheel_has(installed: Installed) -> None:
    check(installed.python("-c", LESSON), 0, "RIGHT: 11 steps")


def test_check(installed: Installed) -> None:
    check(installed.vsr("check", *SMALL), 0, "holds: I1")
    told = check(
        installed.vsr("check", *FAULT, "--html", "page.html", "--json", "c.json"), 1, "violated: I3 honest_ack"
    )
    assert "[spec/vsr/" in told
    assert "honest_ack" in (installed.work / "page.html").read_text()
    assert json.loads((installed.work / "c.json").read_text())["exit_code"] == 1


def test_explore(installed: Installed) -> None:
    log = installed.work / "log"
    with running(installed, "explore", *SMALL, "--no-open") as process:
        wait_for(lambda: "Ctrl-C" in log.read_text(), process)
        address = log.read_text().split()[0]
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert "Next steps" in answer.read().decode()


def test_diff(installed: Installed) -> None:
    check(installed.vsr("diff", ".", "no-such-revision"), 2, "has no specification: there is no spec/vsr in it")


def test_two_settings_judge_recorded_traces(installed: Installed) -> None:
    code = "import viewproof; print(viewproof.samples())"
    samples = check(installed.python("-c", code), 0, str(installed.packages)).strip()
    told = check(
        installed.vsr("diff-audit", ":", ":allow=view.acks_survive_view", samples, "--json", "change.json"), 0, ""
    )
    assert json.loads((installed.work / "change.json").read_text())["exit_code"] == 0, told


def test_mutate(installed: Installed) -> None:
    check(installed.vsr("mutate", "--document", "mutants.md"), 0, "page: mutants.md")
    assert "# Mutants" in (installed.work / "mutants.md").read_text()


def test_prove(installed: Installed) -> None:
    check(installed.vsr("prove", *SMALL, "--induction", "--workers", "2"), 0, "proved")
    check(installed.vsr("prove", *FAULT, "--bmc"), 1, "honest_ack")


def test_simulate_and_audit_in_processes_of_their_own(installed: Installed) -> None:
    words = ("simulate", "--runs", "2", "--requests", "30", "--workers", "2", "--out", "runs")
    check(installed.vsr(*words), 0, "2 runs, 0 failed")
    reports = [word for kind in ("html", "junit", "sarif", "json") for word in (f"--{kind}", f"report.{kind}")]
    check(installed.vsr("audit", "runs", "--workers", "2", *reports), 0, "verdict: conforms")
    words = ("audit", "runs", "--workers", "2")
    check(installed.python("-m", "viewproof", *words), 0, "verdict: conforms")
    assert all((installed.work / f"report.{kind}").stat().st_size for kind in ("html", "junit", "sarif", "json"))


@pytest.mark.spark
def test_audit_on_spark(installed: Installed) -> None:
    check(installed.vsr("simulate", "--seed", "7", "--requests", "30", "--out", "spark"), 0, "1 run, 0 failed")
    check(installed.vsr("audit", "spark", "--engine", "spark", "--master", "local[1]"), 0, "verdict: conforms")


@pytest.mark.parametrize("kind", ["itf", "html", "tla"])
def test_export(installed: Installed, kind: str) -> None:
    out = "tla" if kind == "tla" else f"export.{kind}"
    check(installed.vsr("export", kind, *FAULT, "--out", out), 0, out)
    assert (installed.work / out).exists()


def test_export_of_a_state_graph(installed: Installed) -> None:
    words = ("--views", "1", "--ops", "1", "--requests", "1", "--out", "graph.dot")
    check(installed.vsr("export", "graph", "core", *words), 0, "graph.dot")


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until it is true, as long as the process runs."""
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@contextmanager
def running(installed: Installed, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A `vsr` command while it runs; SIGTERM ends it, with exit code 0."""
    with (installed.work / "log").open("w") as log:
        process = subprocess.Popen(
            installed.command(*words), cwd=installed.work, env=installed.environment, stdout=log, stderr=log, text=True
        )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, (installed.work / "log").read_text()
    finally:
        process.kill()
        process.wait()


def test_format_start_status_repl_inspect_and_recover(installed: Installed) -> None:
    check(installed.vsr("format", "data", "--replica", "0", "--replicas", "1"), 0, "data")
    asked = ("--addresses", f"127.0.0.1:{free_ports(1)[0]}")
    with running(installed, "start", "data", "--replica", "0", *asked) as process:
        wait_for(lambda: installed.vsr("status", *asked).returncode == 0, process)
        check(installed.vsr("repl", *asked, stdin="put a 1\nget a\n"), 0, "ok\n1\n")
        check(installed.vsr("status", *asked), 0, "normal")
    check(installed.vsr("inspect", "data"), 0, "superblock")
    check(installed.vsr("recover", "data"), 0, "nothing is wrong with it")


def test_a_cluster_of_processes(installed: Installed) -> None:
    with running(installed, "cluster", "three", "--json", "ready.json") as process:
        wait_for((installed.work / "ready.json").exists, process)
        addresses = ",".join(json.loads((installed.work / "ready.json").read_text())["addresses"])
        check(installed.vsr("repl", "--addresses", addresses, stdin="put a 1\nget a\n"), 0, "ok\n1\n")
    check(installed.vsr("audit", "three/traces"), 0, "verdict: conforms")


def test_authority(installed: Installed) -> None:
    check(installed.vsr("authority", "tls", "--addresses", "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003"), 0, "tls")
    assert (installed.work / "tls" / "replica-2").is_dir()


def test_record_and_bench(installed: Installed) -> None:
    check(installed.vsr("record", "recorded", "--requests", "40", "--no-kill"), 0, "clients' view: consistent")
    check(installed.vsr("audit", "recorded"), 0, "verdict: conforms")
    check(installed.vsr("bench", "--seconds", "0.5", "--clients", "4"), 0, "/s")


def test_every_command_is_tried_here() -> None:
    text = Path(__file__).read_text()
    assert [name for name in COMMANDS if f'"{name}"' not in text] == []
