"""The first bad commit of a candidate, as :mod:`.search` has found it."""

from dataclasses import dataclass, field
from typing import Any

from .series import Commit

#: Verdicts on the first commits of a series.
GOOD, BAD, UNKNOWN = "good", "bad", "cannot be judged"

#: What was said about: the Python, the suite or the mode, and the test, the suite or the benchmark.
Key = tuple[str, str, str]


@dataclass
class Culprit:
    """A commit, and what it has brought."""

    #: more than one if those between cannot be judged
    commits: list[Commit]
    #: in a line each
    brought: dict[Key, str]

    def __str__(self) -> str:
        return " or ".join(map(str, self.commits))


@dataclass
class Bisection:
    """What was found."""

    #: all of them
    commits: list[Commit]
    #: in the order of the commits
    culprits: list[Culprit] = field(default_factory=list)
    #: what was judged: how many of the commits, the verdict, and why they cannot be judged
    judged: list[tuple[int, str, str]] = field(default_factory=list)
    #: what did not come again when it alone was run
    lost: list[str] = field(default_factory=list)
    #: why nothing was looked for
    note: str = ""

    def since(self, key: Key) -> str:
        """The commit that has brought this; empty if that is not known."""
        return next((str(each) for each in self.culprits if key in each.brought), "")

    def lines(self) -> list[str]:
        """For people."""
        if self.note:
            return [f"first bad commit: {self.note}"]
        found = [
            f"first bad commit: {each}: {_first(line)}" for each in self.culprits for line in each.brought.values()
        ]
        gone = "not looked for, because it did not come again when it was run alone"
        return found + [f"first bad commit: {gone}: {_first(line)}" for line in self.lost]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "commits": [vars(each) for each in self.commits],
            "culprits": [
                {"commits": [vars(commit) for commit in each.commits], "brought": list(each.brought.values())}
                for each in self.culprits
            ],
            "judged": [
                {"commits": number, "last": self.commits[number - 1].id, "verdict": verdict, "reason": reason}
                for number, verdict, reason in self.judged
            ],
            "lost": self.lost,
            "note": self.note,
        }


def _first(text: str) -> str:
    return text.splitlines()[0]
