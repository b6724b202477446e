"""Command lines that say what may have been meant."""

import argparse
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from fastio.errors import meant

_CHOICE = r"invalid choice: '([^']*)'"
_OPTION = r"unrecognized arguments: (--[a-z][a-z-]*)"


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the command or option that is closest to the unknown one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # Python's own suggestions are for single choices only, and new in Python 3.14.
        self.suggest_on_error = False

    def error(self, message: str) -> NoReturn:
        for pattern, known in ((_CHOICE, _choices(self)), (_OPTION, _options(self))):
            unknown = re.search(pattern, message)
            if unknown:
                message += meant(unknown[1], list(known))
        super().error(message)


def _choices(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from map(str, action.choices or ())


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The parser's arguments and its commands': the parser above a command reports those that it does not know."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _options(command)
