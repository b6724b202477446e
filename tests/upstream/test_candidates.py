"""The diffs under ``doc/source/candidates`` apply to the releases they name, and change what they say.

Each is applied to a copy of the installed package. What the copy does is observed in a process of its own, beside what
the installed one does. ``tox -e validate-tests`` runs the tests that the diffs bring along, and the project's own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.validate import diffs

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "doc" / "source"
PATCHES = sorted((SOURCE / "candidates").glob("*.patch"))
PACKAGES = {"eventlet": "eventlet", "oslo.concurrency": "oslo_concurrency", "glance_store": "glance_store"}


@dataclass(frozen=True)
class Candidate:
    """What a diff changes: ``script`` prints it as JSON."""

    script: str
    stock: Any
    patched: Any


#: Prints the sizes of the reads and writes of communicate(), at the descriptor.
COMMUNICATE = """
import os
asked = {"read": [], "write": []}
read, write = os.read, os.write
def recording_read(fd, size):
    asked["read"].append(size)
    return read(fd, size)
def recording_write(fd, data):
    asked["write"].append(len(data))
    return write(fd, data)
os.read, os.write = recording_read, recording_write
from eventlet.green import subprocess
data = bytes(range(256)) * 8192
cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
for sizes in asked.values():
    sizes.clear()
assert cat.communicate(data) == (data, b"")
show({name: max(sizes) for name, sizes in asked.items()})
"""

#: Prints which outputs are buffered, and the sizes of the reads at the descriptor.
BUFFERING = """
import os
asked = []
read = os.read
def recording_read(fd, size):
    asked.append(size)
    return read(fd, size)
os.read = recording_read
from eventlet.green import subprocess
cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
asked.clear()
cat.stdin.write(b"text")
assert cat.stdout.read(1) == b"t"
cat.stdin.close()
assert cat.stdout.read() == b"ext"
assert cat.wait() == 0
show({"stdin": type(cat.stdin).__name__, "stdout": type(cat.stdout).__name__, "read": asked[0], "readall": asked[-1]})
"""

#: Prints how many pidfds wait() has opened, and whether it has closed them.
PIDFD = """
import os
opened = []
pidfd_open = os.pidfd_open
def recording_open(*arguments):
    opened.append(pidfd_open(*arguments))
    return opened[-1]
os.pidfd_open = recording_open
import eventlet
from eventlet.green import subprocess
cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
# It runs when wait() lets it, and only then can the child exit.
eventlet.spawn_after(0, cat.stdin.close)
assert cat.wait() == 0
still_open = 0
for fd in opened:
    try:
        os.fstat(fd)
    except OSError:
        continue
    still_open += 1
show({"opened": len(opened), "still open": still_open})
"""

#: Prints the preexec_fn that Popen gets, and how a child ends that sends itself SIGPIPE.
PREEXEC_FN = """
import subprocess
from oslo_concurrency import processutils
popen, given = subprocess.Popen, []
def recording_popen(*arguments, **keywords):
    given.append(keywords["preexec_fn"])
    return popen(*arguments, **keywords)
subprocess.Popen = recording_popen
def preexec_fn():
    pass
processutils.execute("true")
processutils.execute("true", preexec_fn=preexec_fn)
try:
    processutils.execute("kill -s PIPE $$", shell=True)
except processutils.ProcessExecutionError as error:
    code = error.exit_code
show({"without": given[0] and type(given[0]).__name__, "with": type(given[1]).__name__, "exit code": code})
"""

#: Prints the sizes in which the drivers read, by default and as configured.
CHUNK_SIZE = """
import io
from unittest import mock
from oslo_config import cfg
from glance_store import location
from glance_store._drivers import s3
from glance_store._drivers.swift import store as swift
sizes = {}
class Body(io.BytesIO):
    def read(self, size):
        sizes.setdefault(name, size)
        return super().read(size)
for name in ("s3", "s3 configured"):
    conf = cfg.ConfigOpts()
    conf([])
    store = s3.Store(conf)
    for option in ("host", "access_key", "secret_key", "bucket"):
        conf.set_override("s3_store_" + option, option, "glance_store")
    if "configured" in name:
        try:
            conf.set_override("s3_store_chunk_size", 1000, "glance_store")
        except cfg.NoSuchOptError:
            continue
    store.configure()
    client = mock.Mock()
    client.get_object.return_value = {"Body": Body(b"image"), "ContentLength": 5}
    store._create_s3_client = lambda: client
    place = mock.Mock()
    place.store_location.bucket, place.store_location.key = "bucket", "key"
    chunks, size = store.get(place)
    assert b"".join(chunks) == b"image"
