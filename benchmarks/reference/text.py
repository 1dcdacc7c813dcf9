"""Text of reference pages: wrapped to the width of the documents."""

from __future__ import annotations

import textwrap

WIDTH = 128


def paragraphs(doc: str) -> str:
    """A docstring as Markdown: its paragraphs, each wrapped."""
    parts = (" ".join(part.split()) for part in textwrap.dedent(doc).strip().split("\n\n"))
    return "\n\n".join(wrapped(part) for part in parts)


def wrapped(text: str, indent: str = "") -> str:
    """One paragraph, with later lines indented."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
