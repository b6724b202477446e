"""``urllib3_blocks``: its reads of a body. The received bytes are tested together with ``urllib3_sendfile``."""

import io
from typing import Any

import pytest

pytest.importorskip("requests", reason="requests is not installed: pip install '.[client]'")
pytest.importorskip("urllib3")

import fastio  # noqa: E402
from tests.patches.uploads import BLOCKS, compare, counted, put, recorder  # noqa: E402
from tests.stores.http_server import stock_block  # noqa: E402
from tests.stores.images import MIB, content  # noqa: E402


@pytest.mark.parametrize("size", [MIB, 3 * MIB + 1])
def test_large_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """swiftclient's uploads are read by the MiB."""
    utils = pytest.importorskip("swiftclient.utils")
    asked = []
    upstreams = utils.LengthWrapper.read

    def read(self: Any, size: int) -> bytes:
        asked.append(size)
        return upstreams(self, size)

    monkeypatch.setattr(utils.LengthWrapper, "read", read)

    def send() -> int:
        return put(server.url, utils.LengthWrapper(io.BytesIO(content(size)), size), size)

    with recorder(size) as server:
        _, arrived = compare(server, send, [[], [BLOCKS]])
        assert [body for _, body in arrived] == [content(size)]
        assert set(asked) == {stock_block(), MIB}
        with fastio.patched(BLOCKS, strict=True):
            send()
            assert counted(BLOCKS) == (1, size, {})
