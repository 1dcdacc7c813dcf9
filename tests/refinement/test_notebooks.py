"""The notebooks for data engineers: stored without outputs, and all cells run, also in Jupyter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def code(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_as_jupyter_stores_it(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_from_raw_logs_to_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark_session: Any
) -> None:
    """In the session of the other tests, which lives on."""
    from viewproof import spark

    monkeypatch.setattr(spark, "start_session", lambda *args, **options: spark_session)
    monkeypatch.setattr(type(spark_session), "stop", lambda self: None)
    names: dict[str, Any] = {"__name__": "fleet"}
    *cells, end = code(ROOT / "docs/notebooks/fleet.ipynb")
    for number, text in enumerate(cells):
        exec(compile(text, f"fleet.ipynb, code {number}", "exec"), names)
    verdicts = {row["run"]: row["verdict"] for row in names["verdicts"].collect()}
    assert verdicts == {f"seed-{n}": "violates" if n in (6, 7, 8) else "inconclusive" if n == 9 else "conforms"
                        for n in range(10)}  # fmt: skip
    page = names["page"].read_text(encoding="utf-8")
    assert "3 runs violates" in page
    assert "1 rule broken" in page
    assert "tuesday" in page
    assert "What led there" in page
    assert page.count('<a href="#seed-') == page.count('<details id="seed-') == 3
    assert "no such event in the input" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    out = capsys.readouterr().out
    assert "10 runs, brought together by a shuffle" in out
    assert "why not: " in out
    exec(compile(end, "fleet.ipynb, end", "exec"), names)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_jupyter(path: Path) -> None:
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
