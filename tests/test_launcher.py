"""``fastio run``: real programs in real processes."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from benchmarks.backends.keeper import descendants
from fastio import cli, launcher
from tests.conftest import needs_eventlet, uwsgi
from tests.eventually import until

ROOT = pathlib.Path(__file__).parent.parent
FASTIO = ROOT / "fastio"
REPORT = """
import json, subprocess, sys
import fastio
status = fastio.status()
print(json.dumps({
    "argv": sys.argv, "outcome": status.outcome("communicate").value, "chunk_size": fastio.settings().chunk_size,
    "source": fastio.settings().sources["chunk_size"],
}))
"""
Script = Callable[..., pathlib.Path]
pythons_before_3_10 = sorted(pathlib.Path(sys.base_prefix).parent.glob("[23].[6789]*/bin/python"))


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "TEST_EVENTLET"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **more}


def run(*arguments: str | pathlib.Path, env: dict[str, str] | None = None, **options: Any) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "fastio", "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=100, env=env or environment(), **options,
    )  # fmt: skip


def report(*arguments: str | pathlib.Path, **options: Any) -> Any:
    """Return the output of ``REPORT`` in the program."""
    done = run(*arguments, **options)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Script:
    """``script(code, name)`` writes an executable script of this Python."""

    def write(code: str, name: str = "service", shebang: str = f"#!{sys.executable}") -> pathlib.Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{shebang}\n{textwrap.dedent(code)}")
        path.chmod(0o755)
        return path

    return write


# The program sees what it would see if it had been started directly.

LOOKS = """
import json, os, sys
print(json.dumps([
    sys.argv, sys.path, list(sys.flags), sorted(globals()), type(__builtins__).__name__, type(__loader__).__name__,
    __name__, globals().get("__file__"), repr(__spec__), repr(__package__), repr(__doc__), sys.warnoptions,
    sys._xoptions, sys.dont_write_bytecode, sys.orig_argv, sys.executable,
    sys.modules["__main__"].__dict__ is globals(), open("/proc/self/comm").read(), dict(os.environ),
]))
"""
PYTHON = sys.executable
#: the first line of the script, and what is started in its directory; ``looks`` is the script
COMMANDS = [
    *((f"#!{first}", "./looks -x y -- -m -c") for first in (
        PYTHON, f"{PYTHON} -Wignore", f"{PYTHON} -W ignore", f"{PYTHON} -u", f"{PYTHON} -Xdev",
        f"   {PYTHON}   -sB", f"/usr/bin/env {PYTHON}", f"/usr/bin/env -S A=b {PYTHON} -X utf8",
        f"/usr/bin/env -S {PYTHON} -s -W error::ResourceWarning",
        *([f"{PYTHON} -P"] if sys.version_info >= (3, 11) else []),
    )),
    ("#!/bin/sh\n'''exec' " + PYTHON + " \"$0\" \"$@\"\n' '''", "./looks x"),
    *((f"#!{PYTHON}", f"{PYTHON} {rest}") for rest in (
        "looks.py x -c y", "./looks.py", "-m looks x", "-mlooks", "-B -m package.looks x", "-m package", "package x",
        "package.pyz x", "-O -W error::ResourceWarning looks.py", "-Wignore -Xutf8 looks.py", "-bBX dev looks.py",
        "--check-hash-based-pycs always looks.py", "-B - x", "-s -B", "-x looks.py", "-i looks.py", "looks.py -I -E -S",
        *(["-P looks.py", "-Pm looks", "-P package.pyz"] if sys.version_info >= (3, 11) else []),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("first", "line"), COMMANDS)
def test_the_program_sees_what_it_would_see_if_started_directly(
    first: str, line: str, script: Script, tmp_path: pathlib.Path
) -> None:
    """Its own name, flags, path, arguments, main module and environment."""
    script(LOOKS, "looks", first)
    for name in ("looks.py", "package/looks.py", "package/__main__.py", "package/__init__.py"):
        script(LOOKS if not name.endswith("init__.py") else "", name)
    with zipfile.ZipFile(tmp_path / "package.pyz", "w") as archive:
        archive.writestr("__main__.py", LOOKS)
    seen = []
    for command in ([], [PYTHON, "-s", "-m", "fastio", "run", "--"]):
        done = subprocess.run(
            [*command, *line.split()], input=LOOKS if line.split()[-2:] in (["-", "x"], ["-s", "-B"]) else "",
            capture_output=True, text=True, timeout=100, cwd=tmp_path,
            env=environment(PYTHONPATH=f"{ROOT}:{tmp_path}", PYTHONSTARTUP=""),
        )  # fmt: skip
        assert done.stdout, done.stderr
        # Objects have their address in their text.
        seen.append(json.loads(re.sub(r" at 0x[0-9a-f]+", "", done.stdout)))
    assert seen[1] == seen[0]


@pytest.mark.parametrize("paths", [None, "", ":", ":/nowhere", "/nowhere::"])
def test_the_program_s_pythonpath(paths: str | None, script: Script) -> None:
    path = script("import os, sys; print(repr(os.environ.get('PYTHONPATH')), sys.path, sorted(os.environ))")
    env = {key: value for key, value in environment().items() if key != "PYTHONPATH"} | (
        {"PYTHONPATH": paths} if paths else {}
    )
    directly = subprocess.run([path], capture_output=True, text=True, env=env, timeout=100)
    assert by_script(script)("run", path, env=env).stdout == directly.stdout


def by_script(script: Script) -> Callable[..., Any]:
    """The command as pip installs it, with this fastio, which needs no PYTHONPATH."""
    command = script(
        f"import sys; sys.path.append({str(ROOT)!r})\nfrom fastio.cli import main\nsys.exit(main())", "bin/fastio"
    )

    def run(*arguments: Any, env: dict[str, str], **options: Any) -> Any:
        return subprocess.run(
            [command, *map(str, arguments)], capture_output=True, text=True, timeout=100, env=env, **options
        )

    return run


@pytest.mark.parametrize("paths", ["", str(ROOT)])
@pytest.mark.parametrize("command", [("run",), ("run", "--children"), ("check", "--"), ("run", "/usr/bin/env")])
def test_nothing_is_imported_from_the_current_directory(command: tuple[str, ...], paths: str, script, tmp_path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    names = {*sys.stdlib_module_names, "fastio", "packaging", "sitecustomize", "usercustomize"} - {"__main__"}
    for name in names:
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})")
    path = script("import os, subprocess, sys; import fastio; print(fastio.status().outcome('communicate').value)")
    env = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    done = by_script(script)(*command, path, env=env | ({"PYTHONPATH": paths} if paths else {}), cwd=here)
    assert done.returncode == 0 and "applied" in done.stdout + "applied" * (command[0] == "check"), done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(7)", 7, ""), ("os._exit(7)", 7, ""),
        ("raise ValueError('of the program')", 1, "ValueError: of the program"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
        ("sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('aside')", 0, "aside"),
    ],
)  # fmt: skip
def test_streams_and_the_end_are_the_program_s(ending: str, status: int, said: str, script: Script) -> None:
    done = run(script(f"import os, signal, sys\n{ending}"), input="text")
    assert (done.returncode, done.stderr.rstrip().rpartition("\n")[2]) == (status, said)
    assert done.stdout == ("TEXT" if said == "aside" else "")
    if said.startswith("ValueError"):
        assert "fastio" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_program_has_the_process_its_name_and_its_signals(script: Script, number: signal.Signals) -> None:
    path = script(
        f"""
        import os, signal, sys, time
        signal.signal({int(number)}, lambda *_: os._exit(42))
        print(os.getpid(), flush=True)
        time.sleep(60)
        """,
        "glance-api",
    )
    command = [sys.executable, "-m", "fastio", "run", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout and int(process.stdout.readline()) == process.pid
        found = subprocess.run(["pgrep", "-x", "glance-api"], capture_output=True, text=True, timeout=60).stdout.split()
        assert str(process.pid) in found
        process.send_signal(number)
        assert process.wait(60) == 42


@needs_eventlet
def test_the_program_s_own_monkey_patch(script: Script) -> None:
    path = script(
        """
        import eventlet
        eventlet.monkey_patch()
        import fastio, subprocess
        print(fastio.status().outcome("green_communicate").value, subprocess.check_output(["echo", "x"]))
        """
    )
    assert run(path).stdout == "applied b'x\\n'\n"


# Started programs, and their interpreters.


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("./my-service -x", ["./my-service", "-x"]), ("--chunk-size 8KiB -- ./my-service", ["./my-service"]),
        ("service.py", ["service.py"]), ("./service.py", ["./service.py"]), ("-m service x", ["{0}/service.py", "x"]),
        ("in-path.py", ["{0}/bin/in-path.py"]), ("in-path", ["{0}/bin/in-path"]),
        ("sh -c", ["-c", "x"]), ("python -c", ["-c", "x"]),
    ],
)  # fmt: skip
def test_programs_run(line: str, argv: list[str], script: Script, tmp_path: pathlib.Path) -> None:
    """A name is looked up in PATH, a path is a path, and a file that ends in .py need not be executable."""
    for name in ("my-service", "bin/in-path.py", "bin/in-path"):
        script(REPORT, name)
    for name in ("service.py", "in-path.py"):
        script("print('the wrong one')" if name == "in-path.py" else REPORT, name).chmod(0o644)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    words = line.split()
    if words[-1] == "-c":
        words += [f"exec {sys.executable} -c '{REPORT}' x" if words[0] == "sh" else REPORT, "x"]
    found = report(*words, cwd=tmp_path, env=environment(PATH=f"{tmp_path}/bin:{os.environ['PATH']}"))
    assert found["argv"] == [each.format(tmp_path) for each in argv]
    assert (found["outcome"], found["chunk_size"]) == ("applied", 8192 if "--chunk-size" in line else 1 << 20)


@pytest.mark.parametrize(
    "line",
    [
        "a", "-- a", "-- a -- b", "a --children", "-m a -x", "--children -m -- -a", "--pipe-size 1M a",
        "--pipe-size=1M --pipe-size 2M --also= a", "--pipe 1M a", "-ma", "--children", "--also -x a", "--also",
        "--enabled 0 a",
    ],
)  # fmt: skip
def test_a_command_line_means_what_argparse_reads(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only such are read without it, which takes long to import."""
    calls: list[Any] = []
    monkeypatch.setattr(launcher, "run", lambda *given, **named: calls.append((given, named)))
    quick = cli._run(line.split())
    assert quick == bool(calls) == (line not in LEFT_TO_ARGPARSE)
    if quick:
        parser = cli._parser()
        cli._run_parsed(parser, parser.parse_args(["run", *line.split()]))
        assert calls[0] == calls[1]


