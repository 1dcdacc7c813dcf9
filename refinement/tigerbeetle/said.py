"""What lines of both families say in the same words: prepares by their checksums, headers of messages, roles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from viewproof.refinement.events import agrees, check, holds, let, step, when
from viewproof.spec.lang import Action, all_of, any_of, as_index, not_, where
from viewproof.spec.lang.errors import pass_over
from viewproof.spec.vsr.tigerbeetle import headers
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Replica

pass_over(Path(__file__))
NO_PARENT: Final = "the parent is not that of the prepare"
NOT_COMMITTED: Final = "the commit message names another prepare than the log has at its commit number"
ANOTHER: Final = "another prepare is in this slot"


def shows(state: Any, e: Any, *names: str, **columns: str) -> None:
    """The line shows what its node has: columns of the names of variables, and others by the variable of each."""
    for column, name in (*((name, name) for name in names), *columns.items()):
        check(getattr(e, column), getattr(state, name)[e.node])


def shows_message(state: Any, e: Any, m: Any, *names: str, **columns: str) -> None:
    """The same of the fields of a message."""
    for column, name in (*((name, name) for name in names), *columns.items()):
        check(getattr(e, column), getattr(state, f"m_{name}")[m])


def either(cond: Any, act: Action, other: Action, **args: Any) -> None:
    """One of two steps is taken: the first if the condition holds."""
    first = let(cond)
    with when(first):
        step(act, **args)
    with when(not_(first)):
        step(other, **args)


def flag(cond: Any) -> Any:
    """1 where the condition holds, else 0: as columns show it."""
    return where(cond, 1, 0)


def set_cells(row: Mapping[int, int]) -> int:
    """How many cells are set."""
    found = 0
    for value in row.values():
        if value:
            found += 1
    return found


def prepare(state: Any, checksum: Any) -> Any:
    """The prepare that a column names; one that was never made is refused."""
    found = let(headers.header_of(state, checksum))
    holds(headers.was_made(state, found), "no prepare with this checksum was made", checksum, rule="line.checksum")
    return found


def prepare_at(state: Any, e: Any) -> Any:
    """The prepare that the line names, which is of its op."""
    made = prepare(state, e.checksum)
    check(e.op, state.p_op[made])
    return made


def written(state: Any, e: Any) -> Any:
    """The prepare that is being written, as the line shows it."""
    made = prepare_at(state, e)
    check(e.view, state.p_view[made])
    return made


def one_header(state: Any, e: Any) -> None:
    """A checksum names one header, and a header has one."""
    agrees(e.m_content, e.m_checksum, rule="line.checksum")
    agrees(e.m_checksum, e.m_content, rule="line.checksum")


def quotes_prepare(state: Any, e: Any, made: Any) -> None:
    """The header of a message is that of the prepare."""
    with when(made != ROOT):
        step(
            headers.quote_prepare, e=made, p=e.m_parent, v=e.m_view, o=e.m_op, k=e.m_commit, c=e.m_client,
            s=e.m_request, u=e.m_operation, h=e.m_asked, t=e.m_time,
        )  # fmt: skip


def quotes_acknowledged(state: Any, e: Any, made: Any) -> None:
    """An acknowledgement's header shows that of its prepare."""
    with when(made != ROOT):
        step(headers.quote_acknowledged, e=made, p=e.m_parent, c=e.m_client, s=e.m_request, u=e.m_operation, t=e.m_time)


def asks(state: Any, e: Any, session: Any) -> None:
    """The message is a request."""
    step(
        headers.ask, m=e.message, h=e.m_checksum, c=e.m_client, s=e.m_request, x=session, u=e.m_operation,
        register=e.m_register,
    )  # fmt: skip


def answers_prepare(state: Any, e: Any, made: Any) -> None:
    """A reply fits the prepare, and is the one of its op."""
    fits = headers.answers(state, made, e.m_client, e.m_request, e.m_operation, e.m_asked)
    holds(fits, "client, request or request checksum are not those of the prepare", e.m_asked)
    agrees(e.m_reply, e.m_op, rule="I8")


def replies(state: Any, e: Any) -> None:
    """A replica made the reply to what it has just executed."""
    made = let(state.canonical[e.m_op])
    check(e.m_op, state.commit_min[e.node])
    check(e.m_commit, e.m_op)
    check(e.m_view, state.p_view[made])
    holds(e.m_from == primary_of(state, state.p_view[made]), "it is in the name of another replica", e.m_from)
    answers_prepare(state, e, made)
    one_header(state, e)


def primary_of(state: Any, view: Any) -> Any:
    """The primary of a view."""
    return as_index(Replica, view % state.cfg.replicas)


def leading(state: Any, e: Any) -> Any:
    """Does the node lead its view?"""
    return primary_of(state, state.view[e.node]) == e.node


def said_role(state: Any, e: Any, leads: str, follows: str) -> None:
    """The role that the line shows."""
    is_so = any_of(all_of(leading(state, e), e.role == leads), all_of(not_(leading(state, e)), e.role == follows))
    holds(is_so, "the replica has the other role in its view", e.role)


def shows_operation(state: Any, e: Any, made: Any) -> None:
    """An operation without a name in headers has one name in lines of executions."""
    agrees(e.operation, state.p_operation[made], rule="line.operation")


def new_reply_of(state: Any, e: Any, made: Any) -> None:
    """The client table has the reply of the prepare just executed."""
    check(e.session, state.session[e.node, state.p_client[made]])
    check(e.request, state.p_request[made])
    is_it = all_of(not_(state.p_register[made]), e.client == state.p_client[made])
    holds(is_it, "not the request just executed", e.session)
