"""Transfers of files to clients that the threads which serve requests have given away.

One thread sends them all. It waits for room in the connections with epoll, and sends to each its share in turn, so a
client that reads slowly holds nothing but its connection and its file. The thread begins with the first transfer, and
then waits for more. What is to be done at the end of a transfer may wait for other services, so each end has a thread
of its own.

Nothing here takes a lock: a finalizer, a signal handler or a fork may come at any time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections.abc import Callable

from fastio import counters
from fastio.concurrency import native
from fastio.concurrency.try_lock import TryLock
from fastio.io import file_sending

#: The most that a transfer sends in its turn, in bytes.
SHARE = 1 << 20
#: Bytes that the system is told to read before they are sent.
AHEAD = 8 << 20
#: Bytes of a read, of a file that cannot be sent without reading it.
PIECE = 256 << 10
#: Seconds between two looks at which clients have not read for too long.
TICK = 1.0


class Transfer:
    """Bytes of a file on their way to a client.

    :param connection: descriptor of a socket in non-blocking mode, which is closed after the end
    :param file: descriptor of a regular file, which stays open until ``ended`` returns
    :param begin: where in the file the bytes begin
    :param end: where they end
    :param patience: seconds for which the client may leave no room in the connection
    :param ended: called in a thread of its own at the end, whatever that is
    """

    def __init__(
        self, connection: int, file: int, begin: int, end: int, patience: float, ended: Callable[[Transfer], None]
    ) -> None:
        self.connection = connection
        self.file = file
        self.begin = begin
        self.end = end
        self.ended = ended
        #: where in the file what has not been sent begins
        self.position = begin
        #: whether nothing more is sent
        self.over = False
        #: what has ended it early; None also if the file has ended
        self.error: OSError | None = None
        self._patience = patience
        self._advised = begin
        self._reads = False
        import socket  # Not above: names() imports this module.

        client = socket.socket(fileno=connection)
        try:
            self._local = file_sending.is_local(client)
        finally:
            client.detach()
        self.renew()

    @property
    def sent(self) -> int:
        """How many bytes have been sent."""
        return self.position - self.begin

    @property
    def client_is_gone(self) -> bool:
        """Whether it was the connection that has ended it early, and not the file."""
        return self.error is not None and self.error.errno in file_sending.OF_CONNECTION

    def overdue(self, now: float) -> bool:
        """Whether the client has left no room for too long."""
        return now >= self._deadline

    def renew(self) -> None:
        """Have the client's time begin anew."""
        self._deadline = time.monotonic() + self._patience

    def step(self) -> bool:
        """Send a share, as far as there is room; whether that was the end."""
        left = SHARE
        while left and self.position < self.end:
            self._read_ahead()
            try:
                sent = self._send(min(left, self.end - self.position))
            except BlockingIOError:
                counters.io.waits += 1
                return False
            except OSError as error:
                if error.errno in file_sending.OF_CONNECTION or self._reads:
                    self.error = error
                    return True
                # A file system that cannot do this can be read from all the same, or else reading raises the error.
                self._reads = True
                continue
            if not sent:
                # The file has become shorter.
                return True
            self.position += sent
            left -= min(left, sent)
            counters.io.writes += 1
            counters.io.bytes_out += sent
        return self.position >= self.end

    def _send(self, count: int) -> int:
        if not self._reads:
            return file_sending.send(self.connection, self.file, self.position, count, mapping=self._local)
        data = os.pread(self.file, min(count, PIECE), self.position)
        return os.write(self.connection, data) if data else 0

    def _read_ahead(self) -> None:
        """Have the disk be busy with what comes next while other clients get theirs."""
        if self.position >= self._advised:
            self._advised = self.position + AHEAD // 2
            with contextlib.suppress(OSError):
                os.posix_fadvise(self.file, self.position, AHEAD, os.POSIX_FADV_WILLNEED)


class Sender:
    """The transfers of this process, and the thread that sends them."""

    def __init__(self) -> None:
        self._at_fork_registered = False
        self._reset()

    def _reset(self) -> None:
        #: by the descriptor of the connection, until the end is over
        self._transfers: dict[int, Transfer] = {}
        #: what the thread has, and before it who starts it
        self._sending = TryLock()
        self._epoll: select.epoll | None = None
        #: an event that has the thread look at what there is
        self._wake = -1

    def __len__(self) -> int:
        """How many transfers there are."""
        return len(self._transfers)

    def take(self, transfer: Transfer, most: int) -> bool:
        """Whether the transfer is taken: not if there are ``most``, or the system refuses."""
        self._transfers[transfer.connection] = transfer
        try:
            if len(self._transfers) <= most and (epoll := self._begun()) is not None:
                os.eventfd_write(self._wake, 1)
                epoll.register(transfer.connection, select.EPOLLOUT)
                return True
        except (OSError, RuntimeError):
            # No descriptor, no memory, or no thread is to be had.
            pass
        del self._transfers[transfer.connection]
        return False

    def wait(self) -> None:
        """Wait until all transfers are over; a signal handler may call it."""
        while self._transfers:
            time.sleep(0.05)

    def _begun(self) -> select.epoll | None:
        """What the thread waits with; None while another thread has it begin."""
        if self._epoll is not None:
            return self._epoll
        if not self._sending.try_acquire():
            return None
        epoll = None
        try:
            epoll = select.epoll()
            self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            epoll.register(self._wake, select.EPOLLIN)
            native.start_new_thread()(self._run, (epoll, self._wake))
        except BaseException:
            self._close(epoll)
            self._sending.release()
            raise
        if not self._at_fork_registered:
            self._at_fork_registered = True
            os.register_at_fork(after_in_child=self._forget)
        self._epoll = epoll
        return epoll

    def _close(self, epoll: select.epoll | None) -> None:
        if epoll is not None:
            epoll.close()
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def _forget(self) -> None:
        # In a forked child: the transfers are the parent's, and no copy of a connection may keep it open.
        for transfer in self._transfers.values():
            with contextlib.suppress(OSError):
                os.close(transfer.connection)
        self._close(self._epoll)
        self._reset()

    def _run(self, epoll: select.epoll, wake: int) -> None:
        looked = time.monotonic()
        while True:
            count = len(self._transfers)
            there = epoll.poll(TICK if count else -1, count + 1)
            # What is sent now may wait for a disk, for which no client is to blame.
            now = time.monotonic()
            for descriptor, _ in there:
                if descriptor == wake:
                    os.eventfd_read(wake)
                elif (transfer := self._transfers.get(descriptor)) is not None and self._step(transfer):
                    self._end(epoll, transfer)
            if now - looked >= TICK:
                looked = now
                for transfer in list(self._transfers.values()):
                    if transfer.overdue(now) and not transfer.over:
                        transfer.error = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
                        self._end(epoll, transfer)

    @staticmethod
    def _step(transfer: Transfer) -> bool:
        try:
            return not transfer.over and transfer.step()
        except BaseException as error:
            # No transfer may end the others.
            transfer.error = OSError(None, f"{type(error).__name__}: {error}")
            return True
        finally:
            transfer.renew()

    def _end(self, epoll: select.epoll, transfer: Transfer) -> None:
        transfer.over = True
        with contextlib.suppress(OSError):
            epoll.unregister(transfer.connection)
        try:
            native.start_new_thread()(self._finish, (transfer,))
        except RuntimeError:
            self._finish(transfer)

    def _finish(self, transfer: Transfer) -> None:
        try:
            transfer.ended(transfer)
        finally:
            del self._transfers[transfer.connection]
            os.close(transfer.connection)


#: The transfers that this process has been given.
sender = Sender()
