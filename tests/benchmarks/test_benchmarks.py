"""The benchmarks run and print what they say; no time is asserted."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.audit import HEADER, READING, ROWS, audit
from benchmarks.boot import HEADER as BOOT_HEADER
from benchmarks.boot import Row as BootRow
from benchmarks.boot import measure
from benchmarks.campaign import PROFILES, judged, profile_of, replay, replicas_of
from benchmarks.campaign import main as campaign
from benchmarks.cluster import HEADER as CLUSTER_HEADER
from benchmarks.cluster import Row, compare
from benchmarks.data import HALVES, data_set, parquet_of
from benchmarks.etcd import HEADER as ETCD_HEADER
from benchmarks.etcd import compare as next_to_etcd
from benchmarks.faults import spec_rows
from benchmarks.text import table
from benchmarks.watch import watch
from viewproof.refinement.cli import cli


def test_a_small_data_set_is_audited_and_shown(tmp_path: Path) -> None:
    data = data_set(tmp_path, runs=4, requests=5, workers=1)
    assert data_set(tmp_path, runs=4, requests=5, workers=1) == data
    assert [len(list((data / half).iterdir())) for half in HALVES] == [2, 2]
    parquet, rows = parquet_of(data), audit(ROWS, [str(data)])
    cells = audit("local", [str(data)], how="auto").cells("local", "ndjson", rows.speed)
    assert cells[:3] == ("local", "ndjson", "4")
    assert float(cells[HEADER.index("× rows")]) > 0
    for paths in ([str(data)], [str(parquet)]):
        assert audit(READING, paths).report["events"] == rows.report["events"]
    text = table(HEADER, [cells])
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert all(name in lines[0] for name in HEADER)


def test_a_watched_command_is_measured_with_its_children() -> None:
    child = "x = bytearray(80 << 20); import time; time.sleep(1.5)"
    parent = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {child!r}]).returncode + 3)"
    watched = watch([sys.executable, "-c", parent])
    assert watched.exit_code == 3
    assert watched.peak_mib > 80


def test_vsr_bench_measures_a_cluster_that_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = CliRunner().invoke(cli, ["bench", "--seconds", "0.5", "--clients", "4", "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "requests/s" in result.output
    assert "p99" in result.output
    assert json.loads(file.read_text())["clients"] == 4


def test_boots_are_measured_by_size() -> None:
    cells = dict(zip(BOOT_HEADER, measure(BootRow(ops=300, value_bytes=64, keys=2_000), repeat=1), strict=True))
    assert float(cells["journal MiB"]) > 0.05
    assert float(cells["snapshot MiB"]) > 0.05
    assert min(float(cells[name]) for name in ("open ms", "restore ms", "replay ms")) > 0


@pytest.mark.parametrize("mode", [pytest.param("group", marks=pytest.mark.long), "entry"])
def test_the_cluster_is_measured_next_to_pysyncobj(mode: str) -> None:
    pytest.importorskip("pysyncobj")
    cells = dict(zip(range(len(CLUSTER_HEADER)), compare(Row(mode, 8, 64), seconds=0.5, repeat=1), strict=True))
    named = [(CLUSTER_HEADER[column], cell) for column, cell in cells.items()]
    batches = [float(cell) for name, cell in named if name == "batch"]
    assert len(batches) == 2
    assert all(batch == 1 if mode == "entry" else batch >= 1 for batch in batches)
    assert all(float(cell.replace(",", "")) > 0 for name, cell in named if name in ("requests/s", "PySyncObj", "ratio"))


def test_the_table_of_faults_says_where_proofs_fail_and_what_rounds_find() -> None:
    action, lemma, count, _, rounds, broken, steps, _ = next(spec_rows(["commit.apply_at_replicate"], z3_only=True))[2:]
    assert (action, lemma, broken, rounds, steps) == ("`execute`", "I1", "I4", "1", "2")
    assert int(count) > 1
    assert set(next(spec_rows(["commit.fence_on_commit_max"], z3_only=True))[2:]) == {"–"}


def test_a_campaign_takes_all_profiles_in_turn_and_audits_each_run() -> None:
    assert {profile_of(seed) for seed in range(30_000, 30_000 + len(PROFILES))} == {*PROFILES}
    assert {replicas_of(seed) for seed in range(6 * len(PROFILES))} == {2, 3, 4, 5}
    crashes = PROFILES.index("crashes")
    result, verdict = judged(crashes, requests=10)
    assert result.ok
    assert (verdict.verdict, verdict.events) == ("conforms", result.events)
    assert "--profile crashes" in replay(crashes, 10)


def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    words = ["--seed", "5", "--requests", "4", "--state", str(state)]
    run = CliRunner().invoke(campaign, [*words, "--runs", "2", "--seconds", "0"])
    assert (run.exit_code, json.loads(state.read_text())["done"]) == (4, 0)
    run = CliRunner().invoke(campaign, [*words, "--runs", "1"])
    assert (run.exit_code, json.loads(state.read_text())["done"]) == (0, 1), run.output
    run = CliRunner().invoke(campaign, [*words, "--runs", "2"])
    kept = json.loads(state.read_text())
    assert run.exit_code == 0
    assert (kept["done"], sum(kept["verdicts"].values()), sum(kept["trees"].values())) == (2, 2, 2)
    assert "2 runs, seeds 5 to 6, 0 failed" in run.output
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.output.splitlines() if "|" in line]
    assert rows[0] == ["profile", "conforms", "inconclusive", "failed"]
    assert len(rows) == 5
    assert rows[-1] == ["all", "2", "0", "0"]
    name = profile_of(5)
    kept |= {
        "failed": [f"fails: {replay(5, 4)}"],
        "verdicts": kept["verdicts"] | {f"{name}:fails": 1, f"{name}:conforms": 0},
    }
    state.write_text(json.dumps(kept))
    assert CliRunner().invoke(campaign, [*words, "--runs", "2"]).exit_code == 1
    run = CliRunner().invoke(campaign, [*words, "--runs", "2", "--again"])
    again = json.loads(state.read_text())
    assert (run.exit_code, again["failed"], again["verdicts"][f"{name}:fails"]) == (0, [], 0)
    assert again["verdicts"][f"{name}:conforms"] == 1
    assert replay(5, 4) in again["mended"][0]
    assert "0 failed (1 more did so and no longer do)" in run.output
    other = CliRunner().invoke(campaign, ["--seed", "6", "--state", str(state)])
    assert other.exit_code == 2
    assert "runs from seed 5 with 4 requests" in other.output
    state.write_text("[]")
    assert "not what --state wrote" in CliRunner().invoke(campaign, words).output


@pytest.mark.long
@pytest.mark.skipif(shutil.which("go") is None, reason="etcd is built by Go")
def test_the_cluster_is_measured_next_to_etcd() -> None:
    cells = dict(zip(ETCD_HEADER, next_to_etcd(4, 64, 0.5, 1), strict=True))
    assert float(cells["ratio"]) > 0
