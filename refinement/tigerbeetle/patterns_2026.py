"""Log lines of the July 2026 simulator: pattern → event.

exit_view is the paper's start_view_change, join_view its do_view_change, view its start_view. The letter after a node's
number is its status, in capitals if it leads its view.
"""

from __future__ import annotations

from typing import Final

from viewproof.refinement.tigerbeetle.table import Pattern, Table, changes, check, message, notes, step

R, J, S, C = "replica", "journal", "superblock", "cluster"
N: Final = "{node}{mark:k}: "

_START: Final = (
    check(
        R,
        N + "init: replica_count={replicas} quorum_view_change={quorum_view_change} "
        "quorum_replication={quorum_replication} release={}",
        "init",
    ),
    check(J, "{node}: slot_count={slots} size={} headers_size={} prepares_size={}", "init_journal"),
    step(C, "{node:p} ! {}", "crash"),
    step(
        S,
        "{node}: format: installed working superblock: {} replica_id={id:c} {} commit_min={checkpoint} "
        "commit_max={commit} log_view={log_view} view={view} {}",
        "format",
    ),
    step(
        S,
        "null: open: installed working superblock: {} replica_id={id:c} {} commit_min={checkpoint} "
        "commit_max={commit} log_view={log_view} view={view} {}",
        "open",
    ),
    step(S, "null: open: vsr_header: op={op} checksum={checksum:c}", "open_header"),
    step(
        J,
        "{node}: recover_slot: recovered slot={slot} label={label:w} decision={decision:w} operation={what:t} "
        "op={op} view={view}",
        "recover_slot",
    ),
    step(
        J,
        "{node}: recover_slots: drop header view_range={view_low}..{view_high} view={view} op={op} "
        "checksum={checksum:c}",
        "drop_header",
    ),
    step(J, "{node}: recover_slots: dirty={dirty} faulty={faulty}", "recovered_journal"),
    step(R, N + "transition_to_normal_from_recovering_status: view={view} {role:w}", "start_normal"),
    step(
        R,
        N + "transition_to_recovering_head_from_recovering_status: op_checkpoint={checkpoint} "
        "commit_min={commit_min} op_head={op} log_view={log_view} view={view}",
        "doubt_head",
    ),
    *notes(
        R,
        "superblock release={}",
        N + "open: {}",
        N + "state_machine_open_callback: {}",
        N + "op_head_certain: {}",
        N + "release_transition: {}",
    ),
    *notes(
        J,
        "{node}: recover: recovering",
        "{node}: recover_headers: {}",
        "{node}: recover_prepare: recovering slot={}",
        "{node}: recover_slots: torn prepare in slot={}",
        "{node}: torn_prepares: {}",
    ),
    *notes(
        S,
        "null: open: {}",
        "{node}: format: {}",
        "{node}: repair: {}",
        "null: repair: {}",
    ),
)

_SUPERBLOCK: Final = (
    step(
        R,
        N + "view_durable_update: view_durable={durable}..{view} log_view_durable={log_durable}..{log_view}",
        "ask_superblock",
    ),
    check(
        S,
        "{node}: view_change: commit_min={}..{checkpoint} commit_max={}..{commit} {} "
        "log_view={}..{log_view} view={}..{view} head={}",
        "asked_superblock",
    ),
    check(
        S,
        "{node}: view_change: installed working superblock: {} commit_min={checkpoint} commit_max={commit} "
        "log_view={log_view} view={view} {}",
        "wrote_view",
    ),
    check(S, "{node}: view_change: vsr_header: op={op} checksum={checksum:c}", "wrote_header"),
    step(S, "{node}: view_change: complete", "view_durable"),
    check(
        R,
        N + "view_durable_update_callback: (view_durable={view} log_view_durable={log_view})",
        "view_is_durable",
    ),
    step(
        S,
        "{node}: checkpoint: commit_min={checkpoint_before}..{checkpoint} commit_max={}..{commit} {} "
        "log_view={}..{log_view} view={}..{view} head={}",
        "ask_checkpoint",
    ),
    step(S, "{node}: checkpoint: complete", "checkpoint_durable"),
    *notes(S, "{node}: view_change: {}", "{node}: checkpoint: {}"),
    *notes(
        R,
        N + "commit_checkpoint_data: {}",
        N + "commit_checkpoint_data_callback_join: {}",
        N + "commit_checkpoint_superblock: {}",
        N + "commit_checkpoint_superblock_callback: {}",
    ),
)

