"""Threads, spilling to disk, and stopping and going on later change nothing that a search finds."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.spec.core_faults import CORE_FAULTS
from tests.spec.counts import counts_of
from viewproof.refinement.cli.check import check
from viewproof.spec.engines import explicit
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

MIDDLE = {"replicas": 3, "views": 3, "ops": 1, "requests": 1, "restarts": 0}


def quiet(text: str) -> None:
    """Say nothing."""


def facts(found: explicit.Result) -> dict[str, Any]:
    """All of a result but times and memory."""
    skipped = {"seconds", "compile_seconds", "states_per_second", "memory_bytes", "spilled_bytes", "workers"}
    return {name: value for name, value in found.to_json().items() if name not in skipped}


def small(fault: str | None) -> Spec:
    """The model in which a fault shows, or one without a fault."""
    if fault is None:
        return model("core", **MIDDLE)
    return FAULT_MODELS[fault].spec(fault)


@pytest.mark.parametrize("fault", [None, *CORE_FAULTS, "table.reply_from_current_view"])
def test_any_number_of_workers_finds_the_same_with_the_same_counts_and_behaviour(fault: str | None) -> None:
    spec = small(fault)
    one, two, three = (facts(explicit.explore(spec, workers=n, notify=quiet)) for n in (1, 2, 3))
    assert one == two == three
    assert one["verdict"] == ("violated" if fault else "holds")


def test_progress_guesses_what_is_to_come_once_levels_shrink() -> None:
    seen: list[explicit.Progress] = []
    explicit.explore(small(None), progress=seen.append, notify=quiet)
    assert seen[0].to_come is None
    guesses = [now.to_come for now in seen if now.to_come is not None]
    assert guesses
    assert guesses[-1] == 0
    assert all(now.to_come is None or now.to_come >= now.queue for now in seen)


def test_a_bound_of_states_ends_at_the_same_state_for_any_number_of_workers() -> None:
    spec = small(None)
    one, two = (facts(explicit.explore(spec, workers=n, max_states=30_001, notify=quiet)) for n in (1, 2))
    assert one == two
    assert one["distinct"] == 30_001


def test_rows_and_parents_on_disk_change_nothing() -> None:
    spec = small(None)
    found = explicit.explore(spec, workers=2, max_memory_bytes=36_000_000, notify=quiet)
    assert found.spilled_bytes > 0
    assert found.memory_bytes <= 36_000_000
    assert facts(found) == facts(explicit.explore(spec, notify=quiet))


class Stop:
    """Interrupts a search once it has so many states."""

    def __init__(self, states: int) -> None:
        self.states = states

    def __call__(self, now: explicit.Progress) -> None:
        if now.distinct >= self.states:
            raise KeyboardInterrupt


@pytest.mark.parametrize("fault", [None, "state.getstate_truncates"])
def test_an_interrupted_search_goes_on_to_the_same_result(tmp_path: Path, fault: str | None) -> None:
    spec, folder = small(fault), tmp_path / "saved"
    half = explicit.explore(spec, progress=Stop(2_000), checkpoint=folder, notify=quiet)
    assert half.verdict == "inconclusive"
    assert f"resume from {folder}" in half.reason
    if fault is None:
        again = explicit.explore(spec, progress=Stop(20_000), resume=folder, max_memory_bytes=6_000_000, notify=quiet)
        assert again.distinct >= 20_000
    found = explicit.explore(spec, resume=folder, workers=2, notify=quiet)
    assert facts(found) == facts(explicit.explore(spec, notify=quiet))


def test_ctrl_c_saves_the_search_and_the_command_says_how_to_go_on(tmp_path: Path, monkeypatch: Any) -> None:
    sent: list[int] = []

    def watched(*args: Any, **options: Any) -> explicit.Result:
        def progress(now: explicit.Progress) -> None:
            if now.distinct > 5_000 and not sent:
                sent.append(now.distinct)
                os.kill(os.getpid(), signal.SIGINT)

        return explore(*args, **{**options, "progress": progress})

    explore = explicit.explore
    monkeypatch.setattr(explicit, "explore", watched)
    sizes = [f"--{key}={value}" for key, value in MIDDLE.items()]
    first = CliRunner().invoke(check, ["core", *sizes, f"--checkpoint={tmp_path}"], standalone_mode=False)
    assert first.return_value == 4
    assert f"the same command with --resume {tmp_path}" in first.output
    second = CliRunner().invoke(check, ["core", *sizes, f"--resume={tmp_path}"], standalone_mode=False)
    assert second.return_value == 0
    counts = counts_of("core", **MIDDLE)
    said = f"{counts.distinct:,} distinct states, {counts.generated:,} generated, depth {counts.depth}"
    assert said in second.output


def test_a_checkpoint_is_written_while_the_search_runs(tmp_path: Path) -> None:
    spec = small(None)
    explicit.explore(spec, checkpoint=tmp_path, checkpoint_seconds=0.05, notify=quiet)
    assert (tmp_path / "search.json").exists()
    assert facts(explicit.explore(spec, resume=tmp_path, notify=quiet)) == facts(explicit.explore(spec, notify=quiet))


def test_a_checkpoint_of_another_model_or_none_is_refused(tmp_path: Path) -> None:
    explicit.explore(small(None), progress=Stop(100), checkpoint=tmp_path, notify=quiet)
    with pytest.raises(SpecError, match="another model"):
        explicit.explore(small("state.getstate_truncates"), resume=tmp_path, notify=quiet)
    with pytest.raises(SpecError, match="holds no search"):
        explicit.explore(small(None), resume=tmp_path / "nothing", notify=quiet)


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_zero, _shorten, _flip, Path.unlink])
def test_a_damaged_checkpoint_is_refused_whichever_file_it_is(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = tmp_path / "saved"
    explicit.explore(small(None), progress=Stop(2_000), checkpoint=folder, notify=quiet)
    files = sorted(folder.iterdir())
    assert len(files) == 6
    for n, file in enumerate(files):
        copy = tmp_path / str(n)
        shutil.copytree(folder, copy)
        damage(copy / file.name)
        with pytest.raises(SpecError, match=r"damaged|holds no search|another version"):
            explicit.explore(small(None), resume=copy, notify=quiet)


def test_a_directory_that_cannot_be_written_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(SpecError, match="cannot save a search"):
        explicit.explore(small(None), progress=Stop(0), checkpoint=tmp_path / "file" / "in", notify=quiet)
