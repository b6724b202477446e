"""``fastio run``: start a program with the patches applied, through its environment.

PYTHONPATH begins with ``fastio/bootstrap``, whose ``sitecustomize`` runs the site's own and then
:mod:`fastio.children`. The program takes the place of this process by ``execve()``, with its own name, process id,
descriptors, signals and exit status.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence

from fastio import config
from fastio.errors import FastioError, SettingError
from fastio.patching import registry

BOOTSTRAP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bootstrap")
#: The variable that has the process id of the program, and ``children`` if the Pythons that it starts are patched too.
PROGRAM = "_FASTIO_PROGRAM"
#: Python programs that execute another program in their place.
_EXECUTING = ("ddtrace-run", "newrelic-admin")
#: Those that start the program with a sitecustomize that runs no other one.
_HIDING = ("elasticapm-run", "opentelemetry-instrument")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*[a-z]*(-dbg)?")


class ProgramError(FastioError):
    """The program cannot be run in this way. The message says what can be done."""


def run(program: Sequence[str], settings: Mapping[str, str], *, module: bool = False, children: bool = False) -> None:
    """Run ``program`` with its arguments in place of this one, with the patches applied; returns only by an error.

    :param program: a program and its arguments (a name is looked up in PATH), or the name of a module and its arguments
    :param settings: texts by the name of the setting; they win over the environment, also in children
    :param module: ``program[0]`` is the name of a module, as with ``python -m``
    :param children: patch the Pythons that the program starts as well. A program that is not Python is always run so
    :raises fastio.errors.SettingError: for a bad setting, unless ``on_error`` says otherwise
    :raises ProgramError: if there is no such program, or if fastio cannot get into it
    """
    path, arguments, python = _module(program) if module else _command(program)
    name = os.path.basename(path)
    environ = _environment(settings)
    if not config.is_off(environ):
        if name in _HIDING:
            raise ProgramError(f"{name} keeps fastio out of its program; start it outside: {name} fastio run -- ...")
        if letter := _ignoring(python or []):
            raise ProgramError(
                f"the option -{letter} of Python keeps fastio out of {program[0]!r}: leave it out, or call "
                "fastio.patch() in the program"
            )
        _reach(environ, children or python is None or name in _EXECUTING)
    sys.stdout.flush()
    os.execve(path, arguments, environ)


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The program's environment with the settings, which are checked."""
    by_name = {setting.name: setting for setting in config.SETTINGS}
    environ = {**os.environ, **{by_name[name].env: text for name, text in settings.items()}}
    try:
        for name, text in settings.items():
            value = by_name[name].read(text, _option(name))
            if isinstance(value, str):
                # The program, or its children, may change the directory that a path begins at.
                environ[by_name[name].env] = value
        registry.resolve({}, environ)
    except FastioError as error:
        if isinstance(error, SettingError) and error.setting in settings:
            error.source = _option(error.setting)
        # Otherwise the program finds the same, and its own log has it.
        if config.on_error(environ) == config.REFUSE:
            raise
    return environ


def _option(name: str) -> str:
    return "option --" + name.replace("_", "-")


def _reach(environ: dict[str, str], children: bool) -> None:
    """Have the first Python of the program, or with ``children`` each, run ``bootstrap/sitecustomize.py``."""
    paths = environ.get("PYTHONPATH", "")
    # A tracer's launcher around this command may have removed its own directory again.
    ran = os.path.abspath(getattr(sys.modules.get("sitecustomize"), "__file__", None) or os.__file__)
    tracer, known = os.path.dirname(ran), [os.path.dirname(os.__file__), *map(os.path.abspath, paths.split(os.pathsep))]
    if tracer not in (*known, BOOTSTRAP) and not tracer.endswith("-packages"):
        paths = os.pathsep.join(filter(None, [tracer, paths]))
    environ["PYTHONPATH"] = f"{BOOTSTRAP}{os.pathsep if paths else ''}{paths}"
    environ[PROGRAM] = f"{os.getpid()}{' children' if children else ''}"


def _module(program: Sequence[str]) -> tuple[str, list[str], list[str] | None]:
    return sys.executable, [sys.executable, "-m", *program], []


def _command(program: Sequence[str]) -> tuple[str, list[str], list[str] | None]:
    """The file to execute, its arguments with its name first, and those of Python; None for a program that is none."""
    path = find(program[0])
    words = interpreter(path)
    if words and os.access(path, os.X_OK) or not path.endswith((".py", ".pyz")) and not os.path.isdir(path):
        python = words[1:] if words else program[1:]
        return path, list(program), list(python) if is_python([*words, path][0]) else None
    return sys.executable, [sys.executable, path, *program[1:]], []


def is_python(path: str) -> bool:
    """Whether the file has the name of a Python."""
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def which(name: str) -> str | None:
    """The program in PATH, or else beside this Python, as in a virtual environment that is not activated."""
    # shutil.which() does the same for one path, and shutil takes long to import.
    places = [""] if os.path.dirname(name) else [*os.get_exec_path(), os.path.dirname(sys.executable)]
    found = (os.path.join(place, name) for place in places)
    return next((path for path in found if os.access(path, os.X_OK) and not os.path.isdir(path)), None)


def find(program: str) -> str:
    """The path of the program: as a shell finds it, and as ``python script.py`` does.

    :raises ProgramError: if there is none, or it cannot be run
    """
    path = program
    if os.path.dirname(program) == "":
        found = which(program)
        if found is None and not program.endswith((".py", ".pyz")):
            raise ProgramError(f"there is no program {program!r} in PATH; a file needs a path, such as ./{program}")
        path = found or program
    if not os.path.exists(path):
        raise ProgramError(f"there is no file {path!r}")
    if not os.access(path, os.R_OK):
        raise ProgramError(f"{path!r} cannot be read")
    if not path.endswith((".py", ".pyz")) and not os.path.isdir(path) and not os.access(path, os.X_OK):
        raise ProgramError(f"{path!r} is not executable; a script has to be, or its name to end in .py or .pyz")
    return path


def interpreter(path: str) -> list[str]:
    """The interpreter that the file's first line names, and its options; empty if it names none."""
    if os.path.isdir(path):
        return []
    with open(path, "rb") as file:
        first, second = (os.fsdecode(file.readline(1024)).strip() for _ in range(2))
    if not first.startswith("#!"):
        return []
    import shlex

    if first.startswith("#!/bin/sh") and second.startswith("'''exec'"):
        # pip's launcher for long paths and blanks: a shell that Python replaces
        words = [word for word in shlex.split(second.removeprefix("'''exec'")) if word not in ("$0", "$@")]
    else:
        words = first[2:].split(None, 1)
        if words and os.path.basename(words[0]) == "env":
            words = shlex.split(re.sub("^(-v?S|--split-string=)", "", words[-1]))
            words = [word for word in words if "=" not in word or word.startswith("-")]
    return [which(words[0]) or words[0], *words[1:]] if words else []


def _ignoring(arguments: Sequence[str]) -> str:
    """The letter of an option with which Python does not run fastio's sitecustomize; empty if there is none."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word == "--check-hash-based-pycs":
            del rest[:1]
        for position, letter in enumerate(word[1:] if not word.startswith("--") else "", 2):
            if letter in "EIS":
                return letter
            if letter in "cm":
                return ""
            if letter in "WX":
                del rest[: not word[position:]]
                break
    return ""
