"""`vsr recover`: what is wrong with a data directory, and the way back for a replica whose promises are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from viewproof.impl.groups.group import SINGLE, Group, group_name, parse_group
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.net.address import Address
from viewproof.impl.net.connection import answers_of, fetch_status
from viewproof.impl.net.errors import RefusedError
from viewproof.impl.net.framing import Status
from viewproof.impl.net.recovery import (
    RecoveryError,
    TooFewAnswersError,
    recovery_superblock,
    with_entry_that_fails,
    with_what_was_heard,
)
from viewproof.impl.net.server import parse_addresses
from viewproof.impl.net.settings_files import kept_problem
from viewproof.impl.net.tls import Tls
from viewproof.impl.storage.evidence import keep_outdated
from viewproof.impl.storage.file import RealFileSystem
from viewproof.impl.storage.recover import (
    ASIDE,
    REMEDIES,
    Diagnosis,
    Finding,
    Remedy,
    diagnose,
    is_in_use,
    reset_for_recovery,
)
from viewproof.impl.storage.recover import reset_clock as set_clock_back
from viewproof.refinement.cli.inspect import replicas_below
from viewproof.refinement.cli.options import CLUSTER_MAX, Place, Seconds, json_option, protect_data, tls_option
from viewproof.refinement.cli.output import note, save_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_ERROR, EXIT_INCONCLUSIVE, EXIT_VIOLATES


@click.command()
@click.argument("directory", type=Place(file_okay=False))
@click.option("--from-cluster", "addresses", help="Recover: HOST:PORT of all replicas by index, with commas.")
@click.option("--replica", type=click.IntRange(0), help="Which replica it was, if its superblock does not say.")
@click.option("--cluster", "cluster_id", type=click.IntRange(0, CLUSTER_MAX), help="Of which cluster, if that is lost.")
@click.option("--group", help="Of which group, if it does not say.")
@click.option("--all-lost", is_flag=True, help="The directory holds none of the replica's files: its disk was lost.")
@click.option(
    "--others-restarted",
    is_flag=True,
    help="Another replica was recovered before, and the processes of all others were started anew since.",
)
@click.option(
    "--entry-fails",
    type=click.IntRange(1),
    metavar="OP",
    help="The files are whole, but applying the entry at OP fails here, and not on others (the log said so).",
)
@click.option("--reset-clock", is_flag=True, help="Set a clock back that is out of range; nothing else is changed.")
@click.option("--timeout", type=Seconds(), default=1.0, show_default=True, help="Seconds to wait for an answer.")
@tls_option
@json_option
def recover(
    directory: Path,
    addresses: str | None,
    replica: int | None,
    cluster_id: int | None,
    group: str | None,
    all_lost: bool,
    others_restarted: bool,
    entry_fails: int | None,
    reset_clock: bool,
    timeout: float,
    tls: Path | None,
    json_file: Path | None,
) -> int:
    """Say what is wrong with a data directory and what to do; with --from-cluster, do it.

    Without --from-cluster nothing is changed; exit code 1 if a replica would not start on the directory. With it, the
    replica's files are put aside and it is put back under its old identity: once started, it takes part in nothing
    until the cluster has given it its log again. It is never made anew. Exit code 2 if that is refused, 4 if too few
    of the others answer. See docs/recovery.md.
    """
    _require_one(directory, json_file)
    found = _diagnosed(directory)
    _require_fit(found, replica, cluster_id, group)
    if reset_clock:
        set_clock_back(found)
        note(f"{directory}: the clock is 0")
        found = _diagnosed(directory)
    if entry_fails is not None and addresses is None:
        raise click.UsageError("--entry-fails needs --from-cluster: the others have what this replica cannot apply")
    failure: RecoveryError | None = None
    if addresses is not None and found.agreed is not None:
        asked = _ask(parse_addresses(addresses), found.agreed.cluster, found.agreed.group, timeout, tls)
        statuses = asyncio.run(asked)
        found = _with_what_was_heard(directory, statuses)
        try:
            found = found if entry_fails is None else with_entry_that_fails(found, entry_fails, statuses)
        except RecoveryError as error:
            failure = error
    _print(found, directory)
    result: dict[str, object] = {
        "format": "viewproof.recover/1",
        "directory": str(directory),
        "findings": [msgspec.to_builtins(finding) | {"action": REMEDIES[finding.remedy]} for finding in found.findings],
        "starts": found.starts,
    }
    code = EXIT_CONFORMS if found.starts else EXIT_VIOLATES
    if addresses is not None:
        refusal = _refusal(found, all_lost)
        if failure is not None:
            code = _failed(failure, result)
        elif refusal:
            note(f"error: {refusal}; nothing was changed")
            code, result["error"] = EXIT_ERROR, refusal
        elif found.findings:
            code = _recover(found, addresses, (replica, cluster_id, group), (timeout, tls), others_restarted, result)
    save_json(result | {"exit_code": code}, json_file)
    return code


def _with_what_was_heard(directory: Path, statuses: Sequence[Status | None]) -> Diagnosis:
    """The diagnosis after that of the others; what they may forget is kept, unless the replica runs."""
    alone = _diagnosed(directory)
    found = with_what_was_heard(alone, statuses)
    state = found.agreed
    runs = state is not None and any(status is not None and status.replica == state.replica for status in statuses)
    if found is not alone and not runs:
        keep_outdated(RealFileSystem(), str(directory), found.findings[-1].problem)
        return _diagnosed(directory)
    return found


def _diagnosed(directory: Path) -> Diagnosis:
    """What is wrong with the data, and with the settings that are kept beside them."""
    found = diagnose(directory)
    wrong = kept_problem(directory)
    if wrong is None:
        return found
    finding = Finding(str(wrong[0]), wrong[1], Remedy.SETTINGS)
    return replace(found, findings=(*found.findings, finding))


def _require_fit(found: Diagnosis, replica: int | None, cluster_id: int | None, group: str | None) -> None:
    """Raises RecoveryError if the superblock says that it is another's."""
    if found.known is not None:
        _one("--replica", replica, found.known.replica)
        _one("--cluster", cluster_id, found.known.cluster)
        _one("--group", None if group is None else parse_group(group).number, found.known.group)