_MESSAGES: Final = (
    message(R, N + "on_message: view={view} status={status:w} {message:m}", "receive"),
    message(R, N + "sending {command:w} to replica {to}: {message:m}", "send"),
    step(R, N + "send_message_to_replica: dropped {command:w} (view_durable={durable} message.view={view})", "drop"),
    step(
        R,
        N + "send_message_to_replica: dropped {command:w} (log_view_durable={durable} log_view={view})",
        "drop_log",
    ),
    message(R, N + "execute_op: replying to client: {message:m}", "reply"),
    message(R, N + "execute_op: no reply to client: {message:m}", "reply"),
    message(R, N + "sending {command:w} to client {client:c}: {message:m}", "send_client"),
    message("client", "{}: sending {command:w} to replica {to}: {message:m}", "client_send"),
    message("client", "{}: on_message: {message:m}", "client_receive"),
    *notes(
        R,
        N + "on_messages: {}",
        N + "on_message: {}",
        N + "on_ping: {}",
        N + "on_pong: {}",
        N + "on_ping_client: {}",
        N + "sending eviction message to client={} reason={}",
        N + "send_message_to_replica: invalid {}",
        N + "send_commit: {}",
    ),
)

_NORMAL: Final = (
    check(R, N + "primary_pipeline_prepare: request checksum={checksum:c} client={client:c}", "request"),
    step(R, N + "primary_pipeline_prepare: prepare checksum={checksum:c} op={op}", "prepare"),
    step(R, N + "on_prepare: advancing: op={op_before}..{op} checksum={parent:c}..{checksum:c}", "advance"),
    step(R, N + "jump_to_newer_op: advancing: op={op_before}..{op} checksum={head:c}..{parent:c}", "jump"),
    step(R, N + "on_prepare: advancing commit_max={commit_before}..{commit}", "learn_commit"),
    step(R, N + "on_commit: advancing commit_max={commit_before}..{commit}", "learn_commit"),
    step(R, N + "on_view_set_journal: advancing commit_max={commit_before}..{commit}", "learn_commit"),
    step(R, N + "state_machine_open_callback: advancing commit_max={commit_before}..{commit}", "replay"),
    step(R, N + "execute_op: advancing commit_max={commit_before}..{commit}", "note_commit"),
    check(R, N + "on_commit: checksum verified", "commit_verified"),
    step(R, N + "on_prepare_ok: {count} message(s)", "count_prepare_ok"),
    check(R, N + "on_prepare_ok: ignoring (duplicate message replica={sender})", "duplicate_prepare_ok"),
    step(R, N + "on_prepare_ok: quorum received, prepare_checksum={checksum:c}", "quorum_prepare_ok"),
    step(
        R,
        N + "execute_op: executing view={view} primary={leads:b} op={op} checksum={checksum:c} ({operation:w})",
        "execute",
    ),
    step(R, N + "send_prepare_ok: op={op} checksum={checksum:c}", "acknowledge"),
    check(R, N + "send_prepare_ok: not sending (old)", "not_sent"),
    check(
        R, N + "client_table_entry_create: write (client={client:c} session={session} request={request})", "new_session"
    ),
    check(R, N + "client_table_entry_update: client={client:c} session={session} request={request}", "new_reply"),
    step(R, N + "client_table_entry_create: clients={}/{} evicting client={client:c}", "evict"),
    *notes(
        R,
        N + "tick_normal_heartbeat_fault: {}",
        N + "on_request: {}",
        N + "on_prepare: not replicating {}",
        N + "on_prepare: ignoring {}",
        N + "on_prepare: lagging behind {}",
        N + "on_prepare: caching prepare.op={} {}",
        N + "on_prepare: newer op",
        N + "on_prepare: checkpoint diverged {}",
        N + "on_prepare_ok: {}",
        N + "on_reply: {}",
        N + "on_commit: {}",
        N + "on_prepare_timeout: {}",
        N + "on_primary_abdicate_timeout: {}",
        N + "on_pulse_timeout: {}",
        N + "on_upgrade_timeout: {}",
        N + "on_grid_scrub_timeout: {}",
        N + "on_repair_sync_timeout: {}",
        N + "append: {}",
        N + "replicate: {}",
        N + "commit_pipeline: {}",
        N + "commit_journal: {}",
        N + "commit_start_pipeline: {}",
        N + "commit_start_journal: {}",
        N + "commit_start_journal_callback: {}",
        N + "commit_prefetch: {}",
        N + "commit_stall {}",
        N + "execute_op: commit_timestamp={} prepare.header.timestamp={}",
        N + "execute_op: skip client table update: {}",
        N + "execute_op_upgrade: {}",
        N + "send_prepare_ok: not sending {}",
        N + "repair_stuck: {}",
        N + "valid_hash_chain_between: {}",
        N + "panic_if_hash_chain_would_break: {}",
        N + "on_get_blocks: {}",
        N + "on_block: {}",
        N + "on_get_reply: {}",
        N + "send_get_blocks: {}",
        N + "sync_enqueue_tables: {}",
        N + "sync_reclaim_tables: {}",
    ),
)

