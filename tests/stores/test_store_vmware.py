"""``store_vmware``: chunks of the configured size, in both directions, over HTTPS."""

import io
from typing import Any

import pytest

pytest.importorskip("glance_store")
pytest.importorskip("oslo_vmware")
vmware = pytest.importorskip("glance_store._drivers.vmware_datastore")

import requests  # noqa: E402
import urllib3  # noqa: E402

import fastio  # noqa: E402
from fastio.io import http_bodies  # noqa: E402
from tests.stores.http_server import Answer, in_turn, serving, stock_block  # noqa: E402
from tests.stores.images import KIB, MIB, content, sizes  # noqa: E402

NAME = "store_vmware"
CHUNK = 100_000
SETTING: dict[str, Any] = {"store_chunk_sizes": f"vmware={CHUNK}"}
STOCK_CHUNK = 64 * KIB


def test_the_blocks_of_an_upload(vmware_store: Any, sent: list[int]) -> None:
    data = content(3 * MIB + 2000)
    with fastio.patched(NAME, **SETTING):
        url = vmware_store.add(data).url
    assert sent == sizes(len(data), CHUNK)
    assert vmware_store.read(url) == data
    sent.clear()
    vmware_store.add(data)
    assert set(sent[:-1]) == {stock_block()}


def test_the_chunks_of_an_upload_of_unknown_size(vmware_store: Any, sent: list[int]) -> None:
    data = content(3 * MIB + 2000)
    with fastio.patched(NAME, **SETTING):
        url = vmware_store.add(io.BytesIO(data)).url
    pieces = sizes(len(data), CHUNK)
    # requests before 2.32 sends the frame by itself.
    assert sent in (pieces, [len(b"%x\r\n\r\n" % each) + each for each in pieces])
    assert vmware_store.read(url) == data
    sent.clear()
    vmware_store.add(io.BytesIO(data))
    assert max(sent) in (STOCK_CHUNK, STOCK_CHUNK + len(b"10000\r\n\r\n"))


@pytest.mark.parametrize("retries", [None, 3])
@pytest.mark.parametrize(("insecure", "ca_file"), [(False, None), (True, None), (False, "ca.pem"), (True, "ca.pem")])
def test_a_session_keeps_what_it_is_given(insecure: bool, ca_file: str | None, retries: int | None) -> None:
    def described() -> Any:
        session = vmware.new_session(insecure, ca_file, retries)
        adapters = {
            prefix: (adapter.max_retries.total, adapter.max_retries.read, adapter.config, adapter._pool_maxsize)
            for prefix, adapter in session.adapters.items()
        }
        return type(session), session.verify, list(session.adapters), adapters

    upstream = described()
    with fastio.patched(NAME):
        assert described() == upstream
        assert {type(each) for each in vmware.new_session().adapters.values()} == {http_bodies.BlockAdapter}
    assert {type(each) for each in vmware.new_session().adapters.values()} == {requests.adapters.HTTPAdapter}


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
    """With a server that fails; it speaks no TLS, which the driver is told here."""

    def outcome() -> Any:
        data = io.BytesIO(content(2 * MIB))
        with serving(in_turn([ANSWERS[name]])) as server, monkeypatch.context() as patch:
            patch.setattr(vmware.StoreLocation, "https_url", f"{server.url}/folder/x")
            try:
                return vmware_store.add(data, "same-id", size=2 * MIB)
            except Exception as error:
                return type(error), str(error)

    upstream = outcome()
    with fastio.patched(NAME):
        assert outcome() == upstream
