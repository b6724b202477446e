"""VMware's datastore: its HTTPS ``/folder`` for real, its SOAP interface by a fake.

The data path of glance_store's driver is PUT and GET of ``/folder/...``: nginx takes them, over TLS with a certificate
made at its start, and without the session's cookie it answers 401. The driver's SOAP requests (which datastores there
are, whether the session is alive, deleting a file) go to a fake of oslo.vmware's session, as in glance_store's unit
tests; no free server speaks enough of it. A known difference: nginx answers 204 where a PUT overwrites a file, an ESX
host 200.
"""

import contextlib
import os
import urllib.parse
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

from benchmarks.backends import nginx
from benchmarks.backends.base import EXTRA, HOST, Backend, http_status

#: The only ones; so the query that names them decides nothing.
DATACENTER, DATASTORE = "datacenter", "datastore"
COOKIE = "vmware_soap_session=benchmark"

#: bytes that the datastore is said to have; more than any image
ROOM = 1 << 50

#: requests prefers these over the certificate that a session was given.
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


_SERVER = """\
listen {host}:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        client_max_body_size 0;
        if ($http_cookie !~ {cookie}) {{ return 401; }}
        location /folder/ {{
            alias {files}/;
            dav_methods PUT DELETE;
            create_full_put_path on;
        }}
"""


class Vmware(Backend):
    """One nginx over a directory."""

    name = "vmware"
    driver = "vmware"
    modules = ("oslo_vmware",)
    programs = ("nginx", "openssl")
    install = f"{EXTRA}  (or: pip install oslo.vmware); {nginx.INSTALL} openssl"

    def launch(self) -> None:
        files = self.directory / DATASTORE
        files.mkdir()
        self._port = self.port()
        self._certificate, key = self.make_certificate()
        nginx.start(self, _SERVER.format(
            host=HOST, port=self._port, certificate=self._certificate, key=key, cookie=COOKIE, files=files,
        ))  # fmt: skip
        self.wait(lambda: _request(self.details(), "HEAD", "/folder/nothing") == 404, "nginx")

    def options(self) -> dict[str, Any]:
        return {
            # The port is not among them: the option takes none. See after_stores().
            "vmware_server_host": HOST,
            "vmware_server_username": "benchmark",
            "vmware_server_password": "benchmark",
            "vmware_datastores": [f"{DATACENTER}:{DATASTORE}"],
            "vmware_ca_file": str(self._certificate),
        }

    def details(self) -> dict[str, Any]:
        return {
            "url": f"https://{HOST}:{self._port}/folder",
            "port": self._port,
            "certificate": str(self._certificate),
            "cookie": COOKIE,
        }

    @classmethod
    @contextlib.contextmanager
    def in_client(cls, access: Mapping[str, Any]) -> Iterator[None]:
        """oslo.vmware's session is the fake; the certificate is the options' one, whatever the environment says."""
        dropped = {name: os.environ.pop(name) for name in _CA_VARIABLES if name in os.environ}
        try:
            with mock.patch("oslo_vmware.api.VMwareAPISession", lambda *_, **__: Session(access)):
                yield
        finally:
            os.environ.update(dropped)

    @classmethod
    def after_stores(cls, access: Mapping[str, Any], identifier: str) -> None:
        """Name the port, and let multi_backend find the store.

        It looks stores up by the name of their driver, ``vmware``, as if that were their scheme, which is ``vsphere``.
        """
        from glance_store import location

        schemes = location.SCHEME_TO_CLS_BACKEND_MAP
        entry = schemes["vsphere"][identifier]
        entry["store"].server_host = f"{HOST}:{access['port']}"
        schemes.setdefault("vmware", {})[identifier] = entry


class Session:
    """The part of a ``VMwareAPISession`` that the driver and oslo.vmware's datastore objects use."""

    def __init__(self, access: Mapping[str, Any]) -> None:
        self._access = access
        name, _, value = access["cookie"].partition("=")
        client = SimpleNamespace(cookiejar=[SimpleNamespace(name=name, value=value)])
        content = SimpleNamespace(searchIndex="searchIndex", fileManager="fileManager")
        self.vim = SimpleNamespace(client=client, service_content=content)

    def is_current_session_active(self) -> bool:
        return True

    def invoke_api(self, module: Any, method: str, *arguments: Any, **named: Any) -> Any:
        if method == "FindByInventoryPath":
            return f"datacenter {named['inventoryPath']}"
        if method == "get_object_property":
            if arguments[-1] == "datastore":
                return SimpleNamespace(ManagedObjectReference=[DATASTORE])
            return ROOM
        if method == "get_object_properties_dict":
            return {"summary.name": DATASTORE, "summary.capacity": ROOM, "summary.freeSpace": ROOM}
        if method == "DeleteDatastoreFile_Task":
            return named["name"]
        raise NotImplementedError(f"the fake session does not know {method}")

    def wait_for_task(self, task: str) -> None:
        """Delete the file of the task, which is its name as vSphere has it: ``[datastore] path``."""
        from oslo_vmware import exceptions

        datastore, _, path = task.removeprefix("[").partition("] ")
        query = urllib.parse.urlencode({"dcPath": DATACENTER, "dsName": datastore})
        status = _request(self._access, "DELETE", f"/folder/{path.lstrip('/')}?{query}")
        if status == 404:
            raise exceptions.FileNotFoundException(f"{task} does not exist")
        if status >= 400:
            raise exceptions.VMwareDriverException(f"{task}: status {status}")


def _request(access: Mapping[str, Any], method: str, path: str) -> int:
    cookie = {"Cookie": access["cookie"]}
    return http_status(access["port"], path, method, cookie, certificate=access["certificate"])
