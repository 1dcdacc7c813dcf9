"""Iggy's logs: lines as a server prints them, and what is refused."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from tests.refinement.real_logs import IGGY, judged, needs, unpacked, verdict
from viewproof.refinement.cli import cli

GROUP = 1 << 63


class Cluster:
    """Prints lines as three servers do, merged, one line a millisecond."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.checksum: dict[tuple[int, int], int] = {}

    def line(self, node: int, target: str, text: str) -> None:
        """A line of a server."""
        at = f"2026-11-28T10:00:{len(self.lines) // 1000:02}.{len(self.lines) % 1000:03}Z"
        self.lines.append(f"[{node}] {at} DEBUG shard-0 {target}: {text}")

    def sim(self, node: int, event: str, view: int, log_view: int, commit: int, status: str, more: str = "") -> None:
        """A line of iggy.sim."""
        self.line(
            node,
            "iggy.sim",
            f'sim_event="{event}" plane="metadata" cluster_id=1 replica_id={node} namespace_raw={GROUP} '
            f'view={view} log_view={log_view} commit={commit} status="{status}" role="primary" {more}',
        )

    def queue(self, node: int, view: int, op: int, client: int, request: int, commit: int, parent: int) -> None:
        """A request is prepared; `parent` is the view of the entry below."""
        name = self.checksum[view, op] = 1000 * (view + 1) + op
        below = self.checksum.get((parent, op - 1), 0)
        kind = "create_stream" if request else "register"
        self.sim(
            node, "PrepareQueued", view, view, commit, "normal",
            f'op={op} parent_checksum={below} prepare_checksum={name} client_id={client} request_id={request} '
            f'operation="{kind}" pipeline_depth=1',
        )  # fmt: skip

    def ack(
        self, node: int, view: int, op: int, sender: int, count: int, commit: int, *, reached: bool | None = None
    ) -> None:
        """An acknowledgement is counted."""
        done = count >= 2 if reached is None else reached
        self.sim(
            node, "PrepareAcked", view, view, commit, "normal",
            f"op={op} prepare_checksum={self.checksum[view, op]} ack_from_replica={sender} ack_count={count} "
            f"quorum=2 quorum_reached={str(done).lower()}",
        )  # fmt: skip

    def commit(self, node: int, view: int, op: int, client: int, request: int) -> None:
        """The primary executes."""
        self.sim(
            node, "OperationCommitted", view, view, op, "normal", f"op={op} client_id={client} request_id={request}"
        )

    def execute(self, node: int, op: int) -> None:
        """A backup executes."""
        self.line(node, "metadata::impls::metadata", f"commit_journal: committed op={op}")

    def one(self, op: int, request: int, acks: tuple[int, ...] = (0, 1)) -> None:
        """A request of client 7 in view 0, acknowledged and executed by 0."""
        self.queue(0, 0, op, 7, request, op - 1, 0)
        for count, sender in enumerate(acks, 1):
            self.ack(0, 0, op, sender, count, op - 1)
        self.commit(0, 0, op, 7, request)

    def write(self, folder: Path, name: str = "servers.log") -> Path:
        """The lines as a file."""
        file = folder / name
        file.write_text("\n".join(self.lines) + "\n")
        return file


def calm() -> Cluster:
    """Three requests, all is well."""
    cluster = Cluster()
    cluster.line(
        0, "message_bus::installer::replica", "replica mesh complete: all peer connections established expected=2"
    )
    for op in (1, 2, 3):
        cluster.one(op, op - 1)
    for node in (1, 2):
        for op in (1, 2, 3):
            cluster.execute(node, op)
    return cluster


