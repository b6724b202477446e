"""``python -m benchmarks.backends``."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.backends import BACKENDS, SERVICES
from benchmarks.backends.__main__ import main
from tests.backends.conftest import alive, processes_of
from tests.eventually import until

ROOT = Path(__file__).parent.parent.parent
SIZES = ("network_chunk_size", "object_chunk_size", "client_chunk_size")
COMMAND = [sys.executable, "-m", "benchmarks.backends"]


@contextmanager
def up(*arguments: str) -> Iterator[subprocess.Popen]:
    """The command running in a separate session, killed at the end if it still runs."""
    process = subprocess.Popen(
        [*COMMAND, "up", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def read_until(process: subprocess.Popen, end: str) -> list[str]:
    lines: list[str] = []
    while not lines or not lines[-1].startswith(end):
        line = process.stdout.readline().decode()
        assert line, process.stderr.read().decode()
        lines.append(line.rstrip("\n"))
    return lines


def test_up_says_how_to_reach_it_and_stops_at_ctrl_c(usable, tmp_path):
    usable("swift")
    given = [f"{name}={1 << place}" for place, name in enumerate(SIZES, 17)]
    parameters = [f"-p{each}" for each in ("workers=3", *given, "disk_chunk_size=1MiB")]
    with up("swift", "--directory", str(tmp_path), *parameters) as process:
        lines = read_until(process, "It runs until")
        (url,) = [line.partition(": ")[2] for line in lines if line.startswith("url: ")]
        assert "user: test:tester" in lines
        assert "key: testing" in lines
        assert "enabled_backends = swift:swift" in lines
        assert f"swift_store_auth_address = {url}/v3" in lines
        (directory,) = tmp_path.iterdir()
        storage, proxy = ((directory / "etc" / f"{name}.conf").read_text() for name in ("object", "proxy"))
        assert "workers = 3\n" in storage and f"disk_chunk_size = {1 << 20}\nnetwork_chunk_size = 131072" in storage
        assert "object_chunk_size = 262144\nclient_chunk_size = 524288" in proxy
        # A parent and its workers: three of the object server, one of each other; and their keeper.
        until(lambda: len(processes_of(directory)) == 4 + 3 + 3 + 1, "all workers")

        process.send_signal(signal.SIGINT)

        assert process.wait(200) == 0
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_up_ends_when_a_server_does(usable, tmp_path):
    usable("http")
    with up("http", "--directory", str(tmp_path)) as process:
        shown = next(line for line in read_until(process, "It runs until") if line.startswith("Logs are in "))
        pids = [int(pid) for pid in shown.rstrip(".").partition(", processes ")[2].split()]
        assert all(map(alive, pids))

        os.kill(pids[0], signal.SIGKILL)

        assert process.wait(200) == 1
        assert b"nginx of http has ended" in process.stderr.read()


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("workers", "-p workers: not NAME=VALUE"),
        ("workers=many", "-p workers=many: 'many' is neither a number nor a size such as 64KiB"),
        ("colour=red", "swift: unknown parameter 'colour'; its parameters: disk_chunk_size, "),
    ],
)
def test_bad_parameters(capsys, parameter, message):
    assert main(["up", "swift", "-p", parameter]) == 1

    assert capsys.readouterr().err.startswith(message)


def test_missing_backends_are_listed_with_their_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BENCHMARK_SWIFT", str(tmp_path))

    assert main(["up", "swift"]) == 1
    assert "install it with: pip install -e '.[stores]'" in capsys.readouterr().err
    assert main(["list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [*BACKENDS, *SERVICES]
    assert lines[0] == "filesystem ready"
    (swift,) = [line for line in lines if line.startswith("swift ")]
    assert f"BENCHMARK_SWIFT={tmp_path}" in swift and "pip install" in swift
    assert any("parameters: disk_chunk_size=65536, " in line for line in lines)
