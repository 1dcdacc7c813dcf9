"""What event functions record: lines, taken in order, of rules, one for each event.

| line | meaning |
|---|---|
| `Check` | the column, if shown, must equal an expression over the state |
| `Holds` | a condition must hold |
| `Configured` | the configuration is that of the run's first event |
| `Received` | a message field was sent with that value; the node has received it from now on |
| `Step` | an action of the specification is taken |
| `Named` | a checksum names an entry at an op: the first use gives the name, all others must agree |
| `Log` | the checksums of a log name the entries of it |
| `Agrees` | a value is the same wherever it is shown for the same op |
| `Journaled` | bodies of prepares are durable in the node's journal from now on |
| `Havoc` | a cell may have changed, and the log does not show it |
| `InJournal` | an entry of the node's log must be durable in its journal |
| `Let` | a value, as it is at that line, has a name for the lines below |
| `Owes` | the node's next line must be of one of these events |

A line may stand under conditions (`only_if`, outermost first), in a range (`each`) and, in that, under conditions for
each member (`if_each`). Lines share the condition and the range that they stand under: it is looked at once, before the
first of them. A column that the event does not show is filled from the message that was sent, else from what the rule
infers, else it is not known (`checker.partial`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import Expr, Name
from viewproof.spec.lang.schema import Var


@dataclass(frozen=True, eq=False, slots=True)
class Condition:
    """What some lines stand under."""

    cond: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Range:
    """The members lo .. hi, both included; with `at_least` 1 it must have one."""

    name: Name
    lo: Expr
    hi: Expr
    at_least: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """Where and when a line stands."""

    source: Source
    only_if: tuple[Condition, ...] = ()
    each: Range | None = None
    if_each: tuple[Condition, ...] = ()

    @property
    def under(self) -> tuple[Condition | Range, ...]:
        """What it stands under, outermost first."""
        return (*self.only_if, *(() if self.each is None else (self.each,)), *self.if_each)


def nested(lines: Iterable[Line]) -> Iterator[tuple[Line, int, tuple[Condition | Range, ...]]]:
    """The lines in order: how many of what the one before stands under each shares with it, and what else it stands
    under.
    """
    before: tuple[Condition | Range, ...] = ()
    for line in lines:
        under, shared = line.under, 0
        while shared < min(len(before), len(under)) and before[shared] is under[shared]:
            shared += 1
        yield line, shared, under[shared:]
        before = under


@dataclass(frozen=True, eq=False)
class Check(Line):
    """`rule` is the invariant that says so, if one does; `if_shown`: nothing is missing where it is not shown."""

    column: str
    expected: Expr
    rule: str = ""
    if_shown: bool = False


@dataclass(frozen=True, eq=False)
class Holds(Line):
    """`message` says what the condition means; `column` is the one to point at, `rule` an invariant that says so."""

    cond: Expr
    column: str
    message: str
    rule: str = ""


@dataclass(frozen=True, eq=False)
class Configured(Line):
    """`column` is shown as in the first event of the run: a replica does not come back with another configuration.

    One that shows no value where the first event does, or the other way round, leaves the run inconclusive.
    """

    column: str


@dataclass(frozen=True, eq=False)
class Received(Line):
    """Message field `var[index]` was sent with `value` (None: as it was sent; `sent`: it must have been).

    Where the value is a column that nothing shows it is `otherwise`; without, it is as it was sent. `by` is who has
    received it, if not the node of the event.
    """

    var: Var
    index: tuple[Expr, ...]
    value: Expr | None = None
    sent: bool = False
    otherwise: Expr | None = None
    by: Expr | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Tried:
    """An argument that is tried over all replicas where its column (None: it has none) is not shown; `where` limits
    them to those, over the candidate `name`, that agree with what the event shows.
    """

    name: Name
    column: str | None
    where: Expr | None


@dataclass(frozen=True, eq=False)
class Step(Line):
    """Take `action`. `journals` is the entry that the step makes durable in the journal, at the op of `each`. `unless`
    says that it was taken before, with the same outcome: where it is open whether it was, taking it is as good. `how`:
    it "must" be possible, "may" have been taken or not, or is taken "if" it is possible.
    """

    action: str
    args: Mapping[str, Expr | Tried]
    journals: Expr | None = None
    unless: Expr | None = None
    how: str = "must"

    @property
    def tried(self) -> str:
        """The parameter that is tried; "" if none is."""
        return next((name for name, value in self.args.items() if isinstance(value, Tried)), "")


@dataclass(frozen=True, eq=False)
class Named(Line):
    """`checksum`, where shown, is the name of entry `entry` at `op`; "" at op 0."""

    checksum: str
    entry: Expr
    op: Expr


@dataclass(frozen=True, eq=False)
class Log(Line):
    """`column`, where shown, lists checksums of ops top-len+1 .. top that name the entries `entry` (over `name`)."""

    column: str
    top: Expr
    entry: Expr
    name: Name


@dataclass(frozen=True, eq=False)
class Agrees(Line):
    """`column` is equal in all events of the run that show it for the same `op`, and with `distinct` in no others;
    `rule` is the invariant that says so.

    An event that does not show it leaves an observation open, like a missing state column.
    """

    column: str
    op: Expr
    rule: str
    distinct: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class Journaled(Line):
    """The body of `entry` at the op of `each` is durable in the node's journal; or that of a named checksum, at `op`.

    `afresh`: and no others, before the range begins.
    """

    entry: Expr | None = None
    checksum: str = ""
    op: Expr | None = None
    afresh: bool = False


@dataclass(frozen=True, eq=False)
class InJournal(Line):
    """The entry `entry` at the op of `each` must be durable in the node's journal (I3)."""

    entry: Expr


