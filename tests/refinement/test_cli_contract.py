"""What every command keeps to: options that do not apply are refused, exit codes are ours whoever reads the output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import viewproof
from viewproof.refinement.cli import check_portfolio, cli
from viewproof.refinement.cli.check import APPLIES, check
from viewproof.refinement.cli.models import SIZES
from viewproof.refinement.cli.mutate import mutate, report_line
from viewproof.spec.engines.mutate import mutants
from viewproof.spec.engines.mutate.hunt import Death, Report
from viewproof.spec.engines.mutate.rebuild import with_ir
from viewproof.spec.engines.portfolio import Shape
from viewproof.spec.lang import Spec, action, all_of, where
from viewproof.spec.lang.expr import Const, Read
from viewproof.spec.lang.expr import Op as Operation
from viewproof.spec.sizes import Size
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Client,
    Core,
    Op,
    Replica,
    Request,
    client_of,
    primary,
    request_of,
)

SMALL = ("--views", "2", "--ops", "1", "--requests", "1")
FAULT = ("core", "--fault", "state.getstate_truncates")


def vsr(*words: str, stdout: int | None = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "viewproof", *words], stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("words", "code"),
    [(("check", *FAULT), 1), (("check", "core", *SMALL), 0), (("check", "core", *SMALL, "--max-states", "5"), 4)],
)
def test_the_exit_code_is_the_verdict_though_nobody_reads_the_output(words: tuple[str, ...], code: int) -> None:
    process = vsr(*words)
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate()
    assert process.returncode == code, told.decode()
    assert b"Traceback" not in told


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ("tigerbeetle-2022", "the protocol with the same recovery is recovery-nonce"),
        ("tigerbeetle-2026", "the protocol with the same recovery is recovery-superblock"),
        ("vsr", "unknown profile vsr; there are: core, paper"),
    ],
)
def test_a_name_that_is_no_profile_is_refused_with_the_reason(profile: str, reason: str) -> None:
    answer = CliRunner().invoke(check, ["core", "--profile", profile])
    assert answer.exit_code == 2
    assert reason in " ".join(answer.output.split())


def test_a_disk_that_is_full_is_an_error_of_the_tool() -> None:
    with open("/dev/full", "wb") as full:
        process = vsr("check", "core", *SMALL, stdout=full.fileno())
        _, told = process.communicate()
    assert process.returncode == 2
    assert b"No space left" in told
    assert b"Traceback" not in told


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("core", "--seed", "3"), "--seed does not apply to the model's shapes; it is for --simulate"),
        (("core", *SMALL, "--walks", "3"), "--walks does not apply to a search of one size; it is for --simulate"),
        (("core", *SMALL, "--exhaust"), "--exhaust does not apply to a search of one size"),
        (("core", "--simulate", "--por"), "--por does not apply to --simulate"),
        (("core", "--always", "--itf", "x.itf"), "--itf does not apply to --always"),
        (("core", "--sometimes", "I1", "--coverage"), "--coverage does not apply to --sometimes"),
        (("core", "--engine", "interp", "--memory", "1G"), "--memory does not apply to --engine interp"),
        (("core", "--engine", "interp", "--always"), "--always and --engine interp are one question each"),
        (("core", "--minutes", "3"), "--minutes says when --exhaust ends"),
        (("core", *SMALL, "--itf", "/nowhere/x.itf"), "cannot be written"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_by_name(words: tuple[str, ...], refused: str) -> None:
    answer = CliRunner().invoke(check, list(words))
    assert answer.exit_code == 2
    assert refused in " ".join(answer.output.split())


def test_every_option_of_check_is_about_some_question_or_all() -> None:
    everywhere = {"name", "faults", "profile", "json_file", "html", "why_not", "engine", "replicas", *SIZES}
    everywhere |= {"simulate", "always", "sometimes", "size"}
    about_some = {name for names in APPLIES.values() for name in names}
    assert {p.name for p in check.params} == everywhere | about_some


def offers_ordered_by_op(spec: Spec) -> Spec:
    """The best offer is chosen by op before log_view."""
    (mutant,) = [m for m in mutants(spec, frozenset({"start_view"})) if m.kind == "minor key first"]
    return mutant.of(spec)


def log_view_of_the_head(spec: Spec) -> Spec:
    """log_view in an offer is the view of the head prepare."""
    ir, variables = spec.ir("do_view_change"), spec.schema.vars
    (offered,) = [u for u in ir.updates if u.var.name == "dvc_log_view"]
    r = offered.index[1]
    head = Read(variables["op"], (r,))
    entry = Read(variables["entry"], (r, head))
    view = Operation("ite", (Operation("eq", (head, Const(0)), True), Const(0), Operation("sub", (entry, Const(1)))))
    updates = tuple(replace(u, value=view) if u is offered else u for u in ir.updates)
    return with_ir(spec, replace(ir, updates=updates))


def commits_what_it_installs(spec: Spec) -> Spec:
    """A new primary takes the whole log that it starts its view with for committed."""
    ir = spec.ir("start_view")
    length = next(u.value for u in ir.updates if u.var.name == "op")
    updates = tuple(replace(u, value=length) if u.var.name == "commit_max" else u for u in ir.updates)
    return with_ir(spec, replace(ir, updates=updates))


def replies_at_once(spec: Spec) -> Spec:
    """A primary answers a request when it prepares it."""

    @action
    def on_request(state: Core, r: Replica, c: Client, s: Request) -> None:
        """A request is prepared, and answered."""
        normal.on_request.fn(state, r, c, s)
        state.replies[c] = s

    return spec.with_actions({"on_request": on_request})


def replies_at_append(spec: Spec) -> Spec:
    """A primary answers a request when it has written the prepare."""

    @action
    def append(state: Core, r: Replica, o: Op) -> None:
        """An entry is written, and its client answered by a primary."""
        normal.append.fn(state, r, o)
        c, s = client_of(state, state.entry[r, o], o), request_of(state, state.entry[r, o], o)
        answers = all_of(state.status[r] == NORMAL, primary(state, state.view[r]) == r, state.replies[c] < s)
        state.replies[c] = where(answers, s, state.replies[c])

    return spec.with_actions({"append": append})


@pytest.mark.parametrize(
    ("mistake", "broken", "steps"),
    [
        (replies_at_once, "I4", "1 step"),
        (replies_at_append, "I4", "2 steps"),
        pytest.param(offers_ordered_by_op, "I2", "15 steps", marks=pytest.mark.long),
        pytest.param(log_view_of_the_head, "I2", "18 steps", marks=pytest.mark.long),
        pytest.param(commits_what_it_installs, "I2", "10 steps", marks=pytest.mark.long),
    ],
)
def test_a_check_without_a_size_finds_a_break_that_one_size_had_not(
    mistake: Callable[[Spec], Spec], broken: str, steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = check_portfolio._shape

    def planted(wanted: check_portfolio.Wanted, size: Size) -> Shape:
        shape = build(wanted, size)
        return Shape(shape.name, mistake(shape.spec), shape.max_states)

    monkeypatch.setattr(check_portfolio, "_shape", planted)
    monkeypatch.setattr("viewproof.spec.engines.portfolio.outcome.cache_dir", lambda: tmp_path / "explicit")
    answer = CliRunner().invoke(check, ["core", "--json", str(tmp_path / "a.json")], standalone_mode=False)
    assert answer.return_value == 1
    assert f"violated: {broken} " in answer.output
    assert f", after {steps}\n" in answer.output
    told = json.loads((tmp_path / "a.json").read_text())
    assert (told["exit_code"], told["broken"], told["mutants"]["known"]) == (1, broken, False)


def test_mutate_says_what_it_cannot_do() -> None:
    for words, refused in (
        ([], "a MODEL is missing"),
        (["core", "--action", "nothing"], "no action nothing in core"),
        (["./mine.py"], "there is no file ./mine.py"),
        (["core", "--record", "--part", "restart"], "--record keeps the table of a whole model"),
    ):
        answer = CliRunner().invoke(mutate, words)
        assert answer.exit_code == 2
        assert refused in answer.output


def test_a_mutant_is_told_as_the_source_is_written_with_file_and_line() -> None:
    spec = viewproof.model("core", views=2, ops=1)
    mutant = next(m for m in mutants(spec, frozenset({"do_view_change"})) if m.kind == "quorum one smaller")
    told = report_line(Report(mutant, Death("a shape", "I2", 3)), "")
    assert re.fullmatch(
        r"\S*spec/vsr/core/view_change\.py:\d+: do_view_change: quorum one smaller: "
        r"count\(Replica, lambda q: received\.svc\[v, q\]\) >= state\.cfg\.quorum_view_change\n"
        r"  I2 after 3 steps \(a shape\)",
        told,
    ), told


@pytest.mark.parametrize("command", ["check", "prove", "export tla", "export itf", "mutate", "diff"])
def test_help_fits_a_screen_and_all_of_it_is_there_on_demand(command: str) -> None:
    words = command.split()
    short = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80).stdout
    assert len(short.splitlines()) <= 40
    if "--help-all" in short:
        result = CliRunner().invoke(cli, [*words, "--help-all"], terminal_width=80)
        assert result.exit_code == 0
        rest = short.partition("explained by --help-all:")[2].split()
        assert rest
        assert all(f"  {option}" in result.stdout for option in rest)
