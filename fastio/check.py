"""``fastio check``: what would be in effect for a service. Nothing is started, and nothing is changed.

The service's own interpreter patches itself in another process, with the service's configuration files and the
environment of the shell, and reports what became of it. fastio need not be installed there.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastio
from fastio import advice, config, launcher, servers, tables, terminal
from fastio.arguments import Parser
from fastio.errors import FastioError
from fastio.patches.glance import _uwsgi
from fastio.patching import modules, registry
from fastio.report import IN_EFFECT, Outcome, Report

#: Seconds that the interpreter may take to import everything.
LIMIT = 120
#: Lines that are printed unless all are asked for, and how many of them each part may have.
LINES, PART = 25, 6
#: The libraries whose versions are printed then.
_SHOWN = ("fastio", "CPython", "eventlet", "glance", "glance_store")

#: The code that the interpreter runs. Where fastio is not installed, it has this one, and nothing else of its
#: directory.
_PROBE = """\
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import json
root, arguments = json.loads(sys.argv[1])
try:
    import fastio
except ModuleNotFoundError:
    sys.path.append(root)
    import fastio
    sys.path.remove(root)
    installed = False
else:
    installed = True
try:
    from fastio import check
except ImportError:
    sys.exit(f"fastio {fastio.__version__} in {fastio.__file__} is too old for this: upgrade it there")
print("\\n" + json.dumps({"installed": installed, **check.probe(**arguments)}))
"""


class CheckError(FastioError):
    """A check is not possible. The message says why."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns 1 if something would be left alone."""
    given = parser().parse_args(arguments)
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    found = look(program, given.python, given.config_file, given.config_dir)
    print(json.dumps(found, indent=2) if given.json else as_text(found, terminal.width(), given.all))
    return 1 if found["left_alone"] else 0


def parser() -> Parser:
    """Of ``fastio check``."""
    parser = Parser(
        prog="fastio check",
        usage="fastio check [option ...] [--] [program [argument ...]]",
        description="Shows what would be in effect for a service: with the Python of the program, the configuration "
        "files that its arguments name, and the variables of this shell. Nothing is started, and nothing is changed. "
        "The exit status is 1 if something would be left alone, and 2 for a bad setting or program.",
    )
    parser.add_argument("--python", metavar="PATH", help="the service's Python; by default that of the program")
    parser.add_argument("--config-file", metavar="PATH", action="append", default=[], help="as the service has it")
    parser.add_argument("--config-dir", metavar="PATH", action="append", default=[], help="as the service has it")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--all", action="store_true", help="print more than the 25 lines of what matters most")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def look(
    program: Sequence[str],
    python: str | None = None,
    files: Sequence[str] = (),
    directories: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what would be in effect, as ``fastio check --json`` prints it.

    :param program: its command line; may be empty
    :param python: the service's interpreter, if it is not the program's
    :param files: configuration files besides those that the program's arguments name
    :param directories: directories of such files
    :raises CheckError: if the interpreter or the configuration cannot be used
    """
    served = servers.read(program, os.environ)
    interpreter = [python] if python else [served.python] if served else _interpreter(program)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-file", action="append", default=[])
    parser.add_argument("--config-dir", action="append", default=[])
    named, _ = parser.parse_known_args(served.arguments if served else program[1:])
    service = _served(served.module) if served else _name(program)
    environ = {**os.environ, **(served.environ if served else {})}
    if served:
        # As the recipe for kolla does.
        if any(each.endswith("fastio/bootstrap") for each in environ.get("PYTHONPATH", "").split(os.pathsep)):
            served = served._replace(imports_fastio=True)
        files = [*files, *_of_glance(service, environ)]
        paths_of = [*served.paths, *filter(None, [environ.get("PYTHONPATH")])]
        environ |= {"PYTHONPATH": os.pathsep.join(paths_of)} if paths_of else {}
    paths = {
        "files": [os.path.abspath(each) for each in (*files, *named.config_file)],
        "directories": [os.path.abspath(each) for each in (*directories, *named.config_dir)],
    }
    for path in (*paths["files"], *paths["directories"]):
        if not os.path.exists(path):
            raise CheckError(f"there is no file or directory {path!r}")
    options = served.options if served and served.server == "uWSGI" else None
    asked = {**paths, "service": service if "-" in service else "", "options": options}
    probed = _ask(interpreter, asked, environ)
    # The values of its variables may be secrets.
    shown = {**served._asdict(), "environ": sorted(served.environ)} if served else None
    change = [each._asdict() for each in advice.advise(shown, probed.pop("set", {}))]
    return {"service": service, "interpreter": interpreter[0], "server": shown, "change": change, **probed}


def _name(program: Sequence[str]) -> str:
    """The name of the program, or of the module."""
    if program[:1] == ["-m"]:
        return program[1] if len(program) > 1 else ""
    return os.path.basename(program[0]) if program else ""


def _interpreter(program: Sequence[str]) -> list[str]:
    """The Python of the program and its options; this one, where the program is none of Python's."""
    if not program or program[0] == "-m":
        return [sys.executable]
    path = launcher.find(program[0])
    words = launcher.interpreter(path) or [path]
    return words if launcher.is_python(words[0]) else [sys.executable]


