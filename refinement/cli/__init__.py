"""The command line `vsr`: a contract on commands, options and exit codes that scripts depend on.

Exit codes: 0 holds or conforms · 1 violation found · 2 usage or tool error · 4 inconclusive.
"""

from __future__ import annotations

from refinement.cli.root import cli

__all__ = ["cli", "main"]


def main() -> None:
    """Entry point of the console script; never returns normally."""
    cli.main(prog_name="vsr")
