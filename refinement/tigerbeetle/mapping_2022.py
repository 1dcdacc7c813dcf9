"""What the lines of the June 2022 logs mean: event → steps of `spec.vsr.tigerbeetle.june_2022`."""

from __future__ import annotations

from typing import Final

from viewproof.refinement.tigerbeetle.mapping_2022_log import LOG_RULES
from viewproof.refinement.tigerbeetle.rules import Do, Eq, Expect, If, Let, Note, Ok, Rule, Took

_NODE: Final = (
    Rule(
        "init",
        Eq("replicas", "n"),
        Eq("votes", "q_v"),
        Eq("copies", "q_r"),
    ),
    Rule(
        "init_journal",
        Eq("slots", "SLOTS"),
        If("up[node] and was_set_up(node)", Note("forget(node)"), Do("crash")),
    ),
    Rule("crash"),
    Rule("restart", Do("restart")),
    Rule("recover_journal", Ok("next_slot[node] == 0", "the journal is recovered once per start")),
    Rule(
        "recover_slot",
        Took("due", optional=True),
        Let("cases", "EARLY_LABELS if is_early(label, decision) else RECOVERY_LABELS"),
        Ok("(label, decision) in cases", "this case of the table has another decision"),
        Ok("due < 0 or decision == 'fix' and disk_body[node, slot] == due", "another header was put into this slot"),
        Do("recover_slot", o="slot", d="DECISIONS[decision]", b="cases[label, decision]"),
    ),
    Rule(
        "recovered_journal",
        Do("journal_recovered"),
        Eq("dirty", "ones(dirty[node])"),
        Eq("faulty", "ones(faulty[node])"),
    ),
    Rule(
        "recovered",
        Let("asked", "recovering_from(node)"),
        If(
            "asked >= 0",
            Do("finish_recovery", b="asked"),
            otherwise=(If("n == 1 and op[node] > 0", Do("recover_single"), otherwise=(Do("recover_empty"),)),),
        ),
        Eq("view", "view[node]"),
        Eq("role", "'leader' if view[node] % n == node else 'follower'"),
    ),
)

