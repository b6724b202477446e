"""Transfers to clients that the threads which serve requests have given away.

One thread waits for room in the connections with epoll, and sends to each its share in turn, so a client that reads
slowly holds nothing but its connection and its file. The thread begins with the first transfer, and then waits for
more. The end of a transfer may wait for other services, so each end has a separate thread.

That thread sends what is in memory, and never waits for a disk. Pages that are not in memory, or not known to be, are
sent by a thread of the file system: each file system has :data:`THREADS` of them at most, and as many for the ends of
transfers. A file system that is slow or does not answer keeps no transfer from another one waiting. While all of its
threads are stuck, and beyond :data:`DISKS` file systems, no more of its transfers are taken.

Bytes that are in no file come in chunks, and asking for one may wait for a store. A transfer has a thread for that,
but only while its buffer has room: a client that reads slowly holds its connection, its buffer and no thread.

Nothing here takes a lock: a finalizer, a signal handler or a fork may come at any time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections import deque
from collections.abc import Callable
from posix import write as _write  # the service may monkey patch os at any time
from typing import Any

from fastio import counters
from fastio.concurrency import native
from fastio.concurrency.try_lock import TryLock
from fastio.io import file_sending, image_files

#: The most that a transfer sends in its turn, in bytes.
SHARE = 1 << 20
#: Bytes that the system is advised to read before they are sent.
AHEAD = 8 << 20
#: Bytes that are sent at once where a disk may be waited for, and of a read of a file that cannot be sent without it.
PIECE = 256 << 10
#: Seconds between two looks at which clients have not read for too long.
TICK = 1.0
#: Threads that may wait for a file system, and as many again for the ends of its transfers.
THREADS = 4
#: File systems of which there are transfers at the same time.
DISKS = 8
#: Seconds without progress after which a thread counts as stuck.
STUCK = 1.0
#: Milliseconds for which a thread of a file system waits for a client before it is given to another transfer.
ROOM = 5


class Threads:
    """The threads that do one thing for the transfers of a file system, and who waits for one of them."""

    def __init__(self) -> None:
        self.busy: set[Transfer] = set()
        self.waiting: deque[Transfer] = deque()


class Disk:
    """A file system that may have to be waited for."""

    def __init__(self) -> None:
        self.reads = Threads()
        self.ends = Threads()

    def is_stuck(self, now: float) -> bool:
        """Whether none of as many threads as there may be has got anything for some time."""
        busy = list(self.reads.busy)
        return len(busy) >= THREADS and all(now - transfer.asked > STUCK for transfer in busy)


class Transfer:
    """Bytes on their way to a client.

    :param connection: descriptor of a socket in non-blocking mode, which is closed after the end
    :param length: number of bytes that was announced to the client
    :param patience: seconds for which the client may leave no room in the connection
    :param ended: called in a separate thread at the end, whatever that is
    """

    #: bytes of memory that it may take
    memory = 0
    #: whether a thread asks for more of it, or is waited for
    asking = False
    #: when it was last found that a thread has to ask for more
    asked = 0.0
    #: the file system that may have to be waited for
    disk: Disk | None = None
    #: seconds for which that may take to give anything
    disk_patience: float | None = None
    #: whether it was the connection that has ended it early, and not where the bytes come from
    client_is_gone = False
    #: whether the file system has taken too long, and is no longer waited for
    given_up = False

    def __init__(self, connection: int, length: int, patience: float, ended: Callable[[Any], None]) -> None:
        self.connection = connection
        self.length = length
        self.ended = ended
        #: how many bytes have been sent
        self.sent = 0
        #: whether the connection is waited for
        self.watched = True
        #: whether nothing more is sent
        self.over = False
        #: whether the thread for its end has begun
        self.ending = False
        #: error that has ended it early; None also if there was no more
        self.error: OSError | None = None
        self._patience = patience
        self.renew()

    @property
    def cause(self) -> str:
        """The reason why it has ended early, in words; empty if it has not."""
        return "" if self.error is None else self.error.strerror or type(self.error).__name__

    @property
    def waits_for_more(self) -> bool:
        """Whether there is nothing to be sent for now."""
        return False

    @property
    def wants_more(self) -> bool:
        """Whether a thread is to be started that asks for more."""
        return False

    def ask(self) -> bool:
        """Get more, in a thread that may wait; whether to ask again."""
        raise NotImplementedError

    def overdue(self, now: float) -> bool:
        """Whether the client has left no room for too long; it is not asked while there is nothing to be sent."""
        return self.watched and now >= self._deadline

    def waits_in_vain(self, now: float) -> bool:
        """Whether its file system has given nothing for too long."""
        return self.asking and self.disk_patience is not None and now - self.asked >= self.disk_patience

    def fail(self, error: BaseException) -> None:
        """Take note of what neither the connection nor a file has failed with."""
        self.error = OSError(None, f"{type(error).__name__}: {error}")

    def renew(self) -> None:
        """Have the client's time begin anew."""
        self._deadline = time.monotonic() + self._patience

    def step(self) -> bool:
        """Send a share, as far as there is room; whether that was the end."""
        raise NotImplementedError


