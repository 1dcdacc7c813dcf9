"""What the lines of the July 2026 logs mean: event → steps of `spec.vsr.tigerbeetle.july_2026`."""

from __future__ import annotations

from typing import Final

from refinement.tigerbeetle.rules import Do, Eq, Expect, If, Let, Note, Ok, Rule, Took

_NODE: Final = (
    Rule(
        "init", Eq("replicas", "n"), Eq("votes", "q_v"), Eq("copies", "q_r"), Ok("up[node]", "it has no data file open")
    ),
    Rule("init_journal", Eq("slots", "SLOTS")),
    Rule("crash", Note("forget(node)"), Do("crash")),
    Rule("format", Note("formatted(node, id)"), Ok("view >= log_view", "log_view is above view")),
    Rule(
        "open",
        Let("x", "node_of_id(id)"),
        Ok("view >= log_view", "log_view is above view"),
        If("up[x]", Note("forget(x)"), Do("crash", r="x")),
        If(
            "is_new_disk(x)",
            Do("open_new_disk", r="x", v="view", w="log_view", k="commit", c="checkpoint"),
            otherwise=(Do("open_superblock", r="x", v="view", w="log_view", k="commit", c="checkpoint"),),
        ),
        Note("opens(x, checkpoint)"),
    ),
    Rule(
        "open_header",
        Let("x", "opening()"),
        Do("read_list", r="x", o="op", e="listed_prepare(checksum, op)", low="0"),
    ),
    Rule(
        "recover_slot",
        Ok("(label, decision) in RECOVERY_LABELS", "this case of the table has another decision"),
        Ok("op == slot and view == 0 or not what.endswith('reserved')", "an empty slot has no op or view of its own"),
        Let("e", "prepared[view, op] if decision in ('eql', 'fix') and not what.endswith('reserved') else 0"),
        Do("recover_slot", o="slot", d="DECISIONS[decision]", e="e"),
    ),
    Rule("drop_header", Do("drop_header", o="op", e="prepare_of(checksum)")),
    Rule(
        "recovered_journal",
        Do("journal_recovered"),
        Eq("dirty", "ones(dirty[node])"),
        Eq("faulty", "ones(faulty[node])"),
        Do("find_head"),
    ),
    Rule(
        "start_normal",
        If("n == 1", Do("start_single"), otherwise=(Do("start_normal"),)),
        Eq("view", "view[node]"),
        Eq("role", "'primary' if view[node] % n == node else 'backup'"),
    ),
    Rule(
        "doubt_head",
        Eq("checkpoint", "checkpoint[node]"),
        Eq("commit_min", "commit_min[node]"),
        Eq("op", "op[node]"),
        Eq("log_view", "log_view[node]"),
        Eq("view", "view[node]"),
        Do("doubt_head"),
    ),
)

_SUPERBLOCK: Final = (
    Rule(
        "ask_superblock",
        If("n == 1 and status[node] == 2", Do("next_view_alone")),
        Eq("durable", "durable_view[node]"),
        Eq("log_durable", "durable_log_view[node]"),
        Eq("view", "view[node]"),
        Eq("log_view", "log_view[node]"),
        Do("ask_superblock"),
        Expect(("asked_superblock",)),
    ),
    Rule(
        "asked_superblock",
        Took("due"),
        Eq("checkpoint", "next_checkpoint[node]"),
        Eq("commit", "next_commit[node]"),
        Eq("view", "next_view[node]"),
        Eq("log_view", "next_log_view[node]"),
    ),
    Rule(
        "wrote_view",
        Ok("view_pending[node]", "no such write was asked for"),
        Eq("checkpoint", "next_checkpoint[node]"),
        Eq("view", "next_view[node]"),
        Eq("log_view", "next_log_view[node]"),
    ),
    Rule("wrote_header", Ok("header_fits(checksum, op)", "the checksum is of another op")),
    Rule("view_durable", Do("view_durable"), Expect(("view_is_durable", "observe"))),
    Rule(
        "view_is_durable",
        Took("due"),
        Eq("view", "durable_view[node]"),
        Eq("log_view", "durable_log_view[node]"),
    ),
    Rule(
        "ask_checkpoint",
        Eq("before", "checkpoint[node]"),
        Do("ask_checkpoint", c="checkpoint", v="view", w="log_view"),
        Eq("commit", "ck_commit[node]"),
    ),
    Rule("checkpoint_durable", Do("checkpoint_durable")),
)

