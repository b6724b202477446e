"""The threads that hash for all patches of this process."""

from __future__ import annotations

from fastio.concurrency import native
from fastio.concurrency.bells import new_bell
from fastio.io import hashing

#: The threads of this process.
pool = hashing.Pool(native.start_new_thread, new_bell)
