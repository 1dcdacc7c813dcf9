"""The mapping of events that only a specification with options has: client table, control entries, checkpoints."""

from __future__ import annotations

from viewproof.refinement.mapping.boot import CHECKPOINTED, CONFIGURATION, FEATURE_MAX, RECOVERED
from viewproof.refinement.mapping.lines import Check, Journaled, Log, Named, Received, Rule, Step

OPTION_RULES: tuple[Rule, ...] = (
    Rule(
        "drop_request",
        (
            Check("m_session", "0", when="-sessions"),
            Check("m_incarnation", "0", when="-sessions"),
            Step(
                "drop_request",
                {"r": "node", "c": "m_client", "s": "m_request", "y": "outcome(m_outcome)"},
                when="-sessions",
            ),
            Step(
                "drop_request",
                {"r": "node", "c": "m_client", "x": "m_session", "s": "m_request", "y": "outcome(m_outcome)"},
                only_if="m_request",
                when="sessions",
            ),
            Check("m_incarnation", "0 if m_request else m_incarnation", when="sessions"),
            Check("m_session", "m_session if m_request else 0", when="sessions"),
            Step(
                "drop_register",
                {"r": "node", "c": "m_client", "n": "m_incarnation", "y": "outcome(m_outcome)"},
                only_if="not m_request",
                when="sessions",
            ),
        ),
        when="clients",
    ),
    Rule(
        "send_eviction",
        (
            Check("m_incarnation", "0"),
            Step(
                "send_eviction",
                {"r": "node", "c": "m_client", "x": "m_session", "s": "m_request", "y": "outcome(m_outcome)"},
            ),
        ),
        when="sessions",
    ),
    Rule(
        "on_features",
        (
            Received(
                "supports",
                ("m_from", "f"),
                some=True,
                each=("f", "1", FEATURE_MAX),
                only_if="m_features >> (f - 1) & 1",
            ),
        ),
        when="control",
    ),
    Rule(
        "propose_feature",
        (
            Check("m_client", "0"),
            Check("m_request", "0"),
            *(Check(c, "0", when=when) for c in ("m_session", "m_incarnation") for when in ("-sessions", "sessions")),
            Check("m_view", "spec.view[node]"),
            Check("m_op", "spec.op[node] + 1"),
            Check("m_commit", "spec.commit_max[node]"),
            Step("propose_feature", {"r": "node", "f": "m_feature"}),
            Named("m_checksum", "spec.entry[node, m_op]", "m_op"),
            Named("m_parent", "spec.prepare_parent[m_view, m_op]", "m_op - 1"),
        ),
        sends="prepare",
        infer={"m_view": "spec.view[node]", "m_op": "spec.op[node] + 1", "m_checksum": "head"},
        when="control",
    ),
    Rule(
        "checkpoint",
        (Check("m_op", "spec.commit_min[node]"), Step("take_checkpoint", {"r": "node"})),
        when="checkpoints",
    ),
    Rule(
        "drop_prepare",
        (
            Check("m_type", "'prepare'"),
            Check("m_view", "spec.view[node]"),
            Received("prepare_client", ("m_view", "m_op")),
            Received("prepare_feature", ("m_view", "m_op"), when="control"),
            Step("drop_prepare", {"r": "node", "o": "m_op"}),
        ),
        receives="prepare",
        infer={"m_view": "spec.view[node]"},
        when="fence",
    ),
    Rule(
        "nack",
        (
            Check("m_type", "'nack'"),
            Check("m_view", "spec.view[node]"),
            Step(
                "nack",
                {"r": "node", "o": "m_op", "w": "m_log_view"},
                only_if="m_view > spec.nack[node, m_log_view, m_op]",
            ),
            Named("m_checksum", "m_log_view + 1", "m_op"),
        ),
        infer={"m_view": "spec.view[node]"},
        when="discard",
    ),
    Rule(
        "recover",
        (
            Check("m_type", "'start_view'"),
            Step(
                "take_checkpoint",
                {"r": "node"},
                only_if=f"not m_checkpoint and {CHECKPOINTED}",
                when="checkpoints",
            ),
            *RECOVERED,
            Log("m_log", "m_op", "spec.entry[node, o]"),
            Journaled("spec.entry[node, o]", ("o", "1", "spec.op[node]"), afresh=True),
            *CONFIGURATION,
        ),
        receives="start_view",
        infer={
            "m_view": "view",
            "m_op": "op",
            "m_commit": "commit_max",
            "checkpoint": "m_checkpoint",
            "m_log_view": "spec.durable_log_view[node]",
        },
        when="losses",
    ),
    Rule(
        "append_failed",
        (Step("append_failed", {"r": "node", "o": "m_op"}),),
        when="append_failure",
    ),
)
