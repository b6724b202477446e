"""The HTTPS server of :mod:`.vmware`: ``python -IS vmware_server.py PORT DIRECTORY CERTIFICATE KEY``.

GET, HEAD, PUT and DELETE of ``/folder/PATH?dcPath=...&dsName=...``, as an ESX host has them; a PUT has a length or is
chunked. Each connection has a thread. Without the session's cookie the answer is 401.
"""

import os
import shutil
import ssl
import sys
import urllib.parse
from collections.abc import Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO

COOKIE = "vmware_soap_session=benchmark"

#: bytes read and written at a time
CHUNK = 1 << 20


class Handler(SimpleHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    #: of the files
    root = ""
    timeout = 60

    def send_head(self) -> BinaryIO | None:
        """The head of the answer to GET and HEAD; the file whose content follows."""
        path = self._path()
        try:
            file = open(path or "", "rb")  # noqa: SIM115
        except (FileNotFoundError, IsADirectoryError):
            if path is not None:
                self._answer(HTTPStatus.NOT_FOUND)
            return None
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
        self.end_headers()
        return file

    def copyfile(self, source: Any, outputfile: Any) -> None:
        shutil.copyfileobj(source, outputfile, CHUNK)

    def do_PUT(self) -> None:
        path = self._path()
        if path is None:
            # What is not read would be taken for the next request.
            self.close_connection = True
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = not os.path.exists(path)
        partial = f"{path}.{self.client_address[1]}"
        try:
            with open(partial, "wb") as file:
                for data in self._body():
                    file.write(data)
            os.replace(partial, path)
        except EOFError:
            os.unlink(partial)
            self.close_connection = True
            return
        self._answer(HTTPStatus.CREATED if new else HTTPStatus.OK)

    def do_DELETE(self) -> None:
        path = self._path()
        if path is None:
            return
        try:
            os.unlink(path)
        except FileNotFoundError:
            self._answer(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK)

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _body(self) -> Iterator[bytes]:
        """The request's body in pieces. Raises EOFError if the connection ends before it does."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            yield from self._bytes(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            yield from self._bytes(size)
            self.rfile.readline()
        self.rfile.readline()

    def _bytes(self, left: int) -> Iterator[bytes]:
        while left:
            data = self.rfile.read1(min(left, CHUNK))
            if not data:
                raise EOFError
            left -= len(data)
            yield data

    def _path(self) -> str | None:
        """Where the file of the request's path and query is; None, and the request is answered, if it is not to be."""
        if COOKIE not in self.headers.get("Cookie", ""):
            self._answer(HTTPStatus.UNAUTHORIZED)
            return None
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        names = [query.get(name, [""])[0] for name in ("dcPath", "dsName")]
        parts = [*names, *urllib.parse.unquote(url.path).split("/")[2:]]
        if not url.path.startswith("/folder/") or ".." in parts:
            self._answer(HTTPStatus.BAD_REQUEST)
            return None
        return os.path.join(self.root, *(part for part in parts if part))

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Server(ThreadingHTTPServer):
    """TLS is spoken in each connection's thread, so that no client keeps the others waiting."""

    daemon_threads = True

    def __init__(self, port: int, certificate: str, key: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        # The handshake is part of the first read, which a thread does.
        self.socket = self.tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


def main(port: str, directory: str, certificate: str, key: str) -> None:
    Handler.root = directory
    Server(int(port), certificate, key).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
