"""The threads that hash for all patches of this process."""

from fastio.concurrency import native
from fastio.concurrency.events import new_event
from fastio.io import hashing

#: The threads of this process.
pool = hashing.Pool(native.start_new_thread, new_event)
