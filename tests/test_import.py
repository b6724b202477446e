"""The traces of importing and patching in a process: few modules, no threads, no descriptors, no children."""

import pathlib
import pkgutil
import textwrap
from typing import Any

import pytest

import fastio
from tests.conftest import RunPython, needs_eventlet

ROOT = pathlib.Path(fastio.__file__).parent

#: modules that ``import fastio`` must never load
HEAVY = {
    "eventlet", "glance_store", "oslo_config", "oslo_concurrency", "wrapt", "packaging", "subprocess", "logging",
    "threading", "asyncio", "socket", "selectors", "select", "json", "email", "inspect", "dataclasses",
    "importlib.metadata", "importlib.resources", "urllib", "tempfile", "random", "hashlib", "platform",
    "argparse", "ctypes",
}  # fmt: skip


def modules() -> list[str]:
    """Every module of fastio but those that do something when they are imported."""
    found = [info.name for info in pkgutil.walk_packages([str(ROOT)], "fastio.")]
    return sorted(set(found) - {"fastio.auto", "fastio.__main__"})


def loaded(run_python: RunPython, code: str, **options: Any) -> set[str]:
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    return set(run_python(program, **options).stdout.split())


def test_import_fastio_loads_next_to_nothing(run_python: RunPython, bare: dict[str, Any]) -> None:
    found = loaded(run_python, "import fastio", **bare)
    assert found & HEAVY == set()
    assert {name for name in found if name.startswith("fastio")} <= {"fastio", "fastio.version"}
    assert {name for name in found if not name.startswith("fastio")} <= {"__future__"}


#: Modules that patch() used to load, and that take long to load.
SLOW = {
    "asyncio", "email", "importlib.metadata", "importlib.resources", "packaging", "wrapt", "logging", "inspect",
    "dataclasses", "hashlib", "ast", "platform", "tempfile", "urllib.request", "ssl", "argparse",
}  # fmt: skip


def test_patch_loads_few_modules(run_python: RunPython) -> None:
    """Its imports take its time; eventlet and glance_store may be there, and are not imported."""
    found = loaded(run_python, "import fastio; fastio.patch()")
    assert found & (SLOW | {"_ast", "json", "selectors", "signal", "subprocess", "threading", "weakref"}) == set()
    assert len({name for name in found if name.partition(".")[0] != "fastio"}) <= 40
    assert len(found) <= 65


def test_a_child_loads_next_to_nothing(run_python: RunPython) -> None:
    """Under ``fastio run --children``, until it imports a library that fastio patches."""
    found = loaded(run_python, "from fastio import children; children.begin(False)")
    assert {name for name in found if not name.startswith("fastio")} <= {"__future__"}


#: Only one patch of subprocess, and none of eventlet, which imports copies of it in its place.
LATE = """
import sys
import fastio
fastio.patch("communicate")
assert fastio.status().outcome("communicate") == "waiting for import" and "subprocess" not in sys.modules
{import_it}
import subprocess
from fastio.patching import hooks, holders, registry
(target,) = registry.get("communicate").targets
print(fastio.status().outcome("communicate"), hooks.get(target).attribute.owner is holders.native_popen())
"""


@pytest.mark.parametrize(
    "import_it", ["import subprocess", pytest.param("import eventlet.green.subprocess", marks=needs_eventlet)]
)
def test_subprocess_is_patched_once_it_is_imported(import_it: str, run_python: RunPython) -> None:
    assert run_python(LATE.format(import_it=import_it)).stdout == "applied True\n"


def test_a_program_under_fastio_run_waits_for_few_modules(run_python: RunPython) -> None:
    """Modules of the command itself, before the program takes its place."""
    code = """
        import os
        from fastio import cli
        os.execve = lambda *_: None
        cli.main(["run", "--chunk-size", "8KiB", "--", "true"])
        """
    assert loaded(run_python, textwrap.dedent(code)) & (SLOW | {"json", "pathlib", "shutil", "textwrap"}) == set()


def bare_modules() -> list[str]:
    """Those that are imported where what they are for is not installed."""
    only_with = ("fastio.concurrency.hub_wait", "fastio.io.http_bodies", "fastio.drivers.")
    return [name for name in modules() if not name.startswith(only_with)]


def test_every_module_can_be_imported_without_the_libraries(run_python: RunPython, bare: dict[str, Any]) -> None:
    names = bare_modules()
    assert "fastio.patches.eventlet.green_pipe" in names
    code = f"import importlib\nfor name in {names!r}:\n    importlib.import_module(name)"
    found = loaded(run_python, code, **bare)
    assert set(names) <= found
    assert {name.partition(".")[0] for name in found} & {"eventlet", "oslo_concurrency", "wrapt"} == set()


def test_imports_and_patches_warn_of_nothing(run_python: RunPython) -> None:
    """Deprecated things of the standard library would show here first."""
    code = f"""
        import importlib, subprocess
        for name in {bare_modules()!r}:
            importlib.import_module(name)
        import fastio
        fastio.patch(strict=True)
        process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
        process.communicate(b"x" * 100000)
        str(fastio.status()), fastio.status().to_json()
        fastio.unpatch()
        """
    result = run_python(code, options=("-W", "error", "-X", "dev"))
    assert (result.stdout, result.stderr) == ("", "")


# Leftovers


@needs_eventlet
@pytest.mark.parametrize("early", ["", "import subprocess, logging, threading; lock = threading.RLock()"])
def test_monkey_patch_warns_no_more_than_without_us(early: str, run_python: RunPython) -> None:
    """eventlet reports on stderr the locks that it could not make green."""
    late = "import eventlet\neventlet.monkey_patch()"

    def warned(*lines: str) -> str:
        return run_python("\n".join(lines), options=("-W", "ignore")).stderr

    without = warned(early, late)
    for prelude in ("import fastio.auto", "import fastio.auto; fastio.unpatch()"):
        assert warned(early, prelude, late) == warned(early, late, prelude) == without


def test_a_python_without_ctypes(run_python: RunPython, tmp_path: pathlib.Path) -> None:
    program = f"""
        import sys; sys.modules["_ctypes"] = None
        import fastio, subprocess
        from fastio.io import libc, libcrypto
        report = fastio.patch(run_dir={str(tmp_path)!r})
        assert not report.problems() and report.outcome("communicate") == "applied", report
        assert libc.pread(0, bytearray(1), 0) is libc.missing_pages(0, 0, 1) is libcrypto.poly1305() is None
        print(len(subprocess.run(["cat"], input=b"x" * 300000, capture_output=True).stdout))
        try:
            fastio.patch(trace={str(tmp_path)!r})
        except fastio.errors.SettingError as error:
            print("no ctypes" in str(error))
    """
    assert run_python(program).stdout == "300000\nTrue\n"
    assert len(list(tmp_path.iterdir())) == 2
