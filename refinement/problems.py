"""What is wrong with the input, collected while it is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from viewproof.refinement.verdict import PROBLEM_LIMIT, InputProblem

_OF_A_CAUSE: Final = 5


@dataclass(slots=True)
class ProblemLog:
    """Collects what is wrong with the input: the first `limit` in full, but of one cause in one file no more than
    `_OF_A_CAUSE`, so that others are seen, too; the rest as a number.

    `carried` are columns that the format does not have, each with where it was first met; `unknown` are files
    with lines that their adapter does not know: how many, and the first.
    """

    limit: int = PROBLEM_LIMIT
    problems: list[InputProblem] = field(default_factory=list)
    more: int = 0
    carried: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, tuple[int, int]] = field(default_factory=dict)
    _causes: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def unrecognised(self, file: str, line: int) -> None:
        """Count a line that an adapter does not know."""
        count, first = self.unknown.get(file, (0, line))
        self.unknown[file] = count + 1, first

    def carry(self, name: str, place: str) -> None:
        """Note a column that the format does not have: it is carried along, not judged."""
        self.carried.setdefault(name, place)

    def add(self, file: str, line: int, name: str, expected: str, got: str) -> None:
        """Record one problem."""
        self._causes[file, name, expected] += 1
        if len(self.problems) < self.limit and self._causes[file, name, expected] <= _OF_A_CAUSE:
            self.problems.append(InputProblem(file, line, name, expected, got))
        else:
            self.more += 1

    def __bool__(self) -> bool:
        return bool(self.problems)
