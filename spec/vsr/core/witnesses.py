"""A reachable witness for each invariant of the core: a state in which it has something to say."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    all_of,
    between,
    count,
    exists,
    some,
    witness,
)
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Client,
    Core,
    Op,
    Replica,
    View,
    primary,
)


@witness("I1", "two replicas executed one op")
def two_executed(s: Core) -> Bool:
    """Agreement has something to agree on."""
    return exists(Op, lambda o: count(Replica, lambda r: s.executed[r, o] != NONE) >= 2)


@witness("I2", "a view started after a reply")
def view_after_reply(s: Core) -> Bool:
    """A view started, later than one in which an op was replied to."""
    return exists(
        View,
        lambda v: all_of(s.sv[v].sent, exists(Op, lambda o: all_of(s.replied_in[o] > NONE, s.replied_in[o] < some(v)))),
    )


@witness("I3", "an acknowledgement was overruled")
def overruled(s: Core) -> Bool:
    """A replica acknowledged an entry and no longer holds it."""
    return exists(
        View,
        lambda v: exists(
            Replica, lambda r: exists(Op, lambda o: all_of(s.ack[v, r, o] != NONE, s.entry[r, o] != s.ack[v, r, o]))
        ),
    )


@witness("I4", "one replica executed more than another")
def unequal_commit(s: Core) -> Bool:
    """Replicas differ in commit_min."""
    return exists(Replica, lambda r: exists(Replica, lambda q: s.commit_min[r] > s.commit_min[q]))


@witness("I5", "commit_max is above commit_min and op")
def commit_max_ahead(s: Core) -> Bool:
    """A replica knows of a commit that its log does not reach yet."""
    return exists(Replica, lambda r: all_of(s.commit_max[r] > s.commit_min[r], s.commit_max[r] > s.op[r]))


@witness("I6", "log_view lags view")
def log_view_lags(s: Core) -> Bool:
    """A replica is in a view change."""
    return exists(Replica, lambda r: s.log_view[r] < s.view[r])


@witness("I7", "one op was prepared in two views")
def prepared_twice(s: Core) -> Bool:
    """Two prepares of one op exist, in different views."""
    return exists(Op, lambda o: count(View, lambda v: s.prepare[v, o].client != 0) >= 2)


@witness("I8", "a request was prepared twice")
def request_twice(s: Core) -> Bool:
    """One request exists as two prepares, so executing both is conceivable."""
    return exists(
        Op,
        lambda o: exists(
            View,
            lambda v: exists(
                between(View, 0, v - 1),
                lambda w: all_of(
                    s.prepare[v, o].client != 0,
                    s.prepare[v, o].client == s.prepare[w, o].client,
                    s.prepare[v, o].request == s.prepare[w, o].request,
                ),
            ),
        ),
    )


@witness("I9", "client tables differ")
def tables_differ(s: Core) -> Bool:
    """Two replicas hold different entries for a client, at different commit_min."""
    return exists(Replica, lambda r: exists(Replica, lambda q: exists(Client, lambda c: s.table[r, c] > s.table[q, c])))


@witness("I10", "a log holds entries of two views")
def two_views_in_log(s: Core) -> Bool:
    """A log continues in a later view."""
    return exists(Replica, lambda r: exists(between(Op, 2, s.op[r]), lambda o: s.entry[r, o - 1] < s.entry[r, o]))


@witness("I12", "do_view_changes of different log_views")
def different_log_views(s: Core) -> Bool:
    """A primary has to choose between logs of different views."""
    return exists(
        View,
        lambda v: exists(
            Replica,
            lambda r: exists(
                Replica,
                lambda q: all_of(s.dvc[v, r].sent, s.dvc[v, q].sent, s.dvc[v, r].log_view < s.dvc[v, q].log_view),
            ),
        ),
    )


@witness("L2", "a restarted backup is normal again")
def restarted_normal(s: Core) -> Bool:
    """After a restart a backup takes part."""
    return all_of(s.restarts > 0, exists(Replica, lambda r: all_of(s.status[r] == NORMAL, primary(s, s.view[r]) != r)))


WITNESSES = (
    two_executed,
    view_after_reply,
    overruled,
    unequal_commit,
    commit_max_ahead,
    log_view_lags,
    prepared_twice,
    request_twice,
    tables_differ,
    two_views_in_log,
    different_log_views,
    restarted_normal,
)
