"""What the lines of the July 2026 logs mean, second part: journal, view change, repair, the cluster's own summary."""

from __future__ import annotations

from typing import Final

from viewproof.refinement.tigerbeetle.rules import Do, Eq, Expect, If, Let, Note, Ok, Rule, Took

_JOURNAL: Final = (
    Rule(
        "set_header",
        Took("d", optional=True),
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        If(
            "was_due and d == -1",
            Ok("header[node, op % SLOTS] == e and dirty[node, op % SLOTS]", "another header was to be put here"),
            otherwise=(
                If(
                    "was_due",
                    Eq("op", "d // 2"),
                    Do("repair_header", o="op", e="e", d="d % 2"),
                    otherwise=(
                        If(
                            "status[node] == 2",
                            Do("put_listed_header", o="op", e="e"),
                            otherwise=(Do("replace_header", o="op", e="e"),),
                        ),
                    ),
                ),
            ),
        ),
    ),
    Rule("remove_from", Expect(("merge_log", "install_log"), "op")),
    Rule(
        "write_start",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Eq("view", "p_view[e]"),
        Eq("slot", "op % SLOTS"),
        Do("write_start", o="op", e="e"),
    ),
    Rule("write_header", Do("write_body", o="op")),
    Rule(
        "write_done",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Eq("view", "p_view[e]"),
        Eq("slot", "op % SLOTS"),
        Do("write_done", o="op", e="e"),
    ),
    Rule(
        "write_moot",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Do("write_given_up", o="op", e="e", b="1"),
    ),
    Rule(
        "write_header_moot",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Do("write_given_up", o="op", e="e", b="0"),
    ),
    Rule("rot", Let("e", "prepare_of(checksum)"), Eq("op", "p_op[e]"), Do("find_rot", o="op", e="e")),
)

_VIEW_CHANGE: Final = (
    Rule(
        "wait_exit_view",
        Eq("view", "view[node]"),
        Eq("threshold", "q_v"),
        Do("receive", m="resumed(node)"),
        Do("on_exit_view", q="m_from[current[node]]"),
        Eq("count", "len(bits_of(bits))"),
        Ok("all_in(bits_of(bits), exit_from[node])", "it counts a replica that sent no exit_view of this view"),
    ),
    Rule(
        "quorum_exit_view",
        Eq("view", "view[node]"),
        Do("receive", m="resumed(node)"),
        Do("on_exit_view", q="m_from[current[node]]"),
        Ok("all_in(bits_of(bits), exit_from[node])", "it counts a replica that sent no exit_view of this view"),
        Do("exit_quorum", k="len(bits_of(bits))"),
        Expect(("start_view_change",)),
    ),
    Rule(
        "start_view_change",
        Took("due", optional=True),
        Eq("before", "view[node]"),
        Eq("from_status", "'vsr.replica.Status.' + STATUS[status[node]]"),
        Do("start_view_change", v="view"),
        If("view > before and not view_pending[node]", Expect(("ask_superblock",))),
    ),
    Rule(
        "wait_join_view",
        Eq("view", "view[node]"),
        Do("receive", m="resumed(node)"),
        Do("on_join_view", q="m_from[current[node]]"),
    ),
    Rule(
        "quorum_join_view",
        Eq("view", "view[node]"),
        Do("receive", m="resumed(node)"),
        Do("on_join_view", q="m_from[current[node]]"),
        Expect(("counted_join_view",)),
    ),
    Rule(
        "counted_join_view",
        Took("due", optional=True),
        Let("m", "join_of[node, sender]"),
        Ok("m > 0", "no join_view of this replica is counted"),
        Eq("log_view", "m_log_view[m]"),
        Eq("op", "m_op[m]"),
        Eq("commit", "m_commit[m]"),
        Eq("checkpoint", "m_checkpoint[m]"),
    ),
    Rule(
        "counted_header",
        Let("m", "join_of[node, sender]"),
        Ok("m > 0 and m_low[m] <= op <= m_op[m]", "this vote carries no header of this op"),
        Ok(
            "named(m_header[m, op], checksum) if type == 'valid' else m_header[m, op] == 0",
            "the vote carries another header",
        ),
        Eq("nack", "bool(m_nack[m, op])"),
        Eq("present", "bool(m_present[m, op])"),
    ),
    Rule(
        "merge_log",
        Took("lowest"),
        Eq("lowest", "op + 1"),
        Eq("view", "view[node]"),
        Eq("before", "op[node]"),
        Eq("commit_before", "commit_max[node]"),
        Do("merge_log", h="op", k="commit"),
    ),
    Rule(
        "install_log",
        Took("lowest"),
        Eq("lowest", "op + 1"),
        Eq("before", "op[node]"),
        Eq("commit_before", "commit_max[node]"),
        Do("install_log", h="op", k="commit"),
        Eq("view", "view[node]"),
    ),
    Rule(
        "start_sync",
        Eq("before", "checkpoint[node]"),
        Do("start_sync"),
        Eq("checkpoint", "m_checkpoint[syncing[node]]"),
    ),
    Rule(
        "sync_stage",
        If("stage == 'idle'", Do("end_sync")),
        If("stage == 'updating_checkpoint'", Do("forget_clients"), Note("starts_later(node)")),
    ),
    Rule(
        "start_view",
        If("view[node] % n == node", Do("start_view"), otherwise=(Do("follow_view"),)),
        Eq("view", "view[node]"),
        Eq("role", "'primary' if view[node] % n == node else 'backup'"),
    ),
    Rule("head_known", Do("follow_view"), Eq("view", "view[node]"), Eq("role", "'backup'")),
    Rule(
        "pipeline_entry",
        Ok("named(header[node, op % SLOTS], checksum)", "another prepare is in this slot"),
        Ok("named(p_parent[header[node, op % SLOTS]], parent)", "the parent is not that of the prepare (I10)"),
    ),
)

