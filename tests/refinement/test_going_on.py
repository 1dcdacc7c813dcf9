"""An audit that goes on from a state has the report of one over all files, however the files are cut; a state that
cannot be used is refused by name, and an audit that is stopped leaves the state as it was.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.refinement.traces import change, simulated, without
from viewproof import audit, audit_from
from viewproof.api.audit import AuditOptionError
from viewproof.refinement.checker import advance, check_run
from viewproof.refinement.cli import cli
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import INDEX, TABLE, Row
from viewproof.refinement.verdict import AuditOptions, AuditReport, RunVerdict

PIECES = 101
NODE, SEQ, EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]


def line(row: Row, run: str) -> str:
    record = {column.name: value for column, value in zip(TABLE, row, strict=False) if value is not None}
    return json.dumps({**record, "run": run})


def write(folder: Path, rows: Sequence[Row], run: str = "r") -> list[Path]:
    """The rows as one file per replica."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for node in sorted({row[NODE] for row in rows}):
        files.append(folder / f"{run}-{node}.ndjson")
        files[-1].write_text("".join(line(row, run) + "\n" for row in rows if row[NODE] == node))
    return files


def plain(verdict: RunVerdict, places: dict[tuple[str, int], str]) -> Any:
    """A verdict without what depends on when and from which file it was read."""

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            for (file, number), place in places.items():
                value = value.replace(f"{file}:{number}", place) if file in value else value
            return value
        if isinstance(value, dict):
            if "file" in value and "line" in value:
                value = {**value, "file": places[value["file"], value["line"]], "line": 0}
            return {key: walk(one) for key, one in value.items()}
        return [walk(one) for one in value] if isinstance(value, list) else value

    return walk(json.loads(msgspec.json.encode(replace(verdict, seconds=0.0))))


def places_of(files: Sequence[Path]) -> dict[tuple[str, int], str]:
    """Each place of an event by the event itself; long names first."""
    found = {}
    for file in files:
        for number, text in enumerate(file.read_text().splitlines(), 1):
            record = json.loads(text)
            found[str(file), number] = f"<{record['node']}/{record['seq']}>"
    return dict(sorted(found.items(), key=lambda item: -item[0][1]))


def in_pieces(tmp_path: Path, pieces: Sequence[Sequence[Row]]) -> tuple[AuditReport, list[Path]]:
    """The report of the last of several audits, each with one piece's files."""
    files: list[Path] = []
    report = None
    for number, piece in enumerate(pieces):
        if piece:
            files += write(tmp_path / f"piece-{number}", piece)
            report = audit_from(tmp_path / "state", tmp_path / f"piece-{number}")
            assert not report.problems, report.problems
    assert report is not None
    return report, files


def compare(tmp_path: Path, rows: Sequence[Row], pieces: Sequence[Sequence[Row]]) -> RunVerdict:
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder)
    whole_files = write(tmp_path / "whole", rows)
    whole = audit(tmp_path / "whole")
    report, files = in_pieces(tmp_path, pieces)
    (one,), (other,) = whole.verdicts, report.verdicts
    assert plain(other, places_of(files)) == plain(one, places_of(whole_files))
    assert report.exit_code == whole.exit_code
    return one


def by_node_cuts(rows: Sequence[Row], cuts: Sequence[dict[int, int]]) -> list[list[Row]]:
    """The rows cut, per piece, at a seq of each node."""
    pieces: list[list[Row]] = [[] for _ in range(len(cuts) + 1)]
    for row in rows:
        at = next((n for n, cut in enumerate(cuts) if row[SEQ] <= cut.get(row[NODE], 0)), len(cuts))
        pieces[at].append(row)
    return pieces


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return simulated(tmp_path_factory.mktemp("run"), 3, replicas=3, requests=6)


