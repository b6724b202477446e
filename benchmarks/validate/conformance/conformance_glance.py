"""What clients of image data rely on in glance-api: every byte, ranges, checksums, and nothing left by those who leave.

It is a real server of this environment, with a filesystem store: this project's own test backend.
"""

import atexit
import contextlib
import hashlib
import http.client
import importlib.metadata
import json
import os
import socket
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from conformance_processes import data_of, describe

#: Whether this process has been patched: so is the server then.
PATCHED = "fastio" in sys.modules

# After the environment's packages: only benchmarks is meant.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from benchmarks.backends import backend  # noqa: E402
from benchmarks.backends.base import HOST  # noqa: E402

#: Around the chunks of the driver, of glance and of the servers.
SIZES = (1, 65535, 65536, 65537, (4 << 20) - 1, (8 << 20) + 1)
#: How often what might leave something is done.
ROUNDS = 10
#: Transfers at a time.
CLIENTS = 5
#: Seconds for an answer.
PATIENCE = 10
#: Seconds for a server to notice that a client has come or gone: less than a test has, so that it can say what is left.
NOTICE = 5

SERVICE: Any = None


def load_tests(loader, tests, pattern):
    """Start the server: here and not in a fixture, because a test's time is not meant for that."""
    global SERVICE
    major = int(importlib.metadata.version("glance").partition(".")[0])
    kind = backend("glance-32" if major < 33 else "glance-33")
    SERVICE = kind(python=sys.executable, fastio="on" if PATCHED else "off").start()
    atexit.register(SERVICE.stop)
    return tests


