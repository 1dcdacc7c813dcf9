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


def _simulate(folder: Path, requests: int, seed: int) -> tuple[str, bool]:
    half, replicas = HALVES[seed // 2 % 2], (3, 5)[seed % 2]
    result = simulate(seed, replicas=replicas, requests=requests, out=folder / half)
    return result.run, result.ok


def _source_digest() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(Path(impl.__path__[0]).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
