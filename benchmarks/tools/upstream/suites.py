"""The upstream suites: which modules, what comes before them, and what a patched run must show."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.backends.glance_environments import ENVIRONMENTS

from .sources import Unavailable, data_of, fetch, linked

#: Holds unpacked sdists between runs; the directory is ignored by git.
CACHE = Path(__file__).resolve().parents[3] / "build" / "upstream"


@dataclass(frozen=True)
class Suite:
    """One set of upstream tests in one mode."""

    name: str
    #: test modules, loaded in this order
    modules: tuple[str, ...]
    #: what comes before ``fastio.patch()``: nothing, ``"monkey_patch"``, or the name of a module to import
    prelude: str = ""
    env: dict[str, str] = field(default_factory=dict)
    #: arguments with which pytest finds and runs the tests: those need its fixtures, or are bare functions
    pytest: tuple[str, ...] = ()
    #: whether the tests hold times so short that nothing else may run beside them
    exclusive: bool = False
    #: patches that must be applied when the patched run ends
    applied: tuple[str, ...] = ()
    #: patches that must have taken calls when the patched run ends
    taken: tuple[str, ...] = ()
    #: what constants of fastio's are in the patched run, as ``module:name``: what the tests send is too little to gain
    constants: dict[str, int] = field(default_factory=dict)
    #: modules that the tests load anew, or whose classes they give other values: nothing follows from the patches there
    replaced: tuple[str, ...] = ()
    #: how many tests must pass when patched: a suite that finds nothing of what it needs is the same as stock, too
    at_least: int = 0
    #: how many tests may not pass when patched, where fastio is to be more correct than stock
    at_most: int | None = None
    #: parts of names of tests that may not hang when patched
    never_hang: tuple[str, ...] = ()
    #: finds what the suite needs. If it returns a directory, that is first on the path, and the tests run in a fresh
    #: one with links to what is in it; those that pytest finds run in it
    find: Callable[[], Path | None] = lambda: None
    #: an environment of :mod:`benchmarks.backends.glance_environments` whose Python runs it, instead of this one
    environment: str = ""
    #: whether something must have gone through a child process's pipes
    exchanges: bool = True


#: Tests of openstacksdk that images and objects go through.
_OF_TRANSFERS = re.compile(
    r"\.unit\.(?:image\..*|object_store\..*|cloud\.test_(?:image|object).*|test_(?:proxy|resource|utils).*)$"
)


def need(*modules: str) -> None:
    """Raise :class:`Unavailable` unless the modules can be imported."""
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            apart = "; distributions package it apart (Debian: libpython3-testsuite)" * module.startswith("test.")
            raise Unavailable(f"{module} is not installed for {sys.executable}{apart}")


def needing(*modules: str, place: Callable[[], Path | None] = lambda: None) -> Callable[[], Path | None]:
    """What finds the place of a suite that needs these modules."""

    def find() -> Path | None:
        need(*modules)
        return place()

    return find


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


def find_data(package: str, project: str) -> Callable[[], Path]:
    """What finds a directory from which the tests of an installed package find their data."""

    def find() -> Path:
        found = importlib.util.find_spec(package)
        assert found is not None and found.origin is not None
        return linked(CACHE / f"{project}-{importlib.metadata.version(project)}", data_of(Path(found.origin).parent))

    return find


def find_glance_tests(name: str) -> Callable[[], Path]:
    """What finds a directory from which the tests of an environment's glance find their data."""

    def find() -> Path:
        reason = ENVIRONMENTS[name].missing()
        if reason:
            raise Unavailable(reason)
        code = "import importlib.util as u; print(u.find_spec('glance').submodule_search_locations[0])"
        python = ENVIRONMENTS[name].python()
        folder = subprocess.check_output([python, "-c", code], timeout=60, stdin=subprocess.DEVNULL, text=True)
        return linked(CACHE / name, data_of(Path(folder.strip())))

    return find


