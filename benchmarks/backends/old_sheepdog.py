"""glance_store's own sheepdog driver, of the last release that had one, in today's glance_store.

Its one file runs there unmodified, under the name that it always had. It has to be there first, beside ``six``:

    pip install six
    pip install --no-deps --target DIRECTORY glance_store==1.0.1
    export BENCHMARK_OLD_GLANCE_STORE=DIRECTORY
"""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = "glance_store._drivers"
MODULE = f"{_PACKAGE}.sheepdog"

#: Names the directory in which glance_store 1.0.1 is unpacked.
VARIABLE = "BENCHMARK_OLD_GLANCE_STORE"

_directory = os.environ.get(VARIABLE, "")


def missing() -> str:
    """Why the driver cannot be had; empty if it can."""
    for needed in ("glance_store", "six", "oslo_concurrency"):
        if importlib.util.find_spec(needed) is None:
            return f"{needed} is not installed: pip install {needed.replace('oslo_', 'oslo.')}"
    if not _directory:
        return (
            f"{VARIABLE} does not say where glance_store 1.0.1 is: "
            "pip install --no-deps --target DIRECTORY glance_store==1.0.1"
        )
    if not _file().is_file():
        return f"{VARIABLE}={_directory}: there is no {_file().relative_to(_directory)}"
    return ""


def _file() -> Path:
    return Path(_directory, *MODULE.split(".")).with_suffix(".py")


@contextlib.contextmanager
def available() -> Iterator[None]:
    """The driver can be imported, as :data:`MODULE`, where its patches look for it; nothing is left of it later."""
    package = importlib.import_module(_PACKAGE)
    directory = str(_file().parent)
    package.__path__.append(directory)
    try:
        yield
    finally:
        package.__path__.remove(directory)
        sys.modules.pop(MODULE, None)
        vars(package).pop("sheepdog", None)
