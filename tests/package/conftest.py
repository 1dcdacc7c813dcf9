"""The wheel, built from a copy of the sources and installed outside of the checkout; no network is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "viewproof", "spec", "impl", "refinement", "docs", "traces")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def run(*command: str | Path, cwd: Path) -> str:
    """What a command that must succeed prints."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def copy_sources(to: Path) -> Path:
    """The files of the checkout that a package is built from; links stay links."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, symlinks=True, ignore=ignore)
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def build_wheel(sources: Path, out: Path) -> Path:
    """The wheel of a source tree or a source archive."""
    run(*PIP, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", out, sources, cwd=out.parent)
    [wheel] = out.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """An environment with nothing of ours but the wheel; `work` is a user's directory with packages of their own."""

    wheel: Path
    scripts: Path
    packages: Path
    work: Path

    def command(self, *words: str | Path) -> list[str]:
        """A `vsr` command."""
        return [str(self.scripts / "vsr"), *map(str, words)]

    @property
    def environment(self) -> dict[str, str]:
        """That of the tests, without what would lead back to the checkout."""
        return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def vsr(self, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `vsr` to its end in the user's directory."""
        return subprocess.run(
            self.command(*words), cwd=self.work, env=self.environment, input=stdin, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the user's directory."""
        command = [str(self.scripts / "python"), *words]
        return subprocess.run(command, cwd=self.work, env=self.environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel in a fresh environment that sees the dependencies of this one, and the user's directory."""
    base = tmp_path_factory.mktemp("package")
    (base / "wheels").mkdir()
    wheel = build_wheel(copy_sources(base / "sources"), base / "wheels")
    shutil.rmtree(base / "sources")
    venv.create(base / "env", with_pip=False)
    scripts = base / "env" / "bin"
    run(*PIP[:3], "--python", scripts / "python", *PIP[3:], "install", "--no-deps", "--no-index", wheel, cwd=base)
    [packages] = (base / "env" / "lib").glob("python*/site-packages")
    installed = Installed(wheel, scripts, packages, base / "work")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    for name in ("spec", "impl", "refinement"):
        (base / "work" / name).mkdir(parents=True)
        (base / "work" / name / "__init__.py").write_text(f"raise SystemExit('the user\\'s own {name} was imported')\n")
    yield installed
    shutil.rmtree(base)