#: What the suites of the clients import.
_UNIT_TESTS = ("ddt", "fixtures", "requests_mock", "testscenarios", "testtools")
_CPYTHON = ("test.test_subprocess", "test.test_popen", "test.support")
_OSLO = needing("oslo_concurrency.tests.unit.test_processutils", "oslotest", "fixtures", "eventlet")
_GLANCE_STORE = needing(
    "glance_store", "oslotest", *_UNIT_TESTS, "boto3", "swiftclient", "cinderclient", "os_brick", "oslo_vmware",
    place=find_data("glance_store", "glance_store"),
)  # fmt: skip
_GLANCECLIENT = needing("glanceclient.tests.unit.test_http", *_UNIT_TESTS)
_OPENSTACKSDK = needing(
    "openstack.tests.unit.base", *_UNIT_TESTS, "oslotest", place=find_data("openstack", "openstacksdk")
)
_OPENSTACKCLIENT = needing("openstackclient.tests.unit.utils", *_UNIT_TESTS)
_SWIFTCLIENT = needing(
    "swiftclient", "keystoneauth1", "requests_mock", "testtools",
    place=lambda: tests_in_sdist("python-swiftclient", "test"),
)  # fmt: skip
# With upstream's settings of pytest: warnings are errors in urllib3's tests.
_URLLIB3 = needing(
    "urllib3", "h2", "httpx", "hypercorn", "pytest_timeout", "quart_trio", "trustme",
    place=lambda: tests_in_sdist("urllib3", "test", "dummyserver", "pyproject.toml"),
)  # fmt: skip
_REQUESTS = needing(
    "requests", "httpbin", "pytest_httpbin", "pytest_mock", "socks", "trustme",
    place=lambda: tests_in_sdist("requests", "tests", "pyproject.toml", "requirements-dev.txt"),
)  # fmt: skip
_EVENTLET = needing("eventlet", "pytest", place=lambda: tests_in_sdist("eventlet", "tests"))

GREEN = ("green_communicate", "green_wait", "green_pipe")
CPYTHON = ("test.test_subprocess", "test.test_popen")
EVENTLET = tuple(
    f"tests.{name}_test"
    for name in (
        "subprocess", "greenio", "os", "green_select", "patcher", "tpool", "api", "convenience", "socket", "ssl",
        "wsgi", "websocket",
    )
)  # fmt: skip
#: For pytest: no settings of a directory above, and names from here on.
_ALONE = ("-c", "/dev/null", "--rootdir", ".")
#: How the suites run that do so natively and green: the end of their names, and what comes first.
_MODES = (("native", ""), ("green", "monkey_patch"))
OSLO = ("oslo_concurrency.tests.unit.test_processutils", "oslo_concurrency.tests.unit.test_lockutils")
GLANCECLIENT = packaged_tests("glanceclient")
OPENSTACKSDK = packaged_tests("openstack")
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
#: other hosts. Those of what is known of servers' HTTP/2 hang now and then, and send nothing by fastio's patches. Those
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
#: fastio's patches of urllib3
UPLOADS = ("urllib3_blocks", "urllib3_sendfile")
STORES = packaged_tests("glance_store")
#: those of fastio's patches of glance_store that its unit tests run through
STORE_PATCHES = (
    "store_filesystem", "store_http", "store_swift", "store_s3", "store_rbd", "store_cinder", "image_hashing",
)  # fmt: skip
STORES_REPLACED = tuple(f"glance_store._drivers.{name}" for name in ("filesystem", "http", "swift.store"))
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
#: Those that a release was the first to have.
GLANCE_UNIT_SINCE = {"33": ("glance.tests.unit.async_.flows.test_parallel_api_image_import",)}
GLANCE_FUNCTIONAL = (
    # No test, but it registers options that the tests take to be there.
    "glance.db.migration",
    *(
        f"glance.tests.functional.{name}"
        for name in (
            "test_cache_middleware", "test_gzip_middleware", "v2.test_cache_api", "v2.test_image_decompression",
            "v2.test_images", "v2.test_images_import_locking", "v2.test_multi_store_images",
            "v2.test_parallel_store_import",
        )
    ),
)  # fmt: skip
GLANCE_PATCHES = ("store_filesystem", "image_hashing")


