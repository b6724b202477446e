"""Installing packages into an environment: by uv where it is installed, else by pip.

Both keep what they have fetched. uv, which finds it again without a network, is asked to do with that where the network
fails it.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tools.upstream.runner import clean_environment

from .errors import ValidateError

#: Seconds for installing all of an environment.
LIMIT = 1800


class Uv:
    """https://docs.astral.sh/uv/"""

    name = "uv"

    def install(self, python: Path, arguments: Sequence[str]) -> None:
        """Install requirements or files.

        :raises ValidateError: with the installer's last words, if that fails
        """
        # Links into uv's cache would let a test that writes into a package write into all environments.
        # Compiled here as pip does it, since the tests may run where bytecode is not written.
        options = ["--quiet", "--link-mode", "copy", "--compile-bytecode", "--python", str(python)]
        command = ["uv", "pip", "install", *options, *arguments]
        try:
            _check(command)
        except ValidateError:
            try:
                _check([*command, "--offline"])
            except ValidateError:
                pass
            else:
                return
            raise

    def uninstall(self, python: Path, name: str) -> None:
        _check(["uv", "pip", "uninstall", "--quiet", "--python", str(python), name])


class Pip:
    """The pip of this interpreter, which installs into other environments."""

    name = "pip"

    def install(self, python: Path, arguments: Sequence[str]) -> None:
        """As :meth:`Uv.install`."""
        _check([*self._command(python), "install", "--quiet", *arguments])

    def uninstall(self, python: Path, name: str) -> None:
        _check([*self._command(python), "uninstall", "--quiet", "--yes", name])

    @staticmethod
    def _command(python: Path) -> list[str]:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]


INSTALLERS: dict[str, type[Uv | Pip]] = {"uv": Uv, "pip": Pip}


def choose(name: str) -> Uv | Pip:
    """The installer of that name; without a name the faster one that there is.

    :raises ValidateError: if it is not installed
    """
    available = {"uv": shutil.which("uv") is not None, "pip": importlib.util.find_spec("pip") is not None}
    for each in [name] if name else available:
        if available[each]:
            return INSTALLERS[each]()
    raise ValidateError(f"{name} is not installed here" if name else "neither uv nor pip is installed here")


def _check(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValidateError(f"no end after {LIMIT} s: {' '.join(command)}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-3000:]
        raise ValidateError(f"{' '.join(command)}\nfailed with exit status {done.returncode}:\n{said}")
