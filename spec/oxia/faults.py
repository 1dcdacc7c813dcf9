"""Known mistakes, as named switches: what oxia-db/oxia at 13900ef does where it is not safe (`as_built`; docs/oxia.md),
and mistakes that others make. Each replaces or adds actions; the normal actions do not know them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from viewproof.spec.lang import (
    NONE,
    Action,
    SpecError,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    instead,
    maximum,
    require,
    some,
    tagged,
    where,
    within,
)
from viewproof.spec.oxia import control, election, replication
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.control import Feature
from viewproof.spec.oxia.state import (
    ELECTED,
    FENCED,
    FOLLOWER,
    Length,
    Offset,
    Replica,
    Shard,
    Term,
    acknowledged,
    leader_of,
    leads,
)


@dataclass(frozen=True)
class Fault:
    """One mistake: `actions` replace those of the same name, `added` come on top, `removes` names those that go.

    `as_built`: it is how Oxia behaves. `refuses` says why it cannot show under a configuration ("" if it can).
    """

    id: str
    doc: str
    actions: tuple[Action, ...] = ()
    added: tuple[Action, ...] = ()
    removes: tuple[str, ...] = ()
    as_built: bool = False
    refuses: Callable[[Config], str] = field(default=lambda cfg: "")


def named(name: str, act: Action) -> Action:
    """The action under another name."""
    return replace(act, name=name)


@action
def commit_of_any_term(state: Shard, r: Replica, o: Offset) -> None:
    """A leader commits any entry, and all below, that enough followers acknowledged, of whatever term."""
    replication.require_acknowledged(state, r, o)
    replication.advance(state, r, o)


@action
def on_truncate_once(state: Shard, r: Replica) -> None:
    """A fenced server cuts its log back to the offset of the leader's last entry whose term is not above that at the
    server's head; that the server's entry there is another is not noticed.

    A leader whose own head has a lower term refuses, and so does a server whose log ends before that offset.
    """
    election.require_truncation(state, r)
    t = state.term[r]
    log, entry = state.received(r).log, state.fenced[t, r].entry
    leader = leader_of(state, t)
    require(entry <= state.fenced[t, leader].entry)
    told = between(Offset, 1, state.head[leader])
    cut = maximum(told, lambda o: where(all_of(log[t, leader, o] != 0, log[t, leader, o] <= entry), o, 0))
    require(cut <= state.head[r])
    election.truncate(state, r, cut)


@action
def on_new_term_synced(state: Shard, r: Replica, t: Term) -> None:
    """A server that is fenced answers with the last entry that is durable; what it appended above stays."""
    election.require_new_term(state, r, t)
    election.fence(state, r, t)
    election.answer(state, r, t, state.synced[r])


@action
def elect_by_offset(state: Shard, r: Replica) -> None:
    """The coordinator chooses the longest log, whatever its last term."""
    t = state.election
    require(t >= 1)
    require(state.elected[t] == NONE)
    require(state.fenced[t, r].sent)
    require(
        count(
            Replica,
            lambda q: all_of(state.fenced[t, q].sent, lambda: state.fenced[t, q].head <= state.fenced[t, r].head),
        )
        >= state.cfg.fencing_quorum
    )
    election.choose(state, r, t)


@action
def elect_from_one(state: Shard, r: Replica) -> None:
    """The coordinator chooses the first server that answers."""
    t = state.election
    require(t >= 1)
    require(state.elected[t] == NONE)
    require(state.fenced[t, r].sent)
    election.choose(state, r, t)


@action
def elect_again(state: Shard, r: Replica) -> None:
    """A coordinator that forgot its choice elects another server in the same term."""
    t = state.election
    require(t >= 1)
    require(state.elected[t] != NONE)
    require(state.elected[t] != some(r))
    require(state.fenced[t, r].sent)
    election.choose(state, r, t)


@action
def serve_at_once(state: Shard, r: Replica) -> None:
    """An elected leader applies its log and serves clients without waiting for acknowledgements."""
    require(state.status[r] == ELECTED)
    require(state.commit_min[r] == state.head[r])
    election.serve(state, r)


@action
def apply_log_when_elected(state: Shard, r: Replica) -> None:
    """An elected leader applies all of its log, committed or not."""
    o = state.commit_min[r] + 1
    require(any_of(o <= state.commit_max[r], state.status[r] == ELECTED))
    require(o <= state.synced[r])
    replication.execute(state, r, o)


@action
def sync_and_acknowledge_all(state: Shard, r: Replica) -> None:
    """A follower acknowledges what it appended, before it is durable."""
    require(state.status[r] == FOLLOWER)
    require(state.synced[r] < state.head[r])
    state.ack[state.term[r], r] = state.head[r]


@action
def commit_without_followers(state: Shard, r: Replica, o: Offset) -> None:
    """A leader commits what one follower less than needed acknowledged."""
    t, received = state.term[r], state.received(r)
    require(leads(state, r))
    require(o > state.commit_max[r])
    require(o <= state.synced[r])
    require(state.entry[r, o] == t)
    acks = count(Replica, lambda q: all_of(q != r, lambda: acknowledged(state, received, t, r, q, o)))
    require(acks + 1 >= state.cfg.follower_acks)
    replication.advance(state, r, o)


@action
def apply_appended(state: Shard, r: Replica) -> None:
    """A server applies what is in its log, whatever commit offset it was told of."""
    o = state.commit_min[r] + 1
    require(o <= state.synced[r])
    replication.execute(state, r, o)


@action
def on_append_of_old_term(state: Shard, r: Replica, t: Term, k: Length) -> None:
    """A server takes an entry of an earlier term's leader, which did not hear that it was deposed."""
    require(any_of(state.status[r] == FENCED, state.status[r] == FOLLOWER))
    require(t < state.term[r])
    require(state.elected[t] != NONE)
    leader, o, received = leader_of(state, t), state.head[r] + 1, state.received(r)
    require(received.stream[t, leader, r] != NONE)
    require(within(Offset, o))
    require(received.log[t, leader, o] != 0)
    require(k <= received.commit_sent[t, leader])
    state.head[r] = o
    state.entry[r, o] = received.log[t, leader, o]
    state.commit_max[r] = k


