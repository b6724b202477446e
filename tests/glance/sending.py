"""A real glance-api that reports how it sent its data; see :mod:`tests.glance.counting`."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends.base import ROOT
from benchmarks.backends.glance import KINDS, SITE, Configuration, Service
from benchmarks.backends.glance_api import Api
from tests.eventually import until
from tests.glance import counting
from tests.glance.usable import usable

#: of :mod:`tests.glance.counting`, without a read
WAYS = ("sendfile", "mapped")
NOTIFICATIONS = {"oslo_messaging_notifications": {"driver": "log"}}


class Sending:
    """A service, its API and what it has sent without reading it.

    :param source: the address of who asks for images, instead of the service's own
    """

    def __init__(self, service: Service, source: str = "") -> None:
        self.service = service
        self.api = Api(service.http_port, source=source)

    def counts(self, *faults: str) -> dict[str, int]:
        return json.loads(self.api.ask("GET", f"{counting.PATH}?{','.join(faults)}").body)

    def sent_by(self, act: Callable[[], Any], *faults: str) -> tuple[Any, dict[str, int]]:
        """Return ``act()``, and how many bytes each way has sent meanwhile, if any."""
        before = self.counts(*faults)
        result = act()
        after = self.counts()
        return result, {way: after[way] - before[way] for way in WAYS if after[way] != before[way]}

    def expect_notifications(self, expected: list[tuple[str, int]]) -> None:
        """Wait for these: they are sent when the client has all it will get."""
        until(lambda: len(self.notifications()) >= len(expected), f"{expected}")
        assert self.notifications() == expected

    def notifications(self) -> list[tuple[str, int]]:
        """Level and number of bytes of each ``image.send``."""
        found = re.findall(r"(INFO|ERROR) oslo.messaging.notification.image.send (\{.*\})", self.service.log())
        return [(level, int(re.findall(r"bytes_sent\W+(\d+)", payload)[0])) for level, payload in found]


def ini(packaged: Path, directory: Path, filter: str = "counting") -> Path:
    """The packaged paste file with a filter: the module of this package that has this name."""
    text = packaged.read_text()
    for flavor in ("default", "caching"):
        text = text.replace(f"\n{flavor} = cors", f"\n{flavor} = {filter} cors")
    text += f"\n[filter:{filter}]\npaste.filter_factory = tests.glance.{filter}:factory\n"
    path = directory / "glance-api-paste.ini"
    path.write_text(text)
    return path


def start_sending(
    serve: Callable[..., Service],
    directory: Path,
    release: str,
    kind: str,
    flavor: str = "",
    source: str = "",
    config: Configuration | None = None,
    **options: Any,
) -> Sending:
    """Start a release, ``"stock"`` or ``"patched"``, with ``flavor`` of its paste file, which goes to ``directory``.

    :param source: the address of who asks for images, instead of the service's own
    :param config: more of glance's options
    :param options: of the service
    """
    own: Configuration = {**NOTIFICATIONS, "paste_deploy": {"config_file": ini(usable(release)().paste(), directory)}}
    config = {**own, **{group: {**own.get(group, {}), **more} for group, more in (config or {}).items()}}
    environment = {"PYTHONPATH": f"{ROOT}{os.pathsep}{SITE}"}
    service = serve(release, fastio=KINDS[kind], flavor=flavor, config=config, environment=environment, **options)
    return Sending(service, source)


def start_giving(
    serve: Callable[..., Service],
    directory: Path,
    kind: str = "patched",
    uwsgi: Mapping[str, str] | None = None,
    config: Configuration | None = None,
    post_buffering: int = 0,
    deployment: str = "glance",
    release: str = "",
    **settings: str,
) -> Sending:
    """Start glance 33 with one process and one thread.

    :param uwsgi: options of uWSGI
    :param post_buffering: of the backend
    :param deployment: of the backend
    :param release: of uWSGI, of the backend
    :param settings: variables of the environment
    """

    def command(service: Any) -> list[str]:
        found = service.command()
        file = service.etc / "uwsgi.ini"
        lines = [f"{name} = {value}" for name, value in (uwsgi or {}).items()]
        file.write_text("\n".join([file.read_text(), *lines, *(f"env = {each}={settings[each]}" for each in settings)]))
        return found

    own: dict[str, Any] = {"threads": 1, "post_buffering": post_buffering, "deployment": deployment, "uwsgi": release}
    return start_sending(serve, directory, "glance-33", kind, config=config, command=command, **own)


def open_images(service: Service) -> list[str]:
    """Files of the stores that the service has open."""
    return [name for name, _ in _open_files(service) if re.search(r"/(images|store)/[0-9a-f-]{36}", name)]


def temporary_bytes(service: Service) -> int:
    """Bytes of the temporary files that the service has open, which have no name any more."""
    return sum(size for name, size in _open_files(service) if name.startswith(f"{service.directory}/temporary/"))


def _open_files(service: Service) -> Iterator[tuple[str, int]]:
    """Name and size of each file that a process of the service has open."""
    for pid in service.pids():
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(descriptor), os.stat(descriptor).st_size


def given_away(sending: Sending) -> list[tuple[int, int]]:
    """Of each transfer that has ended: the bytes sent, and those that were to be sent."""
    return [
        (int(one), int(all)) for one, all in re.findall(r"fastio: GET \S+: (\d+) of (\d+) bytes", sending.service.log())
    ]
