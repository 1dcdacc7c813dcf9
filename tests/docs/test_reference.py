"""docs/reference follows from declarations, and the reports of commands are what their schemas say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from benchmarks.reference.__main__ import HERE, PAGES
from benchmarks.reference.examples import EXAMPLES
from benchmarks.reference.language import GROUPS
from viewproof.impl.net.settings import SETTINGS, environment_name
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.root import COMMANDS
from viewproof.spec import lang

WORDS = [word for _, words in GROUPS.values() for word in words.split()]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_made_from_the_declarations(name: str) -> None:
    there = (HERE / name).read_text(encoding="utf-8")
    assert there == PAGES[name](), "python -m benchmarks.reference --write docs/reference makes it again"


def test_every_word_command_and_setting_is_described() -> None:
    assert sorted(WORDS) == sorted(lang.__all__)
    assert set(EXAMPLES) <= set(WORDS)
    commands, settings = (PAGES[f"{name}.md"]() for name in ("commands", "settings"))
    assert [name for name in COMMANDS if f"\n## vsr {name}\n" not in commands] == []
    assert [key for key in SETTINGS if f"`{environment_name(key)}`" not in settings] == []


def test_every_command_that_writes_a_report_has_a_schema_that_is_listed() -> None:
    listed = (HERE / "README.md").read_text(encoding="utf-8")
    commands: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else (command,)
        commands += [(name, one) for one in inner]
    writing = {name for name, one in commands if any("--json" in option.opts for option in one.params)}
    assert {f"{name}.schema.json" for name in writing} == {name for name in PAGES if name.endswith(".json")}
    assert [name for name in writing if f"({name}.schema.json)" not in listed] == []


def validated(report: Path, schema: str) -> dict[str, Any]:
    """The report, if it is what the schema says."""
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(json.loads(PAGES[schema]())).validate(found)
    return found


def run(*args: str | Path) -> int:
    """The exit code of a command."""
    return CliRunner().invoke(cli, [str(arg) for arg in args]).exit_code


@pytest.mark.parametrize(
    ("options", "code"),
    [(("core", "--views", 2, "--ops", 1, "--requests", 1), 0), (("core", "--fault", "commit.apply_at_replicate"), 1)],
    ids=["holds", "violated"],
)
def test_a_search_writes_what_its_schema_says(tmp_path: Path, options: tuple[str | int, ...], code: int) -> None:
    report = tmp_path / "report.json"
    assert run("check", *map(str, options), "--json", report) == code
    assert validated(report, "check.schema.json")["exit_code"] == code


def test_simulations_and_audits_write_what_their_schemas_say(tmp_path: Path) -> None:
    traces, report = tmp_path / "traces", tmp_path / "report.json"
    fault = ("--fault", "commit.apply_at_replicate")
    assert run("simulate", "--seed", "1", "--requests", "40", *fault, "--out", traces, "--json", report) == 1
    assert validated(report, "simulate.schema.json")["runs"][0]["failures"]
    assert run("audit", traces, "--json", report) == 1
    assert validated(report, "audit.schema.json")["verdicts"][0]["violations"]
    first = next(traces.rglob("*.ndjson"))
    first.write_text("{}\n", encoding="utf-8")
    assert run("audit", traces, "--json", report) == 2
    assert validated(report, "audit.schema.json")["problems"]


@pytest.mark.parametrize("name", [name for name in PAGES if name.endswith(".json")])
def test_a_schema_is_one_and_refuses_what_is_no_report(name: str) -> None:
    schema = json.loads(PAGES[name]())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not validator.is_valid({})
    assert not validator.is_valid({"format": schema["title"], "verdict": "fine"})
