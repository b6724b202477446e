"""The reference pages: settings, commands, patches and outcomes, each from the one place that decides about it.

They are made when the documentation is built, as the tables of results are (:mod:`benchmarks.documentation`).
"""

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

from benchmarks import documentation
from benchmarks.harness import markup
from fastio import cli, config
from fastio.counters import CAUSES
from fastio.patching import registry
from fastio.report import MEANING
from fastio.tables import EMPTY, Table


def settings() -> str:
    """A row for each setting."""
    head = ["setting", "meaning", "default", "unit", "variable", "allowed"]
    rows = [
        [f"``{each.name}``", each.help, _default(each), each.unit or EMPTY, f"``{each.env}``", each.allowed]
        for each in config.SETTINGS
    ]
    return markup.rst(Table("", head, rows))


def _default(setting: config.Setting) -> str:
    if isinstance(setting.default, bool):
        return str(int(setting.default))
    return setting.show(setting.default) if setting.default else EMPTY


def outcomes() -> str:
    """A row for each outcome."""
    rows = [[outcome.value, meaning] for outcome, meaning in MEANING.items()]
    return markup.rst(Table("", ["outcome", "meaning"], rows))


def reasons() -> str:
    """A row for each reason why a call is left to upstream's code."""
    return markup.rst(Table("", ["reason", "meaning"], [[cause, cause.meaning] for cause in CAUSES]))


def patches() -> str:
    """A table of all patches, and what there is to say of each, by library."""
    head = ["patch", "meaning", "applied to", "not needed"]
    rows = [
        [
            f"``{patch.name}``",
            patch.summary,
            ", ".join(dict.fromkeys(str(each) for target in patch.targets for each in patch.requirements(target)))
            or EMPTY,
            _not_needed(patch) or EMPTY,
        ]
        for patch in registry.patches()
    ]
    return "\n\n".join([markup.rst(Table("", head, rows)), *map(_folded, registry.patches())])


def profiles() -> str:
    """The patches that change more than speed."""
    rows = [[f"``{patch.name}``", patch.changes] for patch in registry.patches() if patch.changes]
    return markup.rst(Table("", ["patch", "change"], rows))


def _not_needed(patch: registry.Patch) -> str:
    pythons: dict[str, None] = {}
    for sign, version in (target.python.split() for target in patch.targets if target.python):
        pythons[f"CPython {version}, and later" if sign == "<" else f"CPython before {version}"] = None
    return "; ".join([*pythons, *patch.not_needed_in])


def _folded(patch: registry.Patch) -> str:
    about = (inspect.getdoc(sys.modules[patch.module]) or "").partition(": ")[2]
    replaced = ":replaces: " + ", ".join(f"``{target.key}``" for target in patch.targets)
    changes = f"\n:changes: {patch.changes}" if patch.changes else ""
    return documentation.folded(patch.name, f"{about}\n\n{replaced}{changes}")


class _Found(BaseException):
    """The parser that was about to parse."""


def _parser_of(main: Callable[[list[str]], Any], arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser that ``main`` would use for ``arguments``."""

    def found(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Any:
        raise _Found(self)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", found):
        try:
            main(list(arguments))
        except _Found as stopped:
            return stopped.args[0]
    raise LookupError(f"no parser of {' '.join(arguments)}")


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    # No part of argparse's interface; libraries for completion rely on it as well.
    for group in parser._actions:
        if isinstance(group, argparse._SubParsersAction):
            for shown in group._choices_actions:
                each = group.choices[shown.dest]
                each.description = each.description or shown.help
                yield shown.dest, each


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command of ``fastio``, with its parser."""
    for name, parser in _subcommands(_parser_of(cli.main, [])):
        # Where the subcommand has no options here, its arguments are another parser's.
        if not parser.add_help:
            main = importlib.import_module(f"benchmarks.{name}.__main__").main if name in cli.IN_CHECKOUTS else None
            parser = _parser_of(main, []) if main else _parser_of(cli.main, [name])
        below = {f"fastio {name} {subcommand}": each for subcommand, each in _subcommands(parser)}
        yield from (below or {f"fastio {name}": parser}).items()


def commands() -> str:
    """Describe each command and its options."""
    blocks = []
    for name, parser in parsers():
        told = [each for each in parser._actions if each.help and each.help != argparse.SUPPRESS]
        told = [each for each in told if not isinstance(each, argparse._HelpAction)]
        table = markup.rst(Table("", ["option", "meaning", "default"], list(map(_option, told))))
        blocks += [name, "=" * len(name), "", parser.description or "", "", documentation.folded("Options", table), ""]
    return "\n".join(blocks)


def _option(action: argparse.Action) -> list[str]:
    """The row of an option, or of an argument."""
    takes = action.nargs != 0
    value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())
    names = f"{', '.join(action.option_strings)} {value if takes else ''}" if action.option_strings else value
    default = str(action.default) if takes and isinstance(action.default, (str, int)) else ""
    return [f"``{names.strip()}``", str(action.help).replace("%%", "%"), default or EMPTY]
