"""What holds in every reachable state of the core and is, with the invariants, inductive: each step keeps all of it.

The lemmas are not needed to run or check anything; they are the argument why the invariants hold at any depth. A
lemma's id is `group.name`; its docstring is the sentence it says. The canonical log of a view (`entry_of_view`) is what
its start_view carried and, above that, what its primary prepared.
"""

from viewproof.spec.vsr.core.lemmas import clients, committed, messages, quorums, replicas, types

GROUPS = {
    "types": types.LEMMAS,
    "replicas": replicas.LEMMAS,
    "messages": messages.LEMMAS,
    "quorums": quorums.LEMMAS,
    "committed": committed.LEMMAS,
    "clients": clients.LEMMAS,
}
LEMMAS = tuple(lemma for group in GROUPS.values() for lemma in group)
"""The lemmas of the core."""
