"""Log lines of the June 2022 simulators, of the first days of the month to the last: pattern → event.

Recovery by nonce, nacks, headers and prepares rings; the primary is called leader, a backup follower.
"""

from __future__ import annotations

from typing import Final

from viewproof.refinement.tigerbeetle.table import Pattern, Table, changes, check, message, notes, step

R, J = "replica", "journal"

_START: Final = (
    check(
        R,
        "{node}: init: replica_count={replicas} quorum_view_change={quorum_view_change} "
        "quorum_replication={quorum_replication}",
        "init",
    ),
    step(J, "{node}: slot_count={slots} size={} headers_size={} prepares_size={}", "init_journal"),
    check("health", "crash replica={node}", "crash"),
    step("health", "restart replica={node}", "restart"),
    check(J, "{node}: recover: recovering", "recover_journal"),
    step(J, "{node}: recover_slot: recovered slot={slot} label={label:w} decision={decision:w}", "recover_slot"),
    step(J, "{node}: recover_prepares: recovered slot={slot} label={label:w} decision={decision:w}", "recover_slot"),
    step(J, "{node}: recover_slots: dirty={dirty} faulty={faulty}", "recovered_journal"),
    step(J, "{node}: recover_done: dirty={dirty} faulty={faulty}", "recovered_journal"),
    step(R, "{node}: transition_to_normal_from_recovering_status: view={view} {role:w}", "recovered"),
    *notes(R, "{node}: init: client_table.capacity()={} for config.clients_max={} entries"),
    *notes(
        J,
        "{node}: recover_headers: offset={} size={} recovering",
        "{node}: recover_headers: offset={} size={} recovered",
        "{node}: recover_headers: complete",
        "{node}: recover_prepares: recovering slot={}",
    ),
)

_MESSAGES: Final = (
    message(R, "{node}: on_message: view={view} status=Status.{status:w} {message:m}", "receive"),
    message(R, "{node}: sending {command:w} to replica {to}: {message:m}", "send"),
    message(R, "{node}: commit_op: replying to client: {message:m}", "reply"),
    message("client", "{}: sending {command:w} to replica {to}: {message:m}", "client_send"),
    message("client", "{}: on_message: {message:m}", "client_receive"),
    *notes(
        R,
        "{node}: on_message: waiting for journal to recover",
        "{node}: on_message: invalid ({})",
        "{node}: on_message: wrong cluster (cluster must be {} not {})",
        "{node}: on_message: ignoring misdirected {} message",
        "{node}: on_message: on_{}() queued a {} loopback message with no flush",
        "{node}: on_ping: ignoring (self)",
        "{node}: send_message_to_replica: TODO {}",
        "{node}: send_message_to_replica: invalid ({})",
    ),
)

