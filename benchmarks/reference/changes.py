"""What `vsr diff-audit` writes with `--json`."""

from __future__ import annotations

from typing import Literal, TypedDict


class RunTold(TypedDict):
    """What a side says of a run: what refuses it first (`by` in words, its `place`), or what is missing."""

    verdict: str
    by: str
    rule_id: str
    action: str
    place: str
    fingerprint: str
    message: str
    at: str


class RunChanged(TypedDict):
    """A run of which the sides say different things; null: a side has no such run."""

    run_id: str
    old: RunTold | None
    new: RunTold | None


class ChangeCause(TypedDict):
    """The runs that change their verdict in the same way by the same guard."""

    verdicts: str
    by: str
    runs: list[str]


class DiffAudit(TypedDict):
    """`vsr diff-audit OLD NEW TRACES`. `judged`: how many runs each side judged; `reused`: why one side judged none."""

    format: Literal["viewproof.diff-audit/1"]
    old: str
    new: str
    traces: list[str]
    runs: int
    judged: dict[str, int]
    reused: str
    changed: list[RunChanged]
    causes: list[ChangeCause]
    exit_code: Literal[0, 1, 2, 4]
