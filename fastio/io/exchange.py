"""The exchange with a child: its outputs drained, its input fed, until all of them have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fastio import counters
from fastio.concurrency.pace import Pace
from fastio.concurrency.waiting import Selector
from fastio.io.drain import Drain
from fastio.io.feed import Feed


class Peer(Protocol):
    """Whose exchange it is, told of everything that happens."""

    def remaining(self) -> float | None:
        """Seconds left, or None for no limit; raises what the caller raises when the time is over."""
        ...

    def fed(self, offset: int) -> None:
        """So many bytes of the input are written."""
        ...

    def ended(self, fd: int) -> None:
        """This stream has ended: end of file, all input written, or nobody reads it."""
        ...


#: Seconds after which ``is_over`` is asked again: as often as upstream looks whether a child has exited.
LOOK = 0.05


def exchange(
    drains: Iterable[Drain],
    feed: Feed | None,
    selector: Selector,
    peer: Peer,
    pace: Pace,
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Move bytes until every drain is at its end and the feed is done.

    :param pace: each descriptor moves a share of it before the selector is asked again
    :param is_over: asked while nothing but the feed is left: whether the rest of it is not worth waiting for
    """
    open_drains = {drain.fd: drain for drain in drains}
    if feed is not None:
        selector.watch_write(feed.fd)
    for fd in open_drains:
        selector.watch_read(fd)
    # The input's turn comes first, as in the standard library: where closing it fails, the outputs are left as they
    # are. A hub that has several streams ready may tell of any of them first.
    untried = feed
    try:
        while open_drains or feed is not None:
            patience = peer.remaining()
            if is_over is not None and not open_drains:
                if is_over():
                    break
                patience = LOOK if patience is None else min(LOOK, patience)
            ready = selector.wait(patience)
            counters.waits += 1
            # The time is looked at again before anything is moved, as the standard library does.
            peer.remaining()
            if ready:
                pace.enter()
                if untried is not None and untried.nonblocking and untried.fd not in ready:
                    ready = [untried.fd, *ready]
                untried = None
            for fd in ready:
                if feed is not None and fd == feed.fd:
                    finished = _feed_some(feed, pace)
                    peer.fed(feed.offset)
                    if finished:
                        selector.forget(fd)
                        # The child sees the end of its input only when nobody has the pipe open any more.
                        feed.close()
                        feed = None
                        peer.ended(fd)
                elif _drain_some(open_drains[fd], pace):
                    del open_drains[fd]
                    selector.forget(fd)
                    peer.ended(fd)
    finally:
        pace.leave()


def _feed_some(feed: Feed, pace: Pace) -> bool:
    """Write a share at most; True when there is nothing more to write."""
    pace.renew()
    while pace.left > 0:
        try:
            count = feed.write(pace.left)
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        if feed.done:
            return True
        if feed.may_block:
            return False
        pace.moved(count)
    counters.yields += 1
    return False


def _drain_some(drain: Drain, pace: Pace) -> bool:
    """Read a share at most; True at the end of file."""
    pace.renew()
    while pace.left > 0:
        try:
            count = drain.read(pace.left)
        except BlockingIOError:
            return False
        if drain.eof:
            return True
        # Another read of a blocking descriptor would wait in the kernel.
        if drain.emptied or not drain.nonblocking:
            return False
        pace.moved(count)
    counters.yields += 1
    return False
