"""Advice for a deployment of glance, the largest gain first, for ``fastio check``.

The figures are those of kept results, which :doc:`/measuring/benchmarks` explains; a test compares them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fastio.patches.glance._uwsgi import number

#: Threads of all processes with which the gain was measured.
_THREADS = 28
_SLOW = ("beside 4 slow clients, 99 % of the other requests take 9.7 ms, not 3,578", "slow_clients")
_UPLOADS = (
    f"beside 5 uploads, 99 % of the other requests take 102 ms with {_THREADS} threads in all, not 2,372 as with 4",
    "glance, glance_shipped",
)
_ROUTER = ("a download reaches 2,809 MB/s, not 643 as by the router, one process for all workers", "deployments")
_CHUNKS = ("with 1 MiB a download is 1.64 times as fast as with 64 KiB", "glance_shipped")
#: For uWSGI: the option, what it is without it, the least value that needs no advice, and what happens below it.
_LEAST = (
    ("chunked-input-limit", 1 << 20, 64 << 20, "an upload in larger chunks hangs or fails"),
    ("socket-timeout", 4, 30, "a client that pauses for longer in an upload is cut off"),
)


class Advice(NamedTuple):
    """An option to change."""

    option: str
    #: its value now, and the one to set
    now: str
    value: str
    gain: str
    #: results that have the figures; empty if nothing was measured
    source: str = ""

    def __str__(self) -> str:
        measured = f" (measured: {self.source})" if self.source else ""
        return f"{self.option}: {self.now} -> {self.value}: {self.gain}{measured}"


def advise(served: Mapping[str, Any] | None, stores: Mapping[str, str]) -> Iterator[Advice]:
    """Advice for a service, the largest gain first.

    :param served: as :class:`fastio.servers.Served` has it; None: the service has its own server
    :param stores: options of the service's stores that are set
    """
    if served is not None:
        yield from _of_server(served["server"], served["imports_fastio"], served["options"])
    for option, value in stores.items():
        size = int(value) if value.isdecimal() else 0
        if option.endswith("filesystem_store_chunk_size") and 0 < size < 1 << 20:
            yield Advice(option, value, "leave it out", *_CHUNKS)
        elif option.endswith("rbd_store_chunk_size") and size > 8:
            given_away = f"a process gives {128 // (3 * size)} slow downloads away, not 5"
            yield Advice(option, value, "leave it out", given_away)
    if served is not None and served["server"] == "uWSGI":
        yield from _against_failures(served["options"])


def _of_server(server: str, imports_fastio: bool, options: Mapping[str, Sequence[str]]) -> Iterator[Advice]:
    if not imports_fastio:
        start = "fastio.auto" + ("" if server == "mod_wsgi" else ", or start it by fastio run")
        yield Advice("import", "not there", start, "without it, no patch is in effect")
    if "https-socket" in options:
        yield Advice("https-socket", "set", "http-socket, and TLS in a proxy", *_SLOW)
    elif server == "uWSGI" and not {"enable-threads", "threads"} & options.keys():
        yield Advice("enable-threads", "not set", "true", *_SLOW)
    size = number(options.get("http-buffer-size", ()), 4096)
    if "http" in options:
        address = options["http"][-1]
        yield Advice("http", address, f"http-socket = {address}", *_ROUTER)
    elif "https" in options and size < 32768:
        router = f"the router is one process for all workers, and hands on {size:,} bytes in a step"
        yield Advice("http-buffer-size", str(size), "32768", router)
    if number(options.get("threads", ()), 1) == 1:
        yield Advice(
            "threads", "1", str(max(2, -(-_THREADS // (number(options.get("processes", ()), 1) or 1)))), *_UPLOADS
        )


def _against_failures(options: Mapping[str, Sequence[str]]) -> Iterator[Advice]:
    for option, default, least, why in _LEAST:
        if 0 <= (now := number(options.get(option, ()), default)) < least:
            yield Advice(option, str(now), str(least), why)
    if "need-app" not in options:
        yield Advice("need-app", "not set", "true", "without glance, uWSGI answers all requests with errors")
