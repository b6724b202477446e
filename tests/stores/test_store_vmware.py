"""``store_vmware`` over HTTPS, and servers that fail."""

import io
from typing import Any

import pytest

pytest.importorskip("glance_store")
pytest.importorskip("oslo_vmware")
vmware = pytest.importorskip("glance_store._drivers.vmware_datastore")

import requests  # noqa: E402
import urllib3  # noqa: E402

import fastio  # noqa: E402
from tests.outcome import as_upstream, outcome  # noqa: E402
from tests.stores.http_server import Answer, in_turn, serving  # noqa: E402
from tests.stores.images import MIB, content  # noqa: E402

NAME = "store_vmware"


@pytest.mark.parametrize("patched", [False, True])
def test_certificates_are_checked(vmware_store: Any, patched: bool) -> None:
    driver = vmware_store.driver
    certificate = driver.ca_file
    with fastio.patched(NAME) if patched else fastio.patched([]):
        url = f"https://127.0.0.1:{vmware_store.access['port']}/folder/x"
        with pytest.raises(requests.exceptions.SSLError):
            vmware.new_session().put(url, data=io.BytesIO(content(MIB)))
        assert vmware.new_session(ca_file=certificate).get(url).status_code in (401, 404)
        with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
            assert vmware.new_session(insecure=True).get(url).status_code in (401, 404)


ANSWERS = {
    "refused": Answer("403 Forbidden", body=b"no"),
    "exists": Answer("409 Conflict", body=b"there is one"),
    "fails": Answer("500 Broken", body=b"no"),
    "created": Answer("201 Created"),
    "refused before the end": Answer("401 Unauthorized", body=b"who", early=True),
}


@pytest.mark.parametrize("name", list(ANSWERS))
def test_uploads_end_as_upstreams(vmware_store: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With a server that fails; it speaks no TLS, which is set in the driver here."""

    def add() -> Any:
        data = io.BytesIO(content(2 * MIB))
        with serving(in_turn([ANSWERS[name]])) as server, monkeypatch.context() as patch:
            patch.setattr(vmware.StoreLocation, "https_url", f"{server.url}/folder/x")
            return outcome(lambda: vmware_store.add(data, "same-id", size=2 * MIB))

    as_upstream(add, NAME)
