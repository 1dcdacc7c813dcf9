"""Files that nobody should give: data directories, traces, logs and configurations, mutated at random.

Each is given to what reads such files; whatever is wrong with it must be told by an error of that reader's own. What
comes through counts as `taken`, what was refused as `refused`; anything else is raised.
"""

from __future__ import annotations

import contextlib
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import zstandard
from click.testing import CliRunner

from tests.impl.damage import DamagedLink
from tests.impl.test_segment_transfer import left_behind
from viewproof.impl.interface.durable import BootRefusedError
from viewproof.impl.machine.snapshot import SnapshotError
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.settings import SettingsError
from viewproof.impl.net.settings_files import resolve
from viewproof.impl.net.tls import Tls, TlsError
from viewproof.impl.replica import Replica
from viewproof.impl.storage.data_file import open_data_file
from viewproof.impl.storage.file import MemoryFileSystem, StorageError
from viewproof.impl.storage.inspect import inspect_data_file
from viewproof.impl.storage.recover import diagnose
from viewproof.refinement.cli import cli
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows

ROOT = Path(__file__).resolve().parents[2]
STEADY = ROOT / "traces" / "recorded" / "steady" / "replica-1.ndjson"
REAL = ROOT.parent / "shared" / "traces" / "real"
LOGS: tuple[tuple[str, tuple[str, str], str], ...] = (
    ("iggy/simulator/one-1-s22.log.zst", ("--adapter", "iggy"), "l.log"),
    ("iggy/server/calm.log.zst", ("--adapter", "iggy"), "l.log"),
    ("oxia/calm.ndjson.zst", ("--adapter", "oxia"), "l.ndjson"),
    ("tigerbeetle-2022-06/seed-12.log.zst", ("--input", "tigerbeetle"), "l.log"),
    ("tigerbeetle-2026-07/seed-118.log.zst", ("--input", "tigerbeetle"), "l.log"),
)
"""Logs of other systems, which lie outside of the repository; how each is audited, and a name for a part of it."""
LOG_LINES = 600
FAILED = "VSR_DEBUG=1"
"""What a command says when it ends by an error that is none of its own."""

NUMBERS = tuple(
    sign * (1 << bits) + off for sign in (1, -1) for bits in (0, 7, 31, 32, 53, 62, 63, 64) for off in (-1, 0)
)
WORDS = (
    b"",
    b"null",
    b"true",
    b"{}",
    b"[[]]",
    b'""',
    b"NaN",
    b"-0",
    b"1e400",
    b"\xff\xfe",
    b"\0",
    b"[" * 2000,
    b'"\\ud800"',
)
CONFIGURATION = b"""
[cluster]
id = 7
addresses = "127.0.0.1:4000,127.0.0.1:4001"
checkpoint_interval = 100
[replica]
data = "d"
index = 0
tick_seconds = 0.01
[network]
clients_max = 10
[trace]
run = "r"
"""


