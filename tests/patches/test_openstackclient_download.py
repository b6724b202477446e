"""``openstackclient_download``: what ``openstack object save`` leaves, as a call and as a command.

:mod:`tests.patches.test_openstacksdk_download` has what it shares with openstacksdk: pieces, errors, ends.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("openstackclient", reason="python-openstackclient is not installed: pip install fastio[client]")

import fastio
from tests.patches.cloud import OBJECT, Cloud
from tests.patches.image_api import Image, content, image_api

NAME = "openstackclient_download"
DATA = content(3 * (1 << 20) + 1)


def test_a_container_is_saved_under_the_name_of_its_object(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with image_api({"a": Image(DATA)}) as server:
        for names in ([], [NAME]):
            with fastio.patched(names, strict=True):
                before = fastio.metrics().patches[NAME].bytes if names else 0
                Cloud(server).commands.object_save("a", OBJECT)
                assert not names or fastio.metrics().patches[NAME].bytes - before == len(DATA)
            assert (tmp_path / OBJECT).read_bytes() == DATA
            (tmp_path / OBJECT).unlink()


def test_the_command(tmp_path: pathlib.Path) -> None:
    """``fastio run -- openstack object save``: to a file, to stdout."""
    # Beside this Python, or the distribution's.
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = [sys.executable, "-m", "fastio", "run", "--", shutil.which("openstack", path=places) or "openstack"]
    with image_api({"a": Image(DATA)}) as server:
        options = ["--os-auth-type", "none", "--os-endpoint", f"{server.url}/v2/images", "object", "save", "a", OBJECT]
        for file in ("saved", "-"):
            child = subprocess.run([*command, *options, "--file", file], cwd=tmp_path, capture_output=True, timeout=60)
            assert (child.returncode, child.stderr) == (0, b"")
            assert (child.stdout if file == "-" else (tmp_path / file).read_bytes()) == DATA
