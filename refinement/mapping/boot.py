"""The mapping of boots: the configuration, restarts, and logs that are installed or got back.

Silent steps before a `restart`: the one durable step that a replica was in when it was killed.
"""

from __future__ import annotations

from viewproof.refinement.mapping.lines import Check, Configured, Holds, Journaled, Line, Received, Rule, Step

FEATURE_MAX = "63"
CONFIGURED = ("client_slots", "client_sessions", "client_gaps", "pipeline", "journal_slots", "partitions")
"""Columns of the first event that say which options the specification is built with, the same on all replicas."""
CONFIGURATION_COLUMNS = (
    "replicas",
    "quorum_replication",
    "quorum_view_change",
    *CONFIGURED,
    "checkpoint_interval",
    "ring",
)
"""All columns of the configuration but `supports`, which may change with every restart."""
CONFIGURATION: tuple[Line, ...] = (
    *(Configured(column, when="checkpoints" * (column == "journal_slots")) for column in CONFIGURATION_COLUMNS),
    Step(
        "announce_feature",
        {"r": "node", "f": "f"},
        each=("f", "1", FEATURE_MAX),
        only_if="supports >> (f - 1) & 1 and not spec.supports[node, f]",
        when="control",
    ),
)
_SAME_LOG = (
    "spec.dvc_op[durable_view, x] == op and (head is None or name_of(spec.dvc_entry[durable_view, x, op], op) == head)"
)
_SAME_LOG_OR_MORE = (
    "spec.dvc_op[durable_view, x] >= op and (head is None or name_of(spec.dvc_entry[durable_view, x, op], op) == head)"
)
_INSTALLED = (
    "durable_log_view == durable_view and durable_log_view > spec.durable_log_view[node] "
    "and durable_view % replica_count "
)
_LOST = "spec.status[node] == 2"
_RECOVERED = (
    "durable_log_view == durable_view and durable_view % replica_count != node and "
    "(checkpoint < spec.checkpoint[node] or spec.checkpoint[node] < checkpoint < spec.commit_min[node] or "
    "checkpoint > spec.commit_min[node] and spec.status[node] == 0 and durable_view == spec.view[node] "
    "and op <= spec.op[node])"
)
"""A replica that got another snapshot, and not by an event that shows it, had lost its log: it died once more before it
was back.
"""
_EXTENDED = (
    "op > spec.op[node] and durable_view == spec.durable_log_view[node] and durable_view % replica_count != node"
)
_DISCARDED = "op < spec.op[node] and spec.written[node, op + 1]"
CHECKPOINTED = "checkpoint > spec.checkpoint[node] and checkpoint == spec.commit_min[node]"
_TRANSFERRED = (
    "checkpoint > spec.commit_min[node] and durable_log_view == durable_view and durable_view % replica_count != node"
)


def _start_view_received(view: str, op: str, only_if: str, when: str = "") -> tuple[Received, ...]:
    """The start_view of a view, and the prepares above its op up to `op`, reach the node."""
    above = ("o", f"spec.sv_op[{view}] + 1", op)
    started = f"({only_if}) and {view}" if only_if else view
    return (
        Received("sv", (view,), some=True, only_if=started, when=when),
        Received("sv_op", (view,), only_if=only_if, when=when),
        Received("sv_entry", (view, "o"), each=("o", "1", f"spec.sv_op[{view}]"), only_if=only_if, when=when),
        Received("prepare_client", (view, "o"), some=True, each=above, only_if=only_if, when=f"-control {when}"),
        Received("prepare_client", (view, "o"), each=above, only_if=only_if, when=f"control {when}"),
        Received("prepare_feature", (view, "o"), each=above, only_if=only_if, when=f"control {when}"),
    )


BOOTED: tuple[Line, ...] = (
    Step(
        "start_view_change",
        {"r": "node", "v": "durable_view"},
        only_if="durable_view > spec.durable_view[node] and durable_log_view < durable_view",
    ),
)
"""Silent step before a boot: a view change was durable."""
INSTALLED: tuple[Line, ...] = (
    *_start_view_received("m_view", "m_op", ""),
    Received("commit_sent", ("m_view",), "m_commit"),
    Check("m_checkpoint", "0", when="-checkpoints"),
    Step("on_start_view", {"r": "node", "v": "m_view", "n": "m_op"}, when="-checkpoints"),
    Step(
        "on_start_view",
        {"r": "node", "v": "m_view", "n": "m_op"},
        only_if="not m_checkpoint",
        when="checkpoints",
    ),
    Received("snapshot", ("m_view", "m_checkpoint"), some=True, only_if="m_checkpoint", when="checkpoints"),
    Step(
        "install_snapshot",
        {"r": "node", "v": "m_view", "n": "m_op", "k": "m_checkpoint"},
        only_if="m_checkpoint",
        when="checkpoints",
    ),
    Step("on_commit", {"r": "node", "k": "m_commit"}, only_if="m_commit > spec.commit_max[node]"),
)
"""The log of a start_view takes the place of the replica's own."""

