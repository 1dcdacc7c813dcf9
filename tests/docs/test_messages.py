"""docs/messages.md and the columns of traces follow from the messages that the specification declares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.messages import KEY_COLUMNS, column_of, columns_of, page
from viewproof.refinement.native import SYSTEM
from viewproof.refinement.schema import BY_NAME, EVENTS, TABLE
from viewproof.spec.lang import MessageType
from viewproof.spec.vsr.config import ClientTable, Config
from viewproof.spec.vsr.models import unbounded

WHOLE = Config(3, client_table=ClientTable(4, True), features=3, pipeline=8)
"""With everything that a trace of the replicas shows of messages."""
MESSAGES = {m.title: m for m in unbounded(WHOLE).schema.messages.values() if columns_of(m.title)}
ABOUT_IT = {"m_type", "m_from", "m_seq", "m_checksum"}
"""What a trace says of any message: its kind, its sender, the event that sent it, the prepare that it is about."""
WITH_IT = {"m_commit"}
"""The commit number, a message of its own (`commit_sent`), travels with others."""


def test_the_page_is_made_from_the_declarations() -> None:
    there = (Path(__file__).parents[2] / "docs/messages.md").read_text(encoding="utf-8")
    assert there == page(), "python -m benchmarks.messages --write docs/messages.md makes it again"


def test_traces_show_the_messages_of_normal_operation_and_view_change() -> None:
    assert MESSAGES.keys() == {"prepare", "prepare_ok", "commit", "start_view_change", "do_view_change", "start_view"}


def test_the_trace_format_names_all_events_and_what_columns_may_say() -> None:
    text = (Path(__file__).parents[2] / "traces/README.md").read_text(encoding="utf-8")
    columns, events = (text.split(f"\n| {head} |")[1].split("\n\n")[0].splitlines() for head in ("column", "event"))
    named = {name for line in events for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named == {declared.name for declared in SYSTEM.events} == set(EVENTS)
    for column in (column for column in TABLE if column.choices and column.name != "event"):
        (row,) = (line for line in columns if line.startswith(f"| `{column.name}` "))
        assert set(re.findall(r"`(\w+)`", row.split("|")[3])) >= set(column.choices), column.name
    sent = {declared.sends for declared in SYSTEM.events} - {""}
    assert sent <= set(BY_NAME["m_type"].choices)
    assert sent == set(SYSTEM.messages)


@pytest.mark.parametrize("message", MESSAGES.values(), ids=list(MESSAGES))
def test_a_trace_has_a_column_for_each_part_of_a_key_and_each_field_and_no_other(message: MessageType) -> None:
    key = {KEY_COLUMNS[str(sort)] for sort in message.key if str(sort) in KEY_COLUMNS}
    fields = {column_of(message, name) for name in message.fields}
    shown = columns_of(message.title)
    assert key | fields <= shown
    assert shown - ABOUT_IT - WITH_IT <= key | fields
