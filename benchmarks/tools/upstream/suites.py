"""The upstream suites: which modules, what comes before them, and what a patched run must show."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.backends.glance_environments import ENVIRONMENTS

#: Holds unpacked sdists between runs; the directory is ignored by git.
CACHE = Path(__file__).resolve().parents[3] / "build" / "upstream"

#: Seconds for fetching an sdist.
DOWNLOAD_LIMIT = 300


class Unavailable(Exception):
    """This Python, or what is installed in it, can not run the suite; the message says what is missing."""


@dataclass(frozen=True)
class Suite:
    """One set of upstream tests in one mode."""

    name: str
    #: test modules, loaded in this order
    modules: tuple[str, ...]
    #: what comes before ``fastio.patch()``: nothing, ``"monkey_patch"``, or the name of a module to import
    prelude: str = ""
    env: dict[str, str] = field(default_factory=dict)
    #: whether bare functions are tests too, as pytest has it
    functions: bool = False
    #: whether the tests hold times so short that nothing else may run beside them
    exclusive: bool = False
    #: patches that must be applied when the patched run ends
    applied: tuple[str, ...] = ()
    #: modules that the tests load anew, or whose classes they give other values: nothing follows from the patches there
    replaced: tuple[str, ...] = ()
    #: how many tests must pass when patched: a suite that finds nothing of what it needs is the same as stock, too
    at_least: int = 0
    #: how many tests may not pass when patched, where fastio is to be more correct than stock
    at_most: int | None = None
    #: parts of names of tests that may not hang when patched
    never_hang: tuple[str, ...] = ()
    #: finds what the suite needs and returns the directory to run in (also first on the path), or None for a fresh one
    find: Callable[[], Path | None] = lambda: None
    #: an environment of :mod:`benchmarks.backends.glance_environments` whose Python runs it, instead of this one
    environment: str = ""
    #: whether something must have gone through a child process's pipes
    exchanges: bool = True


def need(*modules: str) -> None:
    """Raise :class:`Unavailable` unless the modules can be imported."""
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise Unavailable(f"{module} is not installed for {sys.executable}")


def need_cpython_tests() -> None:
    try:
        need("test.test_subprocess", "test.test_popen", "test.support")
    except Unavailable as error:
        raise Unavailable(f"{error}; distributions package it apart (Debian: libpython3-testsuite)") from None


def need_cpython_tests_and_eventlet() -> None:
    need_cpython_tests()
    need("eventlet")


def need_oslo_tests() -> None:
    need("oslo_concurrency", "oslotest", "fixtures", "eventlet")
    need("oslo_concurrency.tests.unit.test_processutils")


def fetch_eventlet_tests() -> Path:
    """The directory that holds the ``tests`` package of the installed eventlet's sdist."""
    need("eventlet", "pytest")
    return fetch_tests("eventlet", "tests")


def fetch_swiftclient_tests() -> Path:
    """The directory that holds the ``test`` package of the installed swiftclient's sdist."""
    need("swiftclient", "keystoneauth1", "requests_mock", "testtools")
    return fetch_tests("python-swiftclient", "test")


def fetch_tests(project: str, package: str) -> Path:
    """The directory that holds ``package`` of the sdist of the installed release, fetched once.

    Only that is unpacked, so that the project under test stays the installed one.
    """
    version = importlib.metadata.version(project)
    target = CACHE / f"{project}-{version}"
    if not (target / package).is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            archive = download_sdist(project, version, Path(scratch))
            with tarfile.open(archive) as tar:
                top = tar.getnames()[0].split("/")[0]
                members = [member for member in tar.getmembers() if member.name.startswith(f"{top}/{package}/")]
                safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                tar.extractall(scratch, members=members, **safely)
            # Another run may have been faster.
            with contextlib.suppress(OSError):
                os.rename(Path(scratch) / top, target)
    return target


def download_sdist(project: str, version: str, directory: Path) -> Path:
    """Fetch the sdist of a release into ``directory``; returns it.

    :raises Unavailable: if there is none, or it takes too long
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", project, "--no-deps"]
    try:
        subprocess.run(
            [*command, "--dest", str(directory), f"{project}=={version}"],
            check=True, timeout=DOWNLOAD_LIMIT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"no sdist of {project} {version}: {error.stderr.strip()[-500:]}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"no sdist of {project} {version} within {DOWNLOAD_LIMIT} s") from None
    return next(directory.glob("*.tar.gz"))


def packaged_tests(package: str) -> tuple[str, ...]:
    """The modules of unit tests in the installed package; which there are differs between its releases."""
    found = importlib.util.find_spec(package)
    return () if found is None or found.origin is None else tests_of(Path(found.origin).parent)


def tests_of(folder: Path) -> tuple[str, ...]:
    """The modules of unit tests in a package's directory."""
    files = sorted((folder / "tests" / "unit").rglob("test_*.py"))
    return tuple(".".join(file.relative_to(folder.parent).with_suffix("").parts) for file in files)


def find_glance_store_tests() -> Path:
    """A directory from which glance_store's tests find their data by the relative path that they use."""
    need("glance_store", "oslotest", "requests_mock", "testscenarios", "ddt", "fixtures")
    need("boto3", "swiftclient", "cinderclient", "os_brick", "oslo_vmware")
    found = importlib.util.find_spec("glance_store")
    assert found is not None and found.origin is not None
    installed = Path(found.origin).parent / "tests" / "etc"
    if not installed.is_dir():
        raise Unavailable(f"{installed} is not there: this glance_store was packaged without its tests' data")
    target = CACHE / f"glance_store-{importlib.metadata.version('glance_store')}"
    link_glance_store_data(target, installed)
    return target