_OWN_SNAPSHOT = "not m_checkpoint and checkpoint"
_UNSEEN = "not m_checkpoint and checkpoint > spec.checkpoint[node]"
_UNSEEN_OP = "spec.sv_op[m_log_view] if spec.sv_op[m_log_view] > checkpoint else checkpoint"
RECOVERED: tuple[Line, ...] = (
    Holds(
        "m_view >= spec.durable_view[node]",
        "m_view",
        "the replica comes back in a view below one that was durable: it may have promised not to",
        rule="I6",
    ),
    Step("lose_snapshot", {"r": "node"}, only_if=_UNSEEN, when="checkpoints"),
    *_start_view_received("m_log_view", _UNSEEN_OP, _UNSEEN, "checkpoints"),
    Received("snapshot", ("m_log_view", "checkpoint"), some=True, only_if=_UNSEEN, when="checkpoints"),
    Step(
        "recover_snapshot",
        {"r": "node", "v": "m_log_view", "n": _UNSEEN_OP, "k": "checkpoint"},
        only_if=_UNSEEN,
        when="checkpoints",
    ),
    Holds(
        "m_log_view == spec.durable_log_view[node] or not m_log_view or "
        "spec.durable_log_view[node] < m_log_view <= m_view and "
        "(m_log_view % replica_count == node or spec.sv[m_log_view])",
        "m_log_view",
        "the superblock names the log that the replica had, one of a later view that started, or none if it was lost",
    ),
    Step("lose_log", {"r": "node"}, when="-checkpoints"),
    Step("lose_log", {"r": "node"}, only_if=_OWN_SNAPSHOT, when="checkpoints"),
    Step("lose_snapshot", {"r": "node"}, only_if=f"not ({_OWN_SNAPSHOT})", when="checkpoints"),
    *_start_view_received("m_view", "m_op", ""),
    Received("commit_sent", ("m_view",), "m_commit"),
    Check("m_checkpoint", "0", when="-checkpoints"),
    Step("recover_log", {"r": "node", "v": "m_view", "n": "m_op"}, only_if="not m_checkpoint"),
    Received("snapshot", ("m_view", "m_checkpoint"), some=True, only_if="m_checkpoint", when="checkpoints"),
    Step(
        "recover_snapshot",
        {"r": "node", "v": "m_view", "n": "m_op", "k": "m_checkpoint"},
        only_if="m_checkpoint",
        when="checkpoints",
    ),
    Step("on_commit", {"r": "node", "k": "m_commit"}, only_if="m_commit > spec.commit_max[node]"),
)
"""As `INSTALLED`, by a replica whose own log was lost, and perhaps its snapshot: it may get back what it had. If
its own snapshot is not one that it is known to have, it had installed that with the log of `m_log_view`, and died once
more before that was seen.
"""


BOOT_RULES: tuple[Rule, ...] = (
    Rule("start", (Check("seq", "1"), *CONFIGURATION)),
    Rule(
        "restart",
        (
            Step("lose_snapshot", {"r": "node"}, only_if=_RECOVERED, when="losses checkpoints"),
            *_start_view_received("durable_view", "op", _LOST, "losses checkpoints"),
            Step(
                "recover_log",
                {"r": "node", "v": "durable_view", "n": "op"},
                only_if=f"{_LOST} and not checkpoint",
                when="losses checkpoints",
            ),
            Received(
                "snapshot",
                ("durable_view", "checkpoint"),
                some=True,
                only_if=f"{_LOST} and checkpoint",
                when="losses checkpoints",
            ),
            Step(
                "recover_snapshot",
                {"r": "node", "v": "durable_view", "n": "op", "k": "checkpoint"},
                only_if=f"{_LOST} and checkpoint",
                when="losses checkpoints",
            ),
            Step("take_checkpoint", {"r": "node"}, only_if=CHECKPOINTED, when="checkpoints"),
            *BOOTED,
            *(
                Step("start_view", {"r": "node", "b": "?"}, only_if=_INSTALLED + "== node", tried_if=log, when=when)
                for log, when in ((_SAME_LOG, "-discard"), (_SAME_LOG_OR_MORE, "discard"))
            ),
            *_start_view_received("durable_view", "op", _INSTALLED + "!= node"),
            *_start_view_received("durable_view", "op", _TRANSFERRED, "checkpoints"),
            Step(
                "on_start_view",
                {"r": "node", "v": "durable_view", "n": "op"},
                only_if=_INSTALLED + "!= node",
                when="-checkpoints",
            ),
            Step(
                "on_start_view",
                {"r": "node", "v": "durable_view", "n": "op"},
                only_if=f"{_INSTALLED} != node and checkpoint <= spec.commit_min[node]",
                when="checkpoints",
            ),
            Received("snapshot", ("durable_view", "checkpoint"), some=True, only_if=_TRANSFERRED, when="checkpoints"),
            Step(
                "install_snapshot",
                {"r": "node", "v": "durable_view", "n": "op", "k": "checkpoint"},
                only_if=_TRANSFERRED,
                when="checkpoints",
            ),
            *_start_view_received("durable_view", "op", _EXTENDED, "discard"),
            Step("on_start_view", {"r": "node", "v": "durable_view", "n": "op"}, only_if=_EXTENDED, when="discard"),
            Step("restart", {"r": "node", "n": "op"}, when="-discard"),
            Step("restart", {"r": "node", "n": "op"}, only_if=f"not ({_DISCARDED})", when="discard"),
            Received(
                "nack",
                ("x", "spec.entry[node, op + 1] - 1", "op + 1"),
                "spec.nack[x, spec.entry[node, op + 1] - 1, op + 1]",
                each=("x", "0", "replica_count - 1"),
                only_if=_DISCARDED,
                when="discard",
            ),
            Step("discard", {"r": "node", "o": "op + 1"}, only_if=_DISCARDED, when="discard"),
            Journaled("spec.entry[node, o]", ("o", "1", "spec.op[node]"), afresh=True),
            *CONFIGURATION,
        ),
        infer={"durable_view": "view", "durable_log_view": "log_view", "checkpoint": "0"},
        infer_when={"checkpoints": {"checkpoint": "spec.checkpoint[node]"}},
    ),
)
