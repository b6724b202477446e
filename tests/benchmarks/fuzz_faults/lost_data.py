"""``communicate()`` loses the last byte of an output of more than 100 bytes."""

import subprocess

_communicate = subprocess.Popen._communicate  # type: ignore[attr-defined]


def _broken(self, *args):
    outputs = _communicate(self, *args)
    return tuple(data[:-1] if data and len(data) > 100 else data for data in outputs)


subprocess.Popen._communicate = _broken  # type: ignore[attr-defined]
