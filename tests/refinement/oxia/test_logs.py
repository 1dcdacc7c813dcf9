"""Oxia's logs: lines as its servers and its coordinator print them, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.refinement.real_logs import OXIA, judged, needs, verdict

SERVERS = [{"name": f"s{i}", "internal": f"127.0.0.1:681{i}"} for i in (1, 2, 3)]
LEADER, FOLLOWER, CURSOR, SHARD = "leader-controller", "follower-controller", "follower-cursor", "shard-controller"


class Shard:
    """Prints lines of three servers and a coordinator, merged."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def line(self, node: str, component: str, message: str, **fields: Any) -> None:
        """One line, a millisecond after the one before."""
        at = f"2026-11-28T10:00:00.{len(self.lines):03}Z"
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.lines.append(
            {
                "time": at,
                "node": node,
                "component": component,
                "namespace": "default",
                "shard": 0,
                "message": message,
                **named,
            }
        )

    def elect(self, term: int, leader: str, heads: dict[str, tuple[int, int]], *, led: bool = True) -> None:
        """The servers of `heads` answer a new term with these entries, and one leads."""
        self.line("coordinator", SHARD, "refresh the shard ensemble dataServer address", new_ensemble=SERVERS)
        for server, (t, o) in heads.items():
            self.line(
                server, FOLLOWER, "Follower successfully initialized in new term", term=term, last_entry=_entry(t, o)
            )
        chosen = next(s for s in SERVERS if s["name"] == leader)
        self.line("coordinator", SHARD, "Successfully moved ensemble to a new term", term=term, new_leader=chosen)
        self.line(leader, "internal-rpc-server", "Received BecomeLeader request", request={"term": str(term)})
        for server, (t, o) in heads.items():
            if server != leader:
                where = {"follower": _address(server), "follower_head_entry": _entry(t, o)}
                self.line(leader, LEADER, "Added follower", term=term, **where)
        if led:
            self.line(leader, LEADER, "Started leading the shard", term=term, head_offset=heads[leader][1])

    def write_entry(self, term: int, leader: str, offset: int, commit: int, followers: tuple[str, ...]) -> None:
        """A proposal goes to followers, which take and acknowledge it."""
        self.line(leader, LEADER, "Appending proposal to WAL", term=term, offset=offset)
        for server in followers:
            self.line(
                leader, CURSOR, "Sending entries to follower", term=term, follower=_address(server), offset=offset
            )
            self.line(server, FOLLOWER, "Add entry", offset=offset, commit_offset=commit)
            self.line(leader, CURSOR, "Received ack", term=term, follower=_address(server), offset=offset)

    def write(self, folder: Path) -> Path:
        """The lines as a file."""
        file = folder / "shard.ndjson"
        file.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return file


def _entry(term: int, offset: int) -> dict[str, str]:
    return {"term": str(term), "offset": str(offset)}


def _address(server: str) -> str:
    return next(s["internal"] for s in SERVERS if s["name"] == server)


NONE = (-1, -1)


def calm() -> Shard:
    """An election, three entries to both followers, which apply the first."""
    shard = Shard()
    shard.elect(1, "s1", {"s1": NONE, "s2": NONE, "s3": NONE})
    for offset in range(3):
        shard.write_entry(1, "s1", offset, offset - 1, ("s2", "s3"))
    for server in ("s2", "s3"):
        shard.line(server, FOLLOWER, "Apply committed entries", min_exclusive=-1, max_inclusive=1, head_offset=2)
        shard.line(server, FOLLOWER, "Reading entry", offset=0)
    return shard


def test_a_calm_log_is_not_refused(tmp_path: Path) -> None:
    found = verdict("oxia", calm().write(tmp_path))
    assert found.verdict == "inconclusive"
    assert found.coverage["commit"] == 3
    assert all("may be taken without a line" in text for text in found.missing)


