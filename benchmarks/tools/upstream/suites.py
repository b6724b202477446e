"""The upstream suites: which modules, what comes before them, and what a patched run must show."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.tools.pythons import Unavailable

from .sources import data_of, fetch, linked

#: Holds unpacked sdists between runs; the directory is ignored by git.
CACHE = Path(__file__).resolve().parents[3] / "build" / "upstream"


#: For pytest: no settings of a directory above.
_ALONE = ("-c/dev/null", "--rootdir=.")
#: For pytest: run what unittest would, which has test cases only, takes no output and no warnings, and imports plainly.
_AS_UNITTEST = (
    *_ALONE, "-opython_classes=", "-opython_functions=", "--capture=no", "-pno:logging", "-pno:warnings",
    "-pno:threadexception", "-pno:unraisableexception", "--import-mode=append", "--assert=plain", "--pyargs",
)  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """One set of upstream tests in one mode."""

    name: str
    #: test modules, loaded in this order
    modules: tuple[str, ...]
    #: prelude of ``fastio.patch()``: nothing, ``"monkey_patch"``, or the name of a module to import
    prelude: str = ""
    env: dict[str, str] = field(default_factory=dict)
    #: arguments with which pytest finds the tests, instead of the modules; it runs where they are
    pytest: tuple[str, ...] = ()
    #: whether the tests hold times so short that nothing else may run beside them
    exclusive: bool = False
    #: patches that must be applied when the patched run ends
    applied: tuple[str, ...] = ()
    #: patches that must have taken calls when the patched run ends
    taken: tuple[str, ...] = ()
    #: values of fastio's constants in the patched run, as ``module:name``: the tests send too little to gain
    constants: dict[str, int] = field(default_factory=dict)
    #: modules that the tests load anew, or whose classes they give other values: nothing follows from the patches there
    replaced: tuple[str, ...] = ()
    #: how many tests must pass when patched: a suite that finds nothing of what it needs is the same as stock, too
    at_least: int = 0
    #: modules that must be there
    needs: tuple[str, ...] = ()
    #: finds what else the suite needs. If it returns a directory, that is first on the path, and the tests run in a
    #: fresh one with links to what is in it
    place: Callable[[], Path | None] = lambda: None
    #: an environment of :mod:`benchmarks.backends.glance_environments` whose Python runs it, instead of this one
    environment: str = ""

    def arguments(self) -> tuple[str, ...]:
        """Return the suites of pytest."""
        return self.pytest or (*_AS_UNITTEST, *self.modules)

    def find(self) -> Path | None:
        """The directory that ``place`` finds.

        :raises Unavailable: if something that the suite needs is not there
        """
        for module in self.needs:
            try:
                found = importlib.util.find_spec(module)
            except ModuleNotFoundError:
                found = None
            if found is None:
                apart = "; distributions package it apart (Debian: libpython3-testsuite)" * module.startswith("test.")
                raise Unavailable(f"{module} is not installed for {sys.executable}{apart}")
        return self.place()


#: Tests of openstacksdk that images and objects go through.
_OF_TRANSFERS = re.compile(
    r"\.unit\.(?:image\..*|object_store\..*|cloud\.test_(?:image|object).*|test_(?:proxy|resource|utils).*)$"
)


def tests_in_sdist(project: str, package: str, *others: str) -> Path:
    """A directory that has ``package`` and ``others`` of the sdist of the installed release, and nothing else of it."""
    version = importlib.metadata.version(project)
    tree = fetch(project, version, CACHE)
    return linked(CACHE / f"{project}-{version}-{package}", {name: tree / name for name in (package, *others)})


def packaged_tests(package: str) -> tuple[str, ...]:
    """The modules of unit tests in the installed package; which there are differs between its releases."""
    found = importlib.util.find_spec(package)
    return () if found is None or found.origin is None else tests_of(Path(found.origin).parent)


def tests_of(folder: Path) -> tuple[str, ...]:
    """The modules of unit tests in a package's directory; of openstacksdk those that transfers go through."""
    files = sorted((folder / "tests" / "unit").rglob("test_*.py"))
    names = [".".join(file.relative_to(folder.parent).with_suffix("").parts) for file in files]
    return tuple(name for name in names if folder.name != "openstack" or _OF_TRANSFERS.search(name))


def find_data(package: str, environment: str = "") -> Callable[[], Path]:
    """Return a function that finds the directory from which the tests of an installed package find their data."""

    def find() -> Path:
        reason = ENVIRONMENTS[environment].missing() if environment else ""
        if reason:
            raise Unavailable(reason)
        python = ENVIRONMENTS[environment].python() if environment else sys.executable
        code = f"import importlib.util as u; print(u.find_spec({package!r}).submodule_search_locations[0])"
        folder = subprocess.check_output([python, "-c", code], timeout=60, stdin=subprocess.DEVNULL, text=True)
        return linked(CACHE / (environment or package), data_of(Path(folder.strip())))

    return find


