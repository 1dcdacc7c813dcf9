"""The sans-IO replica: `Replica` in, effects out.

| module | what it is |
|---|---|
| `replica` | what the host calls; who handles which message; `parts`: the class of each component |
| `state`, `log`, `target` | data: the state that all share, the log in memory, a log to install |
| `config`, `restore` | what the host chooses; what a replica starts with |
| `status` | the status machine |
| `outbox` | events and sends |
| `writes`, `journal` | durable writes |
| `acknowledgements`, `pipeline` | given and counted |
| `commit_path`, `replies`, `proposals`, `client_table`, `features` | commit and execution; checkpoints: `checkpoints` |
| `normal`, `requests`, `control` | entries: of clients, and of the primary's own |
| `transfer`, `arrival`, `installation`, `start_views`, `prepare_service` | logs of others, taken and given |
| `view_change`, `timeouts` | leaving a view, starting one |
| `boot`, `log_recovery`, `snapshot_recovery` | beginning, also over a damaged disk |

A component gets its collaborators from `Replica`, and is known only to those that were given it.
"""

from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.parts import Parts
from viewproof.impl.replica.replica import Replica
from viewproof.impl.replica.state import State, Status

__all__ = ["Parts", "Replica", "ReplicaConfig", "State", "Status"]
