"""The exchange with a child: its outputs drained, its input fed, until all of them have ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from fastio import counters
from fastio.concurrency.pace import Pace
from fastio.io.drain import LEAST, Drain
from fastio.io.feed import Feed

if TYPE_CHECKING:
    from fastio.concurrency.waiting import Selector


class Peer(Protocol):
    """The owner of an exchange, which is called for everything that happens."""

    def remaining(self) -> float | None:
        """Seconds left, or None for no limit; raises what the caller raises when the time is over."""
        ...

    def is_open(self, fd: int) -> bool:
        """Whether the file with this descriptor has not been closed meanwhile."""
        ...

    def fed(self, offset: int) -> None:
        """``offset`` bytes of the input are written."""
        ...

    def moved(self) -> None:
        """Some bytes were read or written."""
        ...

    def ended(self, fd: int) -> None:
        """This stream has ended: end of file, all input written, or closed by its reader."""
        ...


def exchange(drains: Iterable[Drain], feed: Feed | None, selector: Selector, peer: Peer, pace: Pace) -> None:
    """Move bytes until every drain is at its end and the feed is done.

    :param pace: each descriptor moves a share of it before the selector is asked again
    """
    streams: dict[int, Drain | Feed] = {drain.fd: drain for drain in drains}
    if feed is not None:
        selector.watch_write(feed.fd)
    for fd in streams:
        selector.watch_read(fd)
    if feed is not None:
        streams[feed.fd] = feed
    # The input's turn comes first, as in the standard library: where closing it fails, the outputs stay unchanged. A
    # hub that has several streams ready may tell of any of them first.
    untried = feed
    try:
        while streams:
            ready = selector.wait(peer.remaining())
            counters.io.waits += 1
            # The time is looked at again before anything is moved, as the standard library does.
            peer.remaining()
            if ready:
                pace.enter()
                if untried and untried.nonblocking and untried.fd not in ready and peer.is_open(untried.fd):
                    ready = [untried.fd, *ready]
                untried = None
            for fd in ready:
                stream = streams[fd]
                finished = _move_some(stream, pace, peer)
                if isinstance(stream, Feed):
                    peer.fed(stream.offset)
                if finished:
                    del streams[fd]
                    selector.forget(fd)
                    if isinstance(stream, Feed):
                        # The child sees the end of its input only when no process has the pipe open any more.
                        stream.close()
                    peer.ended(fd)
    finally:
        pace.leave()


def _move_some(stream: Drain | Feed, pace: Pace, peer: Peer) -> bool:
    """Move a share at most; True when there is nothing more to move, or no reader left."""
    pace.renew()
    while pace.left > 0:
        try:
            pace.moved(stream.move(max(pace.left, LEAST)))
            peer.moved()
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        if stream.done:
            return True
        if stream.may_block:
            return False
    counters.io.yields += 1
    return False
