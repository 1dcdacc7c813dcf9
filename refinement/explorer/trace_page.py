"""The pages of the explorer, and what that of a trace asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.checker import check_run
from viewproof.refinement.explorer.trace import Trace
from viewproof.refinement.reports.audit.timeline import plan
from viewproof.refinement.reports.behaviour.page import LOADER, page_files
from viewproof.refinement.reports.escape import printable
from viewproof.spec.lang import SpecError

EVENTS_SAVED = 5_000
"""Events of a scenario test."""
_PACKAGE = "viewproof.refinement.explorer.page"


class BadRequestError(Exception):
    """A request that is none of the page's."""


def trace_asked(
    trace: Trace, body: Callable[[], Mapping[str, Any]], fork: Callable[[int], str]
) -> dict[tuple[str, str], Callable[[], Any]]:
    """What the page of a trace asks, by method and path."""
    return {
        ("GET", ""): lambda: trace_page(trace),
        ("GET", "api/begin"): trace.begin,
        ("POST", "api/window"): lambda: trace.window(_number(body())),
        ("POST", "api/why-not"): lambda: _why_not(trace, body()),
        ("POST", "api/fork"): lambda: {"path": fork(_number(body()))},
        ("POST", "api/save"): lambda: save(trace, body()),
    }


def _number(body: Mapping[str, Any]) -> int:
    number = body.get("event")
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadRequestError("event is the number of one")
    return number


def _why_not(trace: Trace, body: Mapping[str, Any]) -> dict[str, Any]:
    action = body.get("action")
    if not isinstance(action, str):
        raise BadRequestError("action is the name of one")
    trace.spec.action(action)
    return {"rows": trace.why_not(_number(body), action)}


def save(trace: Trace, body: Mapping[str, Any]) -> dict[str, str]:
    """The run up to an event as a file: its name and its text."""
    number, form = _number(body), body.get("form")
    trace.event(number)
    name = f"{''.join(c if c.isalnum() else '_' for c in trace.verdict.run_id)}_{number}"
    if form == "page":
        return {"name": f"{name}.html", "text": window_page(trace, number)}
    if form == "json":
        text = json.dumps(trace.window(number)["story"], ensure_ascii=False, indent=1)
        return {"name": f"{name}.json", "text": text}
    if form == "python":
        return {"name": f"{name}_test.py", "text": _scenario(trace, number)}
    raise SpecError(f"{form} is no form of a trace; there are: page, json, python")


def _scenario(trace: Trace, number: int) -> str:
    """A test that audits the events up to one."""
    found = trace.recording
    if found.system.name != "native":
        raise SpecError("a scenario test is written of native traces; keep the log itself for others")
    if number > EVENTS_SAVED:
        raise SpecError(f"a scenario test has at most {EVENTS_SAVED:,} events; keep the trace itself")
    rows = found.rows[:number]
    verdict = check_run(trace.verdict.run_id, rows, found.judge.options)
    records = [
        {name: value for name, value in zip(found.system.names, row, strict=False) if value is not None} for row in rows
    ]
    lines = "\n".join(f"    {json.dumps(json.dumps(record))}," for record in records)
    rules = [violation.rule_id for violation in verdict.violations]
    return f'''"""The first {number} events of the run {json.dumps(trace.verdict.run_id)[1:-1]}."""

import viewproof

EVENTS = [
{lines}
]


def test_the_run_{verdict.verdict}(tmp_path) -> None:
    (tmp_path / "run.ndjson").write_text("\\n".join(EVENTS) + "\\n")
    (run,) = viewproof.audit(tmp_path / "run.ndjson", allow={list(found.judge.options.allow)!r}).verdicts
    assert run.verdict == "{verdict.verdict}"
    assert [violation.rule_id for violation in run.violations] == {rules!r}
'''


def trace_page(trace: Trace) -> str:
    """The page on which a run is looked at."""
    return page("trace.html.j2", window=None, own_script=own("ask.js", "trace.js"), **_about(trace))


def window_page(trace: Trace, number: int) -> str:
    """The events around one as a page that stands alone."""
    return page("trace.html.j2", window=trace.window(number), own_script="", **_about(trace))


def _about(trace: Trace) -> dict[str, Any]:
    from dataclasses import replace

    run = trace.verdict
    violations = run.violations or ((trace.recording.refused,) if trace.recording.refused else ())
    return {
        "run": run,
        "violation": violations[0] if violations else None,
        "timeline": plan(replace(run, timeline=trace.recording.timeline)),
    }


def page(template: str, **more: Any) -> str:
    """One of the explorer's pages."""
    environment = Environment(
        loader=ChoiceLoader([
            PackageLoader(_PACKAGE, "."), LOADER, PackageLoader("viewproof.refinement", "reports/audit")
        ]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False, "separators": (",", ":")}
    style, script = page_files()
    audit_style = Markup(files("viewproof.refinement").joinpath("reports/audit/audit.css").read_text(encoding="utf-8"))
    style = style + audit_style + own("explore.css")
    return environment.get_template(template).render(style=style, script=script, **more)


def own(*names: str) -> Markup:
    """Files of the explorer's pages, one after the other, as they stand: they are ours, not data."""
    return Markup("".join(files(_PACKAGE).joinpath(name).read_text(encoding="utf-8") for name in names))
