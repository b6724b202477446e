"""``s3_client``: glance_store's s3 driver uses one boto3 client for all operations with one configuration.

Upstream makes a session, a client and a new connection for every ``get``, ``get_size``, ``add`` and ``delete``. This
takes some 60 to 100 ms of CPU time, more than an image of many megabytes. A client is thread-safe. The patch keeps it
for the process, and under eventlet for each native thread. It keeps the client as long as nothing changes that goes
into it: the store's options and attributes, the environment, and the size and the modification time of the files from
which botocore reads settings, credentials and certificates. It keeps no more than the ``CLIENTS`` that were used last,
and none once it is taken back. A connection is not kept from one operation to the next, as with upstream: a firewall
may have forgotten it silently, and then a request would wait for an answer until it times out.

Differences: a client keeps its knowledge, as botocore means it to. It remembers where a bucket was
redirected to. In the retry modes ``standard`` and ``adaptive`` it also remembers how much was retried lately.
"""

import contextlib
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.counters import Reason
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

_MODULE = "glance_store._drivers.s3"

#: Clients that are kept. One takes some 12 MB: botocore's description of S3.
CLIENTS = 8
#: Connections that a client keeps for the operations under way, where botocore keeps 10 for one. More are made if need
#: be.
CONNECTIONS = 64

#: Names that any release of ``_create_s3_client`` reads; not all of it exists in each.
_OPTIONS = (
    "s3_store_host",
    "s3_store_bucket_url_format",
    "s3_store_cacert",
    "s3_store_enable_data_integrity_protection",
    "s3_store_request_checksum_calculation",
    "s3_store_response_checksum_validation",
)
_OF_STORE = ("access_key", "secret_key", "bucket", "region_name", "scheme")
#: Up to 5.5 they are read from the location.
_OF_LOCATION = ("accesskey", "secretkey", "bucket", "scheme")
#: Variables that name files which botocore reads, with its defaults.
_FILES = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "BOTO_CONFIG": "~/.boto",
    "AWS_CA_BUNDLE": "",
    "REQUESTS_CA_BUNDLE": "",
}


def _key(store: Any, location: Any) -> Hashable:
    """All that a client is made from.

    Credentials are among it, so a digest stands for it. The client factory is held unchanged: code that replaces it,
    such as a test, gets separate clients.

    :raises TypeError: if there is something among it whose text does not tell it from others
    """
    import hashlib

    values = [_plain(value) for value in _values(store, location)]
    digest = hashlib.sha256(repr(values).encode(errors="surrogateescape")).digest()
    session = sys.modules[_MODULE].boto_session.Session  # type: ignore[attr-defined]
    return digest, session, session.client


def _values(store: Any, location: Any) -> Iterator[Any]:
    for group in (store.backend_group or "glance_store", "backend_defaults"):
        for name in _OPTIONS:
            yield _option(store.conf, group, name)
    for name in _OF_STORE:
        yield getattr(store, name, None)
    for name in _OF_LOCATION:
        yield getattr(location, name, None)
    yield list(os.environ.items())
    for variable, default in _FILES.items():
        yield _state(os.environ.get(variable, default))
    yield _state(_option(store.conf, store.backend_group or "glance_store", "s3_store_cacert"))
    yield _state(_option(store.conf, "backend_defaults", "s3_store_cacert"))
    yield _thread()
    # The connections of a parent are not those of its child.
    yield os.getpid()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    raise TypeError(f"{type(value)} in the configuration of a client")


def _option(conf: Any, group: str, name: str) -> Any:
    try:
        return conf[group][name]
    except (AttributeError, KeyError):
        # This release does not have it: oslo.config's NoSuchOptError is an AttributeError.
        return None


def _state(path: str | None) -> Any:
    """Return a value that changes when the file does; None if there is none."""
    if not path:
        return None
    try:
        status = os.stat(os.path.expanduser(path))
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _thread() -> int:
    """The native thread where greenlets may be: eventlet's locks are good for those of one thread only. Else 0."""
    return threading.get_native_id() if current.is_green() else 0


def _keep_more_connections(client: Any) -> None:
    # There is no public way after a client was made. Without it urllib3 warns of each connection that it throws away.
    try:
        session = client._endpoint.http_session
        session._manager.connection_pool_kw["maxsize"] = session._max_pool_connections = CONNECTIONS
    except (AttributeError, TypeError):
        pass


def _close_idle(client: Any) -> None:
    """Close the connections that operations before have left; those that are in use stay."""
    try:
        session = client._endpoint.http_session
        managers = [session._manager, *session._proxy_managers.values()]
        queues = [manager.pools[key].pool for manager in managers for key in manager.pools.keys()]  # noqa: SIM118
    except (AttributeError, KeyError, TypeError):
        return
    for queue in queues:
        # Their places stay in the queue: another thread, which would find none meanwhile, would have one connection
        # more than there is room for when it gives it back. eventlet's queue has no lock, and a closed pool no queue.
        with getattr(queue, "mutex", contextlib.nullcontext()):
            places = getattr(queue, "queue", [])
            idle = [connection for connection in places if connection is not None]
            places[:] = [None] * len(places)
        for connection in idle:
            connection.close()


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store._create_s3_client``; the clients go with it when the patch is taken back."""
    #: The last used one at the end. No lock: threads that need the first client at the same time may each make one, of
    #: which one is kept.
    clients: OrderedDict[Hashable, Any] = OrderedDict()

    def _create_s3_client(self: Any, *location: Any) -> Any:
        try:
            key = _key(self, *(location or (None,)))
        except Exception:
            # Not what the driver itself makes of it; upstream's code is to say whether it will do.
            _counts.fell_back(Reason.CONFIGURED)
            return wrapped(self, *location)
        _counts.took()
        client = clients.get(key)
        if client is None:
            made = wrapped(self, *location)
            _keep_more_connections(made)
            client = clients.setdefault(key, made)
        # Another thread may be faster.
        with contextlib.suppress(KeyError):
            clients.move_to_end(key)
            while len(clients) > CLIENTS:
                clients.popitem(last=False)
        _close_idle(client)
        return client

    return _create_s3_client


PATCH = Patch(
    __name__,
    summary="glance_store's s3: one boto3 client per configuration, not one for every call",
    changes="a client remembers redirects and, in some retry modes, how much was retried",
    targets=(
        Target(
            "glance_store._drivers.s3:Store._create_s3_client",
            make,
            # The client factory has to be known: all that it reads is part of a client's key.
            relies_on={"_operation_set": Uses("self, loc", "_create_s3_client")},
        ),
    ),
)