_MESSAGES: Final = (
    Rule(
        "receive",
        Eq("view", "view[node]"),
        Eq("status", "STATUS[status[node]]"),
        Eq("mark", "marks(status[node], view[node] % n == node)"),
        Ok("is_known(message)", "nobody sent this message"),
        Note("handles(node, id_of(message))"),
        Do("receive", m="id_of(message)"),
    ),
    Rule(
        "client_send",
        Ok("message.command == command", "the header is of another kind"),
        Ok("0 <= to < n", "there is no such replica"),
        Ok("request_agrees(message)", "the client sent another request of this number before"),
        Do("client_send", m="id_of(message)", q="to", k="KIND.get(command, OTHER)"),
    ),
    Rule(
        "send_client",
        Ok("message.command == command", "the header is of another kind"),
        If(
            "command == 'reply'",
            Let("mop", "message.op"),
            Let("mcommit", "message.commit"),
            Let("e", "canonical[mop]"),
            Eq("mcommit", "mop"),
            Ok("p_view[e] <= message.view <= view[node]", "it names a view that it cannot be of"),
            Ok("message.sender in (p_view[e] % n, node)", "it is in the name of another replica"),
            Ok("reply_fits(message, e)", "client, request or request checksum are not those of the prepare"),
            Ok("reply_agrees(message)", "another reply was given for this op (I8)"),
        ),
        Let("m", "id_of(message)"),
        Note("sends_to_client(message)"),
    ),
    Rule(
        "client_receive",
        Ok("was_sent_to_client(message)", "no replica sent this to a client"),
    ),
    Rule(
        "send",
        Ok("0 <= to < n_nodes", "there is no such replica"),
        Ok("message.command == command", "the header is of another kind"),
        Ok("message.sender == node or command in ('prepare', 'request', 'reply', 'block')", "it sends in its own name"),
        Took("due", optional=True),
        Let("known", "is_known(message)"),
        Let("m", "id_of(message)"),
        Let("mview", "message.view"),
        Let("mop", "message.op"),
        Let("msender", "message.sender"),
        If(
            "command == 'prepare'",
            Let("e", "prepare_of(message.checksum)"),
            Ok("same_prepare(message, e)", "the header differs from the one that was prepared"),
            Eq("mview", "p_view[e]"),
            Eq("mop", "p_op[e]"),
            Eq("msender", "p_view[e] % n"),
            Let("mcommit", "message.commit"),
            Eq("mcommit", "p_commit[e]"),
            Do("send_prepare", m="m", e="e"),
        ),
        If(
            "command == 'prepare_ok'",
            Ok("due >= 0", "an acknowledgement is sent when it is made"),
            Let("e", "prepare_of(message.string('prepare_checksum'))"),
            Ok("due == e", "another prepare was acknowledged"),
            Ok("same_request(message, e)", "the fields of the acknowledgement are not those of its prepare"),
            Let("mcommit", "message.number('commit_min')"),
            Eq("to", "view[node] % n"),
            Eq("mview", "view[node]"),
            Eq("mop", "p_op[e]"),
            Eq("mcommit", "commit_min[node]"),
            Do("send_prepare_ok", m="m", e="e"),
        ),
        If(
            "command == 'commit'",
            Let("mcommit", "message.commit"),
            Eq("mview", "view[node]"),
            Eq("mcommit", "commit_max[node]"),
            Ok(
                "named(canonical[mcommit], message.string('commit_checksum')) or mcommit == 0",
                "the checksum is not that of the prepare at the commit number",
            ),
            Do("send_commit", m="m"),
        ),
        If(
            "command == 'exit_view'",
            Eq("mview", "view[node]"),
            Do("exit_view", m="m"),
        ),
        If(
            "command == 'join_view'",
            Let("mlog_view", "message.number('log_view')"),
            Let("mcommit", "message.number('commit_min')"),
            Let("mcheckpoint", "message.number('checkpoint_op')"),
            Eq("mview", "view[node]"),
            Eq("mlog_view", "log_view[node]"),
            Eq("mop", "list_op[node]"),
            Eq("mcommit", "commit_min[node]"),
            Eq("mcheckpoint", "checkpoint[node]"),
            Ok(
                "message.number('size') == 256 * (list_op[node] - list_low[node] + 2)",
                "it does not carry the headers of the log that the replica left",
            ),
            Do("join_view", m="m"),
            Note("take_bits(message, m, node, list_low[node], list_op[node])"),
        ),
        If(
            "command == 'view'",
            Let("mcommit", "message.number('commit_max')"),
            Let("mcheckpoint", "message.number('checkpoint_op')"),
            Eq("mview", "view[node]"),
            Eq("mop", "op[node]"),
            Eq("mcommit", "commit_max[node]"),
            Eq("mcheckpoint", "checkpoint[node]"),
            Do("send_view", m="m", low="max(0, op[node] - SUFFIX + 1)"),
        ),
        If(
            "command == 'headers'",
            Eq("mview", "view[node]"),
            Do(
                "send_headers",
                m="m",
                lo="current_message(node).number('op_min')",
                hi="current_message(node).number('op_max')",
            ),
        ),
        If("command == 'request'", Ok("known or is_own_request(message)", "no client sent this request")),
        If(
            "command not in COMPOSED",
            Do("send_plain", m="m", v="mview", k="KIND.get(command, OTHER)"),
        ),
        If("command in ('ping', 'pong', 'get_headers')", Ok("mview <= view[node]", "it names a view it is not in")),
        Do("address", m="m", q="to"),
        Note("sends(node, m, to)"),
        If(
            "to != node and msender == node and command != 'get_view'",
            If(
                "mview > durable_view[node]",
                Expect(("drop",)),
                otherwise=(
                    If(
                        "command in ('join_view', 'view', 'prepare_ok') and log_view[node] > durable_log_view[node]",
                        Expect(("drop_log",)),
                    ),
                ),
            ),
        ),
    ),
    Rule(
        "drop",
        Took("due"),
        Eq("durable", "durable_view[node]"),
        Eq("view", "m_view[sending(node)]"),
        Do("hold_back", m="sending(node)", q="sending_to(node)"),
    ),
    Rule(
        "drop_log",
        Took("due"),
        Eq("durable", "durable_log_view[node]"),
        Eq("view", "log_view[node]"),
        Do("hold_back", m="sending(node)", q="sending_to(node)"),
    ),
    Rule(
        "reply",
        Let("mview", "message.view"),
        Let("mop", "message.op"),
        Let("mcommit", "message.commit"),
        Let("sender", "message.sender"),
        Eq("mop", "commit_min[node]"),
        Eq("mcommit", "mop"),
        Eq("mview", "p_view[canonical[mop]]"),
        Eq("sender", "p_view[canonical[mop]] % n"),
        Ok("reply_fits(message, canonical[mop])", "client, request or request checksum are not those of the prepare"),
        Ok("reply_agrees(message)", "another reply was given for this op (I8)"),
    ),
)

