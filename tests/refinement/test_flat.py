"""The compiled audit says what the other replays say, or nothing: never that a run conforms that does not."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from tests.refinement.traces import change, put, simulated
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement import judging, local
from viewproof.refinement.adapter import NATIVE, adapter
from viewproof.refinement.checker import check_run, program_for
from viewproof.refinement.discovery import Unit, discover
from viewproof.refinement.events import event, may_step
from viewproof.refinement.flat import dictionary, program, starting, streaming
from viewproof.refinement.flat.columns import read
from viewproof.refinement.flat.compile import compile_kind
from viewproof.refinement.flat.dictionary import Dictionary, Generations, NotPlain
from viewproof.refinement.flat.judge import of_tables
from viewproof.refinement.flat.shape import vocabulary
from viewproof.refinement.flat.starting import program_of
from viewproof.refinement.flat.terms import numbered_columns
from viewproof.refinement.judging import judge_plain, judge_unit
from viewproof.refinement.native import configuration
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import ARROW_SCHEMA, COLUMNS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions, UnitResult
from viewproof.spec.vsr.core import normal

OPTIONS = AuditOptions()
SYSTEM = adapter(NATIVE).system
RECORDED = Path(__file__).parents[2] / "traces" / "recorded"
OTHERS = sorted(path.name for path in RECORDED.iterdir() if path.name != "evictions")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every kind of configuration is compiled, whatever the size of the input."""
    monkeypatch.setenv("VSR_REPLAY", "compiled")
    return monkeypatch


def written(rows: Iterable[Row], file: Path) -> Path:
    """Rows as a trace of one file."""
    lines = [msgspec.json.encode({n: v for n, v in zip(COLUMNS, row, strict=False) if v is not None}) for row in rows]
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    return file


def both(files: Iterable[Path], patch: pytest.MonkeyPatch) -> tuple[UnitResult | None, UnitResult]:
    """What compiled code says, None if nothing; and what the other replay says."""
    unit = Unit("unit", tuple(map(str, files)))
    patch.setenv("VSR_REPLAY", "compiled")
    mine = judge_plain(unit, OPTIONS, check_run, 0)
    patch.setenv("VSR_REPLAY", "python")
    other = judge_unit(unit, OPTIONS, check_run)
    patch.setenv("VSR_REPLAY", "compiled")
    return None if mine is None else replace(mine, spent={}), replace(other, spent={})


def agree(files: Iterable[Path], patch: pytest.MonkeyPatch) -> bool:
    """Did compiled code judge it? Then as the other replay; else that one may say anything."""
    mine, other = both(files, patch)
    assert mine is None or mine == other
    return mine is not None


def mutants(rows: list[Row], seed: int, count: int, file: Path, patch: pytest.MonkeyPatch) -> int:
    """How many of so many changed traces compiled code judged, each as the other replay."""
    rng = random.Random(seed)
    return sum(agree([written(change(rng, rows).rows, file)], patch) for _ in range(count))


