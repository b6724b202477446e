"""``fastio run``: run a program with the patches applied, as if it had been started directly.

The program takes the place of this process, so its signals, exit status, descriptors and forked workers are its own.
Workers that :mod:`multiprocessing` spawns are patched as well. What it starts by exec is reached, where ``children`` is
asked for or the program is not Python, through the environment: PYTHONPATH begins with ``fastio/bootstrap``, whose
``sitecustomize`` goes on with the site's own and then with :mod:`fastio.children`.
"""

import os
import pkgutil
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

import fastio
from fastio import service
from fastio.children import PROGRAM
from fastio.config import SETTINGS
from fastio.errors import FastioError, SettingError
from fastio.patching import patcher

BOOTSTRAP = Path(__file__).parent / "bootstrap"


class ProgramError(FastioError):
    """The program cannot be run in this way. The message says what can be done."""


#: What the interpreter runs in place of the program: its options, and what the environment says to it, hold from the
#: start, and what it is about to run is run in its own ``__main__``.
_RESUME = """\
import sys
path = list(sys.path)
sys.path.append(sys.argv[1])
from fastio import launcher
sys.path[:] = path
launcher.resume(sys.argv[2:])
"""


class _Command(NamedTuple):
    """What would be started without fastio."""

    #: the file that is executed
    path: str
    #: its arguments, with its own name first
    arguments: list[str]
    #: whether it is a Python that fastio is installed for
    is_ours: bool


