"""The lines that a mapping table is made of: trace event → messages, steps, observations.

Expressions are Python text over the event's columns (`node`, `m_op`, …), the spec state (`spec.view[node]`) and the
number of `replica_count` and the quorums `q_r`, `q_v`. A column the trace does not show is filled from the message
that was sent (`m_from`, `m_seq`), else from `infer`, else it is not known (`checker.partial`). The lines of a rule are
taken in order; one with `when` only if the specification is built with that option (`options.options_of`), or with "-"
before it, without:

| line | meaning |
|---|---|
| `Check` | the column, if observed, must equal an expression over the spec state |
| `Holds` | a condition must hold |
| `Configured` | the configuration is that of the run's first event |
| `Received` | a message field was sent with that value; the node has received it from now on |
| `Step` | a spec action is taken; with `each`, once per value of a parameter and at least once |
| `Named` | a checksum names an entry (view + 1, op): the first use gives the name, all others must agree |
| `Log` | the checksums of a log name the entries of a spec variable |
| `Agrees` | a value is the same wherever it is observed for the same op |
| `Journaled` | bodies of prepares are durable in the node's journal from now on |
| `InJournal` | entries of the node's log must be durable in its journal |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Each = tuple[str, str, str]
"""(name, lo, hi): a range of ops."""


@dataclass(frozen=True, kw_only=True)
class Optional:
    """What is there only if the specification is built with these options (separated by spaces; "-name": without)."""

    when: str = ""


@dataclass(frozen=True)
class Check(Optional):
    """`column` must equal `expected`. `rule` is the invariant that says so, if one does."""

    column: str
    expected: str
    rule: str = ""
    only_if: str = ""


@dataclass(frozen=True)
class Holds(Optional):
    """`cond` must hold; `message` says what it means; `column` is the one to point at, `rule` the invariant that says
    so, if one does.
    """

    cond: str
    column: str
    message: str
    rule: str = ""
    only_if: str = ""


@dataclass(frozen=True)
class Configured(Optional):
    """`column` is shown as in the first event of the run: a replica does not come back with another configuration.

    One that shows no value where the first event does, or the other way round, leaves the run inconclusive.
    """

    column: str


@dataclass(frozen=True)
class Received(Optional):
    """Message field `var[index]`: sent with `value` (empty: as it was sent; `some`: it must have been sent)."""

    var: str
    index: tuple[str, ...]
    value: str = ""
    some: bool = False
    each: Each | None = None
    only_if: str = ""


@dataclass(frozen=True)
class Step(Optional):
    """Take `action`. A parameter ending in "?" is tried over all replicas where the column is not observed.

    `tried_if` limits the candidates (`x`) to those that agree with what the event shows. `journals` is the entry
    that the step makes durable in the journal, at the op of `each`. `unless` says that it was taken before, with the
    same outcome: where it is open whether it was, taking it is as good.
    """

    action: str
    args: Mapping[str, str]
    each: Each | None = None
    only_if: str = ""
    tried_if: str = ""
    journals: str = ""
    unless: str = ""


@dataclass(frozen=True)
class Named(Optional):
    """`checksum`, where observed, is the name of entry `entry` at `op`; "" at op 0."""

    checksum: str
    entry: str
    op: str


@dataclass(frozen=True)
class Log(Optional):
    """`column`, where observed, lists checksums of ops top-len+1 .. top that name the entries `entry` (over `o`)."""

    column: str
    top: str
    entry: str


@dataclass(frozen=True)
class Agrees(Optional):
    """`column` is equal in all events of the run that show it for the same `op`; `rule` is the invariant that says so.

    An event that does not show it leaves an observation open, like a missing state column; not so one in which
    `only_if` does not hold.
    """

    column: str
    op: str
    rule: str
    only_if: str = ""


@dataclass(frozen=True)
class Journaled(Optional):
    """The bodies of `entry` (over `o`), o = lo .. hi, are durable in the node's journal; or that of a named
    checksum. `afresh`: and no others.
    """

    entry: str = ""
    each: Each = ("o", "1", "0")
    checksum: str = ""
    op: str = ""
    afresh: bool = False


@dataclass(frozen=True)
class InJournal(Optional):
    """The entries `entry` (over `o`), o = lo .. hi, must be durable in the node's journal (I3)."""

    entry: str
    each: Each


Line = Check | Holds | Configured | Received | Step | Named | Log | Agrees | Journaled | InJournal


@dataclass(frozen=True)
class Rule(Optional):
    """One event: its lines, the message it sends or receives, and how unobserved columns may be filled (`infer_when`:
    in place of `infer`, with an option).
    """

    event: str
    lines: tuple[Line, ...]
    sends: str = ""
    receives: str = ""
    infer: Mapping[str, str] = field(default_factory=dict)
    infer_when: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