_HEADER: Final = ("set_header", "header_apart")

_REPAIR: Final = (
    Rule(
        "header_other",
        Ok("header[node, op % SLOTS] != prepare_of(checksum)", "this header is there"),
        Expect(_HEADER, "op * 2"),
    ),
    Rule(
        "header_dirty",
        Ok("header[node, op % SLOTS] == prepare_of(checksum) and dirty[node, op % SLOTS]", "it is not there, dirty"),
        Expect(_HEADER, "op * 2 + 1"),
    ),
    Rule(
        "header_clean",
        Ok("header[node, op % SLOTS] == prepare_of(checksum)", "this header is not there"),
    ),
    Rule("header_apart", Took("d"), Eq("op", "d // 2")),
    Rule("header_advances", Ok("op > op[node] and p_op[prepare_of(checksum)] == op", "it is not above the head")),
    Rule(
        "header_changes", Eq("op", "op[node]"), Ok("p_op[prepare_of(checksum)] == op", "the checksum is of another op")
    ),
    Rule(
        "repair_break",
        Eq("view", "view[node]"),
        Eq("commit_min", "commit_min[node]"),
        Eq("commit_max", "commit_max[node]"),
        Eq("op", "op[node]"),
    ),
    Rule(
        "repair_writing",
        Ok("header[node, op % SLOTS] == prepare_of(checksum)", "another prepare is in this slot"),
        Ok("writing[node, prepare_of(checksum)]", "it is not being written"),
    ),
    Rule("drop_slot", Do("drop_slot", o="slot")),
)

_CLUSTER: Final = (
    Rule(
        "observe",
        Took("due", optional=True),
        Eq("view", "view[node]"),
        Eq("checkpoint", "checkpoint[node]"),
        Eq("commit_min", "commit_min[node]"),
        Eq("commit_max", "commit_max[node]"),
        Eq("dirty", "ones(dirty[node])"),
        Eq("faulty", "ones(faulty[node])"),
    ),
)


LOG_RULES: Final = (*_JOURNAL, *_VIEW_CHANGE, *_REPAIR, *_CLUSTER)
