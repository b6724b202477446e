"""Code that a site has signed: known from then on, exactly this code, and the report says by whom."""

import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio.errors import SettingError
from fastio.patching import site
from fastio.patching.catalogue import Signed
from tests.conftest import needs_eventlet

ROOT = pathlib.Path(fastio.__file__).parent.parent
KEY = "eventlet.green.os:write"
ENTRY = {
    "key": KEY, "fingerprint": "0123456789abcdef", "like": "eventlet 0.41.3",
    "why": "a fix", "who": "me", "date": "2026-11-23",
}  # fmt: skip


def data(*entries: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {**site.FORMAT, "functions": list(entries), **others}


def test_what_is_written_is_read(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "site.json")
    signed = (Signed(**ENTRY), Signed(**{**ENTRY, "fingerprint": "f" * 16}))
    site.write(path, signed)
    assert site.read(path) == signed
    assert os.listdir(tmp_path) == ["site.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Expecting value"),
        ("[]", "does not begin with"),
        (data(version=2), "does not begin with"),
        (data(format="x"), "does not begin with"),
        (data(more=1), "something else than a list"),
        ({**data(), "functions": {}}, "something else than a list"),
        ({**site.FORMAT}, "something else than a list"),
        (data("x"), "entry 1: not key, fingerprint"),  # type: ignore[arg-type]
        (data(ENTRY, {**ENTRY, "more": "x"}), "entry 2: not key, fingerprint"),
        (data({name: ENTRY[name] for name in ENTRY if name != "who"}), "entry 1: not key, fingerprint"),
        (data({**ENTRY, "who": " "}), "entry 1: who: not a line"),
        (data({**ENTRY, "why": "two\nlines"}), "entry 1: why: not a line"),
        (data({**ENTRY, "why": "x" * 201}), "entry 1: why: not a line"),
        (data({**ENTRY, "who": 5}), "entry 1: who: not a line"),
        (data({**ENTRY, "key": "os:write"}), "no patch relies on os:write"),
        (data({**ENTRY, "fingerprint": "*"}), "not 16 hexadecimal digits"),
        (data({**ENTRY, "fingerprint": "0123456789abcdefg"}), "not 16 hexadecimal digits"),
        (data({**ENTRY, "like": "eventlet 9.9"}), "like: eventlet 9.9 is not one of eventlet "),
        (data({**ENTRY, "like": "glance 30.0.0"}), "is not one of eventlet"),
        (data({**ENTRY, "date": "yesterday"}), "date: yesterday is not of the form"),
        (data(ENTRY, ENTRY), "the same code is signed twice"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_and_nothing_is_patched(content: Any, said: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "site.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(SettingError) as raised:
        fastio.patch(site_fingerprints=path)
    assert str(raised.value).startswith(f"site_fingerprints: '{path}' (from keyword argument) is not allowed; ")
    assert said in str(raised.value)
    assert not [entry for entry in fastio.status().entries if entry.in_effect]


def test_a_file_that_everybody_can_write_to(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "site.json"
    site.write(str(path), [Signed(**ENTRY)])
    path.chmod(0o666)
    with pytest.raises(SettingError, match="everybody can write to it"):
        fastio.patch(site_fingerprints=str(path))


@pytest.mark.parametrize("value", ["", " ", "no/such/file", "/", "a\0b", 5, b"\xff"])
def test_what_is_no_file(value: Any) -> None:
    with pytest.raises(SettingError, match="a file that fastio fingerprint add has written"):
        fastio.patch(site_fingerprints=value)


def test_what_is_signed_is_in_the_report(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "site.json"
    site.write(str(path), [Signed(**ENTRY)])
    with fastio.patched(site_fingerprints=path) as report:
        said = f"site_fingerprints: {KEY} like eventlet 0.41.3, signed by me on 2026-11-23: a fix"
        assert said in report.notes and said in fastio.status().notes
        assert str(path) in str(report)
    assert said not in fastio.status().notes


# A distribution's eventlet, whose os.write() has another error for a pipe that nobody reads


PROGRAM = """
    import json, sys, fastio
    sys.path.insert(0, sys.argv[1])
    import eventlet.green.os, eventlet.green.subprocess
    def told():
        entry = next(entry for entry in fastio.status().entries if entry.name == "fix_green_epipe")
        return [entry.outcome.value, entry.found, entry.known_by]
    found = []
    for path in sys.argv[2:]:
        fastio.patch(site_fingerprints=path or None)
        found.append(told())
    print(json.dumps(found))
    """


@pytest.fixture
def distribution(tmp_path: pathlib.Path) -> pathlib.Path:
    package = pathlib.Path(importlib.import_module("eventlet").__file__ or "").parent
    root = tmp_path / "distribution"
    shutil.copytree(package, root / "eventlet", ignore=shutil.ignore_patterns("__pycache__"))
    change(root, "except hubs.IOClosed:", "except (hubs.IOClosed, ConnectionError):")
    return root


def change(root: pathlib.Path, old: str, new: str) -> None:
    file = root / "eventlet" / "green" / "os.py"
    text = file.read_text()
    first = text.index("def write(")
    assert old in text[first:]
    file.write_text(text[:first] + text[first:].replace(old, new))


def fingerprint(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    environ["PYTHONPATH"] = os.pathsep.join([str(root), str(ROOT)])
    command = [sys.executable, "-m", "fastio", "fingerprint", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100)


@needs_eventlet
def test_a_distribution_signs_its_code(distribution: pathlib.Path, run_python: Callable[..., Any]) -> None:
    upstream = str(pathlib.Path(importlib.import_module("eventlet").__file__ or "").parent.parent)
    path = str(distribution / "site.json")
    shown = fingerprint(distribution, "show")
    assert (shown.returncode, shown.stdout) == (0, f"{KEY}:\n  fix_green_epipe: unknown code\n")
    shown = fingerprint(distribution, "show", KEY, "--against", upstream)
    assert "this code is not known" in shown.stdout
    assert "-            except hubs.IOClosed:\n+            except (hubs.IOClosed, ConnectionError):" in shown.stdout
    signing = ["add", KEY, "--file", path, "--who", "ops@example.org", "--why", "gives up on more errors", "--like"]
    refused = fingerprint(distribution, *signing, "eventlet 9.9")
    assert refused.returncode == 2
    assert "like: eventlet 9.9 is not one of eventlet" in refused.stderr
    assert not os.path.exists(path)
    for _ in range(2):
        # Twice is once.
        added = fingerprint(distribution, *signing, "eventlet 0.41.3")
        assert (added.returncode, added.stderr) == (0, "")
    (signed,) = site.read(path)
    assert str(signed) in added.stdout and f"FASTIO_SITE_FINGERPRINTS={path}" in added.stdout

    def run() -> Any:
        arguments = (str(distribution), "", path, "")
        result = run_python(PROGRAM, *arguments, path=(str(distribution),), options=("-W", "ignore"))
        return json.loads(result.stdout.splitlines()[-1])

    unknown = ["changed upstream code", "write has unknown code", ""]
    known = ["applied", f"code like eventlet 0.41.3, signed by ops@example.org on {signed.date}", "site"]
    # It counts from the call that names it to the first that does not.
    assert run() == [unknown, known, unknown]
    # Of any other code nothing is said.
    change(distribution, "except (hubs.IOClosed, ConnectionError):", "except (hubs.IOClosed, Exception):")
    assert run() == [unknown, unknown, unknown]


@needs_eventlet
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "os:write"), "no patch relies on os:write"),
        (("show", "glance_store._drivers.sheepdog:Store.add"), "is not installed here"),
        (("show", KEY, "--against", "/nowhere"), "/nowhere does not have eventlet.green.os:write"),
        (("add", KEY, "--file", "x", "--like", "x", "--who", "x", "--why", "x"), "is known here; there is nothing to"),
    ],
)
def test_what_cannot_be_shown_or_signed(arguments: tuple[str, ...], said: str, tmp_path: pathlib.Path) -> None:
    result = fingerprint(tmp_path, *arguments)
    assert result.returncode == 2
    assert said in result.stderr


def test_all_is_known_here(tmp_path: pathlib.Path) -> None:
    result = fingerprint(tmp_path, "show")
    assert (result.returncode, result.stdout) == (0, "All code that is installed here is known.\n")
