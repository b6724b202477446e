"""That other greenlets run while one waits for a child process, or moves its data; and every byte of a socket."""

import socket
import subprocess
import tempfile
import unittest
from typing import Any

import eventlet
from conformance_processes import Case, data_of

PIPE = subprocess.PIPE


def position(pid):
    """How much of its file a ``cat`` has read; everything once it has ended."""
    try:
        with open(f"/proc/{pid}/fdinfo/3") as file:
            return int(file.readline().split()[1])
    except (OSError, IndexError):
        return 1 << 62


class OthersRun(unittest.TestCase):
    #: Turns that others get at least. A call that starves them gives them one or two: before it starts and after its
    #: end.
    TURNS = 8

    def turns_during(self, call):
        """How many turns a greenlet that always wants to run gets while another one makes a call."""
        turns = 0

        def run():
            nonlocal turns
            while True:
                eventlet.sleep(pause)
                turns += 1

        pause = 0.01
        other = eventlet.spawn(run)
        eventlet.sleep(0)
        before = turns
        try:
            call()
            return turns - before
        finally:
            other.kill()

    def assertOthersRun(self, command, call, **options):
        def wait():
            with subprocess.Popen(command, **options) as child:
                call(child)

        self.assertGreaterEqual(self.turns_during(wait), self.TURNS)

    def test_while_a_child_says_nothing(self):
        self.assertOthersRun(["sleep", "0.5"], lambda child: child.communicate(), stdout=PIPE, stderr=PIPE)

    def test_while_a_child_says_nothing_and_there_is_a_timeout(self):
        self.assertOthersRun(["sleep", "0.5"], lambda child: child.communicate(timeout=60), stdout=PIPE, stderr=PIPE)

    def test_while_a_child_does_not_end(self):
        self.assertOthersRun(["sleep", "0.5"], lambda child: child.wait())

    def test_while_a_pipe_is_read(self):
        def read(child):
            self.assertEqual(child.stdout.read(), b"x\n")

        self.assertOthersRun(["sh", "-c", "sleep 0.5; echo x"], read, stdout=PIPE)

    def test_while_a_reader_does_not_read(self):
        command = ["sh", "-c", "sleep 0.5; cat >/dev/null"]
        self.assertOthersRun(command, lambda child: child.communicate(b"x" * (1 << 20)), stdin=PIPE)

    def test_while_much_data_comes(self):
        """A read of 64 MiB in one go hides the child between its start and its end."""
        # Its reads before its first write; its libraries, which it opens before, are read in smaller pieces.
        first, size = 64 << 10, 64 << 20
        children: list[Any] = []
        seen: set[Any] = set()

        def run():
            while True:
                eventlet.sleep(0)
                read = position(children[0].pid) if children else 0
                if first <= read < size:
                    seen.add(read)

        with tempfile.NamedTemporaryFile() as file:
            file.truncate(size)
            other = eventlet.spawn(run)
            with subprocess.Popen(["cat", file.name], stdin=PIPE, stdout=PIPE, stderr=PIPE) as child:
                children.append(child)
                found = len(child.communicate()[0])
                children.clear()
            other.kill()
        self.assertEqual(found, size)
        # Not turns: on a busy machine every greenlet has many of them at one position.
        self.assertGreaterEqual(len(seen), self.TURNS, "positions of the child at which others had a turn")


class Sockets(Case):
    def test_every_byte_of_sendall(self):
        data = data_of((8 << 20) + 1)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = eventlet.spawn(lambda: b"".join(iter(lambda: theirs.recv(65536), b"")))
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)
            self.assertSame(reader.wait(), data, "sendall()")
