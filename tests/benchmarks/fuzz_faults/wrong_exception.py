"""``communicate()`` raises a wrong OSError when its time is up."""

import subprocess

_communicate = subprocess.Popen._communicate  # type: ignore[attr-defined]


def _broken(self, *args):
    try:
        return _communicate(self, *args)
    except subprocess.TimeoutExpired:
        raise OSError("the time is up") from None


subprocess.Popen._communicate = _broken  # type: ignore[attr-defined]