_JOURNAL: Final = (
    step(J, "{node}: set_header_as_dirty: op={op} checksum={checksum:c}", "set_header"),
    check(J, "{node}: remove_entries_from: op_min={op}", "remove_from"),
    step(J, "{node}: write: view={view} slot={slot} op={op} len={}: {checksum:c} starting", "write_start"),
    step(J, "{node}: write_header: op={op} sectors[{}..{}]", "write_header"),
    step(
        J,
        "{node}: write: view={view} slot={slot} op={op} len={}: {checksum:c} complete, marking clean",
        "write_done",
    ),
    step(
        J,
        "{node}: write: view={view} slot={slot} op={op} len={}: {checksum:c} entry changed while writing sectors",
        "write_moot",
    ),
    step(
        J,
        "{node}: write: view={view} slot={slot} op={op} len={}: {checksum:c} entry {} while writing headers",
        "write_header_moot",
    ),
    step(J, "{node}: read_prepare: op={op} checksum={checksum:c}: corrupt {}", "rot"),
    step(J, "{node}: read_prepare: op={op} checksum={checksum:c}: wrong cluster", "rot"),
    step(J, "{node}: read_prepare: op={op} checksum={checksum:c}: op changed during read", "rot"),
    step(J, "{node}: read_prepare: op={op} checksum={checksum:c}: checksum changed during read", "rot"),
    *notes(
        J,
        "{node}: write: view={} slot={} op={} len={}: {} waiting for IOP",
        "{node}: write: view={} slot={} op={} len={}: {} skipping (clean)",
        "{node}: write_sectors: {}",
        "{node}: read_prepare: op={} checksum={}: {}",
        "{node}: copy_latest_headers_between: {}",
        "recovery_case: impossible state: {}",
    ),
    *notes(R, N + "write_prepare: ignoring {}"),
)

_VIEW_CHANGE: Final = (
    step(
        R,
        N + "on_exit_view: view={view} waiting for quorum ({count}/{threshold}; replicas={bits:w})",
        "wait_exit_view",
    ),
    step(R, N + "on_exit_view: view={view} quorum received (replicas={bits:w})", "quorum_exit_view"),
    step(
        R,
        N + "transition_to_view_change_status: view={view_before}..{view} status={from_status:w}..{}",
        "start_view_change",
    ),
    step(R, N + "on_join_view: view={view} waiting for quorum", "wait_join_view"),
    step(R, N + "on_join_view: view={view} quorum received, awaiting repair", "wait_join_view"),
    step(R, N + "on_join_view: view={view} quorum received, deadlocked", "wait_join_view"),
    step(R, N + "on_join_view: view={view} quorum received", "quorum_join_view"),
    check(
        R,
        N
        + "on_join_view: jv: replica={sender} log_view={log_view} op={op} commit_min={commit} checkpoint={checkpoint}",
        "counted_join_view",
    ),
    check(
        R,
        N + "on_join_view: jv: header: replica={sender} op={op} checksum={checksum:c} nack={nack:b} "
        "present={present:b} type={type:w}",
        "counted_header",
    ),
    step(
        R,
        N + "primary_set_log_from_join_view_messages: view={view} op={op_before}..{op} "
        "commit_max={commit_before}..{commit}",
        "merge_log",
    ),
    step(
        R,
        N + "on_view_set_journal: view={view} op={op_before}..{op} commit_max={commit_before}..{commit}",
        "install_log",
    ),
    step(
        R,
        N + "on_view_set_checkpoint: sync started view={view} checkpoint={checkpoint_before}..{checkpoint}",
        "start_sync",
    ),
    step(R, N + "sync_dispatch: {}..{stage:w}", "sync_stage"),
    step(
        R,
        N + "transition_to_normal_from_view_change_status: view={}..{view} {role:w}",
        "start_view",
    ),
    step(
        R,
        N + "transition_to_normal_from_recovering_head_status: view={}..{view} {role:w}",
        "head_known",
    ),
    check(
        R,
        N + "view_as_the_new_primary: pipeline (op={op} checksum={checksum:c} parent={parent:c})",
        "pipeline_entry",
    ),
    *changes(R, N + "reset {} message(s) from view={}"),
    *notes(
        R,
        N + "on_exit_view: {}",
        N + "on_join_view: ignoring {}",
        N + "on_join_view: replacing {}",
        N + "on_join_view: misdirected {}",
        N + "on_join_view: lagging primary; forfeiting {}",
        N + "on_join_view: committed: replica={} op={} checksum={}",
        N + "on_view: {}",
        N + "on_view view={} (ignoring, old message)",
        N + "on_get_view: {}",
        N + "on_get_view_message_timeout: view={}",
        N + "primary_set_log_from_join_view_messages: k={} < commit_max={} and commit_min == commit_max",
        N + "on_view_set_journal: k={} < commit_max={} and commit_min == commit_max",
        N + "on_view_set_journal: {}",
        N + "jump_view: {}",
        N + "sync_start_from_committing {}",
        N + "sync: {}",
    ),
)