@action
def on_append_with_gap(state: Shard, r: Replica, o: Offset, k: Length) -> None:
    """A server takes any entry above its head, whether or not it follows."""
    replication.require_stream(state, r)
    require(o > state.head[r])
    replication.take(state, r, o, k)


@tagged("crash")
@action
def restart_without_term(state: Shard, r: Replica, n: Length, c: Length) -> None:
    """A server that starts again takes the term of its last entry: the term that it accepted was not durable."""
    replication.require_restart(state, r, n, c)
    replication.start_fenced(state, r, n, c)
    state.term[r] = where(n == 0, 0, lambda: state.entry[r, n])


@action
def truncate_nothing(state: Shard, r: Replica) -> None:
    """A follower whose log differs is attached with all of it."""
    election.require_truncation(state, r)
    state.status[r] = FOLLOWER
    state.truncated[state.term[r], r] = some(state.head[r])


@action
def truncate_all(state: Shard, r: Replica) -> None:
    """A follower whose log differs is cut to nothing."""
    election.require_truncation(state, r)
    election.truncate(state, r, as_index(Offset, 0))


@action
def propose_own_feature(state: control.Features, r: Replica, f: Feature) -> None:
    """A leader proposes a feature that it supports, whatever was negotiated."""
    control.require_to_propose(state, r, f)
    require(state.supports[r, f])
    control.propose_entry(state, r, f)


@action
def propose_and_enable(state: control.Features, r: Replica, f: Feature) -> None:
    """A leader enables a feature when it proposes it."""
    control.propose_feature.fn(state, r, f)
    state.enabled_at[r, f] = state.head[r] + 1


@action
def apply_writes_only(state: Shard, r: Replica) -> None:
    """A follower passes over control entries."""
    with instead({control.enable_next: enable_if_leader}):
        replication.apply.fn(state, r)


def enable_if_leader(state: control.Features, r: Replica, o: Offset) -> None:
    """A leader enables the feature of a control entry at o, and a follower none."""
    control.enable(state, r, where(leads(state, r), control.feature_at(state, r, o), 0), o)


def _needs_features(cfg: Config) -> str:
    return "" if cfg.features else "shows only with control entries; give the model features"


AS_BUILT = (
    Fault(
        "oxia.commits_old_terms",
        "entries of earlier terms are committed by counting acknowledgements",
        (named("commit", commit_of_any_term),),
        removes=("open_term",),
        as_built=True,
    ),
    Fault(
        "oxia.truncates_once",
        "a follower's log is cut to an offset of the leader's, without comparing the entries there",
        (named("on_truncate", on_truncate_once),),
        as_built=True,
    ),
    Fault(
        "oxia.answers_synced_head",
        "a fenced server answers with its durable head, and keeps what it appended above",
        (named("on_new_term", on_new_term_synced),),
        as_built=True,
    ),
)
MISTAKES = (
    Fault("oxia.longest_log", "the longest log leads, whatever its last term", (named("elect", elect_by_offset),)),
    Fault("oxia.first_answer_leads", "no majority is fenced", (named("elect", elect_from_one),)),
    Fault("oxia.elects_twice", "the coordinator elects twice in a term", added=(elect_again,)),
    Fault(
        "oxia.serves_at_once",
        "a leader applies and serves its log before it is committed",
        (named("start_leading", serve_at_once), named("apply", apply_log_when_elected)),
    ),
    Fault(
        "oxia.acks_before_sync",
        "a follower acknowledges before the entry is durable",
        added=(named("acknowledge", sync_and_acknowledge_all),),
    ),
    Fault("oxia.one_ack_less", "one follower less than needed commits", (named("commit", commit_without_followers),)),
    Fault("oxia.applies_appended", "entries are applied when appended", (named("apply", apply_appended),)),
    Fault("oxia.takes_old_terms", "appends of an earlier term are taken", added=(on_append_of_old_term,)),
    Fault("oxia.takes_gaps", "an append that does not follow is taken", added=(on_append_with_gap,)),
    Fault("oxia.term_not_durable", "the accepted term is lost at a restart", (named("restart", restart_without_term),)),
    Fault("oxia.never_truncates", "a log that differs is kept", (named("on_truncate", truncate_nothing),)),
    Fault("oxia.truncates_all", "a log that differs is cut to nothing", (named("on_truncate", truncate_all),)),
    Fault(
        "oxia.unsupported_member",
        "a leader proposes a feature that a member does not support",
        (named("propose_feature", propose_own_feature),),
        refuses=_needs_features,
    ),
    Fault(
        "oxia.enabled_at_proposal",
        "a leader enables a feature when it proposes it",
        (named("propose_feature", propose_and_enable),),
        refuses=_needs_features,
    ),
    Fault(
        "oxia.control_on_leader_only",
        "followers pass over control entries",
        (named("apply", apply_writes_only),),
        refuses=_needs_features,
    ),
)
FAULTS: dict[str, Fault] = {f.id: f for f in (*AS_BUILT, *MISTAKES)}


def fault(id: str) -> Fault:
    """The fault of that id; an unknown id is an error that lists the known ones."""
    if id not in FAULTS:
        raise SpecError(f"unknown fault {id}; the specification has: {', '.join(sorted(FAULTS))}")
    return FAULTS[id]
