"""The data set that the audit is measured on: simulated runs with faults on, half of 3 and half of 5 replicas.

Made once and kept under `build/` (not committed): the same seeds give the same bytes. It is made again when the
implementation's source changes, as the traces do then.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import shutil
import sys
from functools import partial
from pathlib import Path

import viewproof.impl as impl
from viewproof.impl.sim.run import simulate
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows

RUNS_A_FILE = 50
HALVES = ("first", "second")
"""Folders of the data set; each holds every other pair of runs."""


def data_set(root: Path, runs: int, requests: int, workers: int) -> Path:
    """The folder of the data set, made with `workers` processes unless it is there."""
    folder = root / f"runs-{runs}-{requests}-{_source_digest()}"
    if folder.exists():
        return folder
    for stale in root.glob(f"runs-{runs}-{requests}-*"):
        shutil.rmtree(stale)
    draft = root / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    sys.stderr.write(f"simulating {runs} runs of {requests} requests into {folder}\n")
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        results = list(pool.imap_unordered(partial(_simulate, draft, requests), range(runs), chunksize=8))
    failed = [name for name, good in results if not good]
    if failed:
        raise SystemExit(f"the simulator's own checkers failed on {', '.join(sorted(failed))}; not a data set to time")
    return draft.rename(folder)


def parquet_of(data: Path) -> Path:
    """The same events as Parquet, beside the data set: a directory, with one file, for each `RUNS_A_FILE` runs."""
    folder = data.with_name(data.name + "-parquet")
    if folder.exists():
        return folder
    for stale in data.parent.glob("runs-*-parquet"):
        shutil.rmtree(stale)
    draft = data.with_name("draft-parquet")
    shutil.rmtree(draft, ignore_errors=True)
    runs = sorted(run for half in HALVES for run in (data / half).iterdir())
    for number in range(0, len(runs), RUNS_A_FILE):
        part = draft / f"part-{number // RUNS_A_FILE:03}"
        part.mkdir(parents=True)
        files = [file for run in runs[number : number + RUNS_A_FILE] for file in sorted(run.glob("*.ndjson"))]
        write_parquet(
            (row for file in files for row in read_rows(str(file), ProblemLog())), str(part / "events.parquet")
        )
    return draft.rename(folder)


def _simulate(folder: Path, requests: int, seed: int) -> tuple[str, bool]:
    half, replicas = HALVES[seed // 2 % 2], (3, 5)[seed % 2]
    result = simulate(seed, replicas=replicas, requests=requests, out=folder / half)
    return result.run, result.ok


def _source_digest() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(Path(impl.__path__[0]).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
