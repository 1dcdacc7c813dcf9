"""Rare lines of Oxia's servers: snapshots, ensembles that change, shards beside each other, problems, panics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refinement.oxia.test_logs import CURSOR, FOLLOWER, LEADER, NONE, SERVERS, SHARD, Shard, calm
from tests.refinement.real_logs import judged, verdict
from viewproof.refinement.oxia.noted import NOTED, UNTIL


def test_what_a_server_has_after_a_snapshot_is_not_known(tmp_path: Path) -> None:
    for before in ("Installing snapshot...", None):
        shard = calm()
        if before:
            shard.line("s2", FOLLOWER, before, term=1)
        shard.line("s2", FOLLOWER, "Apply committed entries", min_exclusive=1, max_inclusive=1, head_offset=2)
        found = verdict("oxia", shard.write(tmp_path))
        assert found.verdict == ("inconclusive" if before else "violates")


def test_a_leader_that_sends_a_snapshot_is_known_as_before(tmp_path: Path) -> None:
    shard = calm()
    shard.line("s1", CURSOR, "Sending snapshot to empty follower", term=1, follower="127.0.0.1:6812")
    shard.line("s1", LEADER, "Appending proposal to WAL", term=1, offset=7)
    assert verdict("oxia", shard.write(tmp_path)).violations[0].line == len(shard.lines)


def test_a_follower_of_which_a_leader_says_that_it_lost_its_log_is_not_known(tmp_path: Path) -> None:
    message = "Follower reported not-member status, resetting ack offset to trigger snapshot"
    for said in (True, False):
        shard = calm()
        if said:
            shard.line("s1", CURSOR, message, term=1, follower="127.0.0.1:6812")
        shard.line("s2", FOLLOWER, "Created follower", term=-1, head_offset=-1, commit_offset=-1)
        found = verdict("oxia", shard.write(tmp_path))
        assert found.verdict == ("inconclusive" if said else "violates")


@pytest.mark.parametrize(("component", "message"), UNTIL)
def test_a_run_is_judged_up_to_what_is_not_specified(tmp_path: Path, component: str, message: str) -> None:
    shard = calm()
    shard.line("s1" if component == LEADER else "coordinator", component, message)
    at = len(shard.lines)
    shard.line("s1", LEADER, "Appending proposal to WAL", term=1, offset=7)
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert any(f":{at}: {UNTIL[component, message]}, judged up to there" in text for text in found.missing)


@pytest.mark.parametrize("component", NOTED)
def test_lines_that_are_passed_over_are_not_counted_and_others_are(tmp_path: Path, component: str) -> None:
    for messages, named in ((NOTED[component], False), (("the log ate itself",), True)):
        shard = calm()
        for message in messages:
            shard.line("s1", component, message, follower="127.0.0.1:6812", term=1)
        found = verdict("oxia", shard.write(tmp_path))
        assert (found.violations, any("not known, " in note for note in found.notes)) == ((), named)


def test_what_a_request_says_is_of_its_shard(tmp_path: Path) -> None:
    """The line of a BecomeLeader names its shard in the request alone."""
    shard = calm()
    other: list[dict[str, Any]] = [dict(line, shard=1) for line in calm().lines]
    for one in (shard.lines, other):
        for line in one:
            if line["message"] == "Received BecomeLeader request":
                line["request"] = {"namespace": "default", "shard": str(line.pop("shard")), "term": "1"}
    shard.lines += other
    found = judged("oxia", shard.write(tmp_path))
    assert [(v.verdict, v.violations) for v in found.verdicts] == [("inconclusive", ())] * 2
    elections = [v.coverage["become_leader"] for v in found.verdicts]
    assert elections == [1, 1]


def test_a_server_that_stops_itself_prints_what_is_no_json(tmp_path: Path) -> None:
    shard = Shard()
    shard.elect(1, "s1", {"s1": NONE, "s2": NONE, "s3": NONE})
    lines = [json.dumps(line) for line in shard.lines]
    trace = [
        "panic: runtime error: index out of range [3]",
        "",
        "goroutine 7 [running]:",
        "main.main()",
        "\texit status 2",
    ]
    file = tmp_path / "shard.ndjson"
    file.write_text("\n".join([*lines, *trace, lines[-1].replace("Started", "X"), ""]))
    found = verdict("oxia", file)
    assert any(f":{len(lines) + 1}: a server stopped itself: panic" in text for text in found.missing)
    file.write_text("\n".join([*lines, "not json", ""]))
    assert judged("oxia", file).problems[0].line == len(lines) + 1


def test_a_coordinator_that_begins_again_looks_at_its_servers(tmp_path: Path) -> None:
    shard = calm()
    shard.line("coordinator", SHARD, "All data servers look good. No need to trigger new leader election")
    found = verdict("oxia", shard.write(tmp_path))
    assert not any("not known, " in note for note in found.notes)


def other_shard(found: Shard) -> list[dict[str, Any]]:
    """The lines as of a second shard, on a server s4 in place of s1."""
    text = json.dumps([dict(line, shard=1) for line in found.lines])
    return json.loads(text.replace('"s1"', '"s4"').replace("6811", "6814"))  # type: ignore[no-any-return]


def test_each_shard_has_its_own_ensemble(tmp_path: Path) -> None:
    shard = calm()
    shard.lines += other_shard(calm())
    found = judged("oxia", shard.write(tmp_path))
    assert (found.problems, [v.violations for v in found.verdicts]) == ((), [(), ()])
    assert [v.coverage["become_leader"] for v in found.verdicts] == [1, 1]
    broken = calm()
    broken.line("s1", LEADER, "Appending proposal to WAL", term=1, offset=7)
    shard.lines = [*calm().lines, *other_shard(broken)]
    found = judged("oxia", shard.write(tmp_path))
    assert [bool(v.violations) for v in found.verdicts] == [False, True]


def test_a_shard_whose_ensemble_no_line_shows_has_that_of_the_others(tmp_path: Path) -> None:
    for server, judged_at_all in (("s3", True), ("s9", False)):
        shard = calm()
        second = [dict(line, shard=1) for line in calm().lines if line["component"] != SHARD]
        shard.lines += json.loads(json.dumps(second).replace('"s3"', f'"{server}"'))
        found = judged("oxia", shard.write(tmp_path))
        assert (found.problems, [v.violations for v in found.verdicts]) == ((), [(), ()])
        assert ("the ensemble: " in found.verdicts[1].missing[0]) is not judged_at_all


def test_a_member_that_has_another_address_later_is_the_same(tmp_path: Path) -> None:
    shard = calm()
    moved = [dict(one, internal=one["internal"].replace("6812", "6899")) for one in SERVERS]
    shard.line("coordinator", SHARD, "refresh the shard ensemble dataServer address", new_ensemble=moved)
    shard.line("s1", LEADER, "Appending proposal to WAL", term=1, offset=3)
    shard.line("s1", CURSOR, "Sending entries to follower", term=1, follower="127.0.0.1:6899", offset=3)
    found = judged("oxia", shard.write(tmp_path))
    assert (found.problems, found.verdicts[0].violations) == ((), ())


def test_pieces_of_a_rotated_log_are_of_the_server_that_started_in_one_of_them(tmp_path: Path) -> None:
    shard = Shard()
    for server, address in ((one["name"], one["internal"]) for one in SERVERS):
        shard.line(server, "server", "Starting Oxia dataServer", options=_bind(address))
    shard.lines += [dict(line, time=line["time"].replace("10:00:00", "10:00:01")) for line in calm().lines]
    for name in ("coordinator", "s1", "s2", "s3"):
        own = [{k: v for k, v in line.items() if k != "node"} for line in shard.lines if line["node"] == name]
        for part, some in (("1", own[:3]), ("2", own[3:])):
            (tmp_path / f"data-{name[-1]}.{part}.json").write_text("".join(json.dumps(line) + "\n" for line in some))
    files = sorted(tmp_path.iterdir())
    found = judged("oxia", *files)
    assert (found.problems, found.verdicts[0].violations, found.verdicts[0].coverage["commit"]) == ((), (), 3)
    for file in files:
        if file.name.endswith("3.1.json"):
            file.unlink()
    found = judged("oxia", *sorted(tmp_path.iterdir()))
    assert (found.problems, found.verdicts[0].violations) == ((), ())
    assert any("data-3.2.json: no line of it says which server" in text for text in found.verdicts[0].missing)


def _bind(address: str) -> dict[str, Any]:
    return {"server": {"internal": {"bindAddress": address}}}


def test_lines_of_several_servers_that_do_not_say_whose_they_are_are_not_judged(tmp_path: Path) -> None:
    shard = Shard()
    for server, address in ((one["name"], one["internal"]) for one in SERVERS):
        shard.line(server, "server", "Starting Oxia dataServer", options=_bind(address))
    shard.lines += calm().lines
    for line in shard.lines:
        del line["node"]
    found = verdict("oxia", shard.write(tmp_path))
    assert (found.verdict, found.violations, found.events) == ("inconclusive", (), 0)
    assert "whose lines are in" in found.missing[0]