def _served(module: str) -> str:
    """The service of which a server loads this module or file."""
    names = ("glance.", "glance-wsgi", "glance-api")
    return "glance-api" if os.path.basename(module).startswith(names) else module.partition(":")[0]


def _of_glance(service: str, environ: Mapping[str, str]) -> list[str]:
    """The files that glance-api reads by default, if its variable says that they are not in /etc/glance."""
    directory = environ.get("OS_GLANCE_CONFIG_DIR", "").strip()
    if service != "glance-api" or not directory:
        return []
    optional = os.path.join(directory, "glance-image-import.conf")
    return [*filter(os.path.exists, [optional]), os.path.join(directory, "glance-api.conf")]


def _ask(interpreter: Sequence[str], arguments: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    command = [*interpreter, "-c", _PROBE, json.dumps([str(Path(fastio.__file__).parents[1]), arguments])]
    environ = {**environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckError(f"{interpreter[0]} cannot be asked: {error}") from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        raise CheckError(f"{interpreter[0]} did not answer (exit {done.returncode}): {said[0]}") from None
    if "error" in answer:
        raise CheckError(answer["error"])
    return answer


def probe(
    files: Sequence[str], directories: Sequence[str], service: str, options: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Return, in a process of the service's interpreter, the report, and the configured stores.

    :param options: uWSGI's, if that is to serve
    """
    _uwsgi.asked_about = options
    warnings.simplefilter("ignore")
    notes: list[str] = []
    config.only_reporting = True
    try:
        conf, stores, given = configuration(files, directories, service)
        config.asked_about = conf
        # All settings are checked, and no trace is written.
        settings = config.resolve({}, options=config.read_options(conf))
        fastio.patch(conf=conf, trace=None)
    except FastioError as error:
        return {"error": str(error)}
    if conf is None and (files or directories):
        notes.append("oslo.config is not installed there: the configuration files were not read")
    notes += modules.import_all(target for patch in registry.patches() for target in patch.targets)
    report = fastio.status()._replace(settings=settings)
    return {
        "files": [] if conf is None else config.files_of(conf),
        "stores": stores,
        "set": given,
        "left_alone": sorted({entry.name for entry in report.problems()}),
        "changes": {patch.name: patch.changes for patch in registry.patches() if patch.changes},
        "notes": notes,
        "report": report.to_dict(),
    }


def configuration(
    files: Sequence[str], directories: Sequence[str], service: str
) -> tuple[Any, list[str], dict[str, str]]:
    """The service's configuration, the drivers of its stores, and what those set; None without oslo.config.

    :raises CheckError: if the files cannot be read
    """
    try:
        from oslo_config import cfg
    except ModuleNotFoundError:
        return None, [], {}
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.DictOpt("enabled_backends")])
    conf.register_opts([cfg.ListOpt("stores", default=["file", "http"]), cfg.StrOpt("default_store")], "glance_store")
    arguments = [f"--config-file={each}" for each in files] + [f"--config-dir={each}" for each in directories]
    try:
        conf(arguments, project=service.partition("-")[0] or None, prog=service or None)
    except cfg.Error as error:
        raise CheckError(f"the configuration cannot be read: {error}") from None
    given: dict[str, str] = {}
    if not (stores := sorted(config.stores(conf))):
        return conf, [], given
    for group in conf.enabled_backends or ["glance_store"]:
        for name in ("filesystem_store_chunk_size", "rbd_store_chunk_size"):
            conf.register_opts([cfg.StrOpt(name)], group)
            if conf[group][name]:
                given[f"[{group}] {name}"] = conf[group][name]
    return conf, stores, given


def as_text(found: Mapping[str, Any], width: int | None = None, everything: bool = False) -> str:
    """Format the result of :func:`look` for people: the most important in 25 lines of 80 columns, or everything.

    :param width: in columns; None: as wide as it needs
    """
    report, changes = Report.from_dict(found["report"]), found["changes"]
    in_effect = [patch.name for patch in report.patches() if patch.word == IN_EFFECT]
    shown = in_effect if everything else _by_library(in_effect)
    parts = [
        _about(found, everything),
        [f"{_patches(in_effect)} would be in effect: {', '.join(shown) or 'none'}."],
        _without_effect(report, everything),
        [f"{_patches(found['left_alone'])} would be left alone.", *_left_alone(found, everything)],
    ]
    if everything:
        settings = found["report"]["settings"]
        given = {name: each for name, each in settings.items() if each["source"] != "default"}
        parts.append([f"{name} = {each['value']} (from {each['source']})" for name, each in given.items()])
        marked = [f"  {name}: {changes[name]}" for name in in_effect if name in changes]
        parts.append(["These change more than speed (FASTIO_PROFILE=safe leaves them out):", *marked] if marked else [])
    change = [f"  {advice.Advice(**each)}" for each in found["change"]]
    parts.append(["What to change, by gain:", *change] if change else [])
    lines: list[str] = []
    for part in filter(None, parts):
        room = None if everything else LINES - len(lines) - 2 if part is parts[-1] else PART
        lines += [*([""] if lines else []), *_cut([tables.wrap(each, width, "    ") for each in part], room)]
    return "\n".join(lines if everything else [*lines, "--all shows more."])


def _about(found: Mapping[str, Any], everything: bool) -> list[str]:
    """The service, and what it reads."""
    versions = [(name, version) for name, version in found["report"]["versions"].items() if version != "absent"]
    shown = (f"{name} {version}" for name, version in versions if everything or name in _SHOWN)
    lines = [f"{found['service'] or 'A program'} with {found['interpreter']}: {', '.join(shown)}"]
    if not found["installed"]:
        lines.append(f"fastio is not installed for {found['interpreter']}; this is what it would do there.")
    if served := found["server"]:
        files = ", ".join(served["files"]) or "its options"
        says = "says" if len(served["files"]) == 1 else "say"
        lines.append(f"{served['server']} loads {served['module'] or 'nothing'}, as {files} {says}.")
    stores = ", ".join(found["stores"]) or "none"
    return [*lines, f"Configuration: {', '.join(found['files']) or 'none'}. Stores: {stores}."]


def _by_library(names: Sequence[str]) -> list[str]:
    """The patches of glance and of its stores, and how many there are of each other library."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(registry.listed()[name].library, []).append(name)
    own = [each for library in ("glance", "glance_store") for each in found.pop(library, [])]
    return [*own, *(f"{len(of)} of {library}" for library, of in found.items())]


def _patches(names: Sequence[str]) -> str:
    return f"{len(names)} patch{'' if len(names) == 1 else 'es'}"


def _without_effect(report: Report, everything: bool) -> list[str]:
    """A line for each reason for which patches would be waiting, or would not be used."""
    found: dict[str, list[str]] = {}
    for patch in report.patches():
        if patch.why:
            found.setdefault(f"{patch.word}, {patch.why}", []).append(patch.name)
    return [f"{_patches(names)} {why}{': ' + ', '.join(names) if everything else ''}." for why, names in found.items()]


def _left_alone(found: Mapping[str, Any], everything: bool) -> list[str]:
    """A line for each patch that would be left alone, or for each of its targets; then what the report notes."""
    lines: dict[tuple[str, object], str] = {}
    for each in found["report"]["patches"]:
        if each["name"] in found["left_alone"] and each["outcome"] != Outcome.APPLIED and each["advice"]:
            line = f"  {each['name']} ({each['target']}): {each['outcome']}, {each['found']}"
            lines.setdefault((each["name"], everything and each["target"]), f"{line}. {each['advice']}")
    return [*lines.values(), *(f"  note: {note}" for note in (*found["notes"], *found["report"]["notes"]))]


def _cut(items: Sequence[list[str]], room: int | None) -> list[str]:
    """The lines of as many items as fit into the room, and how many do not."""
    lines: list[str] = []
    for index, item in enumerate(items):
        last = index == len(items) - 1
        if room is not None and index and len(lines) + len(item) + (not last) > room:
            return [*lines, f"  and {len(items) - index} more"]
        lines += item
    return lines