def stale() -> Cluster:
    """Server 0 keeps an entry of view 0 at op 2; view 1 starts without it, and commits another there."""
    cluster = Cluster()
    cluster.one(1, 0)
    cluster.queue(0, 0, 2, 7, 1, 1, 0)
    cluster.ack(0, 0, 2, 0, 1, 1)
    for node in (2, 1):
        cluster.sim(node, "ViewChangeStarted", 1, 0, 1, "view_change", 'old_view=0 new_view=1 reason="x"')
    cluster.sim(
        2,
        "ControlMessageScheduled",
        1,
        0,
        1,
        "view_change",
        'action="send_do_view_change" target_replica=1 op=1 action_commit=1',
    )
    cluster.line(1, "consensus::impls", "view-change quorum merged; x replica=1 view=1 op_head=1 commit_max=1")
    cluster.sim(1, "PrimaryElected", 1, 1, 1, "normal")
    cluster.line(2, "consensus::impls", "adopting view from StartView replica=2 old_view=1 new_view=1 op=1 commit=1")
    cluster.sim(2, "ReplicaStateChanged", 1, 1, 1, "normal")
    cluster.execute(1, 1)
    cluster.execute(2, 1)
    cluster.queue(1, 1, 2, 8, 0, 1, 0)
    cluster.ack(1, 1, 2, 1, 1, 1)
    cluster.ack(1, 1, 2, 2, 2, 1)
    cluster.commit(1, 1, 2, 8, 0)
    cluster.line(0, "consensus::impls", "adopting view from StartView replica=0 old_view=0 new_view=1 op=2 commit=2")
    cluster.sim(0, "ReplicaStateChanged", 1, 1, 2, "normal")
    return cluster


def test_a_calm_log_is_not_refused_and_what_native_lines_do_not_show_is_named(tmp_path: Path) -> None:
    found = verdict("iggy", calm().write(tmp_path))
    assert found.verdict == "inconclusive"
    assert any("its line has no checksum" in text for text in found.missing)
    assert (found.coverage["execute"], found.coverage["commit"]) == (9, 3)
    assert found.events == found.recorded


def test_the_files_of_single_processes_are_one_run(tmp_path: Path) -> None:
    lines = calm().lines
    files = []
    for node in range(3):
        file = tmp_path / f"server-{node}.log"
        own = [line.partition("] ")[2] for line in lines if line.startswith(f"[{node}]")]
        file.write_text("\n".join(own) + "\n")
        files.append(file)
    found = judged("iggy", files[0]).verdicts[0]
    assert found.verdict == "inconclusive"
    assert any("no line of replica" in text for text in found.missing)
    assert [v.verdict for v in judged("iggy", *files).verdicts] == ["inconclusive"]


def test_a_quorum_of_one_is_refused(tmp_path: Path) -> None:
    cluster = calm()
    cluster.queue(0, 0, 4, 7, 3, 3, 0)
    cluster.ack(0, 0, 4, 0, 1, 3, reached=True)
    cluster.ack(0, 0, 4, 1, 2, 3)
    found = verdict("iggy", cluster.write(tmp_path)).violations[0]
    assert (found.rule_id, found.line) == ("quorum", len(cluster.lines) - 1)


def test_a_stale_entry_that_is_executed_is_refused_there(tmp_path: Path) -> None:
    cluster = stale()
    before = verdict("iggy", cluster.write(tmp_path))
    assert before.verdict == "inconclusive"
    cluster.execute(0, 2)
    found = verdict("iggy", cluster.write(tmp_path)).violations[0]
    assert (found.rule_id, found.line, found.node) == ("I1", len(cluster.lines), 0)
    assert "older view" in found.message


def test_a_stale_entry_that_was_dropped_is_none(tmp_path: Path) -> None:
    cluster = stale()
    cluster.line(0, "shard", "dropped 1 uncommitted entries from op 2 that disagreed shard=0 from_op=2 removed=1")
    cluster.execute(0, 2)
    assert verdict("iggy", cluster.write(tmp_path)).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("op=3 parent", "op=4 parent", "I5"),
        ("parent_checksum=1002", "parent_checksum=1001", "I10"),
        ("commit_journal: committed op=2", "commit_journal: committed op=3", "I4"),
        ("ack_count=2", "ack_count=3", "quorum"),
        ("quorum=2", "quorum=1", "quorum"),
        ("view=0 log_view=0 commit=2", "view=1 log_view=0 commit=2", "I6"),
        ("view=0 log_view=0 commit=2", "view=0 log_view=0 commit=3", "I4"),
        ("op=2 client_id=7", "op=3 client_id=7", "I4"),
    ],
)
def test_a_line_that_says_something_else_is_refused(tmp_path: Path, old: str, new: str, rule: str) -> None:
    cluster = calm()
    at = next(i for i, line in enumerate(cluster.lines) if old in line)
    cluster.lines[at] = cluster.lines[at].replace(old, new)
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.verdict == "violates"
    assert found.violations[0].rule_id == rule
    assert found.violations[0].line >= at


