"""Shared by all tests.

The suite is run twice: with ``TEST_EVENTLET=1`` everything is monkey patched before anything else is imported.
``TEST_DISABLED`` names the patches that are switched off in all tests, because they are not for the releases here.
"""

import os
from collections.abc import Generator

if os.environ.get("TEST_EVENTLET", "0") == "1":
    import gc
    import warnings

    warnings.filterwarnings("ignore", r"\s*Eventlet is deprecated")
    import eventlet

    eventlet.monkey_patch()
    # The native Popen, if nothing refers to it any more, is one of fastio's targets until the collector has been there.
    gc.collect()
else:
    import contextlib

    with contextlib.suppress(ImportError):
        # Before eventlet: dnspython up to 2.3 imports it, at a moment when eventlet has put the green socket in place
        # of the real one, and urllib3 would keep that.
        import requests  # noqa: F401

import importlib
import importlib.util
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import config, counters
from fastio.concurrency import budget
from fastio.patching import hooks, state
from fastio.report import Outcome, Report
from tests.targets import attributes, import_targets

#: The type of the fixture ``run_python``.
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]
#: Every test has a time limit.
pytest_plugins = ["benchmarks.tools.limits"]

#: The tests run in a process in which eventlet.monkey_patch() was called.
MONKEY_PATCHED = os.environ.get("TEST_EVENTLET", "0") == "1"
#: Tests of code that is the same in both modes, run natively only: they read the repository, settings or traces,
#: recognise code, use native threads and sockets, or run programs and services in separate processes.
NATIVELY_ONLY = (
    "backends", "benchmarks", "packaging", "trace/analysis", "upstream", "concurrency/test_budget.py",
    "glance/test_deployment.py", "glance/test_faults.py", "glance/test_glance_sendfile.py",
    "glance/test_slow_stores.py", "glance/test_soak.py", "glance/test_trace.py", "glance/test_trace_faults.py",
    "glance/test_trace_hosts.py", "glance/test_trace_uwsgi.py", "io/test_lowwater.py", "io/test_mapped.py",
    "io/test_scratch.py", "io/test_transfers.py", "patches/test_communicate_again.py",
    "patches/test_native_popen_in_a_hub.py", "patches/test_pieces.py",
    "patching/test_distributions.py", "patching/test_known_code.py", "patching/test_places.py",
    "patching/test_registry.py", "properties/test_tables_properties.py", "stores/test_documented_sizes.py",
    "test_check.py", "test_cli.py", "test_config.py", "test_denied.py", "test_guarantees.py", "test_hub.py",
    "test_launcher.py", "test_layers.py", "test_limits.py", "test_locks.py", "test_matrix.py", "test_new_releases.py",
    "test_operators.py", "test_opts.py", "test_platforms.py", "test_ranges.py", "test_readme.py", "test_recipe.py",
    "test_reference.py", "test_report.py", "test_results.py", "test_run_dir.py", "test_tables.py", "test_terminal.py",
    "test_tutorials.py", "test_unknown.py", "trace/test_anywhere.py", "trace/test_otlp.py", "trace/test_values.py",
)  # fmt: skip
collect_ignore = [*NATIVELY_ONLY] if MONKEY_PATCHED else []
HAS_EVENTLET = importlib.util.find_spec("eventlet") is not None
HAS_OSLO = importlib.util.find_spec("oslo_concurrency") is not None

# Before any test module is imported: a property takes the settings of that moment.
if importlib.util.find_spec("hypothesis") is not None:
    importlib.import_module("tests.hypothesis_profile")

needs_eventlet = pytest.mark.skipif(not HAS_EVENTLET, reason="eventlet is not installed")
needs_oslo = pytest.mark.skipif(not HAS_OSLO, reason="oslo.concurrency is not installed")

