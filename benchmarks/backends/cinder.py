"""Cinder: its API and os-brick by fakes, as in glance_store's unit tests; the volumes' data for real.

A volume is a file in the backend's directory, or a loop device over it; its record is a JSON file beside it, so that
what one process adds another one reads. All of glance_store's driver runs: it creates a volume by the (fake) client,
"attaches" it by a (fake) connector of os-brick, and opens and reads or writes the device itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from benchmarks.backends.base import EXTRA, Backend, BackendError, Unavailable, find_program

GIB = 1 << 30


class Cinder(Backend):
    """A directory of volumes."""

    name = "cinder"
    driver = "cinder"
    modules = ("cinderclient", "os_brick")
    install = f"{EXTRA}  (or: pip install python-cinderclient os-brick)"
    #: ``file``: the driver opens the file itself, as with NFS, and empties it whenever it has grown for an image of
    #: unknown size, unless ``fix_cinder_file_volumes`` is in effect; ``loop``: a loop device over it, a true block
    #: device, which needs root
    parameters = {"device": "file"}
    choices = {"device": ("file", "loop")}

    def launch(self) -> None:
        (self.directory / "volumes").mkdir()
        if self.chosen["device"] == "loop":
            # Whether it can, here and now rather than at the first image.
            with open(self.directory / "try", "wb") as file:
                file.truncate(1 << 20)
            detach(attach(self.directory / "try"))

    def stop(self, keep_logs: bool = False) -> None:
        """As the others; loop devices that a client that was killed has left go too."""
        if self._directory is not None and self.chosen["device"] == "loop":
            for line in _losetup("-l", "-n", "-O", "NAME,BACK-FILE").stdout.splitlines():
                device, _, backing = line.strip().partition(" ")
                if backing.strip().startswith(f"{self._directory}/"):
                    detach(device)
        super().stop(keep_logs)

    def options(self) -> dict[str, Any]:
        return {
            # With a separate account the driver asks for no user's catalog; the fake client uses none of it.
            "cinder_store_auth_address": "http://127.0.0.1/v3",
            "cinder_store_user_name": "benchmark",
            "cinder_store_password": "benchmark",
            "cinder_store_project_name": "benchmark",
        }

    def details(self) -> dict[str, Any]:
        # add() wants a request's context, if only to name the owner.
        context = {"user_id": "benchmark", "project_id": "benchmark", "service_catalog": [], "auth_token": "benchmark"}
        return {"directory": str(self.directory / "volumes"), "device": self.chosen["device"], "context": context}

    @classmethod
    @contextlib.contextmanager
    def in_client(cls, access: Mapping[str, Any]) -> Iterator[None]:
        """The driver's client and connectors are the fakes."""
        from oslo_concurrency import lockutils
        from oslo_config import cfg

        directory = Path(access["directory"])
        with contextlib.ExitStack() as stack:
            for owner, name, fake in _fakes(directory, access):
                stack.enter_context(mock.patch.object(owner, name, fake))
            # Detaching takes a lock file of the volume's name; asking for the path registers its option.
            lockutils.get_lock_path(cfg.CONF)
            cfg.CONF.set_override("lock_path", str(directory), group="oslo_concurrency")
            stack.callback(cfg.CONF.clear_override, "lock_path", group="oslo_concurrency")
            yield


