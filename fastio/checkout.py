"""Commands that need a checkout of fastio, because upstream's suites and the benchmarks are not installed."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import fastio
from fastio.errors import FastioError

ROOT = Path(fastio.__file__).resolve().parent.parent
#: What each command is for; all arguments of one are its own.
PURPOSES = {
    "validate": "judge a candidate change to an upstream project (in a checkout of fastio)",
    "report": "make one page of results of the benchmarks (in a checkout of fastio)",
}
#: Those that are offered here.
COMMANDS = PURPOSES if (ROOT / "benchmarks" / "validate" / "__main__.py").is_file() else {}
HOW = "clone fastio, and install it there with pip install -e '.[bench,plot]'"
#: What the help says of those that are not.
ELSEWHERE = "" if COMMANDS else f"A checkout of fastio also has {' and '.join(PURPOSES)}: {HOW}."

#: Packages that the benchmarks import.
NEEDED = ("numpy", "packaging", "psutil", "rich", "scipy")


class CheckoutError(FastioError):
    """This fastio was installed without its benchmarks, or without what they need; the message says what to do."""


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Run ``benchmarks.NAME`` of the checkout that this fastio is part of, in the place of this process.

    :raises CheckoutError: if it is part of none, or something is not installed that the command needs
    """
    if not COMMANDS and not {"-h", "--help"}.isdisjoint(arguments):
        print(f"usage: fastio {name} ...\n\n{PURPOSES[name]}\n\n{ROOT} is none: {HOW}. There, --help says more.")
        sys.exit()
    if not COMMANDS:
        raise CheckoutError(f"{name} needs a checkout of fastio, and {ROOT} is none: {HOW}")
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        raise CheckoutError(
            f"{name} needs {', '.join(missing)}, not installed for {sys.executable}: pip install -e '.[bench,plot]' "
            f"in {ROOT}"
        )
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    sys.stdout.flush()
    # In this process's place: signals, the terminal and the exit status are its own.
    os.execv(sys.executable, command)
