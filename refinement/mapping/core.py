"""The mapping of native traces onto the core of the specification, as a table.

Silent steps (the trace cannot show them): `client_request` before `on_request`; before `restart`, the one durable
step that a replica was in when it was killed.
"""

from __future__ import annotations

from refinement.mapping.lines import (
    Agrees,
    Check,
    Configured,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Received,
    Rule,
    Step,
)
from refinement.mapping.partitions import ASKED, ASKS

OBSERVED: tuple[tuple[str, str], ...] = (
    ("status", "spec.status[node]"),
    ("view", "spec.view[node]"),
    ("log_view", "spec.log_view[node]"),
    ("durable_view", "spec.durable_view[node]"),
    ("durable_log_view", "spec.durable_log_view[node]"),
    ("op", "spec.op[node]"),
    ("head", "name of spec.entry[node, spec.op[node]]"),
    ("commit_min", "spec.commit_min[node]"),
    ("commit_max", "spec.commit_max[node]"),
    ("digest", "digest of every replica at spec.commit_min[node]"),
)
"""Observed column → spec state after the event. Equal commit_min must mean equal digest (I14)."""

OBSERVED_MORE: tuple[tuple[str, str, str], ...] = (
    ("table", "table of every replica at spec.commit_min[node]", ""),
    ("features", "0", "-control"),
    ("features", "mask(spec.enabled_at[node])", "control"),
    ("checkpoint", "0", "-checkpoints"),
    ("checkpoint", "spec.checkpoint[node]", "checkpoints"),
)
"""The same, with the option it takes, for runs whose first event shows any of them. Equal commit_min must mean an equal
client table (I9).
"""

_PRIMARY = Holds(
    "spec.view[node] % replica_count == node and spec.status[node] == 0", "node", "only a normal primary sends this"
)
_INSTALLED_LOG = InJournal("spec.entry[node, o]", ("o", "spec.commit_min[node] + 1", "spec.op[node]"))
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


