"""`vsr status`: what every replica says of itself, and what is wrong between them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import msgspec

from viewproof.impl.groups.group import SINGLE, group_name
from viewproof.impl.net.address import Address, address_text, unknown_name
from viewproof.impl.net.connection import answers_of, fetch_status
from viewproof.impl.net.errors import RefusedError
from viewproof.impl.net.framing import Status
from viewproof.impl.net.server_config import parse_addresses
from viewproof.impl.net.tls import Tls
from viewproof.impl.replica.features import FEATURES, feature_numbers
from viewproof.refinement.cli.options import Seconds, addresses_option, cluster_id_option, json_option, tls_option
from viewproof.refinement.cli.output import note, save_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES


@click.command()
@addresses_option
@cluster_id_option
@click.option("--timeout", type=Seconds(), default=1.0, show_default=True, help="Seconds.")
@tls_option
@json_option
def status(addresses: str, cluster_id: int, timeout: float, tls: Path | None, json_file: Path | None) -> int:
    """Ask every replica how it is, and what is wrong between them.

    Exit code 4 if one does not answer, 1 if replicas refuse each other or the question, are not where the addresses
    say, or differ in what the same ops made of their state. Exit code 2 if all refuse the question.
    """
    parsed = parse_addresses(addresses)
    shown = None if tls is None else Tls(tls)

    async def ask(address: Address) -> list[Status | None]:
        first = await fetch_status(address, cluster_id, timeout, tls=shown)
        if first is None and (reason := await unknown_name(address, timeout)):
            note(reason)
        others = () if first is None else first.groups[1:]
        return [first, *[await fetch_status(address, cluster_id, timeout, group, shown) for group in others]]

    async def ask_all() -> list[list[Status | None] | RefusedError]:
        return await answers_of(map(ask, parsed))

    said = asyncio.run(ask_all())
    refusals = [answer for answer in said if isinstance(answer, RefusedError)]
    found = [[None] if isinstance(answer, RefusedError) else answer for answer in said]
    answers = [answer for of_replica in found for answer in of_replica]
    width = max((len(_group_text(answer)) for answer in answers if answer is not None), default=0)
    for index, (address, of_replica) in enumerate(zip(parsed, found, strict=True)):
        for answer in of_replica:
            text = "refuses" if isinstance(said[index], RefusedError) else _status_text(answer, width)
            click.echo(f"replica {index} {address_text(address)}  {text}")
    if tls is None and not any(answers):
        note("nobody answers without TLS; if the replicas have it: --tls DIRECTORY")
    problems = list(map(str, refusals))
    problems += _problems(parsed, [of_replica[0] for of_replica in found])
    problems += differences_of_state(answer for answer in answers if answer is not None)
    for notice in dict.fromkeys(text for answer in answers if answer is not None for text in answer.notices):
        note(f"soon: {notice}")
    for problem in problems:
        note(f"problem: {problem}")
    code = EXIT_VIOLATES if problems else EXIT_CONFORMS if all(answers) else EXIT_INCONCLUSIVE
    replicas = [None if answer is None else _fields_of(answer) for answer in answers]
    result = {"format": "viewproof.status/1", "replicas": replicas, "problems": problems, "exit_code": code}
    save_json(result, json_file)
    return code


def _problems(addresses: Sequence[Address], answers: Sequence[Status | None]) -> list[str]:
    """What is wrong by what each address answered."""
    found: list[str] = []
    for index, (address, answer) in enumerate(zip(addresses, answers, strict=True)):
        if answer is None:
            continue
        at = address_text(address)
        if answer.replica != index:
            found.append(f"the replica at {at} is {answer.replica}, not {index}: give the addresses by index")
        if answer.replica_count != len(addresses):
            found.append(f"the replica at {at} is one of {answer.replica_count}; {len(addresses)} addresses were given")
        found += [f"replica {answer.replica}: {problem}" for problem in answer.problems]
        if answer.refused:
            refused = ", ".join(f"{name} {count}" for name, count in answer.refused)
            note(f"replica {answer.replica} has refused: {refused}")
    return found


def _fields_of(answer: Status) -> dict[str, Any]:
    """By name."""
    heard = list(map(msgspec.structs.asdict, answer.heard))
    return msgspec.structs.asdict(answer) | {"heard": heard, "primary": answer.is_primary}


def _group_text(answer: Status) -> str:
    return "" if answer.group == SINGLE.number else answer.group_name or group_name(answer.group)


def _status_text(answer: Status | None, width: int) -> str:
    """One line, the group's name padded to `width`."""
    if answer is None:
        return "no answer"
    fields = ("view", "log_view", "op", "commit_min", "commit_max", "checkpoint")
    text = answer.status + "  " + "  ".join(f"{name} {getattr(answer, name)}" for name in fields)
    text += "  primary" if answer.is_primary else ""
    if answer.features:
        text += "  features " + ",".join(feature_text(feature) for feature in feature_numbers(answer.features))
    if answer.checksum:
        text += f"  checksum {answer.checksum}"
    return text if answer.group == SINGLE.number else f"{_group_text(answer):<{width}}  {text}"


def feature_text(feature: int) -> str:
    """The number of a feature with its name, if this version knows it."""
    return f"{feature} ({FEATURES[feature]})" if feature in FEATURES else str(feature)


def differences_of_state(answers: Iterable[Status]) -> list[str]:
    """Replicas of one group that executed the same ops and differ in digest, features or database checksum (I14)."""

    def place(answer: Status) -> tuple[int, int]:
        return answer.group, answer.commit_min

    found: list[str] = []
    for (_, commit_min), level in groupby(sorted(answers, key=lambda each: (*place(each), each.replica)), place):
        first, *others = level
        for other in others:
            found += [
                f"replicas {first.replica} and {other.replica} have executed the same {commit_min} ops, and differ in "
                f"{name}: {ours} and {theirs}"
                for name in ("digest", "features", "checksum")
                if (ours := getattr(first, name)) != (theirs := getattr(other, name))
            ]
    return found