def _fakes(directory: Path, access: Mapping[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the replacements: an object, the name of its attribute, and the new value."""
    from glance_store._drivers import cinder

    client = Client(directory)
    yield cinder.Store, "get_cinderclient", lambda *_, **__: client
    driver: Any = sys.modules[cinder.Store.__module__]
    yield driver.connector, "get_connector_properties", lambda *_, **__: {"host": "localhost"}
    if driver is cinder:
        # Up to glance_store 4.2 the driver was one module, and took os-brick's connectors itself.
        factory = staticmethod(lambda *_, conn, **__: Connector(directory, access, conn["volume"]))
        yield cinder.connector.InitiatorConnector, "factory", factory
        size = cinder.Store._get_device_size
        # It waits until the volume has its size; a file that was opened for writing has none.
        yield cinder.Store, "_get_device_size", staticmethod(lambda file: max(size(file), 1 << 20))
    else:
        from glance_store._drivers.cinder import base

        yield base, "factory", lambda *_, volume, **__: Connector(directory, access, volume.id)


class Connector:
    """The part of os-brick that the driver uses, for one volume."""

    def __init__(self, directory: Path, access: Mapping[str, Any], volume: str) -> None:
        self._file = directory / f"{volume}.img"
        self._loop = access["device"] == "loop"

    def connect_volume(self, volume: Any) -> dict[str, str]:
        return {"path": attach(self._file) if self._loop else str(self._file)}

    def disconnect_volume(self, *arguments: Mapping[str, str], force: bool = False) -> None:
        if self._loop:
            # Before it, earlier drivers give what they know of the connection.
            detach(arguments[-1]["path"])

    def yield_path(self, volume: Any, file: Any) -> Any:
        return file

    def extend_volume(self) -> None:
        pass


class Client:
    """The part of cinderclient that the driver uses: ``volumes`` and ``attachments``."""

    def __init__(self, directory: Path) -> None:
        self.volumes = _Volumes(directory)
        self.attachments = SimpleNamespace(
            # An attachment has the name of its volume.
            create=lambda volume, *_, **__: {"id": volume},
            update=lambda volume, *_: SimpleNamespace(
                id=volume, connection_info={"driver_volume_type": "local", "volume": volume}
            ),
            complete=lambda *_: None,
            delete=lambda *_: None,
        )


class _Volumes:
    """Records and files in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, size: int, name: str, metadata: Mapping[str, str], volume_type: str | None = None) -> _Volume:
        """A volume of ``size`` GiB; none of it is allocated."""
        volume = _Volume(self._directory, str(uuid.uuid4()), size, dict(metadata), False)
        volume.resize(size)
        return volume

    def get(self, volume_id: str) -> _Volume:
        from cinderclient import exceptions

        try:
            record = json.loads((self._directory / f"{volume_id}.json").read_text())
        except FileNotFoundError:
            raise exceptions.NotFound(404, f"Volume {volume_id} could not be found.") from None
        return _Volume(self._directory, volume_id, record["size"], record["metadata"], record["readonly"])

    def delete(self, volume: Any) -> None:
        found = volume if isinstance(volume, _Volume) else self.get(volume)
        found.delete()

    def extend(self, volume: Any, size: int) -> None:
        self.get(getattr(volume, "id", volume)).resize(size)


class _Volume:
    """One volume, as the API shows it; ``size`` in GiB."""

    status = "available"
    multiattach = False
    volume_type = None
    encrypted = False

    def __init__(self, directory: Path, id: str, size: int, metadata: dict[str, str], readonly: bool) -> None:
        self._directory = directory
        self.id = id
        self.size = size
        self.metadata = metadata
        self.readonly = readonly

    @property
    def manager(self) -> _Volumes:
        """Where cinderclient's objects come from; glance_store before 5.3 asks it for the volume's new state."""
        return _Volumes(self._directory)

    def resize(self, size: int) -> None:
        self.size = size
        with open(self._directory / f"{self.id}.img", "ab") as file:
            file.truncate(size * GIB)
        self._save()

    def extend(self, volume: Any, size: int) -> None:
        self.resize(size)

    def update_all_metadata(self, metadata: Mapping[str, str]) -> None:
        self.metadata = dict(metadata)
        self._save()

    def update_readonly_flag(self, volume: Any, flag: bool) -> None:
        self.readonly = flag
        self._save()

    def delete(self) -> None:
        for suffix in ("json", "img"):
            (self._directory / f"{self.id}.{suffix}").unlink(missing_ok=True)

    def _save(self) -> None:
        record = {"size": self.size, "metadata": self.metadata, "readonly": self.readonly}
        partial = self._directory / f"{self.id}.partial"
        partial.write_text(json.dumps(record))
        os.replace(partial, self._directory / f"{self.id}.json")


def attach(file: Path) -> str:
    """The path of a new loop device over the file. Raises :class:`Unavailable` if there can be none."""
    done = _losetup("-f", "--show", str(file))
    if done.returncode:
        reason = "it needs root, and a container's permission in one"
        raise Unavailable(f"cinder: no loop device can be had ({reason}): {done.stderr.strip()}")
    return done.stdout.strip()


def detach(device: str) -> None:
    """Give the loop device back. Raises :class:`BackendError` if it does not go."""
    done = _losetup("-d", device)
    if done.returncode:
        raise BackendError(f"{device}: {done.stderr.strip()}")


def _losetup(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = find_program("losetup", "/sbin") or "losetup"
    return subprocess.run([program, *arguments], capture_output=True, text=True)