#: Abbreviations, and errors.
LEFT_TO_ARGPARSE = ("--pipe 1M a", "-ma", "--children", "--also -x a", "--also", "--enabled 0 a")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("--chunk-size parsecs -m this", ["chunk_size", "'parsecs'", "option --chunk-size", "4 KiB"]),
        ("--store-chunk-sizes tape=1M -m this", ["store_chunk_sizes", "option --store-chunk-sizes"]),
        ("--disabled wiat -m this", ["'wiat'", "option --disabled"]),
        ("--children --also wiat sh -c true", ["'wiat'", "option --also"]),
        ("--on-error wait -m this", ["'wait'", "option --on-error", "refuse or unpatched"]),
        ("no-such-program", ["no-such-program", "PATH"]), ("no-such-program.py", ["there is no file 'no-such-"]),
        ("./no-such-program", ["'./no-such-program'", "there is no file"]), ("my-service", ["./my-service"]),
        ("./not-executable", ["not executable"]), ("", ["no program given"]),
        ("./isolated", ["-I", "'./isolated'", "fastio.patch()"]), ("./by-env", ["-E"]), ("--children ./by-env", ["-E"]),
        *((f"{PYTHON} {options} x.py", [f"option -{options.strip('-')[-1]} of Python"])
          for options in ("-I", "-E", "-S", "-W ignore -BS", "-Xdev -bI", "--check-hash-based-pycs always -E")),
        *((f"{name} x.py", [f"{name} fastio run"]) for name in ("opentelemetry-instrument", "elasticapm-run")),
    ],
)  # fmt: skip
def test_errors(line: str, parts: list[str], script: Script, tmp_path: pathlib.Path) -> None:
    script("print('runs')", "my-service")
    script("print('runs')", "not-executable").chmod(0o644)
    script("print('runs')", "isolated", f"#!{PYTHON} -BI")
    script("print('runs')", "by-env", f"#!/usr/bin/env -S {PYTHON} -s -E")
    for name in ("opentelemetry-instrument", "elasticapm-run"):
        script("print('runs')", f"bin/{name}")
    done = run(*line.split(), cwd=tmp_path, env=environment(PATH=f"{tmp_path}/bin:{os.environ['PATH']}"))
    assert (done.returncode, done.stdout) == (2, "")
    for part in parts:
        assert part in done.stderr
    assert "Traceback" not in done.stderr