class FileTransfer(Transfer):
    """Bytes of a file on their way to a client.

    :param file: descriptor of a regular file, which stays open until ``ended`` returns
    :param begin: where in the file the bytes begin
    :param end: where they end
    :param disk_patience: seconds in which the file system has to give something; None: it may take as long as it takes
    """

    def __init__(
        self,
        connection: int,
        file: int,
        begin: int,
        end: int,
        patience: float,
        ended: Callable[[FileTransfer], None],
        disk_patience: float | None = None,
    ) -> None:
        super().__init__(connection, end - begin, patience, ended)
        self.file = file
        self.begin = begin
        self.end = end
        self.disk_patience = disk_patience
        self._memory = image_files.InMemory(file)
        # The caller may wait for the file system, and learns how to find out which bytes are in memory.
        self._memory.has(begin, begin + 1)
        #: of its file system; None if that is never waited for
        self.device = None if self._memory.never_waits else os.fstat(file).st_dev
        #: up to where the system was advised to read
        self._advised = begin
        self._reads = False
        #: whether what is next is not known to be in memory, and a thread has to send it
        self._lacks = False
        #: whether that thread has left no room in the connection
        self._full = False
        self._complete = False
        import socket  # Not above: names() imports this module.

        client = socket.socket(fileno=connection)
        try:
            self._local = file_sending.is_local(client)
        finally:
            client.detach()

    @property
    def position(self) -> int:
        """Position in the file of the first byte that has not been sent."""
        return self.begin + self.sent

    @property
    def waits_for_more(self) -> bool:
        return self._lacks

    @property
    def wants_more(self) -> bool:
        return self._lacks and not (self.asking or self.over)

    def step(self) -> bool:
        left = SHARE
        while left > 0 and not self._complete and not self._full:
            count = min(left, self.end - self.position)
            self._lacks = not self._is_at_hand(count)
            sent = 0 if self._lacks else self._move(count, self._local)
            if not sent:
                break
            left -= sent
        if self._full:
            # There will be room.
            self._full = self._lacks = False
        if self._lacks:
            self.asked = time.monotonic()
        return self._complete

    def ask(self) -> bool:
        """Send what is not in memory, in a thread that may wait for the disk, until others want it or there is no room.

        No other thread does the same meanwhile; afterwards ``step()`` goes on.
        """
        assert self.disk is not None
        others = self.disk.reads.waiting
        while not (self.over or self._complete):
            self.asked = time.monotonic()
            self._read_ahead()
            count = min(PIECE, self.end - self.position)
            # From a mapping, a write to the connection would hold that as long as the disk takes.
            if not self._move(count, mapping=False):
                if others or not self._has_room(ROOM):
                    self._full = True
                    break
            elif others or self._is_at_hand(count):
                break
        return False

    def _is_at_hand(self, count: int) -> bool:
        """Whether ``count`` bytes can be sent without waiting for the disk, as far as the system knows at once."""
        if self.device is None:
            return True
        begin = self.position
        if begin < self._advised:
            return self._memory.has_here(begin, begin + count)
        # The disk reads the next bytes meanwhile, unless they are there.
        if self._memory.has_here(begin, min(begin + AHEAD // 2, self.end)):
            self._advised = begin + AHEAD // 2
            return True
        return False

    def _move(self, count: int, mapping: bool) -> int:
        """Send up to so many bytes; returns how many, 0 if there is no room or that was the end."""
        try:
            sent = self._send(count, mapping)
        except OSError as error:
            # It may have been given up meanwhile.
            self.error = self.error or error
            self._complete = True
            return 0
        if sent is None:
            counters.io.waits += 1
            return 0
        if sent:
            self.sent += sent
            counters.io.writes += 1
            counters.io.bytes_out += sent
        # Without any, the file has become shorter.
        self._complete = not sent or self.position >= self.end
        return sent

    def _send(self, count: int, mapping: bool) -> int | None:
        """The same; None if there is no room, and 0 only at the end of the file."""
        failure = None
        if not self._reads:
            try:
                return file_sending.send(self.connection, self.file, self.position, count, mapping)
            except BlockingIOError:
                if not self._has_room():
                    return None
                # Or the file has failed with that.
            except OSError as error:
                # The file's or the connection's: the one of the two calls below that fails decides. A file system that
                # only cannot do this can be read from all the same.
                failure, self._reads = error, True
        try:
            data = os.pread(self.file, min(count, PIECE), self.position)
        except BlockingIOError as error:
            raise OSError(errno.EIO, error.strerror) from error
        try:
            return _write(self.connection, data) if data else 0
        except BlockingIOError:
            return None
        except OSError as error:
            self.client_is_gone = True
            raise failure or error from None

    def _has_room(self, milliseconds: int = 0) -> bool:
        poll = native.module("select").poll()
        poll.register(self.connection, select.POLLOUT)
        return bool(poll.poll(milliseconds))

    def _read_ahead(self) -> None:
        """Have the disk be busy with what comes next while other clients get theirs."""
        if self.position >= self._advised:
            self._advised = self.position + AHEAD // 2
            with contextlib.suppress(OSError):
                os.posix_fadvise(self.file, self.position, AHEAD, os.POSIX_FADV_WILLNEED)


class ChunkTransfer(Transfer):
    """Chunks on their way to a client: as many as there is room for in its buffer.

    The buffer has room for two chunks, and for :data:`SHARE` bytes. One more may be held by those who have handed the
    chunks on.

    :param first: the first chunk
    :param next_chunk: returns the next one, and raises StopIteration after the last; may wait, and is not
        called concurrently
    """

    def __init__(
        self,
        connection: int,
        first: bytes,
        next_chunk: Callable[[], bytes],
        length: int,
        patience: float,
        ended: Callable[[ChunkTransfer], None],
    ) -> None:
        super().__init__(connection, length, patience, ended)
        self._next_chunk = next_chunk
        self._chunks = deque([memoryview(first)])
        #: of the chunk that is being sent
        self._position = 0
        self._largest = len(first)
        #: Bytes of all chunks so far, and of those of them that have been sent as a whole. Each is counted by one
        #: thread only.
        self.taken = len(first)
        self._released = 0
        #: exception of ``next_chunk``
        self.failure: BaseException | None = None
        #: whether no chunk is to come
        self._complete = False

    @property
    def memory(self) -> int:  # type: ignore[override]
        return self._room + self._largest

    @property
    def _room(self) -> int:
        return max(SHARE, 2 * self._largest)

    @property
    def cause(self) -> str:
        return super().cause or ("" if self.failure is None else type(self.failure).__name__)

    @property
    def waits_for_more(self) -> bool:
        return not self._chunks

    @property
    def wants_more(self) -> bool:
        held = self.taken - self._released
        return not (self.asking or self.over or self._complete) and 2 * held <= self._room

    def ask(self) -> bool:
        try:
            chunk = self._next_chunk()
            view = memoryview(chunk)
        except StopIteration:
            self._complete = True
            return False
        except BaseException as error:
            # It is for the end: earlier bytes are sent first.
            self.failure = error
            self._complete = True
            return False
        size = len(chunk)
        if size:
            self._largest = max(self._largest, size)
            self.taken += size
            self._chunks.append(view)
        return not self.over and self.taken - self._released + self._largest <= self._room

    def step(self) -> bool:
        left = SHARE
        # Looked at first: a chunk comes before the end does.
        complete = self._complete
        while left and self._chunks:
            chunk = self._chunks[0]
            try:
                sent = _write(self.connection, chunk[self._position : self._position + left])
            except BlockingIOError:
                counters.io.waits += 1
                return False
            except OSError as error:
                self.error, self.client_is_gone = error, True
                return True
            self._position += sent
            self.sent += sent
            left -= sent
            counters.io.writes += 1
            counters.io.bytes_out += sent
            if self._position == len(chunk):
                self._chunks.popleft()
                self._released += self._position
                self._position = 0
        return complete and not self._chunks


class Sender:
    """The transfers of this process, and the thread that sends them."""

    def __init__(self) -> None:
        self._at_fork_registered = False
        self._reset()

    def _reset(self) -> None:
        #: by the descriptor of the connection, until the end is over
        self._transfers: dict[int, Transfer] = {}
        #: held by the thread, and before it by the one that starts it
        self._sending = TryLock()
        self._epoll: select.epoll | None = None
        #: an event that has the thread look at what there is
        self._wake = -1
        #: transfers for which something has come, or who asked for it has ended
        self._news: deque[Transfer] = deque()
        #: transfers for which there was no thread
        self._refused: list[Transfer] = []
        #: by ``st_dev``
        self._disks: dict[int, Disk] = {}

    def __len__(self) -> int:
        """How many transfers there are."""
        return len(self._transfers)

    def memory(self) -> int:
        """Bytes of memory that all transfers may take."""
        return sum(transfer.memory for transfer in list(self._transfers.values()))

    def take(self, transfer: Transfer, most: int, memory: int = 0) -> bool:
        """Whether the transfer is taken: not if there are ``most``, its file system is stuck, or the system refuses.

        :param memory: bytes that all transfers may take; of no account for one that takes none
        """
        if isinstance(transfer, FileTransfer) and transfer.device is not None:
            transfer.disk = self._disks.setdefault(transfer.device, Disk())
        self._transfers[transfer.connection] = transfer
        try:
            fits = len(self._transfers) <= most and (not transfer.memory or self.memory() <= memory)
            fits = fits and self._has_threads_for(transfer)
            if fits and (epoll := self._begun()) is not None:
                os.eventfd_write(self._wake, 1)
                epoll.register(transfer.connection, select.EPOLLOUT)
                return True
        except (OSError, RuntimeError):
            # No descriptor, no memory, or no thread is to be had.
            pass
        del self._transfers[transfer.connection]
        return False

    def _has_threads_for(self, transfer: Transfer) -> bool:
        if transfer.disk is None:
            return True
        disks = {each.disk for each in list(self._transfers.values())} - {None}
        return len(disks) <= DISKS and not transfer.disk.is_stuck(time.monotonic())

    def wait(self) -> None:
        """Wait until all transfers are over that are not given up; a signal handler may call it."""
        while not all(transfer.given_up for transfer in list(self._transfers.values())):
            time.sleep(0.05)

    def begin(self) -> bool:
        """Whether there is a thread that sends; it is started if there is none."""
        try:
            return self._begun() is not None
        except (OSError, RuntimeError):
            return False

    def _begun(self) -> select.epoll | None:
        """The poll object of the thread; None while another thread has it begin."""
        if self._epoll is not None:
            return self._epoll
        # An exception of a signal handler must not close the thread's descriptors.
        with native.without_signals():
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
            if isinstance(transfer, ChunkTransfer):
                # Nor may what it asks be closed here: it could talk to the store.
                _of_parents.append(transfer)
        self._close(self._epoll)
        self._reset()

    def _run(self, epoll: select.epoll, wake: int) -> None:
        looked = time.monotonic()
        while True:
            count = len(self._transfers)
            there = epoll.poll(TICK if count else -1, count + 1)
            now = time.monotonic()
            for descriptor, _ in there:
                if descriptor == wake:
                    os.eventfd_read(wake)
                elif (found := self._transfers.get(descriptor)) is not None:
                    self._go_on(epoll, found)
            while self._news:
                self._hear(epoll, self._news.popleft())
            if now - looked >= TICK:
                looked = now
                for transfer in list(self._transfers.values()):
                    if transfer.overdue(now) and not transfer.over:
                        transfer.error = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
                        transfer.client_is_gone = True
                        self._end(epoll, transfer)
                    elif transfer.waits_in_vain(now) and not transfer.over:
                        self._give_up(epoll, transfer)
                refused, self._refused = self._refused, []
                for transfer in refused:
                    self._hear(epoll, transfer)

    def _go_on(self, epoll: select.epoll, transfer: Transfer) -> None:
        """Send what there is of a transfer, and see to it that more comes."""
        if self._step(transfer):
            self._end(epoll, transfer)
            return
        self._ask(transfer)
        # With nothing to send, a connection with room would be reported again and again.
        self._watch(epoll, transfer, not transfer.waits_for_more)

    def _hear(self, epoll: select.epoll, transfer: Transfer) -> None:
        """Something has come for a transfer, or who asked for it has ended."""
        if transfer.disk is not None:
            self._give_threads(transfer.disk)
        if self._transfers.get(transfer.connection) is not transfer:
            return
        if transfer.over:
            self._end(epoll, transfer)
        elif transfer.watched:
            # There will be room.
            self._ask(transfer)
        elif not (transfer.asking and transfer.disk):
            self._go_on(epoll, transfer)

    def _give_threads(self, disk: Disk) -> None:
        """Give threads of a file system that have ended to who waits for them."""
        while disk.reads.waiting and len(disk.reads.busy) < THREADS:
            self._start(disk.reads, disk.reads.waiting.popleft(), self._ask_for)
        while disk.ends.waiting and len(disk.ends.busy) < THREADS:
            self._start(disk.ends, disk.ends.waiting.popleft(), self._finish)

    def _start(self, threads: Threads | None, transfer: Transfer, function: Callable[[Any], None]) -> None:
        """Have a thread do this, one of ``threads`` if there are such; if none is to be had it is tried again."""
        if threads is not None:
            if len(threads.busy) >= THREADS:
                threads.waiting.append(transfer)
                return
            threads.busy.add(transfer)
        try:
            native.start_new_thread()(function, (transfer,))
        except RuntimeError:
            if threads is not None:
                threads.busy.discard(transfer)
            transfer.asking = transfer.ending = False
            self._refused.append(transfer)

    def _watch(self, epoll: select.epoll, transfer: Transfer, wanted: bool) -> None:
        if wanted == transfer.watched or transfer.over:
            return
        transfer.watched = wanted
        try:
            if wanted:
                epoll.register(transfer.connection, select.EPOLLOUT)
            else:
                epoll.unregister(transfer.connection)
        except OSError as error:
            transfer.error = error
            self._end(epoll, transfer)

    def _ask(self, transfer: Transfer) -> None:
        """Have a thread ask for more, if the transfer wants that."""
        if transfer.wants_more:
            transfer.asking = True
            self._start(None if transfer.disk is None else transfer.disk.reads, transfer, self._ask_for)

    def _ask_for(self, transfer: Transfer) -> None:
        try:
            while transfer.ask():
                self._tell(transfer)
        except BaseException as error:
            transfer.fail(error)
            transfer.over = True
        finally:
            transfer.asking = False
            if transfer.disk is not None:
                transfer.disk.reads.busy.discard(transfer)
            self._tell(transfer)

    def _tell(self, transfer: Transfer) -> None:
        self._news.append(transfer)
        os.eventfd_write(self._wake, 1)

    @staticmethod
    def _step(transfer: Transfer) -> bool:
        try:
            return not transfer.over and transfer.step()
        except BaseException as error:
            # No transfer may end the others.
            transfer.fail(error)
            return True
        finally:
            transfer.renew()

    def _end(self, epoll: select.epoll, transfer: Transfer) -> None:
        transfer.over = True
        if transfer.watched:
            transfer.watched = False
            with contextlib.suppress(OSError):
                epoll.unregister(transfer.connection)
        if transfer.asking or transfer.ending:
            # A transfer that is asked now cannot be ended meanwhile; its caller reports when that is over.
            return
        transfer.ending = True
        self._start(None if transfer.disk is None else transfer.disk.ends, transfer, self._finish)

    def _give_up(self, epoll: select.epoll, transfer: Transfer) -> None:
        """Cut a client off whose bytes do not come, as the end of this process would. A thread may have to wait on."""
        transfer.given_up = transfer.client_is_gone = True
        transfer.error = TimeoutError(errno.ETIMEDOUT, "the file system does not answer")
        if transfer.disk is not None and transfer in transfer.disk.reads.waiting:
            transfer.disk.reads.waiting.remove(transfer)
            transfer.asking = False
        import socket

        client = socket.socket(fileno=transfer.connection)
        try:
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        finally:
            client.detach()
        self._end(epoll, transfer)

    def _finish(self, transfer: Transfer) -> None:
        try:
            transfer.ended(transfer)
        finally:
            del self._transfers[transfer.connection]
            os.close(transfer.connection)
            if transfer.disk is not None:
                transfer.disk.ends.busy.discard(transfer)
                self._tell(transfer)


#: transfers of the processes that this one was forked from
_of_parents: list[Transfer] = []

#: The transfers that this process has been given.
sender = Sender()
