"""The setting ``accept_code``: code that a site has read is known, exactly this code, as long as the setting has it."""

import importlib
import json
import pathlib
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio.errors import SettingError
from fastio.patching import known_code
from tests.conftest import needs_eventlet

KEY = "eventlet.green.os:write"
CODE = f"{KEY}@0123456789abcdef"


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (5, "functions that patches rely on, each once"),
        (KEY, "functions that patches rely on, each once"),
        (f"{KEY}@0123", "functions that patches rely on, each once"),
        (f"{CODE}0", "functions that patches rely on, each once"),
        (f"{CODE}=eventlet 0.41.3", "functions that patches rely on, each once"),
        ([CODE, CODE], "functions that patches rely on, each once"),
        ("os:write@0123456789abcdef", "functions that patches replace"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_patched(value: Any, allowed: str) -> None:
    with pytest.raises(SettingError, match=r"^accept_code: .*\(from keyword argument\) is not allowed") as raised:
        fastio.patch(accept_code=value)
    assert raised.value.allowed.startswith(allowed)
    assert not [entry for entry in fastio.status().entries if entry.in_effect]


@pytest.mark.parametrize(
    ("installed", "nearest"),
    [("0.41.3", "0.41.3"), ("0.41.2+2.deb13u1", "0.41.2"), ("99.0", "0.41.3"), ("0.1", "0.33.0"), (None, "0.33.0")],
)
def test_the_release_that_code_is_taken_for(
    installed: str | None, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_code, "releases", lambda key: {"eventlet": ["0.33.0", "0.41.2", "0.41.3"]})
    monkeypatch.setattr(known_code.distributions, "version", lambda name: installed)
    assert known_code._nearest(KEY) == f"eventlet {nearest}"


def test_accepted_code_is_in_the_report() -> None:
    with fastio.patched(accept_code=[CODE]) as report:
        assert CODE in str(report) and CODE in str(fastio.status())
    assert CODE not in str(fastio.status())


#: A distribution's eventlet, whose os.write() has another error for a pipe without readers.
PROGRAM = """
    import json, sys, fastio
    sys.path.insert(0, sys.argv[1])
    import eventlet.green.os, eventlet.green.subprocess
    found = []
    for accepted in sys.argv[2:]:
        fastio.patch(accept_code=accepted)
        entry = next(entry for entry in fastio.status().entries if entry.name == "fix_green_epipe")
        found.append([entry.outcome.value, entry.found, entry.known_by, entry.advice])
    print(json.dumps(found))
    """


def change(root: pathlib.Path, old: str, new: str) -> None:
    file = root / "eventlet" / "green" / "os.py"
    text = file.read_text()
    first = text.index("def write(")
    assert old in text[first:]
    file.write_text(text[:first] + text[first:].replace(old, new))


@needs_eventlet
def test_the_code_of_a_distribution(tmp_path: pathlib.Path, run_python: Callable[..., Any]) -> None:
    package = pathlib.Path(importlib.import_module("eventlet").__file__ or "").parent
    shutil.copytree(package, tmp_path / "eventlet", ignore=shutil.ignore_patterns("__pycache__"))
    change(tmp_path, "except hubs.IOClosed:", "except (hubs.IOClosed, ConnectionError):")

    def run(*accepted: str) -> list[list[str]]:
        result = run_python(PROGRAM, str(tmp_path), *accepted, path=(str(tmp_path),), options=("-W", "ignore"))
        return json.loads(result.stdout.splitlines()[-1])

    ((outcome, found, _, advice),) = run("")
    assert (outcome, found) == ("changed upstream code", "write has unknown code")
    code = re.search(rf" accept_code=({re.escape(KEY)}@[0-9a-f]{{16}})$", advice)[1]  # type: ignore[index]
    release = known_code.releases(KEY)["eventlet"][-1]
    known = ["applied", f"code like eventlet {release}, by accept_code", "accept_code", ""]
    unknown = [outcome, found, "", advice]
    # It counts from the call that names it to the first that does not.
    assert run("", code, "", code) == [unknown, known, unknown, known]
    # Any other code is not accepted.
    change(tmp_path, "except (hubs.IOClosed, ConnectionError):", "except (hubs.IOClosed, Exception):")
    assert run(code)[0][:2] == unknown[:2]