def glance_suites(environment: str, release: str) -> tuple[Suite, ...]:
    """Those of one release; with release 32 its tests monkey patch, as glance-api itself does."""
    common: dict[str, Any] = {
        # Before fastio, as in the service.
        "prelude": "glance.tests",
        "environment": environment,
        "find": find_glance_tests(environment),
        "exchanges": False,
    }
    return (
        Suite(
            f"glance-{release}-unit", (*GLANCE_UNIT, *GLANCE_UNIT_SINCE.get(release, ())), at_least=900,
            replaced=("glance_store._drivers.rbd",), **common,
        ),
        Suite(f"glance-{release}-functional", GLANCE_FUNCTIONAL, applied=GLANCE_PATCHES, at_least=80, **common),
    )  # fmt: skip


def http_suites() -> tuple[Suite, ...]:
    """Those of requests, natively and green, and of urllib3.

    The latter natively: its servers run on trio, which cannot be imported after eventlet's monkey_patch().
    """
    common: dict[str, Any] = {
        "modules": (), "exchanges": False, "applied": UPLOADS,
        # Nothing there uploads a file of known length, as urllib3_sendfile takes it.
        "taken": UPLOADS[:1],
        "constants": {"fastio.patches.urllib3._requests:LEAST": 1},
    }  # fmt: skip
    return (
        Suite("urllib3-native", pytest=URLLIB3, find=_URLLIB3, at_least=1000, **common),
        *(
            Suite(f"requests-{mode}", pytest=REQUESTS, prelude=prelude, find=_REQUESTS, at_least=500, **common)
            for mode, prelude in _MODES
        ),
    )


def client_suites() -> tuple[Suite, ...]:
    """Those of glanceclient, openstacksdk, openstackclient and swiftclient, natively and green."""
    found = []
    for mode, prelude in _MODES:
        found += [
            Suite(
                f"glanceclient-{mode}", GLANCECLIENT, prelude=prelude, find=_GLANCECLIENT, exchanges=False,
                applied=("glanceclient_hashing",),
            ),
            Suite(
                f"openstacksdk-{mode}", OPENSTACKSDK, prelude=prelude, find=_OPENSTACKSDK, exchanges=False,
                applied=("openstacksdk_download", "openstacksdk_hashing"), at_least=400,
            ),
            Suite(
                f"openstackclient-{mode}", OPENSTACKCLIENT, prelude=prelude, find=_OPENSTACKCLIENT, exchanges=False,
                at_least=100,
            ),
            Suite(
                f"swiftclient-{mode}", SWIFTCLIENT, prelude=prelude, find=_SWIFTCLIENT, exchanges=False,
                replaced=("swiftclient.client",),
            ),
        ]  # fmt: skip
    return tuple(found)


SUITES = {
    suite.name: suite
    for suite in (
        Suite("cpython-native", CPYTHON, applied=("communicate", "wait"), find=needing(*_CPYTHON)),
        Suite(
            "cpython-green", CPYTHON, prelude="monkey_patch", applied=GREEN, at_most=20,
            never_hang=("communicate", "broken_pipe"), find=needing(*_CPYTHON, "eventlet"),
        ),
        Suite(
            "eventlet", EVENTLET, exclusive=True, find=_EVENTLET,
            pytest=(*_ALONE, *(f"{name.replace('.', '/')}.py" for name in EVENTLET)),
            # as upstream's conftest.py sets it
            env={"EVENTLET_TESTS": "1"},
            applied=(*GREEN, "green_sendall"),
        ),
        # Upstream's own runs say TEST_EVENTLET=0 for this one, but its tests/__init__.py (7.6) takes any value that is
        # not empty as yes.
        Suite("oslo-native", OSLO, env={"TEST_EVENTLET": ""}, applied=("communicate", "wait"), find=_OSLO),
        Suite(
            "oslo-green", (*OSLO, "oslo_concurrency.tests.unit.test_lockutils_eventlet"),
            prelude="oslo_concurrency.tests", env={"TEST_EVENTLET": "1"}, applied=GREEN, find=_OSLO,
        ),
        *(
            Suite(
                f"glance_store-{mode}", STORES, prelude=prelude, applied=STORE_PATCHES, replaced=STORES_REPLACED,
                find=_GLANCE_STORE,
            )
            for mode, prelude in _MODES
        ),
        *client_suites(),
        *http_suites(),
        *glance_suites("glance32", "32"),
        *glance_suites("glance33", "33"),
    )
}  # fmt: skip
