"""Whose verdict changes between two versions of the specification or two settings, and by which guard.

A side is a version (a revision, a directory, the program at hand) with settings of the audit, or the report of an audit
that was made before. Nothing is judged twice: where all that decides a verdict is the same, the verdicts are.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

import viewproof.refinement as refinement_package
from viewproof.refinement.difference.versions import Version
from viewproof.refinement.verdict import InputProblem
from viewproof.spec.lang import SpecError

SETTINGS = {"input": "--input", "profile": "--profile", "adapter": "--adapter", "allow": "--allow",
            "forbid": "--forbid", "without": "--without", "set": "--set"}  # fmt: skip
"""What may follow a version's name, and the option of `vsr audit` that it is."""
_DO_NOT_JUDGE = ("refinement/reports/", "refinement/difference/", "refinement/explorer/", "refinement/cli/")
_BUT = "refinement/cli/audit.py"
"""Code that only asks for verdicts or shows them, but for what makes options of words."""
_RUN = "import sys; sys.path.insert(0, '.'); from {package} import cli; cli()"


@dataclass(frozen=True)
class Side:
    """One of the two: the words it was given by, the report it is or the version, and the options of its audits."""

    words: str
    report: Path | None = None
    version: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runs:
    """The verdicts of a side, by run, and how many of them it judged."""

    found: Mapping[str, _Run]
    judged: int


@dataclass(frozen=True)
class Changed:
    """A run whose verdict, or the first thing that it breaks, differs: what each side says (None: it has no such run).

    `verdict` and, of one that violates, its first violation; of one that is inconclusive, what is missing first.
    """

    run_id: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None

    @property
    def worse(self) -> bool:
        """Does it violate now, and did not?"""
        before, after = ((side or {}).get("verdict") for side in (self.old, self.new))
        return after == "violates" and before != "violates"

    @property
    def spared(self) -> bool:
        """Did it violate, and does no longer?"""
        before, after = ((side or {}).get("verdict") for side in (self.old, self.new))
        return before == "violates" and after != "violates"

    @property
    def cause(self) -> tuple[str, str]:
        """The two verdicts, and the guard or rule that makes the difference (that of the new side, if it has one)."""
        both = " -> ".join(str((side or {}).get("verdict", "not read")) for side in (self.old, self.new))
        rules = [side["by"] for side in (self.new, self.old) if side and side["by"]]
        return both, rules[0] if rules else ""


@dataclass
class Answer:
    """The comparison of two sides over some traces."""

    old: str
    new: str
    traces: list[str]
    runs: int = 0
    judged: dict[str, int] = field(default_factory=dict)
    reused: str = ""
    changed: list[Changed] = field(default_factory=list)

    def causes(self) -> dict[tuple[str, str], list[str]]:
        """The runs of each cause, the most frequent first."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.changed:
            found.setdefault(one.cause, []).append(one.run_id)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        causes = [{"verdicts": both, "by": by, "runs": runs} for (both, by), runs in self.causes().items()]
        return {**vars(self), "changed": [vars(one) for one in self.changed], "causes": causes}


def side(words: str) -> Side:
    """A side as the command is given it: NAME[:KEY=VALUE[,KEY=VALUE…]], NAME a revision, a directory, a report (*.json)
    or nothing: the program at hand. Raises `SpecError`.
    """
    if words.endswith(".json"):
        return Side(words, report=Path(words))
    name, _, rest = words.partition(":")
    options: list[str] = []
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if key not in SETTINGS or not equals:
            raise SpecError(f"{words}: {pair}: expected KEY=VALUE with a KEY of {', '.join(SETTINGS)}")
        options += (SETTINGS[key], value)
    return Side(words, version=name, options=tuple(options))


def compare(
    old: tuple[Side, Version | None], new: tuple[Side, Version | None], traces: Sequence[Path], words: Sequence[str],
    note: Callable[[str], None],
) -> Answer:  # fmt: skip
    """Audit the traces by both sides, with more `words` for each audit, and compare. Raises `SpecError`."""
    answer = Answer(old[0].words, new[0].words, [str(path) for path in traces])
    reports = [_of_report(one.words, one.report) if one.report else None for one, _ in (old, new)]
    first = _runs(*old, reports[0], traces, words, note)
    answer.reused = _same(old, new)
    if answer.reused:
        note(f"{new[0].words} is not judged: {answer.reused}")
    sides = [first, Runs(first.found, 0) if answer.reused else _runs(*new, reports[1], traces, words, note)]
    one, two = (side.found for side in sides)
    answer.judged = {"old": sides[0].judged, "new": sides[1].judged}
    names = dict.fromkeys((*one, *two))
    answer.runs = len(names)
    pairs = (Changed(name, _told(one.get(name)), _told(two.get(name))) for name in names)
    answer.changed = [pair for pair in pairs if _key(pair.old) != _key(pair.new)]
    return answer


def _same(old: tuple[Side, Version | None], new: tuple[Side, Version | None]) -> str:
    """Why the verdicts of both are the same without a look at the traces; empty if they may differ."""
    if None in (old[1], new[1]) or old[0].options != new[0].options:
        return ""
    if judges(old[1]) == judges(new[1]):
        return "all that decides a verdict is the same in both versions"
    return ""


def judges(version: Version | None) -> str:
    """A digest of the code that decides verdicts in a version: all but what asks for them or shows them."""
    assert version is not None
    root = version.folder
    found = hashlib.blake2b(digest_size=16)
    for file in sorted(
        file for part in ("spec", "refinement", "viewproof/api") for file in (root / part).rglob("*.py")
    ):
        name = file.relative_to(root).as_posix()
        if name.startswith(_DO_NOT_JUDGE) and name != _BUT:
            continue
        content = file.read_bytes()
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()


_PLACES = re.compile(r" (at|noticed at) \S+:\d+|, and \d+ more| \(noticed at [^)]*\)")
"""What differs from run to run in a text about missing evidence."""
AT_HAND = "the program at hand"


def at_hand() -> Version:
    """The program that runs."""
    return Version(AT_HAND, Path(next(iter(refinement_package.__path__))).resolve().parent)


def _runs(
    side: Side, version: Version | None, report: Mapping[str, _Run] | None, traces: Sequence[Path],
    words: Sequence[str], note: Callable[[str], None],
) -> Runs:  # fmt: skip
    if report is not None:
        return Runs(report, 0)
    assert version is not None
    note(f"auditing by {side.words or version.name}")
    found = audited(version, traces, (*side.options, *words))
    return Runs(found, len(found))


def audited(version: Version, traces: Sequence[Path], words: Sequence[str] = ()) -> dict[str, _Run]:
    """What an audit of these traces by this version says of each run. Raises `SpecError`."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        package = version.package.removesuffix("spec") + "refinement.cli"
        here = version.name == AT_HAND
        program = ["-m", "viewproof"] if here else ["-c", _RUN.format(package=package)]
        paths = [str(path.resolve()) for path in traces]
        command = [sys.executable, *program, "audit", *words, *paths, "--json", str(answer)]
        folder_of = None if here else version.folder
        done = subprocess.run(command, cwd=folder_of, capture_output=True, text=True, check=False)
        if not answer.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SpecError(f"{version.name}: {', '.join(map(str, traces))} cannot be audited: {last}")
        return _of_report(version.name, answer)


