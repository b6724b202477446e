"""Upstream's suites, and our own of conformance, in each variant's environment, compared with stock test by test."""

import contextlib
import dataclasses
import subprocess
from pathlib import Path

from benchmarks.harness.worker import CACHE_VARIABLE, cache_directory
from benchmarks.tools.pythons import Unavailable
from benchmarks.tools.upstream.runner import Runner, SuiteError
from benchmarks.tools.upstream.sides import Side
from benchmarks.tools.upstream.sources import data_of, linked
from benchmarks.tools.upstream.suites import CPYTHON, GREEN, NATIVE, SUITES, Suite, tests_of

from .candidates import Candidate
from .environments import CANDIDATE, Variant
from .errors import ValidateError
from .projects import Project
from .sandbox import Isolation

#: Differences of one suite that are run again alone; where there are more, the rest is believed.
MOST_CONFIRMED = 6

_CONFORMANCE = Path(__file__).with_name("conformance")
_PROCESSES = ("conformance_processes", "conformance_execute")

#: Gaps of upstream's suites, see the modules in ``conformance/``.
CONFORMANCE = {
    suite.name: suite
    for suite in (
        Suite("conformance-native", _PROCESSES, taken=NATIVE["taken"]),
        Suite("conformance-green", (*_PROCESSES, "conformance_hub"), prelude="monkey_patch", taken=GREEN["taken"]),
        Suite("conformance-stores-native", ("conformance_stores",)),
        Suite("conformance-stores-green", ("conformance_stores",), prelude="monkey_patch"),
        Suite("conformance-glance", ("conformance_glance",)),
    )
}

#: Of projects that fastio has no patches for, so that ``tox -e upstream`` has nothing to compare there.
UNPATCHED = {
    suite.name: suite
    for suite in (
        Suite("nova-images", ("nova.tests.unit.image.test_glance",)),
        Suite(
            "ironic-images",
            ("ironic.tests.unit.common.test_glance_service", "ironic.tests.unit.common.test_image_service"),
        ),
        Suite("keystoneauth1-native", ()),
    )
}


def known(name: str) -> Suite:
    """The suite that a project names.

    :raises KeyError: if there is none
    """
    return {**SUITES, **CONFORMANCE, **UNPATCHED}[name]


#: Suites of all that a package has, which differs between its releases: the start of their names, and the package.
_PACKAGED = {"glance_store": "glance_store", "keystoneauth1": "keystoneauth1", "openstacksdk": "openstack"}
#: Suites whose tests are found beside the code in the package, and read files by relative paths.
_WITH_DATA = {"glance_store": "glance_store", "openstacksdk": "openstack", "glance": "glance"}
#: Suites whose tests are only in the sdist.
_IN_SDIST = ("eventlet", "swiftclient", "urllib3")


def suite_for(name: str, variant: Variant) -> Suite:
    """A suite for a variant's environment."""
    found = known(name)
    project = "conformance" if name in CONFORMANCE else name.partition("-")[0]
    package = _PACKAGED.get(project)
    modules = tests_of(variant.environment.site_packages / package) if package else found.modules
    # The conformance tests make the data of their servers once.
    env = {**found.env, CACHE_VARIABLE: str(cache_directory())}
    return dataclasses.replace(
        found, modules=modules, env=env, needs=(), place=lambda: _place(project, variant), environment=""
    )  # fmt: skip


def _place(project: str, variant: Variant) -> Path | None:
    """The directory that a project's suites run in, and import from before all else; None for a fresh one."""
    if project == "conformance":
        return _CONFORMANCE
    if project in _WITH_DATA:
        data = data_of(variant.environment.site_packages / _WITH_DATA[project])
        return linked(variant.environment.directory / "upstream", data)
    return variant.tests if project in _IN_SDIST else None


def side(variant: Variant, limit: float, match: str, isolation: Isolation) -> Side:
    """How suites run in a variant's environment.

    :param limit: seconds that a test may take
    :param match: only tests with this in their id are run
    """
    runner = Runner(variant.environment.python, limit, match, isolation.launcher(variant))

    def missing(suite: Suite) -> str:
        if suite.modules != CPYTHON:
            return ""
        code = f"import importlib.util as u; [u.find_spec(name).origin for name in {CPYTHON!r}]"
        done = subprocess.run([str(runner.python), "-I", "-c", code], capture_output=True, timeout=60)
        return f"this Python has no {' and no '.join(CPYTHON)}" if done.returncode else ""

    # Only a candidate brings its tests. One that cannot be loaded is an error all the same.
    return Side(
        variant.name, variant.patched, lambda name: suite_for(name, variant), lambda suite: runner, missing,
        own_tests=variant.name == CANDIDATE,
    )  # fmt: skip


def check_used(project: Project, candidate: Candidate, variant: Variant, side: Side) -> None:
    """Check that a diff changes what at least one suite of the project imports.

    :raises ValidateError: that names what it changes, if it does not
    """
    changed = {str(variant.environment.site_packages / name) for name in variant.changed}
    if candidate.kind != "diff":
        return
    for name in project.suites:
        # One that cannot be run is reported later.
        with contextlib.suppress(SuiteError, Unavailable):
            if changed.intersection(side.run(name, only=()).files):
                return
    raise ValidateError(
        f"{candidate.text} changes nothing that is used: no suite for {project.name} imports "
        f"{', '.join(variant.changed) or 'the changed code'}"
    )
