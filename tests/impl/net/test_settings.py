"""Settings of a server: where they come from, what wins, what is refused and how, and what is kept beside the data."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.impl.net.waiting import wait_for
from viewproof.impl.groups.group import METADATA, SINGLE
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.connection import fetch_status, layout_of
from viewproof.impl.net.server_config import ServerConfig, trace_path
from viewproof.impl.net.settings import SETTINGS, Key, SettingsError, environment_name, server_config
from viewproof.impl.net.settings_files import EFFECTIVE_NAME, keep_effective, kept_layout, resolve
from viewproof.impl.storage.file import RealFileSystem

NUMBERS = [key for key, setting in SETTINGS.items() if setting.kind in (int, float)]
NEEDED: dict[Key, Any] = {
    ("replica", "data"): "data",
    ("replica", "index"): 1,
    ("cluster", "addresses"): "h:1,h:2,h:3",
}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def made(file: Path | None = None, environment: Mapping[str, str] | None = None, **options: Any) -> ServerConfig:
    """The configuration; options as section__name."""
    given = {(*key.split("__"),): value for key, value in options.items()}
    return server_config(resolve(file, NEEDED | given, environment or {}))  # type: ignore[arg-type]


def test_what_comes_later_wins_and_each_value_knows_where_it_came_from(tmp_path: Path) -> None:
    write(
        tmp_path / "common.toml", "[cluster]\ncheckpoint_interval = 5\nsegment_bytes = 500\n[replica]\npipeline = 9\n"
    )
    file = write(
        tmp_path / "one.toml",
        'include = ["common.toml"]\n[replica]\ndata = "d"\nindex = 0\n[cluster]\nid = 7\ncheckpoint_interval = 6\n',
    )
    environment = {"VSR_CLUSTER_ID": "8", "VSR_CLUSTER_ADDRESSES": "a:1, b:2", "PATH": "x", "VSR_DEBUG": "1"}
    values = resolve(file, {("replica", "index"): 1, ("trace", "run"): None}, environment)
    assert {key: (value.value, value.origin) for key, value in values.items() if value.origin != "default"} == {
        ("replica", "data"): ("d", f"{file}:3"),
        ("replica", "index"): (1, "option --replica"),
        ("replica", "pipeline"): (9, f"{tmp_path / 'common.toml'}:5"),
        ("cluster", "id"): (8, "environment VSR_CLUSTER_ID"),
        ("cluster", "addresses"): (["a:1", "b:2"], "environment VSR_CLUSTER_ADDRESSES"),
        ("cluster", "checkpoint_interval"): (6, f"{file}:7"),
        ("cluster", "segment_bytes"): (500, f"{tmp_path / 'common.toml'}:3"),
    }
    config = server_config(values)
    assert (config.cluster, config.replica, config.addresses) == (8, 1, (("a", 1), ("b", 2)))
    assert (config.checkpoint_interval, config.pipeline_max, config.run) == (6, 9, "run")


@pytest.mark.parametrize("key", NUMBERS, ids=".".join)
def test_each_number_has_bounds_at_every_origin(key: Key, tmp_path: Path) -> None:
    setting = SETTINGS[key]
    low, high = setting.bounds
    for good in setting.bounds:
        assert resolve(None, {key: good}, {})[key].value == good
    for wrong in (low - 1, high + 1, "x", "", True, [1], 1.5 if setting.kind is int else float("inf")):
        expected = rf"{key[0]}\.{key[1]} \(option {setting.option}\): .*expected a (whole )?number in {low}\.\.{high}$"
        with pytest.raises(SettingsError, match=expected.replace("+", r"\+")):
            resolve(None, {key: wrong}, {})
    file = write(tmp_path / "a.toml", f"[{key[0]}]\n\n{key[1]} = {high + 1:_}\n")
    with pytest.raises(SettingsError, match=rf"{key[0]}\.{key[1]} \({file}:3\): "):
        resolve(file, {}, {})
    with pytest.raises(SettingsError, match=rf"\(environment {environment_name(key)}\): '-7'; expected"):
        resolve(None, {}, {environment_name(key): "-7"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cluster\n", r"a\.toml: .*line 1.*; expected TOML"),
        ("x = 1\n", r"a\.toml:1: x: expected a section, of replica, cluster, namespace, network, trace"),
        ("[clusters]\nid = 1\n", r"a\.toml:1: clusters: expected a section"),
        ("[cluster]\nid = 1\nids = 2\n", r"a\.toml:3: cluster\.ids: no such setting; there are addresses, id, groups"),
        ("cluster.ids = 2\n", r"a\.toml:1: cluster\.ids: no such setting"),
        ('[cluster]\nid = "1x"\n', r"cluster\.id \(.*a\.toml:2\): '1x'; expected a whole number"),
        ("[network]\nwithout_tls = 1\n", r"network\.without_tls \(.*:2\): 1; expected true or false"),
        ("[cluster]\ngroups = [1]\n", r"cluster\.groups \(.*:2\): \[1\]; expected a list of texts"),
        ('[trace]\nrun = ""\n', r"trace\.run \(.*:2\): ''; expected a text that is not empty"),
        ('[cluster]\ngroups = ["single", "metadata"]\n', r"cluster\.groups \(.*:2\): the group single is"),
        ('[cluster]\nfeatures = ["flight"]\n', r"cluster\.features \(.*:2\): unknown feature 'flight'"),
        ('[cluster]\ngroups = ["partition:1/2"]\n', r"cluster\.groups \(.*:2\): the group of one partition is"),
        ('include = "x"\n', r"a\.toml:1: include: expected a list of file names"),
        ('include = ["a.toml"]\n', r"a\.toml: included by itself"),
        ('include = ["none.toml"]\n', r"none\.toml: cannot read the configuration: No such file"),
    ],
)
def test_what_a_file_must_not_say(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        made(write(tmp_path / "a.toml", text))


def test_what_is_missing_or_does_not_fit_together_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"replica\.data .* is missing: .*VSR_REPLICA_DATA.*DIRECTORY"):
        server_config(resolve(None, {}, {}))
    with pytest.raises(
        SettingsError, match=r"replica\.index \(option --replica\): 3, but there are 3 addresses .*0\.\.2"
    ):
        made(replica__index=3)
    with pytest.raises(SettingsError, match=r"cluster\.addresses \(option --addresses\): address 'h' is not HOST"):
        made(cluster__addresses=["h"])
    with pytest.raises(SettingsError, match=r"environment VSR_CLUSTER_IDS: no such setting"):
        made(environment={"VSR_CLUSTER_IDS": "1"})
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="byte 0 is no UTF-8"):
        made(tmp_path / "binary.toml")


def test_streams_topics_and_partitions_get_the_bits_that_their_largest_number_needs() -> None:
    assert made().layout == NamespaceLayout(20, 20, 24)
    layout = made(namespace__max_streams=1, namespace__max_topics=3, namespace__max_partitions=1025).layout
    assert layout == NamespaceLayout(1, 2, 11)
    config = made(namespace__max_streams=16, namespace__max_topics=16, cluster__groups="partition:15/0/1")
    assert [group.namespace for group in config.groups] == [config.layout.pack(15, 0, 1)]
    assert [group.name for group in config.groups] == ["partition-15-0-1"]
    with pytest.raises(SettingsError, match=r"cluster\.groups .*stream must be in 0\.\.15"):
        made(namespace__max_streams=16, cluster__groups="partition:16/0/1")
    message = (
        r"max_streams = 1048577 \(option --max-streams\) needs 21; .*max_partitions = 16777216 \(default\) needs 24 "
    )
    with pytest.raises(SettingsError, match=rf"namespace: {message}bits: 65, expected at most 64 in all"):
        made(namespace__max_streams=(1 << 20) + 1)


def test_what_is_kept_beside_the_data_says_the_same_and_does_not_change(tmp_path: Path) -> None:
    values = resolve(None, NEEDED | {("trace", "file"): 'a "trace"\\\n'}, {"VSR_REPLICA_PIPELINE": "3"})
    keep_effective(RealFileSystem(), tmp_path, values)
    file = tmp_path / EFFECTIVE_NAME
    again = resolve(file, {}, {})
    assert {key: value.value for key, value in again.items()} == {key: value.value for key, value in values.items()}
    assert "pipeline = 3  # environment VSR_REPLICA_PIPELINE" in file.read_text()
    keep_effective(RealFileSystem(), tmp_path, values | resolve(None, NEEDED | {("replica", "pipeline"): 5}, {}))
    assert tomllib.loads(file.read_text())["replica"]["pipeline"] == 5
    text, at = file.read_text(), file.stat()
    keep_effective(RealFileSystem(), tmp_path, values | resolve(None, NEEDED | {("replica", "pipeline"): 5}, {}))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (at.st_ino, at.st_mtime_ns), "not written again"
    for key in (key for key, setting in SETTINGS.items() if setting.fixed):
        changed = resolve(None, NEEDED | {key: 1000}, {})
        expected = rf"{key[0]}\.{key[1]} \(option .*\): 1000, but .* was started with \d+ \({file}:\d+\): it is never"
        with pytest.raises(SettingsError, match=expected):
            keep_effective(RealFileSystem(), tmp_path, changed)
    assert file.read_text() == text
    file.write_text("[")
    with pytest.raises(SettingsError, match="remove it if its data were never started otherwise"):
        keep_effective(RealFileSystem(), tmp_path, values)


def test_other_widths_are_a_difference_between_replicas(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.format()
        cluster.start(0)
        cluster.start(1)
        asyncio.run(cluster.wait_ready())
        cluster.server_options = ("--max-partitions", "1000")
        cluster.start(2)
        told = "namespace bits (stream, topic, partition)"
        wait_for(lambda: told in cluster.log_path(2).read_text(), "replica 2 is told")
        wait_for(lambda: told in cluster.log_path(0).read_text(), "replica 0 says it")
        assert cluster.stop(2) == 0
        cluster.server_options = ()
        cluster.start(2)
        wait_for(lambda: cluster.exit_code(2) == 2, "what was kept is another layout")
        assert "namespace.max_partitions (default): 16777216, but" in cluster.log_tail(2)
        (cluster.data_path(2) / EFFECTIVE_NAME).unlink()
        cluster.start(2)
        asyncio.run(cluster.wait_answering(2))


def test_a_server_runs_from_a_file_and_shows_what_is_in_effect(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        cluster.format()
        file = write(
            tmp_path / "server.toml",
            f'[replica]\ndata = "{cluster.data_path(0)}"\nindex = 0\n'
            f'[cluster]\nid = 1\naddresses = ["{cluster.address_list()}"]\n[network]\nclients_max = 11\n'
            "[namespace]\nmax_topics = 4\n",
        )
        words = [sys.executable, "-m", "viewproof", "start", "--config", str(file)]
        shown = subprocess.run([*words, "--show-config"], capture_output=True, text=True, check=True).stdout
        assert f"clients_max = 11  # {file}:8; connections of clients" in shown
        wrong = subprocess.run([*words, "--replica", "2"], capture_output=True, text=True, check=False)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "replica.index (option --replica): 2, but there are 1 addresses" in wrong.stderr
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: asyncio.run(fetch_status(cluster.addresses[0], 1)) is not None, "the server answers")
            status = asyncio.run(fetch_status(cluster.addresses[0], 1))
            assert status is not None
            assert asyncio.run(layout_of(cluster.addresses, 1, None)) == NamespaceLayout(20, 2, 24)
            assert (status.connections[2], status.namespace_bits) == (11, (20, 2, 24))
        finally:
            process.terminate()
            assert process.wait(30) == 0
        assert kept_layout(cluster.data_path(0)) == NamespaceLayout(20, 2, 24)
        assert "clients_max = 11" in (cluster.data_path(0) / EFFECTIVE_NAME).read_text()


def test_what_is_no_utf8_is_named() -> None:
    with pytest.raises(SettingsError, match=r"replica.data \(option DIRECTORY\): '/tmp/\\udcff'; expected UTF-8"):
        resolve(None, {("replica", "data"): "/tmp/\udcff"}, {})


def test_a_zero_byte_is_named_with_where_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[trace]\nfile = "a\\u0000b"\n')
    with pytest.raises(SettingsError, match=r"trace.file \(.*c.toml:2\): 'a\\x00b'; expected text without zero bytes"):
        resolve(tmp_path / "c.toml", {}, {})


def test_a_trace_may_lie_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert trace_path(Path("t.ndjson"), SINGLE) == Path("t.ndjson")
    assert trace_path(Path("run/t.ndjson"), METADATA).absolute() == tmp_path / "run.metadata" / "t.ndjson"
    assert trace_path(Path("t.ndjson"), METADATA) == tmp_path.with_name(f"{tmp_path.name}.metadata") / "t.ndjson"


def test_what_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"a = " + b"[" * 5000)
    with pytest.raises(SettingsError, match=r"c.toml: .*expected TOML"):
        resolve(tmp_path / "c.toml", {}, {})