_NORMAL: Final = (
    check(R, "{node}: on_request: request {checksum:c}", "request"),
    step(R, "{node}: on_request: prepare {checksum:c}", "prepare"),
    step(R, "{node}: on_prepare: advancing: op={op_before}..{op} checksum={parent:c}..{checksum:c}", "advance"),
    step(R, "{node}: jump_to_newer_op: advancing: op={op_before}..{op} checksum={head:c}..{parent:c}", "jump"),
    check(R, "{node}: on_commit: checksum verified", "commit_verified"),
    step(R, "{node}: on_prepare_ok: {count} message(s)", "count_prepare_ok"),
    check(R, "{node}: on_prepare_ok: ignoring (duplicate message replica={sender})", "duplicate_prepare_ok"),
    step(R, "{node}: on_prepare_ok: quorum received, context={checksum:c}", "quorum_prepare_ok"),
    step(R, "{node}: commit_ops: advancing commit_max={commit_before}..{commit}", "advance_commit_max"),
    step(
        R, "{node}: commit_op: executing view={view} {leads:b} op={op} checksum={checksum:c} ({operation:w})", "execute"
    ),
    step(R, "{node}: send_prepare_ok: op={op} checksum={checksum:c}", "acknowledge"),
    check(R, "{node}: create_client_table_entry: client={client:c} session={session} request={request}", "new_session"),
    check(R, "{node}: update_client_table_entry: client={client:c} session={session} request={request}", "new_reply"),
    step(R, "{node}: create_client_table_entry: clients={}/{} evicting client={client:c}", "evict"),
    *notes(
        R,
        "{node}: on_prepare: ignoring {}",
        "{node}: on_prepare: newer op",
        "{node}: on_request: new request",
        "{node}: on_request: new session",
        "{node}: on_request: replying to duplicate request",
        "{node}: on_request: ignoring {}",
        "{node}: on_request: forwarding (follower)",
        "{node}: on_request: dropping (clock not synchronized)",
        "{node}: on_request: waiting for session to commit",
        "{node}: on_request: request collision (client bug)",
        "{node}: on_request: no session",
        "{node}: too many sessions, sending eviction message to client={}",
        "{node}: on_prepare_ok: waiting for quorum",
        "{node}: on_prepare_ok: ignoring (quorum received already)",
        "{node}: on_prepare_ok: ignoring {}",
        "{node}: pipeline_prepare_for_prepare_ok: not preparing",
        "{node}: pipeline_prepare_for_prepare_ok: preparing a different client op",
        "{node}: on_commit: ignoring {}",
        "{node}: on_commit: skipping checksum verification",
        "{node}: on_prepare_timeout: {}",
        "{node}: replicate: {}",
        "{node}: append: {}",
        "{node}: commit_ops: already committing...",
        "{node}: commit_ops_commit: {}",
        "{node}: commit_ops_read: waiting for repair {}",
        "{node}: commit_pipeline: waiting for quorum",
        "{node}: send_prepare_ok: not sending {}",
        "{node}: valid_hash_chain_between: {}",
        "{node}: on_commit: waiting for repair {}",
        "{node}: discard_uncommitted_ops_from: waiting for repair {}",
        "{node}: panic_if_hash_chain_would_break: {}",
    ),
)

_JOURNAL: Final = (
    step(J, "{node}: set_header_as_dirty: op={op} checksum={checksum:c}", "set_header"),
    step(J, "{node}: remove_entries_from: op_min={op}", "remove_from"),
    check(J, "{node}: remove_entry: op={op} checksum={checksum:c}", "remove_entry"),
    step(J, "{node}: write: view={view} op={op} len={}: {checksum:c} starting", "write_start"),
    step(J, "{node}: write_sectors: offset={offset} len={} unlocked", "sectors_written"),
    step(J, "{node}: write_header: op={op} sectors[{}..{}]", "write_header"),
    step(J, "{node}: write: view={view} op={op} len={}: {checksum:c} complete, marking clean", "write_done"),
    step(
        J,
        "{node}: write: view={view} op={op} len={}: {checksum:c} entry changed while writing sectors",
        "write_moot",
    ),
    step(
        J,
        "{node}: write: view={view} op={op} len={}: {checksum:c} entry changed while writing headers",
        "write_moot",
    ),
    step(J, "{node}: read_prepare: op={op} checksum={checksum:w}: corrupt {} after read", "rot"),
    check(
        J,
        "{node}: copy_latest_headers_between: op_min={low} op_max={high} dest.len={limit} copied={count}",
        "copy_headers",
    ),
    *notes(
        J,
        "{node}: write: view={} op={} len={}: {} waiting for IOP",
        "{node}: write: view={} op={} len={}: {} skipping (clean)",
        "{node}: write_sectors: offset={} len={} locked",
        "{node}: read_sectors: offset={} len={}",
        "{node}: read_prepare: op={} checksum={}: {}",
        "recovery_case: impossible state: {}",
    ),
    *notes(R, "{node}: write_prepare: ignoring op={} checksum={} {}"),
)