def run(program: Sequence[str], settings: Mapping[str, str], *, module: bool = False, children: bool = False) -> None:
    """Run ``program`` with its arguments in place of this one, with the patches applied; returns only by an error.

    :param program: a Python script, a Python and its arguments, any other program (a name is looked up in PATH); or the
        name of a module and its arguments
    :param settings: texts by the name of the setting; they win over the environment, also in children
    :param module: ``program[0]`` is the name of a module, as with ``python -m``
    :param children: patch the Pythons that the program starts as well. A program that is not Python is always run so
    :raises fastio.errors.SettingError: for a bad setting, unless ``on_error`` says otherwise
    :raises ProgramError: if there is no such program, or if it cannot be run in this way
    """
    command = _module(program) if module else _command(program)
    if not command.is_ours and not children and (why := _refusal(command)):
        raise ProgramError(why)
    python = split(command.arguments[1:]) if command.is_ours else None
    if python and not python.program and ("i" in python.letters or sys.stdin is not None and sys.stdin.isatty()):
        raise ProgramError("an interactive Python is not run; start it yourself, and import fastio.auto there")
    if python and "x" in python.letters:
        raise ProgramError("the option -x of Python is not supported; take the first line out of the file")
    environ = _environment(settings)
    if children or not command.is_ours:
        environ["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *filter(None, [environ.get("PYTHONPATH")])])
        environ[PROGRAM] = str(os.getpid())
    if python is None:
        os.execve(command.path, command.arguments, environ)
    root = str(Path(fastio.__file__).parent.parent)
    name, *given = command.arguments
    os.execve(command.path, [name, *python.options, "-c", _RESUME, root, *given], environ)


def resume(given: Sequence[str]) -> None:
    """Go on with a run in the interpreter that was started for it.

    :param given: the arguments that this Python would have had
    """
    sys.orig_argv[1:] = given
    main = vars(sys.modules["__main__"])
    for name in ("sys", "path", "launcher"):
        del main[name]
    try:
        service.start()
    except FastioError as error:
        print(f"fastio: {error}", file=sys.stderr)
        sys.exit(2)
    python = split(given)
    program = python.program if python and python.program else [""]
    if program[0] == "-c":
        _run_command(program, main)
    elif program[0] == "-m":
        _run_module(program)
    elif program[0] in ("", "-"):
        _run_input(program, main)
    else:
        _run_file(program, main)


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """That of the program, with the settings, which are checked."""
    by_name = {setting.name: setting for setting in SETTINGS}
    environ = dict(os.environ)
    try:
        for name, text in settings.items():
            value = by_name[name].read(text, _option(name))
            # A path is told as it is from here: the program, or its children, may go elsewhere.
            environ[by_name[name].env] = value if isinstance(value, str) else text
        patcher.check(environ)
    except FastioError as error:
        if isinstance(error, SettingError) and error.setting in settings:
            error.source = _option(error.setting)
        service.refuse_or_say(error, environ)
        environ["FASTIO"] = "0"
    return environ


def _option(name: str) -> str:
    return "option --" + name.replace("_", "-")


def _module(program: Sequence[str]) -> _Command:
    return _Command(sys.executable, [sys.executable, "-m", *program], True)


def _command(program: Sequence[str]) -> _Command:
    path = _find(program[0])
    interpreter = _interpreter(path)
    if not interpreter and os.path.isfile(path) and _PYTHON.fullmatch(os.path.basename(path)):
        if _prefix(path) in _prefixes():
            return _Command(_with_fastio(path), list(program), True)
        return _Command(path, list(program), False)
    options = _options(path, interpreter)
    if options is None:
        return _Command(path, list(program), False)
    python = _with_fastio(interpreter[0]) if _is_python(interpreter) else sys.executable
    return _Command(python, [python, *options, path, *program[1:]], True)


#: The names of Pythons.
_PYTHON = re.compile(r"python[0-9.]*[a-z]*")


def _with_fastio(python: str) -> str:
    """``python``, or if it only shares its packages with the environment of fastio, that of the environment."""
    return python if _prefix(python) == _prefix(sys.executable) else sys.executable


class Python(NamedTuple):
    """The command line of a Python."""

    options: list[str]
    #: the options that have no argument, such as ``I``
    letters: str
    #: from ``-c``, ``-m``, ``-`` or the file's name on; empty if the program comes from standard input
    program: list[str]


def split(arguments: Sequence[str]) -> Python | None:
    """Tell the options of a Python from what it is to run; None if it is to run nothing, as with ``--version``."""
    options: list[str] = []
    letters = ""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            if word != "--check-hash-based-pycs" or not rest:
                return None
            options += [word, rest.pop(0)]
            continue
        plain, letter, attached = _cluster(word[1:])
        letters += plain
        if set(plain) & set("hV?"):
            return None
        options += [f"-{plain}"] if plain else []
        if letter:
            if not attached and not rest:
                return None
            argument = attached or rest.pop(0)
            if letter in "cm":
                return Python(options, letters, [f"-{letter}", argument, *rest])
            options += [f"-{letter}{argument}"] if attached else [f"-{letter}", argument]
    return Python(options, letters, rest)


def _cluster(word: str) -> tuple[str, str, str]:
    """Of options that are written together: those without an argument, the one with an argument, and that."""
    for position, letter in enumerate(word):
        if letter in "cmWX":
            return word[:position], letter, word[position + 1 :]
    return word, "", ""


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


def _refusal(command: _Command) -> str:
    """Why the program is not run unless its children are asked for, and what can be done; empty if it is."""
    interpreter = _interpreter(command.path) or [command.path]
    if not _is_python(interpreter):
        return ""
    what = "a script of " + interpreter[0] if interpreter[0] != command.path else "another Python"
    return (
        f"{command.path} is {what}, and what is installed there is not installed for this Python "
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


def _run_command(program: Sequence[str], main: dict[str, Any]) -> None:
    sys.argv[:] = ["-c", *program[2:]]
    text = program[1]
    if sys.version_info >= (3, 14):
        import textwrap

        text = textwrap.dedent(text)
    exec(compile(text + "\n", "<string>", "exec", dont_inherit=True), main)


def _run_module(program: Sequence[str]) -> None:
    sys.argv[:] = ["-m", *program[2:]]
    _begin_path_with(os.getcwd())
    # What the interpreter itself calls; run_module() clears the globals while threads and atexit still use them.
    runpy._run_module_as_main(program[1])  # type: ignore[attr-defined]


def _run_input(program: Sequence[str], main: dict[str, Any]) -> None:
    sys.argv[:] = program
    main["__file__"] = "<stdin>"
    if sys.version_info < (3, 15):
        main["__cached__"] = None
    exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), main)


def _run_file(program: Sequence[str], main: dict[str, Any]) -> None:
    path = os.path.join(os.getcwd(), program[0])
    sys.argv[:] = program
    if pkgutil.get_importer(path) is not None:
        # A directory, or an archive.
        _begin_path_with()
        sys.path.insert(0, path)
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
        return
    _begin_path_with(os.path.dirname(os.path.realpath(path)))
    main.update(__loader__=SourceFileLoader("__main__", path), __file__=path, __cached__=None)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main)