_REPAIR: Final = (
    step(R, N + "repair_header: op={op} checksum={checksum:c} (gap)", "header_other"),
    step(R, N + "repair_header: op={op} checksum={checksum:c} (different view)", "header_other"),
    step(R, N + "repair_header: op={op} checksum={checksum:c} (same view, older op)", "header_other"),
    step(R, N + "repair_header: op={op} checksum={checksum:c} (same view, newer op)", "header_other"),
    step(R, N + "repair_header: op={op} checksum={checksum:c} (checksum dirty)", "header_dirty"),
    check(R, N + "repair_header: op={op} checksum={checksum:c} (checksum clean)", "header_clean"),
    check(R, N + "repair_header: op={op} checksum={checksum:c} (disconnected from hash chain)", "header_apart"),
    check(R, N + "repair_header: op={op} checksum={checksum:c} (advances hash chain head)", "header_advances"),
    check(R, N + "repair_header: op={op} checksum={checksum:c} (changes hash chain head)", "header_changes"),
    check(
        R,
        N + "repair: break: view={view} break={}..{} (commit={commit_min}..{commit_max} op={op} {})",
        "repair_break",
    ),
    check(
        R,
        N + "repair: break: view={view} break={}..{} (commit={commit_min}..{commit_max} op={op})",
        "repair_break",
    ),
    check(R, N + "repair_prepare: op={op} checksum={checksum:c} (already writing)", "repair_writing"),
    step(R, N + "repair_prepares: remove slot={slot} (faulty, precedes checkpoint)", "drop_slot"),
    *notes(
        R,
        N + "repair_header: op={} checksum={} view={} (newer view)",
        N + "repair_header: op={} checksum={} (precedes op_repair_min={})",
        N + "on_repair: {}",
        N + "repair: ignoring (optimistic, not ticking)",
        N + "repair_prepares: {}",
        N + "repair_prepare: {}",
        N + "primary_repair_pipeline: {}",
        N + "primary_repair_pipeline_read: {}",
        N + "repair_pipeline_read_callback: {}",
        N + "on_get_prepare: {}",
        N + "on_get_prepare_read: {}",
        N + "on_get_headers: {}",
        N + "on_headers: {}",
    ),
)

_CLUSTER: Final = (
    check(
        C,
        "{node:p} {what:e} {} {view:u}V {checkpoint:u}/{commit_min:u}/{commit_max:u}C {}:{}Jo "
        "{faulty:u}/{dirty:u}J! {}",
        "observe",
    ),
    *notes(C, "{}"),
)

TABLE: Final = Table(
    family="2026",
    patterns=(
        *_START,
        *_SUPERBLOCK,
        *_MESSAGES,
        *_NORMAL,
        *_JOURNAL,
        *_VIEW_CHANGE,
        *_REPAIR,
        *_CLUSTER,
    ),
    subsystems=("replica", "journal", "superblock", "cluster"),
)

__all__ = ["TABLE", "Pattern"]
