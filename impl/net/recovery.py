"""What the others must say before a replica may be put back whose promises are lost (docs/recovery.md)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewproof.impl.interface.durable import ClientTableConfig, Quorums, SuperblockState, superblock_formatted
from viewproof.impl.interface.ranges import COUNTER_MAX
from viewproof.impl.net.framing import Position, Status
from viewproof.impl.net.peers import is_older
from viewproof.impl.storage.evidence import OUTDATED_NAME
from viewproof.impl.storage.recover import Diagnosis, Finding, Remedy

__all__ = ["RecoveryError", "TooFewAnswersError", "recovery_superblock", "with_entry_that_fails", "with_what_was_heard"]


class RecoveryError(ValueError):
    """This replica cannot be recovered like this; the text says why, and what to do."""


class TooFewAnswersError(RecoveryError):
    """Too few of the others answered."""


def with_what_was_heard(found: Diagnosis, statuses: Sequence[Status | None]) -> Diagnosis:
    """The diagnosis, with a finding if the directory is older than what the others heard from its replica."""
    state = found.agreed
    if state is None or state.recovery or any(os.path.basename(each.file) == OUTDATED_NAME for each in found.findings):
        return found
    op = -1 if found.op is None else found.op
    here = Position(state.replica, state.group, state.recoveries, state.view, state.log_view, op)
    for status in statuses:
        for known in () if status is None else status.heard:
            if (known.replica, known.group) == (state.replica, state.group) and is_older(here, known):
                problem = (
                    f"older than what replica {known.replica} said of itself before: view {known.view}, op {known.op} "
                    f"of view {known.log_view}; here view {here.view}, op {here.op} of view {here.log_view}"
                )
                return replace(found, findings=(*found.findings, Finding(found.path, problem, Remedy.FROM_CLUSTER)))
    return found


@dataclass(frozen=True, slots=True)
class _Agreed:
    """What all who answered say."""

    replica_count: int
    quorums: Quorums
    clients: ClientTableConfig


def recovery_superblock(
    statuses: Sequence[Status | None],
    replica: int,
    cluster: int,
    group: int,
    copies: Sequence[SuperblockState] = (),
    *,
    others_restarted: bool = False,
) -> SuperblockState:
    """The superblock with which `replica` begins its recovery, from what each address answered (None: nothing).

    `copies` are what is left of its own superblock; one with a view that is out of range says nothing of it: had it
    sent a do_view_change there, the others would know of that view. Its view is the highest that any of them, or any
    of the others, knows of. Answers of replicas that were recovered themselves count only with `others_restarted`: all
    processes of the others were started anew since. Raises RecoveryError, TooFewAnswersError.
    """
    _check_addresses(statuses, replica, cluster)
    answers = [status for status in statuses if status is not None]
    agreed = _agreed(answers, len(statuses))
    _check_copies(copies, agreed, replica, cluster, group)
    needed = agreed.replica_count - agreed.quorums.view_change + 1
    if needed >= agreed.replica_count:
        raise RecoveryError(
            f"with a view change quorum of {agreed.quorums.view_change} a replica may have started views that no other "
            "knows of: restore its files from a backup"
        )
    if len(answers) < needed:
        silent = [index for index, status in enumerate(statuses) if status is None and index != replica]
        raise TooFewAnswersError(
            f"{len(answers)} of the {needed} others that are needed answered; not: replicas {silent}. Start them first"
        )
    recovered = [status.replica for status in answers if status.recoveries]
    if len(answers) - len(recovered) < needed and not others_restarted:
        raise RecoveryError(
            f"replicas {recovered} were recovered themselves, and a message that one of them sent before may have been "
            f"under way since: restart the processes of all replicas but {replica}, then say --others-restarted"
        )
    _check_quorum(answers, agreed.quorums)
    views = [copy.view for copy in copies if copy.view <= COUNTER_MAX]
    heard = [
        position.recoveries
        for status in answers
        for position in status.heard
        if (position.replica, position.group) == (replica, group)
    ]
    clocks = [copy.clock for copy in copies if copy.clock <= COUNTER_MAX]
    state = superblock_formatted(cluster, replica, agreed.replica_count, agreed.quorums, agreed.clients, group)
    return replace(
        state,
        view=max([status.view for status in answers] + views),
        sequence=max([copy.sequence + 1 for copy in copies], default=2) + 1,
        clock=max(clocks, default=0),
        recovery=secrets.randbits(62) | 1,
        recoveries=max([copy.recoveries for copy in copies] + heard, default=0) + 1,
    )


def with_entry_that_fails(found: Diagnosis, op: int, statuses: Sequence[Status | None]) -> Diagnosis:
    """The diagnosis, with a finding that applying the entry at `op` fails here, though the files are whole.

    Raises TooFewAnswersError unless another replica, in normal status, has a checkpoint at or above it: what comes from
    the cluster begins there. RecoveryError if this one is beyond the op itself.
    """
    state = found.agreed
    if state is None or state.recovery:
        return found
    if state.checkpoint >= op:
        raise RecoveryError(
            f"--entry-fails {op}: the checkpoint is {state.checkpoint}, so that entry is not applied at a start"
        )
    others = [each for each in statuses if each is not None and each.replica != state.replica]
    beyond = [each.replica for each in others if each.status == "normal" and each.checkpoint >= op]
    if not beyond:
        checkpoints = ", ".join(f"replica {each.replica}: {each.checkpoint}" for each in others) or "no answer"
        raise TooFewAnswersError(
            f"--entry-fails {op}: no other replica has a checkpoint there yet ({checkpoints}); what they send would be "
            "applied here again. Wait for their next checkpoint; if they do not execute that entry either, the remedy "
            "is a version that can"
        )
    problem = f"applying the entry at op {op} fails here; replicas {beyond} have a checkpoint beyond it"
    return replace(found, findings=(*found.findings, Finding(found.path, problem, Remedy.FROM_CLUSTER)))


def _check_addresses(statuses: Sequence[Status | None], replica: int, cluster: int) -> None:
    """Each address must be that of its own replica, and the replica to be recovered must not run."""
    if not 0 <= replica < len(statuses):
        raise RecoveryError(f"replica {replica} has no place among {len(statuses)} addresses")
    if len(statuses) == 1:
        raise RecoveryError("a single replica has nobody to recover from: restore its files from a backup")
    if statuses[replica] is not None:
        raise RecoveryError(f"replica {replica} answers at its address: it is running, and is not to be recovered")
    for index, status in enumerate(statuses):
        if status is not None and (status.replica, status.cluster) != (index, cluster):
            raise RecoveryError(
                f"the address of replica {index} of cluster {cluster} is that of replica {status.replica} of "
                f"cluster {status.cluster}"
            )


def _check_quorum(answers: Sequence[Status], quorums: Quorums) -> None:
    """A replica in recovery waits for a view that goes on without it: the others must be able to have one."""
    waiting = [status.replica for status in answers if status.status == "recovering"]
    quorum = max(quorums.replication, quorums.view_change)
    if waiting and len(answers) - len(waiting) < quorum:
        raise TooFewAnswersError(
            f"replicas {waiting} are recovering themselves; without them and this one there is no quorum of {quorum} "
            "that could give its log back: see to them first (this one may still have what they wait for)"
        )


def _agreed(answers: Sequence[Status], addresses: int) -> _Agreed:
    if not answers:
        raise TooFewAnswersError("no other replica answered")
    said = {_Agreed(s.replica_count, Quorums(*s.quorums), ClientTableConfig(*s.clients)) for s in answers}
    if len(said) > 1:
        raise RecoveryError(f"the others do not agree on their configuration: {sorted(map(str, said))}")
    (agreed,) = said
    if agreed.replica_count != addresses:
        raise RecoveryError(f"{addresses} addresses, but the cluster has {agreed.replica_count} replicas")
    return agreed


def _check_copies(copies: Sequence[SuperblockState], agreed: _Agreed, replica: int, cluster: int, group: int) -> None:
    for copy in copies:
        found = (copy.cluster, copy.replica, copy.group, copy.replica_count, copy.quorums, copy.clients)
        wanted = (cluster, replica, group, agreed.replica_count, agreed.quorums, agreed.clients)
        if found != wanted:
            raise RecoveryError(
                f"the superblock is that of replica {copy.replica} of {copy.replica_count} of cluster {copy.cluster} "
                f"(group {copy.group}, {copy.quorums}, {copy.clients}), not of replica {replica} of cluster {cluster} "
                f"(group {group}, {agreed.quorums}, {agreed.clients}): wrong directory?"
            )
