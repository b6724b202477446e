"""``fastio run``: real programs in real processes."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import needs_eventlet, needs_wrapt

pytestmark = needs_wrapt

ROOT = pathlib.Path(__file__).parent.parent
#: the Python beneath the environment of these tests
BASE = os.path.realpath(sys.executable)
REPORT = """
import json, sys
import fastio
status = fastio.status()
print(json.dumps({
    "argv": sys.argv, "path": sys.path[0], "name": __name__, "file": globals().get("__file__"),
    "outcome": status.outcome("communicate").value, "chunk_size": fastio.settings().chunk_size,
    "source": fastio.settings().sources["chunk_size"],
}))
"""


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "TEST_EVENTLET"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **more}


def run(*arguments: str | pathlib.Path, env: dict[str, str] | None = None, **options: Any) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "fastio", "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=100, env=env or environment(), **options,
    )  # fmt: skip


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """``script(code, name)`` writes an executable script of this Python."""

    def write(code: str, name: str = "service", shebang: str = f"#!{sys.executable}") -> pathlib.Path:
        path = tmp_path / name
        path.write_text(f"{shebang}\n{textwrap.dedent(code)}")
        path.chmod(0o755)
        return path

    return write


def test_a_script_sees_what_it_would_see_if_started_directly(script: Callable[..., pathlib.Path]) -> None:
    path = script(REPORT)
    done = run("--chunk-size", "64KiB", "--", path, "--chunk-size", "x", "--", "-m")
    found = json.loads(done.stdout)
    assert found["argv"] == [str(path), "--chunk-size", "x", "--", "-m"]
    assert (found["path"], found["name"], found["file"]) == (str(path.parent), "__main__", str(path))
    assert (found["outcome"], found["chunk_size"]) == ("applied", 65536)


def test_a_module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "my_module.py").write_text(REPORT)
    done = run("-m", "my_module", "-x", "y", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["argv"] == [str(tmp_path / "my_module.py"), "-x", "y"]
    assert (found["path"], found["name"], found["outcome"]) == (str(tmp_path), "__main__", "applied")


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(7)", 7, ""), ("os._exit(7)", 7, ""), ("raise SystemExit(7)", 7, ""),
        ("raise ValueError('of the program')", 1, "ValueError: of the program"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
    ],
)  # fmt: skip
def test_the_end_is_the_program_s(script, ending, status, said):
    done = run(script(f"import os, signal, sys\n{ending}"))
    assert (done.returncode, done.stderr.rstrip().rpartition("\n")[2]) == (status, said)


def test_standard_input_and_output_are_the_program_s(script: Callable[..., pathlib.Path]) -> None:
    path = script("import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('aside')")
    done = run(path, input="text")
    assert (done.stdout, done.stderr) == ("TEXT", "aside")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_program_itself(script: Callable[..., pathlib.Path], number: signal.Signals) -> None:
    path = script(
        f"""
        import os, signal, sys, time
        signal.signal({int(number)}, lambda *_: os._exit(42))
        print(os.getpid(), flush=True)
        time.sleep(60)
        """
    )
    command = [sys.executable, "-m", "fastio", "run", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(number)
        assert process.wait(60) == 42


def test_forked_workers_are_patched(script: Callable[..., pathlib.Path]) -> None:
    path = script("import os\nif os.fork(): os.wait(); os._exit(0)\n" + REPORT)
    assert json.loads(run(path).stdout)["outcome"] == "applied"


SPAWNS = """
    import json, multiprocessing, os, pathlib, sys
    if AUTO:
        import fastio.auto
    def tell(path):
        import fastio
        settings = fastio.settings()
        found = fastio.status().outcome("communicate").value, settings.chunk_size, settings.sources["chunk_size"]
        pathlib.Path(path).write_text(json.dumps(found))
    if __name__ == "__main__":
        method, path, *files = sys.argv[1:]
        if files:
            from oslo_config import cfg
            cfg.CONF(files)
        process = multiprocessing.get_context(method).Process(target=tell, args=(path,))
        process.start()
        process.join()
        sys.exit(process.exitcode)
    """


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("how", ["run", "module", "auto"])
def test_workers_of_multiprocessing_are_patched(method: str, how: str, script, tmp_path) -> None:
    """In a process that is not forked, a main module without ``import fastio.auto`` leaves it to the parent's."""
    code = SPAWNS.replace("AUTO", 'how == "auto" and __name__ == "__main__"').replace("how", repr(how))
    path, told = script(code, "spawns.py"), tmp_path / "told"
    program = {"run": ["-m", "fastio", "run", str(path)], "module": ["-m", "fastio", "run", "-m", "spawns"]}
    env = environment(FASTIO_CHUNK_SIZE="64KiB")
    done = subprocess.run(
        [sys.executable, *program.get(how, [str(path)]), method, str(told)],
        capture_output=True, text=True, timeout=100, env=env, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(told.read_text()) == ["applied", 65536, "environment FASTIO_CHUNK_SIZE"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_workers_have_the_options_of_the_service(method: str, script, tmp_path) -> None:
    pytest.importorskip("oslo_config")
    file, told = tmp_path / "service.conf", tmp_path / "told"
    file.write_text("[fastio]\nchunk_size = 128KiB\ndisabled = communicate\n")
    done = run(script(SPAWNS.replace("AUTO", "False"), "spawns.py"), method, told, "--config-file", file)
    assert (done.returncode, done.stderr) == (0, "")
    outcome, size, source = json.loads(told.read_text())
    assert (outcome, size) == ("off", 128 * 1024) and str(file) in source


def test_a_spawned_worker_that_can_not_be_patched_says_so_and_goes_on(script, tmp_path) -> None:
    code = SPAWNS.replace("AUTO", "False").replace("settings = fastio.settings()", "pathlib.Path(path).touch(); return")
    told = tmp_path / "told"
    done = run(script(code.replace("process.start()", "os.environ['FASTIO'] = 'x'; process.start()")), "spawn", told)
    assert done.returncode == 0 and told.exists()
    assert "fastio: not patched: SettingError" in done.stderr


@needs_eventlet
def test_the_program_s_own_monkey_patch(script: Callable[..., pathlib.Path]) -> None:
    path = script(
        """
        import eventlet
        eventlet.monkey_patch()
        import fastio, subprocess
        print(fastio.status().outcome("green_communicate").value, subprocess.check_output(["echo", "x"]))
        """
    )
    assert run(path).stdout == "applied b'x\\n'\n"


def test_threads_and_exit_handlers_still_have_the_globals(script: Callable[..., pathlib.Path]) -> None:
    path = script(
        """
        import atexit, threading, time
        NAME = "global"
        atexit.register(lambda: print("atexit", NAME))
        def late():
            time.sleep(0.2)
            print("thread", NAME)
        threading.Thread(target=late).start()
        """
    )
    assert run(path).stdout.splitlines() == ["thread global", "atexit global"]


def test_a_class_of_the_program_can_be_pickled(script: Callable[..., pathlib.Path]) -> None:
    path = script(
        """
        import pickle
        class Thing:
            pass
        print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
        """
    )
    assert run(path).stdout == "True\n"


def test_pip_s_launcher_for_long_paths_is_known(script: Callable[..., pathlib.Path]) -> None:
    path = script(f"'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n" + REPORT, shebang="#!/bin/sh")
    assert json.loads(run(path).stdout)["outcome"] == "applied"


LOOKS = """
import json, sys
print(json.dumps([
    sys.argv, sys.path, list(sys.flags), sorted(globals()), type(__builtins__).__name__, type(__loader__).__name__,
    __name__, __file__, repr(__spec__), repr(__package__), repr(__doc__), sys.warnoptions, sys._xoptions,
    sys.dont_write_bytecode, sys.orig_argv[1:], sys.modules["__main__"].__dict__ is globals(),
]))
"""
SHEBANGS = [
    "#!{python}", "#!{python} -I", "#!{python} -s", "#!{python} -sE", "#!{python} -Wignore", "#!{python} -W ignore",
    "#!{python} -B", "#!{python} -O", "#!{python} -u", "#!{python} -Xdev", "#! {python}   -sB",
    "#!/usr/bin/env -S {python} -s -E -W error::ResourceWarning", "#!/usr/bin/env {python}",
    "#!/usr/bin/env -S A=b {python} -X utf8",
    *(["#!{python} -P", "#!{python} -sP"] if sys.version_info >= (3, 11) else []),
]  # fmt: skip


@pytest.mark.parametrize("name", ["service", "service.py"])
@pytest.mark.parametrize("shebang", SHEBANGS)
def test_the_first_line_holds(shebang: str, name: str, script: Callable[..., pathlib.Path]) -> None:
    """The same script, started directly and by ``fastio run``, sees the same."""
    path = script(LOOKS, name, shebang.format(python=sys.executable))
    env = environment()
    directly = subprocess.run([path, "-x", "y"], capture_output=True, text=True, env=env, timeout=100)
    done = run(path, "-x", "y", env=env)
    assert json.loads(done.stdout) == json.loads(directly.stdout), done.stderr


def test_a_first_line_with_options_leaves_the_settings(script: Callable[..., pathlib.Path]) -> None:
    path = script(REPORT, shebang=f"#!{sys.executable} -I")
    done = run("--chunk-size", "64KiB", path)
    found = json.loads(done.stdout)
    assert (found["outcome"], found["chunk_size"]) == ("applied", 65536)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH came with Python 3.11")
@pytest.mark.parametrize("kind", ["script", "module"])
def test_a_safe_path_stays_safe(kind: str, script, tmp_path) -> None:
    path = script(LOOKS, "service_module.py")
    env = environment(PYTHONSAFEPATH="1")
    if kind == "module":
        env["PYTHONPATH"] += f":{tmp_path}"
    arguments = ["-m", "service_module"] if kind == "module" else [str(path)]
    command = [sys.executable, *arguments] if kind == "module" else arguments
    directly = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, cwd="/")
    done = run(*arguments, env=env, cwd="/")
    assert json.loads(done.stdout)[1] == json.loads(directly.stdout)[1], done.stderr


@pytest.fixture
def in_environment(tmp_path: pathlib.Path) -> Callable[..., Any]:
    """``in_environment(path, *options)`` is ``fastio run path`` in an environment that was made with these options."""

    def start(path: pathlib.Path, *options: str) -> Any:
        own = tmp_path / "own"
        subprocess.run([BASE, "-m", "venv", "--without-pip", *options, own], check=True, timeout=100)
        # fastio and what it needs, wherever they are installed here.
        env = environment(PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)]))
        command = [str(own / "bin" / "python"), "-m", "fastio", "run", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)

    return start


