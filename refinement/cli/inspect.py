"""`vsr inspect`: what a replica's data directory holds, without changing it."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from viewproof.impl.net.settings_files import kept_layout
from viewproof.impl.storage.data_file import JOURNAL_NAME, SUPERBLOCK_NAME
from viewproof.impl.storage.inspect import Inspection, inspect_data_file
from viewproof.impl.storage.inspect_partitions import inspect_partitions
from viewproof.impl.storage.recover import ASIDE
from viewproof.refinement.cli.options import Place, json_option, protect_data
from viewproof.refinement.cli.output import save_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_VIOLATES

WHAT = ("all", "superblock", "wal", "snapshot", "clients", "partition")
PARTS: dict[str, tuple[str, ...]] = {
    "superblock": ("path", "copies", "superblock"),
    "wal": ("path", "journal_bytes", "records", "log_length"),
    "snapshot": ("path", "snapshots"),
    "clients": ("path", "snapshots"),
}
"""Fields of an inspection that belong to one part."""


class Inspect(click.Command):
    """`inspect DIRECTORY`, or `inspect WHAT DIRECTORY`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts in the word that may be left out."""
        return super().parse_args(ctx, args if args and args[0] in WHAT else [WHAT[0], *args])


@click.command(cls=Inspect)
@click.argument("what", type=click.Choice(WHAT), metavar="[" + "|".join(WHAT[1:]) + "]")
@click.argument("directory", type=Place(file_okay=False))
@click.option(
    "--records", type=click.IntRange(0), default=10, show_default=True, help="Journal records shown, the last."
)
@json_option
def inspect(what: str, directory: Path, records: int, json_file: Path | None) -> int:
    """Look into a data directory: superblock copies, snapshots, journal records, damage.

    With superblock, wal (the journal), snapshot or clients (those in the snapshot in use) only that. With partition:
    its partitions, with their segments, indexes and stored offsets, at the checkpoint.

    Exit code 1 if a replica would refuse to start on it.
    """
    protect_data("--json", json_file, [directory])
    replicas = replicas_below(directory)
    if replicas:
        raise click.UsageError(
            f"{directory} holds several data directories; give that of one replica, and group: "
            f"{', '.join(map(str, replicas))}"
        )
    if what == "partition":
        return _inspect_partitions(directory, json_file)
    found = inspect_data_file(directory)
    _print(found, records, what)
    code = EXIT_CONFORMS if found.opens else EXIT_VIOLATES
    result = dict(msgspec.to_builtins(found, enc_hook=str))
    shown = {name: result[name] for name in PARTS.get(what, result)} | {"problems": result["problems"]}
    save_json({"format": "viewproof.inspect/1", **shown, "opens": found.opens, "exit_code": code}, json_file)
    return code


def _inspect_partitions(directory: Path, json_file: Path | None) -> int:
    """`inspect partition`: exit code 1 if messages of the checkpoint cannot be read here."""
    found = inspect_partitions(directory)
    layout = kept_layout(directory)
    click.echo(f"{found.path}: {len(found.partitions)} partitions at the checkpoint at op {found.checkpoint}")
    for view in found.partitions:
        parts = layout.unpack(view.namespace)
        name = f"{parts.stream}/{parts.topic}/{parts.partition}"
        click.echo(f"partition {name} (namespace {view.namespace}): the next message gets offset {view.end}")
        for segment in view.segments:
            state = "" if not segment.reason else f", readable below {segment.readable}"
            click.echo(
                f"    {segment.name}: offsets {segment.base}..{segment.end - 1}, {segment.size:,} bytes, "
                f"{segment.indexed} entries in the index{state}"
            )
        for stored in view.offsets:
            above = ", above the end of what can be read" if stored.above_end else ""
            click.echo(f"    {'group' if stored.group else 'consumer'} {stored.reader}: offset {stored.offset}{above}")
    for problem in found.problems:
        click.echo(f"problem: {problem}")
    click.echo(found.remedy or "all messages can be read")
    code = EXIT_CONFORMS if found.whole else EXIT_VIOLATES
    more = {"format": "viewproof.inspect-partition/1", "whole": found.whole, "remedy": found.remedy, "exit_code": code}
    save_json(dict(msgspec.to_builtins(found, enc_hook=str)) | more, json_file)
    return code


def replicas_below(directory: Path) -> list[Path]:
    """The data directories in a cluster's directory, its directory `data`, or that of a process with groups."""
    if (directory / SUPERBLOCK_NAME).exists() or (directory / JOURNAL_NAME).exists():
        return []
    patterns = (f"{data}{below}/{SUPERBLOCK_NAME}" for data in ("", "data/") for below in ("*", "*/*"))
    found = {path.parent for pattern in patterns for path in directory.glob(pattern)}
    return sorted(path for path in found if not path.name.startswith(ASIDE))


