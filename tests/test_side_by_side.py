"""Commands that run side by side: all of them run, and what each says and how it ends is told."""

import configparser
import io
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.tools import side_by_side
from tests.eventually import until

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "benchmarks.tools.side_by_side"]


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_what_is_said_comes_in_order_and_the_worst_status_counts(tmp_path: Path) -> None:
    # Each of the two waits for the other, and the one whose output comes first says something last.
    first = f"echo one; echo > {tmp_path}/a; until [ -e {tmp_path}/b ]; do sleep 0.01; done; echo two"
    second = f"until [ -e {tmp_path}/a ]; do sleep 0.01; done; echo three >&2; echo > {tmp_path}/b; exit 3"
    said = io.BytesIO()
    assert side_by_side.run([sh(first), sh(second), sh("echo four")], 2, said) == [0, 3, 0]
    lines = said.getvalue().decode().splitlines()
    assert [line for line in lines if not line.startswith("$ ")] == ["one", "two", "three", "four"]
    assert [number for number, line in enumerate(lines) if line.startswith("$ sh -c ")] == [0, 3, 5]


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_more_than_so_many_run_at_a_time(tmp_path: Path, jobs: int) -> None:
    script = f"cd {tmp_path}; touch $$; ls | wc -l; sleep 0.1; rm $$"
    said = io.BytesIO()
    # Each is another command.
    side_by_side.run([[*sh(script), str(number)] for number in range(5)], jobs, said)
    counts = [int(line) for line in said.getvalue().splitlines() if line.isdigit()]
    assert len(counts) == 5 and max(counts) <= jobs


def test_the_command_line() -> None:
    words = ["sh", "-c", "echo x; exit 4", "//", "true", "//", "sh", "-c", "echo x; exit 4"]
    assert side_by_side.split(words) == [["sh", "-c", "echo x; exit 4"], ["true"]]
    done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "$ sh -c 'echo x; exit 4'", "x", "$ true", "exit status 4 of sh -c 'echo x; exit 4'",
    ]  # fmt: skip
    assert subprocess.run([*COMMAND, "true"], cwd=ROOT, stdout=subprocess.DEVNULL, timeout=100).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_runs_ends_with_it(number: int) -> None:
    endless = sh("trap '' INT; echo $$; exec sleep 1000")
    with subprocess.Popen([*COMMAND, *endless], cwd=ROOT, stdout=-1, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"$ sh")
        pid = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(60) != 0
    until(lambda: not Path(f"/proc/{pid}").exists(), "its end")


#: Folders that have environments of their own.
OTHERS = ("benchmarks", "orders", "upstream")
NOT_PLAIN = ("backends", "benchmarks", "glance", "io", "orders", "properties", "upstream")


def covers(command: list[str], path: str) -> bool:
    """Whether pytest is told to run this file."""
    words = iter(command)
    ignored, wanted = [], []
    for word in words:
        if word == "--ignore":
            ignored.append(next(words))
        elif not word.startswith("-"):
            wanted.append(word)

    def within(directories: list[str]) -> bool:
        return any(path.startswith(f"{each}/") for each in directories)

    return within(wanted) and not within(ignored)


@pytest.mark.parametrize(
    ("environment", "files", "times", "left_out"),
    [
        # Natively, and monkey patched.
        ("tests", "tests/**/test_*.py", 2, tuple(f"tests/{name}/" for name in OTHERS)),
        # What io and its like do is the same there.
        ("plain", "tests/**/test_*.py", 1, tuple(f"tests/{name}/" for name in NOT_PLAIN)),
    ],
)
def test_the_parts_are_all_of_it(environment: str, files: str, times: int, left_out: tuple[str, ...]) -> None:
    ini = configparser.RawConfigParser()
    ini.read(ROOT / "tox.ini", encoding="utf-8")
    text = ini[f"testenv:{environment}"]["commands"].replace("\\\n", " ").replace("{posargs:", "").replace("}", "")
    commands = side_by_side.split(shlex.split(text)[3:])
    for path in sorted(ROOT.glob(files)):
        name = path.relative_to(ROOT).as_posix()
        found = [command[:2] for command in commands if covers(command, name)]
        assert len(found) == (0 if name.startswith(left_out) else times), name
        assert len(set(map(tuple, found))) == len(found), name
