"""README.rst is true."""

import re
import subprocess
import sys
from pathlib import Path

import fastio

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


def test_its_links_exist():
    links = [*re.findall(r"<([^>:]+)>`_", README), *re.findall(r"^\.\. image:: (\S+)$", README, re.MULTILINE)]
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).is_file(), link


def test_its_program_runs():
    (program,) = [block for block in blocks() if block.startswith("import fastio")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "communicate" in done.stdout


def test_its_fastio_commands_run():
    """Commands of the service are on other pages, whose tests run them."""
    (shown,) = [block for block in blocks() if block.startswith("$ fastio ")]
    checked, service, status = re.findall(r"^\$ (.*)$", shown, re.MULTILINE)
    started = service.replace("/etc/glance/glance-api-uwsgi.ini", "uwsgi.ini")
    for command, page in ((checked, "check"), (started, "deployment")):
        assert f"   {command}" in (ROOT / f"doc/source/operators/{page}.rst").read_text(encoding="utf-8").splitlines()
    # The output is that of a glance: its numbers differ here.
    for command, words in (
        (f"fastio check --python {sys.executable}", "patches would be in effect: "),
        (status, "patches: "),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin"},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        assert words in shown and words in done.stdout


def test_the_first_command_comes_early():
    assert len(README.partition("    pip install .\n")[0].split()) <= 120


def test_the_outcomes_of_patches_add_up():
    """Where README or a page shows a line of them, it is of all patches that there are."""
    pages = [ROOT / "README.rst", *(ROOT / "doc" / "source").rglob("*.rst")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    lines = re.findall(r" (?:patches|fastio): (\d.*)", text)
    assert len(lines) > 4
    for line in lines:
        assert sum(map(int, re.findall(r"\d+", line))) == len(fastio.names()), line
