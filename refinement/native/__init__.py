"""The native adapter: events of our own replicas (traces/README.md), and of adapters that speak of them.

An event shows its node's whole state, and the columns of the message or the parameters it is about. What it does not
show: the requests of clients, and the one durable step that a replica was in when it was killed.
"""

from viewproof.refinement.events import Profile, System
from viewproof.refinement.invariants import INVARIANTS
from viewproof.refinement.native import boot, core, options
from viewproof.refinement.native.columns import COLUMNS, CONFIGURATION, MESSAGES, NEEDED
from viewproof.refinement.native.configuration import IF_SHOWN, configuration, deviations, kind, numbered, weaknesses
from viewproof.spec.vsr import unbounded
from viewproof.spec.vsr.core.state import Replica

PROFILE = Profile(
    configure=configuration,
    spec=unbounded,
    replica=Replica,
    configuration=CONFIGURATION,
    needed=NEEDED,
    boots=("start", "restart", "recover"),
    if_shown=IF_SHOWN,
    once=("asked", "asked_count", "asked_partition", "asked_offset", "asked_reader"),
    rising=("replies", "session_replies", "restarts"),
    parameters={
        "v": ("m_view", "view"),
        "o": ("m_op",),
        "n": ("m_op",),
        "k": ("m_commit",),
        "b": ("m_from",),
        "c": ("m_client",),
        "s": ("m_request",),
    },
    deviations=deviations,
    kind=kind,
    numbered=(("m_namespace",), ("m_consumer",), ("m_client", "m_evicted")),
    numbered_configuration=numbered,
    weaknesses=weaknesses,
)
SYSTEM = System(
    "native",
    columns=COLUMNS,
    events=(*boot.EVENTS, *core.EVENTS, *options.EVENTS),
    observed=core.observed,
    profile=PROFILE,
    messages=MESSAGES,
    optional=("table", "features", "checkpoint"),
    rules={**INVARIANTS, "configuration": "a replica comes back with the configuration of the run's first boot"},
)
"""What native events stand for."""
