"""A configuration of the protocol: its cluster, and the options of all parts, each declared by its part."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.vsr.core.options import Cluster
from viewproof.spec.vsr.parts.append_failure import AppendFailureOptions
from viewproof.spec.vsr.parts.checkpoints.options import CheckpointOptions
from viewproof.spec.vsr.parts.clients.options import ClientOptions, ClientTable
from viewproof.spec.vsr.parts.control import ControlOptions
from viewproof.spec.vsr.parts.discard import DiscardOptions
from viewproof.spec.vsr.parts.fence import FenceOptions
from viewproof.spec.vsr.parts.frontiers import FrontierOptions
from viewproof.spec.vsr.parts.loss import LossOptions
from viewproof.spec.vsr.parts.partitions.options import PartitionOptions, Partitions
from viewproof.spec.vsr.parts.pipeline import PipelineOptions
from viewproof.spec.vsr.parts.repair.options import Repair, RepairOptions
from viewproof.spec.vsr.parts.withdrawal import WithdrawalOptions

__all__ = ["ClientTable", "Config", "Partitions", "Repair"]


@dataclass(frozen=True)
class Config(
    LossOptions,
    PartitionOptions,
    RepairOptions,
    DiscardOptions,
    FenceOptions,
    AppendFailureOptions,
    FrontierOptions,
    PipelineOptions,
    CheckpointOptions,
    WithdrawalOptions,
    ControlOptions,
    ClientOptions,
    Cluster,
):
    """One frozen value per cluster, profile, options and faults. At its defaults it is the core, of three replicas.

    Raises `SpecError` for an option outside its bounds, or options that do not go together.
    """