class TestOtherPythons:
    """fastio need not be installed for the Python of the program."""

    @pytest.fixture
    def bare(self, tmp_path: pathlib.Path) -> pathlib.Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=100)
        return tmp_path / "bare" / "bin" / "python"

    CODE = """
        import sys
        import subprocess, fastio
        print(fastio.__file__, fastio.status().outcome("communicate").value, ROOT in sys.path)
        """

    @pytest.mark.parametrize("how", ["run", "children", "shell"])
    def test_an_environment_without_fastio(self, how: str, bare: pathlib.Path, script: Script) -> None:
        path = script(self.CODE.replace("ROOT", repr(str(ROOT))), shebang=f"#!{bare}")
        command: dict[str, list[Any]] = {
            "run": [path],
            "children": ["--children", "sh", "-c", f"{path}; true"],
            "shell": ["sh", "-c", f"exec {path}"],
        }
        env = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
        done = by_script(script)("run", *command[how], env=env)
        assert (done.stdout, done.stderr) == (f"{FASTIO / '__init__.py'} applied False\n", "")

    def test_a_shim_that_executes_a_python(self, script: Script) -> None:
        """Such as pyenv's, which is a program of bash."""
        shim = script(f'exec {sys.executable} "$@"', "bin/python", "#!/usr/bin/env bash")
        found = report("--chunk-size", "8KiB", "--", shim, "-c", REPORT)
        assert (found["outcome"], found["chunk_size"]) == ("applied", 8192)

    @pytest.mark.skipif(not pythons_before_3_10, reason="there is no Python before 3.10")
    @pytest.mark.parametrize("python", pythons_before_3_10, ids=lambda path: path.parts[-3])
    def test_an_old_python(self, python: pathlib.Path, script: Script, tmp_path: pathlib.Path) -> None:
        """A child is left alone, with its own sitecustomize; the program is refused."""
        (tmp_path / "sitecustomize.py").write_text("import sys; sys.stdout.write('own ')")
        env = environment(PYTHONPATH=f"{ROOT}:{tmp_path}")
        code = "import sys; sys.stdout.write(str(any('bootstrap' in path for path in sys.path)))"
        done = run("--children", "--", "sh", "-c", f'{python} -c "{code}"; true', env=env)
        assert (done.returncode, done.stdout.split()[-2:], done.stderr) == (0, ["own", "False"], "")
        for policy, status in (("refuse", 2), ("unpatched", 0)):
            done = run("--on-error", policy, "--", python, "-c", code, env=env)
            assert done.returncode == status and "fastio needs 3.10" in done.stderr
            assert done.stdout.endswith("False") == (policy == "unpatched")


