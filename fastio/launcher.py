"""``fastio run``: a program runs patched, as if it had been started directly.

The program runs in this very process, so its signals, exit status, descriptors and forked workers are
its own. What it starts by exec is reached, where ``children`` is asked for, through the environment:
PYTHONPATH begins with ``fastio/bootstrap``, whose ``sitecustomize`` patches and then goes on with the site's own.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import fastio
from fastio import service
from fastio.config import SETTINGS
from fastio.errors import FastioError

BOOTSTRAP = Path(__file__).parent / "bootstrap"


class ProgramError(FastioError):
    """What is to be run can not be run in this way; the message says what can be done."""


def run(program: Sequence[str], settings: Mapping[str, str], *, module: bool = False, children: bool = False) -> None:
    """Patch, and run ``program`` with its arguments; returns when it does, unless it is exec'd.

    :param program: a Python script (looked up in PATH), or the name of a module, and its arguments
    :param settings: texts by the name of the setting; they win over the environment, also in children
    :param module: ``program[0]`` is the name of a module, as with ``python -m``
    :param children: patch the Pythons that the program starts as well; then it need not be Python itself
    :raises fastio.errors.SettingError: for a bad setting, before anything is patched
    :raises ProgramError: if there is no such program, or it can not be run like that
    """
    path = "" if module else _find(program[0])
    is_python = module or _runs_here(path)
    if not is_python and not children:
        raise ProgramError(
            f"{path} is no script of this Python ({sys.executable}): it can be run with --children, which patches the "
            "Pythons that it starts, if fastio is installed there"
        )
    by_name = {setting.name: setting for setting in SETTINGS}
    # All are read before the first one counts: a bad one leaves the environment as it was.
    read = {name: by_name[name].read(text, "option --" + name.replace("_", "-")) for name, text in settings.items()}
    for name, text in settings.items():
        # A path is told as it is from here: the program, or its children, may go elsewhere.
        os.environ[by_name[name].env] = read[name] if isinstance(read[name], str) else text
    if children:
        paths = [str(BOOTSTRAP), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    if not is_python:
        os.execv(path, list(program))
    fastio.patch()
    service.follow()
    if module:
        _run_module(program)
    else:
        _run_script(path, program)


def _find(program: str) -> str:
    path = shutil.which(program) or program
    if not os.path.exists(path):
        raise ProgramError(f"there is no program {program!r} in PATH")
    return path


def _runs_here(path: str) -> bool:
    """Whether ``path`` is a script that this interpreter, with this site-packages, would run if started directly."""
    if path.endswith((".py", ".pyz")) or os.path.isdir(path):
        return True
    with open(path, "rb") as file:
        first = file.readline(256)
        # pip's launcher for long paths and blanks: a shell line that gives way to Python
        second = file.readline(1024)
    if not first.startswith(b"#!"):
        return False
    words = (second.split(b"'''exec'")[-1] if first.startswith(b"#!/bin/sh") else first[2:]).split()
    if words and os.path.basename(words[0]) == b"env":
        words = [word for word in words[1:] if not word.startswith(b"-")]
    if not words or b"python" not in os.path.basename(words[0]):
        return False
    interpreter = shutil.which(os.fsdecode(words[0].strip(b'"')))
    # Not samefile(): every virtual environment links to the same file.
    return interpreter is not None and _prefix(interpreter) == _prefix(sys.executable)


def _prefix(interpreter: str) -> str:
    """The directory that tells the virtual environments of one Python apart."""
    directory, name = os.path.split(os.path.abspath(interpreter))
    if os.path.exists(os.path.join(os.path.dirname(directory), "pyvenv.cfg")):
        return directory
    return os.path.realpath(os.path.join(directory, name))


def _run_module(program: Sequence[str]) -> None:
    sys.argv[:] = program
    # As python -m has it.
    sys.path[0] = os.getcwd()
    runpy.run_module(program[0], run_name="__main__", alter_sys=True)


def _run_script(path: str, program: Sequence[str]) -> None:
    sys.argv[:] = [path, *program[1:]]
    if path.endswith(".pyz") or os.path.isdir(path):
        runpy.run_path(path, run_name="__main__")
        return
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    # A module of its own, kept alive: runpy would clear its globals while threads and atexit still use them.
    main = ModuleType("__main__")
    main.__file__ = path
    vars(main)["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(main))
