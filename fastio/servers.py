"""The options of uWSGI: which Python it has in it, what that is to load, with which variables and arguments.

Options mean the same in an ini file and on the command line. What is read is what ``fastio check`` needs to know.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fastio import launcher
from fastio.errors import FastioError

#: uWSGI's names for what is read, and its other names for the same.
_SAME = {
    "home": "virtualenv", "venv": "virtualenv", "pyhome": "virtualenv", "H": "virtualenv",
    "plugins": "plugin", "python-path": "pythonpath", "pp": "pythonpath",
    "wsgi": "module", "w": "module", "wsgi-file": "file",
    "shared-import": "import", "pyimport": "import", "py-import": "import", "spyimport": "import",
    "pyshared-import": "import", "py-shared-import": "import",
}  # fmt: skip
#: Options whose values decide what can be in effect; so do those of routes.
_DECIDING = re.compile(r"(enable-threads|plugin|route.*)$")
#: How uWSGI, and distributions' builds of it with one Python, are called.
_NAME = re.compile(r"uwsgi(-core|_python\d+)?$")
#: ``%d``, ``%(option)`` and ``$(VARIABLE)`` in a value.
_PLACEHOLDER = re.compile(r"%\(([\w-]+)\)|\$\((\w+)\)|%([dpsn%])")


class UwsgiError(FastioError):
    """A file for uWSGI that cannot be read. The message says why."""


class Uwsgi(NamedTuple):
    """What the options of uWSGI say."""

    #: the ini files that were read
    files: list[str]
    #: the Python that is most like the one in it
    python: str
    #: what it loads, a module or a file; empty if it is not said
    module: str
    #: variables that it sets
    environ: dict[str, str]
    #: further directories of ``sys.path``
    paths: list[str]
    #: ``sys.argv`` of what it loads
    arguments: list[str]
    #: whether it imports ``fastio.auto``
    imports_fastio: bool
    #: the names of all options, with what those are set to that decide what can be in effect
    options: dict[str, list[str]]


def is_uwsgi(program: Sequence[str]) -> bool:
    return bool(program) and _NAME.match(os.path.basename(program[0])) is not None


def read(program: Sequence[str], environ: Mapping[str, str]) -> Uwsgi:
    """What a command line tells uWSGI, and the ini files that it names.

    :param environ: that uWSGI is started with
    :raises UwsgiError: if such a file cannot be read
    """
    files: list[str] = []
    told: dict[str, list[str]] = {}
    for name, value in _options(program[1:], environ, files):
        told.setdefault(_SAME.get(name, name), []).append(value)
    variables = dict(each.partition("=")[::2] for each in told.get("env", []))
    return Uwsgi(
        files=files,
        python=_python(program[0], told),
        module=[*told.get("file", []), *told.get("module", []), ""][0],
        environ=variables,
        paths=told.get("pythonpath", []),
        arguments=[word for each in told.get("pyargv", []) for word in shlex.split(each)],
        imports_fastio="fastio.auto" in told.get("import", []),
        options={name: values if _DECIDING.match(name) else [] for name, values in told.items()},
    )


def _options(words: Sequence[str], environ: Mapping[str, str], files: list[str]) -> Iterator[tuple[str, str]]:
    """The options of a command line in their order, with those of the files that it names, each read once."""
    for index, word in enumerate(words):
        name, given, value = word.partition("=")
        if word.endswith(".ini") and not given:
            yield from _of_file(word, environ, files)
        elif word.startswith("-"):
            following = words[index + 1] if index + 1 < len(words) else ""
            value = value if given else "" if following.startswith("-") else following
            yield from _option(name.lstrip("-"), value, environ, files)


def _option(name: str, value: str, environ: Mapping[str, str], files: list[str]) -> Iterator[tuple[str, str]]:
    if name == "ini":
        yield from _of_file(value, environ, files)
    else:
        yield name, value


def _of_file(path: str, environ: Mapping[str, str], files: list[str]) -> Iterator[tuple[str, str]]:
    """The options in the section ``[uwsgi]`` of a file, or in the section that follows its name and a colon."""
    path, _, wanted = path.partition(":")
    path = os.path.abspath(path)
    if path in files:
        return
    files.append(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise UwsgiError(f"uWSGI's file {path!r} cannot be read: {error.strerror}") from None
    section = ""
    known: dict[str, str] = {}
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[]")
        elif line and line[0] not in ";#" and section == (wanted or "uwsgi"):
            name, _, value = (each.strip() for each in line.partition("="))
            known[name] = _filled(value, path, known, environ)
            yield from _option(name, known[name], environ, files)


def _filled(text: str, path: str, known: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """The value with what its placeholders stand for; an unknown one stays."""
    base = os.path.basename(path)
    of_file = {"d": os.path.dirname(path) + "/", "p": path, "s": base, "n": os.path.splitext(base)[0], "%": "%"}

    def meaning(found: re.Match[str]) -> str:
        option, variable, letter = found.groups()
        if letter:
            return of_file[letter]
        return known.get(option, found[0]) if option else environ.get(variable, found[0])

    return _PLACEHOLDER.sub(meaning, text)


def _python(program: str, told: Mapping[str, Sequence[str]]) -> str:
    """The Python of the virtual environment, of the plugin, or beside uWSGI; else that of the system."""
    for home in told.get("virtualenv", [])[-1:]:
        return os.path.join(home, "bin", "python")
    names = [os.path.basename(program).removeprefix("uwsgi_"), *told.get("plugin", [])]
    for found in filter(None, (re.search(r"python(\d)(\d*)", name) for name in names)):
        name = f"python{found[1]}" + (f".{found[2]}" if found[2] else "")
        return launcher.which(name) or name
    beside = os.path.join(os.path.dirname(launcher.which(program) or program), "python")
    return beside if os.path.exists(beside) else launcher.which("python3") or "python3"
