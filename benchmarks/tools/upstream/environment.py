"""A throw-away virtual environment whose Pythons, children of tests included, can start patched.

It sees what another environment has installed, by default the current one, and the fastio that is imported here. Its
site-packages hold one hook, a ``.pth`` file, that patches if an environment variable is set; stock runs use the
same environment without the variable. A ``.pth`` file, unlike ``sitecustomize`` on PYTHONPATH, also works in children
started with ``-E`` or ``-I``.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import fastio

from .worker import CHILDREN_VARIABLE

# A module, not code in the .pth line: site may process a .pth file twice, but a module is imported once.
_HOOK = f"""\
import os

if os.environ.get({CHILDREN_VARIABLE!r}) == "1":
    import fastio

    fastio.patch()
"""


def create(directory: Path, base: str = sys.executable) -> Path:
    """Make the environment in ``directory``, on top of that of the interpreter ``base``; returns its interpreter."""
    subprocess.run(
        [base, "-I", "-m", "venv", "--without-pip", str(directory)],
        check=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    found = subprocess.run(
        [base, "-I", "-c", "import json, site; print(json.dumps(site.getsitepackages()))"],
        check=True, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    site_packages = next(directory.glob("lib/python*/site-packages"))
    install(site_packages, [f"import site; site.addsitedir({path!r})" for path in json.loads(found.stdout)])
    return directory / "bin" / "python"


def install(site_packages: Path, before: Sequence[str] = ()) -> None:
    """Put fastio on an environment's path, and the hook that patches its Pythons.

    :param before: lines for the ``.pth`` file that come first
    """
    (site_packages / "fastio_upstream_hook.py").write_text(_HOOK)
    lines = [*before, str(Path(fastio.__file__).parents[1]), "import fastio_upstream_hook"]
    (site_packages / "fastio_upstream.pth").write_text("\n".join(lines) + "\n")