class _Violation(msgspec.Struct):
    """What is read of a violation; older versions say less."""

    rule_id: str
    file: str
    line: int
    action: str | None = ""
    place: str | None = ""
    message: str = ""
    rule: str | None = ""
    rule_fingerprint: str | None = ""


class _Run(msgspec.Struct):
    """What is read of the verdict on a run."""

    run_id: str
    verdict: Literal["conforms", "violates", "inconclusive"]
    violations: list[_Violation] = []
    missing: list[str] = []


class _Problem(msgspec.Struct):
    file: str
    line: int
    field: str
    expected: str
    got: str


class _Report(msgspec.Struct):
    """What is read of a report of `vsr audit --json`."""

    verdicts: list[_Run]
    problems: list[_Problem] = []
    tool_errors: list[str] = []
    stopped: str = ""


def _of_report(name: str, file: Path) -> dict[str, _Run]:
    """The runs of a report of `vsr audit --json`."""
    try:
        report = msgspec.json.decode(file.read_bytes(), type=_Report)
    except OSError as error:
        raise SpecError(f"{file}: expected a report of vsr audit --json: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{file}: expected a report of vsr audit --json: {error}") from None
    said = [str(InputProblem(*msgspec.structs.astuple(problem))) for problem in report.problems]
    said += [*report.tool_errors, *filter(None, [report.stopped])]
    if said:
        raise SpecError(f"{name}: not all of the traces were judged: {said[0]}")
    return {run.run_id: run for run in report.verdicts}


def _told(run: _Run | None) -> dict[str, Any] | None:
    """What is compared and shown of a run."""
    if run is None:
        return None
    told = {"verdict": run.verdict, "by": "", "rule_id": "", "action": "", "place": "", "fingerprint": ""}
    told |= {"message": "", "at": ""}
    if run.violations and run.verdict == "violates":
        first = run.violations[0]
        told |= {"rule_id": first.rule_id, "action": first.action or "", "place": first.place or ""}
        told |= {"message": first.message, "fingerprint": first.rule_fingerprint or ""}
        by = first.rule or first.rule_id
        told |= {"at": f"{first.file}:{first.line}", "by": f"{first.action}: {by}" if first.action else by}
    elif run.missing and run.verdict == "inconclusive":
        told |= {"by": f"missing: {_PLACES.sub('', run.missing[0])}", "message": run.missing[0]}
    return told


def _key(told: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """What makes two verdicts the same: the verdict, and what is refused first. Its place may have moved."""
    if told is None:
        return ("not read",)
    if told["verdict"] != "violates":
        return (told["verdict"],)
    return told["verdict"], told["rule_id"], told["action"], told["fingerprint"], told["at"]
