"""The public functions: what they take and return, and that what the documentation shows is true."""

import inspect
import pathlib
import subprocess
import types

import pytest

import fastio
from fastio import config, counters
from tests.conftest import RunPython, needs_eventlet
from tests.targets import import_targets

ROOT = pathlib.Path(fastio.__file__).parent
PUBLIC = ("metrics", "names", "patch", "patched", "settings", "status", "unpatch")


def test_public_names() -> None:
    assert sorted(fastio.__all__) == sorted(PUBLIC)
    functions = [name for name, value in vars(fastio).items() if isinstance(value, types.FunctionType)]
    # A leading underscore says that a function is not for others.
    functions = [name for name in functions if not name.startswith("_")]
    assert sorted(functions) == sorted(PUBLIC)


@pytest.mark.parametrize("name", ["patch", "patched"])
def test_signature(name: str) -> None:
    parameters = inspect.signature(getattr(fastio, name)).parameters
    kinds = [(key, parameter.kind.name) for key, parameter in parameters.items()]
    assert kinds == [
        ("names", "POSITIONAL_OR_KEYWORD"), ("strict", "KEYWORD_ONLY"), ("conf", "KEYWORD_ONLY"),
        ("settings", "VAR_KEYWORD"),
    ]  # fmt: skip
    assert [parameters[name].default for name in ("names", "strict", "conf")] == [None, False, None]


def test_a_decorator_without_parentheses_is_refused() -> None:
    with pytest.raises(TypeError, match="names: a name of a patch"):
        fastio.patched(lambda: None)  # type: ignore[arg-type]


def test_every_entry_is_text_and_every_attribute_has_one() -> None:
    import_targets()
    report = fastio.status()
    assert {entry.name for entry in report.entries} == set(fastio.names())
    assert len({(entry.name, entry.target) for entry in report.entries}) == len(report.entries)
    for entry in report.entries:
        assert entry.target.count(":") == 1
        assert entry.found
        assert entry.found == entry.found.strip()


def test_counters() -> None:
    counters.reset()
    assert counters.snapshot() == dict.fromkeys(counters.NAMES, 0)
    import_targets()
    with fastio.patched(strict=True):
        process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
        process.communicate(b"x" * 1000)
    found = counters.snapshot()
    assert (found["exchanges"], found["bytes_in"], found["bytes_out"]) == (1, 1000, 1000)
    assert found["reads"] >= 1
    assert found["writes"] >= 1
    counters.reset()
    assert not any(counters.snapshot().values())


AUTO = """
    import sys
    import fastio.auto
    import fastio, subprocess
    from fastio import counters
    process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
    process.communicate(b"x")
    print(counters.exchanges, fastio.settings().chunk_size, fastio.settings().sources["chunk_size"])
"""


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({}, f"1 {config.MIB} default"),
        ({"FASTIO_CHUNK_SIZE": "64KiB"}, "1 65536 environment FASTIO_CHUNK_SIZE"),
        ({"FASTIO_DISABLED": "communicate"}, f"0 {config.MIB} default"),
        ({"FASTIO": "0"}, f"0 {config.MIB} default"),
    ],
)
def test_auto(env: dict[str, str], line: str, run_python: RunPython) -> None:
    assert run_python(AUTO, env=env).stdout == line + "\n"


@needs_eventlet
def test_auto_before_monkey_patch(run_python: RunPython) -> None:
    code = "import fastio.auto, eventlet\neventlet.monkey_patch()\n" + AUTO.replace("\n    ", "\n")
    assert run_python(code, options=("-W", "ignore")).stdout.startswith("1 ")


def test_auto_twice_is_once(run_python: RunPython) -> None:
    """uWSGI's ``import =`` and a .pth file may both be there."""
    code = "import importlib, fastio.auto\nimportlib.reload(fastio.auto)\n" + AUTO.replace("\n    ", "\n")
    assert run_python(code).stdout.startswith("1 ")
