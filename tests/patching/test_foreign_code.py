"""``patch()`` and ``status()`` run no code of others, and let none of their exceptions out."""

import textwrap

import pytest

from tests.conftest import RunPython, needs_eventlet

PROGRAMS = {
    "a module of LazyLoader is not loaded": """
        import importlib.util, pathlib, sys, tempfile
        native = __import__("subprocess").Popen
        import eventlet
        eventlet.monkey_patch()
        directory = pathlib.Path(tempfile.mkdtemp())
        (directory / "lazy.py").write_text("raise RuntimeError('loaded')")
        spec = importlib.util.spec_from_file_location("lazy", directory / "lazy.py")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = sys.modules["lazy"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        import fastio
        fastio.patch()
        assert "__main__.native" in str(fastio.status().late_holders)
        print("fine")
        """,
    "a finder that raises": """
        import sys
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name.partition(".")[0] == "oslo_concurrency":
                    raise RuntimeError("a finder of the program's")
        sys.meta_path.insert(0, Finder)
        import fastio
        report = fastio.patch()
        assert "cannot be looked up: RuntimeError: a finder of the program's" in report.to_json()
        print("fine")
        """,
    "a greenlet that yields within patch(), patched before monkey_patch()": """
        import fastio
        from fastio.patching import exclusive
        fastio.patch()
        turns = exclusive.Exclusive()
        import eventlet
        eventlet.monkey_patch()
        done = []
        def work():
            eventlet.sleep(0.05)
            return "worked"
        first = eventlet.spawn(turns.change, work)
        second = eventlet.spawn_after(0.01, turns.change, lambda: done.append("changed"))
        with eventlet.Timeout(5):
            assert first.wait() == "worked" and second.wait() is None and done == ["changed"]
        print("fine")
        """,
}


@needs_eventlet
@pytest.mark.parametrize("name", PROGRAMS)
def test_patch_with(name: str, run_python: RunPython) -> None:
    assert run_python(textwrap.dedent(PROGRAMS[name])).stdout.splitlines()[-1:] == ["fine"]
