"""The command line `vsr`: a contract on commands, options and exit codes that scripts depend on.

Exit codes: 0 holds or conforms · 1 violation found · 2 usage or tool error · 4 inconclusive.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from viewproof.refinement.interrupts import held, install

if TYPE_CHECKING:
    from viewproof.refinement.cli.root import cli

__all__ = ["cli", "main"]

_EXIT_INCONCLUSIVE = 4


def __getattr__(name: str) -> Any:
    """The group of all commands, imported on use, so that `main` comes first."""
    if name == "cli":
        from viewproof.refinement.cli.root import cli

        return cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Entry point of the console script; never returns normally."""
    try:
        install()
        with held():
            from viewproof.refinement.cli.root import cli
        cli.main(prog_name="vsr")
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(_EXIT_INCONCLUSIVE)
