"""Looks for the first bad commit of a candidate: which of its commits has brought what speaks against the whole.

A binary search. What is judged of the first commits, two, three and so on, is judged as the whole has been, but only
that is run which has spoken against the whole: the tests, and the benchmarks.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from . import findings
from .bisection import BAD, GOOD, UNKNOWN, Bisection, Culprit, Key
from .candidates import Candidate
from .errors import UnusedError, ValidateError
from .findings import ERROR, FLAKY, LEVELS, SUITE, Finding
from .outcome import Outcome
from .series import Series
from .variants import CANDIDATE


@dataclass
class Part:
    """What is run of a validation, with one Python."""

    #: suite -> tests; None is all of them
    tests: dict[str, list[str] | None] = field(default_factory=dict)
    #: SUITE/CASE
    cases: list[str] = field(default_factory=list)


def sought(outcome: Outcome, text: str = "") -> list[Finding]:
    """What a first commit is looked for: what the candidate fails for, or each finding that has this text."""
    found = [each for each in findings.of(outcome) if each.variant == CANDIDATE and each.rule != FLAKY]
    return [each for each in found if text.lower() in str(each).lower() and (text or each.rule.level == ERROR)]


def parts(found: Sequence[Finding]) -> dict[str, Part]:
    """What has to be run to see these again, by the version of Python."""
    made: dict[str, Part] = {}
    for each in found:
        part = made.setdefault(each.python, Part())
        if each.benchmark:
            part.cases = list(dict.fromkeys([*part.cases, each.subject]))
        elif each.rule == SUITE or each.subject.endswith(")"):
            # What is wrong with all of it, or a module's or class's fixture, which cannot be run alone.
            part.tests[each.within] = None
        elif (tests := part.tests.setdefault(each.within, [])) is not None and each.subject not in tests:
            tests.append(each.subject)
    return made


def search(
    series: Series, found: Sequence[Finding], judge: Callable[[Candidate, Mapping[str, Part]], Outcome],
    say: Callable[[str], None],
) -> Bisection:  # fmt: skip
    """Find the first commit with each of these findings of the whole."""
    return _Search(series, found, judge, say).run()


class _Search:
    def __init__(
        self, series: Series, found: Sequence[Finding], judge: Callable[[Candidate, Mapping[str, Part]], Outcome],
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._series = series
        self._found = found
        self._judge = judge
        self._say = say
        self._last = len(series.commits)
        #: by how many commits: what speaks against them of what is looked for; None if they cannot be judged
        self._seen: dict[int, set[Key] | None] = {0: set()}
        self._made = Bisection(series.commits)

    def run(self) -> Bisection:
        all_seen = self._look(self._last)
        culprits: dict[tuple[int, int], list[Finding]] = {}
        for each in self._found:
            if all_seen is None or each.key not in all_seen:
                self._made.lost.append(str(each))
            else:
                culprits.setdefault(self._between(each.key), []).append(each)
        for (good, bad), found in sorted(culprits.items(), key=lambda each: each[0]):
            brought = {each.key: str(each) for each in found}
            self._made.culprits.append(Culprit(self._series.commits[good:bad], brought))
        self._made.judged.sort()
        return self._made

    def _between(self, key: Key) -> tuple[int, int]:
        """How many commits are good at most, and how many are bad at least."""
        good, bad = 0, self._last
        while True:
            known = {number: seen for number, seen in self._seen.items() if good < number < bad and seen is not None}
            bad = min((number for number, seen in known.items() if key in seen), default=bad)
            good = max((number for number, seen in known.items() if number < bad), default=good)
            left = [number for number in range(good + 1, bad) if number not in self._seen]
            if not left:
                return good, bad
            self._look(min(left, key=lambda number: abs(2 * number - good - bad)))

    def _look(self, number: int) -> set[Key] | None:
        """What speaks against the first so many commits."""
        verdict, reason = GOOD, ""
        seen: set[Key] | None = set()
        candidate = self._series.first(number)
        try:
            if candidate is not None:
                outcome = self._judge(candidate, parts(self._found))
                seen = _again(self._found, findings.of(outcome))
                verdict = BAD if seen else GOOD
        except UnusedError:
            # As good as the release is.
            pass
        except ValidateError as error:
            seen, verdict, reason = None, UNKNOWN, str(error)
        self._seen[number] = seen
        self._made.judged.append((number, verdict, reason))
        commit = self._series.commits[number - 1]
        self._say(f"commit {number} of {self._last}, {commit}: {': '.join(filter(None, [verdict, reason]))}")
        return seen


def _again(looked_for: Sequence[Finding], found: Collection[Finding]) -> set[Key]:
    """Which of these were found again, or something worse in their place."""
    worst: dict[Key, int] = {}
    for each in found:
        if each.rule != FLAKY:
            worst[each.key] = min(LEVELS.index(each.rule.level), worst.get(each.key, len(LEVELS)))
    return {each.key for each in looked_for if worst.get(each.key, len(LEVELS)) <= LEVELS.index(each.rule.level)}
