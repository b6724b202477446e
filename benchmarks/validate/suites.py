"""Upstream's suites, and our own of conformance, in each variant's environment, compared with stock test by test."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.worker import CACHE_VARIABLE, cache_directory
from benchmarks.tools.upstream.compare import Comparison, Difference
from benchmarks.tools.upstream.runner import Launcher, Runner, clean_environment
from benchmarks.tools.upstream.sides import Side
from benchmarks.tools.upstream.sources import data_of, linked
from benchmarks.tools.upstream.suites import CPYTHON, GREEN, NATIVE, SUITES, Suite, tests_of

from .candidates import Candidate
from .environments import CANDIDATE, Variant
from .errors import UnusedError
from .projects import Project
from .sandbox import Isolation

#: Differences of one suite that are run again alone; where there are more, the rest is believed.
MOST_CONFIRMED = 6

_CONFORMANCE = Path(__file__).with_name("conformance")
_PROCESSES = ("conformance_processes", "conformance_execute")

#: What upstream's suites miss, see the modules in ``conformance/``.
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
        Suite("nova-images", ("nova.tests.unit.image.test_glance",)),
        Suite(
            "ironic-images",
            ("ironic.tests.unit.common.test_glance_service", "ironic.tests.unit.common.test_image_service"),
        ),
    )
}


#: Seconds for importing all that is used.
USED_LIMIT = 120

#: Characters of what it tells.
MOST_TOLD = 16 << 20

#: Runs in the candidate's environment: imports what the suites import, and tells the files. The hook knows those that
#: cannot be imported, too: a module that the candidate has broken is used as well.
_PROBE = """\
import importlib, json, sys
job = json.load(open(sys.argv[1]))
found = set()
def note(event, arguments):
    if event == "exec":
        found.add(arguments[0].co_filename)
    elif event == "compile":
        found.add(arguments[1])
sys.addaudithook(note)
sys.path[:0] = job["path"]
for name in [job["prelude"], *job["modules"]]:
    try:
        if name == "monkey_patch":
            importlib.import_module("eventlet").monkey_patch()
        else:
            importlib.import_module(name)
    except BaseException:
        pass
found |= {getattr(module, "__file__", None) for module in list(sys.modules.values())}
with open(sys.argv[2], "w") as file:
    json.dump([each for each in found if isinstance(each, str)], file)
"""

#: What the workloads of the benchmarks import beside what the suites do.
_WORKLOADS = (
    "eventlet.wsgi", "oslo_concurrency.processutils", "glance_store.multi_backend", "glance.common.wsgi_app",
    "glance.api.v2.router", "glance.api.middleware.context", "glance.api.middleware.version_negotiation",
)  # fmt: skip


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

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        comparison = self.comparison
        runs = {"stock": comparison.stock, "run": comparison.patched}
        return {
            "name": self.name,
            "variant": self.variant,
            "unavailable": comparison.unavailable,
            **{
                name: None if run is None else {**dataclasses.asdict(run), "counts": run.counts()}
                for name, run in runs.items()
            },
            "differences": [
                {**dataclasses.asdict(found), "verdict": self.verdict(found)} for found in comparison.differences
            ],
            "faults": comparison.faults,
            "failures": self.failures(),
        }


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

    return Side(variant.name, variant.patched, lambda name: suite_for(name, variant), lambda suite: runner, missing)


def check_used(project: Project, candidate: Candidate, variant: Variant, launcher: Launcher) -> None:
    """Check that a diff changes what at least one suite or benchmark of the project imports.

    :param launcher: runs what imports it
    :raises UnusedError: that names what it changes, if it does not
    """
    if candidate.kind != "diff":
        return
    imported: set[str] = set()
    for name in project.suites:
        imported |= _imported(name, variant, launcher)
        if imported.intersection(variant.changed):
            return
    raise UnusedError(
        f"{candidate.text} changes nothing that is used: no suite and no benchmark for {project.name} imports "
        f"{', '.join(variant.changed)}"
    )


def _imported(name: str, variant: Variant, launcher: Launcher) -> set[str]:
    """The files of site-packages that a suite's modules and the workloads load, relative to it."""
    suite = suite_for(name, variant)
    directory = suite.find()
    job = {
        "path": [str(directory)] if directory else [],
        "prelude": suite.prelude,
        "modules": [*suite.modules, *_WORKLOADS],
    }
    with tempfile.TemporaryDirectory(prefix="validate-", ignore_cleanup_errors=True) as scratch:
        probe, told, found = (Path(scratch, each) for each in ("probe.py", "job.json", "found.json"))
        probe.write_text(_PROBE)
        told.write_text(json.dumps(job))
        found.touch()
        own = Path(scratch, "own")
        own.mkdir()
        process = launcher.start(
            [str(variant.environment.python), *map(str, (probe, told, found))], own,
            {**clean_environment(), "TMPDIR": str(own), **suite.env},
            readable=[probe, told, *([directory] if directory else [])], writable=[found, own],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(USED_LIMIT)
            with open(found, encoding="utf-8") as file:
                files = json.loads(file.read(MOST_TOLD))
        except (subprocess.TimeoutExpired, ValueError):
            return set()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    site_packages = variant.environment.site_packages
    return {str(Path(each).relative_to(site_packages)) for each in files if Path(each).is_relative_to(site_packages)}
