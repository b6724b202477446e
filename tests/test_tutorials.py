"""The commands in the tutorials of the documentation work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "doc" / "source"
DOORS = ("operators", "programs", "upstream", "measuring")


def tutorial(door: str) -> str:
    return (SOURCE / door / "tutorial.rst").read_text(encoding="utf-8")


@pytest.mark.parametrize("door", DOORS)
def test_each_door_has_tutorial_how_tos_and_reference(door: str) -> None:
    text = (SOURCE / door / "index.rst").read_text(encoding="utf-8")
    parts = ["Tutorial", "How-tos", "Reference"]
    assert re.findall(r"^(.+)\n=+$", text, re.MULTILINE)[1:] in (parts, [*parts, "Explanation"])
    assert f":link: {door}/index" in (SOURCE / "index.rst").read_text(encoding="utf-8")


def test_the_program_runs_by_itself_and_from_outside(tmp_path: Path) -> None:
    program = re.findall(r"::\n\n((?:    .*\n|\n)+)", tutorial("programs"))[0]
    (tmp_path / "copy_zeros.py").write_text("\n".join(line[4:] for line in program.splitlines()), encoding="utf-8")
    for command in (["copy_zeros.py"], ["-m", "fastio", "run", "copy_zeros.py"]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, timeout=100)
        assert done.returncode == 0, done.stderr
        patched, plain = done.stdout.splitlines()
        assert patched.startswith("67108864 bytes in {") and plain == "67108864 bytes without fastio"
    assert "    fastio run copy_zeros.py\n" in tutorial("programs")


def test_the_service_is_started_as_the_page_on_deployment_does() -> None:
    """Its commands are run by tests/glance/test_deployment.py."""
    commands = re.findall(r"^ +(?:FASTIO=0 )?(fastio run .*)$", tutorial("operators"), re.MULTILINE)
    assert len(commands) == 2
    (asked,) = re.findall(r"^ +(fastio check .*)$", tutorial("operators"), re.MULTILINE)
    # tests/test_check.py runs those of that page.
    assert f"   {asked}\n" in (SOURCE / "operators" / "check.rst").read_text(encoding="utf-8")
    for command in commands:
        command = command.replace("/etc/glance/glance-api-uwsgi.ini", "uwsgi.ini")
        assert f"   {command}\n" in (SOURCE / "operators" / "deployment.rst").read_text(encoding="utf-8")


def judged() -> list[list[str]]:
    """The arguments of each ``fastio validate`` in the tutorial."""
    return [line.split() for line in re.findall(r"tox -e validate -- (.*)$", tutorial("upstream"), re.MULTILINE)]


def test_the_change_that_is_judged_first_can_be() -> None:
    """``VALIDATE_TESTS=1`` judges it."""
    for needed in ("psutil", "rich", "scipy"):
        pytest.importorskip(needed, reason="fastio validate needs the extra 'bench'")
    from benchmarks.validate import __main__ as validate
    from benchmarks.validate import candidates, projects

    chosen, own = (validate._parser().parse_args(arguments) for arguments in judged())
    project = projects.find(chosen.project)
    assert project == projects.find(own.project) and project.choose_cases([chosen.benchmarks]) == []
    assert candidates.parse(str(ROOT / chosen.candidate)).kind == "diff"