TABLE, DIAG = "consensus::metadata_helpers", "iggy.metadata.diag"
REPLY = 'op={} client_id=7 request_id={} operation="create_stream"'


@pytest.mark.parametrize(
    ("node", "target", "text", "true", "false", "rule"),
    [
        (0, TABLE, "request_preflight: duplicate whose x client_id=7 request=1 watermark={}", (2,), (3,), "I9"),
        (0, TABLE, "request_preflight: duplicate whose x client_id=7 request={} watermark=2", (2,), (3,), "I8"),
        (0, TABLE, "request_preflight: fencing x client_id=7 current={} received=9", (1,), (2,), "I9"),
        (1, TABLE, "request_preflight: not caught up, x client_id=7 commit_min={} commit_max=3", (3,), (2,), "I4"),
        (2, TABLE, "register_preflight: not caught up, x client_id=7 commit_min=3 commit_max={}", (3,), (2,), "I4"),
        (1, DIAG, "on_replicate: dropping out-of-order prepare (gap) replica_id=1 op=9 expected={}", (4,), (3,), "I5"),
        (0, "iggy.sim", REPLY, (2, 1), (2, 2), "I8"),
        (0, "iggy.sim", REPLY, (3, 2), (4, 2), "I4"),
    ],
)
def test_a_line_that_changes_nothing_is_compared(
    tmp_path: Path, node: int, target: str, text: str, true: tuple[int, ...], false: tuple[int, ...], rule: str
) -> None:
    for values in (true, false):
        cluster = calm()
        if target == "iggy.sim":
            cluster.sim(node, "ClientReplyEmitted", 0, 0, 3, "normal", text.format(*values))
        else:
            cluster.line(node, target, text.format(*values))
        found = verdict("iggy", cluster.write(tmp_path))
        if values is true:
            assert found.verdict == "inconclusive"
        else:
            assert (found.violations[0].rule_id, found.violations[0].line) == (rule, len(cluster.lines))


