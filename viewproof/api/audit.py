"""Audit of recorded traces, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from viewproof.refinement import local, streamed
from viewproof.refinement.adapter import NATIVE, Adapter, AdapterError
from viewproof.refinement.adapter import adapter as load_adapter
from viewproof.refinement.discovery import Inputs, survey
from viewproof.refinement.interrupts import held
from viewproof.refinement.joined.judging import apart
from viewproof.refinement.local import Progress
from viewproof.refinement.schema import nearest
from viewproof.refinement.verdict import AuditOptions, AuditReport, CheckRun, InputProblem

ENGINES = ("local", "spark")
INPUTS = ("native", "tigerbeetle")
PROFILES = ("core", "tigerbeetle-2022", "tigerbeetle-2026")


class AuditOptionError(ValueError):
    """An option that an audit does not have, or one that has no meaning for this input; `option` is its name."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


def audit(
    *paths: str | Path,
    input: str = "native",
    profile: str = "core",
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    adapter: str = "",
    configuration: Mapping[str, int] | None = None,
    forbid: Sequence[str] = (),
    partial: bool = False,
    engine: str = "local",
    master: str = "local[*]",
    workers: int = 1,
    interp: bool = False,
    conf: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> AuditReport:
    """Do the traces under `paths` (files, directories, patterns) conform to the specification?

    The report: `verdict` is conforms, violates, inconclusive or error, `exit_code` that of `vsr audit`; `verdicts` has
    one per run, each with its `violations` (file, line, event, what was expected, why not) and `missing` evidence;
    `events` were accepted, `coverage` counts the steps of each action; `problems` are malformed places of the input,
    which are reported and never raised; `to_dict()` is what `--json` writes. docs/audit.md says what it proves.

    `input` is native (docs of the format: traces/README.md) or tigerbeetle (docs/tigerbeetle.md); `profile` is core,
    or for the latter a profile of it; `allow` permits deviations by name (docs/faults.md);
    `without` names columns to judge without, as if they were never there; `forbid` departures of a system that are
    refused ("all": all of them); `partial`: lines may be missing anywhere;
    `adapter` names one of the package (iggy, oxia) or from outside it (`module:NAME`, docs/adapters.md);
    `configuration` is what no boot of a
    run shows, by column; `engine` is local, with
    `workers` processes (which import the main module again: a script needs `if __name__ == "__main__"`), or spark, on
    `master` with `conf` (settings of the session), which also takes addresses (`s3a://…`); `interp` takes each step
    by the reference interpreter; `progress(done, total, name)` is called after each directory, `log` with notes. Raises
    `AuditOptionError` for an option that is unknown or has no meaning here.
    """
    if input not in INPUTS:
        raise AuditOptionError("input", f"unknown input {input}; there are: {', '.join(INPUTS)}")
    if engine not in ENGINES:
        raise AuditOptionError("engine", f"unknown engine {engine}; there are: {', '.join(ENGINES)}")
    if not paths or workers < 1:
        raise AuditOptionError("paths", "an audit needs at least one path, and one worker")
    names = [str(path) for path in paths]
    options = audit_options(input, profile, allow, without, adapter, configuration, forbid=forbid, partial=partial)
    inputs, judge = survey_inputs(names, options), check_run(interp=interp)
    return judge_inputs(
        inputs, options, judge, engine=engine, master=master, workers=workers, conf=conf, progress=progress, log=log
    )


def audit_from(
    state: str | Path,
    *paths: str | Path,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    adapter: str = "",
    configuration: Mapping[str, int] | None = None,
    forbid: Sequence[str] = (),
    partial: bool = False,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> AuditReport:
    """`audit` that goes on from the audit kept in the directory `state` (made if there is none), and is kept there: new
    files of the same runs are judged from where they ended, with the report of one audit over all files ever taken.
    `since` of it says of each run whether its verdict is new, changed, or as before. Without paths nothing is read: the
    report is on what is kept.

    Raises `AuditOptionError` also for a state that is damaged, in use, or of other options (docs/audit.md).
    """
    options = audit_options("native", "core", allow, without, adapter, configuration, forbid=forbid, partial=partial)
    require_state(state, "native", options, 1, interp=False)
    inputs = survey_inputs(map(str, paths), options)
    return judge_inputs(
        inputs, options, check_run(), engine="local", master="", workers=1, state=state, progress=progress, log=log
    )


def require_state(state: str | Path | None, input: str, options: AuditOptions, workers: int, *, interp: bool) -> None:
    """Refuses what an audit with a state cannot do."""
    if state is None:
        return
    lacks = {
        "--workers": workers > 1,
        "--interp": interp,
        f"logs of {input}": input != "native",
        f"logs of {options.adapter}, which are read together": _loaded(options.adapter).by_files,
    }
    if refused := [what for what, so in lacks.items() if so]:
        raise AuditOptionError("state", f"an audit cannot go on from a state with {refused[0]}")


def audit_options(
    input: str, profile: str, allow: Sequence[str], without: Sequence[str] = (), adapter: str = "",
    configuration: Mapping[str, int] | None = None, *, forbid: Sequence[str] = (), partial: bool = False,
) -> AuditOptions:  # fmt: skip
    """The options of an audit. Raises `AuditOptionError` for a profile, deviation or column that this input does not
    have.
    """
    if profile not in PROFILES:
        raise AuditOptionError("profile", f"unknown profile {profile}; there are: {', '.join(PROFILES)}")
    once = tuple(dict.fromkeys(allow))
    if adapter and input != "native":
        raise AuditOptionError("adapter", f"an adapter is an input of its own, and not of --input {input}")
    adapter = adapter or input
    if profile != "core" and not adapter.startswith("tigerbeetle"):
        raise AuditOptionError("profile", f"{profile} is for --input tigerbeetle")
    given = tuple((configuration or {}).items())
    _require_known(_loaded(adapter), once, without, given)
    refused = _forbidden(_loaded(adapter), forbid) if forbid else ()
    return AuditOptions(profile, once, tuple(dict.fromkeys(without)), adapter, given, refused, partial)


def _forbidden(adapter: Adapter, ids: Sequence[str]) -> tuple[str, ...]:
    """Departures to refuse, each once; `all` stands for all that the system has."""
    with held():
        known = adapter.system.departures
    for id in ids:
        if id != "all" and id not in known:
            text = f"there are: {', '.join(sorted(known))}" if known else f"{adapter.name} has none"
            raise AuditOptionError("forbid", f"{id} is no departure that is known; {text}")
    return tuple(dict.fromkeys(known if "all" in ids else ids))


def _require_known(
    adapter: Adapter, allow: tuple[str, ...], without: Sequence[str], given: Iterable[tuple[str, int]]
) -> None:
    """Refuses deviations that the adapter's specification does not have, or that no event can show; columns that its
    events do not have, or that no event can be judged without.
    """
    with held():
        from viewproof.spec.lang import SpecError

        system = adapter.system
    try:
        system.profile.deviations(tuple(id for id in allow if id not in system.departures))
    except SpecError as error:
        raise AuditOptionError("allow", str(error)) from None
    for column in without:
        if column not in system.by_name:
            text = f"{column} is no column of this input" + nearest(column, system.names)
            raise AuditOptionError("without", text)
        if system.by_name[column].required:
            raise AuditOptionError("without", f"no event can be judged without {column}")
    for column, value in given:
        known = system.profile.configuration
        if column not in known:
            raise AuditOptionError("set", f"{column} is no column of the configuration; there are: {', '.join(known)}")
        if not system.by_name[column].accepts(value):
            raise AuditOptionError("set", f"{column} is {system.by_name[column].expected}, not {value}")


def _loaded(adapter: str) -> Adapter:
    try:
        return load_adapter(adapter)
    except AdapterError as error:
        raise AuditOptionError("adapter", str(error)) from None


def survey_inputs(paths: Iterable[str], options: AuditOptions) -> Inputs:
    """The files to read, by the names that the adapter's have. Raises `AuditOptionError` where there is none."""
    if options.adapter == NATIVE:
        return survey(paths)
    found = _loaded(options.adapter)
    inputs = survey(paths, options.adapter, found.suffixes, any_name=found.streamed is not None)
    if found.streamed is not None:
        return replace(inputs, units=streamed.apart(inputs.units, found))
    return inputs if found.joined is None else replace(inputs, units=apart(inputs.units, found))


def suffix_of(options: AuditOptions) -> str:
    """How the name of a log of this input may end."""
    return ".ndjson" if options.adapter == NATIVE else _loaded(options.adapter).suffixes[0]


def check_run(*, interp: bool = False) -> CheckRun:
    """The replay of one run, compiled or by the reference interpreter."""
    with held():
        from viewproof.refinement.checker import check_run as replay
    return partial(replay, engine="interp") if interp else replay


def judge_inputs(
    inputs: Inputs, options: AuditOptions, judge: CheckRun, *, engine: str, master: str, workers: int,
    conf: Mapping[str, str] | None = None, state: str | Path | None = None, progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
) -> AuditReport:  # fmt: skip
    """Audit what was found, with the named engine; paths that were refused end it before it begins. Raises
    `AuditOptionError` for a state that cannot be used.
    """
    if inputs.refused:
        return AuditReport(engine, options, problems=inputs.refused)
    together = _loaded(options.adapter).by_files
    if inputs.remote and (engine == "local" or together):
        expected, got = "a path of this machine", "an address; --engine spark reads those that its session knows"
        if together:
            got = f"an address; files of {options.adapter} are read together"
        problems = tuple(InputProblem(address, 0, "", expected, got) for address in inputs.remote)
        return AuditReport(engine, options, problems=problems)
    if state is not None:
        with held():
            from viewproof.refinement import going_on
        say = log or (lambda text: None)
        try:
            if engine == "local":
                return going_on.audit(inputs, options, Path(state), progress=progress, log=say)
            with held():
                from viewproof.refinement import spark
            return spark.audit_from(Path(state), inputs, options, master=master, log=log, progress=progress, conf=conf)
        except going_on.StateError as error:
            raise AuditOptionError("state", str(error)) from None
    if engine == "local":
        return local.audit(inputs, options, judge, workers=workers, progress=progress)
    with held():
        from viewproof.refinement import spark
    return spark.audit(inputs, options, judge, master=master, log=log, progress=progress, conf=conf)
