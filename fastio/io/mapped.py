"""Sends the bytes of a file to a socket of this host from the page cache, without copying them into the process.

``sendfile()`` hands the pages of the file to the socket, so that a network card can read them. For a receiver on the
same host this saves nothing, because the pages have to be copied anyway. The receiver copies one small page after the
other, and none is in its processor's cache. If the bytes are sent from a mapping of the file, the sender copies them
once into the socket's large buffers, and these are still in the cache when the receiver reads them. Measured by
``tox -e bench -- glance``.
"""

import errno
import mmap
import posix  # os.write may have been replaced by a green one, which waits


class NotMapped(Exception):
    """The bytes cannot be sent from a mapping: the file allows none, has not so many, or could not be read there."""


def send(out: int, file: int, position: int, count: int) -> int:
    """Send up to ``count`` bytes of ``file`` from ``position`` on; returns how many were sent.

    Pages that are not in memory are read from the disk meanwhile, whether ``out`` may block or not.

    :param out: descriptor of a socket
    :param file: descriptor of a file
    :param count: at least 1
    :raises NotMapped: nothing was sent, because of the file
    :raises OSError: what ``write()`` to the socket raises
    """
    begin = position - position % mmap.ALLOCATIONGRANULARITY
    try:
        window = mmap.mmap(file, position - begin + count, mmap.MAP_SHARED, mmap.PROT_READ, offset=begin)
    except (OSError, ValueError) as error:
        raise NotMapped(str(error)) from error
    # Only the kernel touches the pages, so one that is gone, because the file was truncated after it was mapped, makes
    # an error of write() and no signal.
    with window, memoryview(window) as whole, whole[position - begin :] as wanted:
        try:
            return posix.write(out, wanted)
        except OSError as error:
            if error.errno == errno.EFAULT:
                raise NotMapped(str(error)) from error
            raise