def link_glance_store_data(target: Path, data: Path) -> None:
    """Make ``target`` a directory in which glance_store's tests find their ``data`` by the relative path they use."""
    # Without an __init__.py beside it the installed package is the one that is imported.
    link = target / "glance_store" / "tests" / "etc"
    link.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        link.symlink_to(data)


def need_glanceclient_tests() -> None:
    need("glanceclient", "ddt", "fixtures", "requests_mock", "testscenarios", "testtools")
    need("glanceclient.tests.unit.test_http")


def link_glance_data(target: Path, package: Path) -> None:
    """Make ``target`` a directory in which glance's tests find the data of the ``package`` by relative paths.

    :raises Unavailable: if it was packaged without
    """
    for name in ("etc", "var"):
        data = package / "tests" / name
        if not data.is_dir():
            raise Unavailable(f"{data} is not there: this glance was packaged without its tests' data")
        # Without an __init__.py beside it the installed package is the one that is imported.
        link = target / "glance" / "tests" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists() or link.resolve() != data.resolve():
            link.unlink(missing_ok=True)
            link.symlink_to(data)


def find_glance_tests(name: str) -> Callable[[], Path]:
    """What finds a directory from which the tests of an environment's glance find their data by relative paths."""

    def find() -> Path:
        reason = ENVIRONMENTS[name].missing()
        if reason:
            raise Unavailable(reason)
        code = "import importlib.util as u; print(u.find_spec('glance').submodule_search_locations[0])"
        done = subprocess.run(
            [ENVIRONMENTS[name].python(), "-c", code], check=True, timeout=60, stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
        )  # fmt: skip
        link_glance_data(CACHE / name, Path(done.stdout.strip()))
        return CACHE / name

    return find


GREEN = ("green_communicate", "green_wait", "green_pipe")
CPYTHON = ("test.test_subprocess", "test.test_popen")
OSLO = ("oslo_concurrency.tests.unit.test_processutils", "oslo_concurrency.tests.unit.test_lockutils")
GLANCECLIENT = packaged_tests("glanceclient")
SWIFTCLIENT = tuple(
    f"test.unit.test_{name}"
    # The last one loads the client anew for each of its tests, so the others come before it.
    for name in ("authv1", "command_helpers", "multithreading", "service", "shell", "utils", "swiftclient")
)
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
        Suite(f"glance-{release}-unit", GLANCE_UNIT, at_least=900, replaced=("glance_store._drivers.rbd",), **common),
        Suite(f"glance-{release}-functional", GLANCE_FUNCTIONAL, applied=GLANCE_PATCHES, at_least=80, **common),
    )


def client_suites() -> tuple[Suite, ...]:
    """glanceclient's and swiftclient's, natively and green."""
    found = []
    for mode, prelude in (("native", ""), ("green", "monkey_patch")):
        found += [
            Suite(
                f"glanceclient-{mode}", GLANCECLIENT, prelude=prelude, find=need_glanceclient_tests, exchanges=False,
                applied=("glanceclient_download", "glanceclient_hashing"),
            ),
            Suite(
                f"swiftclient-{mode}", SWIFTCLIENT, prelude=prelude, find=fetch_swiftclient_tests, exchanges=False,
                replaced=("swiftclient.client",),
            ),
        ]  # fmt: skip
    return tuple(found)


SUITES = {
    suite.name: suite
    for suite in (
        Suite("cpython-native", CPYTHON, applied=("communicate", "wait"), find=need_cpython_tests),
        Suite(
            "cpython-green",
            CPYTHON,
            prelude="monkey_patch",
            applied=GREEN,
            at_most=20,
            never_hang=("communicate", "broken_pipe"),
            find=need_cpython_tests_and_eventlet,
        ),
        Suite(
            "eventlet",
            tuple(
                f"tests.{name}_test"
                for name in (
                    "subprocess",
                    "greenio",
                    "os",
                    "green_select",
                    "patcher",
                    "tpool",
                    "api",
                    "convenience",
                    "socket",
                    "ssl",
                    "wsgi",
                    "websocket",
                )
            ),
            # as upstream's conftest.py sets it
            env={"EVENTLET_TESTS": "1"},
            functions=True,
            exclusive=True,
            applied=(*GREEN, "green_sendall", "green_wsgi_chunked"),
            find=fetch_eventlet_tests,
        ),
        # Upstream's own runs say TEST_EVENTLET=0 for this one, but its tests/__init__.py (7.6) takes any value that is
        # not empty as yes.
        Suite("oslo-native", OSLO, env={"TEST_EVENTLET": ""}, applied=("communicate", "wait"), find=need_oslo_tests),
        Suite(
            "oslo-green",
            (*OSLO, "oslo_concurrency.tests.unit.test_lockutils_eventlet"),
            prelude="oslo_concurrency.tests",
            env={"TEST_EVENTLET": "1"},
            applied=GREEN,
            find=need_oslo_tests,
        ),
        Suite(
            "glance_store-native",
            STORES,
            applied=STORE_PATCHES,
            replaced=STORES_REPLACED,
            find=find_glance_store_tests,
        ),
        Suite(
            "glance_store-green",
            STORES,
            prelude="monkey_patch",
            applied=STORE_PATCHES,
            replaced=STORES_REPLACED,
            find=find_glance_store_tests,
        ),
        *client_suites(),
        *glance_suites("glance32", "32"),
        *glance_suites("glance33", "33"),
    )
}