def mutated(data: bytes, random: Random) -> bytes:
    """The same with one to four changes of bytes, of a word, of a number, or of its length."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at, kind = random.randrange(len(content) + 1), random.randrange(9)
        length = min(random.choice((1, 2, 4, 8, 16, 512, 4096)), len(content) - at)
        if kind == 0:
            content[at : at + length] = random.randbytes(length)
        elif kind == 1 and length:
            content[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            content[at : at + length] = bytes(length)
        elif kind == 3:
            content[at : at + 8] = (random.choice(NUMBERS) % (1 << 64)).to_bytes(8, random.choice(("big", "little")))
        elif kind == 4:
            del content[at : at + length]
        elif kind == 5:
            content[at:at] = content[at - length : at]
        elif kind == 6:
            del content[at:]
        elif kind == 7:
            _replace_token(content, at, random)
        else:
            content += random.randbytes(length)
    return bytes(content)


def _replace_token(content: bytearray, at: int, random: Random) -> None:
    """What stands between two separators of a text is something else."""
    ends = [found for mark in b",:=}\n" if (found := content.find(mark, at)) >= 0]
    start = max((content.rfind(mark, 0, at) for mark in b",:={\n"), default=-1) + 1
    new = random.choice(WORDS) if random.random() < 0.5 else str(random.choice(NUMBERS)).encode()
    content[start : min(ends, default=len(content))] = new


class Directories:
    """Data directories with an append-only journal, with a ring, and with segments of messages."""

    def __init__(self) -> None:
        link, ring, segments = DamagedLink(), DamagedLink(ring=True), left_behind()
        for each in (link, ring):
            for number in range(12):
                each.ask(number % 3 + 1)
        self._samples = [
            ({path: bytes(file.content) for path, file in each.file_storages[node].files.files.items()}, each.config)
            for each, node in ((link, 2), (ring, 2), (segments, 0))
        ]

    def one(self, random: Random) -> bool:
        """True if a replica starts on it."""
        chosen, config = random.choice(self._samples)
        sample = dict(chosen)
        for name in random.sample(sorted(sample), random.choice((1, 1, 2))):
            if random.random() < 0.05:
                del sample[name]
            else:
                other = random.choice(list(sample.values())) if random.random() < 0.05 else sample[name]
                sample[name] = mutated(other, random)

        def files() -> MemoryFileSystem:
            found = MemoryFileSystem()
            for path, content in sample.items():
                file = found.create(path)
                file.content, file.durable = bytearray(content), bytearray(content)
            return found

        for look in (diagnose, inspect_data_file):
            with contextlib.suppress(StorageError):
                look("d", files())
        try:
            data = open_data_file("d", file_system=files())
            Replica(data.durable_state(), replace(config, nonce=1), source=data.segments).boot()
        except (StorageError, SnapshotError, BootRefusedError):
            return False
        return True


def _beginning(path: Path) -> bytes:
    """The first lines of a packed log."""
    with zstandard.open(path, "rb") as file:
        return b"".join(islice(io.BufferedReader(file), LOG_LINES))


class Inputs:
    """Traces in each form, and logs, as `vsr audit` reads them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        lines = b"".join(STEADY.read_bytes().splitlines(keepends=True)[:12])
        plain = directory / "plain.ndjson"
        plain.write_bytes(lines)
        write_parquet(read_rows(str(plain), ProblemLog()), str(directory / "packed.parquet"))
        self._samples = {
            "t.ndjson": lines,
            "t.ndjson.gz": gzip.compress(lines),
            "t.ndjson.zst": zstandard.compress(lines),
            "t.parquet": (directory / "packed.parquet").read_bytes(),
        }
        self._logs = [(words, name, _beginning(REAL / path)) for path, words, name in LOGS if (REAL / path).exists()]
        plain.unlink()
        (directory / "packed.parquet").unlink()

    def one(self, random: Random) -> bool:
        """True if nothing is wrong with its lines."""
        name, data = random.choice(list(self._samples.items()))
        path = self._directory / name
        path.write_bytes(self._changed(name, data, random))
        log = ProblemLog()
        rows = sum(1 for _ in read_rows(str(path), log))
        path.unlink()
        return rows > 0 and not log.problems

    def _changed(self, name: str, data: bytes, random: Random) -> bytes:
        """Half of what is packed is changed inside."""
        if name.endswith("parquet") or random.random() < 0.5:
            return mutated(data, random)
        inside = mutated(self._samples["t.ndjson"], random)
        pack: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}
        return pack.get(name.rpartition(".")[2], bytes)(inside)

    def commands(self, random: Random) -> bool:
        """The same through the command, as one kind of input or another, and logs; True if it was judged."""
        words: list[str]
        if self._logs and random.random() < 0.5:
            chosen, name, data = random.choice(self._logs)
            words, content = list(chosen), mutated(data, random)
        else:
            name, data = random.choice(list(self._samples.items()))
            content = self._changed(name, data, random)
            kinds = ([], [], ["--adapter", "iggy"], ["--adapter", "oxia"], ["--input", "tigerbeetle"], ["--baseline"])
            words = list(random.choice(kinds))
        path = self._directory / name
        path.write_bytes(content)
        if words == ["--baseline"]:
            words.append(str(STEADY if random.random() < 0.1 else path))
        result = CliRunner().invoke(cli, ["audit", str(path), *words])
        path.unlink()
        if FAILED in result.output or result.exit_code not in (0, 1, 2, 4):
            raise AssertionError(f"{words}: {result.exit_code}: {result.output}") from result.exception
        return result.exit_code != 2


class Settings:
    """Files of configuration, and certificates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        issue_cluster(directory / "tls", 7, [("127.0.0.1", 4000)])
        self._pem = {path.name: path.read_bytes() for path in (directory / "tls" / "replica-0").iterdir()}
        (directory / "given").mkdir()

    def one(self, random: Random) -> bool:
        """True if it is taken."""
        if random.random() < 0.2:
            return self._certificates(random)
        path = self._directory / "c.toml"
        path.write_bytes(mutated(CONFIGURATION, random))
        try:
            resolve(path, {}, {})
        except SettingsError:
            return False
        return True

    def _certificates(self, random: Random) -> bool:
        given = dict(self._pem)
        name = random.choice(list(given))
        given[name] = mutated(given[random.choice(list(given))], random)
        for each, content in given.items():
            (self._directory / "given" / each).write_bytes(content)
        try:
            Tls(self._directory / "given")
        except TlsError:
            return False
        return True


SHARES = {"data directories": 50, "traces": 35, "commands": 5, "settings": 10}
"""Percent of the files that are of each kind."""


def read_all(directory: Path, seed: int, count: int) -> Counter[str]:
    """So many files in all; how many of each kind were taken and refused."""
    inputs, settings = Inputs(directory), Settings(directory)
    kinds: dict[str, Callable[[Random], bool]] = {
        "data directories": Directories().one,
        "traces": inputs.one,
        "commands": inputs.commands,
        "settings": settings.one,
    }
    outcomes: Counter[str] = Counter()
    for kind, number in _plan(count):
        random = Random(f"{seed} {kind} {number}")
        try:
            taken = kinds[kind](random)
        except Exception as error:
            raise AssertionError(f"{kind}, seed {seed}, number {number}: {type(error).__name__}: {error}") from error
        outcomes[f"{kind}: {'taken' if taken else 'refused'}"] += 1
    return outcomes


def _plan(count: int) -> Iterator[tuple[str, int]]:
    for kind, share in SHARES.items():
        for number in range(count * share // 100):
            yield kind, number
