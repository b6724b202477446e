"""``fastio run``: real programs in real processes."""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import needs_eventlet

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


class TestFailurePolicy:
    """A bad setting, in each way of getting in: the service refuses to start, or starts unpatched and says so."""

    BAD = "chunk_size: '12 parsecs'"
    POLICIES = pytest.mark.parametrize("policy", ["", "refuse", "unpatched"])

    def check(self, done: Any, policy: str) -> None:
        """It is told once; ``done`` has printed the report if it has run."""
        assert done.stderr.count(self.BAD) == 1, done.stderr
        if policy == "unpatched":
            assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "off"), done.stderr
            assert "fastio: not patched: " in done.stderr and "Traceback" not in done.stderr
        else:
            assert done.returncode in (1, 2) and done.stdout == ""

    @POLICIES
    @pytest.mark.parametrize("how", ["option", "environment", "children", "python", "auto"])
    def test_at_the_start(self, policy: str, how: str, script: Callable[..., pathlib.Path]) -> None:
        path = script("import fastio.auto\n" * (how == "auto") + REPORT)
        bad = {} if how == "option" else {"FASTIO_CHUNK_SIZE": "12 parsecs"}
        env = environment(**bad, **({"FASTIO_ON_ERROR": policy} if policy else {}))
        if how == "auto":
            done = subprocess.run([path], capture_output=True, text=True, env=env, timeout=100)
        else:
            options = {"option": ["--chunk-size", "12 parsecs"], "children": ["--children"]}.get(how, [])
            done = run(*options, "--", *([sys.executable] if how == "python" else []), path, env=env)
        self.check(done, policy)
        where = "option --chunk-size" if how == "option" else "environment FASTIO_CHUNK_SIZE"
        assert where in done.stderr

    @POLICIES
    @pytest.mark.parametrize("how", ["children", "trace"])
    def test_in_a_child_whose_environment_the_program_has_changed(self, policy: str, how: str, script) -> None:
        path = script(REPORT.replace("import json", "import json, subprocess"))
        code = f"FASTIO_CHUNK_SIZE='12 parsecs' exec {path}"
        options = ["--on-error", policy] if policy else []
        env = environment(**({"FASTIO_TRACE": str(path.parent / "trace")} if how == "trace" else {}))
        self.check(run(*options, "--", "sh", "-c", code, env=env), policy)

    @POLICIES
    def test_in_a_spawned_worker(self, policy: str, script: Callable[..., pathlib.Path], tmp_path) -> None:
        code = SPAWNS.replace("AUTO", "False").replace(
            "process.start()", "os.environ['FASTIO_CHUNK_SIZE'] = '12 parsecs'; process.start()"
        )
        told = tmp_path / "told"
        path = script(code.replace("settings = fastio.settings()", "pathlib.Path(path).touch(); return"))
        done = run(*(["--on-error", policy] if policy else []), path, "spawn", told)
        assert (done.returncode, told.exists()) == ((0, True) if policy == "unpatched" else (2, False))
        assert done.stderr.count(self.BAD) == 1

    @POLICIES
    @pytest.mark.parametrize("where", ["environment", "file"])
    def test_in_the_service_s_files(self, policy: str, where: str, script, tmp_path) -> None:
        pytest.importorskip("oslo_log")
        in_file = f"on_error = {policy}\n" if policy and where == "file" else ""
        (tmp_path / "service.conf").write_text(f"[fastio]\n{in_file}chunk_size = 12 parsecs\n")
        path = script(
            """
            import sys
            from oslo_config import cfg
            from oslo_log import log
            log.register_options(cfg.CONF)
            cfg.CONF(sys.argv[1:])
            """
            + REPORT.replace("\n", "\n            ")
            + "log.setup(cfg.CONF, 'service')"
        )
        env = environment(**({"FASTIO_ON_ERROR": policy} if policy and where == "environment" else {}))
        log = tmp_path / "service.log"
        done = run(path, "--config-file", tmp_path / "service.conf", "--log-file", log, env=env)
        if policy == "unpatched":
            found = json.loads(done.stdout)
            assert (done.returncode, found["outcome"] in ("off", "reverted")) == (0, True)
            # Once when it happens, and once where operators look.
            assert done.stderr.count(self.BAD) == 1 and log.read_text().count(f"not patched: {self.BAD}") == 1
        else:
            self.check(done, policy)

    def test_the_kill_switch_works_whatever_else_is_bad(self, script: Callable[..., pathlib.Path]) -> None:
        bad = {"FASTIO_CHUNK_SIZE": "x", "FASTIO_DISABLED": "wiat", "FASTIO_ALSO": "wiat", "FASTIO_TRACE": "\n"}
        bad["FASTIO_SITE_FINGERPRINTS"] = "/nowhere"
        done = run(script(REPORT), env=environment(FASTIO="0", **bad))
        assert (json.loads(done.stdout)["outcome"], done.stderr) == ("off", "")


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
    __name__, globals().get("__file__"), repr(__spec__), repr(__package__), repr(__doc__), sys.warnoptions,
    sys._xoptions, sys.dont_write_bytecode, sys.orig_argv[1:], sys.modules["__main__"].__dict__ is globals(),
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


