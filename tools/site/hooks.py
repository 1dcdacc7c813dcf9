"""The pages of the site: those of the repository, each where it stands there; a notebook as the text it is.

A link to what is no page (code, a folder) has nowhere to lead on the site: its text stays, without the target.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def sources() -> list[Path]:
    """The files of the site: Markdown, notebooks, and the schemas that pages link to."""
    found = [*ROOT.glob("*.md"), ROOT / "traces/README.md"]
    for pattern in ("*.md", "*.ipynb", "*.schema.json", "*.svg", "*.png"):
        found += (ROOT / "docs").rglob(pattern)
    return sorted(found)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository."""
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".ipynb":
            file = File.generated(config, page_of(name), content=text_of(path))
        else:
            file = File.generated(config, name, abs_src_path=str(path))
        files.append(file)
    return files


def page_of(name: str) -> str:
    """The page of a file: of a notebook one of its name."""
    return name.removesuffix(".ipynb") + ".md" if name.endswith(".ipynb") else name


def text_of(notebook: Path) -> str:
    """A notebook as Markdown: its text, and its code in blocks."""
    parts = [f"*To run this lesson: [{notebook.name}](README.md#begin).*"]
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    title = parts.pop(1).split("\n", 1)
    return "\n\n".join([title[0], parts[0], *title[1:], *parts[1:]]) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to notebooks into links to their pages, and drop those that lead to no page."""
    here = posixpath.dirname(page.file.src_uri)

    def changed(found: re.Match[str]) -> str:
        text, link = found[1], found[2]
        name, mark, anchor = link.partition("#")
        if not name or re.match(r"[a-z]+:", link):
            return found[0]
        target = posixpath.normpath(posixpath.join(here, name))
        if files.get_file_from_path(page_of(target)) is None:
            return text
        return f"[{text}]({page_of(name)}{mark}{anchor})"

    return "".join(part if inside else LINK.sub(changed, part) for inside, part in _fenced(markdown))


def _fenced(markdown: str) -> list[tuple[bool, str]]:
    """The text in pieces: is it in a fenced block, and what it is."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return [(part.startswith("```"), part) for part in parts]
