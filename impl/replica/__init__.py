"""The sans-IO replica: `Replica` in, effects out.

Layers, each importing only those above it in this list: `config`, `client_table`, `features`, `log`, `restore` (what a
snapshot holds), `state` (fields, trace), `replies`, `writes` (durable writes, their failures), `checkpoint`, `commit`
(acknowledgements, execution), `normal` (prepares, journal queue), `requests`, `control`, `transfer` (snapshots in
chunks), `repair` (installation), `view_change`, `boot`, `recovery` (a lost snapshot), `timeouts`, `replica` (dispatch).
"""

from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.replica import Replica
from viewproof.impl.replica.state import Status

__all__ = ["Replica", "ReplicaConfig", "Status"]
