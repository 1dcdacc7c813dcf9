"""The class of each component of a replica. Another one may stand in for it: `impl.faults` gives such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewproof.impl.interface.durable import Quorums
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.config import configured_quorums
from viewproof.impl.replica.control import Control
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.log_recovery import LogRecovery
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.pace import Pace
from viewproof.impl.replica.pre_votes import PreVotes
from viewproof.impl.replica.prepare_service import PrepareService
from viewproof.impl.replica.replies import Replies
from viewproof.impl.replica.requests import Requests
from viewproof.impl.replica.scrub import Scrub
from viewproof.impl.replica.snapshot_recovery import SnapshotRecovery
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.view_change import ViewChange
from viewproof.impl.replica.writes import Writes


@dataclass(frozen=True, slots=True)
class Parts:
    """By default the right ones. `quorums` gives those in force from those configured, and the number of replicas."""

    quorums: Callable[[Quorums, int], Quorums] = configured_quorums
    client_table: type[ClientTable] = ClientTable
    features: type[FeatureState] = FeatureState
    writes: type[Writes] = Writes
    journal: type[Journal] = Journal
    pace: type[Pace] = Pace
    acknowledgements: type[Acknowledgements] = Acknowledgements
    replies: type[Replies] = Replies
    checkpoints: type[Checkpoints] = Checkpoints
    commit_path: type[CommitPath] = CommitPath
    normal: type[NormalOperation] = NormalOperation
    requests: type[Requests] = Requests
    control: type[Control] = Control
    installation: type[Installation] = Installation
    start_views: type[StartViews] = StartViews
    pre_votes: type[PreVotes] = PreVotes
    view_change: type[ViewChange] = ViewChange
    prepare_service: type[PrepareService] = PrepareService
    boot: type[Boot] = Boot
    log_recovery: type[LogRecovery] = LogRecovery
    snapshot_recovery: type[SnapshotRecovery] = SnapshotRecovery
    scrub: type[Scrub] = Scrub


RIGHT = Parts()
"""The replica as it should be."""
