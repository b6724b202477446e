"""What README.rst says is what there is."""

import re
import subprocess
import sys
from pathlib import Path

from fastio.config import SETTINGS, format_size

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.rst").read_text(encoding="utf-8")


def blocks():
    """The literal blocks, each as its lines without the indentation."""
    found = re.findall(r"::\n\n((?:    .*\n|\n)+)", README)
    return ["\n".join(line[4:] for line in block.splitlines()).strip() for block in found]


def test_ci_runs_the_command_lines():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [block for block in blocks() if block.startswith("python3 -m venv")]
    assert len(lines) == 2
    for line in lines:
        assert line in ci.splitlines()


def test_its_environments_exist():
    environments = (ROOT / "tox.ini").read_text(encoding="utf-8")
    for name in re.findall(r"tox -e (\S+?)[`\s]", README):
        assert f"[testenv:{name}]" in environments


def test_its_programs_run(tmp_path):
    programs = [block for block in blocks() if block.startswith("import fastio")]
    assert len(programs) == 2
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, cwd=ROOT,
            timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "communicate" in done.stdout


def test_its_fastio_commands_run():
    (commands,) = [block for block in blocks() if block.startswith("fastio ")]
    for command in commands.splitlines():
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin"},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        assert "communicate" in done.stdout


def test_its_settings_are_the_settings():
    for setting in SETTINGS:
        (row,) = [line for line in README.splitlines() if line.startswith(f"``{setting.name}``")]
        assert f"``{setting.env}``" in row
        if isinstance(setting.default, int) and not isinstance(setting.default, bool):
            assert f" {format_size(setting.default)} " in row
