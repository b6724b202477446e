"""Shared code of the patches of requests with a body."""

import io
from collections.abc import Callable
from typing import Any

from fastio.counters import Cause, Reason, Tally
from fastio.patching.known_code import Uses
from fastio.patching.registry import Target

#: Bodies below this size, in bytes, are upstream's: there is nothing to gain.
LEAST = 64 * 1024

#: Given the connection and the body: returns a proxy of the body, or why there is none.
StandIn = Callable[[Any, Any], Any]


def target(stand_in: StandIn, counts: Tally) -> Target:
    """The function of urllib3's that sends a request, with a proxy of its body, if that has a known length."""

    def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of ``HTTPConnection.request``."""
        import http.client

        send = http.client.HTTPConnection.send

        def request(
            self: Any, method: Any, url: Any, body: Any = None, headers: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if body is not None and type(body) is not bytes and hasattr(body, "read"):
                found = why_not(self, body, headers, kwargs, send) or stand_in(self, body)
                if isinstance(found, Cause):
                    counts.fell_back(found)
                else:
                    body = found
            return wrapped(self, method, url, body, headers, *args, **kwargs)

        return request

    return Target(
        "urllib3.connection:HTTPConnection.request",
        make,
        # Its code has to be known: it decides how the body is read. This one is passed by.
        relies_on={"http.client:HTTPConnection.send": Uses("self, data", "sock sendall")},
    )


def why_not(connection: Any, body: Any, headers: Any, options: Any, send: Any) -> Cause | None:
    """Return why the body of a request stays unchanged; None if it does not.

    :param options: further arguments of the request
    :param send: http.client's function that sends a block
    """
    if options.get("chunked"):
        return Reason.FRAMING
    if isinstance(body, io.TextIOBase):
        return Reason.INPUT
    if type(connection).send is not send or "send" in vars(connection) or connection.debuglevel:
        # The program wants to see each block.
        return Reason.FOREIGN
    length = _length(headers)
    if length is None:
        return Reason.FRAMING
    return Reason.SMALL if length < LEAST else None


def _length(headers: Any) -> int | None:
    """Return ``Content-Length``, if it alone decides where the body ends."""
    try:
        names = {name.decode() if isinstance(name, bytes) else name: headers[name] for name in headers}
        lower = {name.lower(): value for name, value in names.items()}
        return None if "transfer-encoding" in lower else int(lower["content-length"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
