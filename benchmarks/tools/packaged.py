"""Starts the glance-api that a distribution packages, as its unit does, and moves images. Run inside of it, as root.

    python -m benchmarks.tools.packaged [--soak SECONDS] [--stock] [--json FILE]

The unit's drop-ins count, so fastio is in glance-api if the drop-in of the documentation is in place; with ``--stock``
they do not. The configuration is that of :mod:`benchmarks.backends.glance`: sqlite, files, no keystone. It goes to
``/etc/glance``. The server listens where the package has it listen, so it needs a network namespace of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from benchmarks.backends.base import BackendError
from benchmarks.backends.glance import SITE, Configuration
from benchmarks.backends.glance_api import Api, sha512
from benchmarks.backends.glance_service import Service, merged
from benchmarks.tools import soak
from fastio import terminal
from fastio.arguments import Parser

UNIT = "glance-api.service"
PYTHON = "/usr/bin/python3"
ETC = Path("/etc/glance")
LOG = Path("/var/log/glance/glance-api.log")
PORT = 9292
#: What systemd gives every service.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


class Packaged(Service):
    """The packaged glance-api, started by what ``options`` of its unit say."""

    name = "glance-packaged"
    own_programs = ("glance-api", "glance-manage")

    def __init__(self, options: dict[str, list[str]], fastio: str, workers: int) -> None:
        super().__init__("/var/lib", python=PYTHON, fastio=fastio, workers=workers)
        self._options = options
        (command,) = options["ExecStart"]
        self._user = options["User"][-1]
        self._command = shlex.split(command)
        self.eventlet = "uwsgi" not in self.run_script("show-args")
        # Before, eventlet's server took every connection for an idle one when it ended, and shut it down.
        self.reload_spares_requests = Version(installed("eventlet")) >= Version("0.36")

    def run_script(self, word: str) -> str:
        """What the package's init script prints, which the unit runs."""
        script = next(each for each in self._command if each.startswith("/etc/init.d/"))
        return subprocess.run([script, word], stdout=subprocess.PIPE, text=True, check=True).stdout

    @property
    def etc(self) -> Path:
        return ETC

    def paste(self) -> Path:
        return ETC / "glance-api-paste.ini"

    def port(self) -> int:
        return PORT

    def configuration(self) -> Configuration:
        # Its own directory is there already.
        return merged(super().configuration(), {"DEFAULT": {"bind_host": "0.0.0.0"}})

    def configure(self, configuration: Configuration) -> None:
        super().configure(configuration)
        (ETC / "glance-api.conf").chmod(0o644)

    def start_again(self) -> None:
        for directory in ("/run/glance", "/run/lock/glance", str(LOG.parent)):
            os.makedirs(directory, exist_ok=True)
            shutil.chown(directory, self._user, self._user)
        log = self.logs / "glance-api.log"
        log.touch()
        # One log has all, whichever way the package writes it.
        LOG.unlink(missing_ok=True)
        LOG.symlink_to(log)
        self.directory.chmod(0o755)
        for path in (self.directory, *self.directory.rglob("*")):
            shutil.chown(path, self._user, self._user)
        super().start_again()

    def command(self) -> list[str]:
        return ["setpriv", f"--reuid={self._user}", f"--regid={self._user}", "--init-groups", "--", *self._command]

    def variables(self) -> dict[str, str]:
        given = dict(each.split("=", 1) for text in self._options.get("Environment", ()) for each in shlex.split(text))
        return {"PATH": PATH, "HOME": "/var/lib/glance", "PYTHONPATH": str(SITE), **given}


def installed(distribution: str) -> str:
    """The version that the system's Python has."""
    code = f"import importlib.metadata; print(importlib.metadata.version({distribution!r}))"
    return subprocess.run([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def unit_options(texts: Iterable[str]) -> dict[str, list[str]]:
    """The options in ``[Service]`` of a unit and its drop-ins: later ones are added, an empty one takes away all."""
    found: dict[str, list[str]] = {}
    for text in texts:
        section = ""
        for line in map(str.strip, text.splitlines()):
            if line.startswith("["):
                section = line
            name, is_option, value = line.partition("=")
            if section != "[Service]" or not is_option or line.startswith(("#", ";")):
                continue
            found[name] = [*found.get(name, ()), value] if value else []
    return found


def read_unit(drop_ins: bool) -> dict[str, list[str]]:
    """The options of glance-api's unit here.

    :param drop_ins: those of ``/etc/systemd/system`` count
    """
    found = [Path("/lib/systemd/system") / UNIT]
    if drop_ins:
        found += sorted((Path("/etc/systemd/system") / f"{UNIT}.d").glob("*.conf"))
    return unit_options(path.read_text() for path in found)


def loopback_up() -> None:
    """Switch on the loopback interface of this network namespace: netdevice(7)."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = struct.pack("16sH14x", b"lo", 0)
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(sock, get_flags, asked))
        fcntl.ioctl(sock, set_flags, struct.pack("16sH14x", b"lo", flags | up))


def move_data(port: int) -> list[str]:
    """Upload, chunked upload, download, range and delete; returns what was wrong."""
    api = Api(port)
    data = soak.content(1, 32 * soak.MIB + 17)
    wrong = []
    for name, body in (("upload", data), ("chunked upload", (data[:70000], data[70000:900000], data[900000:]))):
        image = api.create()
        answer = api.upload(image, body)
        if (answer.status, api.show(image)["os_hash_value"]) != (204, sha512(data)):
            wrong.append(f"{name}: status {answer.status}")
        if api.download(image).body != data:
            wrong.append(f"download after {name}")
        ranged = api.download(image, Range="bytes=1000-3145727")
        if (ranged.status, ranged.body) != (206, data[1000:3145728]):
            wrong.append(f"range after {name}: status {ranged.status}")
        if api.delete(image) != 204:
            wrong.append("delete")
    return wrong


def summary_of(log: str) -> str:
    """The last of fastio's summaries in a log; empty if there is none."""
    found = [line.partition("fastio: ")[2] for line in log.splitlines() if "fastio: " in line and "applied" in line]
    return found[-1] if found else ""


def run(stock: bool, seconds: float) -> dict[str, Any]:
    """Start it and use it.

    :param seconds: of the soak, 0 for none
    :raises BackendError: if it does not start
    """
    options = read_unit(drop_ins=not stock)
    with Packaged(options, fastio="off" if stock else "on", workers=2) as service:
        found: dict[str, Any] = {
            "server": "eventlet" if service.eventlet else "uWSGI",
            "command": options["ExecStart"][-1],
            "fastio": summary_of(service.log()),
            "wrong": move_data(service.http_port),
        }
        if seconds:
            load = soak.Soak(service, seed=1)
            load.run(seconds)
            found["soak"] = soak.summary(load)
            found["wrong"] += load.tally.faults
        return found


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.packaged", description=__doc__.splitlines()[0])
    least = f"of mixed load, at least {soak.LEAST} (none)"
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS", help=least)
    parser.add_argument("--stock", action="store_true", help="without the unit's drop-ins, so without fastio")
    parser.add_argument("--json", type=Path, help="where the result is written")
    arguments = parser.parse_args(argv)
    if 0 < arguments.soak < soak.LEAST:
        parser.error(f"--soak {arguments.soak:g}: at least {soak.LEAST}, or there is no time for anything")
    loopback_up()
    try:
        found = run(arguments.stock, arguments.soak)
    except BackendError as error:
        print(error, file=sys.stderr)
        return 1
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    return bool(found["wrong"])


if __name__ == "__main__":
    sys.exit(main())