_VIEW_CHANGE: Final = (
    step(R, "{node}: transition_to_view_change_status: view={view_before}..{view}", "start_view_change"),
    step(R, "{node}: on_start_view_change: {count} message(s)", "count_start_view_change"),
    step(R, "{node}: on_start_view_change: view={view} quorum received", "quorum_start_view_change"),
    step(R, "{node}: on_do_view_change: {count} message(s)", "count_do_view_change"),
    step(R, "{node}: on_do_view_change: view={view} quorum received", "quorum_do_view_change"),
    check(
        R,
        "{node}: on_do_view_change: replica={sender} v'={log_view} op={op} commit={commit} latest={message:m}",
        "counted_do_view_change",
    ),
    step(
        R,
        "{node}: on_do_view_change: view={view} op={op_before}..{op} commit={commit_before}..{commit} "
        "checksum={checksum:c}",
        "merge_log",
    ),
    step(
        R,
        "{node}: on_start_view: view={view} op={op_before}..{op} commit={commit_before}..{commit} "
        "checksum={checksum:c}",
        "install_log",
    ),
    step(R, "{node}: transition_to_normal_from_view_change_status: view={view} {role:w}", "start_view"),
    step(R, "{node}: discard_uncommitted_headers: op={op} gap", "gap"),
    check(R, "{node}: discard_uncommitted_headers: replica={sender} op={op} nack={nack:b}", "gap_nack"),
    step(R, "{node}: discard_uncommitted_headers: op={op} nacks={count} threshold={threshold}", "discard_header"),
    step(R, "{node}: discard_uncommitted_ops_from: ops={op}..{op_head} view={view}", "discard_ops"),
    *changes(R, "{node}: reset {} message(s) from view={}"),
    *notes(
        R,
        "{node}: on_do_view_change: latest op exists exactly",
        "{node}: on_start_view: latest op exists exactly",
        "{node}: on_do_view_change: k={} < commit_max={} and commit_min == commit_max",
        "{node}: on_start_view: k={} < commit_max={} and commit_min == commit_max",
        "{node}: on_start_view_change: ignoring {}",
        "{node}: on_start_view_change: waiting for quorum",
        "{node}: on_do_view_change: ignoring {}",
        "{node}: on_do_view_change: waiting for {}",
        "{node}: on_start_view: ignoring {}",
        "{node}: on_request_start_view: ignoring {}",
        "{node}: view_jump: {}",
    ),
)

_REPAIR: Final = (
    check(R, "{node}: repair_header: op={op} false (checksum clean)", "header_clean"),
    step(R, "{node}: repair_header: op={op} exists, checksum dirty", "header_dirty"),
    step(R, "{node}: repair_header: op={op} exists, connects hash chain", "header_connects"),
    step(R, "{node}: repair_header: op={op} exists, view has older op", "header_older"),
    step(R, "{node}: repair_header: op={op} gap", "header_gap"),
    check(R, "{node}: repair_header: op={op} false (breaks hash chain)", "header_breaks"),
    check(R, "{node}: repair_header: op={op} false (exists)", "header_exists"),
    check(R, "{node}: repair_header: op={op} false (view has newer op)", "header_newer"),
    check(R, "{node}: repair_header: false (advances self.op={op})", "header_advances"),
    check(R, "{node}: repair_header: false (changes self.op={op})", "header_changes"),
    check(
        R,
        "{node}: repair: break: view={view} op_min={low} op_max={high} (commit={commit_min}..{commit_max} op={op})",
        "repair_break",
    ),
    check(R, "{node}: repair: op={op} < commit_max_limit={}, commit_max={commit_max}", "repair_behind"),
    step(
        R,
        "{node}: repair_prepare: op={op} checksum={checksum:c} (uncommitted, {reason:w}, view_change)",
        "repair_nackable",
    ),
    check(R, "{node}: repair_prepare: op={op} checksum={checksum:c} ({nature:w}, {reason:w})", "repair_prepare"),
    check(R, "{node}: repair_prepare: op={op} checksum={checksum:c} (from pipeline)", "repair_from_pipeline"),
    check(R, "{node}: repair_prepare: op={op} checksum={checksum:c} (already writing)", "repair_writing"),
    step(R, "{node}: repair_prepares: op={op} (op known, first cycle)", "slot_unused"),
    step(R, "{node}: on_repair: repairing uncommitted op={op}", "nack_answered"),
    check(R, "{node}: on_request_prepare: op={op} checksum={checksum:w} reply from pipeline", "answer_pipeline"),
    check(R, "{node}: on_request_prepare: op={op} checksum={checksum:w} reading", "answer_reading"),
    check(R, "{node}: on_request_prepare: op={op} checksum={checksum:c} nacking", "answer_nack"),
    check(R, "{node}: on_request_prepare_read: op={op} checksum={checksum:c} sending to replica={to}", "answer_read"),
    check(R, "{node}: on_request_headers: ignoring (op={low}..{high}, no headers)", "no_headers"),
    step(R, "{node}: on_nack_prepare: {count} message(s)", "count_nack"),
    check(
        R,
        "{node}: on_nack_prepare: quorum_replication={quorum_replication} threshold={threshold} op={op}",
        "nack_threshold",
    ),
    step(R, "{node}: on_nack_prepare: quorum received op={op}", "quorum_nack"),
    step(R, "{node}: repair_pipeline_diff: {count} prepare(s)", "pipeline_diff"),
    step(R, "{node}: reset_pipeline: retained {count} prepare(s)", "pipeline_reset"),
    check(R, "{node}: verify_pipeline: op={op} checksum={checksum:x} parent={parent:x}", "pipeline_entry"),
    check(R, "{node}: repair_pipeline_read: op={op} checksum={checksum:c}", "pipeline_read"),
    step(R, "{node}: repair_pipeline_push: op={op} checksum={checksum:c}", "pipeline_push"),
    *notes(
        R,
        "{node}: on_repair: ignoring {}",
        "{node}: on_repair: repairing journal",
        "{node}: repair: ignoring (optimistic, not ticking)",
        "{node}: repair_prepares: waiting for IOP",
        "{node}: repair_prepares: request budget used",
        "{node}: repair_prepare: op={} checksum={} (serializing append)",
        "{node}: repair_prepare: op={} checksum={} (deferred append)",
        "{node}: repair_pipeline: {}",
        "{node}: repair_pipeline_read: repaired",
        "{node}: repair_pipeline_push: {}",
        "{node}: on_request_prepare: ignoring {}",
        "{node}: on_request_prepare_read: prepare=null",
        "{node}: on_request_headers: ignoring {}",
        "{node}: on_headers: ignoring {}",
        "{node}: on_nack_prepare: waiting for quorum",
        "{node}: on_nack_prepare: ignoring {}",
    ),
)

