"""Calls that wait for an import: once, as soon as the module is there, and with nothing left in it."""

import pathlib
import textwrap
import zipfile
from collections.abc import Callable

import pytest

from tests.conftest import RunPython


@pytest.fixture
def waiting(tmp_path: pathlib.Path, run_python: RunPython) -> Callable[..., list[str]]:
    """Return the output of a fresh Python that waits for ``made`` and ``made.up``, and then runs some code."""
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("value = 1\n")
    (tmp_path / "made" / "up.py").write_text("value = 2\n")
    (tmp_path / "broken.py").write_text("import sys\nif not hasattr(sys, 'mended'): raise ValueError('broken')\n")
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.writestr("zipped.py", "value = 3\n")

    def run(code: str) -> list[str]:
        start = f"""
            import importlib, importlib.util, sys
            sys.path[:0] = [{str(tmp_path)!r}, {str(tmp_path / "made.zip")!r}]
            from fastio.patching.imports import when_imported
            for name in ("made", "made.up", "broken", "zipped", "nowhere"):
                when_imported(name, lambda module: print(module.__name__, getattr(module, "value", "")))
            """
        return run_python(textwrap.dedent(start) + textwrap.dedent(code)).stdout.splitlines()

    return run


def test_each_is_called_once_and_in_time(waiting: Callable[..., list[str]]) -> None:
    code = """
        import made
        print("then")
        import made.up
        importlib.reload(made)
        del sys.modules["made"]
        import made
        when_imported("made", lambda module: print("at once", module is made))
        """
    assert waiting(code) == ["made 1", "then", "made.up 2", "at once True"]


@pytest.mark.parametrize("name", ["made", "made.up", "zipped"])
def test_the_module_is_as_without_it(name: str, waiting: Callable[..., list[str]]) -> None:
    code = f"""
        looked_for = importlib.util.find_spec("{name}")
        module = importlib.import_module("{name}")
        direct = type(module.__loader__)
        print(direct.__module__.partition(".")[0] != "fastio", module.__spec__.loader is module.__loader__)
        print(isinstance(looked_for.loader, direct), module.__loader__.get_source("{name}") != "")
        print(looked_for.loader.get_source("{name}") == module.__loader__.get_source("{name}"))
        """
    assert waiting(code)[-3:] == ["True True", "True True", "True"]


def test_a_module_that_takes_over_the_names_of_another(waiting: Callable[..., list[str]], tmp_path) -> None:
    """As eventlet's green modules do with those of the standard library, ``__spec__`` among them."""
    (tmp_path / "made" / "up.py").write_text("import json\nglobals().update(vars(json))\nvalue = 2\n")
    assert waiting("import made.up") == ["made 1", "json 2"]


def test_a_call_that_asks_for_another_while_the_module_is_imported(waiting: Callable[..., list[str]], tmp_path) -> None:
    text = "import made.up\nwhen_imported('made', lambda module: print('complete', module.value))\nvalue = 1\n"
    (tmp_path / "made" / "__init__.py").write_text("from fastio.patching.imports import when_imported\n" + text)
    assert waiting("import made") == ["made.up 2", "made 1", "complete 1"]


THREAD = """
    import os, threading
    from importlib.machinery import PathFinder, SourceFileLoader
    from fastio.patching import imports
    found, go_on = threading.Event(), threading.Event()
    class Slow(SourceFileLoader):
        def create_module(self, spec):
            found.set()
            while not ready():
                go_on.wait(0.001)
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "late":
                spec = PathFinder.find_spec(name, path)
                spec.loader = Slow(name, spec.origin)
                return spec
    sys.meta_path.insert(0, Finder)
    thread = threading.Thread(target=importlib.import_module, args=("late",), daemon=True)
    thread.start()
    found.wait()
    """


def test_another_thread_that_has_found_the_module_before(waiting: Callable[..., list[str]], tmp_path) -> None:
    (tmp_path / "late.py").write_text("value = 5\n")
    code = """
        when_imported("late", lambda module: print(module.__name__, module.value))
        thread.join()
        print(imports._waiting.get("late"))
        """
    ready = "ready = lambda: 'late' in imports._waiting\n"
    assert waiting(ready + textwrap.dedent(THREAD) + textwrap.dedent(code)) == ["late 5", "None"]


def test_another_thread_that_calls_meanwhile(waiting: Callable[..., list[str]]) -> None:
    """It has imported the module, and taken the list of calls, before a call is in that."""
    code = """
        import threading
        from fastio.patching import imports
        class Waiting(dict):
            def setdefault(self, *args):
                found = super().setdefault(*args)
                thread = threading.Thread(target=importlib.import_module, args=("made",))
                thread.start()
                thread.join()
                return found
        imports._waiting = Waiting(imports._waiting)
        when_imported("made", lambda module: print("then", module.__name__))
        """
    assert waiting(code) == ["made 1", "then made"]


def test_a_thread_that_a_forked_child_does_not_have(waiting: Callable[..., list[str]], tmp_path) -> None:
    """It is in the middle of the import for ever there."""
    (tmp_path / "late.py").write_text("value = 5\n")
    code = """
        import signal, warnings
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            when_imported("late", print)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        """
    never = "ready = lambda: False\n"
    assert waiting(never + textwrap.dedent(THREAD) + textwrap.dedent(code)) == ["0"]


def test_an_import_that_fails_is_waited_for_again(waiting: Callable[..., list[str]]) -> None:
    code = """
        try:
            import broken
        except ValueError as error:
            print(error)
        sys.mended = True
        import broken
        try:
            import nowhere
        except ModuleNotFoundError as error:
            print(error)
        """
    assert waiting(code) == ["broken", "broken ", "No module named 'nowhere'"]


def test_others_finders_are_asked(waiting: Callable[..., list[str]]) -> None:
    """One that was there before, and wrapt's, which asks all others itself."""
    pytest.importorskip("wrapt")
    code = """
        import wrapt
        wrapt.register_post_import_hook(lambda module: print("wrapt", module.__name__), "made")
        import made
        print(type(made.__loader__).__name__)
        """
    assert sorted(waiting(code)) == ["SourceFileLoader", "made 1", "wrapt made"]
    code = """
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == "nowhere":
                    return importlib.util.spec_from_loader(name, Loader)
        class Loader:
            @staticmethod
            def create_module(spec):
                return None
            @staticmethod
            def exec_module(module):
                module.value = 4
        sys.meta_path.append(Finder)
        import nowhere
        print(nowhere.__loader__ is Loader)
        """
    assert waiting(code) == ["nowhere 4", "True"]