_MESSAGES: Final = (
    Rule(
        "receive",
        Eq("view", "view[node]"),
        Eq("status", "STATUS[status[node]]"),
        Ok("is_known(message)", "nobody sent this message"),
        Do("receive", m="id_of(message)"),
        Note("walks(node, id_of(message))"),
    ),
    Rule(
        "client_send",
        Ok("message.command == command", "the header is of another kind"),
        Ok("0 <= to < n", "there is no such replica"),
        Ok("request_agrees(message)", "the client sent another request of this number before"),
        Do("client_send", m="id_of(message)", q="to", k="KIND[command]"),
    ),
    Rule("client_receive", Ok("reply_known(message)", "nobody gave this reply, or it differs from one given (I8)")),
    Rule(
        "send",
        Ok("0 <= to < n", "there is no such replica"),
        Ok("message.command == command", "the header is of another kind"),
        Ok("message.sender == node or command in ('prepare', 'request')", "a replica sends in its own name"),
        Ok("are_zero(message, UNUSED.get(command, ()))", "a field that has no meaning here is not 0"),
        Let("m", "id_of(message)"),
        Let("mview", "message.view"),
        Let("mop", "message.op"),
        Let("mcommit", "message.commit"),
        Let("headers", "message.number('size') // HEADER_SIZE - 1"),
        Took("due", optional=True),
        If(
            "command == 'ping' or command == 'pong'",
            Do("probe", m="m", v="mview"),
        ),
        If("command == 'request'", Eq("to", "view[node] % n"), Do("forward", m="m")),
        If(
            "command == 'prepare'",
            Let("e", "prepare_of(message.checksum)"),
            Ok("same_prepare(message, e)", "the header differs from the one that was prepared"),
            Eq("mview", "p_view[e]"),
            Eq("mop", "p_op[e]"),
            Eq("mcommit", "p_commit[e]"),
            Do("send_prepare", m="m", e="e"),
        ),
        If(
            "command == 'prepare_ok'",
            Ok("due >= 0", "an acknowledgement is sent when it is made"),
            Let("e", "prepare_of(message.string('context'))"),
            Ok("due == e", "another prepare was acknowledged"),
            Ok("same_request(message, e)", "the fields of the acknowledgement are not those of its prepare"),
            Eq("to", "view[node] % n"),
            Eq("mview", "view[node]"),
            Eq("mop", "p_op[e]"),
            Eq("mcommit", "p_commit[e]"),
            Do("send_prepare_ok", m="m", e="e"),
        ),
        If(
            "command == 'commit'",
            Eq("mview", "view[node]"),
            Eq("mcommit", "commit_max[node]"),
            Ok(
                "named(entry[node, mcommit], message.string('context'))",
                "the checksum is not that of the prepare at the commit number",
            ),
            Do("send_commit", m="m"),
        ),
        If(
            "command == 'start_view_change'",
            Eq("mview", "view[node]"),
            Do("send_start_view_change", m="m"),
        ),
        If(
            "command == 'do_view_change'",
            Let("mlog_view", "message.number('timestamp')"),
            Eq("to", "view[node] % n"),
            Eq("mview", "view[node]"),
            Eq("mop", "op[node]"),
            Eq("mcommit", "commit_max[node]"),
            Eq("mlog_view", "log_view[node]"),
            Do("do_view_change", m="m", low="newest(entry[node], op[node], headers)", h="headers"),
        ),
        If(
            "command == 'start_view'",
            Eq("mview", "view[node]"),
            Eq("mop", "op[node]"),
            Do("send_start_view", m="m", low="newest(entry[node], op[node], headers)", h="headers", k="mcommit"),
        ),
        If(
            "command == 'recovery'",
            Ok("nonce_of(message.string('context')) == nonce[node]", "the nonce is not that of this recovery"),
            Do("send_recovery", m="m"),
        ),
        If(
            "command == 'recovery_response'",
            Eq("mview", "view[node]"),
            Eq("mop", "op[node]"),
            Eq("mcommit", "commit_max[node]"),
            Do(
                "answer_recovery",
                m="m",
                n="nonce_of(message.string('context'))",
                low="newest(entry[node], op[node], headers)",
                h="headers",
            ),
        ),
        If(
            "command == 'request_start_view'",
            Eq("to", "mview % n"),
            Do("ask_start_view", m="m", v="mview"),
        ),
        If(
            "command == 'request_headers'",
            Eq("mview", "view[node]"),
            Do("ask_headers", m="m", lo="mcommit", hi="mop"),
        ),
        If(
            "command == 'request_prepare'",
            Eq("mview", "view[node]"),
            Do("ask_prepare", m="m", o="mop", e="prepare_or_0(message.string('context'))"),
        ),
        If(
            "command == 'headers'",
            Eq("mview", "view[node]"),
            Eq("to", "m_from[current[node]]"),
            Do("send_headers", m="m", lo="m_commit[current[node]]", hi="m_op[current[node]]"),
            Note("answers(m, m_op[current[node]])"),
        ),
        If(
            "command == 'nack_prepare'",
            Eq("mview", "view[node]"),
            Eq("to", "view[node] % n"),
            Do("send_nack", m="m", o="mop", e="prepare_of(message.string('context'))"),
        ),
        Do("address", m="m", q="to"),
    ),
    Rule(
        "reply",
        Took("e"),
        Let("mview", "message.view"),
        Let("mop", "message.op"),
        Let("mcommit", "message.commit"),
        Let("sender", "message.sender"),
        Ok("view[node] % n == node", "only the primary of the view replies"),
        Eq("mop", "commit_min[node]"),
        Eq("mcommit", "mop"),
        Eq("mview", "p_view[canonical[mop]]"),
        Eq("sender", "p_view[canonical[mop]] % n"),
        Ok("reply_fits(message, canonical[mop])", "client, request or request checksum are not those of the prepare"),
        Ok("reply_agrees(message)", "another reply was given for this op (I8)"),
        Let("m", "id_of(message)"),
    ),
)

