"""``fastio run``: run a program with the patches applied, as if it had been started directly.

The program runs in this very process, so its signals, exit status, descriptors and forked workers are its own. Workers
that :mod:`multiprocessing` spawns are patched as well. What it starts by exec is reached, where ``children`` is asked
for, through the environment: PYTHONPATH begins with ``fastio/bootstrap``, whose ``sitecustomize`` patches and then goes
on with the site's own.
"""

import builtins
import os
import runpy
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import fastio
from fastio import service
from fastio.config import SETTINGS
from fastio.errors import FastioError

BOOTSTRAP = Path(__file__).parent / "bootstrap"


class ProgramError(FastioError):
    """The program cannot be run in this way. The message says what can be done."""


#: How a new interpreter goes on with a run: the options of the script's first line hold from its start.
_RESUME = """\
import sys
path = list(sys.path)
sys.path.append(sys.argv[1])
from fastio import launcher
sys.path[:] = path
launcher.resume(sys.argv[2:])
"""


def run(program: Sequence[str], settings: Mapping[str, str], *, module: bool = False, children: bool = False) -> None:
    """Patch, and run ``program`` with its arguments; returns when it does, unless it is exec'd.

    :param program: a Python script (a name is looked up in PATH), or the name of a module, and its arguments
    :param settings: texts by the name of the setting; they win over the environment, also in children
    :param module: ``program[0]`` is the name of a module, as with ``python -m``
    :param children: patch the Pythons that the program starts as well; then it need not be Python itself
    :raises fastio.errors.SettingError: for a bad setting, before anything is patched
    :raises ProgramError: if there is no such program, or if it cannot be run in this way
    """
    path = "" if module else _find(program[0])
    interpreter = [] if module else _interpreter(path)
    options = [] if module else _options(path, interpreter)
    if options is None and not children:
        raise ProgramError(_refusal(path, interpreter))
    by_name = {setting.name: setting for setting in SETTINGS}
    # All are read before the first one counts: a bad one leaves the environment as it was.
    read = {name: by_name[name].read(text, "option --" + name.replace("_", "-")) for name, text in settings.items()}
    for name, text in settings.items():
        # A path is told as it is from here: the program, or its children, may go elsewhere.
        os.environ[by_name[name].env] = read[name] if isinstance(read[name], str) else text
    if children:
        paths = [str(BOOTSTRAP), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    if options is None:
        os.execv(path, list(program))
    if options:
        root = str(Path(fastio.__file__).parent.parent)
        # What the first line asks for counts from the start of an interpreter.
        os.execv(sys.executable, [sys.executable, *options, "-c", _RESUME, root, path, *program[1:]])
    sys.orig_argv[1:] = ["-m", *program] if module else [path, *program[1:]]
    _patch()
    if module:
        _run_module(program)
    else:
        _run_script(path, program)


def resume(program: Sequence[str]) -> None:
    """Go on with a run in an interpreter that was started with the options of the script's first line."""
    del sys.orig_argv[-len(program) - 3 :]
    sys.orig_argv += program
    try:
        _patch()
    except FastioError as error:
        print(f"fastio: {error}", file=sys.stderr)
        sys.exit(2)
    _run_script(program[0], program)


def _patch() -> None:
    fastio.patch()
    service.follow()


def interpreter(program: str) -> list[str]:
    """The interpreter that the first line of the program names, and its options; empty if it names none.

    :raises ProgramError: if there is no such program
    """
    return _interpreter(_find(program))


def _find(program: str) -> str:
    """The path of the program: as a shell finds it, and as ``python script.py`` does.

    Of the current directory a name is only taken if it ends in ``.py`` or ``.pyz`` and is not in PATH.
    """
    path = program
    if os.path.dirname(program) == "":
        found = shutil.which(program)
        if found is None and not (program.endswith((".py", ".pyz")) and os.path.isfile(program)):
            raise ProgramError(f"there is no program {program!r} in PATH; a file needs a path, such as ./{program}")
        path = found or program
    if not os.path.exists(path):
        raise ProgramError(f"there is no file {path!r}")
    if not os.access(path, os.R_OK):
        raise ProgramError(f"{path!r} cannot be read")
    if not path.endswith((".py", ".pyz")) and not os.path.isdir(path) and not os.access(path, os.X_OK):
        raise ProgramError(f"{path!r} is not executable; a script has to be, or its name to end in .py or .pyz")
    return path


def _interpreter(path: str) -> list[str]:
    """The interpreter that the first line names, and its options; empty if it names none."""
    if os.path.isdir(path):
        return []
    with open(path, "rb") as file:
        first = file.readline(256)
        # pip's launcher for long paths and blanks: a shell line that gives way to Python
        second = file.readline(1024)
    words = _words(first, second)
    return [shutil.which(words[0]) or words[0], *words[1:]] if words else []


def _options(path: str, interpreter: Sequence[str]) -> list[str] | None:
    """What the first line tells the interpreter, if this one has its site-packages; None if it is another."""
    if _is_python(interpreter) and _prefix(interpreter[0]) in _prefixes():
        return list(interpreter[1:])
    # With this name it is this Python's whatever its first line says, as with python script.py.
    return [] if os.path.isdir(path) or path.endswith((".py", ".pyz")) else None


def _is_python(interpreter: Sequence[str]) -> bool:
    return bool(interpreter) and "python" in os.path.basename(interpreter[0])


def _refusal(path: str, interpreter: Sequence[str]) -> str:
    """Why ``path`` is not run, and what can be done."""
    if not _is_python(interpreter):
        return (
            f"{path} is no script of this Python ({sys.executable}): run it with --children, which patches each Python "
            "that it starts, if fastio is installed there"
        )
    return (
        f"{path} is a script of {interpreter[0]}, and what is installed there is not installed for this Python "
        f"({sys.executable}). Install fastio for {interpreter[0]}, and use the fastio command that comes with it; or "
        "use that of an environment which was made from it with --system-site-packages"
    )


def _words(first: bytes, second: bytes) -> list[str]:
    """The interpreter and its options as the kernel, or ``env``, would have them."""
    if not first.startswith(b"#!"):
        return []
    line = os.fsdecode(first[2:]).strip()
    if line.startswith("/bin/sh") and b"'''exec'" in second:
        words = shlex.split(os.fsdecode(second).partition("'''exec'")[2])
        return [word for word in words if word not in ("$0", "$@")]
    # The kernel hands over all after the interpreter as one argument.
    words = line.split(None, 1)
    if words and os.path.basename(words[0]) == "env":
        rest = words[1] if len(words) > 1 else ""
        for split in ("-S", "--split-string=", "-vS"):
            if rest.startswith(split):
                return [word for word in shlex.split(rest[len(split) :]) if "=" not in word or word.startswith("-")]
        return [rest] if rest and not rest.startswith("-") else []
    return words


def _prefixes() -> set[str]:
    """Of this interpreter, and of the one beneath it if this environment shares the site-packages of that one."""
    found = {_prefix(sys.executable)}
    configuration = Path(sys.prefix, "pyvenv.cfg")
    if configuration.exists():
        lines = (line.partition("=") for line in configuration.read_text(encoding="utf-8").splitlines())
        values = {key.strip().lower(): value.strip().lower() for key, _, value in lines}
        if values.get("include-system-site-packages") == "true":
            found.add(os.path.realpath(sys.executable))
    return found


def _prefix(interpreter: str) -> str:
    """The directory that tells the virtual environments of one Python apart; of none, the interpreter."""
    directory, name = os.path.split(os.path.abspath(interpreter))
    if os.path.exists(os.path.join(os.path.dirname(directory), "pyvenv.cfg")):
        return directory
    return os.path.realpath(os.path.join(directory, name))


def _begin_path_with(*entry: str) -> None:
    """Have sys.path begin as it does for the program; with ``-P`` or ``-I`` it has no such entry, and ours neither."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[:1] = entry


def _run_module(program: Sequence[str]) -> None:
    sys.argv[:] = program
    _begin_path_with(os.getcwd())
    runpy.run_module(program[0], run_name="__main__", alter_sys=True)


def _run_script(path: str, program: Sequence[str]) -> None:
    sys.argv[:] = [path, *program[1:]]
    if path.endswith(".pyz") or os.path.isdir(path):
        # It adds the entry itself.
        _begin_path_with()
        runpy.run_path(path, run_name="__main__")
        return
    _begin_path_with(os.path.dirname(os.path.realpath(path)))
    # A module of its own, kept alive: runpy would clear its globals while threads and atexit still use them.
    main = ModuleType("__main__")
    main.__loader__ = SourceFileLoader("__main__", path)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    # The module, as a script has it; elsewhere it is a dictionary.
    vars(main)["__builtins__"] = builtins
    main.__file__ = path
    vars(main)["__cached__"] = None
    sys.modules["__main__"] = main
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(main))
