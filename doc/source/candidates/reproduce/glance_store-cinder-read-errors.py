"""glance_store 5.6 and 5.7: an error while an image is read from its volume is taken for the end of the image.

No server is needed. The third chunk of a volume cannot be read. Exits with 1 if there is no error.
"""

import errno
import sys

from glance_store._drivers.cinder import store as cinder


def volume():
    yield b"first"
    yield b"second"
    raise OSError(errno.EIO, "Input/output error")


chunks = []
try:
    for chunk in cinder.CinderVolumeIterator(volume()):
        chunks.append(chunk)
except OSError as error:
    print(f"after {chunks}: {error}")
    sys.exit(0)
print(f"the image is {chunks}, and there is no error")
sys.exit(1)
