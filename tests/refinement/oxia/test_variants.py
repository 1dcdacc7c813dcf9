"""Logs of real servers as they may come: a coordinator's clock that is behind, missing files, files that end early."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.refinement.real_logs import OXIA, needs, unpacked, verdict

TIME = re.compile(r'"time": ?"([^".]+)\.(\d+)Z"')
Change = Callable[[str, list[str]], list[str]]


def earlier(line: str, seconds: float) -> str:
    """The line with a time before its own."""
    found = TIME.search(line)
    if found is None:
        return line
    at = datetime.fromisoformat(f"{found[1]}.{found[2][:6]}") - timedelta(seconds=seconds)
    return TIME.sub(f'"time": "{at.isoformat(timespec="microseconds")}Z"', line, count=1)


def behind(name: str, own: list[str]) -> list[str]:
    """The coordinator's clock is behind."""
    return [earlier(line, 1.5) for line in own] if name == "coordinator" else own


def without(name: str, own: list[str]) -> list[str]:
    """The leader's file is missing."""
    return [] if name == "s2" else own


def early(name: str, own: list[str]) -> list[str]:
    """A follower's file ends in the midst."""
    return own[: len(own) // 2] if name == "s1" else own


def copied(name: str, own: list[str]) -> list[str]:
    """The files were copied one after the other, within a second: that of the leader first."""
    return own[: -60 if name == "s2" else -20]


@needs(OXIA)
@pytest.mark.parametrize("change", [behind, without, early, copied], ids=lambda change: str(change.__name__))
def test_a_sound_log_is_not_refused(change: Change, tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {}
    for line in unpacked(OXIA / "calm.ndjson.zst"):
        fields = json.loads(line)
        lines.setdefault(fields.pop("node"), []).append(json.dumps(fields))
    for name, own in lines.items():
        if name != "harness" and (kept := change(name, own)):
            (tmp_path / f"{name}.log").write_text("\n".join(kept) + "\n")
    found = verdict("oxia", *sorted(tmp_path.iterdir()))
    assert (found.verdict, bool(found.missing)) == ("inconclusive", True)


@needs(OXIA)
def test_a_log_below_debug_level_says_so(tmp_path: Path) -> None:
    file = tmp_path / "one.ndjson"
    lines = unpacked(OXIA / "kill-s2.ndjson.zst")
    file.write_text("\n".join(line for line in lines if json.loads(line).get("level") != "debug") + "\n")
    found = verdict("oxia", file)
    assert found.verdict == "inconclusive"
    assert any("debug level" in text for text in found.missing)


def files_of(folder: Path, log: str, together: dict[str, str]) -> list[Path]:
    """A file per server of a log, or one of several: the name of the file of each. Nobody is named in them."""
    for line in unpacked(OXIA / log):
        fields = json.loads(line)
        if name := together.get(fields.pop("node")):
            with (folder / f"{name}.log").open("a") as file:
                file.write(json.dumps(fields).replace("127.0.0.1:6811", "0.0.0.0:1") + "\n")
    return sorted(folder.iterdir())


@needs(OXIA)
@pytest.mark.parametrize(
    "together",
    [
        {"coordinator": "c"},
        {"coordinator": "c", "s1": "s1"},
        {"coordinator": "c", "s2": "s2"},
        {"coordinator": "c", "s1": "a", "s2": "a", "s3": "a"},
        {"coordinator": "c", "s2": "a", "s3": "a"},
    ],
    ids=lambda together: " ".join(f"{name}:{file}" for name, file in together.items()),
)
def test_servers_that_have_no_file_of_their_own_are_not_accused(together: dict[str, str], tmp_path: Path) -> None:
    """Nor is the coordinator, whose elections nobody answers then."""
    found = verdict("oxia", *files_of(tmp_path, "kill-s2.ndjson.zst", together))
    assert (found.verdict, found.violations) == ("inconclusive", ())


@needs(OXIA)
@pytest.mark.parametrize("order", ["reversed", "twice", "pieces", "doubled"])
def test_lines_that_are_not_in_their_order_accuse_nobody(order: str, tmp_path: Path) -> None:
    """Although each says who printed it."""
    lines = unpacked(OXIA / "calm.ndjson.zst")[:1200]
    moved = {"reversed": lines[::-1], "twice": lines * 2, "pieces": [*lines[:300], *lines[800:], *lines[300:800]]}
    moved["doubled"] = [line for line in lines for _ in range(2)]
    file = tmp_path / "one.ndjson"
    file.write_text("\n".join(moved[order]) + "\n")
    found = verdict("oxia", file)
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert "the order of the lines in" in found.missing[0] or "there twice" in found.missing[0]
