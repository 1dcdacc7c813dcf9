"""The table of faults in docs/proofs.md (`python -m benchmarks.faults --z3`): where proofs fail, what is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.faults import proved
from viewproof.spec.engines.smt import chain
from viewproof.spec.vsr.fault_models import FAULT_MODELS

PAGE = (Path(__file__).parents[3] / "docs/proofs.md").read_text(encoding="utf-8")
FAILS_AT = {
    "nack.below_window": "`discard`",
    "state.view_before_newstate": "`on_get_state_keeping_log`",
    "view.log_view_at_merge": "`merge_early`",
    "view.scalar_dvc_truncates_hole": "`merge`",
    "diskless.forgets_promise": "`recover`*",
    "nack.clears_faulty": "`recover`",
    "nack.not_nacked_is_present": "`merge`*",
    "recover.any_primary": "`recover`",
    "recover.empty_journal_is_new": "`open_empty`",
    "recover.head_from_old_start_view": "nowhere else*",
    "recover.stale_nonce": "`recover`",
    "view.acks_survive_view": "`commit`",
    "view.pipeline_after_repair": "`start_view`*",
    "view.solo_keeps_view": "`restart`*",
}
"""Fault → actions; with a star where induction fails without it, too. Other tests have the rest."""
OF_INVARIANTS = [name for name, chosen in FAULT_MODELS.items() if not chosen.stops_progress]


def test_the_page_says_at_which_actions() -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `\w+` \| ([^|]*) \| [^|]* \| \d+ \| \w+ \| \d+ \|$", PAGE, re.MULTILINE))
    assert {fault: rows[fault] for fault in FAILS_AT} == FAILS_AT


@pytest.mark.long
@pytest.mark.parametrize("fault", FAILS_AT)
def test_induction_fails_at_the_action_that_a_fault_changes(fault: str) -> None:
    assert proved(FAULT_MODELS[fault], fault)[0] == FAILS_AT[fault]


@pytest.mark.long
@pytest.mark.parametrize("fault", OF_INVARIANTS)
def test_bounded_search_finds_a_fault_in_the_rounds_of_the_table(fault: str) -> None:
    chosen = FAULT_MODELS[fault]
    found = chain.search(chosen.spec(fault), chosen.rounds, minimise_ms=1)
    assert found.broken is not None
    assert found.rounds <= chosen.rounds
