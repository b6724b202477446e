"""The capacity of a child's pipes: what a caller chose stays, and all of them together take little of a user's."""

import itertools
import json
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from fastio.io import pipes
from tests.child import MIB, PIPES, command, data
from tests.conftest import MONKEY_PATCHED

pytestmark = pytest.mark.fast_path("bytes_in")


def kept(popen: Any, *names: str) -> list[int]:
    """Descriptors of these pipes for reading, which keep no reader from seeing an end."""
    return [os.open(f"/proc/self/fd/{getattr(popen, name).fileno()}", os.O_RDONLY | os.O_NONBLOCK) for name in names]


@pytest.mark.parametrize("size", [4096, 65536, None])
def test_the_size_that_popen_was_given_stays(patched: Any, sp: ModuleType, size: int | None) -> None:
    popen = sp.Popen(command("echo"), **PIPES, **({} if size is None else {"pipesize": size}))
    fds = kept(popen, "stdin", "stdout", "stderr")
    try:
        assert popen.communicate(data(1, 3 * MIB)) == (data(1, 3 * MIB), b"")
        capacities = [pipes.capacity(fd) for fd in fds]
        # Without one both that carry much become larger.
        assert capacities == [size] * 3 if size else min(capacities[:2]) > pipes.DEFAULT_CAPACITY
    finally:
        for fd in fds:
            os.close(fd)


def _read(stream: Any) -> int:
    return sum(map(len, iter(lambda: stream.read(MIB), b"")))


def _read_all(stream: Any) -> int:
    return len(stream.read())


def _read_into(stream: Any) -> int:
    buffer = bytearray(MIB)
    return sum(iter(lambda: stream.readinto(buffer), 0))


def _write(stream: Any) -> int:
    return int(stream.write(data(1, 3 * MIB)))


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ({"bufsize": 0}, _read),
        ({"bufsize": 0}, _read_all),
        ({"bufsize": 0}, _read_into),
        ({"bufsize": -1}, _read),
        ({"bufsize": -1}, _read_all),
        ({"text": True}, _read_all),
        pytest.param({}, _write, marks=pytest.mark.fast_path("bytes_out")),
    ],
)
@pytest.mark.parametrize("size", [pipes.DEFAULT_CAPACITY, None])
def test_the_kernels_own_size_stays_where_it_was_asked_for_and_a_green_pipe_is_used(
    patched: Any, sp: ModuleType, is_green: bool, options: dict[str, Any], use: Callable[[Any], int], size: int | None
) -> None:
    if not is_green:
        pytest.skip("natively the files are io's own")
    if size is not None:
        options = {**options, "pipesize": size}
    name, step = ("stdin", "in:-1") if use is _write else ("stdout", f"out:{3 * MIB}:65536:61")
    popen = sp.Popen(command(step), **{name: -1}, **options)
    (fd,) = kept(popen, name)
    try:
        assert use(getattr(popen, name)) == 3 * MIB
        assert (pipes.capacity(fd) == pipes.DEFAULT_CAPACITY) == (size is not None)
    finally:
        os.close(fd)
        getattr(popen, name).close()
        popen.wait()


MANY = """
import fcntl, json, os, resource, subprocess, threading, time
import fastio
from fastio.io import pipes
from tests.child import Gate
fastio.patch(["communicate"], strict=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
os.setgroups([])
# The kernel counts the pipes of a user, and this test may run elsewhere at the same time.
user = 60000 + os.getpid() % 5000
os.setresgid(user, user, user)
os.setresuid(user, user, user)
gate = Gate()
wait, tell = gate.fds
# Python itself may be where this user cannot go.
script = f"head -c 3000000 /dev/zero; printf ! >&{tell}; head -c 1 <&{wait}"
children = [
    subprocess.Popen(["/bin/sh", "-c", script], stdout=-1, stderr=-1, pass_fds=gate.fds) for _ in range(70)
]
threads = [threading.Thread(target=child.communicate) for child in children]
for thread in threads:
    thread.start()
for _ in children:
    gate.reached()
# All pipes of all of them are open still.
reader, writer = os.pipe()
held = sum(pipes.capacity(child.stdout.fileno()) - pipes.DEFAULT_CAPACITY for child in children)
print(json.dumps([pipes.capacity(reader), held]))
for _ in children:
    gate.open()
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(MONKEY_PATCHED, reason="native threads, in a separate process")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user who has no other pipes")
@pytest.mark.no_fast_path(reason="it runs in another process")
def test_seventy_busy_children_leave_others_their_pipes(run_python: Callable[..., Any]) -> None:
    others, held = json.loads(run_python(MANY, options=("-W", "ignore")).stdout)
    assert others == pipes.DEFAULT_CAPACITY
    assert 0 < held <= pipes.MOST * MIB


def test_no_more_is_given_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to two that ask at the same moment, and though the kernel gives the next power of two."""
    held = pipes._held
    monkeypatch.setattr(pipes, "_grown", set())
    monkeypatch.setattr(pipes, "MOST", 1)
    ends = [os.pipe() for _ in range(3)]
    first, second, third = (pipes.Growth(writer, MIB) for _, writer in ends)

    def held_while_another_asks() -> int:
        found = held()
        monkeypatch.setattr(pipes, "_held", held)
        second.ask()
        return found

    monkeypatch.setattr(pipes, "_held", held_while_another_asks)
    pipes.grow(third.fd, MIB // 2)
    pipes._grown.add(third.fd)
    first.ask()
    assert [pipes.capacity(each.fd) for each in (first, second, third)] == [MIB // 2, 64 * 1024, MIB // 2]
    second.ask()
    assert held() == pipes.capacity(second.fd) - 64 * 1024 + MIB - 128 * 1024 <= MIB
    for end in itertools.chain(*ends):
        os.close(end)