def test_what_a_killed_primary_did_not_print_is_not_held_against_it(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.one(1, 0)
    cluster.lines.append("[-] 2026-11-28T10:00:00.500Z INFO harness: kill replica=0")
    cluster.lines += ["[1] 2026-11-28T10:00:00.500Z INFO shard-0 other: nothing"] * 600
    for node in (2, 1):
        cluster.sim(node, "ViewChangeStarted", 1, 0, 1, "view_change", 'old_view=0 new_view=1 reason="x"')
    sends = 'action="send_do_view_change" target_replica=1 op=2 action_commit=1'
    cluster.sim(2, "ControlMessageScheduled", 1, 0, 1, "view_change", sends)
    cluster.line(1, "consensus::impls", "view-change quorum merged; x replica=1 view=1 op_head=2 commit_max=1")
    cluster.sim(1, "PrimaryElected", 1, 1, 1, "normal")
    cluster.line(2, "consensus::impls", "adopting view from StartView replica=2 old_view=1 new_view=1 op=2 commit=1")
    cluster.sim(2, "ReplicaStateChanged", 1, 1, 1, "normal")
    cluster.checksum[1, 2] = 77
    cluster.ack(1, 1, 2, 2, 2, 1)
    cluster.execute(1, 1)
    cluster.sim(1, "OperationCommitted", 1, 1, 2, "normal", "op=2 client_id=7 request_id=1")
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.violations == ()
    assert found.verdict == "inconclusive"
    assert found.events == found.recorded


def test_a_log_that_begins_late_is_not_refused(tmp_path: Path) -> None:
    cluster = calm()
    cluster.lines = [line for line in cluster.lines if " op=1 " not in line and not line.endswith("op=1")]
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.verdict == "inconclusive"
    assert "the log begins late, at op 2" in found.missing


@pytest.mark.parametrize("started", [False, True])
def test_a_replica_whose_lines_begin_late_is_not_known(tmp_path: Path, started: bool) -> None:
    """But a process that was seen to start has all its lines."""
    cluster = calm()
    own = [at for at, line in enumerate(cluster.lines) if line.startswith("[1]")]
    del cluster.lines[own[0]]
    if started:
        cluster.lines.insert(
            0, "[1] 2026-11-28T10:00:00.000Z INFO main iggy_server: It seems that you are a developer."
        )
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.verdict == ("violates" if started else "inconclusive")
    assert started or any("the lines of replica 1 begin late" in text for text in found.missing)


def test_clocks_that_differ_do_not_turn_what_happened_around(tmp_path: Path) -> None:
    """An offer comes after f others entered the view, a merge after offers, a gap after the prepare below it."""
    cluster = stale()
    cluster.lines.insert(0, cluster.lines[0].replace("iggy.sim", "other"))
    early = ("ControlMessageScheduled", "view-change quorum merged")
    for at, line in enumerate(cluster.lines):
        if any(word in line for word in early):
            cluster.lines[at] = line.replace("T10:00:00.", "T09:59:59.9")
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.violations == ()


def test_a_field_that_is_no_number_is_named_with_file_and_line(tmp_path: Path) -> None:
    cluster = calm()
    cluster.lines[1] = cluster.lines[1].replace("op=1", "op=one")
    problem = judged("iggy", cluster.write(tmp_path)).problems[0]
    assert (problem.line, problem.field, problem.expected) == (2, "op", "a whole number")


def test_a_file_without_a_line_of_iggy_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    file.write_text("nothing\n\x00\xff\n")
    assert judged("iggy", file).problems[0].got.startswith("no such line; it begins with: ")


@pytest.mark.parametrize("seed", range(20))
def test_where_lines_may_be_missing_no_removal_is_held_against_a_run(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for cluster in (calm(), stale()):
        cluster.lines = [line for line in cluster.lines if rng.random() > 0.2]
        found = judged("iggy", cluster.write(tmp_path), partial=True)
        assert [v.violations for v in found.verdicts] in ([()], [])


@needs(IGGY)
@pytest.mark.parametrize("name", ["mix-5-s1", "part-3-s16"])
@pytest.mark.long
def test_a_known_departure_is_named_and_refused_if_it_is_forbidden(name: str) -> None:
    id = {"mix-5-s1": "iggy.replays_over_hole", "part-3-s16": "iggy.stale_parent"}[name]
    file = IGGY / f"simulator/{name}.log.zst"
    found = verdict("iggy", file)
    assert (found.verdict, found.allowed_uses[0].fault) == ("inconclusive", id)
    refused = verdict("iggy", file, forbid=(id,)).violations[0]
    assert (refused.rule_id, refused.line) == (id, found.allowed_uses[0].line)


REFUSED = {
    "server/stale-entry": (858, "I1"),
    "simulator/deposed-3-s2": (1341, "I1"),
    "broken/commit_one_ack": (14, "quorum"),
    "broken/dvc_one": (385, "quorum"),
    "broken/table_at_prepare": (75, "I9"),
}
SIMULATED = (
    *("calm-3-s11", "crash-3-s12", "part-3-s16", "evict-3-s17", "planes-3-s19", "one-1-s22"),
    *("random-3-s1", "crash-5-s14", "two-2-s21", "loss-3-s27", "mix-5-s1"),
)
SOUND = ("server/calm", "server/kill-s3", *(f"simulator/{name}" for name in SIMULATED))
QUICK = ("simulator/one-1-s22", "simulator/loss-3-s27")


@needs(IGGY)
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("lines", ["all", "native"])
def test_logs_of_runs_that_went_wrong_are_refused_there_or_before(name: str, lines: str, tmp_path: Path) -> None:
    """By native lines alone, too, wherever one shows it; what a client table has too early none of them does."""
    line, rule = REFUSED[name]
    file = IGGY / f"{name}.log.zst"
    found = verdict("iggy", native(file, tmp_path) if lines == "native" else file)
    if (name, lines) == ("broken/table_at_prepare", "native"):
        assert (found.verdict, bool(found.missing)) == ("inconclusive", True)
        return
    assert found.verdict == "violates"
    assert found.violations[0].line <= line
    assert found.violations[0].rule_id == rule


def native(file: Path, folder: Path) -> Path:
    """The lines that Iggy itself prints, as a file."""
    kept = [line for line in unpacked(file) if " wire: " not in line and " harness: " not in line]
    found = folder / "native.log"
    found.write_text("\n".join(kept) + "\n")
    return found


@needs(IGGY)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in SOUND])
@pytest.mark.parametrize("lines", ["all", "native"])
def test_logs_of_sound_runs_are_not_refused(name: str, lines: str, tmp_path: Path) -> None:
    file = IGGY / f"{name}.log.zst"
    result = judged("iggy", native(file, tmp_path) if lines == "native" else file)
    assert not result.problems
    for found in result.verdicts:
        assert found.verdict in ("conforms", "inconclusive")
        assert found.verdict == "conforms" or found.missing


