"""What commands write with `--json`, one class per `format`; some show classes of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Any, Literal, NotRequired, TypedDict, get_type_hints

import msgspec

from benchmarks.reference.changes import DiffAudit
from viewproof.impl.net.bench import BenchResult
from viewproof.impl.net.framing import Position, Status
from viewproof.impl.net.record import RecordResult, RoundsResult
from viewproof.impl.storage.inspect import Inspection
from viewproof.impl.storage.inspect_partitions import PartitionInspection
from viewproof.impl.storage.recover import Remedy
from viewproof.spec.engines.mutate.hunt import Death
from viewproof.spec.engines.smt.induction import Tally

Code = Literal[0, 1, 2, 4]


class Step(TypedDict):
    """One step of a behaviour."""

    action: str
    args: dict[str, int]


class Inputs(TypedDict):
    """What a proof is of: enough to make the model again."""

    model: str
    replicas: int
    faults: list[str]
    bounds: dict[str, int]


class Failure(TypedDict):
    """A lemma that a step does not keep, or of which that is not known."""

    action: str
    args: dict[str, int]
    lemma: str
    names: list[tuple[str, Any]]
    status: str


class Example(TypedDict):
    """A step from a state that satisfies all lemmas into one that does not. `before`: how it is reached."""

    lemma: str
    step: str
    leaves: list[tuple[str, list[int], Any]]
    before: Any


class Searched(TypedDict):
    """What the search of one shape came to."""

    shape: str
    verdict: str
    states: int


Led = TypedDict("Led", {"break": str | None, "behaviour": list[Step], "searched": list[Searched]})
"""Where a proof that does not go through was led on: the invariant that really breaks, and how."""


class Proof(TypedDict):
    """`vsr prove MODEL`: the certificate of an induction, which `--recheck` reads."""

    format: Literal["viewproof.proof/1"]
    model: str
    verdict: str
    instance: dict[str, int]
    specification: str
    parts: dict[str, str]
    solver: str
    seconds: float
    workers: int
    cells: int
    lemmas: dict[str, Tally]
    actions: dict[str, Tally]
    failures: list[Failure]
    used: dict[str, dict[str, list[str]]]
    counterexamples: list[Example]
    led: NotRequired[Led]
    inputs: Inputs
    exit_code: Code


class Cover(TypedDict):
    """How many rounds of all actions reach all states (null: not known, for the reason)."""

    rounds: int | None
    states: int
    steps: int
    reached: list[int]
    reason: str
    seconds: float


class CoverReport(Cover):
    """`vsr prove MODEL --cover`."""

    format: Literal["viewproof.cover/1"]
    inputs: Inputs
    exit_code: Code


class Bounded(TypedDict):
    """`vsr prove MODEL --bmc`: a bounded search."""

    format: Literal["viewproof.bmc/1"]
    verdict: Literal["violated", "holds", "inconclusive"]
    inputs: Inputs
    rounds: int
    cover: Cover | None
    broken: str | None
    title: str
    minimal: bool
    behaviour: list[Step]
    seconds: float
    exit_code: Code


class Question(TypedDict):
    """An action instance and a lemma: its goals, in how many queries with how many facts they were decided."""

    question: str
    goals: int
    status: str
    queries: int
    facts: int
    seconds: float


class Unbounded(TypedDict):
    """`vsr prove MODEL --unbounded`: the certificate of an induction without sizes, which `--recheck` reads."""

    format: Literal["viewproof.proof-unbounded/1"]
    model: str
    verdict: str
    counted: dict[str, int]
    specification: str
    parts: dict[str, str]
    solver: str
    seconds: float
    workers: int
    questions: list[Question]
    led: NotRequired[Led]
    inputs: Inputs
    exit_code: Code


class Needed(TypedDict):
    """`vsr prove MODEL --needed`: the lemmas that a proof cannot do without."""

    format: Literal["viewproof.needed/1"]
    inputs: Inputs
    lemmas: list[str]
    exit_code: Code


class Houdini(TypedDict):
    """`vsr prove MODEL --houdini`: the largest inductive set; what was dropped, in which round, at which action."""

    format: Literal["viewproof.houdini/1"]
    inputs: Inputs
    lemmas: list[str]
    dropped: dict[str, tuple[int, str]]
    exit_code: Code


class Part(TypedDict):
    """A part of a lemma, and a behaviour to a state in which it says something."""

    lemma: str
    part: int
    engine: str | None
    unreachable: bool
    behaviour: list[Step] | None


class Witnesses(TypedDict):
    """`vsr prove MODEL --witness`."""

    format: Literal["viewproof.witness/2"]
    inputs: Inputs
    interrupted: bool
    parts: list[Part]
    exit_code: Code


class Recheck(TypedDict):
    """`vsr prove --recheck FILE`: stale (then what has changed), or the verdict of now and whether it is the same."""

    format: Literal["viewproof.recheck/1"]
    certificate: str
    verdict: str
    changed: NotRequired[list[str]]
    same: NotRequired[bool]
    exit_code: Code


class MutatedShape(TypedDict):
    """One shape that was searched, and whether only up to a bound."""

    name: str
    states: int
    bounded: bool


class Mutant(TypedDict):
    """One change in one place; `death` is how it was noticed, `reason` why it need not be, `effect` what it did."""

    id: str
    action: str
    place: str
    written: str
    kind: str
    part: str
    file: str
    death: Death | None
    effect: str
    reason: str


class Mutants(TypedDict):
    """`vsr mutate MODEL`."""

    format: Literal["viewproof.mutants/1"]
    model: str
    beside: list[str]
    digest: str
    predicates: str
    shapes: list[MutatedShape]
    mutants: list[Mutant]
    exit_code: Code


class Changed(TypedDict):
    """A text that differs: its lines in one version only, in which models, and where it is written."""

    kind: str
    name: str
    removed: list[str]
    added: list[str]
    models: list[str]
    place: str


class Outcome(TypedDict):
    """A search of one shape in one version."""

    verdict: str
    broken: str | None
    states: int


class Behaviour(TypedDict):
    """The shortest behaviour that only one version has. `complete`: all was searched."""

    complete: bool
    states: int
    steps: list[Step]


class Compared(TypedDict):
    """One shape in both versions."""

    model: str
    size: str
    reason: str
    old: Outcome | None
    new: Outcome | None
    only_old: Behaviour | None
    only_new: Behaviour | None


class Diff(TypedDict):
    """`vsr diff OLD NEW`. Mutants: model, id, noticed by the old and the new; audits: traces, run, both verdicts."""

    format: Literal["viewproof.diff/1"]
    old: str
    new: str
    changes: list[Changed]
    sized: list[Compared]
    mutants: dict[str, dict[str, tuple[bool | None, bool | None]]]
    proofs: dict[str, list[str]]
    audits: dict[str, dict[str, tuple[str, str]]]
    exit_code: Code


class Exported(TypedDict):
    """`vsr export tla|itf|html|svg MODEL`. `error`: why nothing was written; `story`: what a page shows."""

    format: Literal["viewproof.export/1"]
    model: NotRequired[str]
    faults: NotRequired[list[str]]
    sizes: NotRequired[str]
    files: NotRequired[list[str]]
    properties: NotRequired[Any]
    story: NotRequired[dict[str, Any]]
    error: NotRequired[str]
    exit_code: Code


class Component(TypedDict):
    """A component that no step leaves, and a state of it."""

    size: int
    state: int


class Graph(TypedDict):
    """`vsr export graph MODEL`; `path`, where one was asked for, is null if there is none."""

    format: Literal["viewproof.graph/1"]
    model: str
    faults: list[str]
    sizes: str
    states: int
    steps: int
    components: int
    largest_component: int
    cyclic_components: int
    final_components: list[Component]
    path: NotRequired[list[Step] | None]
    exit_code: Code


class Authority(TypedDict):
    """`vsr authority DIRECTORY`."""

    format: Literal["viewproof.authority/1"]
    directory: str
    issued: list[str]
    exit_code: Code


class Formatted(TypedDict):
    """`vsr format DIRECTORY`."""

    format: Literal["viewproof.format/1"]
    directory: str
    cluster: int
    replica: int
    exit_code: Code


class Started(TypedDict):
    """`vsr start DIRECTORY`, once it has ended."""

    format: Literal["viewproof.start/1"]
    directory: str
    replica: int
    exit_code: Code


class Cluster(TypedDict):
    """`vsr cluster DIRECTORY`, as soon as it runs."""

    format: Literal["viewproof.cluster/1"]
    primary: int
    addresses: list[str]
    pids: list[int]
    exit_code: Code


class Answer(TypedDict):
    """One line of `vsr repl`: its answer, or why there is none."""

    command: str
    answer: NotRequired[str]
    error: NotRequired[str]


class Repl(TypedDict):
    """`vsr repl`."""

    format: Literal["viewproof.repl/1"]
    answers: list[Answer]
    exit_code: Code


class Finding(TypedDict):
    """What is wrong with a file, and what to do."""

    file: str
    problem: str
    remedy: Remedy
    action: str


class Recovered(TypedDict):
    """`vsr recover DIRECTORY`; the last five where it was put back, `error` where that was refused."""

    format: Literal["viewproof.recover/1"]
    directory: str
    findings: list[Finding]
    starts: bool
    error: NotRequired[str]
    aside: NotRequired[str]
    replica: NotRequired[int]
    cluster: NotRequired[int]
    group: NotRequired[int]
    view: NotRequired[int]
    exit_code: Code


def _list(of: Any) -> Any:
    return GenericAlias(list, (of,))


def shown(name: str, doc: str, of: type, *, optional: bool = False, **more: Any) -> Any:
    """A report that has the fields of a class of the commands, and more. `optional`: it need not have all of them."""
    types = {**get_type_hints(of, include_extras=True), **more}
    left = {
        field: (field, type_, None) if optional and field not in more else (field, type_)
        for field, type_ in types.items()
    }
    return msgspec.defstruct(name, left.values(), namespace={"__doc__": doc}, kw_only=True)


Replica = shown(
    "Replica", "What a replica says of itself.", Status, heard=_list(shown("Held", Position.__doc__ or "", Position)),
    primary=bool,
)  # fmt: skip
Statuses = msgspec.defstruct(
    "Statuses",
    [
        ("format", Literal["viewproof.status/1"]),
        ("replicas", _list(Replica | None)),
        ("problems", list[str]),
        ("exit_code", Code),
    ],
    namespace={
        "__doc__": "`vsr status`: one answer per replica and group (null: none), and what is wrong between them."
    },
)
Bench = shown("Bench", "`vsr bench`.", BenchResult, format=Literal["viewproof.bench/1"], exit_code=Code)
Record = shown("Record", "`vsr record OUT`.", RecordResult, format=Literal["viewproof.record/1"], exit_code=Code)
Rounds = shown(
    "Rounds", "`vsr record OUT --rounds N`.", RoundsResult, format=Literal["viewproof.record-rounds/1"], exit_code=Code
)
Inspected = shown(
    "Inspected", "`vsr inspect DIRECTORY`; of one part only that part, and all problems.", Inspection, optional=True,
    format=Literal["viewproof.inspect/1"], problems=list[str], opens=bool, exit_code=Code,
)  # fmt: skip
Partitions = shown(
    "Partitions", "`vsr inspect partition DIRECTORY`.", PartitionInspection,
    format=Literal["viewproof.inspect-partition/1"], whole=bool, remedy=str, exit_code=Code,
)  # fmt: skip

REPORTS: Mapping[str, tuple[Any, ...]] = {
    "prove": (Proof, CoverReport, Bounded, Unbounded, Needed, Houdini, Witnesses, Recheck),
    "mutate": (Mutants,),
    "diff": (Diff,),
    "diff-audit": (DiffAudit,),
    "export": (Exported, Graph),
    "record": (Record, Rounds),
    "bench": (Bench,),
    "cluster": (Cluster,),
    "status": (Statuses,),
    "repl": (Repl,),
    "format": (Formatted,),
    "start": (Started,),
    "inspect": (Inspected, Partitions),
    "recover": (Recovered,),
    "authority": (Authority,),
}
"""Command → what it writes."""