_NORMAL: Final = (
    Rule("request", Note("takes_request(node, checksum, client)"), Expect(("prepare",))),
    Rule(
        "prepare",
        Took("due"),
        Eq("op", "op[node] + 1"),
        Let("e", "new_prepare(checksum)"),
        Let("parent", "label_of(header[node, op[node] % SLOTS])"),
        Do("on_request", e="e", c="asked_client(node)", s="asked_number(node)", register="asked_register(node)"),
        Note("prepared_request(e, node, checksum, parent)"),
    ),
    Rule(
        "advance",
        Took("due", optional=True),
        Let("e", "prepare_of(checksum)"),
        Ok("named(p_parent[e], parent)", "the parent is not that of the prepare"),
        Eq("op", "p_op[e]"),
        If(
            "view[node] % n == node",
            Eq("before", "op[node] - 1"),
            Eq("op", "op[node]"),
            otherwise=(
                Eq("before", "op[node]"),
                Eq("op", "op[node] + 1"),
                Ok("current_checksum(node) == checksum", "another message is at hand"),
                Do("on_prepare"),
            ),
        ),
        Expect(("set_header",), "-1"),
    ),
    Rule(
        "jump",
        Eq("before", "op[node]"),
        Ok("named(header[node, op[node] % SLOTS], head)", "the checksum is not that of the head"),
        Ok("named(p_parent[m_prepare[current[node]]], parent)", "the parent is not that of the prepare"),
        Do("jump_ahead", o="op"),
        Expect(("advance",), "0"),
    ),
    Rule("learn_commit", Eq("before", "commit_max[node]"), Do("learn_commit", k="commit")),
    Rule("replay", Eq("before", "commit_max[node]"), Do("replay", k="commit")),
    Rule("note_commit", Took("due"), Eq("before", "commit_max[node]"), Do("note_commit", o="commit")),
    Rule(
        "commit_verified",
        Ok(
            "named(header[node, m_commit[current[node]] % SLOTS], current_message(node).string('commit_checksum'))",
            "the commit message names another prepare than the log has at its commit number",
        ),
    ),
    Rule(
        "count_prepare_ok",
        Let("e", "m_prepare[current[node]]"),
        Ok("not ok_from[node, p_op[e], m_from[current[node]]]", "it is counted already"),
        Do("on_prepare_ok", q="m_from[current[node]]", e="e"),
        Do("prepare_oks", o="p_op[e]", k="count"),
        If("count == q_r", Expect(("quorum_prepare_ok",))),
    ),
    Rule(
        "duplicate_prepare_ok",
        Eq("sender", "m_from[current[node]]"),
        Ok("ok_from[node, m_op[current[node]], sender]", "it did not acknowledge this prepare in this view before"),
    ),
    Rule(
        "quorum_prepare_ok",
        Took("due"),
        Ok("named(m_prepare[current[node]], checksum)", "another prepare was acknowledged"),
        Do("prepare_quorum", o="m_op[current[node]]"),
    ),
    Rule(
        "execute",
        Let("e", "prepare_of(checksum)"),
        Eq("view", "view[node]"),
        Eq("leads", "view[node] % n == node"),
        Eq("op", "commit_min[node] + 1"),
        Eq("op", "p_op[e]"),
        Ok("operation_fits(operation, e)", "the operation is not that of the request"),
        If(
            "status[node] == 0 and view[node] % n == node",
            Do("commit", e="e"),
            Expect(("note_commit",)),
            otherwise=(Do("execute", e="e"),),
        ),
    ),
    Rule(
        "acknowledge",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Do("acknowledge", o="op", e="e"),
        If("node < n", Expect(("send",), "e")),
    ),
    Rule(
        "new_session",
        Let("e", "canonical[commit_min[node]]"),
        Eq("session", "commit_min[node]"),
        Ok("request == 0 and p_register[e] and is_client(client, p_client[e])", "not the registration just executed"),
    ),
    Rule(
        "new_reply",
        Let("e", "canonical[commit_min[node]]"),
        If(
            "session[node, p_client[e]] == 0 and started_later(node)",
            Do("load_session", c="p_client[e]", o="session", s="request"),
        ),
        Eq("session", "session[node, p_client[e]]"),
        Eq("request", "p_request[e]"),
        Ok("not p_register[e] and is_client(client, p_client[e])", "not the request just executed"),
    ),
    Rule(
        "evict",
        If(
            "session[node, client_id(client)] == 0 and started_later(node)",
            Do("load_session", c="client_id(client)", o="1", s="0"),
        ),
        Do("evict", c="client_id(client)"),
    ),
)

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
        Do("on_exit_view", q="m_from[current[node]]"),
        Eq("count", "len(bits_of(bits))"),
        Ok("all_in(bits_of(bits), exit_from[node])", "it counts a replica that sent no exit_view of this view"),
    ),
    Rule(
        "quorum_exit_view",
        Eq("view", "view[node]"),
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
        If("stage == 'updating_checkpoint'", Note("starts_later(node)")),
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
        Ok("named(p_parent[header[node, op % SLOTS]], parent)", "the parent is not that of the prepare"),
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

RULES: Final = (*_NODE, *_SUPERBLOCK, *_MESSAGES, *_NORMAL, *_JOURNAL, *_VIEW_CHANGE, *_REPAIR, *_CLUSTER)
