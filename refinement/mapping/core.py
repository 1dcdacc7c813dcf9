"""The mapping of native traces onto the core of the specification, as a table.

Silent steps (the trace cannot show them): `client_request` before `on_request`; before `restart`, the one durable
step that a replica was in when it was killed.
"""

from __future__ import annotations

from viewproof.refinement.mapping.boot import BOOT_RULES, INSTALLED
from viewproof.refinement.mapping.lines import (
    Agrees,
    Check,
    Holds,
    InJournal,
    Journaled,
    Log,
    Named,
    Received,
    Rule,
    Step,
)
from viewproof.refinement.mapping.partitions import ASKED, ASKS

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


RULES: tuple[Rule, ...] = (
    *BOOT_RULES,
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
