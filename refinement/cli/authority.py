"""`vsr authority`: certificates for a cluster and its clients, from an authority of their own."""

from __future__ import annotations

from pathlib import Path

import click

from viewproof.impl.interface.ranges import NUMBER_MAX
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.server import parse_addresses
from viewproof.refinement.cli.options import Place, cluster_id_option, json_option
from viewproof.refinement.cli.output import save_json
from viewproof.refinement.verdict import EXIT_CONFORMS

DAYS_MAX = 36_500
"""A hundred years: dates end, too."""


@click.command()
@click.argument("directory", type=Place(file_okay=False))
@click.option(
    "--addresses", required=True, help="HOST:PORT of all replicas by index, with commas, as they are dialled."
)
@cluster_id_option
@click.option(
    "--client",
    "client_ids",
    type=click.IntRange(1, NUMBER_MAX),
    multiple=True,
    help="Also one of this client id.",
)
@click.option(
    "--days", type=click.IntRange(1, DAYS_MAX), default=365, show_default=True, help="For which certificates are good."
)
@json_option
def authority(
    directory: Path, addresses: str, cluster_id: int, client_ids: tuple[int, ...], days: int, json_file: Path | None
) -> int:
    """Make an authority, or use the one in DIRECTORY, and issue certificates for replicas and clients.

    Each directory below DIRECTORY is what --tls takes: replica-I for the process of that replica, clients for clients
    of any id. Given again, all are renewed, and processes that run take the new ones into use. DIRECTORY/ca-key.pem
    must stay where no replica and no client is: who has it can be anyone. See docs/security.md.
    """
    made = issue_cluster(directory, cluster_id, parse_addresses(addresses), client_ids, days)
    for path in made:
        click.echo(f"{path}: certificate, key and authority, for --tls")
    result = {"format": "viewproof.authority/1", "directory": str(directory), "issued": list(map(str, made))}
    save_json({**result, "exit_code": EXIT_CONFORMS}, json_file)
    return EXIT_CONFORMS
