"""Whose verdict changes between two versions of the specification or two settings, and by which guard.

A side is a version (a revision, a directory, the program at hand) with settings of the audit, or the report of an audit
that was made before. Nothing is judged twice: where all that decides a verdict is the same, the verdicts are.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import viewproof.refinement as refinement_package
from viewproof.refinement.difference.versions import Version
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

    found: Mapping[str, Mapping[str, Any]]
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
    sides = [_runs(*old, traces, words, note)]
    same = _same(old, new)
    if same:
        answer.reused = same
        note(f"{new[0].words} is not judged: {same}")
        sides.append(Runs(sides[0].found, 0))
    else:
        sides.append(_runs(*new, traces, words, note))
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
    side: Side, version: Version | None, traces: Sequence[Path], words: Sequence[str], note: Callable[[str], None]
) -> Runs:
    if version is None:
        assert side.report is not None
        return Runs(_of_report(side.words, side.report), 0)
    note(f"auditing by {side.words or version.name}")
    found = audited(version, traces, (*side.options, *words))
    return Runs(found, len(found))


def audited(version: Version, traces: Sequence[Path], words: Sequence[str] = ()) -> dict[str, Mapping[str, Any]]:
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


def _of_report(name: str, file: Path) -> dict[str, Mapping[str, Any]]:
    """The runs of a report of `vsr audit --json`."""
    try:
        report = json.loads(file.read_text())
        runs = report["verdicts"]
        problems = [*report.get("problems", ()), *report.get("tool_errors", ())]
        found = {str(run["run_id"]): run for run in runs}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(f"{file}: expected a report of vsr audit --json: {type(error).__name__}: {error}") from None
    if problems or report.get("stopped"):
        first = problems[0] if problems else report["stopped"]
        if isinstance(first, dict):
            first = (
                f"{first['file']}:{first['line']}: {first['field']}: expected {first['expected']}, got {first['got']}"
            )
        raise SpecError(f"{name}: not all of the traces were judged: {first}")
    return found


def _told(run: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What is compared and shown of a run."""
    if run is None:
        return None
    told = {"verdict": str(run["verdict"]), "by": "", "rule_id": "", "action": "", "place": "", "fingerprint": ""}
    told |= {"message": "", "at": ""}
    violations, missing = run.get("violations") or (), run.get("missing") or ()
    if violations and told["verdict"] == "violates":
        first = violations[0]
        told |= {name: str(first.get(name, "")) for name in ("rule_id", "action", "place", "message")}
        told |= {"fingerprint": str(first.get("rule_fingerprint", "")), "at": f"{first['file']}:{first['line']}"}
        by = first.get("rule") or first["rule_id"]
        told["by"] = f"{first['action']}: {by}" if first.get("action") else str(by)
    elif missing and told["verdict"] == "inconclusive":
        told |= {"by": f"missing: {_PLACES.sub('', str(missing[0]))}", "message": str(missing[0])}
    return told


def _key(told: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """What makes two verdicts the same: the verdict, and what is refused first. Its place may have moved."""
    if told is None:
        return ("not read",)
    if told["verdict"] != "violates":
        return (told["verdict"],)
    return told["verdict"], told["rule_id"], told["action"], told["fingerprint"], told["at"]
