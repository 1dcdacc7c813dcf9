"""What holds in every reachable state of the core and is, with the invariants, inductive: each step keeps all of it.

The lemmas are not needed to run or check anything; they are the argument why the invariants hold at any depth. A
lemma's id is `group.name`; its docstring is the sentence it says. The canonical log of a view (`entry_of_view`) is what
its start_view carried and, above that, what its primary prepared.
"""

from viewproof.spec.lang import Predicate
from viewproof.spec.vsr import client_table
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.lemmas import (
    checkpoint,
    clients,
    committed,
    control,
    messages,
    partitions,
    pipeline,
    quorums,
    repair,
    replicas,
    table,
    types,
)

GROUPS = {
    "types": types.LEMMAS,
    "replicas": replicas.LEMMAS,
    "messages": messages.LEMMAS,
    "quorums": quorums.LEMMAS,
    "committed": committed.LEMMAS,
    "clients": clients.LEMMAS,
}
LEMMAS = tuple(lemma for group in GROUPS.values() for lemma in group)
"""The lemmas of the core."""


AFTER_LOSS = frozenset(
    (
        "types.status",
        "messages.ack_durable",
        "messages.votes_below_view",
        "replicas.log_view_started",
        "replicas.start_durable",
    )
)
"""Lemmas that are false once a disk is lost: no proof covers that yet."""


def lemmas_of(cfg: Config, crashes: bool = False) -> tuple[Predicate, ...]:
    """The lemmas under a configuration: the core's, but where a module that is on has others.

    `crashes`: does the instance have restarts? Some lemmas about repair do not hold then (`repair.without`).
    """
    more = (
        *(control.LEMMAS if cfg.features else ()),
        *(partitions.LEMMAS if cfg.partitions.count else ()),
        *(pipeline.LEMMAS if cfg.pipeline else ()),
        *(checkpoint.lemmas(cfg) if cfg.checkpoints else ()),
    )
    if cfg.repair.recovery:
        untrue = repair.REPLACED | repair.without(cfg, crashes)
        return tuple(p for p in (*LEMMAS, *repair.lemmas(cfg)) if p.id not in untrue)
    if cfg.losses:
        return tuple(p for p in (*LEMMAS, *more) if p.id not in AFTER_LOSS)
    if not client_table.is_on(cfg):
        return (*LEMMAS, *more)
    left_out = {p.id for p in clients.LEMMAS}
    if cfg.client_table.sessions:
        left_out.add(messages.prepare_fields.id)
    return (*(p for p in LEMMAS if p.id not in left_out), *table.lemmas(cfg), *more)


__all__ = ["GROUPS", "LEMMAS", "lemmas_of"]
