"""`vsr start` from the command line: what its options say is what is in effect."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewproof.impl.net.settings import SETTINGS, Key
from viewproof.refinement.cli import cli

GIVEN = {
    ("cluster", "addresses"): ("127.0.0.1:4000,127.0.0.1:4001", ["127.0.0.1:4000", "127.0.0.1:4001"]),
    ("cluster", "groups"): ("metadata,partitions", ["metadata", "partitions"]),
    ("cluster", "features"): ("database_checksum", ["database_checksum"]),
    ("cluster", "segment_bytes"): ("4096", 4096),
    ("replica", "tick_seconds"): ("0.5", 0.5),
    ("network", "tls"): ("certificates", "certificates"),
    ("network", "without_tls"): (None, True),
    ("trace", "file"): ("traces/run/replica-0.ndjson", "traces/run/replica-0.ndjson"),
    ("trace", "run"): ("morning", "morning"),
}
"""Of each setting that is no number: what its option is given, and what is in effect then."""


@pytest.mark.parametrize("key", [key for key in SETTINGS if key != ("replica", "data")], ids=".".join)
def test_what_an_option_says_is_in_effect(key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("certificates").mkdir()
    text, value = GIVEN.get(key, ("1", 1))
    words = [SETTINGS[key].option, *([] if text is None else [text])]
    others = {"--replica": "0", "--addresses": "127.0.0.1:4000,127.0.0.1:4001"}
    for option in others.keys() - words:
        words += [option, others[option]]
    result = CliRunner().invoke(cli, ["start", "data", *words, "--show-config"])
    assert result.exit_code == 0, result.output
    section, name = key
    assert tomllib.loads(result.output)[section][name] == value
    assert f"# option {SETTINGS[key].option};" in result.output