def _print(found: Inspection, records: int, what: str) -> None:
    if what in ("all", "superblock"):
        valid = sum(copy.state is not None for copy in found.copies)
        click.echo(f"{found.path}: {valid} of {len(found.copies)} superblock copies valid")
        if found.superblock is not None:
            for name, value in msgspec.to_builtins(found.superblock, enc_hook=str).items():
                click.echo(f"    {name} = {_value_text(value)}")
    if what in ("all", "snapshot"):
        _print_snapshots(found)
    if what in ("all", "wal"):
        _print_journal(found, records)
    if what == "clients":
        _print_clients(found)
    for problem in found.problems:
        click.echo(f"problem: {problem}")
    click.echo("a replica would start on it" if found.opens else "a replica would refuse to start on it: vsr recover")


def _value_text(value: object) -> str:
    """A value of the superblock; the parts of one that has several are named."""
    return ", ".join(f"{name} {part}" for name, part in value.items()) if isinstance(value, dict) else str(value)


def _print_snapshots(found: Inspection) -> None:
    for snapshot in found.snapshots:
        use = "in use" if snapshot.in_use else "not in use"
        click.echo(f"{snapshot.name}: {snapshot.size:,} bytes, checksum {snapshot.checksum}, {use}")
        if snapshot.entry is not None:
            features = ", ".join(f"{feature} since op {op}" for feature, op in snapshot.features) or "none"
            click.echo(
                f"    entry {snapshot.entry.checksum} of view {snapshot.entry.view}, {snapshot.keys} keys, "
                f"{snapshot.clients} clients, features: {features}"
            )
            if snapshot.database:
                click.echo(f"    database checksum {snapshot.database}")


def _print_journal(found: Inspection, records: int) -> None:
    checkpoint = 0 if found.superblock is None else found.superblock.checkpoint
    above = f" above the checkpoint at {checkpoint}" if checkpoint else ""
    click.echo(
        f"journal: {found.journal_bytes:,} bytes, {len(found.records)} records, "
        f"log of {max(0, found.log_length)} ops{above}"
    )
    for record in found.records[len(found.records) - min(records, len(found.records)) :]:
        header = record.header
        kind = ("log" if record.in_log else "not in the log") + (", repair" if record.repair else "")
        where = f"    at {record.offset:,} ({record.size} bytes)"
        click.echo(f"{where}: view {header.view}, op {header.op}, checksum {header.checksum}, {kind}")


def _print_clients(found: Inspection) -> None:
    used = next((snapshot for snapshot in found.snapshots if snapshot.in_use), None)
    if used is None:
        click.echo("there is no snapshot in use: the table is that of the log")
        return
    click.echo(f"{used.name}: {used.clients} clients")
    for slot in used.table:
        click.echo(
            f"    slot {slot.slot}: client {slot.client}, session {slot.session} (incarnation {slot.incarnation}), "
            f"request {slot.request} at op {slot.op}"
        )
