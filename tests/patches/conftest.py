"""Shared by the tests of the patches."""

import gc
import importlib
import pathlib
import ssl
import subprocess
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.child import Gate
from tests.conftest import MONKEY_PATCHED, hide_hub
from tests.outcome import until
from tests.patches.image_api import Image, image_api
from tests.stores.http_server import Server


@pytest.fixture(params=["native", "green"])
def sp(request: pytest.FixtureRequest) -> ModuleType:
    """The ``subprocess`` whose children a test starts: the standard library's, and eventlet's green one.

    In a monkey-patched process the first of them is the second.
    """
    if request.param == "native":
        if MONKEY_PATCHED:
            pytest.skip("subprocess is the green one here")
        hide_hub()
        return importlib.import_module("subprocess")
    pytest.importorskip("eventlet")
    return importlib.import_module("subprocess" if MONKEY_PATCHED else "eventlet.green.subprocess")


@pytest.fixture
def is_green(sp: ModuleType) -> bool:
    """Whether ``sp`` is eventlet's."""
    return MONKEY_PATCHED or sp.__name__ != "subprocess"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """The gate of one child."""
    with Gate() as gate:
        yield gate


@pytest.fixture
def native_subprocess() -> ModuleType:
    """Stock ``subprocess`` of native threads, never patched: how a child's output is meant to look."""
    if not MONKEY_PATCHED:
        return importlib.import_module("subprocess")
    return importlib.import_module("eventlet.patcher").original("subprocess")


def timers(hub: Any) -> int:
    """How many timers of the hub are still to come."""
    hub.prepare_timers()
    return sum(not timer.called for _, timer in hub.timers)


@pytest.fixture
def hub() -> Any:
    """eventlet's hub of this thread, which must have no listeners left at the end."""
    hubs = pytest.importorskip("eventlet.hubs")
    hub = hubs.get_hub()

    def left() -> list[Any]:
        return [listener for event in (hub.READ, hub.WRITE) for listener in hub.listeners[event].values()]

    def settle() -> None:
        # A connection whose other end is garbage ends with that, and when the kernel gets to it.
        gc.collect()
        importlib.import_module("eventlet").sleep(0.05)

    until(lambda: not left(), settle)
    yield hub
    until(lambda: not left(), settle)
    assert not left(), f"listeners left in the hub: {left()}"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Key and certificate of localhost and 127.0.0.1 in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    try:
        result = subprocess.run(
            [*command, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", "-", "-out", "-"],
            check=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("openssl is not installed (Debian: apt-get install openssl)")
    path.write_bytes(result.stdout)
    return path


@pytest.fixture
def own_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """requests prefers these variables to a client's arguments."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["http", "https"])
def context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext | None:
    if request.param == "http":
        return None
    certificate = request.getfixturevalue("certificate")
    # A client reads the system's hundred certificates for each connection, which takes longer than most downloads here.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("SSL_CERT_DIR", str(certificate.parent))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def images() -> dict[str, Image]:
    """The images that ``server`` has; a test adds its own."""
    return {}


@pytest.fixture
def server(images: dict[str, Image], context: ssl.SSLContext | None) -> Iterator[Server]:
    with image_api(images, context) as server:
        yield server
