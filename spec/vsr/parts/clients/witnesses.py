"""Reachable states that show the client table at work: each outcome, evictions, sessions that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from viewproof.spec.lang import NONE, Bool, Predicate, all_of, between, exists, not_, some, witness
from viewproof.spec.vsr.core.state import NORMAL, Client, Op, Replica, Request, client_of, primary, request_of
from viewproof.spec.vsr.parts.clients import sessions
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.parts.clients.invariants import is_of, register_at, same_incarnation
from viewproof.spec.vsr.parts.clients.state import Clients, Incarnation
from viewproof.spec.vsr.parts.clients.table import DUPLICATE, FENCED, GAP, IN_PROGRESS, NO_SESSION, STALE, Outcome

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def leads(s: Clients, r: Replica) -> Bool:
    """Is r a normal primary?"""
    return all_of(s.status[r] == NORMAL, primary(s, s.view[r]) == r)


def request_meets(s: Clients, outcome: Outcome) -> Bool:
    """May a request arrive that has this outcome?"""
    if not s.cfg.client_table.sessions:
        met: Callable[..., Bool] = lambda r, c: exists(  # noqa: E731
            Request, lambda n: all_of(client_table.on_the_wire(s, c, n), client_table.outcome(s, r, c, n) == outcome)
        )
    else:
        met = lambda r, c: exists(  # noqa: E731
            Op,
            lambda x: exists(
                Request,
                lambda n: all_of(sessions.on_the_wire(s, c, x, n), sessions.outcome(s, r, c, x, n) == outcome),
            ),
        )
    return exists(Replica, lambda r: all_of(leads(s, r), lambda: exists(Client, lambda c: met(r, c))))


def register_meets(s: Clients, outcome: Outcome) -> Bool:
    """May a register arrive that has this outcome?"""
    return exists(
        Replica,
        lambda r: all_of(
            leads(s, r),
            lambda: exists(
                Client,
                lambda c: exists(Incarnation, lambda n: sessions.register_outcome(s, r, c, n) == outcome),
            ),
        ),
    )


def _meets(kind: str, outcome: Outcome, met: Callable[[Clients, Outcome], Bool]) -> Predicate:
    @witness(f"{kind}.{Outcome.text(outcome)}", f"a {kind} is met with {Outcome.text(outcome)}")
    def meets(s: Clients) -> Bool:
        """A normal primary may get it."""
        return met(s, outcome)

    return meets


@witness("I9.evicted", "a client lost its slot")
def evicted(s: Clients) -> Bool:
    """An op took another client's slot."""
    return exists(Op, lambda o: s.evicted_at[o] != 0)


@witness("I9.evicted_in_later_view", "an op of a later view took the slot of one of an earlier view")
def evicted_in_later_view(s: Clients) -> Bool:
    """The table that decided the eviction lived through a view change."""
    return exists(
        Op,
        lambda o: exists(
            between(Op, 1, o - 1),
            lambda p: all_of(
                s.evicted_at[o] != 0,
                lambda: is_of(s, p, s.evicted_at[o]),
                s.first_executed[p] < s.first_executed[o],
            ),
        ),
    )


@witness("I9.followed", "two replicas executed an op that evicted")
def followed(s: Clients) -> Bool:
    """Evicting the same client has to agree."""
    return exists(
        Op,
        lambda o: all_of(
            s.evicted_at[o] != 0,
            exists(
                Replica,
                lambda r: exists(
                    between(Replica, 0, r - 1), lambda q: all_of(s.commit_min[r] >= o, s.commit_min[q] >= o)
                ),
            ),
        ),
    )


@witness("I8.resent", "a reply is re-sent in a later view")
def resent(s: Clients) -> Bool:
    """The primary of a later view than that of the first reply may answer again."""
    return exists(
        Replica,
        lambda r: all_of(
            leads(s, r),
            exists(
                Client,
                lambda c: all_of(
                    not_(client_table.unexecuted(s, r, c)),
                    s.table_op[r, c] != 0,
                    lambda: s.replied_in[s.table_op[r, c]] != NONE,
                    lambda: s.replied_in[s.table_op[r, c]] < some(s.view[r]),
                ),
            ),
        ),
    )


@witness("I8.replayed", "a copy of a register is executed after its session was evicted")
def replayed(s: Clients) -> Bool:
    """One register was executed twice."""
    return exists(Op, lambda o: exists(between(Op, 1, o - 1), lambda p: same_incarnation(s, o, p)))


@witness("I8.forgotten", "a request of a client that was evicted is executed again")
def executed_again(s: Clients) -> Bool:
    """The exception of a table that forgets: one request at two ops."""
    return exists(
        Op,
        lambda o: exists(
            between(Op, 1, o - 1),
            lambda p: all_of(
                s.first_executed[o] != NONE,
                s.first_executed[p] != NONE,
                lambda: client_of(s, s.first_executed[o], o) == client_of(s, s.first_executed[p], p),
                lambda: request_of(s, s.first_executed[o], o) == request_of(s, s.first_executed[p], p),
            ),
        ),
    )


@witness("I8.outlived", "a request outlives its session")
def outlived(s: Clients) -> Bool:
    """A request was executed, but its session was gone by then."""
    return exists(
        Op,
        lambda o: all_of(
            s.first_executed[o] != NONE, not_(s.recorded[o]), lambda: client_of(s, s.first_executed[o], o) != 0
        ),
    )


@witness("I8.again", "a client begins anew")
def again(s: Clients) -> Bool:
    """A register of a newer incarnation was executed while the older one had a slot."""
    return exists(
        Replica,
        lambda r: exists(
            Client,
            lambda c: exists(
                between(Op, 1, s.commit_min[r]),
                lambda p: all_of(
                    s.table_incarnation[r, c] > 1,
                    lambda: is_of(s, p, c),
                    lambda: register_at(s, p),
                    p < s.table_session[r, c],
                ),
            ),
        ),
    )


def of(cfg: Config) -> tuple[Predicate, ...]:
    """The witnesses that make sense under a configuration."""
    table = cfg.client_table
    requests = [IN_PROGRESS, STALE, DUPLICATE]
    found: list[Predicate] = [resent]
    if table.in_flight != 1 and not table.gaps:
        requests.append(GAP)
    if table.slots:
        found += [evicted, evicted_in_later_view, followed]
    if table.forgets:
        found.append(executed_again)
    if table.sessions:
        requests += [FENCED]
        found += [again, *(_meets("register", y, register_meets) for y in (IN_PROGRESS, STALE, DUPLICATE))]
    if table.sessions and table.slots:
        requests += [NO_SESSION]
        found += [replayed, outlived]
    return (*(_meets("request", y, request_meets) for y in requests), *found)
