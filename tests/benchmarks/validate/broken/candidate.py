"""One candidate that is broken on purpose, with the expected findings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    #: the fault, in a few words
    name: str
    #: a file of the release, what is in it once, and what the candidate has there
    file: str
    old: str
    new: str
    #: suites to run, separated by commas, or else one benchmark
    suite: str = ""
    benchmark: str = ""
    #: the tests that must be named, each as CLASS.test
    tests: tuple[str, ...] = ()
    #: their outcome in stock; a module that cannot be imported is a test that stock does not have
    stock: str = "pass"
    #: expected verdict on the benchmark
    verdict: str = "slower"
    #: only tests with this in their names are run; by default the one that must be named, or all if there are several
    match: str = ""
    #: more options of the command
    options: tuple[str, ...] = ()

    @property
    def change(self) -> tuple[str, str, str]:
        return self.file, self.old, self.new

    def arguments(self) -> list[str]:
        """The options with which the command finds the fault, and runs as little as it can."""
        given = ["--no-fastio", "--suite", self.suite or "none", "--benchmarks", self.benchmark or "none"]
        match = self.match or (self.tests[0] if len(self.tests) == 1 else "")
        return [*given, *(["--match", match] if match else []), *self.options]

    def lines(self) -> list[str]:
        """Return the expected verdict, apart from how a test has failed."""
        named = [f"{test}: {self.stock} -> " for test in self.tests]
        return [*named, f"candidate: {self.benchmark} ("] if self.benchmark else named
