"""doc/source/measuring/backends.rst and CI name the backends that exist."""

import re
from pathlib import Path

from benchmarks.backends import ceph, nginx
from benchmarks.backends.__main__ import _parser

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "doc" / "source" / "measuring" / "backends.rst").read_text(encoding="utf-8").splitlines()
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_install_lines():
    lines = [line.strip() for line in PAGE if line.strip().startswith("apt-get install")]

    assert lines == [nginx.INSTALL, ceph.INSTALL]
    for line in lines:
        assert line.rpartition("--no-install-recommends ")[2] in CI
    assert "install -y --no-install-recommends $each" in CI


def test_documented_commands_can_be_parsed():
    """Each of them is run by a test of test_command.py."""
    prefix = ".tox/stores/bin/python -m benchmarks.backends "
    commands = [line.strip().removeprefix(prefix) for line in PAGE if line.strip().startswith(prefix)]

    assert commands == ["list", "up swift"]
    for command in commands:
        _parser().parse_args(command.split())


def test_ci_runs_the_environment():
    assert ".venv/bin/tox -e stores" in [line.strip() for line in PAGE]
    environments = re.findall(r"^services=([\w,]+)$", CI, flags=re.MULTILINE)
    assert "stores" in [name for line in environments for name in line.split(",")]


def test_the_glance_of_ones_own():
    """tox.ini names the same interpreter."""
    (line,) = [line.strip() for line in PAGE if line.strip().startswith("export BENCHMARK_GLANCE")]
    variable, _, python = line.removeprefix("export ").partition("=")
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    assert f"{variable} = {python.replace('.tox', '{work_dir}')}\n" in tox
    prefix = ".tox/bench/bin/python -m benchmarks.backends "
    (command,) = [line.strip().removeprefix(prefix) for line in PAGE if line.strip().startswith(prefix)]
    assert command == "up glance-32 -p fastio=on"
    _parser().parse_args(command.split())
