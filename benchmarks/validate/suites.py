"""Upstream's suites, and our own of conformance, in each variant's environment, compared with stock test by test."""

import dataclasses
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.worker import CACHE_VARIABLE, cache_directory
from benchmarks.tools.upstream.compare import Comparison, Difference
from benchmarks.tools.upstream.runner import Run, Runner
from benchmarks.tools.upstream.sources import data_of, linked
from benchmarks.tools.upstream.suites import CPYTHON, SUITES, Suite, tests_of

from .isolation import Isolation
from .variants import CANDIDATE, Variant

#: Differences of one suite that are run again alone; where there are more, the rest is believed.
MOST_CONFIRMED = 6

_CONFORMANCE = Path(__file__).with_name("conformance")
_PROCESSES = ("conformance_processes", "conformance_execute")

#: What upstream's suites miss, see the modules in ``conformance/``.
CONFORMANCE = {
    suite.name: suite
    for suite in (
        Suite("conformance-native", _PROCESSES),
        Suite("conformance-green", (*_PROCESSES, "conformance_hub"), prelude="monkey_patch"),
        Suite("conformance-stores-native", ("conformance_stores",), exchanges=False),
        Suite("conformance-stores-green", ("conformance_stores",), prelude="monkey_patch", exchanges=False),
        Suite("conformance-glance", ("conformance_glance",), exchanges=False),
    )
}

#: Verdicts of :class:`benchmarks.tools.upstream.compare.Difference`, as the reports word them.
WORDS = {
    "worse": "newly fails",
    "newly passing": "newly passes",
    "changed": "changed",
    "not reproduced": "flaky",
}

#: Of projects that fastio has no patches for, so that ``tox -e upstream`` has nothing to compare there.
UNPATCHED = {
    suite.name: suite
    for suite in (
        Suite("nova-images", ("nova.tests.unit.image.test_glance",), exchanges=False),
        Suite(
            "ironic-images",
            ("ironic.tests.unit.common.test_glance_service", "ironic.tests.unit.common.test_image_service"),
            exchanges=False,
        ),
    )
}


def known(name: str) -> Suite:
    """The suite that a project names.

    :raises KeyError: if there is none
    """
    return {**SUITES, **CONFORMANCE, **UNPATCHED}[name]


@dataclass
class Compared:
    """One suite in one variant, against stock."""

    comparison: Comparison

    @property
    def variant(self) -> str:
        return self.comparison.other

    @property
    def name(self) -> str:
        return self.comparison.suite.name

    def verdict(self, difference: Difference) -> str:
        """How a difference is called, one of :data:`WORDS`."""
        if self.variant == CANDIDATE and difference.patched.outcome == "missing":
            # A candidate brings tests of its own. One that cannot be loaded is an error; one less is up to a reviewer.
            return WORDS["changed"]
        return WORDS[difference.verdict]

    def found(self, verdict: str) -> list[Difference]:
        return [each for each in self.comparison.differences if self.verdict(each) == verdict]

    def failures(self) -> list[str]:
        """Why this does not pass, a line each."""
        worse = [f"{each.test}: {each.stock.outcome} -> {each.patched.outcome}" for each in self.found(WORDS["worse"])]
        return [f"{self.variant}: {self.name}: {line}" for line in worse + self.comparison.faults]


#: Suites of all that a package has, which differs between its releases: the start of their names, and the package.
_PACKAGED = {"glance_store": "glance_store", "openstacksdk": "openstack"}
#: Suites whose tests are found beside the code in the package, and read files by relative paths.
_WITH_DATA = {**_PACKAGED, "glance": "glance"}
#: Suites whose tests are only in the sdist.
_IN_SDIST = ("eventlet", "swiftclient")


def suite_for(name: str, variant: Variant) -> Suite:
    """A suite as it is run in a variant's environment."""
    found = known(name)
    project = "conformance" if name in CONFORMANCE else name.partition("-")[0]
    package = _PACKAGED.get(project)
    modules = tests_of(variant.environment.site_packages / package) if package else found.modules
    # The conformance tests make the data of their servers once.
    env = {**found.env, CACHE_VARIABLE: str(cache_directory())}
    return dataclasses.replace(found, modules=modules, env=env, find=lambda: _place(project, variant), environment="")


def _place(project: str, variant: Variant) -> Path | None:
    """The directory that a project's suites run in, and import from before all else; None for a fresh one."""
    if project == "conformance":
        return _CONFORMANCE
    if project in _WITH_DATA:
        data = data_of(variant.environment.site_packages / _WITH_DATA[project])
        return linked(variant.environment.directory / "upstream", data)
    return variant.tests if project in _IN_SDIST else None


class Runners:
    """Runs suites in variants' environments."""

    def __init__(self, limit: float, match: str, isolation: Isolation) -> None:
        """
        :param limit: seconds that a test may take
        :param match: run only tests with this in their id
        """
        self._limit = limit
        self._match = match
        self._isolation = isolation

    def suite(self, name: str, side: Variant) -> Suite:
        return suite_for(name, side)

    def missing(self, name: str, side: Variant) -> str:
        suite = known(name)
        if suite.modules != CPYTHON:
            return ""
        code = f"import importlib.util as u; [u.find_spec(name).origin for name in {CPYTHON!r}]"
        done = subprocess.run([str(side.environment.python), "-c", code], capture_output=True, timeout=60)
        return f"this Python has no {' and no '.join(CPYTHON)}" if done.returncode else ""

    def run(self, name: str, side: Variant, **options: Any) -> Run:
        launcher = self._isolation.launcher(side)
        runner = Runner(side.environment.python, self._limit, match=self._match, launcher=launcher)
        return runner.run(suite_for(name, side), side.patched, **options)