@pytest.mark.parametrize("name", ["evictions", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_recorded_traces_are_judged_as_by_the_other_replay(name: str, compiled: pytest.MonkeyPatch) -> None:
    units = discover([str(RECORDED / name)]).units
    assert units
    assert all(agree(map(Path, unit.files), compiled) for unit in units)


@pytest.mark.parametrize(("replicas", "profile"), [(3, "drawn"), (5, "storm")])
def test_simulated_runs_and_changes_of_them(
    tmp_path: Path, compiled: pytest.MonkeyPatch, replicas: int, profile: str
) -> None:
    rows = simulated(tmp_path / "run", 4, replicas=replicas, requests=25, profile=NAMED_PROFILES.get(profile))
    assert agree([written(rows, tmp_path / "whole.ndjson")], compiled)
    judged = mutants(rows, replicas, 40, tmp_path / "changed.ndjson", compiled)
    assert judged < 40, "changes that break a run must not be judged to conform"


def test_guards_are_open_where_evidence_is_missing(tmp_path: Path, compiled: pytest.MonkeyPatch) -> None:
    """Of a run of which all is shown none is, whichever replay judges it."""
    rows = simulated(tmp_path / "run", 7, requests=25)
    mine, other = both([written(rows, tmp_path / "whole.ndjson")], compiled)
    assert mine == other
    assert mine is not None
    [verdict] = mine.verdicts
    assert verdict.open_guards == {}
    assert verdict.configuration["replicas"] == 3
    cut = [row for row in rows if row[INDEX["node"]] or not 40 <= row[INDEX["seq"]] < 50]
    found = check_run("run", cut, OPTIONS)
    assert found.configuration == verdict.configuration
    guards = {
        ir.name: len(ir.guards) for ir in SYSTEM.profile.spec(configuration(dict(found.configuration))).action_irs
    }
    assert found.open_guards
    for name, count in found.open_guards.items():
        action, _, number = name.partition("/")
        assert int(number) < guards[action]
        assert count <= found.coverage[action]


@pytest.mark.long
@pytest.mark.parametrize("profile", ["drawn", *NAMED_PROFILES])
def test_ten_thousand_changed_traces(tmp_path: Path, compiled: pytest.MonkeyPatch, profile: str) -> None:
    count = 10_000 // (len(NAMED_PROFILES) + 1) + 1
    for number in range(4):
        rows = simulated(
            tmp_path / str(number),
            number,
            replicas=3 + number % 2 * 2,
            requests=40,
            profile=NAMED_PROFILES.get(profile),
        )
        judged = {row[INDEX["node"]] for row in rows} == set(range(3 + number % 2 * 2))  # else one was refused at once
        assert agree([written(rows, tmp_path / "whole.ndjson")], compiled) == judged, number
        mutants(rows, number, count // 4 + 1, tmp_path / "changed.ndjson", compiled)


def test_the_state_at_the_end_and_the_steps_are_those_of_the_interpreter(
    tmp_path: Path, compiled: pytest.MonkeyPatch
) -> None:
    rows = simulated(tmp_path / "run", 11, requests=12)
    assert all(row[INDEX["m_namespace"]] is None for row in rows)
    file = written(rows, tmp_path / "trace.ndjson")
    table = read([str(file)], SYSTEM, ProblemLog())
    first = table.record(0)
    compiled_kind, numbers = program_of(SYSTEM, first, True)
    cfg, numbers = SYSTEM.profile.kind(configuration(first))
    given = tuple(sorted(numbers))
    shape, _, layout = compile_kind(SYSTEM, cfg, given, optional=True, has_facts=True)
    assert shape == compiled_kind.code.shape
    judged = check_run("run", rows, OPTIONS, engine="interp")
    with compiled_kind.new_run(first, numbers, streamed=False) as run:
        order = np.arange(table.rows, dtype=np.int64)
        assert run.take(table.addresses(), table.facts(), order, 0, table.rows), run.place
        assert (run.coverage, run.judged) == (judged.coverage, judged.events_by_name)
        mine, other = layout.to_state(run.words), replayed_state(rows)
        assert mine.tables == other.tables
        assert mine.received == shown(other.received)


def shown(received: Any) -> Any:
    """What was received, without cells that hold what they held at first."""
    tables = {
        node: {name: {k: v for k, v in t.items() if v} for name, t in inbox.items()} for node, inbox in received.items()
    }
    inboxes = {node: {name: cells for name, cells in inbox.items() if cells} for node, inbox in tables.items()}
    return {node: inbox for node, inbox in inboxes.items() if inbox}


def replayed_state(rows: list[Row]) -> Any:
    """The state that the other replay ends in."""
    cfg = configuration(dict(zip(COLUMNS, rows[0], strict=False)))
    program = program_for(SYSTEM, cfg, rows[0])
    state, store = program.new_run(rows[0]), program.replay.new_store()
    for row in rows:
        program.handlers[row[INDEX["event"]]](state, store, row)
    return program.replay.layout.to_state(store)


def test_parquet_and_ndjson_are_one_table(tmp_path: Path) -> None:
    rows = simulated(tmp_path / "run", 3, requests=20)
    file = written(rows, tmp_path / "trace.ndjson")
    write_parquet(rows, str(tmp_path / "trace.parquet"))
    of_json, of_parquet = (read([str(f)], SYSTEM, ProblemLog()) for f in (file, tmp_path / "trace.parquet"))
    for column in SYSTEM.table:
        if column.kind == "int":
            assert (of_json.column(column.name) == of_parquet.column(column.name)).all(), column.name
    for number, row in enumerate(rows):
        shown = of_parquet.record(number)
        assert shown == of_json.record(number)
        for at, column in enumerate(SYSTEM.table):
            if column.kind != "strings" and column.name not in numbered_columns(SYSTEM):
                assert shown[column.name] == row[at], (number, column.name)


LINE = (
    '{"run":"r","node":0,"seq":1,"clock":1,"event":"start","replicas":1,"quorum_replication":1,"quorum_view_change":1}'
)


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace('"seq":1', '"seq":1,"seq":1'),
        LINE.replace('"seq":1', '"seq":0'),
        LINE.replace('"seq":1', '"seq":-1'),
        LINE.replace('"seq":1', '"seq":01'),
        LINE.replace('"seq":1', '"seq":1.0'),
        LINE.replace('"seq":1', '"seq":1e3'),
        LINE.replace('"seq":1', '"seq":9223372036854775808'),
        LINE.replace('"seq":1', '"seq":99999999999999999999'),
        LINE.replace('"seq":1', '"seq":"1"'),
        LINE.replace('"seq":1', '"seq":null'),
        LINE.replace('"seq":1,', ""),
        LINE.replace('"start"', '"begin"'),
        LINE.replace('"start"', "5"),
        LINE.replace('"run":"r"', '"run":""'),
        LINE.replace('"run":"r"', '"run":"\\u0041"'),
        LINE.replace('"run":"r"', '"run":"ä"'),
        LINE.replace('"run":"r"', '"run":"a\tb"'),
        LINE.replace('"run":"r"', '"run":"r","status":"asleep"'),
        LINE.replace('"run":"r"', '"run":"r","x_time":7'),
        LINE.replace('"run":"r"', '"run":"r","m_log":"x"'),
        LINE.replace('"run":"r"', '"run":"r","m_log":[1]'),
        LINE.replace('"run":"r"', '"run":"r","m_log":["a",]'),
        LINE.replace("}", ",}"),
        LINE.replace("}", ""),
        LINE + "x",
        LINE + LINE,
        "",
        "[]",
        "{}",
        "nul",
    ],
)
def test_a_line_that_is_not_plain_is_left_to_the_reader_of_rows(tmp_path: Path, line: str) -> None:
    file = tmp_path / "trace.ndjson"
    file.write_text(LINE + "\n" + line + "\n")
    with pytest.raises(NotPlain):
        read([str(file)], SYSTEM, ProblemLog())


@pytest.mark.parametrize(
    "line", [LINE, LINE.replace(",", " , ").replace(":", " : "), LINE + "\r", LINE.replace("}", ',"m_log":["a","b"]}')]
)
def test_plain_lines_are_read_as_by_the_reader_of_rows(tmp_path: Path, line: str) -> None:
    file = tmp_path / "trace.ndjson"
    file.write_bytes(line.encode() + b"\n" + line.encode())
    table, log = read([str(file)], SYSTEM, ProblemLog()), ProblemLog()
    rows = list(read_rows(str(file), log))
    assert not log.problems
    assert table.rows == len(rows) == 2
    for number, row in enumerate(rows):
        for at, column in enumerate(SYSTEM.table):
            if column.kind != "strings":
                assert table.record(number)[column.name] == row[at]


@pytest.fixture
def in_small_parts(compiled: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every unit is a large one, which is read in many parts, and of which little is remembered."""
    compiled.setattr(streaming, "PART_BYTES", 4096)
    compiled.setattr(streaming, "PART_ROWS", 16)
    compiled.setattr(program, "WINDOW_MAX", 256)
    compiled.setattr(dictionary, "TEXTS_KEPT", 200)
    compiled.setattr(dictionary, "HASHES_SORTED", 64)
    compiled.setattr(judging, "STREAM_BYTES", 0)
    return compiled


def streamed(files: Iterable[Path], threads: int, said: Any = None) -> UnitResult | None:
    """What compiled code says of one run that is streamed, None if nothing."""
    unit = Unit("unit", tuple(map(str, files)))
    mine = judge_plain(unit, OPTIONS, check_run, 0, streaming.Hands(threads, said or (lambda events: None)))
    return None if mine is None else replace(mine, spent={})


def test_workers_say_what_one_says_where_some_runs_are_left_to_rows(
    tmp_path: Path, compiled: pytest.MonkeyPatch
) -> None:
    for seed in range(6):
        rows = simulated(tmp_path / "made" / str(seed), seed, requests=8)
        if seed % 3 == 1:
            rows[40] = put(rows[40], commit_min=77)
        (tmp_path / "runs" / str(seed)).mkdir(parents=True)
        written(rows, tmp_path / "runs" / str(seed) / "trace.ndjson")
    inputs = discover([str(tmp_path / "runs")])
    one, two = (local.audit(inputs, OPTIONS, check_run, workers=workers) for workers in (1, 2))
    assert sorted(verdict.verdict for verdict in one.verdicts) == ["conforms"] * 4 + ["violates"] * 2
    assert [replace(v, seconds=0) for v in one.verdicts] == [replace(v, seconds=0) for v in two.verdicts]
    assert (one.tool_errors, one.exit_code) == (two.tool_errors, two.exit_code) == ((), 1)


def test_a_large_run_is_streamed_with_the_same_report(tmp_path: Path, in_small_parts: pytest.MonkeyPatch) -> None:
    simulated(tmp_path, 4, requests=25)
    files = sorted(tmp_path.rglob("*.ndjson"))
    of_parquet = [file.with_suffix(".parquet") for file in files]
    for file, other in zip(files, of_parquet, strict=True):
        write_parquet(read_rows(str(file), ProblemLog()), str(other))
    for some in (files, of_parquet):
        unit = Unit("unit", tuple(map(str, some)))
        events: list[int] = []
        mine = streamed(some, 1, events.append)
        assert mine is not None
        assert len(events) > 10
        assert events == sorted(events)
        assert events[-1] == mine.verdicts[0].events
        assert all(streamed(some, threads) == mine for threads in (2, 3, 5))
        in_small_parts.setenv("VSR_REPLAY", "python")
        assert replace(judge_unit(unit, OPTIONS, check_run), spent={}) == mine
        in_small_parts.setenv("VSR_REPLAY", "compiled")
        assert replace(judge_unit(unit, OPTIONS, check_run), spent={}) == mine


@pytest.mark.parametrize("name", ["evictions", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_threads_say_what_one_says_of_recorded_runs(name: str, in_small_parts: pytest.MonkeyPatch) -> None:
    units = [unit for unit in discover([str(RECORDED / name)]).units if judging._single_run(unit, NATIVE)]
    for unit in units:
        files = [Path(file) for file in unit.files]
        mine = streamed(files, 1)
        assert streamed(files, 2) == mine
        in_small_parts.setenv("VSR_REPLAY", "python")
        assert mine is None or replace(judge_unit(unit, OPTIONS, check_run), unit="unit", spent={}) == mine
        in_small_parts.setenv("VSR_REPLAY", "compiled")


@pytest.mark.parametrize("rows_each", [1 << 20, 700, 16])
def test_a_run_as_tables_of_arrow_is_judged_as_from_its_files(
    tmp_path: Path, in_small_parts: pytest.MonkeyPatch, rows_each: int
) -> None:
    rows = simulated(tmp_path / "run", 4, requests=25)
    whole = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=False)) for row in rows], ARROW_SCHEMA)

    def judged(run_id: str, tables: Iterable[pa.Table], options: AuditOptions = OPTIONS) -> Any:
        return of_tables(run_id, tables, options, check_run, 0)

    def cut(table: pa.Table) -> list[pa.Table]:
        return [table.slice(at, rows_each) for at in range(0, table.num_rows, rows_each)]

    run_id = str(rows[0][INDEX["run"]])
    verdict = judged(run_id, cut(whole))
    assert verdict == replace(check_run(run_id, rows, OPTIONS), seconds=verdict.seconds, recorded=len(rows))
    assert judged("another", cut(whole)) is None
    assert judged(run_id, []) is None
    assert judged(run_id, cut(pa.concat_tables([whole[20:], whole[:20]]))) is None
    assert judged(run_id, cut(whole.drop_columns(["commit_min"]))) is None
    assert judged(run_id, cut(whole), replace(OPTIONS, without=("digest",))) is None
    more = whole.append_column("pod", pa.array([{"name": "p"}] * whole.num_rows)).append_column("pod", whole["node"])
    assert judged(run_id, cut(more)) == replace(verdict, seconds=judged(run_id, cut(more)).seconds)
    at = whole.column_names.index("view")
    for wrong in (
        whole.drop_columns(["run"]),
        whole.append_column("view", whole["view"]),
        whole.set_column(at, "view", whole["view"].cast(pa.float64())),
        whole.set_column(at, "view", whole["view"].cast(pa.string())),
        whole.set_column(0, "run", pa.nulls(whole.num_rows)),
        whole.set_column(at, "View", whole["view"]),
    ):
        assert judged(run_id, cut(wrong)) is None


def test_a_text_that_comes_again_after_it_was_let_go_is_noticed(in_small_parts: pytest.MonkeyPatch) -> None:
    known = list(vocabulary(SYSTEM))
    with Generations(known) as texts:
        for number in range(6):
            part = Dictionary(known)
            part.intern([b"always", *(b"%d" % (300 * number + n) for n in range(300))])
            codes = texts.adopt(part)
            assert codes[len(known)] == len(known)
            assert texts.text(int(codes[-1])) == str(300 * number + 299)
        assert texts.plain()
        again = Dictionary(known)
        again.intern([b"7"])
        assert texts.adopt(again)[-1] == len(known) + 1 + 6 * 300
        assert not texts.plain()


def test_a_stream_out_of_order_is_left_to_the_other_replay(tmp_path: Path, in_small_parts: pytest.MonkeyPatch) -> None:
    rows = simulated(tmp_path / "run", 4, requests=10)
    file = written([*rows[20:], *rows[:20]], tmp_path / "trace.ndjson")
    assert streamed([file], 1) is None
    assert streamed([file], 2) is None


def test_without_a_cache_to_write_to_an_audit_has_one_of_its_own(
    tmp_path: Path, compiled: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = simulated(tmp_path / "run", 4, requests=5)
    (tmp_path / "file").write_text("in the way of a directory")
    compiled.setenv("VSR_CACHE", str(tmp_path / "file"))
    dictionary._functions.cache_clear()
    starting._known.cache_clear()
    result = judge_unit(Unit("unit", (str(written(rows, tmp_path / "trace.ndjson")),)), OPTIONS, check_run)
    dictionary._functions.cache_clear()
    assert [verdict.verdict for verdict in result.verdicts] == ["conforms"]
    assert not result.tool_errors
    assert "cannot write compiled code" in caplog.text


def test_many_texts_and_lists_make_room(tmp_path: Path) -> None:
    rows = [
        put((None,) * len(COLUMNS), run="r", node=0, seq=n, clock=n, event="do_view_change", head=f"{n:032x}",
            m_log=tuple(f"{n * 7 + k:032x}" for k in range(n % 40)))
        for n in range(1, 6000)
    ]  # fmt: skip
    table = read([str(written(rows, tmp_path / "trace.ndjson"))], SYSTEM, ProblemLog())
    at, part = INDEX["m_log"], table.parts[0]
    for number, row in enumerate(rows):
        first, end = (part.words[part.at[place], number] for place in (at, len(COLUMNS)))
        assert [table.texts.text(code) for code in part.items[first:end]] == list(row[at])
        assert table.record(number)["head"] == row[INDEX["head"]]


@pytest.mark.parametrize(("name", "value"), [("m_log", ("a",) * 100_000), ("digest", "d" * 3_000_000)])
def test_one_line_that_is_larger_than_all_others_has_room(tmp_path: Path, name: str, value: Any) -> None:
    """It was read again and again, each time with as little room as before."""
    rows = [*simulated(tmp_path / "run", 3)[:40]]
    rows[7] = put(rows[7], **{name: value})
    table = read([str(written(rows, tmp_path / "t.ndjson"))], SYSTEM, ProblemLog())
    assert table.rows == len(rows)
    assert table.record(7)["digest"] == rows[7][INDEX["digest"]]
    assert len(table.parts[0].items) >= len(rows[7][INDEX["m_log"]] or ())


def test_a_system_whose_words_are_not_compiled_is_refused_by_name() -> None:
    @event("append")
    def append(state: Any, e: Any) -> None:
        """It may have been appended, or not."""
        may_step(normal.append, r=e.node, o=e.m_op)

    events = tuple(append if declared.name == "append" else declared for declared in SYSTEM.events)
    first: dict[str, Any] = dict.fromkeys(SYSTEM.names)
    first |= {"replicas": 3, "quorum_replication": 2, "quorum_view_change": 2}
    with pytest.raises(NotPlain, match="there is no compiled form of a step that may have been taken"):
        program_of(replace(SYSTEM, events=events), first, True)


def test_an_interrupted_large_run_says_how_far_it_came(tmp_path: Path, in_small_parts: pytest.MonkeyPatch) -> None:
    simulated(tmp_path, 4, requests=25)
    said: list[str] = []

    def progress(done: int, total: int, name: str) -> None:
        said.append(f"{done} of {total}: {name.partition(';')[0]}")
        if len(said) == 5:
            raise KeyboardInterrupt

    inputs = discover([str(tmp_path)])
    report = local.audit(inputs, OPTIONS, check_run, workers=2, progress=progress)
    assert len(said) == 5
    events = said[-1].removeprefix("0 of 1: 0 runs, ").removesuffix(" events")
    assert report.stopped.startswith("interrupted: 0 of 1 directories judged; not judged, the first: ")
    assert report.stopped.endswith(f"; its first {events} events conform")
    assert report.exit_code == 4