def test_a_later_term_goes_on_and_a_leader_that_lacks_entries_is_refused(tmp_path: Path) -> None:
    shard = calm()
    shard.elect(2, "s3", {"s2": (1, 2), "s3": (1, 2)})
    assert verdict("oxia", shard.write(tmp_path)).verdict == "inconclusive"
    shard = Shard()
    shard.elect(1, "s1", {"s1": NONE, "s2": NONE, "s3": NONE})
    shard.write_entry(1, "s1", 0, -1, ("s2",))
    shard.elect(2, "s3", {"s2": (1, 0), "s3": NONE})
    found = verdict("oxia", shard.write(tmp_path)).violations[0]
    assert (found.action, found.rule_id.partition("/")[0]) == ("elect", "elect")


def test_a_server_that_comes_back_without_what_it_acknowledged_is_refused(tmp_path: Path) -> None:
    shard = calm()
    shard.lines.insert(0, {"time": "2026-11-28T09:00:00Z", "node": "s2", "message": "Starting Oxia dataServer"})
    shard.line("s2", "", "Starting Oxia dataServer")
    shard.line("s2", FOLLOWER, "Created follower", term=1, head_offset=1, commit_offset=-1)
    assert verdict("oxia", shard.write(tmp_path)).violations[0].action == "restart"


@pytest.mark.parametrize(
    ("at", "field", "value"),
    [
        ("Appending proposal to WAL", "offset", 1),
        ("Received ack", "offset", 1),
        ("Add entry", "commit-offset", 1),
        ("Reading entry", "offset", 2),
        ("Apply committed entries", "max-inclusive", 2),
        ("Started leading the shard", "head-offset", 0),
        ("Appending proposal to WAL", "term", 2),
    ],
)
def test_a_line_that_says_something_else_is_refused(tmp_path: Path, at: str, field: str, value: Any) -> None:
    shard = calm()
    next(line for line in shard.lines if line["message"] == at)[field] = value
    assert verdict("oxia", shard.write(tmp_path)).verdict == "violates"


def test_two_leaders_of_a_term_are_refused(tmp_path: Path) -> None:
    shard = calm()
    shard.line("s2", "internal-rpc-server", "Received BecomeLeader request", request={"term": "1"})
    assert verdict("oxia", shard.write(tmp_path)).violations[0].line == len(shard.lines)


def test_bad_lines_are_named_with_file_line_and_field(tmp_path: Path) -> None:
    shard = calm()
    file = shard.write(tmp_path)
    text = file.read_text().replace('"offset": 0', '"offset": "x"', 1) + "{nonsense\n"
    file.write_text(text)
    problems = judged("oxia", file).problems
    assert [p.field for p in problems] == ["", "offset"]
    assert problems[0].line == len(shard.lines) + 1


def test_without_an_ensemble_a_log_is_neither_refused_nor_an_error(tmp_path: Path) -> None:
    """Of a server that follows alone, nothing shows who else there is; a log that begins late shows no server."""
    shard = calm()
    shard.lines = [line for line in shard.lines if line["node"] == "s2"]
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, len(found.missing), "ensemble" in found.missing[0]) == ("inconclusive", 1, True)


@pytest.mark.parametrize("factor", [2, 3])
def test_a_leader_names_its_ensemble(factor: int, tmp_path: Path) -> None:
    shard = calm()
    shard.lines = [line for line in shard.lines if line["node"] == "s1"]
    start = {"server": {"internal": {"bindAddress": _address("s1")}}}
    others = {_address(server): _entry(*NONE) for server in ("s2", "s3")}
    request = {"term": "1", "replicationFactor": factor, "followerMaps": others}
    shard.line("s1", "", "Starting Oxia dataServer", options=start)
    shard.lines.insert(0, shard.lines.pop())
    for line in shard.lines:
        if line["message"] == "Received BecomeLeader request":
            line["request"] = request
    found = verdict("oxia", shard.write(tmp_path))
    assert found.verdict == "inconclusive"
    assert bool(found.events) == (factor == 3)


def test_an_unknown_line_of_a_controller_is_counted_and_leaves_the_run_inconclusive(tmp_path: Path) -> None:
    shard = calm()
    shard.line("s2", FOLLOWER, "Something else", offset=7)
    found = verdict("oxia", shard.write(tmp_path))
    assert "1 lines of the protocol that no pattern knows" in found.missing
    assert any("follower-controller: Something else" in note for note in found.notes)


