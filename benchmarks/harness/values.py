"""Values of options; a parser shows what is wrong with one."""

import argparse
from collections.abc import Callable

from fastio.config import parse_size


def size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 200MiB") from None


def count(least: int) -> Callable[[str], int]:
    """A whole number that is not less than ``least``."""

    def checked(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return int(text)

    return checked
