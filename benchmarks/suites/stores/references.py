"""The speed of each backend without glance_store: its own client, or the simplest there is, reading images.

A client is a command that writes images to its standard output. The images are those that glance_store has put there:
a URL of glance_store says where.
"""

import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.backends.base import find_program
from benchmarks.operations.services import CURL

#: How to reach a backend (:meth:`benchmarks.backends.base.Backend.access`), the bytes of an image, and URLs.
Command: TypeAlias = Callable[..., list[str]]


def cat(access: Mapping[str, Any], size: int, *urls: str) -> list[str]:
    return ["cat", *(urllib.parse.urlsplit(url).path for url in urls)]


def dd(access: Mapping[str, Any], size: int, url: str) -> list[str]:
    """A volume is larger than its image."""
    volume = Path(access["directory"]) / f"{url.rpartition('/')[2]}.img"
    return ["dd", "bs=1M", "status=none", f"if={volume}", "iflag=count_bytes", f"count={size}"]


def rbd(access: Mapping[str, Any], size: int, url: str) -> list[str]:
    _, pool, image, snapshot = urllib.parse.urlsplit(url).path.rsplit("/", 3)
    return ["rbd", "-c", access["conf"], "--no-progress", "export", f"{pool}/{image}@{snapshot}", "-"]


def http(access: Mapping[str, Any], size: int, *urls: str) -> list[str]:
    return [*CURL, *urls]


def login(access: Mapping[str, Any]) -> tuple[str, str]:
    """The URL of the account, and a token of Swift's."""
    headers = {"X-Auth-User": access["user"], "X-Auth-Key": access["key"]}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(access["auth_v1"], headers=headers), timeout=60) as answer:
        return answer.headers["X-Storage-Url"], answer.headers["X-Auth-Token"]


def swift(access: Mapping[str, Any], size: int, *urls: str) -> list[str]:
    account, token = login(access)
    places = (f"{account}/{access['container']}/{url.rpartition('/')[2]}" for url in urls)
    return [*CURL, "--header", f"X-Auth-Token: {token}", *places]


def s3(access: Mapping[str, Any], size: int, *urls: str) -> list[str]:
    """By a URL that is signed beforehand."""
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3", endpoint_url=access["url"], region_name="us-east-1",
        aws_access_key_id=access["access_key"], aws_secret_access_key=access["secret_key"],
        config=Config(s3={"addressing_style": "path"}, signature_version="s3v4"),
    )  # fmt: skip
    objects = ({"Bucket": access["bucket"], "Key": url.rpartition("/")[2]} for url in urls)
    return [*CURL, *(client.generate_presigned_url("get_object", Params=each) for each in objects)]


def vmware(access: Mapping[str, Any], size: int, *urls: str) -> list[str]:
    found = map(urllib.parse.urlsplit, urls)
    places = (f"{access['url']}{each.path.removeprefix('/folder')}?{each.query}" for each in found)
    return [*CURL, "--cacert", access["certificate"], "--cookie", access["cookie"], *places]


COMMANDS: Mapping[str, Command] = {
    "filesystem": cat, "http": http, "swift": swift, "s3": s3, "ceph": rbd, "cinder": dd, "vmware": vmware,
}  # fmt: skip
#: Program -> how to install it.
PROGRAMS = {
    "rbd": "apt-get install --no-install-recommends ceph-common",
    "curl": "apt-get install --no-install-recommends curl",
}


def why_not(backend: str) -> str:
    """Why there is no reference of this backend here, and what to do; empty if there is one."""
    program = {"ceph": "rbd", "filesystem": "cat", "cinder": "dd"}.get(backend, "curl")
    if find_program(program) is None:
        return f"{program} is not installed; install it with: {PROGRAMS[program]}"
    return ""
