"""glance 33: the parallel import reads an image without newlines into memory as a whole, to verify its signature.

``python glance-verify-in-chunks.py [MIB]``: a file with a hole of 4 GiB, or of as many MiB, is the staged image. What
the process has grown by at its peak is printed. Exits with 1 if this is more than 4 MiB.
"""

import os
import resource
import sys
import tempfile
from unittest import mock

from glance.async_.flows import parallel_api_image_import as flow

size = int(sys.argv[1]) if sys.argv[1:] else 4096


def most(forget=False):
    """MiB of memory that this process has had at its peak, since it was last told to forget it.

    getrusage() may give the peak of the process that has started this one.
    """
    if forget:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


lengths = []
verifier = mock.Mock(update=lambda chunk: lengths.append(len(chunk)))
with tempfile.NamedTemporaryFile() as staged, mock.patch.object(flow, "_create_upload_verifier", return_value=verifier):
    os.truncate(staged.name, size * 2**20)
    # Rather than all memory of the machine.
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, resource.RLIM_INFINITY))
    before = most(forget=True)
    try:
        flow._verify_staged_image_signature(None, {}, "file://" + staged.name, "image")
    except MemoryError:
        print("MemoryError")
    grown = most() - before
complete = sum(lengths) == size * 2**20
print(f"an image of {size} MiB: {len(lengths)} chunks, complete: {complete}, grown by {grown:.1f} MiB")
sys.exit(grown > 4 or not complete)
