"""How the benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned Markdown; the first column is text, the others are numbers."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        texts = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *texts[1:]]) + " |"

    dashes = ["-" * width if number == 0 else "-" * (width - 1) + ":" for number, width in enumerate(widths)]
    return "\n".join(map(line, (header, dashes, *rows)))