class TestChildren:
    @pytest.mark.parametrize("between", ["", "sh -c "])
    def test_pythons_that_the_program_starts(self, between: str, script: Script) -> None:
        child = script(REPORT, "child")
        command = [*between.split(), str(child)]
        path = script(f"import subprocess; subprocess.run({command})", "parent")
        assert report(path)["outcome"] == "off"
        assert report("--children", path)["outcome"] == "applied"
        # A program that is not Python.
        assert report("sh", "-c", f"{path}; true")["outcome"] == "applied"

    def test_the_site_s_own_sitecustomize_runs(self, script: Script, tmp_path: pathlib.Path) -> None:
        """Before the patches, in its order, and an error in it has no effect on others."""
        site = tmp_path / "site"
        script(
            "import sys, fastio\nsys.own = [path for path in sys.path if 'bootstrap' in path]", "site/sitecustomize.py"
        )
        path = script("import json, sys\nprint(sys.own, sys.modules['sitecustomize'].__file__)" + REPORT)
        for options in ([], ["--children"], ["sh", "-c", "exec $0"]):
            done = run(*options, path, env=environment(PYTHONPATH=f"{ROOT}:{site}"))
            assert done.stdout.splitlines()[0] == f"[] {site / 'sitecustomize.py'}", done.stderr
            assert json.loads(done.stdout.splitlines()[1])["outcome"] == "applied"
        script("raise ValueError('of the site')", "site/sitecustomize.py")
        done = run(script(REPORT), env=environment(PYTHONPATH=f"{ROOT}:{site}"))
        assert json.loads(done.stdout)["outcome"] == "applied" and "of the site" in done.stderr

    #: Modules of tracers in PYTHONPATH: ddtrace's runs the next one, OpenTelemetry's does not, and removed itself once.
    TRACERS = {
        "ddtrace-run": """
            import os, sys
            sys.tracer = "traced"
            sys.path.remove(os.path.dirname(__file__))
            ours = sys.modules.pop("sitecustomize")
            try:
                import sitecustomize
            except ImportError:
                sys.modules["sitecustomize"] = ours
            """,
        "opentelemetry-instrument": """
            import os, sys
            sys.tracer = "traced"
            here = os.path.dirname(__file__)
            paths = [path for path in os.environ["PYTHONPATH"].split(":") if path != here]
            os.environ["PYTHONPATH"] = ":".join(([here] if "fastio" not in "".join(sys.orig_argv) else []) + paths)
            """,
    }  # fmt: skip

    @pytest.mark.parametrize(
        ("tracer", "line"),
        [
            ("ddtrace-run", "fastio run ddtrace-run service"), ("ddtrace-run", "ddtrace-run fastio run service"),
            ("ddtrace-run", "ddtrace-run fastio run --children parent"),
            ("opentelemetry-instrument", "opentelemetry-instrument fastio run service"),
            ("opentelemetry-instrument", "opentelemetry-instrument fastio run --children parent"),
        ],
    )  # fmt: skip
    def test_a_tracer_s_own_launcher(self, tracer: str, line: str, script: Script, tmp_path: pathlib.Path) -> None:
        script(self.TRACERS[tracer], "tracer/sitecustomize.py")
        code = f"""
            import os, shutil, sys
            os.environ["PYTHONPATH"] = "{tmp_path}/tracer:" + os.environ["PYTHONPATH"]
            os.execv(shutil.which(sys.argv[1]), sys.argv[1:])
            """
        script(code, f"bin/{tracer}")
        script("import sys\nprint(getattr(sys, 'tracer', 'not traced'))" + REPORT, "bin/service")
        script("import subprocess; subprocess.run(['service'])", "bin/parent")
        script("import sys\nfrom fastio.cli import main\nsys.exit(main())", "bin/fastio")
        env = environment(PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
        done = subprocess.run(line.split(), capture_output=True, text=True, env=env, timeout=100)
        assert done.stderr == "" and done.stdout.startswith("traced\n"), done.stderr
        assert json.loads(done.stdout.splitlines()[1])["outcome"] == "applied"

    def test_a_python_that_uses_none_of_it_imports_next_to_nothing(self) -> None:
        code = "import sys; print(*sys.modules)"
        plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
        found = set(run("sh", "-c", f"{sys.executable} -c '{code}'; true").stdout.split()) - set(plain.stdout.split())
        assert {name for name in found if name.startswith("fastio")} == {
            "fastio", "fastio.children", "fastio.patching", "fastio.patching.imports", "fastio.proxy",
            "fastio.version",
        }  # fmt: skip
        assert len(found) <= 40
        assert found & {"subprocess", "logging", "json", "inspect", "pkgutil", "fastio.config"} == set()

    @pytest.mark.parametrize("module", ["subprocess", "multiprocessing.spawn", "oslo_config.cfg", "eventlet"])
    def test_the_first_module_that_patches_are_for_starts_it(self, module: str) -> None:
        pytest.importorskip(module.partition(".")[0])
        code = f"""
import fastio, sys
before = "fastio.patching.patcher" in sys.modules
import {module}
import fastio.service, subprocess
print(before, fastio.service._followed, fastio.status().outcome("communicate").value)
"""
        done = run("sh", "-c", f'{sys.executable} -c "$0"; true', code)
        assert done.stdout == "False True applied\n", done.stderr

    def test_a_trace_begins_with_the_process(self, tmp_path: pathlib.Path) -> None:
        code = "import sys; print('fastio.patching.patcher' in sys.modules)"
        done = run("--trace", tmp_path, "sh", "-c", f'{sys.executable} -c "$0"; true', code)
        assert done.stdout == "True\n"

    def test_a_warning_of_a_library_is_reported_where_it_is_imported(self, script: Script, tmp_path) -> None:
        script("import warnings; warnings.warn('old', DeprecationWarning, 2)", "eventlet/__init__.py")
        path = script("import eventlet")
        done = run("--children", "sh", "-c", f"{path}; true", env=environment(PYTHONWARNINGS="default"))
        assert f"{path}:2: DeprecationWarning: old" in done.stderr


# Forked and spawned workers.


def test_forked_workers_are_patched(script: Script) -> None:
    assert report(script("import os\nif os.fork(): os.wait(); os._exit(0)\n" + REPORT))["outcome"] == "applied"


SPAWNS = """
    import json, multiprocessing, os, pathlib, subprocess, sys
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
    """A bad setting, in each way of getting in: the service refuses to start, or starts unpatched and logs that."""

    BAD = "chunk_size: '12 parsecs'"
    WAYS = ("option", "environment", "children", "python", "auto")
    POLICIES = pytest.mark.parametrize("policy", ["", "unpatched"])

    def check(self, done: Any, policy: str) -> None:
        """It is reported once; ``done`` has printed the report if it has run."""
        assert done.stderr.count(self.BAD) == 1, done.stderr
        if policy == "unpatched":
            assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "off"), done.stderr
            assert "fastio: not patched: " in done.stderr and "Traceback" not in done.stderr
        else:
            assert done.returncode in (1, 2) and done.stdout == ""

    @pytest.mark.parametrize(
        ("how", "policy"), [("environment", "refuse"), *((how, policy) for how in WAYS for policy in ("", "unpatched"))]
    )
    def test_at_the_start(self, policy: str, how: str, script: Script) -> None:
        path = script("import fastio.auto\n" * (how == "auto") + REPORT)
        bad = {} if how == "option" else {"FASTIO_CHUNK_SIZE": "12 parsecs"}
        env = environment(**bad, **({"FASTIO_ON_ERROR": policy} if policy else {}))
        if how == "auto":
            done = subprocess.run([path], capture_output=True, text=True, env=env, timeout=100)
        else:
            options = {"option": ["--chunk-size", "12 parsecs"], "children": ["--children"]}.get(how, [])
            done = run(*options, "--", *([sys.executable] if how == "python" else []), path, env=env)
        self.check(done, policy)
        # An unpatched program has found it itself.
        where = "option --chunk-size" if how == "option" and not policy else "environment FASTIO_CHUNK_SIZE"
        assert where in done.stderr

    @POLICIES
    @pytest.mark.parametrize("how", ["children", "trace"])
    def test_in_a_child_whose_environment_the_program_has_changed(self, policy: str, how: str, script) -> None:
        path = script(REPORT)
        code = f"FASTIO_CHUNK_SIZE='12 parsecs' exec {path}"
        options = ["--on-error", policy] if policy else []
        env = environment(**({"FASTIO_TRACE": str(path.parent / "trace")} if how == "trace" else {}))
        self.check(run(*options, "--", "sh", "-c", code, env=env), policy)

    @POLICIES
    def test_in_a_spawned_worker(self, policy: str, script: Script, tmp_path) -> None:
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
            assert (done.returncode, found["outcome"] == "off") == (0, True)
            # Once when it happens, and once where operators look.
            assert done.stderr.count(self.BAD) == 1 and log.read_text().count(f"not patched: {self.BAD}") == 1
        else:
            self.check(done, policy)
            assert re.search(f"ERROR fastio .*{self.BAD}", log.read_text())

    def test_the_kill_switch_works_whatever_else_is_bad(self, script: Script) -> None:
        bad = {"FASTIO_CHUNK_SIZE": "x", "FASTIO_DISABLED": "wiat", "FASTIO_ALSO": "wiat", "FASTIO_TRACE": "\n",
               "FASTIO_ACCEPT_CODE": "os:write@0123456789abcdef"}  # fmt: skip
        done = run(script(REPORT), env=environment(FASTIO="0", **bad))
        assert (json.loads(done.stdout)["outcome"], done.stderr) == ("off", "")


class TestFailurePolicyInUwsgi:
    """uWSGI reports an exception and serves without the application, or starts its workers again for ever."""

    BAD = TestFailurePolicy.BAD
    #: the report, by where the fault is
    REPORTED = {"environment": BAD, "file": BAD, "fastio": "ZeroDivisionError: division by zero"}
    SERVICE = """
    from oslo_config import cfg
    from oslo_log import log
    log.register_options(cfg.CONF)
    cfg.CONF(["--config-file", "service.conf", "--log-file", "service.log"])
    log.setup(cfg.CONF, "service")
    def application(environ, start_response):
        start_response("200 OK", [])
        return []
    """
    #: the beginning of a service in which patch() fails
    BROKEN = """
    from fastio.patching import patcher
    patcher.apply = lambda *_: 1 / 0
    """
    #: each way of patching the service: the command before uWSGI's, its environment, and options of uWSGI
    WAYS: Mapping[str, tuple[list[str], dict[str, str], list[str]]] = {
        "import": ([], {}, ["--import", "fastio.auto"]),
        "run": ([sys.executable, "-m", "fastio", "run", "--"], {"PYTHONPATH": str(ROOT)}, []),
        "sitecustomize": ([], {"PYTHONPATH": f"{FASTIO / 'bootstrap'}:{ROOT}"}, []),
    }
    #: options of uWSGI, and its exit status if the service cannot be loaded
    LOADED: Mapping[str, tuple[list[str], int]] = {
        "before the fork": (["--master"], 22),
        "in the workers": (["--master", "--lazy-apps"], 0),
        "need-app": (["--master", "--lazy-apps", "--need-app"], 22),
        "no master": (["--lazy-apps"], 22),
    }
    EACH = pytest.mark.parametrize(
        ("way", "loaded", "where"),
        [
            *(("import", loaded, where) for loaded in LOADED for where in ("environment", "file")),
            *((way, "in the workers", where) for way in ("run", "sitecustomize") for where in ("environment", "file")),
            *((way, "in the workers", "fastio") for way in ("import", "sitecustomize")),
        ],
    )

    @pytest.fixture
    def start(self, script: Script, tmp_path: pathlib.Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
        started: list[subprocess.Popen[bytes]] = []

        def start(way: str, loaded: str, where: str, policy: str = "") -> subprocess.Popen[bytes]:
            places, size = (("environment", "file"), "1MiB") if where == "fastio" else ((where,), "12 parsecs")
            script(self.BROKEN * (where == "fastio") + self.SERVICE, "service.py")
            given = {"chunk_size": size, **({"on_error": policy} if policy else {})}
            in_file = "".join(f"{name} = {value}\n" for name, value in given.items() if "file" in places)
            (tmp_path / "service.conf").write_text(f"[fastio]\n{in_file}")
            options = [f"--env=FASTIO_{name.upper()}={value}" for name, value in given.items()]
            options *= "environment" in places
            before, variables, more = self.WAYS[way]
            env = {name: value for name, value in environment().items() if not name.startswith("PYTHON")} | variables
            command = [
                *before, *uwsgi(), *more, *options, *self.LOADED[loaded][0], "--processes", "2", "--enable-threads",
                "--die-on-term", "--socket", ":0", "--module", "service",
            ]  # fmt: skip
            with open(tmp_path / "stderr", "wb") as said:
                started.append(subprocess.Popen(command, stderr=said, cwd=tmp_path, env=env, start_new_session=True))
            return started[-1]

        yield start
        for server in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait(100)

    @EACH
    def test_it_ends(self, way: str, loaded: str, where: str, start, tmp_path) -> None:
        status = start(way, loaded, where).wait(100)
        said = (tmp_path / "stderr").read_text()
        reported = self.REPORTED[where]
        assert reported in said and "Traceback" not in said.partition(reported)[0], said
        # Under others, the master may have found it, as it imported what fastio has patches for.
        assert way != "import" or status == self.LOADED[loaded][1]
        # The settings of the environment are read before the service has a log.
        log = tmp_path / "service.log"
        in_log = where == "file" or (way, where) == ("import", "fastio")
        assert (reported in log.read_text() if log.exists() else False) == in_log

    @EACH
    def test_it_serves_unpatched(self, way: str, loaded: str, where: str, start, tmp_path) -> None:
        server, log = start(way, loaded, where, "unpatched"), tmp_path / "service.log"
        loads = 1 if loaded == "before the fork" else 2
        until(lambda: log.exists() and log.read_text().count(f"not patched: {self.REPORTED[where]}") == loads)
        assert server.poll() is None and "waiting for import" not in log.read_text()

    def test_a_worker_that_it_starts_again_is_not_patched(self, start, tmp_path) -> None:
        server, log = start("import", "need-app", ""), tmp_path / "service.log"
        until(lambda: log.exists() and log.read_text().count("waiting for import") == 2)
        (tmp_path / "service.conf").write_text("[fastio]\nchunk_size = 12 parsecs\n")
        os.kill(descendants(server.pid)[0], signal.SIGKILL)
        until(lambda: f"not patched: {self.BAD}" in log.read_text())
        assert server.poll() is None


# The service's own configuration and log.


def test_the_service_s_configuration_files_are_honoured(script: Script, tmp_path) -> None:
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
        import pathlib, subprocess, sys
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
    assert done.stdout.splitlines() == ["65536 off", "65536 off", "1048576 applied"], done.stderr
    assert "12 parsecs" in done.stderr


def test_the_summary_goes_to_the_service_s_log(script: Script) -> None:
    pytest.importorskip("oslo_log")
    path = script(
        """
        import subprocess
        from oslo_config import cfg
        from oslo_log import log
        log.register_options(cfg.CONF)
        cfg.CONF([])
        log.setup(cfg.CONF, "service")
        """
    )
    assert re.search(r"INFO fastio .*\d+ in effect", run(path).stdout)


def test_guru_meditation_reports_have_a_section(script: Script) -> None:
    pytest.importorskip("oslo_reports")
    path = script(
        """
        import subprocess
        from oslo_reports import guru_meditation_report as gmr
        class Version:
            vendor_string = product_string = version_string_with_package = staticmethod(lambda: "x")
        print(gmr.TextGuruMeditation(Version()).run())
        """
    )
    text = run(path).stdout
    assert len(re.findall(r"^=+ +fastio +=+$", text, re.MULTILINE)) == 1
    assert "subprocess:Popen._communicate" in text