_RECOVERY: Final = (
    step(R, "{node}: recover: sending recovery messages nonce={nonce:c}", "ask_recovery"),
    check(R, "{node}: on_recovery: view={view} op={op} commit={commit} nonce={nonce:c}", "answer_recovery"),
    step(R, "{node}: on_recovery_response: replica={sender} view={view} op={op} commit={commit}", "first_response"),
    step(
        R,
        "{node}: on_recovery_response: replica={sender} view={view_before}..{view} op={op_before}..{op} "
        "commit={commit_before}..{commit}",
        "later_response",
    ),
    step(R, "{node}: on_recovery_response: ignoring (older)", "older_response"),
    check(R, "{node}: on_recovery_response: waiting for quorum ({count}/{threshold})", "wait_responses"),
    step(
        R,
        "{node}: on_recovery_response: view={view} op={op_before}..{op} commit={commit_before}..{commit} "
        "checksum={checksum:c}",
        "recover_log",
    ),
    check(
        R,
        "{node}: on_recovery_response: responses={count} view={view} headers={low}..{high} commit={commit} "
        "dirty={dirty} faulty={faulty}",
        "responses_used",
    ),
    *notes(
        R,
        "{node}: on_recovery: ignoring {}",
        "{node}: on_recovery_response: ignoring {}",
        "{node}: on_recovery_response: latest op exists exactly",
        "{node}: on_recovery_response: repair root op",
        "{node}: on_recovery_response: k={} < commit_max={} and commit_min == commit_max",
        "{node}: op_certain: op not known (faulty_slot={}, op={}, op_checkpoint={})",
    ),
)

_CHECKER: Final = (
    check("state_checker", "{} {state_before:x} > {state:x} {node}", "new_state"),
    *notes("state_checker", ""),
)


TABLE: Final = Table(
    family="2022",
    patterns=(*_START, *_MESSAGES, *_NORMAL, *_JOURNAL, *_VIEW_CHANGE, *_REPAIR, *_RECOVERY, *_CHECKER),
    subsystems=("replica", "journal", "health", "state_checker"),
)

__all__ = ["TABLE", "Pattern"]