_NORMAL: Final = (
    Rule(
        "request",
        Ok("m_kind[current[node]] == KIND['request']", "the message at hand is no request"),
        Ok("current_checksum(node) == checksum", "another request is at hand"),
        Expect(("prepare",)),
    ),
    Rule("prepare", Took("due"), Expect(("advance",), "new_prepare(checksum)")),
    Rule(
        "advance",
        Took("e", optional=True),
        Eq("before", "op[node]"),
        Eq("op", "op[node] + 1"),
        If(
            "e > 0",
            Ok("is_new(checksum, e)", "another prepare was announced"),
            Ok("named(entry[node, op[node]], parent)", "the parent is not the head of the log (I10)"),
            Note("name_parent(entry[node, op[node]], parent)"),
            Do(
                "on_request",
                e="e",
                c="client_of(node)",
                s="request_of(node)",
                register="is_register(node)",
            ),
            Note("prepared(e, node, checksum, parent)"),
            otherwise=(
                Ok("current_checksum(node) == checksum", "another message is at hand"),
                Ok("named(p_parent[prepare_of(checksum)], parent)", "the parent is not that of the prepare (I10)"),
                Eq("op", "p_op[prepare_of(checksum)]"),
                Do("on_prepare"),
            ),
        ),
        Expect(("set_header",), "-1"),
    ),
    Rule(
        "jump",
        Eq("before", "op[node]"),
        Ok("named(entry[node, op[node]], head)", "the checksum is not that of the head"),
        Ok("named(p_parent[m_prepare[current[node]]], parent)", "the parent is not that of the prepare (I10)"),
        Do("jump_ahead", o="op"),
        Expect(("advance",), "0"),
    ),
    Rule(
        "commit_verified",
        Ok(
            "named(entry[node, m_commit[current[node]]], current_message(node).string('context'))",
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
        Do("on_prepare_ok", q="sender", e="m_prepare[current[node]]"),
    ),
    Rule(
        "quorum_prepare_ok",
        Took("due"),
        Ok("named(m_prepare[current[node]], checksum)", "another prepare was acknowledged"),
        Do("prepare_quorum", o="m_op[current[node]]"),
    ),
    Rule(
        "advance_commit_max",
        Eq("before", "commit_max[node]"),
        If(
            "n == 1 and status[node] == 2",
            Do("replay", k="commit"),
            otherwise=(Do("learn_commit", k="commit"),),
        ),
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
            otherwise=(Do("execute", e="e"),),
        ),
        If(
            "p_register[e] or session[node, p_client[e]] > 0",
            Expect(("new_session", "new_reply", "evict", "new_state"), "e"),
        ),
        If("view[node] % n == node", Expect(("reply",), "e")),
    ),
    Rule(
        "acknowledge",
        Let("e", "prepare_of(checksum)"),
        Eq("op", "p_op[e]"),
        Do("acknowledge", o="op", e="e"),
        Expect(("send",), "e"),
    ),
    Rule(
        "new_session",
        Took("e"),
        Eq("session", "commit_min[node]"),
        Ok("request == 0 and p_register[e] and is_client(client, p_client[e])", "not the registration just executed"),
    ),
    Rule(
        "new_reply",
        Took("e"),
        Eq("session", "session[node, p_client[e]]"),
        Eq("request", "p_request[e]"),
        Ok("not p_register[e] and is_client(client, p_client[e])", "not the request just executed"),
    ),
    Rule("evict", Took("e"), Do("evict", c="client_id(client)"), Expect(("new_session",), "e")),
    Rule(
        "new_state",
        Took("e", optional=True),
        If(
            "e >= 0",
            Ok(
                "state_agrees(node, commit_min[node], before, state)",
                "the state differs from that of the same op elsewhere (I14)",
            ),
            Expect(("new_session", "new_reply", "evict"), "e"),
            otherwise=(Ok("state_is_first(node, before, state)", "the state changes when an op is executed"),),
        ),
    ),
)

RULES: Final = (*_NODE, *_MESSAGES, *_NORMAL, *LOG_RULES)
