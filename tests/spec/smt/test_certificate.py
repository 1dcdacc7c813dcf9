"""Fingerprints name exactly what changed, and are the same in every process."""

from __future__ import annotations

import subprocess
import sys

from viewproof.spec.engines.smt.certificate import changed, fingerprints, whole
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import LEMMAS

SIZES = {"views": 2, "ops": 1, "requests": 1, "restarts": 1}
PROGRAM = """
import sys
from viewproof.spec.engines.smt.certificate import fingerprints, whole
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import LEMMAS
sys.stdout.write(whole(fingerprints(model("core_restart", views=2, ops=1, requests=1, restarts=1), LEMMAS)))
"""


def test_a_changed_action_is_named() -> None:
    before = fingerprints(model("core_restart", **SIZES), LEMMAS)
    after = fingerprints(model("core_restart", faults=["commit.apply_at_replicate"], **SIZES), LEMMAS)
    assert changed({"parts": before}, after) == ["action execute", "configuration"]
    assert changed({"parts": before}, before) == []


def test_another_size_and_a_missing_lemma_are_named() -> None:
    before = fingerprints(model("core_restart", **SIZES), LEMMAS)
    after = fingerprints(model("core_restart", **{**SIZES, "ops": 2}), LEMMAS[1:])
    assert changed({"parts": before}, after) == ["instance", f"lemma {LEMMAS[0].id}"]


def test_fingerprints_do_not_depend_on_the_process() -> None:
    here = whole(fingerprints(model("core_restart", **SIZES), LEMMAS))
    there = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert there == here
