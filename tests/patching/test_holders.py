"""Finding the standard library's own Popen, and who still holds it after ``monkey_patch()``."""

import json
import subprocess
import sys
import types
from typing import Any

import pytest

import fastio
from fastio.patching import holders
from tests.conftest import MONKEY_PATCHED, RunPython, needs_eventlet

MODULES = {
    "early": "from subprocess import Popen",
    "renamed": "from subprocess import Popen as Start\nunrelated = 3\nclass Other: pass",
    "derived": "import subprocess\nclass Mine(subprocess.Popen): pass\nclass Deeper(Mine): pass",
    "harmless": "import subprocess\nfrom subprocess import run, check_output, PIPE, CalledProcessError",
}


def late(run_python: RunPython, tmp_path: Any, code: str) -> Any:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text + "\n")
    result = run_python(code, path=(str(tmp_path),), options=("-W", "ignore"))
    assert result.stderr == ""
    return json.loads(result.stdout.splitlines()[-1])


def test_a_module_that_another_thread_is_importing_has_no_popen_yet() -> None:
    """eventlet imports copies of modules, which stand in ``sys.modules`` meanwhile."""
    with pytest.MonkeyPatch.context() as changed:
        for name in ("subprocess", "eventlet.green.subprocess"):
            changed.setitem(sys.modules, name, types.ModuleType(name))
            assert holders.native_popen() is None
            assert holders.late_holders() == []


@needs_eventlet
def test_late_holders_are_named(run_python: RunPython, tmp_path: Any) -> None:
    code = """
        import json, fastio
        import early, renamed, derived, harmless
        import eventlet
        before = fastio.status().late_holders
        eventlet.monkey_patch()
        import fastio
        fastio.patch(strict=True)
        report = fastio.status()
        text = str(report)
        for line in report.late_holders:
            assert line in text
        print(json.dumps([list(before), list(report.late_holders)]))
        """
    before, found = late(run_python, tmp_path, code)
    assert before == []
    assert [line.split()[0] for line in found] == ["derived.Deeper", "derived.Mine", "early.Popen", "renamed.Start"]
    for line in found:
        assert "native Popen" in line
        assert "monkey_patch()" in line


@needs_eventlet
def test_modules_with_strange_contents(run_python: RunPython, tmp_path: Any) -> None:
    """Lazy proxies, metaclasses and modules that are none: looking must not touch them."""
    code = """
        import json, sys, types
        from subprocess import Popen
        import eventlet
        eventlet.monkey_patch()
        class Lazy:
            @property
            def __class__(self):
                raise RuntimeError("touched")
            def __getattr__(self, name):
                raise RuntimeError("touched")
            def __eq__(self, other):
                raise RuntimeError("touched")
        class Meta(type):
            def __getattribute__(cls, name):
                if name not in ("__mro__", "__dict__", "__name__"):
                    raise RuntimeError("touched")
                return super().__getattribute__(name)
            def __eq__(cls, other):
                raise RuntimeError("touched")
            __hash__ = type.__hash__
            @property
            def __mro__(cls):
                raise RuntimeError("touched")
        strange = types.ModuleType("strange")
        strange.lazy = Lazy()
        strange.Odd = Meta("Odd", (), {})
        strange.Popen = Popen
        class Changing(types.ModuleType):
            def __getattr__(self, name):
                raise RuntimeError("touched")
        sys.modules.update(strange=strange, nothing=None, lazy=Lazy(), changing=Changing("changing"))
        import fastio
        fastio.patch(strict=True)
        found = fastio.status().late_holders
        del sys.modules["lazy"], sys.modules["nothing"]
        print(json.dumps([line.split()[0] for line in found]))
        """
    assert late(run_python, tmp_path, code) == ["__main__.Popen", "strange.Popen"]


def test_the_native_popen_is_found_behind_the_green_one() -> None:
    native = holders.native_popen()
    if MONKEY_PATCHED:
        assert native is None or native is not subprocess.Popen
    else:
        assert native is subprocess.Popen
        assert holders.late_holders() == []


@needs_eventlet
def test_classes_are_looked_through_once(run_python: RunPython) -> None:
    code = """
        import gc, subprocess, sys, types
        import eventlet
        from fastio.patching import holders
        native, looks, look_for = subprocess.Popen, [], holders._look_for
        holders._look_for = lambda module: looks.append(module) or look_for(module)
        def found():
            return [holders.native_popen() for _ in range(3)], len(looks)
        assert found() == ([native] * 3, 0)
        eventlet.monkey_patch()
        assert subprocess.Popen is not native
        assert found() == ([native] * 3, 0)
        holders._last = None, lambda: None
        assert found() == ([native] * 3, 1)
        green = subprocess.Popen
        del subprocess.Popen
        assert found() == ([native] * 3, 1)
        subprocess.Popen = green
        # It is not that of another subprocess, which a tool may have put there.
        ours, other = sys.modules["subprocess"], types.ModuleType("subprocess")
        other.Popen = object
        sys.modules["subprocess"] = other
        assert found() == ([None] * 3, 2)
        sys.modules["subprocess"] = ours
        assert found() == ([native] * 3, 3)
        # Once it has no holder any more, it is not looked for again, until there is one in its old place.
        method = vars(native)["_get_handles"]
        for module in list(sys.modules.values()):
            for name in [name for name, value in vars(module).items() if value is native and name != "native"]:
                delattr(module, name)
        del native
        gc.collect()
        assert found() == ([None] * 3, 3)
        again = type("Popen", (), {"_get_handles": method})
        subprocess.Popen = again
        assert found() == ([again] * 3, 3)
        subprocess.Popen = green
        assert found() == ([again] * 3, 3)
        """
    run_python(code, options=("-W", "ignore"))


@pytest.mark.skipif(MONKEY_PATCHED, reason="subprocess.Popen is the green one here")
def test_a_tool_that_replaces_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tools put a subclass into ``subprocess``: the class beneath is patched, and the subclass inherits that."""
    native = subprocess.Popen

    class Popen(native):  # type: ignore[misc, valid-type, type-arg]
        pass

    monkeypatch.setattr(subprocess, "Popen", Popen)
    assert holders.native_popen() is native
    with fastio.patched("communicate", strict=True) as report:
        assert report.outcome("communicate").value == "applied"
        assert "_communicate" not in vars(Popen)
        process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
        assert process.communicate(b"x") == (b"x", None)
    assert isinstance(vars(native)["_communicate"], types.FunctionType)