def test_a_script_of_the_python_beneath_whose_packages_are_seen(script, in_environment) -> None:
    done = in_environment(script(REPORT, shebang=f"#!{BASE}"), "--system-site-packages")
    assert json.loads(done.stdout)["outcome"] == "applied", done.stderr


def test_a_script_of_the_python_beneath_whose_packages_are_not_seen(script, in_environment) -> None:
    path = script(REPORT, shebang=f"#!{BASE}")
    done = in_environment(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path} is a script of {BASE}" in done.stderr and "--system-site-packages" in done.stderr


class TestWhatIsRun:
    """A name is looked up in PATH, a path is a path."""

    def test_a_file_of_the_current_directory(self, script: Callable[..., pathlib.Path]) -> None:
        path = script(REPORT, "my-service")
        done = run("my-service", cwd=path.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert "./my-service" in done.stderr
        assert json.loads(run("./my-service", cwd=path.parent).stdout)["outcome"] == "applied"

    def test_one_that_ends_in_py(self, script: Callable[..., pathlib.Path]) -> None:
        path = script(REPORT, "service.py")
        path.chmod(0o644)
        for name in ("service.py", "./service.py"):
            assert json.loads(run(name, cwd=path.parent).stdout)["argv"] == [name]

    def test_one_in_path_comes_first(self, script, tmp_path) -> None:
        (tmp_path / "service.py").write_text("print('the wrong one')")
        (tmp_path / "bin").mkdir()
        path = script(REPORT, "bin/service.py")
        done = run("service.py", cwd=tmp_path, env=environment(PATH=f"{path.parent}:{os.environ['PATH']}"))
        assert json.loads(done.stdout)["argv"] == [str(path)]

    def test_one_that_is_not_executable(self, script: Callable[..., pathlib.Path]) -> None:
        path = script(REPORT)
        path.chmod(0o644)
        done = run(path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "not executable" in done.stderr


class TestChildren:
    def test_pythons_that_the_program_starts(self, script: Callable[..., pathlib.Path]) -> None:
        path = script(REPORT)
        done = run("--children", "--chunk-size", "64KiB", "sh", "-c", f"{path} argument")
        found = json.loads(done.stdout)
        assert (found["argv"], found["outcome"], found["chunk_size"]) == ([str(path), "argument"], "applied", 65536)

    def test_without_it_they_are_not(self, script: Callable[..., pathlib.Path]) -> None:
        child = script(REPORT, "child")
        path = script(f"import subprocess; subprocess.run([{str(child)!r}])", "parent")
        assert json.loads(run(path).stdout)["outcome"] == "off"
        assert json.loads(run("--children", path).stdout)["outcome"] == "applied"

    def test_children_of_children(self, script: Callable[..., pathlib.Path]) -> None:
        child = script(REPORT, "child")
        path = script(f"import subprocess; subprocess.run(['sh', '-c', {str(child)!r}])", "parent")
        assert json.loads(run("--children", "sh", "-c", str(path)).stdout)["outcome"] == "applied"

    def test_the_site_s_own_sitecustomize_runs(self, script: Callable[..., pathlib.Path], tmp_path) -> None:
        site = tmp_path / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text("import sys\nsys.own = 'own'\n")
        code = """
            import sys, sitecustomize
            print(sys.own, sitecustomize.__file__, any("bootstrap" in path for path in sys.path))
            """
        done = run("--children", "sh", "-c", str(script(code)), env=environment(PYTHONPATH=f"{ROOT}:{site}"))
        assert done.stdout.split() == ["own", str(site / "sitecustomize.py"), "False"]

    def test_a_failing_site_s_own_sitecustomize_is_told_as_python_does(self, script, tmp_path) -> None:
        site = tmp_path / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text("raise ValueError('of the site')\n")
        done = run(
            "--children", "sh", "-c", str(script("print('goes on')")), env=environment(PYTHONPATH=f"{ROOT}:{site}")
        )
        assert done.stdout == "goes on\n"
        assert "of the site" in done.stderr

    def test_a_python_without_fastio_is_left_alone(self) -> None:
        # Without site-packages, and with nothing but the bootstrap directory in PYTHONPATH.
        child = f"{sys.executable} -S -c \"import sitecustomize, sys; print('fastio' in sys.modules)\""
        done = run("--children", "sh", "-c", f"PYTHONPATH=${{PYTHONPATH%%:*}}; exec {child}", cwd="/")
        assert (done.stdout, done.stderr) == ("False\n", "")

    def test_a_program_that_is_no_python_is_replaced(self) -> None:
        done = run("--children", "sh", "-c", "exit 9")
        assert done.returncode == 9


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--chunk-size", "12 parsecs", "-m", "this"], ["chunk_size", "'12 parsecs'", "option --chunk-size", "4 KiB"]),
        (["--store-chunk-sizes", "tape=1M", "-m", "this"], ["store_chunk_sizes", "option --store-chunk-sizes"]),
        (["no-such-program"], ["no-such-program", "PATH"]),
        (["./no-such-program"], ["'./no-such-program'", "there is no file"]),
        (["no-such-program.py"], ["no-such-program.py", "PATH"]),
        (["ls"], ["ls", "--children"]),
        ([], ["no program given"]),
    ],
)
def test_errors(arguments: list[str], parts: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_option_leaves_the_environment_as_it_was(script: Callable[..., pathlib.Path], monkeypatch) -> None:
    from fastio import launcher
    from fastio.errors import SettingError

    monkeypatch.delenv("FASTIO_CHUNK_SIZE", raising=False)
    with pytest.raises(SettingError, match="option --pipe-size"):
        launcher.run([str(script("print('runs')"))], {"chunk_size": "64KiB", "pipe_size": "12 parsecs"})
    assert "FASTIO_CHUNK_SIZE" not in os.environ


def test_a_bad_value_of_the_environment_is_told_before_the_program_runs(script: Callable[..., pathlib.Path]) -> None:
    done = run(script("print('runs')"), env=environment(FASTIO_CHUNK_SIZE="12 parsecs"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "environment FASTIO_CHUNK_SIZE" in done.stderr


def test_the_service_s_configuration_files_are_honoured(script: Callable[..., pathlib.Path], tmp_path) -> None:
    pytest.importorskip("oslo_config")
    (tmp_path / "service.conf").write_text("[fastio]\nchunk_size = 128KiB\n")
    path = script(
        """
        import sys
        from oslo_config import cfg
        cfg.CONF(sys.argv[1:])
        """
        + REPORT.replace("\n", "\n        ")
    )
    found = json.loads(run(path, "--config-file", tmp_path / "service.conf").stdout)
    assert found["chunk_size"] == 128 * 1024
    assert "service.conf" in found["source"]
    found = json.loads(run("--chunk-size", "8KiB", path, "--config-file", tmp_path / "service.conf").stdout)
    assert (found["chunk_size"], found["source"]) == (8192, "environment FASTIO_CHUNK_SIZE")


@pytest.mark.parametrize("how", ["assert cfg.CONF.reload_config_files()", "cfg.CONF.mutate_config_files()"])
def test_the_options_are_read_again_when_the_service_reloads_its_files(how: str, script, tmp_path) -> None:
    pytest.importorskip("oslo_config")
    path = script(
        """
        import pathlib, sys
        import fastio
        from oslo_config import cfg
        file = pathlib.Path(sys.argv[-1])
        def reload(text):
            file.write_text(text)
            HOW
            print(fastio.settings().chunk_size, fastio.status().outcome("communicate").value)
        cfg.CONF(sys.argv[1:])
        reload("[fastio]\\nchunk_size = 64KiB\\ndisabled = communicate\\n")
        reload("[fastio]\\nchunk_size = 12 parsecs\\n")
        reload("")
        """.replace("HOW", how)
    )
    file = tmp_path / "service.conf"
    file.write_text("[fastio]\nchunk_size = 128KiB\n")
    done = run(path, "--config-file", file)
    assert done.stdout.splitlines() == ["65536 reverted", "65536 reverted", "1048576 applied"], done.stderr
    assert "12 parsecs" in done.stderr


def test_the_summary_goes_to_the_service_s_log(script: Callable[..., pathlib.Path]) -> None:
    pytest.importorskip("oslo_log")
    path = script(
        """
        from oslo_config import cfg
        from oslo_log import log
        log.register_options(cfg.CONF)
        cfg.CONF([])
        log.setup(cfg.CONF, "service")
        """
    )
    assert re.search(r"INFO fastio .*\d+ applied", run(path).stdout)


def test_guru_meditation_reports_have_a_section(script: Callable[..., pathlib.Path]) -> None:
    pytest.importorskip("oslo_reports")
    path = script(
        """
        from oslo_reports import guru_meditation_report as gmr
        class Version:
            vendor_string = product_string = version_string_with_package = staticmethod(lambda: "x")
        print(gmr.TextGuruMeditation(Version()).run())
        """
    )
    text = run(path).stdout
    assert len(re.findall(r"^=+ +fastio +=+$", text, re.MULTILINE)) == 1
    assert "subprocess:Popen._communicate" in text
