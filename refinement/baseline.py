"""Known violations: causes that a gate lets pass, so that only new ones stop it.

A baseline is a JSON file that `--write-baseline` makes and people keep beside their traces' configuration:

    {"format": "viewproof.baseline/1",
     "known": [{"cause": "5d1f…", "rule_id": "I7", "action": "on_prepare", "example": "…", "runs": "*", "reason": ""}]}

`cause` is the violation's (`cause_of`): the rule, its text, and the event that broke it; the values and the place are
not part of it. `runs` is a pattern of run ids (`nightly-*`), `reason` is for people. A run that violates as known is
judged up to there and no further: what comes after it may be anything, and the report says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

FORMAT = "viewproof.baseline/1"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known cause of violations, in the runs whose id the pattern `runs` fits."""

    cause: str
    rule_id: str
    action: str
    example: str = ""
    runs: str = "*"
    reason: str = ""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The known causes, in the order of the file."""

    format: str
    known: tuple[Known, ...]

    def find(self, cause: str, run_id: str) -> Known | None:
        """The entry that knows this cause in this run, if any does."""
        return next((k for k in self.known if k.cause == cause and fnmatchcase(run_id, k.runs)), None)


class BaselineError(ValueError):
    """The file is no baseline: which, and what was expected."""


def cause(rule_id: str, rule: str, action: str) -> str:
    """The cause of a violation as 32 hexadecimal digits, of the rule (its fingerprint) and the event that broke it."""
    identity = "|".join((rule_id, rule, action))
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()


def read(file: Path) -> Baseline:
    """The baseline in a file. Raises `BaselineError` for a file that is none."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Baseline)
    except OSError as error:
        raise BaselineError(f"{file}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"{file}: expected a baseline ({FORMAT}): {error}") from None
    if found.format != FORMAT:
        raise BaselineError(f"{file}: format: expected {FORMAT}, got {found.format}")
    return found


def write(file: Path, known: Iterable[Known]) -> None:
    """Write a baseline, each cause once."""
    once = {(one.cause, one.runs): one for one in known}
    data = msgspec.json.encode(Baseline(FORMAT, tuple(once.values())))
    file.write_bytes(msgspec.json.format(data, indent=2) + b"\n")


def merged(kept: Baseline | None, found: Iterable[Known]) -> Iterator[Known]:
    """The entries that are kept, then the causes that none of them knows."""
    old = kept.known if kept else ()
    yield from old
    causes = {one.cause for one in old if one.runs == "*"}
    yield from (one for one in found if one.cause not in causes)
