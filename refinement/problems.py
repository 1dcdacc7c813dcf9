"""What is wrong with the input, collected while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewproof.refinement.verdict import PROBLEM_LIMIT, InputProblem


@dataclass(slots=True)
class ProblemLog:
    """Collects what is wrong with the input: the first `limit` in full, the rest as a number.

    `carried` are columns that the format does not have, each with where it was first met; `unknown` are files
    with lines that their adapter does not know: how many, and the first.
    """

    limit: int = PROBLEM_LIMIT
    problems: list[InputProblem] = field(default_factory=list)
    more: int = 0
    carried: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, tuple[int, int]] = field(default_factory=dict)

    def unrecognised(self, file: str, line: int) -> None:
        """Count a line that an adapter does not know."""
        count, first = self.unknown.get(file, (0, line))
        self.unknown[file] = count + 1, first

    def carry(self, name: str, place: str) -> None:
        """Note a column that the format does not have: it is carried along, not judged."""
        self.carried.setdefault(name, place)

    def add(self, file: str, line: int, name: str, expected: str, got: str) -> None:
        """Record one problem."""
        if len(self.problems) < self.limit:
            self.problems.append(InputProblem(file, line, name, expected, got))
        else:
            self.more += 1

    def __bool__(self) -> bool:
        return bool(self.problems)
