"""Guarantees of ``subprocess`` that upstream's suites do not test: every byte, the time-outs, the descriptors.

Runs natively and monkey patched, in any variant. An exception is known by the name of its class: under eventlet stock's
are not those of ``subprocess``.
"""

import errno
import functools
import gc
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any

#: Around what pipes, buffers and reads hold.
SIZES = (0, 1, 511, 4096, 8191, 65535, 65536, 65537, 131072, 1 << 20, (8 << 20) + 1)
#: Bytes of input. Stock's green Popen writes 512 bytes of it at a time.
INPUT_SIZES = SIZES[:-1]
PIPE = subprocess.PIPE
#: Says a line on stdout and on stderr, and the next one a little later.
NOW_AND_THEN = ["sh", "-c", "for line in 1 2 3 4 5; do echo $line; echo $line >&2; sleep 0.05; done"]
LINES = b"1\n2\n3\n4\n5\n"


def data_of(size):
    return random.Random(size).randbytes(size)


def describe(data):
    """Describe bytes in a message."""
    return f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()[:16]}"


def descriptors():
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


def time_out(call, *args, **kwargs):
    """The TimeoutExpired that a call raises; None if it returns."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        if type(error).__name__ != "TimeoutExpired":
            raise
        return error
    return None


class Case(unittest.TestCase):
    #: how often what might leave something is done
    rounds = 20

    def assertSame(self, found, wanted, what):
        if found != wanted:
            self.fail(f"{what}: {describe(found)} instead of {describe(wanted)}")

    def file_of(self, data):
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it is closed after the test
        self.addCleanup(file.close)
        file.write(data)
        file.flush()
        return file.name

    def assertNothingLeft(self, once):
        # The first ones make what stays: a hub, caches.
        for _ in range(3):
            once()
        before, threads = descriptors(), threading.active_count()
        for _ in range(self.rounds):
            once()
        left = descriptors() - before
        self.assertLess(len(left), self.rounds // 2, f"descriptors left after {self.rounds} times")
        self.assertLess(threading.active_count() - threads, self.rounds // 2, "threads left")


class EveryByte(Case):
    def test_output_of_communicate(self):
        for size in SIZES:
            data = data_of(size)
            with subprocess.Popen(["cat", self.file_of(data)], stdout=PIPE) as child:
                self.assertSame(child.communicate()[0], data, f"{size} bytes on stdout")

    def test_both_outputs_of_communicate(self):
        data = data_of((1 << 20) + 1)
        command = ["sh", "-c", 'cat "$0" & cat "$0" >&2; wait', self.file_of(data)]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as child:
            out, err = child.communicate()
        self.assertSame(out, data, "stdout")
        self.assertSame(err, data, "stderr")

    def test_outputs_that_come_now_and_then(self):
        with subprocess.Popen(NOW_AND_THEN, stdout=PIPE, stderr=PIPE) as child:
            self.assertEqual(child.communicate(), (LINES, LINES))

    def test_read_of_what_comes_now_and_then(self):
        with subprocess.Popen(NOW_AND_THEN, stdout=PIPE, stderr=subprocess.DEVNULL) as child:
            self.assertEqual(child.stdout.read(), LINES)

    def test_read_in_pieces_of_what_comes_now_and_then(self):
        with subprocess.Popen(NOW_AND_THEN, stdout=PIPE, stderr=subprocess.DEVNULL) as child:
            self.assertEqual(b"".join(iter(functools.partial(child.stdout.read, 100), b"")), LINES)

    def test_input_comes_back(self):
        for size in INPUT_SIZES:
            data = data_of(size)
            with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as child:
                self.assertSame(child.communicate(data)[0], data, f"{size} bytes there and back")

    def test_input_as_other_buffers(self):
        data = data_of(200_001)
        kinds: tuple[Any, ...] = (bytearray, memoryview)
        for kind in kinds:
            with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as child:
                self.assertSame(child.communicate(kind(data))[0], data, kind.__name__)

    def test_text(self):
        text = "line äöß 漢字 🙂\n" * 30_000
        with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE, encoding="utf-8") as child:
            self.assertEqual(child.communicate(text)[0], text)

    def test_read_of_everything(self):
        for size in SIZES:
            data = data_of(size)
            with subprocess.Popen(["cat", self.file_of(data)], stdout=PIPE) as child:
                self.assertSame(child.stdout.read(), data, f"{size} bytes by read()")

    def test_read_in_pieces(self):
        data = data_of((1 << 20) + 1)
        for piece in (1000, 4096, 65536, 1 << 20):
            with subprocess.Popen(["cat", self.file_of(data)], stdout=PIPE) as child:
                found = b"".join(iter(functools.partial(child.stdout.read, piece), b""))
            self.assertSame(found, data, f"by read({piece})")

    def test_lines(self):
        data = b"".join(b"%d " % number * (number % 50) + b"\n" for number in range(3000)) + b"the end"
        with subprocess.Popen(["cat", self.file_of(data)], stdout=PIPE, bufsize=-1) as child:
            self.assertSame(b"".join(child.stdout), data, "line by line")

    def test_write_in_pieces(self):
        data = data_of(300_001)
        with tempfile.NamedTemporaryFile() as file:
            with subprocess.Popen(["cat"], stdin=PIPE, stdout=file) as child:
                for start in range(0, len(data), 70_000):
                    piece = data[start : start + 70_000]
                    while piece:
                        written = child.stdin.write(piece)
                        piece = piece[written:] if written is not None else b""
            file.seek(0)
            self.assertSame(file.read(), data, "written in pieces")


class TimeOuts(Case):
    def assertTimesOut(self, command, wait):
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE) as child:
            try:
                self.assertIsNotNone(time_out(getattr(child, wait), timeout=0.5), f"{wait}() returned")
            finally:
                child.kill()

    def test_communicate_of_a_child_that_says_nothing(self):
        self.assertTimesOut(["sleep", "60"], "communicate")

    def test_communicate_of_a_child_that_never_stops_writing(self):
        self.assertTimesOut(["sh", "-c", "while :; do echo more; sleep 0.01; done"], "communicate")

    def test_wait(self):
        self.assertTimesOut(["sleep", "60"], "wait")

    def test_output_before_the_time_out_is_not_lost(self):
        with subprocess.Popen(["sh", "-c", "echo before; sleep 2; echo after"], stdout=PIPE, stderr=PIPE) as child:
            self.assertIsNotNone(time_out(child.communicate, timeout=0.5), "communicate() returned")
            self.assertEqual(child.communicate()[0], b"before\nafter\n")

    def test_none_where_there_is_time(self):
        with subprocess.Popen(["sh", "-c", "sleep 0.3; echo done"], stdout=PIPE, stderr=PIPE) as child:
            self.assertEqual(child.communicate(timeout=60), (b"done\n", b""))


class Ends(Case):
    def test_exit_status(self):
        for status in (0, 3, 255):
            with subprocess.Popen(["sh", "-c", f"exit {status}"], stdout=PIPE) as child:
                child.communicate()
                self.assertEqual(child.returncode, status)

    def test_signal(self):
        with subprocess.Popen(["sleep", "60"], stdout=PIPE) as child:
            child.kill()
            child.communicate()
            self.assertEqual(child.returncode, -9)

    def test_input_that_is_not_there_ends(self):
        with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as child:
            self.assertEqual(child.communicate()[0], b"")

    def test_a_program_that_is_not_there(self):
        with self.assertRaises(FileNotFoundError) as caught:
            subprocess.Popen(["/no/such/program"], stdout=PIPE)
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, "/no/such/program"))


class NothingIsLeft(Case):
    def assertNothingLeftBy(self, command, call, **options):
        def once():
            with subprocess.Popen(command, **options) as child:
                call(child)

        self.assertNothingLeft(once)

    def test_by_communicate(self):
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        self.assertNothingLeftBy(["cat"], lambda child: child.communicate(b"x" * 70_000), **pipes)

    def test_by_communicate_with_a_timeout(self):
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        self.assertNothingLeftBy(["cat"], lambda child: child.communicate(b"x", timeout=60), **pipes)

    def test_by_a_time_out(self):
        def call(child):
            time_out(child.communicate, timeout=0.01)
            child.kill()
            child.communicate()

        self.assertNothingLeftBy(["sleep", "60"], call, stdout=PIPE)

    def test_by_reading(self):
        self.assertNothingLeftBy(["echo", "x"], lambda child: child.stdout.read(), stdout=PIPE)

    def test_by_waiting(self):
        self.assertNothingLeftBy(["true"], lambda child: child.wait(timeout=60))

    def test_by_a_program_that_is_not_there(self):
        def once():
            self.assertRaises(FileNotFoundError, subprocess.Popen, ["/no/such/program"], stdin=PIPE, stdout=PIPE)

        self.assertNothingLeft(once)

    def test_no_child(self):
        with subprocess.Popen(["echo", "x"], stdout=PIPE) as child:
            child.communicate()
        self.assertRaises(ChildProcessError, os.waitpid, child.pid, os.WNOHANG)


class Waiting(Case):
    #: Seconds of processor time that the child uses.
    BUSY = 0.6

    def test_costs_no_processor_time(self):
        """A poll that is always ready would spin, and use as much as a child that is busy, however busy others are."""
        command = [sys.executable, "-I", "-S", "-c", f"import time\nwhile time.process_time() < {self.BUSY}: pass"]
        for wait in (lambda child: child.communicate(), lambda child: child.wait(timeout=60)):
            with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as child:
                before = time.process_time()
                wait(child)
                used = time.process_time() - before
                self.assertLess(used, self.BUSY / 2, f"seconds while the child used {self.BUSY}")
