"""Command lines of uWSGI, gunicorn and Apache: which Python they have, what that is to load, with which options.

``fastio check`` needs to know. Files are read as text: none of them is run.
"""

import argparse
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
    "pyshared-import": "import", "py-shared-import": "import", "workers": "processes",
}  # fmt: skip
#: Options whose values decide what can be in effect, or what should be changed. Others may have secret ones.
_DECIDING = re.compile(
    r"(enable-threads|plugin|route.*|processes|threads|http|http-buffer-size|chunked-input-limit|socket-timeout)$"
)
#: How uWSGI, and distributions' builds of it with one Python, are called.
_NAME = re.compile(r"uwsgi(-core|_python\d+)?$")
#: ``%d``, ``%(option)`` and ``$(VARIABLE)`` in a value.
_PLACEHOLDER = re.compile(r"%\(([\w-]+)\)|\$\((\w+)\)|%([dpsn%])")


#: In gunicorn's configuration, in the file of a virtual host, and in programs.
_WORKERS = re.compile(r"^(workers|threads)\s*=\s*(\d+)", re.MULTILINE)
_DAEMON = re.compile(r"^\s*WSGIDaemonProcess\s+\S+(.*)", re.MULTILINE)
_SCRIPT = re.compile(r"^\s*WSGIScriptAlias\s+\S+\s+[\"']?([^\s\"']+)", re.MULTILINE)
_FASTIO = re.compile(r"^\s*(import fastio\.auto\b|fastio\.patch\()", re.MULTILINE)


class ServerError(FastioError):
    """A file for a server that cannot be read. The message says why."""


class Served(NamedTuple):
    """The options of a server."""

    #: ``uWSGI``, ``gunicorn`` or ``mod_wsgi``
    server: str
    #: its files that were read
    files: list[str]
    #: the Python that is most like the one in it
    python: str
    #: the application, a module or a file; empty if it is not given
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


def read(program: Sequence[str], environ: Mapping[str, str]) -> Served | None:
    """Read a command line and the files that it names; return None if the program is none of these servers.

    :param environ: that it is started with
    :raises ServerError: if such a file cannot be read
    """
    name = os.path.basename(program[0]) if program else ""
    if _NAME.match(name):
        return _uwsgi(program, environ)
    if name == "gunicorn":
        return _gunicorn(program)
    return _apache(program) if name in ("apache2", "httpd") else None


def _gunicorn(program: Sequence[str]) -> Served:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for names in (["-c", "--config"], ["-w", "--workers"], ["--threads"]):
        parser.add_argument(*names)
    given, others = parser.parse_known_args(program[1:])
    path = os.path.abspath((given.config or "gunicorn.conf.py").removeprefix("file:"))
    text = _text(path, "gunicorn") if given.config or os.path.exists(path) else ""
    told = {**dict(_WORKERS.findall(text)), **{name: value for name, value in vars(given).items() if value}}
    words = launcher.interpreter(launcher.find(program[0])) or [launcher.which("python3") or "python3"]
    options = {"processes": [told.get("workers", "1")], "threads": [told.get("threads", "1")]}
    module = [each for each in ["", *others] if not each.startswith("-")][-1]
    return Served("gunicorn", [path] * bool(text), words[0], module, {}, [], [], bool(_FASTIO.search(text)), options)


def _apache(program: Sequence[str]) -> Served:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-f")
    path = parser.parse_known_args(program[1:])[0].f
    if not path:
        raise ServerError(f"{program[0]}: name the file of the service's virtual host: {program[0]} -f FILE")
    text = _text(path := os.path.abspath(path), "Apache").replace("\\\n", " ")
    daemon, script = _DAEMON.search(text), _SCRIPT.search(text)
    told = dict(re.findall(r"""([\w-]+)=["']?([^\s"']*)""", daemon[1] if daemon else ""))
    module = script[1] if script else ""
    files = [path, *filter(os.path.isfile, [module])]
    python = os.path.join(told["python-home"], "bin", "python") if "python-home" in told else launcher.which("python3")
    paths = [each for each in told.get("python-path", "").split(":") if each]
    loaded = _text(files[-1], "Apache")
    options = {"processes": [told.get("processes", "1")], "threads": [told.get("threads", "15")]}
    return Served("mod_wsgi", files, python or "python3", module, {}, paths, [], bool(_FASTIO.search(loaded)), options)


def _text(path: str, server: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise ServerError(f"{server}'s file {path!r} cannot be read: {error.strerror}") from None


def _uwsgi(program: Sequence[str], environ: Mapping[str, str]) -> Served:
    files: list[str] = []
    told: dict[str, list[str]] = {}
    for name, value in _options(program[1:], environ, files):
        told.setdefault(_SAME.get(name, name), []).append(value)
    variables = dict(each.partition("=")[::2] for each in told.get("env", []))
    return Served(
        server="uWSGI",
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
    section = ""
    known: dict[str, str] = {}
    for line in map(str.strip, _text(path, "uWSGI").splitlines()):
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
