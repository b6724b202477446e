"""Guarantees of glance-api to clients of image data: every byte, ranges, checksums, and nothing left by those who
leave.

It is a real server of this environment, with a filesystem store: this project's own test backend.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import conformance_processes
from conformance_processes import data_of

#: Whether this process has been patched: so is the server then.
PATCHED = "fastio" in sys.modules

# After the environment's packages: only benchmarks is meant.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from benchmarks.backends import backend  # noqa: E402
from benchmarks.backends.glance_api import Api, sha512  # noqa: E402

#: Around the chunks of the driver, of glance and of the servers.
SIZES = (1, 65535, 65536, 65537, (4 << 20) - 1, (8 << 20) + 1)
#: Concurrent transfers.
CLIENTS = 5
#: Seconds for an answer.
PATIENCE = 10
#: Seconds for a server to notice that a client has come or gone: less than a test has, so that it can say what is left.
NOTICE = 5

SERVICE: Any = None
# While tests are collected, and not in a fixture: a test's time is not meant for that. The look at what is imported
# has no use for it.
if "pytest" in sys.modules:
    major = int(importlib.metadata.version("glance").partition(".")[0])
    kind = backend("glance-32" if major < 33 else "glance-33")
    SERVICE = kind(python=sys.executable, fastio="on" if PATCHED else "off").start()
    API = Api(SERVICE.http_port, PATIENCE)


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


class Case(conformance_processes.Case):
    rounds = 10

    def make(self):
        """An image without data; returns its id."""
        image = API.create()
        self.addCleanup(API.delete, image)
        return image

    def upload(self, data):
        """An image with that data, which may come in pieces; returns its id."""
        image = self.make()
        self.assertEqual(API.upload(image, data)[::2], (204, b""))
        return image

    def assertImage(self, image, data):
        shown = API.show(image)
        self.assertEqual((shown["status"], shown["size"]), ("active", len(data)))
        self.assertEqual(shown["os_hash_value"], sha512(data))
        self.assertEqual(shown["checksum"], hashlib.md5(data, usedforsecurity=False).hexdigest())
        self.assertSame((SERVICE.images / image).read_bytes(), data, "the file")
        answer = API.download(image)
        self.assertEqual(answer.status, 200)
        self.assertSame(answer.body, data, f"a download of {len(data)} bytes")
        headers = {name.lower(): value for name, value in answer.headers.items()}
        self.assertEqual((headers["content-length"], headers["content-md5"]), (str(len(data)), shown["checksum"]))

    def assertNothingLeft(self, once):
        for _ in range(3):
            once()
        files, before = set(SERVICE.images.iterdir()), descriptors()
        for _ in range(self.rounds):
            once()
        self.assertTrue(until(lambda: not set(SERVICE.images.iterdir()) - files), "files left")
        few = until(lambda: descriptors() - before < self.rounds // 2)
        self.assertTrue(few, f"{descriptors() - before} descriptors of the server left after {self.rounds} times")


class EveryByte(Case):
    def test_an_uploaded_image_is_downloaded(self):
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
        image = self.upload(data)
        for first, last in ((0, 0), (1000, 70_999), (65536, 131071), (len(data) - 1, len(data) - 1)):
            answer = API.download(image, Range=f"bytes={first}-{last}")
            self.assertEqual(answer.status, 206)
            self.assertEqual(answer.headers["Content-Range"], f"bytes {first}-{last}/{len(data)}")
            self.assertSame(answer.body, data[first : last + 1], f"bytes {first} to {last}")

    def test_many_concurrent_transfers(self):
        several = [data_of((2 << 20) + number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            images = list(pool.map(self.upload, several))
            list(pool.map(self.assertImage, images, several))


class Refusals(Case):
    def test_an_image_without_data(self):
        self.assertEqual(API.download(self.make())[::2], (204, b""))

    def test_data_for_an_image_that_has_some(self):
        image = self.upload(b"first")
        self.assertEqual(API.upload(image, b"second").status, 409)
        self.assertImage(image, b"first")

    def test_a_part_that_is_not_there(self):
        self.assertEqual(API.download(self.upload(b"data"), Range="bytes=4-9").status, 416)


class ThoseWhoLeave(Case):
    def leave_an_upload(self):
        """An upload whose client leaves after half of the data; returns the id of its image."""
        image = self.make()
        with API.started_upload(image, data_of(1_000_000), 2_000_000):
            self.assertTrue(until(lambda: API.show(image)["status"] == "saving"), "it has not begun")
        return image

    def test_an_upload_that_breaks_off_leaves_no_file(self):
        image = self.leave_an_upload()
        self.assertTrue(until(lambda: API.show(image)["status"] == "queued"), API.show(image)["status"])
        self.assertTrue(until(lambda: not (SERVICE.images / image).exists()), "its file is left")

    def test_nothing_is_left_by_uploads_that_break_off(self):
        self.assertNothingLeft(self.leave_an_upload)

    def test_nothing_is_left_by_downloads_that_break_off(self):
        data = data_of(8 << 20)
        image = self.upload(data)

        def once():
            with API.started_download(image) as response:
                self.assertTrue(response.read(65536))

        self.assertNothingLeft(once)
        self.assertImage(image, data)


class NothingIsLeft(Case):
    def test_by_transfers(self):
        data = data_of(200_000)

        def once():
            image = self.upload(data)
            self.assertSame(API.download(image).body, data, "a download")
            API.delete(image)

        self.assertNothingLeft(once)


class OthersAreServed(Case):
    def test_while_clients_wait(self):
        image = self.upload(data_of(8 << 20))
        with contextlib.ExitStack() as stack:
            for _ in range(CLIENTS):
                stack.enter_context(API.started_download(image))
                stack.enter_context(API.started_upload(self.make(), b"", 2_000_000))
            self.assertEqual(API.ask("GET", "/v2/schemas/image").status, 200)
            self.assertImage(self.upload(b"meanwhile"), b"meanwhile")
