"""Kinds of log entries, and the one function that applies them (seed 001; docs/clients-and-control.md, "Entries").

A kind knows how to write itself into an entry and how to apply itself. Primary, backup and restart execute through
`apply_entry` and nothing else. To add a kind, write a class like those below and add it to `KINDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from viewproof.impl.interface.messages import Prepare, PrepareHeader, make_header, register_result
from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.machine.state_machine import StateMachine
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.features import FeatureState, UnknownEntryError, require_supported

__all__ = [
    "KINDS",
    "EnableFeature",
    "EntryFailedError",
    "Executed",
    "Proposal",
    "Register",
    "UnknownEntryError",
    "UserRequest",
    "apply_entry",
    "read_proposal",
]


class EntryFailedError(ValueError):
    """Applying a committed entry failed on this replica, whose state is unknown since; the text names the entry."""


class Executed(Protocol):
    """What entries change, apart from the client table: all of it is a function of the executed prefix."""

    state_machine: StateMachine
    enabled: FeatureState
    config: ReplicaConfig


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A client's request: `body` is an operation of the state machine."""

    kind: ClassVar[str] = "request"

    client: int
    session: int
    request: int
    body: bytes

    @classmethod
    def read(cls, prepare: Prepare) -> UserRequest | None:
        """The request in an entry; None if it is of another kind."""
        header = prepare.header
        if header.client < 1 or header.request < 1 or header.incarnation or header.feature:
            return None
        return cls(header.client, header.session, header.request, prepare.body)

    def write(self, *, parent: str, view: int, op: int, commit: int) -> tuple[PrepareHeader, bytes]:
        """Header and body of the entry."""
        header = make_header(
            parent=parent,
            view=view,
            op=op,
            commit=commit,
            body=self.body,
            client=self.client,
            session=self.session,
            request=self.request,
        )
        return header, self.body

    def apply(self, executed: Executed, op: int) -> bytes:
        """The result of the operation."""
        return executed.state_machine.apply(self.body)


@dataclass(frozen=True, slots=True)
class Register:
    """A client begins anew, for the `incarnation`-th time; the op of this entry becomes its session."""

    kind: ClassVar[str] = "register"

    client: int
    incarnation: int

    @classmethod
    def read(cls, prepare: Prepare) -> Register | None:
        """The register in an entry; None if it is of another kind."""
        header = prepare.header
        if header.client < 1 or header.incarnation < 1 or header.request or header.session or header.feature:
            return None
        return cls(header.client, header.incarnation)

    def write(self, *, parent: str, view: int, op: int, commit: int) -> tuple[PrepareHeader, bytes]:
        """Header and body of the entry."""
        header = make_header(
            parent=parent,
            view=view,
            op=op,
            commit=commit,
            body=b"",
            client=self.client,
            request=0,
            incarnation=self.incarnation,
        )
        return header, b""

    def apply(self, executed: Executed, op: int) -> bytes:
        """Its incarnation; the client table is the caller's."""
        return register_result(self.incarnation)


@dataclass(frozen=True, slots=True)
class EnableFeature:
    """Enables `feature` on every replica at the op of this entry; a second one changes nothing."""

    kind: ClassVar[str] = "control"

    feature: int

    @classmethod
    def read(cls, prepare: Prepare) -> EnableFeature | None:
        """The control request in an entry; None if it is of another kind."""
        header = prepare.header
        if header.feature < 1 or header.client or header.request or header.session or header.incarnation:
            return None
        return cls(header.feature)

    def write(self, *, parent: str, view: int, op: int, commit: int) -> tuple[PrepareHeader, bytes]:
        """Header and body of the entry."""
        header = make_header(
            parent=parent, view=view, op=op, commit=commit, body=b"", client=0, request=0, feature=self.feature
        )
        return header, b""

    def apply(self, executed: Executed, op: int) -> bytes:
        """Nothing; raises `UnknownEntryError` if this replica does not support the feature."""
        require_supported({self.feature: op}, executed.config.supports)
        executed.enabled.enable(self.feature, op)
        return b""


Proposal: TypeAlias = UserRequest | Register | EnableFeature

KINDS: tuple[type[UserRequest] | type[Register] | type[EnableFeature], ...] = (UserRequest, Register, EnableFeature)
"""Every kind of entry that this version knows."""


def read_proposal(prepare: Prepare) -> Proposal:
    """The proposal that an entry holds. Raises `UnknownEntryError` if no kind knows it."""
    for kind in KINDS:
        proposal = kind.read(prepare)
        if proposal is not None:
            return proposal
    header = prepare.header
    numbers = ", ".join(
        f"{name} {getattr(header, name)}" for name in ("client", "session", "request", "incarnation", "feature")
    )
    known = ", ".join(kind.kind for kind in KINDS)
    raise UnknownEntryError(
        f"op {header.op} is an entry of an unknown kind ({numbers}); this version knows {known}: start the replica with"
        " the version that wrote it"
    )


def apply_entry(executed: Executed, prepare: Prepare) -> bytes:
    """Applies a committed entry and returns its result.

    Raises `UnknownEntryError` or `SegmentLostError`, then nothing was changed, or `EntryFailedError`: no operation of
    any client does that.
    """
    header = prepare.header
    op = header.op
    proposal = read_proposal(prepare)
    try:
        result = proposal.apply(executed, op)
    except (UnknownEntryError, SegmentLostError):
        raise
    except Exception as error:
        raise EntryFailedError(
            f"applying op {op} ({proposal.kind}, client {header.client}, request {header.request}, checksum "
            f"{header.checksum}) failed: {error!r}. Its effects are unknown, so the process stops before it counts as "
            f"executed; a restart applies it again. If other replicas execute it: `vsr recover DIR --from-cluster "
            f"ADDRESSES --entry-fails {op}`, once one of them has a checkpoint there; if none does: a version that can"
        ) from error
    executed.enabled.on_executed(prepare.header, executed.state_machine.digest)
    return result