#: Decorator: the limit of tests that start real services, whose own limits are shorter.
with_services = pytest.mark.limit(600)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell gives it to what runs in its background, and every child of a test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: The values of the attributes when the last test ended.
_stood: dict[str, Any] = {}
_PHASES = pytest.StashKey[dict[str, pytest.TestReport]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", r"ignore:\s*Eventlet is deprecated")
    config.addinivalue_line(
        "markers",
        "fast_path(*counters): the counters that must have moved in a test that uses `patched`; any one by default",
    )
    config.addinivalue_line(
        "markers", "no_fast_path(reason): the test uses `patched` but is meant not to reach the fast path"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of the monkey-patched run what only runs a fresh Python, in which nothing is patched either way."""
    if MONKEY_PATCHED:
        same = {item for item in items if _only_fresh(item)}
        config.hook.pytest_deselected(items=same)
        items[:] = [item for item in items if item not in same]


def _only_fresh(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or "MONKEY_PATCHED" in item.function.__code__.co_names:
        return False
    given = item.callspec.params if hasattr(item, "callspec") else ()
    needed = {name for asked in item._fixtureinfo.argnames if asked not in given for name in _made_of(item, asked)}
    return "run_python" in needed and needed <= {"run_python", "tmp_path"}


def _made_of(item: pytest.Function, name: str) -> set[str]:
    """The fixtures of which this one is made, if it is made of ``run_python`` and ``tmp_path`` alone; else itself."""
    definitions = item._fixtureinfo.name2fixturedefs.get(name, ())
    if name in ("run_python", "tmp_path") or not definitions or not definitions[-1].argnames:
        return {name}
    found = {each for asked in definitions[-1].argnames for each in _made_of(item, asked)}
    return found if found <= {"run_python", "tmp_path"} else {name}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    item.stash.setdefault(_PHASES, {})[report.when] = report
    return report


@pytest.fixture(autouse=True)
def leaves_nothing_patched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test may leave anything of fastio in the process; the operator's environment does not reach the tests.

    Every test sees its own counts.
    """
    counters.reset()
    for name in [name for name in os.environ if name == "FASTIO" or name.startswith("FASTIO_")]:
        monkeypatch.delenv(name)
    if os.environ.get("TEST_DISABLED"):
        monkeypatch.setenv("FASTIO_DISABLED", os.environ["TEST_DISABLED"])
    # Patches of earlier tests are reported otherwise than patches that were never asked for.
    state.STATE.__init__()  # type: ignore[misc]
    before = dict(_stood) or attributes()
    yield
    # Settings outlive unpatch(); the next test has its own environment's.
    config.put_in_force(None)
    config.only_reporting = False
    # Looking at every target takes longer than many a test. These outcomes are only of what is wanted or switched on.
    touched = state.STATE.wanted or any(each.layers for each in hooks._hooks.values())
    left = [
        f"{entry.name} ({entry.target}): {entry.outcome.value}"
        for entry in (fastio.status().entries if touched else ())
        if entry.outcome in (Outcome.APPLIED, Outcome.WAITING, Outcome.CHANGED)
    ]
    after = attributes()
    changed = [key for key, value in before.items() if after.get(key, value) is not value]
    left += [f"{key} is not what it was before the test" for key in changed]
    _stood.clear()
    if left:
        fastio.unpatch()
        pytest.fail("the test left patches behind:\n  " + "\n  ".join(left))
    _stood.update(after)


@pytest.fixture
def fastio_settings() -> dict[str, Any]:
    """The settings that ``patched`` uses: the defaults, unless the test is parametrized with ``fastio_settings``."""
    return {}


@pytest.fixture
def patched(
    request: pytest.FixtureRequest, fastio_settings: dict[str, Any], starts_without_a_hub: bool
) -> Iterator[Report]:
    """Everything of the default that is installed is patched, strictly, during the test; the counters start at zero.

    The test fails if no counter has moved at its end, for then the fast path did not really run, and
    it would have tested upstream. ``@pytest.mark.fast_path("bytes_in")`` names the counters that must have moved,
    ``@pytest.mark.no_fast_path(reason=...)`` is for tests of what is left to upstream.
    """
    import_targets()
    if starts_without_a_hub:
        hide_hub()
    counters.reset()
    report = fastio.patch(strict=True, **fastio_settings)
    try:
        yield report
    finally:
        fastio.unpatch()
    phases = request.node.stash.get(_PHASES, {})
    if "call" in phases and phases["call"].passed:
        require_fast_path(request.node)


def require_fast_path(node: pytest.Item) -> None:
    """Fail unless the counters that ``node`` asks for by its markers have moved since they were reset."""
    if node.get_closest_marker("no_fast_path"):
        return
    marker = node.get_closest_marker("fast_path")
    counts = counters.snapshot()
    if marker is not None and marker.args:
        missing = [name for name in marker.args if not counts[name]]
    else:
        missing = [] if any(counts.values()) else list(counts)
    if missing:
        pytest.fail(f"the fast path did not run: {', '.join(missing)} did not move in {counts}")


def hide_hub() -> None:
    """Have no hub in this thread until one is asked for, as in a process of native threads; it is the same then.

    The tests of one process share a thread, and with a hub the native Popen is left to upstream.
    """
    hubs = sys.modules.get("eventlet.hubs")
    if hubs is not None and not MONKEY_PATCHED:
        hub = vars(hubs._threadlocal).pop("hub", None)
        if hub is not None:
            hubs._threadlocal.Hub = lambda: hub


@pytest.fixture(autouse=True)
def starts_without_a_hub() -> bool:
    """No test has the hub of the one before."""
    hide_hub()
    return True


@pytest.fixture
def standing_budget(monkeypatch: pytest.MonkeyPatch) -> budget.Budget:
    """The budget of all transfers, whose time stands still: a busy machine does not have it forget who moves bytes."""
    shared = budget.Budget(lambda: 0.0)
    monkeypatch.setattr(budget, "shared", shared)
    return shared


@pytest.fixture
def green_subprocess() -> Any:
    """``eventlet.green.subprocess``, in a process that need not be monkey patched."""
    return pytest.importorskip("eventlet.green.subprocess")


@pytest.fixture
def green(green_subprocess: Any) -> Any:
    """The green subprocess as a program sees it: in a monkey-patched process that is ``subprocess``."""
    return subprocess if MONKEY_PATCHED else green_subprocess


@pytest.fixture(params=["subprocess", "eventlet.green.subprocess"])
def popen_module(request: pytest.FixtureRequest) -> Any:
    """The modules whose ``Popen`` is patched, one after the other."""
    return pytest.importorskip(request.param)


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> dict[str, Any]:
    """Options of ``run_python`` for a Python that has fastio and the standard library, nothing else."""
    root = tmp_path / "bare"
    root.mkdir()
    (root / "fastio").symlink_to(pathlib.Path(fastio.__file__).parent)
    (root / "tests").symlink_to(pathlib.Path(__file__).parent)
    return {"options": ("-S",), "env": {"PYTHONPATH": str(root)}}


@pytest.fixture
def run_python(tmp_path: pathlib.Path) -> RunPython:
    """``run_python(code, *arguments, env={}, options=[], check=True)`` runs ``code`` in a fresh Python.

    Nothing of fastio or eventlet is in it but what ``code`` imports, and no ``FASTIO…`` variable but those in ``env``
    and what ``TEST_DISABLED`` and the marker ``also`` say.
    """

    def run(
        code: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
        path: tuple[str, ...] = (),
        check: bool = True,
        timeout: float = 100,
    ) -> subprocess.CompletedProcess[str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FASTIO", "PYTHONWARNINGS", "TEST_EVENTLET", "COV_"))
        }
        if os.environ.get("TEST_DISABLED"):
            environ["FASTIO_DISABLED"] = os.environ["TEST_DISABLED"]
        root = pathlib.Path(fastio.__file__).parent.parent
        environ["PYTHONPATH"] = os.pathsep.join([*path, str(root), *filter(None, [environ.get("PYTHONPATH")])])
        command = [sys.executable, *options, "-c", textwrap.dedent(code), *arguments]
        result = subprocess.run(
            command, env={**environ, **(env or {})}, cwd=tmp_path, capture_output=True, text=True, timeout=timeout
        )
        if check and result.returncode:
            pytest.fail(f"exit status {result.returncode} of\n{code}\n{result.stdout}\n{result.stderr}")
        return result

    return run


_BEFORE = "import faulthandler; faulthandler.dump_traceback_later(90, exit=True)\n"
_GREEN = "import eventlet; eventlet.monkey_patch()\n"


def uwsgi() -> list[str]:
    """uWSGI beside this Python, or that of the benchmarks' glance, with the environment that it needs."""
    python = pathlib.Path(os.environ.get("BENCHMARK_GLANCE33", sys.executable))
    found = shutil.which("uwsgi", path=str(python.parent))
    if found is None:
        pytest.skip("uwsgi is not installed")
    root = pathlib.Path(fastio.__file__).parents[1]
    return [found, "--virtualenv", str(python.parents[1]), "--pythonpath", str(root)]


@pytest.fixture(params=["native", "green"])
def in_mode(request: pytest.FixtureRequest, run_python: Callable[..., Any]) -> Callable[..., str]:
    """``in_mode(code, *arguments)`` runs ``code`` in a fresh Python, natively and monkey patched; returns its output.

    ``sys.argv[1]`` says which; the arguments come behind it.
    """
    if MONKEY_PATCHED:
        pytest.skip("the processes are fresh ones, the same as without TEST_EVENTLET")
    before = _BEFORE
    if request.param == "green":
        pytest.importorskip("eventlet")
        before += _GREEN

    def run(code: str, *arguments: str) -> str:
        done = run_python(before + textwrap.dedent(code), request.param, *arguments, options=("-W", "ignore"))
        return str(done.stdout)

    return run


@pytest.fixture(params=["poll", "selects", "asyncio"])
def in_hub(request: pytest.FixtureRequest, run_python: Callable[..., Any]) -> Callable[..., str]:
    """``in_hub(code)`` runs ``code`` in a fresh monkey-patched Python with each hub besides epoll; returns its output.

    No greenlet may be left in the hub at its end.
    """
    if MONKEY_PATCHED:
        pytest.skip("the processes are fresh ones, the same as without TEST_EVENTLET")
    pytest.importorskip(f"eventlet.hubs.{request.param}")

    def run(code: str) -> str:
        after = "\nhub = eventlet.hubs.get_hub()\nprint(type(hub).__module__, *hub.get_readers(), *hub.get_writers())\n"
        done = run_python(
            _BEFORE + _GREEN + textwrap.dedent(code) + after,
            env={"EVENTLET_HUB": request.param},
            options=("-W", "ignore"),
        )
        output, _, left = done.stdout.rstrip("\n").rpartition("\n")
        assert left == f"eventlet.hubs.{request.param}"
        return str(output)

    return run
