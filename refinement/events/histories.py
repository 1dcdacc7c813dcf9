"""Words for systems that do much without a line, beside those of `words`: for a `System(histories=True)`.

There `when` and `each` nest, and `otherwise` may follow a `when`:

    with when(e.dropped == 1):
        step(replication.on_duplicate, r=e.node, o=e.offset)
    with otherwise():
        step(replication.on_append, r=e.node, k=e.commit)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from viewproof.refinement.events.nested import Arrived, Branch, Departs, Forget, OneOf
from viewproof.refinement.events.terms import lifted
from viewproof.refinement.events.words import recording_of
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.errors import here
from viewproof.spec.lang.expr import Read, expect


@contextmanager
def otherwise() -> Iterator[None]:
    """What stands below is for events for which the condition of the `when` right above does not hold."""
    recording = recording_of("otherwise")
    last = recording.lines[-1] if recording.lines else None
    if not isinstance(last, Branch) or last.other:
        raise SpecError("otherwise stands right below a when", here())
    with recording.block() as body:
        yield
    recording.lines[-1] = replace(last, other=tuple(body))


def one_of(*bodies: Callable[[], Any]) -> None:
    """One of these histories happened; those that are refused did not."""
    recording = recording_of("one_of")
    if not bodies:
        raise SpecError("one_of has at least one history", here())
    place, found = recording.place(ranges=True), []
    for body in bodies:
        with recording.block() as lines:
            body()
        found.append(tuple(lines))
    recording.lines.append(OneOf(tuple(found), **place))


def arrived(field: Any, by: Any = None) -> None:
    """The message of the field was sent, and the node of the event, or `by`, has it from now on, with all its fields.

    Of a watermark how much arrived is said by `received`.
    """
    recording = recording_of("arrived")
    if not isinstance(field, Read) or not field.var.is_message or field.var.kind == "watermark":
        raise SpecError("what arrives is a message, such as state.start_view[view].sent", here())
    receiver = lifted(recording.node_column if by is None else by)
    expect(recording.node, receiver, "where a message arrives")
    recording.lines.append(Arrived(field.var, field.index, receiver, **recording.place(ranges=True)))


def forget(node: Any, cause: str) -> None:
    """Nothing is known of the node from here on, but what its lines show; `cause` says why."""
    recording = recording_of("forget")
    expect(recording.node, lifted(node), "what is forgotten")
    recording.lines.append(Forget(lifted(node), cause, **recording.place(ranges=True)))


def departs(id: str) -> None:
    """The system did what is known not to be safe, and what follows from it is not judged: the run is inconclusive,
    and the departure is named by its id. `--forbid` refuses it, `--allow` permits it. It is one of
    `System.departures`.
    """
    recording = recording_of("departs")
    recording.lines.append(Departs(id, **recording.place(ranges=True)))