END = "000900  INFO harness: end"


def simulated(folder: Path, name: str = "sim.log", end: str = END) -> Path:
    """A simulator's log in which nothing happens but a start."""
    state = "view=0 log_view=0 status=normal op=0 commit_min=0 commit_max=0 transferring=false"
    lines = ["000000  INFO harness: start replicas=3 clients=1 seed=1 client_slots=4"]
    lines += [f"000000  INFO harness: state replica={node} group=metadata {state}" for node in range(3)]
    file = folder / name
    file.write_text("\n".join([*lines, end, ""]))
    return file


def test_a_simulators_log_conforms_only_with_its_end(tmp_path: Path) -> None:
    assert verdict("iggy", simulated(tmp_path)).verdict == "conforms"
    for end in ("000900  INFO harness: en", "000900  INFO other: x"):
        found = verdict("iggy", simulated(tmp_path, end=end))
        assert (found.verdict, "the end of the run" in found.missing[0]) == ("inconclusive", True)


def test_a_damaged_or_cut_file_never_conforms(tmp_path: Path) -> None:
    file = simulated(tmp_path)
    whole = file.read_bytes()
    for name, content in (
        ("half.log", whole + b"000901  INFO wi"),
        ("packed.log.gz", gzip.compress(whole)[:-4]),
        ("nul.log", whole + b"\0" * 40 + b"\n"),
    ):
        (tmp_path / name).write_bytes(content)
        found = verdict("iggy", tmp_path / name)
        assert (found.verdict, name in found.missing[0]) == ("inconclusive", True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--set", "op=1"], "op is no column of the configuration; there are: replicas, slots, metadata, wire"),
        (["--forbid", "iggy.x"], "there are: iggy.replays_over_hole, iggy.stale_parent"),
        (["--allow", "iggy.x"], "iggy.x cannot be allowed"),
        (["--without", "opp"], 'opp is no column of this input; did you mean "op"?'),
    ],
)
def test_options_that_mean_nothing_here_are_refused_by_name(words: list[str], text: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["audit", "--adapter", "iggy", str(simulated(tmp_path)), *words])
    assert (result.exit_code, text in " ".join(result.output.replace("│", " ").split())) == (2, True), result.output


@pytest.mark.parametrize("words", [[], ["--interp"], ["--workers", "2"], ["--without", "sender"]])
def test_options_of_all_audits_are_those_of_these_logs(words: list[str], tmp_path: Path) -> None:
    for name in ("one.log", "two.log.3"):
        simulated(tmp_path, name)
    result = CliRunner().invoke(cli, ["audit", "--adapter", "iggy", str(tmp_path), *words])
    assert (result.exit_code, "2 conforms" in result.output) == (0, True), result.output


def test_a_log_may_come_on_standard_input(tmp_path: Path) -> None:
    content = zstandard.ZstdCompressor().compress(simulated(tmp_path).read_bytes())
    result = CliRunner().invoke(cli, ["audit", "--adapter", "iggy", "-"], input=content)
    assert (result.exit_code, "1 conforms" in result.output) == (0, True)
