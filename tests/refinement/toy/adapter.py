"""The adapter of the toy replica: its lines as events of ours (`--adapter tests.refinement.toy.adapter:TOY`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from viewproof.refinement.adapter import Adapter, Record

EVENTS = {
    "up": "start",
    "asked": "on_request",
    "took": "on_prepare",
    "kept": "append",
    "voted": "prepare_ok",
    "counted": "on_prepare_ok",
    "agreed": "commit",
    "tells": "send_commit",
    "heard": "on_commit",
    "applied": "execute",
}
"""Their word → our event."""
TYPES = {"asked": "request", "took": "prepare", "voted": "prepare_ok", "counted": "prepare_ok"} | {
    "tells": "commit",
    "heard": "commit",
}
MESSAGES = {"asked", "took", "voted", "counted", "tells", "heard"}
NAMES = {"op": "m_op", "client": "m_client", "number": "m_request", "hash": "m_checksum", "prev": "m_parent"} | {
    "told": "m_commit",
    "answer": "m_reply",
}
"""Their key → our column, where it is about the message or the entry."""


def name(checksum: str) -> str:
    """They write "-" for no entry."""
    return "" if checksum == "-" else checksum


def records(file: str) -> Iterator[tuple[int, Record | None]]:
    """The events of a log, each with its line; None for a line that is none."""
    with open(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                continue
            words = line.split()
            known = len(words) > 3 and words[3] in EVENTS
            yield number, event(Path(file).stem, words) if known else None


def event(run: str, words: list[str]) -> Record:
    """One line as an event."""
    time, node, seq, what = words[:4]
    keys = dict(word.split("=", 1) for word in words[4:])
    shown: dict[str, Any] = {NAMES[key]: value for key, value in keys.items() if key in NAMES}
    for column in ("m_checksum", "m_parent"):
        if column in shown:
            shown[column] = name(shown[column])
    for column in ("m_op", "m_client", "m_request", "m_commit"):
        if column in shown:
            shown[column] = int(shown[column])
    if what in MESSAGES:
        shown |= {"m_type": TYPES[what], "m_view": 0}
    if what == "asked":
        shown["m_commit"] = int(keys["known"])
    if what == "applied" and node == "node0":
        shown["m_type"] = "reply"
    if "via" in keys:
        sender, line = keys["via"].split(":")
        shown |= {"m_from": int(sender), "m_seq": int(line)}
    if what == "up":
        shown |= {"replicas": int(keys["nodes"])}
        shown |= dict.fromkeys(("quorum_replication", "quorum_view_change"), int(keys["majority"]))
    return {
        "run": run,
        "node": int(node.removeprefix("node")),
        "seq": int(seq),
        "clock": int(time),
        "event": EVENTS[what],
        "status": "normal",
        "op": int(keys["top"]),
        "head": name(keys["head"]),
        **dict.fromkeys(("view", "log_view", "durable_view", "durable_log_view"), 0),
        "commit_min": int(keys["applied"]),
        "commit_max": int(keys["known"]),
        "digest": keys["sum"],
        **shown,
    }


TOY = Adapter("toy", "logs of the toy replica", suffixes=(".toy",), records=records)