manager = mock.Mock()
get_object = manager.get_connection.return_value.get_object
get_object.return_value = ({}, None)
swift.BaseStore._get_object(mock.Mock(CHUNKSIZE=swift.BaseStore.CHUNKSIZE), mock.Mock(), manager)
sizes["swift"] = get_object.call_args.kwargs["resp_chunk_size"]
show(sizes)
"""

#: Prints whether an image's hashes are computed in the thread that asked for them.
HASHING = """
import hashlib, threading
from glance_store.common import utils
data = bytes(range(256)) * 16384
hashers = {name: utils.get_hasher(name, False) for name in ("md5", "sha512")}
for hasher in hashers.values():
    hasher.update(data)
    hasher.update(b"the rest")
for name, hasher in hashers.items():
    assert hasher.hexdigest() == hashlib.new(name, data + b"the rest").hexdigest()
show({"threads": sorted({thread.name.rpartition("_")[0] for thread in threading.enumerate()} - {""})})
"""

CANDIDATES = {
    "eventlet-communicate": Candidate(
        COMMUNICATE, stock={"read": 32768, "write": 512}, patched={"read": 1 << 20, "write": 1 << 20}
    ),
    "eventlet-buffering": Candidate(
        BUFFERING,
        stock={"stdin": "GreenFileIO", "stdout": "GreenFileIO", "read": 1, "readall": 8192},
        patched={"stdin": "GreenFileIO", "stdout": "BufferedReader", "read": 128 << 10, "readall": 128 << 10},
    ),
    "eventlet-pidfd-wait": Candidate(
        PIDFD, stock={"opened": 0, "still open": 0}, patched={"opened": 1, "still open": 0}
    ),
    "oslo.concurrency-preexec-fn": Candidate(
        PREEXEC_FN,
        stock={"without": "partial", "with": "partial", "exit code": -13},
        patched={"without": None, "with": "function", "exit code": -13},
    ),
    "glance_store-chunk-size": Candidate(
        CHUNK_SIZE,
        stock={"s3": 64 << 10, "swift": 64 << 10},
        patched={"s3": 1 << 20, "s3 configured": 1000, "swift": 1 << 20},
    ),
    "glance_store-hashing": Candidate(
        HASHING,
        stock={"threads": []},
        patched={"threads": ["glance_store-hash"]},
    ),
}


def release_of(patch: pathlib.Path) -> tuple[str, str]:
    """Distribution and version that the diff was made for."""
    found = re.search(r"^Release: (\S+) (\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{patch.name} does not name its release"
    return found[1], found[2]


def files_of(patch: pathlib.Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)


def observe(candidate: Candidate, package: str, root: pathlib.Path | None) -> Any:
    """What its script shows in a Python that finds the packages in ``root`` first."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FASTIO"))}
    environ["PYTHONPATH"] = str(root or "")
    prelude = "import json, sys\ndef show(result):\n    print(json.dumps(result))\n"
    where = f"\nimport {package}\nassert {package}.__file__.startswith({str(root or '')!r})\n"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", prelude + candidate.script + where],
        cwd=root, env=environ, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def test_every_diff_is_tested_and_documented() -> None:
    assert {patch.stem for patch in PATCHES} == set(CANDIDATES)
    page = (SOURCE / "candidates.rst").read_text(encoding="utf-8")
    for patch in PATCHES:
        assert f"candidates/{patch.name}" in page
        distribution, version = release_of(patch)
        assert f"{distribution} {version}" in page


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_it_is_a_patch_as_git_makes_them(patch: pathlib.Path) -> None:
    text = patch.read_text(encoding="utf-8")
    head, _, rest = text.partition("\n---\n")
    assert re.match(r"From 0{40} .*\nFrom: .+\nDate: .+\nSubject: \[PATCH\] ", head)
    message = head.partition("\n\n")[2]
    assert message and max(map(len, message.splitlines())) <= 79
    assert "\nCPython 3.15: " in rest.partition("\ndiff --git ")[0]
    files = files_of(patch)
    assert [name for name in files if "test" in name], "it has no tests"
    if release_of(patch)[0] != "eventlet":
        assert [name for name in files if re.fullmatch(r"releasenotes/notes/[\w-]+-[0-9a-f]{16}\.yaml", name)]


@pytest.mark.skipif(shutil.which("git") is None, reason="git, which applies the diffs, is not installed")
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_it_changes_what_it_says(patch: pathlib.Path, tmp_path: pathlib.Path) -> None:
    candidate = CANDIDATES[patch.stem]
    distribution, version = release_of(patch)
    installed = {each.metadata["Name"]: each for each in importlib.metadata.distributions()}.get(distribution)
    if installed is None or installed.version != version:
        pytest.skip(f"{distribution} {version}, for which the diff is, is not installed")
    if candidate.script is PIDFD:
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError) as error:
            pytest.skip(f"there are no pidfds: {error}")
    package = PACKAGES[distribution]
    # With the compiled files, which stay valid for all that is not patched.
    shutil.copytree(str(installed.locate_file(package)), tmp_path / package)
    diffs.apply(patch, tmp_path, [package], f"{distribution} {version}")
    assert observe(candidate, package, None) == candidate.stock
    assert observe(candidate, package, tmp_path) == candidate.patched