def _require_one(directory: Path, json_file: Path | None) -> None:
    """Raises `UsageError` unless it is one data directory."""
    if not directory.exists():
        raise click.UsageError(
            f"{directory} does not exist: is it the right one? If the replica's disk was lost, make it, empty, and "
            "give --all-lost"
        )
    protect_data("--json", json_file, [directory])
    below = replicas_below(directory)
    if below:
        raise click.UsageError(f"{directory} holds several data directories; give one: {', '.join(map(str, below))}")


def _print(found: Diagnosis, directory: Path) -> None:
    known = found.known
    if known is not None:
        whose = f"replica {known.replica} of {known.replica_count}, cluster {known.cluster}"
        click.echo(f"{directory}: {whose}, group {group_name(known.group)}, view {known.view}")
    for finding in found.findings:
        click.echo(f"{finding.file}: {finding.problem}\n    what to do: {REMEDIES[finding.remedy]}")
    for name in found.evidence:
        click.echo(f"{directory / name}: why it stopped before a log that contradicts what it executed")
    if not found.files:
        click.echo("no file is left; if the disk was lost: --from-cluster ADDRESSES --all-lost --replica I --cluster C")
    if found.agreed is not None and found.agreed.recovery:
        click.echo("it is being recovered from the cluster: start it, and it is back once the primary has answered")
    elif is_in_use(directory):
        click.echo("a process runs on it, and goes on writing: what is said here is of a moment")
    elif not found.findings:
        click.echo("nothing is wrong with it: start it")


def _refusal(found: Diagnosis, all_lost: bool) -> str:
    """Why this directory is not to be recovered from the cluster, or ""."""
    if not found.files and not all_lost:
        aside = sorted(path.name for path in Path(found.path).glob(f"{ASIDE}*"))
        if aside:
            return (
                f"{found.path} has no data but what a recovery put aside ({aside[-1]}), which did not come to its end,"
                " or whose data were lost since: go on with --all-lost, and --replica and --cluster of before"
            )
        return f"{found.path} is empty: is it the right one? If the disk was lost, say so with --all-lost"
    if found.findings and not found.recoverable:
        return "this is not to be recovered from the cluster, see above"
    return ""


def _recover(
    found: Diagnosis,
    addresses: str,
    named: tuple[int | None, int | None, str | None],
    asking: tuple[float, Path | None],
    others_restarted: bool,
    result: dict[str, object],
) -> int:
    known = found.known
    replica, cluster_id, name = named
    try:
        replica = _one("--replica", replica, None if known is None else known.replica)
        cluster_id = _one("--cluster", cluster_id, None if known is None else known.cluster)
        number = None if name is None else parse_group(name).number
        default = None if known is None else known.group
        group = _one("--group", number, _group_of(Path(found.path)).number if default is None else default)
        statuses = asyncio.run(_ask(parse_addresses(addresses), cluster_id, group, *asking))
        state = recovery_superblock(
            statuses, replica, cluster_id, group, found.copies, others_restarted=others_restarted
        )
    except RecoveryError as error:
        return _failed(error, result)
    aside = reset_for_recovery(found, state)
    click.echo(
        f"the files are in {aside}; replica {replica} of cluster {cluster_id} begins its recovery in view "
        f"{state.view}. Start it: it is back once the primary has answered"
    )
    result |= {"aside": aside, "replica": replica, "cluster": cluster_id, "group": group, "view": state.view}
    return EXIT_CONFORMS


def _failed(error: RecoveryError, result: dict[str, object]) -> int:
    """Says why nothing was done; returns the exit code."""
    note(f"error: {error}; nothing was changed")
    result["error"] = str(error)
    return EXIT_INCONCLUSIVE if isinstance(error, TooFewAnswersError) else EXIT_ERROR


def _one(option: str, given: int | None, there: int | None) -> int:
    """The number given, or the one in the superblock; they must not differ."""
    if given is not None and there is not None and given != there:
        raise RecoveryError(f"{option} {given} was given, but the superblock says {there}: wrong directory?")
    number = there if given is None else given
    if number is None:
        raise RecoveryError(f"the superblock does not say it any more: give {option}")
    return number


def _group_of(directory: Path) -> Group:
    """The group whose name the directory has."""
    try:
        return parse_group(directory.absolute().name)
    except ConfigurationError:
        return SINGLE


async def _ask(
    addresses: Sequence[Address], cluster: int, group: int, timeout: float, tls: Path | None
) -> list[Status | None]:
    """What each says; None of one that says nothing, or refuses while others do not."""
    shown = None if tls is None else Tls(tls)
    answers = await answers_of(fetch_status(address, cluster, timeout, group, shown) for address in addresses)
    for answer in answers:
        if isinstance(answer, RefusedError):
            note(str(answer))
    return [None if isinstance(answer, RefusedError) else answer for answer in answers]