def looks_from(program: str, tmp_path: pathlib.Path, *command: str, **variables: str) -> list[Any]:
    """What a program tells of its interpreter and itself when it is started so."""
    env = environment(**variables)
    # A module has to be found where the path is safe.
    env["PYTHONPATH"] += f":{tmp_path}"
    done = subprocess.run(
        [*command, *program.split()],
        input=LOOKS if program.split()[-2:] in (["-", "x"], ["-s", "-B"]) else None,
        capture_output=True, text=True, timeout=100, env=env, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout, done.stderr
    # Objects have their address in their text, and the Python has its name from its caller.
    return json.loads(re.sub(r" at 0x[0-9a-f]+", "", done.stdout))


PROGRAMS = [
    "looks.py x -c y", "./looks.py", "-- looks.py x", "-m looks x", "-mlooks", "-B -m package.looks x", "-m package",
    "package x", "package.pyz x", "-I looks.py x", "-IB looks.py", "-I package", "-E looks.py", "-S looks.py",
    "-sE -m looks",
    "-O -W error::ResourceWarning looks.py", "-Wignore -Xutf8 looks.py", "-bBX dev looks.py",
    "--check-hash-based-pycs always looks.py", "-B - x", "-I - x", "-s -B",
    *(["-P looks.py", "-Pm looks", "-sP package", "-P package.pyz"] if sys.version_info >= (3, 11) else []),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_python_and_its_arguments(program: str, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path) -> None:
    """It sees the same flags, path, arguments and main module as started directly, also where the path is safe."""
    (tmp_path / "package").mkdir()
    for name in ("looks.py", "package/looks.py", "package/__main__.py", "package/__init__.py"):
        script(LOOKS if not name.endswith("init__.py") else "", name)
    with zipfile.ZipFile(tmp_path / "package.pyz", "w") as archive:
        archive.writestr("__main__.py", LOOKS)
    fastio_run = [sys.executable, "-m", "fastio", "run", "--", sys.executable]
    for variables in ({}, {"PYTHONSAFEPATH": "1"}):
        found = looks_from(program, tmp_path, *fastio_run, **variables)
        assert found == looks_from(program, tmp_path, sys.executable, **variables)


@pytest.mark.parametrize("option", ["-c", "-Bc", "-Ic", "-W ignore -c"])
def test_a_python_and_a_command(option: str) -> None:
    indented = textwrap.indent(LOOKS, "  ") if sys.version_info >= (3, 14) else LOOKS
    command = [sys.executable, *option.split(), indented, "x", "-c"]
    directly = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=100)
    done = run("--", *command)
    assert done.stdout and done.stdout == directly.stdout, done.stderr + directly.stderr


@pytest.mark.parametrize("name", ["python", "python3", "python{0.major}.{0.minor}"])
def test_a_python_by_its_name_is_patched(name: str, tmp_path: pathlib.Path) -> None:
    env = environment(PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    name = name.format(sys.version_info)
    if shutil.which(name, path=env["PATH"]) != os.path.join(os.path.dirname(sys.executable), name):
        pytest.skip(f"this environment has no {name}")
    found = json.loads(run("--chunk-size", "64KiB", "--", name, "-c", REPORT, "-x", env=env, cwd=tmp_path).stdout)
    assert (found["argv"], found["outcome"], found["chunk_size"]) == (["-c", "-x"], "applied", 65536)
    assert run("--", name, "--version", env=env).stdout == f"Python {platform.python_version()}\n"
    assert "unknown option" in run("--", name, "-Z", env=env).stderr.lower()


def test_another_python_is_refused_and_runs_with_children(in_environment: Callable[..., Any]) -> None:
    done = in_environment(BASE)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{BASE} is another Python" in done.stderr and "--system-site-packages" in done.stderr


def test_a_script_does_not_have_the_options_of_the_fastio_command(script: Callable[..., pathlib.Path]) -> None:
    """Distributions put options into the first lines of all scripts, that of the fastio command as well."""
    command = [sys.executable, "-s", "-B", "-Wignore", "-m", "fastio", "run", str(script(LOOKS))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=100)
    directly = subprocess.run(command[-1:], capture_output=True, text=True, env=environment(), timeout=100)
    assert json.loads(done.stdout) == json.loads(directly.stdout)


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
        done = run("--children", "sh", "-c", f"PYTHONPATH=${{PYTHONPATH%%:*}}; {child}; true", cwd="/")
        assert (done.stdout, done.stderr) == ("False\n", "")

    def test_a_program_that_is_no_python_is_replaced_and_its_pythons_are_patched(self, script) -> None:
        path = script(REPORT)
        assert run("sh", "-c", "exit 9").returncode == 9
        assert json.loads(run("sh", "-c", f"{path} argument").stdout)["outcome"] == "applied"

    def test_a_program_whose_python_has_no_fastio_is_told(self) -> None:
        """uWSGI is linked with a Python, which need not be that of fastio. Here, a shell becomes one."""
        code = f'PYTHONPATH=${{PYTHONPATH%%:*}}; exec {sys.executable} -S -c "import sitecustomize; print(1)"'
        done = run("sh", "-c", code, cwd="/")
        assert done.stdout == "1\n" and done.stderr.count("fastio: not patched") == 1
        assert "No module named 'fastio'" in done.stderr

    def test_a_python_that_uses_none_of_it_imports_next_to_nothing(self) -> None:
        code = "import sys; print(*sys.modules)"
        plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
        found = set(run("sh", "-c", f"{sys.executable} -c '{code}'").stdout.split()) - set(plain.stdout.split())
        assert {name for name in found if name.startswith("fastio")} == {
            "fastio", "fastio.children", "fastio.patching", "fastio.patching.imports", "fastio.patching.proxy",
            "fastio.version",
        }  # fmt: skip
        assert (
            len(found) <= 40
            and found & {"subprocess", "logging", "json", "inspect", "pkgutil", "fastio.config"} == set()
        )

    @pytest.mark.parametrize("module", ["subprocess", "multiprocessing.spawn", "oslo_config.cfg", "eventlet"])
    def test_the_first_module_that_patches_are_for_starts_it(self, module: str) -> None:
        pytest.importorskip(module.partition(".")[0])
        code = f"""
import fastio, sys
before = "fastio.patching.patcher" in sys.modules
import {module}
import fastio.service
print(before, fastio.service._followed, fastio.status().outcome("communicate").value)
"""
        assert run("sh", "-c", f'exec {sys.executable} -c "$0"', code).stdout == "False True applied\n"

    def test_a_trace_begins_with_the_process(self, tmp_path: pathlib.Path) -> None:
        code = "import sys; print('fastio.patching.patcher' in sys.modules)"
        done = run("--trace", tmp_path, "sh", "-c", f'exec {sys.executable} -c "$0"', code)
        assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--chunk-size", "12 parsecs", "-m", "this"], ["chunk_size", "'12 parsecs'", "option --chunk-size", "4 KiB"]),
        (["--store-chunk-sizes", "tape=1M", "-m", "this"], ["store_chunk_sizes", "option --store-chunk-sizes"]),
        (["no-such-program"], ["no-such-program", "PATH"]),
        (["./no-such-program"], ["'./no-such-program'", "there is no file"]),
        (["no-such-program.py"], ["no-such-program.py", "PATH"]),
        ([sys.executable, "-x", "this.py"], ["-x"]),
        ([sys.executable, "-i", "-q"], ["interactive", "import fastio.auto"]),
        (["--disabled", "wiat", "-m", "this"], ["'wiat'", "option --disabled"]),
        (["--children", "--disabled", "wiat", "sh", "-c", "echo runs"], ["'wiat'", "option --disabled"]),
        (["--also", "wiat", "sh", "-c", "echo runs"], ["'wiat'", "option --also"]),
        (["--on-error", "wait", "-m", "this"], ["'wait'", "option --on-error", "refuse or unpatched"]),
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
    assert re.search(r"INFO fastio .*\d+ patches applied", run(path).stdout)


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