#: Imports of the clients' suites.
_UNIT_TESTS = ("ddt", "fixtures", "requests_mock", "testscenarios", "testtools")
CPYTHON = ("test.test_subprocess", "test.test_popen")
EVENTLET = tuple(
    f"tests.{name}_test"
    for name in (
        "subprocess", "greenio", "os", "green_select", "patcher", "tpool", "api", "convenience", "socket", "ssl",
        "wsgi", "websocket",
    )
)  # fmt: skip
OSLO = ("oslo_concurrency.tests.unit.test_processutils", "oslo_concurrency.tests.unit.test_lockutils")
#: Tests of openstackclient that images and objects go through.
OPENSTACKCLIENT = tuple(
    name for name in packaged_tests("openstackclient") if re.search(r"\.unit\.(?:api|image|object)\.", name)
)
SWIFTCLIENT = tuple(
    f"test.unit.test_{name}"
    # The last one loads the client anew for each of its tests, so the others come before it.
    for name in ("authv1", "command_helpers", "multithreading", "service", "shell", "utils", "swiftclient")
)
#: Uploads do not go through ``contrib``: TLS by pyOpenSSL, SOCKS, and Python in a browser. A few tests need a route to
#: other hosts. Tests of knowledge about servers' HTTP/2 hang now and then, and send nothing by fastio's patches. Tests
#: of a proxy's certificates wait long for what only urllib3's own fork of hypercorn does.
URLLIB3 = (
    "test", "--ignore=test/contrib", "-mnot requires_network", "-knot http2_probe and not TestHTTPSProxyVerification",
    "-ppytest_timeout",
)  # fmt: skip
#: Without the time-outs, for which a host has to be silent, and the server's one thread waits for 20 s. Without the
#: tests of the tests' own server, which are slow.
REQUESTS = (
    "tests", "--ignore=tests/test_testserver.py", "-knot TestTimeout", "-ppytest_httpbin.plugin", "-ppytest_mock",
)  # fmt: skip
#: Tests of glance that image data goes through.
GLANCE_UNIT = tuple(
    f"glance.tests.unit.{name}"
    for name in (
        "v2.test_image_data_resource", "v2.test_images_resource", "v2.test_cache_management_api", "common.test_utils",
        "common.test_wsgi", "test_cache_middleware", "test_cached_images", "test_image_cache", "test_notifier",
        "test_quota", "test_store_image", "test_store_location", "async_.flows.test_base_download",
        "async_.flows.test_copy_image", "async_.flows.test_glance_download", "async_.flows.test_import",
        "async_.flows.test_web_download",
    )
)  # fmt: skip
GLANCE_FUNCTIONAL = (
    # No test, but it registers options that the tests take to be there.
    "glance.db.migration",
    *(
        f"glance.tests.functional.{name}"
        for name in (
            "test_cache_middleware", "test_gzip_middleware", "v2.test_cache_api", "v2.test_image_decompression",
            "v2.test_images", "v2.test_images_import_locking", "v2.test_multi_store_images",
        )
    ),
)  # fmt: skip
#: Those that a release was the first to have.
GLANCE_UNIT_SINCE = {"33": ("glance.tests.unit.async_.flows.test_parallel_api_image_import",)}
GLANCE_FUNCTIONAL_SINCE = {"33": ("glance.tests.functional.v2.test_parallel_store_import",)}
#: Patches of child processes that must be in force, and the one that must have taken calls.
NATIVE: dict[str, Any] = {"applied": ("communicate", "wait"), "taken": ("communicate",)}
GREEN: dict[str, Any] = {"applied": ("green_communicate", "green_wait", "green_pipe"), "taken": ("green_communicate",)}

#: Of fastio's patches of urllib3. Nothing there uploads a file of known length, as urllib3_sendfile takes it.
UPLOADS: dict[str, Any] = {
    "applied": ("urllib3_blocks", "urllib3_sendfile"), "taken": ("urllib3_blocks",),
    "constants": {"fastio.patches.urllib3._requests:LEAST": 1},
}  # fmt: skip


