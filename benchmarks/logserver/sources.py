"""Where logs are: a directory, and a container of Swift."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import requests
import swiftclient
from eventlet.semaphore import Semaphore

#: How often a request is tried whose token is refused: a new one may be shared, and near its end already.
TRIES = 3


class Log(NamedTuple):
    """A log that was found."""

    #: bytes; None where that is not known
    size: int | None
    #: its content; must be closed, also if nothing of it was taken
    chunks: Chunks


class Unreachable(Exception):
    """The source does not answer as it should; the message says what it did."""


class Disk:
    """Logs below a directory. Symbolic links are not followed: they could lead out of it.

    :param chunk_size: bytes that are read at a time
    """

    def __init__(self, root: str, chunk_size: int) -> None:
        self._root = root
        self._chunk_size = chunk_size

    def open(self, name: str) -> Log | None:
        """The log of this name, None if there is none.

        :param name: checked, see :func:`benchmarks.logserver.paths.name_of`
        """
        fd = self._descend(name.split("/"))
        if fd is None:
            return None
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            return None
        chunks = _read(fd, status.st_size, self._chunk_size)
        return Log(status.st_size, Chunks(chunks, lambda _: os.close(fd)))

    def _descend(self, parts: list[str]) -> int | None:
        """The open file. It is opened directory by directory, so that no link can be put in between."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._root, flags & ~os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError as error:
            raise Unreachable(f"disk: {error}") from error
        for depth, part in enumerate(parts, 1):
            # A pipe of that name would else be waited for.
            kind = os.O_NONBLOCK if depth == len(parts) else os.O_DIRECTORY
            try:
                below = os.open(part, flags | kind, dir_fd=fd)
            except OSError:
                return None
            finally:
                os.close(fd)
            fd = below
        return fd


def _read(fd: int, size: int, chunk_size: int) -> Iterator[bytes]:
    """``length`` bytes: a log that grows meanwhile keeps the length that was promised."""
    while size > 0:
        chunk = os.read(fd, min(chunk_size, size))
        if not chunk:
            # It was cut off meanwhile; the connection will be, too, for the length was promised.
            raise Unreachable(f"disk: the log has become {size} bytes shorter")
        size -= len(chunk)
        yield chunk


class Chunks:
    """Chunks with something to be done when they are closed, whether or not they were begun.

    :param close: called once, with whether the last chunk was taken
    """

    def __init__(self, chunks: Iterator[bytes], close: Callable[[bool], object]) -> None:
        self._chunks = chunks
        self._close: Callable[[bool], object] | None = close
        self._finished = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            self._finished = True
            raise

    def close(self) -> None:
        close, self._close = self._close, None
        if close is not None:
            close(self._finished)


class Swift:
    """Logs in a container.

    Connections and the login are kept, for all requests together. A token that is refused is renewed, by one request
    for all; swiftclient's own renewal would be one for each connection, after a second's sleep.

    :param access: ``auth_v1``, ``user``, ``key`` and ``container``
    :param chunk_size: bytes that are read at a time
    """

    #: idle connections that are kept
    spare = 32

    def __init__(self, access: Mapping[str, str], chunk_size: int) -> None:
        self._access = access
        self._chunk_size = chunk_size
        self._idle: list[swiftclient.Connection] = []
        self._logging_in = Semaphore()
        self._url = self._token = ""

    def open(self, name: str) -> Log | None:
        """The log of this name, None if there is none.

        :raises Unreachable: if Swift gives another answer, or none
        """
        token = ""
        for _ in range(TRIES):
            self._renew(token)
            token = self._token
            try:
                return self._get(name)
            except swiftclient.ClientException as error:
                if error.http_status != 401:
                    raise Unreachable(f"swift: {error}") from error
        raise Unreachable("swift: it refuses new tokens")

    def _get(self, name: str) -> Log | None:
        connection = self._connection()
        try:
            headers, body = connection.get_object(self._access["container"], name, resp_chunk_size=self._chunk_size)
        except swiftclient.ClientException as error:
            self._release(connection, True)
            if error.http_status == 404:
                return None
            raise
        except (OSError, requests.RequestException) as error:
            connection.close()
            raise Unreachable(f"swift: {error}") from error
        chunks = Chunks(iter(body), lambda finished: self._release(connection, finished))
        length = headers.get("content-length")
        return Log(None if length is None else int(length), chunks)

    def _renew(self, refused: str) -> None:
        """Log in, unless another request has done so since the token ``refused`` was used."""
        with self._logging_in:
            if self._token != refused:
                return
            try:
                self._url, self._token = swiftclient.get_auth(
                    self._access["auth_v1"], self._access["user"], self._access["key"], auth_version="1"
                )
            except (swiftclient.ClientException, OSError, requests.RequestException) as error:
                raise Unreachable(f"swift: no login: {error}") from error

    def _connection(self) -> swiftclient.Connection:
        connection = self._idle.pop() if self._idle else swiftclient.Connection(retries=2)
        # Without user and key it leaves a refused token to us.
        connection.url, connection.token = self._url, self._token
        return connection

    def _release(self, connection: swiftclient.Connection, finished: bool) -> None:
        """Keep a connection; what is left of an answer would be taken for that of the next request."""
        if finished and len(self._idle) < self.spare:
            self._idle.append(connection)
        else:
            connection.close()
