"""Per fault of the replica the runs in which it shows, as its record says (`viewproof.faults`)."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.faults import records
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile


@dataclass(frozen=True, slots=True)
class FaultRuns:
    """Runs of this profile ("": drawn from the seed) and size, from seed 0 on.

    `shows_in_trace`: the audit rejects the trace of a run. Else no event of it is wrong: the replicas stand still, or
    all make the same mistake in what a trace does not show, and the simulator says so.
    """

    profile: str = ""
    replicas: int = 3
    requests: int = 80
    shows_in_trace: bool = True

    @property
    def sim_profile(self) -> SimProfile | None:
        """As `simulate` takes it."""
        return NAMED_PROFILES[self.profile] if self.profile else None

    def command(self, fault: str) -> str:
        """The command that makes these runs, but for their number and where the traces go."""
        words = ["vsr simulate --seed 0", f"--requests {self.requests}", f"--fault {fault}"]
        words += [f"--profile {self.profile}"] if self.profile else []
        words += [f"--replicas {self.replicas}"] if self.replicas != 3 else []
        return " ".join(words)


FAULT_RUNS = {fault.id: FaultRuns(**fault.runs) for fault in records().values() if fault.replica}
"""In the order of the catalogue."""