def variants(rows: list[Row]) -> list[list[Row]]:
    """Good, with a line lost, and with a value changed so that it is refused."""
    at = next(n for n, row in enumerate(rows) if row[EVENT] == "on_prepare" and n > len(rows) // 2)
    rng, bad = random.Random(4), rows
    while audit_verdict(bad) != "violates":
        bad = change(rng, rows).rows
    return [rows, [*rows[:at], *rows[at + 1 :]], bad]


def audit_verdict(rows: Sequence[Row]) -> str:
    return check_run("r", list(rows), AuditOptions()).verdict


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_cut_in_two_the_report_is_the_same(good: list[Row], kind: int, tmp_path: Path) -> None:
    rows = variants(good)[kind]
    verdicts = {compare(tmp_path, rows, [rows[:at], rows[at:]]).verdict for at in range(7, len(rows), 29)}
    assert verdicts == {("conforms", "inconclusive", "violates")[kind]}


@pytest.mark.long
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_cut_at_every_event_the_report_is_the_same(good: list[Row], kind: int, tmp_path: Path) -> None:
    rows = variants(good)[kind]
    for at in range(1, len(rows)):
        compare(tmp_path, rows, [rows[:at], rows[at:]])


@pytest.mark.parametrize("seed", range(6))
def test_files_that_end_at_different_times_may_come_in_pieces(seed: int, good: list[Row], tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = good if seed % 2 else without(good, len(good) // 2)
    last = {node: max(row[SEQ] for row in rows if row[NODE] == node) for node in range(3)}
    pieces = rng.randint(1, 4)
    drawn = {node: sorted(rng.randint(0, top) for _ in range(pieces)) for node, top in last.items()}
    compare(tmp_path, rows, by_node_cuts(rows, [{node: drawn[node][n] for node in last} for n in range(pieces)]))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["good", "changed"])
def test_a_large_run_cut_at_a_hundred_places_the_report_is_the_same(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    rows = simulated(tmp_path / "run", 9, replicas=3, requests=600)
    if kind == "changed":
        rows = change(rng, rows).rows
    cuts = sorted(rng.sample(range(1, len(rows)), PIECES - 1))
    compare(tmp_path, rows, [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)])


@pytest.mark.long
def test_ten_daily_pieces_of_twenty_runs(tmp_path: Path) -> None:
    rng = random.Random(8)
    days: list[list[tuple[str, list[Row]]]] = [[] for _ in range(10)]
    for seed in range(20):
        rows = simulated(tmp_path / f"sim-{seed}", seed, replicas=3 + 2 * (seed % 2), requests=20)
        if seed % 4 == 1:
            rows = change(rng, rows).rows
        if seed % 4 == 2:
            rows = [row for row in rows if rng.random() > 0.01]
        write(tmp_path / "whole" / f"run-{seed}", rows, f"run-{seed}")
        cuts = sorted(rng.sample(range(len(rows)), 9))
        for day, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
            days[day].append((f"run-{seed}", rows[begin:end]))
    files: list[Path] = []
    for number, day in enumerate(days):
        for run, rows in day:
            files += write(tmp_path / f"day-{number}" / run, rows, run)
        report = audit_from(tmp_path / "state", tmp_path / f"day-{number}")
    whole = audit(tmp_path / "whole")
    whole_places = places_of(sorted((tmp_path / "whole").rglob("*.ndjson")))
    places = places_of(files)
    assert [plain(v, places) for v in report.verdicts] == [plain(v, whole_places) for v in whole.verdicts]
    assert len(report.verdicts) == 20


def test_a_file_that_was_taken_is_not_read_again_and_one_that_grew_goes_on(good: list[Row], tmp_path: Path) -> None:
    half = len(good) // 2
    said: list[str] = []
    state, folder = tmp_path / "state", tmp_path / "t"
    write(folder, good[:half])
    first = audit_from(state, folder)
    again = audit_from(state, folder, log=said.append)
    assert [replace(v, seconds=0.0) for v in again.verdicts] == [replace(v, seconds=0.0) for v in first.verdicts]
    assert said == ["3 files of these were taken before, and are not read again"]
    write(folder, good)
    grown = audit_from(state, folder)
    assert (grown.verdict, grown.events) == ("conforms", len(good))
    (folder / "r-0.ndjson").rename(folder / "r-0.ndjson.1")
    assert audit_from(state, folder).events == len(good)


def test_events_that_come_late_are_judged_in_their_place(good: list[Row], tmp_path: Path) -> None:
    """A replica's file comes a day after the others': the run is looked at again from its beginning."""
    late = [row for row in good if row[NODE] == 1]
    verdict = compare(tmp_path, good, [[row for row in good if row[NODE] != 1], late])
    assert verdict.verdict == "conforms"


def test_runs_without_new_events_stay_in_the_report(good: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "a", good, "a")
    write(tmp_path / "b", good, "b")
    audit_from(tmp_path / "state", tmp_path / "a")
    report = audit_from(tmp_path / "state", tmp_path / "b")
    assert [(v.run_id, v.verdict) for v in report.verdicts] == [("a", "conforms"), ("b", "conforms")]


def test_equal_states_have_equal_bytes(good: list[Row], tmp_path: Path) -> None:
    import msgspec

    from viewproof.refinement.verdict import AuditOptions

    once = advance("r", good, AuditOptions())
    assert once is not None
    first = advance("r", good[: len(good) // 2], AuditOptions())
    assert first is not None
    assert 0 < first.events < once.events
    twice = advance("r", good[first.events :], AuditOptions(), first)
    assert msgspec.msgpack.encode(once) == msgspec.msgpack.encode(twice)


def test_malformed_input_leaves_the_state_as_it_was(good: list[Row], tmp_path: Path) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    before = audit_from(tmp_path / "state", tmp_path / "a")
    kept = content(tmp_path / "state")
    files = write(tmp_path / "b", good[half:])
    files[0].write_text(files[0].read_text() + "{\n")
    said: list[str] = []
    assert audit_from(tmp_path / "state", tmp_path / "b", log=said.append).exit_code == 2
    assert "is as it was" in said[-1]
    assert content(tmp_path / "state") == kept
    write(tmp_path / "b", good[half:])
    assert audit_from(tmp_path / "state", tmp_path / "b").verdict == "conforms"
    assert before.events == half


def test_runs_whose_state_has_large_numbers_go_on(tmp_path: Path) -> None:
    """Partitions and consumers are numbered by the recorded run: by more than 64 bits together."""
    files = sorted(Path("traces/recorded/offsets.partition-0-1-2").iterdir())
    rows = sorted((row for file in files for row in read_rows(str(file), ProblemLog())), key=order_key)
    assert compare(tmp_path, rows, [rows[:300], rows[300:600], rows[600:]]).verdict == "conforms"


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_number_given_twice_is_malformed_as_in_one_pass(good: list[Row], tmp_path: Path) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    audit_from(tmp_path / "state", tmp_path / "a")
    write(tmp_path / "b", good[half - 3 :], "r")
    report = audit_from(tmp_path / "state", tmp_path / "b")
    assert report.exit_code == 2
    assert any(problem.field == "seq" for problem in report.problems)


@pytest.mark.parametrize("options", [{"allow": ["view.acks_survive_view"]}, {"without": ["m_commit"]}])
def test_a_state_of_other_options_is_refused(good: list[Row], options: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "a", good)
    audit_from(tmp_path / "state", tmp_path / "a")
    [(name, [value])] = options.items()
    with pytest.raises(AuditOptionError, match=f"of other options: --{name} was not given and is {value}; begin"):
        audit_from(tmp_path / "state", tmp_path / "a", **options)


def test_a_state_of_another_version_is_refused(
    good: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", good)
    audit_from(tmp_path / "state", tmp_path / "a")
    monkeypatch.setattr(import_module("viewproof.refinement.going_on.subject"), "FORMAT", "viewproof.audit-state/0")
    with pytest.raises(AuditOptionError, match="another version of the specification"):
        audit_from(tmp_path / "state", tmp_path / "a")


@pytest.mark.parametrize("name", ["index.json", "run-0.state-1", "run-0.log-1"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_state_is_refused_by_file(good: list[Row], name: str, damage: str, tmp_path: Path) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    audit_from(tmp_path / "state", tmp_path / "a")
    file = tmp_path / "state" / name
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    file.write_bytes(b"" if damage == "empty" else bytes(data[: -3 if damage == "cut" else None]))
    write(tmp_path / "b", good[:half], "x")  # a log is read only where events come late
    late = [row for row in good[half:] if row[NODE]]
    write(tmp_path / "c", late if name.startswith("index") else [good[0], *late])
    with pytest.raises(AuditOptionError, match=f"{name}: the state is damaged"):
        audit_from(tmp_path / "state", tmp_path / "c")


def test_what_is_no_state_directory_is_refused(good: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "a", good)
    with pytest.raises(AuditOptionError, match="expected an empty directory, or the state of an audit; found r-0"):
        audit_from(tmp_path / "a", tmp_path / "a")
    with pytest.raises(AuditOptionError, match="expected a directory to keep the state in"):
        audit_from(tmp_path / "a" / "r-0.ndjson", tmp_path / "a")


def test_two_audits_at_once_are_refused(good: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "a", good)
    (tmp_path / "state").mkdir()
    with (tmp_path / "state" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AuditOptionError, match="another audit is using it"):
            audit_from(tmp_path / "state", tmp_path / "a")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--workers", "2"], "--workers"),
        (["--interp"], "--interp"),
        (["--input", "tigerbeetle"], "logs of tigerbeetle"),
        (["--adapter", "oxia"], "which are read together"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(words: list[str], what: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["audit", str(tmp_path), "--state", str(tmp_path / "state"), *words])
    assert done.exit_code == 2
    assert what in done.stderr
    assert not (tmp_path / "state").exists()


def test_the_command_goes_on(good: list[Row], tmp_path: Path) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    write(tmp_path / "b", good[half:])
    for folder in ("a", "b"):
        done = CliRunner().invoke(cli, ["audit", str(tmp_path / folder), "--state", str(tmp_path / "state")])
        assert done.exit_code == 0
    assert f"({len(good):,} events, as before)" in done.stdout
    done = CliRunner().invoke(cli, ["audit", str(tmp_path / "a"), "--state", str(tmp_path / "a")])
    assert done.exit_code == 2
    assert "expected an empty directory" in done.stderr


def test_what_is_new_today_is_said_and_old_stories_are_not_told_again(good: list[Row], tmp_path: Path) -> None:
    words = ["audit", "--state", str(tmp_path / "state")]
    bad = variants(good)[2]
    write(tmp_path / "a", bad, "bad")
    write(tmp_path / "a", good[: len(good) // 2], "good")
    write(tmp_path / "b", good[len(good) // 2 :], "good")
    write(tmp_path / "b", good, "late")
    first = CliRunner().invoke(cli, [*words, str(tmp_path / "a")])
    assert "since the state: 2 new" in first.stdout
    assert "accepted before it:" in first.stdout
    second = CliRunner().invoke(cli, [*words, str(tmp_path / "b")])
    assert second.exit_code == first.exit_code == 1
    assert ", as before)" in second.stdout
    assert f"conforms     late  ({len(good):,} events, new)" in second.stdout
    assert "accepted before it:" not in second.stdout
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 1
    assert "since the state: 3 as before; --why tells the old ones again" in shown.stdout
    assert "accepted before it:" in CliRunner().invoke(cli, [*words, "--why"]).stdout
    (tmp_path / "none").mkdir()
    refused = CliRunner().invoke(cli, ["audit", "--state", str(tmp_path / "none")])
    assert (refused.exit_code, "there is no state yet" in refused.stderr) == (2, True)


def test_an_audit_that_is_stopped_leaves_the_state_as_it_was(
    good: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    audit_from(tmp_path / "state", tmp_path / "a")
    kept = (tmp_path / "state" / "index.json").read_bytes()
    write(tmp_path / "b", good[half:])

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("viewproof.refinement.going_on.directory.Directory.new_number", stop)
        report = audit_from(tmp_path / "state", tmp_path / "b")
    assert "the same command goes on from it" in report.stopped
    assert (tmp_path / "state" / "index.json").read_bytes() == kept
    assert audit_from(tmp_path / "state", tmp_path / "b").verdict == "conforms"


KILLED = """
import os, signal, sys
from viewproof import audit, audit_from
from viewproof.refinement.going_on.directory import Directory
calls = 0
def dies(self, *args, of=None):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(Directory, sys.argv[3], dies)
audit_from(sys.argv[2], sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["new_number", "commit", "sweep"])
def test_a_kill_at_any_moment_leaves_one_state_or_the_other(good: list[Row], moment: str, tmp_path: Path) -> None:
    half = len(good) // 2
    write(tmp_path / "a", good[:half])
    audit_from(tmp_path / "state", tmp_path / "a")
    write(tmp_path / "b", good[half:])
    words = [sys.executable, "-c", KILLED, tmp_path / "b", tmp_path / "state", moment]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": os.getcwd()}, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert audit_from(tmp_path / "state", tmp_path / "b").verdict == "conforms"
    assert len(list((tmp_path / "state").glob("run-*"))) == 2