def test_after_a_snapshot_a_server_is_not_known_until_its_lines_show_it(tmp_path: Path) -> None:
    shard = calm()
    for offset in range(3, 6):
        shard.write_entry(1, "s1", offset, offset - 1, ("s3",))
    shard.line("s2", FOLLOWER, "Installed snapshot")
    shard.write_entry(1, "s1", 6, 5, ("s3",))
    shard.line("s1", CURSOR, "Successfully attached cursor follower", follower=_address("s2"), term=1)
    shard.line("s1", CURSOR, "Sending entries to follower", term=1, follower=_address("s2"), offset=6)
    shard.line("s2", FOLLOWER, "Add entry", offset=6, commit_offset=5)
    found = verdict("oxia", shard.write(tmp_path))
    assert found.violations == ()
    assert any("snapshot" in text for text in found.missing)


def test_a_server_whose_lines_begin_late_is_not_known(tmp_path: Path) -> None:
    shard = calm()
    own = [line for line in shard.lines if line["node"] == "s2"]
    for line in own[: len(own) // 2]:
        shard.lines.remove(line)
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert any("the lines of s2 begin late" in text for text in found.missing)


def test_a_server_that_answers_its_first_term_with_a_log_began_earlier(tmp_path: Path) -> None:
    """Or the line is wrong: it is named."""
    shard = calm()
    at, line = next((n, x) for n, x in enumerate(shard.lines, 1) if x["message"].startswith("Follower successfully"))
    line["last-entry"] = {"term": "1", "offset": "0"}
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert any(f":{at}: the lines of {line['node']} begin late" in text for text in found.missing)


def test_an_acknowledgement_stands_for_all_below_and_comes_when_it_comes(tmp_path: Path) -> None:
    """What the benchmark of corruptions leaves out, as Oxia may print it (`adapter.omissible`, `exchangeable`)."""
    for server in ("s2", "s3"):
        shard = calm()
        own = [n for n, x in enumerate(shard.lines) if x["message"] == "Received ack"]
        own = [n for n in own if shard.lines[n]["follower"] == _address(server)]
        for n in reversed(own[:-1]):
            del shard.lines[n]
        assert verdict("oxia", shard.write(tmp_path)).verdict == "inconclusive"
    shard = calm()
    acks = [n for n, line in enumerate(shard.lines) if line["message"] == "Received ack"]
    one, two = acks[:2]
    moved = shard.lines.pop(one)
    shard.lines.insert(two, moved)
    for n, line in enumerate(shard.lines):
        line["time"] = f"2026-11-28T10:00:00.{n:03}Z"
    assert verdict("oxia", shard.write(tmp_path)).verdict == "inconclusive"


@pytest.mark.parametrize("seed", range(20))
def test_where_lines_may_be_missing_no_removal_is_held_against_a_run(seed: int, tmp_path: Path) -> None:
    rng, shard = random.Random(seed), calm()
    shard.elect(2, "s3", {"s2": (1, 2), "s3": (1, 2)})
    shard.lines = [line for line in shard.lines if line.get("new-ensemble") or rng.random() > 0.2]
    found = judged("oxia", shard.write(tmp_path), partial=True)
    assert [v.violations for v in found.verdicts] == [()]


def test_of_a_violation_it_is_said_whether_missing_lines_would_explain_it(tmp_path: Path) -> None:
    shard = calm()
    del shard.lines[next(n for n, line in enumerate(shard.lines) if line["message"] == "Appending proposal to WAL")]
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, "refused as the log is taken to be complete (else: --partial)" in found.notes) == (
        "violates", True,
    )  # fmt: skip
    shard = calm()
    shard.line("s2", "internal-rpc-server", "Received BecomeLeader request", request={"term": "1"})
    assert "refused whatever lines are missing" in verdict("oxia", shard.write(tmp_path)).notes


@needs(OXIA)
@pytest.mark.parametrize("name", ["calm", "kill-s2"])
def test_logs_of_sound_runs_are_not_refused(name: str) -> None:
    found = verdict("oxia", OXIA / f"{name}.ndjson.zst")
    assert found.verdict == "inconclusive"
    assert found.events == found.recorded
