"""What each backend can do without glance_store: its own client, or the simplest there is, reading and writing images.

A client is a command that writes images to its standard output, or one that stores a file. Their images are the ones
that glance_store has put there: a URL of glance_store tells where.
"""

import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.backends.base import find_program, server_environment
from benchmarks.harness.worker import command_digest
from benchmarks.operations.services import CURL

#: Name of the image that a reference writes.
NAME = "reference"


class Client:
    """Commands of one backend, made from its :meth:`~benchmarks.backends.base.Backend.access`; here of a directory.

    ``where`` is an image's own place, of its URL of glance_store; ``place`` is that of the image that ``write`` stores
    from a file, which is also its standard input. ``read`` writes images to the standard output.
    """

    #: what has to be installed, and the command that does it
    program, install = "cat", ""

    def __init__(self, access: Mapping[str, Any], size: int) -> None:
        self.access = access
        #: bytes of an image
        self.size = size

    def where(self, url: str) -> str:
        return urllib.parse.urlsplit(url).path

    def read(self, places: Sequence[str]) -> list[str]:
        return ["cat", *places]

    def place(self) -> str:
        return str(Path(self.access["options"]["filesystem_store_datadir"]) / NAME)

    def write(self, path: Path) -> list[str]:
        return ["cp", str(path), self.place()]

    def delete(self) -> list[str]:
        return ["rm", self.place()]

    def sha256(self, place: str) -> str:
        return command_digest(self.read([place]), env=server_environment())


def run(command: Sequence[str], stdin: int = subprocess.DEVNULL) -> None:
    """Run a command of a client."""
    subprocess.run(command, stdin=stdin, stdout=subprocess.DEVNULL, env=server_environment(), check=True)


class Cinder(Client):
    """A volume is larger than its image."""

    def where(self, url: str) -> str:
        return str(Path(self.access["directory"]) / f"{url.rpartition('/')[2]}.img")

    def read(self, places: Sequence[str]) -> list[str]:
        (place,) = places
        return [*self._dd(), f"if={place}", "iflag=count_bytes", f"count={self.size}"]

    def place(self) -> str:
        return str(Path(self.access["directory"]) / f"{NAME}.img")

    def write(self, path: Path) -> list[str]:
        return [*self._dd(), f"if={path}", f"of={self.place()}"]

    def _dd(self) -> list[str]:
        return ["dd", "bs=1M", "status=none"]


class Curl(Client):
    """Everything that speaks HTTP."""

    program, install = "curl", "apt-get install --no-install-recommends curl"
    #: more arguments, such as the headers of every request
    arguments: Sequence[str] = ()

    def where(self, url: str) -> str:
        return url

    def read(self, places: Sequence[str]) -> list[str]:
        # One process and one connection for all of them.
        return [*CURL, *self.arguments, *places]

    def write(self, path: Path) -> list[str]:
        # No "Expect: 100-continue", for whose answer curl would wait.
        return [*CURL, *self.arguments, "--header", "Expect:", "--upload-file", str(path), self.place()]

    def delete(self) -> list[str]:
        return [*CURL, *self.arguments, "--request", "DELETE", self.place()]


def login(access: Mapping[str, Any]) -> tuple[str, str]:
    """The URL of the account, and a token of Swift's."""
    headers = {"X-Auth-User": access["user"], "X-Auth-Key": access["key"]}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(access["auth_v1"], headers=headers), timeout=60) as answer:
        return answer.headers["X-Storage-Url"], answer.headers["X-Auth-Token"]


class Swift(Curl):
    def __init__(self, access: Mapping[str, Any], size: int) -> None:
        super().__init__(access, size)
        account, token = login(access)
        self._url = f"{account}/{access['container']}"
        self.arguments = ("--header", f"X-Auth-Token: {token}")
        # Made by the first add() only.
        subprocess.run([*CURL, *self.arguments, "--request", "PUT", self._url], check=True, stdout=subprocess.DEVNULL)

    def where(self, url: str) -> str:
        return f"{self._url}/{url.rpartition('/')[2]}"

    def place(self) -> str:
        return f"{self._url}/{NAME}"


class S3(Curl):
    """URLs that are signed beforehand, one for each method."""

    def __init__(self, access: Mapping[str, Any], size: int) -> None:
        super().__init__(access, size)
        import boto3
        from botocore.config import Config

        self._client = boto3.client(
            "s3", endpoint_url=access["url"], region_name="us-east-1",
            aws_access_key_id=access["access_key"], aws_secret_access_key=access["secret_key"],
            config=Config(s3={"addressing_style": "path"}, signature_version="s3v4"),
        )  # fmt: skip
        self._bucket = access["bucket"]
        if self._bucket not in [bucket["Name"] for bucket in self._client.list_buckets()["Buckets"]]:
            self._client.create_bucket(Bucket=self._bucket)

    def where(self, url: str) -> str:
        return self._signed("get_object", url.rpartition("/")[2])

    def place(self) -> str:
        return self._signed("get_object", NAME)

    def write(self, path: Path) -> list[str]:
        return [*super().write(path)[:-1], self._signed("put_object", NAME)]

    def delete(self) -> list[str]:
        return [*super().delete()[:-1], self._signed("delete_object", NAME)]

    def _signed(self, operation: str, key: str) -> str:
        return self._client.generate_presigned_url(operation, Params={"Bucket": self._bucket, "Key": key})


class Vmware(Curl):
    def __init__(self, access: Mapping[str, Any], size: int) -> None:
        super().__init__(access, size)
        self.arguments = ("--cacert", access["certificate"], "--cookie", access["cookie"])

    def where(self, url: str) -> str:
        found = urllib.parse.urlsplit(url)
        return f"{self.access['url']}{found.path.removeprefix('/folder')}?{found.query}"

    def place(self) -> str:
        return f"{self.access['url']}/{NAME}?dcPath=datacenter&dsName=datastore"


class Ceph(Client):
    program, install = "rbd", "apt-get install --no-install-recommends ceph-common"

    def where(self, url: str) -> str:
        _, pool, image, snapshot = urllib.parse.urlsplit(url).path.rsplit("/", 3)
        return f"{pool}/{image}@{snapshot}"

    def read(self, places: Sequence[str]) -> list[str]:
        (place,) = places
        return self._rbd("export", place, "-")

    def place(self) -> str:
        return f"{self.access['pool']}/{NAME}"

    def write(self, path: Path) -> list[str]:
        return self._rbd("import", "-", self.place())

    def delete(self) -> list[str]:
        return self._rbd("rm", self.place())

    def _rbd(self, *arguments: str) -> list[str]:
        return ["rbd", "-c", self.access["conf"], "--no-progress", *arguments]


CLIENTS: dict[str, type[Client]] = {
    "filesystem": Client,
    "http": Curl,
    "swift": Swift,
    "s3": S3,
    "ceph": Ceph,
    "cinder": Cinder,
    "vmware": Vmware,
}


def why_not(backend: str) -> str:
    """Why there is no reference of this backend here, and what to do; empty if there is one."""
    client = CLIENTS[backend]
    if find_program(client.program) is None:
        return f"{client.program} is not installed; install it with: {client.install}"
    return ""
