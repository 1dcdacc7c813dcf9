"""`vsr simulate`: the implementation under the deterministic simulator, many seeds."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import click

from viewproof.api.simulate import Plan, run_seeds
from viewproof.impl.faults import FAULTS
from viewproof.impl.groups.group import SINGLE, Group, parse_groups
from viewproof.impl.interface.durable import ConfigurationError, quorums_default
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import CLIENT_PROFILES, FEATURES_CHOICES
from viewproof.impl.sim.run import SimResult, core_size
from viewproof.impl.sim.summary import summarise, summary_lines
from viewproof.refinement.cli.options import SIZE_MAX, FaultName, Place, json_option_of_maker, protect
from viewproof.refinement.cli.output import note, save_json, steps
from viewproof.refinement.cli.used import note_other_runs
from viewproof.refinement.reports.text import number
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES

FAILURES_SHOWN = 10


def extra_words(plan: Plan) -> list[str]:
    """The options of a plan beyond the sizes, the faults and the output, as words."""
    words = [] if plan.profile is None else ["--profile", plan.profile]
    words += [] if plan.client_profile is None else ["--client-profile", plan.client_profile]
    words += [] if plan.features is None else ["--features", plan.features]
    words += [] if plan.rot else ["--no-rot"]
    return [*words, *([] if plan.groups == (SINGLE,) else ["--groups", ",".join(g.name for g in plan.groups)])]


def replay_command(plan: Plan, seed: int) -> str:
    """The command that runs one seed again, with its trace."""
    words = [f"vsr simulate --seed {seed} --replicas {plan.replicas} --clients {plan.clients}"]
    words += [f"--requests {plan.requests}", *(f"--fault {fault}" for fault in plan.faults)]
    words += [*extra_words(plan), "--out replay"]
    return " ".join(words)


def rest_command(plan: Plan, seeds: range, workers: int) -> str:
    """The command that goes on with seeds that have not run."""
    words = ["vsr", "simulate", "--seed", str(seeds.start), "--runs", str(len(seeds))]
    sizes = {"replicas": plan.replicas, "clients": plan.clients, "requests": plan.requests, "workers": workers}
    words += [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    words += [word for fault in plan.faults for word in ("--fault", fault)]
    words += extra_words(plan)
    words += [] if plan.out is None else ["--out", str(plan.out)]
    return shlex.join([*words, *(["--parquet"] if plan.parquet else [])])


@click.command()
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="First seed.")
@click.option(
    "--runs", type=click.IntRange(1, 1 << 31), default=1, show_default=True, help="Number of seeds, counted up."
)
@click.option("--replicas", type=click.IntRange(1, SIZE_MAX), default=3, show_default=True)
@click.option(
    "--clients",
    type=click.IntRange(1, SIZE_MAX),
    default=3,
    show_default=True,
    help="At least; a harsh profile has more.",
)
@click.option("--requests", type=click.IntRange(0), default=200, show_default=True, help="Requests per run.")
@click.option("--fault", "faults", multiple=True, type=FaultName(FAULTS), metavar="NAME", help="Switch a mistake on.")
@click.option(
    "--rot/--no-rot",
    default=True,
    show_default=True,
    help="In a part of the runs disks rot, lose and misdirect writes.",
)
@click.option(
    "--profile",
    type=click.Choice(tuple(NAMED_PROFILES)),
    help="What the runs are hard on (docs/faults.md); drawn from each seed unless given.",
)
@click.option(
    "--client-profile",
    type=click.Choice(CLIENT_PROFILES),
    help="How clients are remembered; drawn from each seed unless given.",
)
@click.option(
    "--features",
    type=click.Choice(FEATURES_CHOICES),
    help="Which members support features: none, all, all but one, or more with each restart; drawn unless given.",
)
@click.option(
    "--groups",
    default=SINGLE.name,
    show_default=True,
    callback=lambda context, parameter, value: parse_groups(value),
    help="Consensus groups of every process: single, or metadata,partitions, or metadata,partition:0/1/2,…; each is a "
    "run of its own.",
)
@click.option("--out", type=Place(file_okay=False), help="Write traces: OUT/seed-N/replica-I.ndjson.")
@click.option("--parquet", is_flag=True, help="Write the traces as Parquet instead.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@json_option_of_maker
def simulate(
    seed: int,
    runs: int,
    replicas: int,
    clients: int,
    requests: int,
    faults: tuple[str, ...],
    client_profile: str | None,
    features: str | None,
    groups: tuple[Group, ...],
    rot: bool,
    profile: str | None,
    out: Path | None,
    parquet: bool,
    workers: int,
    json_file: Path | None,
) -> int:
    """Run the replica under faults, from seeds; the same seed gives the same run, byte for byte.

    Exit code 1 if a checker of the simulator fails; it prints the seed and the command that replays it. Interrupted, it
    prints what the runs so far gave and the command that goes on: exit code 4, or 1 if one has failed.
    """
    if parquet and out is None:
        raise click.UsageError("--parquet says how traces are written; --out DIR says where, and is missing")
    if profile is not None and not rot:
        raise click.UsageError("--no-rot says which profiles are drawn, --profile names one; two have disks that rot")
    _require_enough(profile, replicas)
    protect({"--json": json_file}, directories=[] if out is None else [out])
    plan = Plan(
        replicas,
        clients,
        requests,
        tuple(dict.fromkeys(faults)),
        out,
        parquet,
        client_profile,
        features,
        groups,
        rot,
        profile,
    )
    started = time.monotonic()
    results: list[SimResult] = []
    going_on = ""
    try:
        with steps("simulate") as progress:
            for done, of_seed in enumerate(run_seeds(range(seed, seed + runs), plan, workers), start=1):
                results += of_seed
                progress(done, runs, of_seed[-1].run)
    except KeyboardInterrupt:
        left = range(seed + len(results) // len(plan.groups), seed + runs)
        going_on = rest_command(plan, left, workers) if left else ""
    failed = [result for result in results if not result.ok]
    conclusive = any(result.answered for result in results) and not going_on
    code = EXIT_VIOLATES if failed else EXIT_CONFORMS if conclusive else EXIT_INCONCLUSIVE
    _print(results, failed, plan, time.monotonic() - started)
    if going_on:
        click.echo(f"interrupted: {len(results) // len(plan.groups)} of {runs} seeds have run; to go on: {going_on}")
    save_json(_to_dict(results, plan, code) | ({"stopped": going_on} if going_on else {}), json_file)
    return code


def _require_enough(profile: str | None, replicas: int) -> None:
    try:
        if profile is not None:
            core_size(NAMED_PROFILES[profile], quorums_default(replicas), replicas)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="--replicas") from None


def _print(results: list[SimResult], failed: list[SimResult], plan: Plan, seconds: float) -> None:
    for result in failed[:FAILURES_SHOWN]:
        click.echo(f"{result.run.replace('seed-', 'seed ')} fails:")
        for failure in result.failures[:5]:
            click.echo(f"    {failure}")
        click.echo(f"    replay: {replay_command(plan, result.seed)}")
    if len(failed) > FAILURES_SHOWN:
        click.echo(f"… and {len(failed) - FAILURES_SHOWN} more seeds that fail")
    if len(results) > 1 or failed:
        for line in summary_lines(summarise(result.statistics for result in results), len(results)):
            click.echo(line)
    events, answered = sum(r.events for r in results), sum(r.answered for r in results)
    note(f"{seconds:.1f} s, {events / seconds if seconds else 0:,.0f} events/s")
    done = f"{number(len(results), 'run')}, {len(failed)} failed"
    click.echo(f"{done}; {number(answered, 'request')} answered, {number(events, 'event')}")
    if plan.out is not None:
        click.echo(f"traces: {plan.out} ({shlex.join(['vsr', 'audit', str(plan.out)])})")
        note_other_runs(plan.out, [result.run for result in results])


def _to_dict(results: list[SimResult], plan: Plan, code: int) -> dict[str, Any]:
    return {
        "format": "viewproof.simulate/1",
        "exit_code": code,
        "replicas": plan.replicas,
        "clients": plan.clients,
        "requests": plan.requests,
        "faults": plan.faults,
        "profile": plan.profile,
        "client_profile": plan.client_profile,
        "features": plan.features,
        "groups": [group.name for group in plan.groups],
        "rot": plan.rot,
        "summary": summarise(result.statistics for result in results),
        "runs": [
            {
                "seed": result.seed,
                "run": result.run,
                "ok": result.ok,
                "failures": [str(failure) for failure in result.failures],
                "events": result.events,
                "ticks": result.ticks,
                "answered": result.answered,
                "abandoned": result.abandoned,
                "statistics": result.statistics,
                "trace": None if result.trace is None else str(result.trace),
                "replay": replay_command(plan, result.seed),
            }
            for result in results
        ],
    }
