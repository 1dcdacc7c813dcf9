"""The sans-IO replica: `Replica` in, effects out.

Layers, each importing only those above it in this list: `config`, `client_table`, `state` (fields, trace, writes),
`commit` (acknowledgements, execution), `normal` (requests, prepares, journal queue), `repair` (state transfer,
installation), `view_change`, `boot`, `timeouts`, `replica` (dispatch).
"""

from impl.replica.config import ReplicaConfig
from impl.replica.replica import Replica
from impl.replica.state import Status

__all__ = ["Replica", "ReplicaConfig", "Status"]
