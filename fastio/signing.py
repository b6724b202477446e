"""``fastio fingerprint``: what is installed here and not known, and a site's own signature under it."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import difflib
import importlib
import inspect
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType

from fastio.arguments import Parser
from fastio.errors import FastioError
from fastio.patching import catalogue, hooks, registry, site, syntax
from fastio.patching.catalogue import Signed


class SigningError(FastioError):
    """The function cannot be shown or signed; the message says why."""


def main(argv: Sequence[str]) -> int:
    """Run the command; returns the exit status.

    :raises SigningError: if something cannot be shown or signed
    """
    arguments = parser().parse_args(argv)
    warnings.simplefilter("ignore")
    if arguments.does == "add":
        signed = _sign(arguments)
        print(f"{signed}\n\nin effect with: FASTIO_SITE_FINGERPRINTS={os.path.abspath(arguments.file)}")
    elif arguments.key:
        print(_shown(arguments.key, arguments.against))
    else:
        print("\n".join(_unknown()) or "All code that is installed here is known.")
    return 0


def parser() -> Parser:
    """Of ``fastio fingerprint``."""
    command = Parser(
        prog="fastio fingerprint",
        description="Shows code that is installed here and that fastio does not know, and signs what was read.",
    )
    does = command.add_subparsers(dest="does", required=True)
    show = does.add_parser(
        "show",
        help="without a function: those that are not known here; with one: its code, and how it is known",
    )
    show.add_argument("key", nargs="?", metavar="FUNCTION", help="module:qualified.name, as the report has it")
    show.add_argument(
        "--against",
        type=Path,
        metavar="DIRECTORY",
        help="what is different from an upstream release, unpacked there (pip install --no-deps --target DIRECTORY)",
    )
    add = does.add_parser(
        "add", help="sign the code that is installed here: patches are in effect with it from then on"
    )
    add.add_argument("key", metavar="FUNCTION", help="module:qualified.name, as the report has it")
    add.add_argument("--file", required=True, help="the file that the setting site_fingerprints names, made if need be")
    add.add_argument("--like", required=True, metavar="RELEASE", help="the known release that patches take it for")
    add.add_argument("--who", required=True, help="who has read the code")
    add.add_argument("--why", required=True, help="what differs, and why the patches may be in effect all the same")
    return command


def _sign(arguments: argparse.Namespace) -> Signed:
    key, path = arguments.key, arguments.file
    digest, _ = _source(key)
    if catalogue.recognise(key, hooks.find_function(key)) is not None:
        raise SigningError(f"{key} is known here; there is nothing to sign")
    today = datetime.date.today().isoformat()
    signed = Signed(key, digest, arguments.like, arguments.why, arguments.who, today)
    try:
        before = site.read(path) if os.path.exists(path) else ()
        others = (each for each in before if (each.key, each.fingerprint) != (key, digest))
        site.write(path, (*others, signed))
    except (OSError, ValueError) as error:
        raise SigningError(f"{path}: {error}") from None
    return signed


def _unknown() -> Iterator[str]:
    """A line for each function that is installed here, not known, and relied on."""
    relying: dict[str, dict[str, str]] = {}
    for patch in registry.all_patches():
        for target in patch.targets:
            for key in target.keys:
                function = _function(key)
                if function is not None and catalogue.recognise(key, function) is None:
                    relying.setdefault(key, {})[patch.name] = hooks.broken_contract(target, key, function)
    for key, patches in relying.items():
        yield f"{key}:"
        for name, broken in patches.items():
            yield f"  {name}: " + (broken or "in effect, the code keeps to the contract")


def _shown(key: str, against: Path | None) -> str:
    digest, text = _source(key)
    known = catalogue.recognise(key, _function(key))
    lines = [f"{key}: fingerprint {digest}", f"known releases: {', '.join(catalogue.releases(key))}"]
    lines.append(f"this is the code of {known.releases}, by {known.by}" if known else "this code is not known")
    if against is not None:
        lines += ["", *difflib.unified_diff(_lines(key, against), text.splitlines(), "known", "installed", lineterm="")]
    else:
        lines += ["", text]
    return "\n".join(lines)


def _source(key: str) -> tuple[str, str]:
    """The fingerprint of the function's source, and its text."""
    if key not in catalogue.table():
        raise SigningError(f"no patch relies on {key}; fastio status and fastio fingerprint show name those")
    function = _function(key)
    if function is None:
        raise SigningError(f"{key} is not installed here")
    source = catalogue.source(function)
    if source is None:
        raise SigningError(f"{key} has no source, or one that is not that of the running code")
    text = inspect.cleandoc("\n" + inspect.getsource(function.__code__))
    return syntax.fingerprint(source.tree, syntax.current_defaults(function)), text


def _lines(key: str, directory: Path) -> list[str]:
    """The function as a release has it."""
    module, _, name = key.partition(":")
    file = directory.joinpath(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    try:
        text = file.read_text(encoding="utf-8")
        sources = dict(syntax.functions(text, str(file), {registry.last_name(key)}))
        node = sources[name].node
    except (OSError, SyntaxError, KeyError) as error:
        raise SigningError(f"{directory} does not have {key}: {error}") from None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return inspect.cleandoc("\n" + "\n".join(text.splitlines()[first - 1 : node.end_lineno])).splitlines()


def _function(key: str) -> FunctionType | None:
    with contextlib.suppress(Exception):
        importlib.import_module(key.partition(":")[0])
        for target in (target for patch in registry.all_patches() for target in patch.targets if key in target.keys):
            importlib.import_module(target.module)
    return hooks.find_function(key)
