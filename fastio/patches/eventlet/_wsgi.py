"""The response that eventlet's WSGI server is about to send, as its own code sees it."""

import functools
import io
from collections.abc import Callable
from typing import Any


def cells(function: Any) -> dict[str, Any]:
    """The variables that ``function`` shares with the one that it is local to, by name."""
    return dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))


def sends_unbuffered(handler: Any) -> bool:
    """Whether what the server writes goes to the connection itself, and nothing is left in a buffer."""
    wfile = handler.wfile
    return type(wfile) is io.BufferedWriter and getattr(wfile.raw, "_sock", None) is handler.connection


def is_plain(connection: Any) -> bool:
    """Whether it is eventlet's socket, without TLS and without another tool's ``send()``."""
    from eventlet.greenio import GreenSocket

    return type(connection) is GreenSocket and "send" not in vars(connection)


def handling(wrapped: Callable[..., Any], respond: Callable[..., Any]) -> Callable[..., Any]:
    """An ``HttpProtocol.handle_one_response`` whose application is called by ``respond``.

    :param respond: is given the handler, the application, and the application's two arguments; returns the body
    """

    def handle_one_response(self: Any) -> Any:
        application = self.application
        self.application = functools.partial(respond, self, application)
        try:
            return wrapped(self)
        finally:
            self.application = application

    return handle_one_response


class Response:
    """Upstream's variables of one response, by way of the ``start_response`` that the application is given."""

    def __init__(self, start_response: Callable[..., Any]) -> None:
        shared = cells(cells(start_response)["write"].cell_contents)
        self._headers = shared["headers_set"].cell_contents
        self._headers_sent = shared["headers_sent"].cell_contents
        self._length = shared["length"].cell_contents

    def header(self, name: str) -> str | None:
        """The value of a header that the application has set; None without it."""
        for header, value in self._headers[1] if self._headers else ():
            if header.lower() == name:
                return value
        return None

    @property
    def headers_sent(self) -> bool:
        return bool(self._headers_sent)

    def count(self, sent: int) -> None:
        """Add to the number of sent bytes that the server logs."""
        self._length[0] += sent