@dataclass(frozen=True, eq=False)
class Havoc(Line):
    """The cell `var[index]` may have changed, and the log does not show it; if `rising`, it has not fallen; it lies
    between `least` and `most`, where these are said.
    """

    var: Var
    index: tuple[Expr, ...]
    rising: bool = False
    least: Expr | None = None
    most: Expr | None = None


@dataclass(frozen=True, eq=False)
class Let(Line):
    """`name` stands for the value that the expression has at this line."""

    name: Name
    value: Expr


@dataclass(frozen=True, eq=False)
class Owes(Line):
    """After this event, and after what it owes by lines above, the node's next line must be one of `events`.

    `values` are handed on to it.
    """

    events: tuple[str, ...]
    values: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Freed(Line):
    """The node `by` (None: that of the event) owes nothing any more."""

    by: Expr | None = None


@dataclass(frozen=True, eq=False)
class Taken:
    """What an event takes of the line that led to it: `was` is 1 if one did, `names` are the values handed on; `must`:
    the event is refused if none did.
    """

    was: Name
    names: tuple[Name, ...]
    must: bool


@dataclass(frozen=True, eq=False)
class Rule:
    """One event: its lines, the message it sends or receives (several kinds, with "|"), how columns that are not shown
    may be filled, and what it says in words. `aside`: it may come whatever its node owes.
    """

    event: str
    lines: tuple[Line, ...]
    sends: str = ""
    receives: str = ""
    infer: Mapping[str, Expr] = field(default_factory=dict)
    doc: str = ""
    taken: Taken | None = None
    aside: bool = False


@dataclass(frozen=True, eq=False)
class Observation:
    """A column that shows the node's state after an event, and what it must be.

    `named`: it names the entry `value` at op `at`. `agreed`: it is equal wherever it is shown for the same `at`; with
    `distinct` no two of them share it, and `covers` is a column that says more, to be reported in its place. `rule` is
    the invariant that says so, `monotone` the one that says that it does not fall when a replica comes back.
    """

    column: str
    value: Expr | None
    at: Expr | None = None
    named: bool = False
    agreed: bool = False
    distinct: bool = False
    covers: str = ""
    rule: str = ""
    monotone: str = ""
    labels: tuple[str, ...] = ()