def _entry_is(view: str, op: str) -> tuple[Check, ...]:
    """The columns of an entry are those of the prepare (view, op)."""
    return (
        Check("m_client", f"spec.prepare_client[{view}, {op}]"),
        Check("m_request", f"spec.prepare_request[{view}, {op}]"),
        Check("m_session", "0", when="-sessions"),
        Check("m_incarnation", "0", when="-sessions"),
        Check("m_session", f"spec.prepare_session[{view}, {op}]", when="sessions"),
        Check("m_incarnation", f"spec.prepare_incarnation[{view}, {op}]", when="sessions"),
        Check("m_feature", "0", when="-control"),
        Check("m_feature", f"spec.prepare_feature[{view}, {op}]", when="control"),
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


RULES: tuple[Rule, ...] = (
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
            *_start_view_received("durable_view", "op", _TRANSFERRED),
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
    Rule(
        "on_request",
        (
            Check("m_type", "'request'"),
            Check("m_view", "spec.view[node]"),
            Check("m_op", "spec.op[node] + 1"),
            Check("m_commit", "spec.commit_max[node]"),
            Step("on_request", {"r": "node", "c": "m_client", "s": "m_request"}, when="-sessions"),
            Step(
                "on_request",
                {"r": "node", "c": "m_client", "x": "m_session", "s": "m_request"},
                only_if="m_request",
                when="sessions",
            ),
            Step(
                "on_register",
                {"r": "node", "c": "m_client", "n": "m_incarnation"},
                only_if="not m_request",
                when="sessions",
            ),
            *_entry_is("m_view", "m_op"),
            Named("m_checksum", "spec.entry[node, m_op]", "m_op"),
            Named("m_parent", "spec.prepare_parent[m_view, m_op]", "m_op - 1"),
        ),
        sends="prepare",
        infer={"m_view": "spec.view[node]", "m_op": "spec.op[node] + 1", "m_checksum": "head"},
    ),
    Rule(
        "on_prepare",
        (
            Check("m_type", "'prepare'"),
            Check("m_view", "spec.view[node]"),
            Received("prepare_client", ("m_view", "m_op"), "m_client", some=True, when="-control"),
            Received("prepare_client", ("m_view", "m_op"), "m_client", when="control"),
            Received("prepare_feature", ("m_view", "m_op"), "m_feature", when="control"),
            Check("m_feature", "0", when="-control"),
            Received("prepare_request", ("m_view", "m_op"), "m_request"),
            Received("prepare_session", ("m_view", "m_op"), "m_session", when="sessions"),
            Received("prepare_incarnation", ("m_view", "m_op"), "m_incarnation", when="sessions"),
            Check("m_session", "0", when="-sessions"),
            Check("m_incarnation", "0", when="-sessions"),
            Received("prepare_commit", ("m_view", "m_op"), "m_commit", when="pipeline"),
            Received("prepare_parent", ("m_view", "m_op")),
            Named("m_checksum", "m_view + 1", "m_op"),
            Named("m_parent", "spec.prepare_parent[m_view, m_op]", "m_op - 1"),
            Received("commit_sent", ("m_view",), "m_commit"),
            Step("on_prepare", {"r": "node", "o": "m_op"}),
            Step("on_commit", {"r": "node", "k": "m_commit"}, only_if="m_commit > spec.commit_max[node]"),
        ),
        receives="prepare",
        infer={"m_view": "spec.view[node]", "m_op": "spec.op[node] + 1", "m_commit": "commit_max"},
    ),
    Rule(
        "append",
        (
            *(
                Step(
                    "append",
                    {"r": "node", "o": "o"},
                    each=("o", f"first_clear(spec.written[node], min(m_op, spec.op[node]){base})", "m_op"),
                    journals="spec.entry[node, o]",
                    when=when,
                )
                for base, when in (("", "-checkpoints"), (", spec.checkpoint[node]", "checkpoints"))
            ),
        ),
    ),
    Rule("repair", (Journaled(checksum="m_checksum", op="m_op"),)),
    Rule(
        "prepare_ok",
        (
            Check("m_type", "'prepare_ok'"),
            Check("m_view", "spec.view[node]"),
            Holds(
                "spec.ack[m_view, node, m_op] != 0",
                "m_op",
                "a replica acknowledges, in its view, an entry that its journal holds and that it has not executed",
            ),
            Named("m_checksum", "spec.ack[m_view, node, m_op]", "m_op"),
        ),
        sends="prepare_ok",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "on_prepare_ok",
        (
            Check("m_type", "'prepare_ok'"),
            Check("m_view", "spec.view[node]"),
            Received("ack", ("m_view", "m_from", "m_op"), some=True),
            Named("m_checksum", "spec.ack[m_view, m_from, m_op]", "m_op"),
        ),
        receives="prepare_ok",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "commit",
        (Step("commit", {"r": "node", "o": "o"}, each=("o", "spec.commit_max[node] + 1", "m_op")),),
        infer={"m_op": "commit_max"},
    ),
    Rule(
        "send_commit",
        (
            _PRIMARY,
            Check("m_type", "'commit'"),
            Check("m_view", "spec.view[node]"),
            Check("m_commit", "spec.commit_max[node]"),
        ),
        sends="commit",
    ),
    Rule(
        "on_commit",
        (
            Check("m_type", "'commit'"),
            Check("m_view", "spec.view[node]"),
            Received("commit_sent", ("m_view",), "m_commit"),
            Step("on_commit", {"r": "node", "k": "m_commit"}),
        ),
        receives="commit",
        infer={"m_view": "spec.view[node]", "m_commit": "commit_max"},
    ),
    Rule(
        "execute",
        (
            Check("m_op", "spec.commit_min[node] + 1"),
            *ASKS,
            Step("execute", {"r": "node"}, when="-control -slots"),
            Step("execute", {"r": "node"}, only_if="not m_evicted", when="-control slots"),
            Step("execute", {"r": "node"}, only_if="not m_feature", when="control -slots"),
            Step("execute", {"r": "node"}, only_if="not m_feature and not m_evicted", when="control slots"),
            Step("execute_evicting", {"r": "node", "c": "m_evicted"}, only_if="m_evicted", when="slots"),
            Step("execute_control", {"r": "node"}, only_if="m_feature", when="control"),
            Check("m_evicted", "0", when="-slots"),
            Named("m_checksum", "spec.executed[node, m_op]", "m_op"),
            *_entry_is("spec.executed[node, m_op] - 1", "m_op"),
            *ASKED,
            Holds(
                "m_type is None or m_type == 'reply' and spec.view[node] % replica_count == node",
                "m_type",
                "the primary, and only the primary, replies when it executes",
            ),
            Agrees("m_reply", "m_op", "I8", when="-control"),
            Agrees("m_reply", "m_op", "I8", only_if="not m_feature", when="control"),
        ),
        infer={
            "m_op": "spec.commit_min[node] + 1",
        },
    ),
    Rule(
        "resend_reply",
        (
            _PRIMARY,
            Check("m_type", "'reply'"),
            Check("m_request", "spec.table[node, m_client]"),
            Step(
                "resend_reply",
                {"r": "node", "c": "m_client"},
                only_if="spec.table[node, m_client] > spec.replies[m_client]",
                when="-clients",
            ),
            Step("resend_reply", {"r": "node", "c": "m_client"}, when="clients"),
            Check("m_op", "spec.table_op[node, m_client]", when="clients"),
            Check("m_session", "0", when="-sessions"),
            Check("m_incarnation", "0", when="-sessions"),
            Check("m_session", "spec.table_session[node, m_client] if m_request else 0", when="sessions"),
            Check("m_incarnation", "0 if m_request else spec.table_incarnation[node, m_client]", when="sessions"),
            Holds("m_op <= spec.commit_min[node]", "m_op", "the op of a cached reply has been executed"),
            Check("m_client", "spec.prepare_client[spec.entry[node, m_op] - 1, m_op]"),
            Check("m_request", "spec.prepare_request[spec.entry[node, m_op] - 1, m_op]"),
            Agrees("m_reply", "m_op", "I8"),
        ),
    ),
    Rule(
        "start_view_change",
        (Check("m_type", "'start_view_change'"), Step("start_view_change", {"r": "node", "v": "m_view"})),
        sends="start_view_change",
        receives="start_view_change|do_view_change",
        infer={"m_view": "view"},
    ),
    Rule(
        "on_start_view_change",
        (
            Check("m_type", "'start_view_change'"),
            Check("m_view", "spec.view[node]"),
            Received("svc", ("m_view", "m_from"), some=True),
        ),
        receives="start_view_change",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "do_view_change",
        (
            Check("m_type", "'do_view_change'"),
            Step("do_view_change", {"r": "node"}),
            Check("m_view", "spec.view[node]"),
            Check("m_log_view", "spec.dvc_log_view[m_view, node]"),
            Check("m_op", "spec.dvc_op[m_view, node]"),
            Check("m_commit", "spec.dvc_commit[m_view, node]"),
            Log("m_log", "spec.dvc_op[m_view, node]", "spec.dvc_entry[m_view, node, o]"),
        ),
        sends="do_view_change",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "on_do_view_change",
        (
            Check("m_type", "'do_view_change'"),
            Check("m_view", "spec.view[node]"),
            Received("dvc", ("m_view", "m_from"), some=True),
            Received("dvc_log_view", ("m_view", "m_from"), "m_log_view"),
            Received("dvc_op", ("m_view", "m_from"), "m_op"),
            Received("dvc_commit", ("m_view", "m_from"), "m_commit"),
            Received("dvc_entry", ("m_view", "m_from", "o"), each=("o", "1", "spec.dvc_op[m_view, m_from]")),
            Log("m_log", "spec.dvc_op[m_view, m_from]", "spec.dvc_entry[m_view, m_from, o]"),
        ),
        receives="do_view_change",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "start_view",
        (
            Check("m_type", "'start_view'"),
            Check("m_view", "spec.view[node]"),
            Step("start_view", {"r": "node", "b": "m_from?"}),
            Check("m_op", "spec.sv_op[m_view]"),
            Check("m_commit", "spec.commit_max[node]"),
            Log("m_log", "spec.sv_op[m_view]", "spec.sv_entry[m_view, o]"),
            _INSTALLED_LOG,
        ),
        sends="start_view",
        infer={"m_view": "spec.view[node]"},
    ),
    Rule(
        "send_start_view",
        (
            _PRIMARY,
            Check("m_type", "'start_view'"),
            Check("m_view", "spec.view[node]"),
            Check("m_op", "spec.op[node]"),
            Check("m_commit", "spec.commit_max[node]"),
            Log("m_log", "spec.op[node]", "spec.entry[node, o]"),
        ),
        sends="start_view",
    ),
    Rule(
        "on_start_view",
        (
            Check("m_type", "'start_view'"),
            *INSTALLED,
            Log("m_log", "m_op", "spec.entry[node, o]"),
            _INSTALLED_LOG,
        ),
        receives="start_view",
        infer={"m_view": "view", "m_op": "op", "m_commit": "commit_max"},
    ),
)
