"""The messages of the protocol, as they are declared: one command, one page (docs/messages.md).

    python -m benchmarks.messages                            # prints the page
    python -m benchmarks.messages --write docs/messages.md   # puts it into this file

Of each message: its key, who sends it, to whom, its fields with their ranges, which part of the specification declares
each, and the column of a trace that shows it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from viewproof.refinement.native import SYSTEM
from viewproof.refinement.schema import EVENTS
from viewproof.spec import vsr
from viewproof.spec.lang import MessageType

KEY_COLUMNS = {"View": "m_view", "Op": "m_op"}
"""Sort of a key → the column that shows it. The sender is `m_from`."""
COLUMNS = {"": "m_checksum", "entry": "m_log", "commit_sent": "m_commit"}
"""Field → its column, where that is not `m_FIELD`: an entry is shown as the checksum of its prepare."""
HEAD = """# Messages

What replicas say to each other, from the declarations in `spec/vsr`. `python -m benchmarks.messages --write
docs/messages.md` makes this page.

A message is declared once, as a record with its fields; a field is a register of the specification (`prepare_client`),
under which TLA+, counterexamples and proofs show it. What was sent stays sent: losing, delaying, repeating and
reordering is that a receiver may act on it now, later, again or never. The last column is what
[a trace](../traces/README.md) shows it by, if the traces of the replicas have it.

"""


def messages() -> tuple[dict[str, MessageType], dict[str, list[str]]]:
    """Every message of any model, with all fields that parts add; and the parts that declare each of its registers."""
    found: dict[str, MessageType] = {}
    parts: dict[str, list[str]] = {}
    for name in vsr.MODELS:
        for message in vsr.model(name).schema.messages.values():
            found.setdefault(message.name, message).fields.update(message.fields)
            for field in message.fields.values():
                by = parts.setdefault(field.var.name, [])
                by += [] if field.part in (*by, "core") else [field.part]
    return found, parts


def columns_of(title: str) -> frozenset[str]:
    """The columns of the events that send a message."""
    sending = (event.name for event in SYSTEM.events if event.sends == title)
    return frozenset(column for name in sending for column in EVENTS[name].columns)


def column_of(message: MessageType, field: str) -> str:
    """The column that shows a field."""
    return COLUMNS.get(field or message.name) or (f"m_{field}" if field else COLUMNS[""])


def page() -> str:
    """The document."""
    rows = ["| message | in the specification | sender | to | declared by |", "|---|---|---|---|---|"]
    for message in sorted(messages()[0].values(), key=lambda m: (m.part != "core", m.part, m.title)):
        key = ", ".join(str(sort) for sort in message.key)
        rows.append(f"| {message.title} | `{message.name}[{key}]` | {_said(message)} | {message.to} | {message.part} |")
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(_fields()) + "\n"


def _said(message: MessageType) -> str:
    return " ".join((message.sender.__doc__ or "").split())


def _fields() -> Iterator[str]:
    yield "## Fields"
    yield ""
    yield "| message | field | is | says | added by | column |"
    yield "|---|---|---|---|---|---|"
    found, parts = messages()
    for message in found.values():
        shown = columns_of(message.title)
        for name, field in message.fields.items():
            more = "".join(f"[{sort}]" for sort in field.var.index[len(message.key) :])
            what = f"`{message.name}{'.' if name else ''}{name}{more}`"
            says = field.var.doc.partition(": ")[2] or field.var.doc
            column = column_of(message, name)
            cells = message.title, what, field.var.values.kind, says, ", ".join(parts[field.var.name])
            yield f"| {' | '.join(map(str, cells))} | {f'`{column}`' if column in shown else ''} |"


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the page into this file (docs/messages.md)")
    options = parser.parse_args()
    if options.write:
        options.write.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
