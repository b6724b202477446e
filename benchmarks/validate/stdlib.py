"""CPython: a candidate is a module of the standard library, or a diff of ``Lib/``.

It lies in a directory of the candidate's environment that comes before the standard library on the path. That works for
what Python does not import before it looks at site-packages, ``subprocess`` among it, and in its children, too.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from . import diffs, environments, trees
from .builder import Builder
from .candidates import Candidate
from .environments import Environment
from .errors import UnusedError, ValidateError
from .variants import Variant

#: The tests are not what is installed, and every Python has its own.
_WITHOUT = ("Lib/test/*",)


class StandardLibraryBuilder(Builder):
    """As :class:`Builder`, for the standard library."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._fills = {"diff": self._fill_from_diff, "module": self._fill_from_module, "stock": self._leave}

    def _fill_from_diff(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        before, after = made.directory / "before", made.directory / "source"
        library = self._library(made)
        for tree in (before, after):
            (tree / "Lib").mkdir(parents=True)
            for module in library.glob("*.py"):
                shutil.copyfile(module, tree / "Lib" / module.name)
        name = f"Python {stock.version}"
        diffs.apply(candidate.path, after, ["Lib"], name, without=_WITHOUT, called=candidate.text)
        changed = trees.changed(before, after, "Lib")
        if not changed:
            raise UnusedError(f"{candidate.text} changes no module of Lib/, so there is nothing to run")
        trees.check_no_links(changed, after)
        self._place(made, [after / name for name in changed])

    def _fill_from_module(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        if not (self._library(made) / candidate.path.name).is_file():
            raise ValidateError(f"--candidate {candidate.text}: the standard library has no {candidate.path.name}")
        self._place(made, [candidate.path])

    def _place(self, made: Environment, modules: list[Path]) -> None:
        directory = made.site_packages / self._project.package
        directory.mkdir()
        for module in modules:
            shutil.copyfile(module, directory / module.name)
        environments.compile_modules(self._python, [directory / module.name for module in modules])
        line = f"import sys; sys.path.insert(0, {str(directory)!r})\n"
        (made.site_packages / f"{self._project.package}.pth").write_text(line)

    @staticmethod
    def _library(made: Environment) -> Path:
        code = "import sysconfig; print(sysconfig.get_path('stdlib'))"
        done = subprocess.run([str(made.python), "-I", "-c", code], capture_output=True, text=True, check=True)
        return Path(done.stdout.strip())

    def _version(self, made: Environment) -> str:
        return self._python.version

    def _source(self, version: str) -> Path | None:
        return None