def request(method, path, body=None, kind="application/json", **headers):
    """One request, of a body that may come in pieces; returns the answer, read, and its body."""
    connection = http.client.HTTPConnection(HOST, SERVICE.http_port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Content-Type": kind, **headers})
        answer = connection.getresponse()
        return answer, answer.read()


def half_a_request(text, data=b""):
    """A connection on which only so much of a request has been sent."""
    connection = socket.create_connection((HOST, SERVICE.http_port), PATIENCE)
    connection.sendall(f"{text}\r\nHost: {HOST}\r\n".encode() + data)
    return connection


def descriptors():
    """How many the server's processes have."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in SERVICE.pids())


def until(holds):
    """Whether it holds within the time that a server may take to notice something."""
    end = time.monotonic() + NOTICE
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Case(unittest.TestCase):
    def make(self):
        """An image without data; returns its path."""
        body = json.dumps({"name": "image", "disk_format": "raw", "container_format": "bare"}).encode()
        answer, said = request("POST", "/v2/images", body)
        self.assertEqual(answer.status, 201, said)
        path = "/v2/images/" + json.loads(said)["id"]
        self.addCleanup(request, "DELETE", path)
        return path

    def upload(self, data):
        """An image with that data, which may come in pieces; returns its path."""
        path = self.make()
        answer, said = request("PUT", path + "/file", data, "application/octet-stream")
        self.assertEqual(answer.status, 204, said)
        return path

    def show(self, path):
        return json.loads(request("GET", path)[1])

    def stored(self, path):
        return SERVICE.images / path.rpartition("/")[2]

    def assertSame(self, found, wanted, what):
        if found != wanted:
            self.fail(f"{what}: {describe(found)} instead of {describe(wanted)}")

    def assertImage(self, path, data):
        image = self.show(path)
        self.assertEqual((image["status"], image["size"]), ("active", len(data)))
        self.assertEqual(image["os_hash_value"], hashlib.sha512(data).hexdigest())
        self.assertEqual(image["checksum"], hashlib.md5(data, usedforsecurity=False).hexdigest())
        self.assertSame(self.stored(path).read_bytes(), data, "the file")
        answer, found = request("GET", path + "/file")
        self.assertEqual(answer.status, 200)
        self.assertSame(found, data, f"a download of {len(data)} bytes")
        self.assertEqual(answer.headers["Content-Length"], str(len(data)))
        self.assertEqual(answer.headers["Content-MD5"], image["checksum"])

    def assertNothingLeft(self, once):
        for _ in range(3):
            once()
        files, before = set(SERVICE.images.iterdir()), descriptors()
        for _ in range(ROUNDS):
            once()
        self.assertTrue(until(lambda: not set(SERVICE.images.iterdir()) - files), "files left")
        few = until(lambda: descriptors() - before < ROUNDS // 2)
        self.assertTrue(few, f"{descriptors() - before} descriptors of the server left after {ROUNDS} times")


class EveryByte(Case):
    def test_what_is_uploaded_is_downloaded(self):
        for size in SIZES:
            data = data_of(size)
            self.assertImage(self.upload(data), data)

    def test_an_upload_without_a_length(self):
        data = data_of((1 << 20) + 1)
        # One of 1 MiB uWSGI refuses.
        for piece in (1447, 65536, 100_000):
            pieces = (data[start : start + piece] for start in range(0, len(data), piece))
            self.assertImage(self.upload(pieces), data)

    def test_a_part_of_an_image(self):
        data = data_of((1 << 20) + 1)
        path = self.upload(data)
        for first, last in ((0, 0), (1000, 70_999), (65536, 131071), (len(data) - 1, len(data) - 1)):
            answer, found = request("GET", path + "/file", Range=f"bytes={first}-{last}")
            self.assertEqual(answer.status, 206)
            self.assertEqual(answer.headers["Content-Range"], f"bytes {first}-{last}/{len(data)}")
            self.assertSame(found, data[first : last + 1], f"bytes {first} to {last}")

    def test_many_at_a_time(self):
        several = [data_of((2 << 20) + number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            paths = list(pool.map(self.upload, several))
            list(pool.map(self.assertImage, paths, several))


class Refusals(Case):
    def test_an_image_without_data(self):
        answer, found = request("GET", self.make() + "/file")
        self.assertEqual((answer.status, found), (204, b""))

    def test_data_for_an_image_that_has_some(self):
        path = self.upload(b"first")
        self.assertEqual(request("PUT", path + "/file", b"second", "application/octet-stream")[0].status, 409)
        self.assertImage(path, b"first")

    def test_a_part_that_is_not_there(self):
        path = self.upload(b"data")
        self.assertEqual(request("GET", path + "/file", Range="bytes=4-9")[0].status, 416)


class ThoseWhoLeave(Case):
    def leave_an_upload(self):
        """An upload whose client leaves after half of the data; returns the path of its image."""
        path = self.make()
        data = b"Content-Type: application/octet-stream\r\nContent-Length: 2000000\r\n\r\n" + data_of(1_000_000)
        with half_a_request(f"PUT {path}/file HTTP/1.1", data):
            self.assertTrue(until(lambda: self.show(path)["status"] == "saving"), "it has not begun")
        return path

    def test_an_upload_that_breaks_off_leaves_no_file(self):
        path = self.leave_an_upload()
        self.assertTrue(until(lambda: self.show(path)["status"] == "queued"), self.show(path)["status"])
        self.assertTrue(until(lambda: not self.stored(path).exists()), "its file is left")

    def test_nothing_is_left_by_uploads_that_break_off(self):
        self.assertNothingLeft(self.leave_an_upload)

    def test_nothing_is_left_by_downloads_that_break_off(self):
        data = data_of(8 << 20)
        path = self.upload(data)

        def once():
            with half_a_request(f"GET {path}/file HTTP/1.1", b"\r\n") as connection:
                self.assertTrue(connection.recv(65536))

        self.assertNothingLeft(once)
        self.assertImage(path, data)


class NothingIsLeft(Case):
    def test_by_transfers(self):
        data = data_of(200_000)

        def once():
            path = self.upload(data)
            self.assertSame(request("GET", path + "/file")[1], data, "a download")
            request("DELETE", path)

        self.assertNothingLeft(once)


class OthersAreServed(Case):
    def test_while_clients_wait(self):
        path = self.upload(data_of(8 << 20))
        uploads = [self.make() for _ in range(CLIENTS)]
        with contextlib.ExitStack() as stack:
            for upload in uploads:
                head = b"Content-Type: application/octet-stream\r\nContent-Length: 2000000\r\n\r\n"
                stack.enter_context(half_a_request(f"GET {path}/file HTTP/1.1", b"\r\n"))
                stack.enter_context(half_a_request(f"PUT {upload}/file HTTP/1.1", head))
            self.assertEqual(request("GET", "/v2/schemas/image")[0].status, 200)
            self.assertImage(self.upload(b"meanwhile"), b"meanwhile")