def of_processes() -> Iterator[Suite]:
    """Return the suites of CPython, eventlet and oslo.concurrency."""
    yield Suite("cpython-native", CPYTHON, needs=(*CPYTHON, "test.support"), **NATIVE)
    yield Suite("cpython-green", CPYTHON, "monkey_patch", needs=(*CPYTHON, "test.support", "eventlet"), **GREEN)
    yield Suite(
        "eventlet", EVENTLET, exclusive=True, needs=("eventlet",), place=lambda: tests_in_sdist("eventlet", "tests"),
        pytest=(*_ALONE, *(f"{name.replace('.', '/')}.py" for name in EVENTLET)),
        # set by upstream's conftest.py
        env={"EVENTLET_TESTS": "1"}, **{**GREEN, "applied": (*GREEN["applied"], "green_sendall")},
    )  # fmt: skip
    needs = ("oslo_concurrency.tests.unit.test_processutils", "oslotest", "fixtures", "eventlet")
    # Upstream's own runs say TEST_EVENTLET=0 for this one, but its tests/__init__.py (7.6) takes any value that is
    # not empty as yes.
    yield Suite("oslo-native", OSLO, env={"TEST_EVENTLET": ""}, needs=needs, **NATIVE)
    yield Suite(
        "oslo-green", (*OSLO, "oslo_concurrency.tests.unit.test_lockutils_eventlet"), "oslo_concurrency.tests",
        env={"TEST_EVENTLET": "1"}, needs=needs, **GREEN,
    )  # fmt: skip


def in_both_modes(mode: str, prelude: str) -> Iterator[Suite]:
    """Return the suites of glance_store, glanceclient, openstacksdk, openstackclient, swiftclient and requests."""
    yield Suite(
        f"glance_store-{mode}", packaged_tests("glance_store"), prelude,
        needs=(
            "glance_store", "oslotest", *_UNIT_TESTS, "boto3", "swiftclient", "cinderclient", "os_brick", "oslo_vmware",
        ),
        place=find_data("glance_store"),
        # The patches of glance_store that its unit tests run through.
        applied=(
            "store_filesystem", "store_http", "store_swift", "store_s3", "store_rbd", "store_cinder", "image_hashing",
        ),
        taken=(GREEN if prelude else NATIVE)["taken"],
        replaced=tuple(f"glance_store._drivers.{name}" for name in ("filesystem", "http", "swift.store")),
    )  # fmt: skip
    yield Suite(
        f"glanceclient-{mode}", packaged_tests("glanceclient"), prelude, applied=("glanceclient_hashing",),
        needs=("glanceclient.tests.unit.test_http", *_UNIT_TESTS),
    )  # fmt: skip
    yield Suite(
        f"openstacksdk-{mode}", packaged_tests("openstack"), prelude, at_least=400,
        applied=("openstacksdk_download", "openstacksdk_hashing"),
        needs=("openstack.tests.unit.base", *_UNIT_TESTS, "oslotest"), place=find_data("openstack"),
    )  # fmt: skip
    yield Suite(
        f"openstackclient-{mode}", OPENSTACKCLIENT, prelude, at_least=100,
        needs=("openstackclient.tests.unit.utils", *_UNIT_TESTS),
    )  # fmt: skip
    yield Suite(
        f"swiftclient-{mode}", SWIFTCLIENT, prelude, replaced=("swiftclient.client",),
        needs=("swiftclient", "keystoneauth1", "requests_mock", "testtools"),
        place=lambda: tests_in_sdist("python-swiftclient", "test"),
    )  # fmt: skip
    yield Suite(
        f"requests-{mode}", (), prelude, pytest=REQUESTS, at_least=500, **UPLOADS,
        needs=("requests", "httpbin", "pytest_httpbin", "pytest_mock", "socks", "trustme"),
        place=lambda: tests_in_sdist("requests", "tests", "pyproject.toml", "requirements-dev.txt"),
    )  # fmt: skip


def of_glance(environment: str, release: str) -> Iterator[Suite]:
    """Return the suites of one release; with release 32 its tests monkey patch, as glance-api itself does."""
    # Before fastio, as in the service.
    common: dict[str, Any] = {
        "prelude": "glance.tests", "environment": environment, "place": find_data("glance", environment),
    }  # fmt: skip
    yield Suite(
        f"glance-{release}-unit", (*GLANCE_UNIT, *GLANCE_UNIT_SINCE.get(release, ())), at_least=900,
        replaced=("glance_store._drivers.rbd",), **common,
    )  # fmt: skip
    yield Suite(
        f"glance-{release}-functional", (*GLANCE_FUNCTIONAL, *GLANCE_FUNCTIONAL_SINCE.get(release, ())), at_least=80,
        applied=("store_filesystem", "image_hashing"), **common,
    )  # fmt: skip


SUITES = {
    suite.name: suite
    for suite in (
        *of_processes(),
        *in_both_modes("native", ""),
        *in_both_modes("green", "monkey_patch"),
        # With upstream's settings of pytest: warnings are errors. Natively: its servers run on trio, which cannot be
        # imported after eventlet's monkey_patch().
        Suite(
            "urllib3-native", (), pytest=URLLIB3, at_least=1000, **UPLOADS,
            needs=("urllib3", "h2", "httpx", "hypercorn", "pytest_timeout", "quart_trio", "trustme"),
            place=lambda: tests_in_sdist("urllib3", "test", "dummyserver", "pyproject.toml"),
        ),
        *of_glance("glance32", "32"),
        *of_glance("glance33", "33"),
    )
}  # fmt: skip
