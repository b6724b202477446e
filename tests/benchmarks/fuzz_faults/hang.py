"""``wait()`` never returns if the child exited with 3."""

import subprocess
import time

_wait = subprocess.Popen._wait  # type: ignore[attr-defined]


def _broken(self, *args, **kwargs):
    status = _wait(self, *args, **kwargs)
    while status == 3:
        time.sleep(0.01)
    return status


subprocess.Popen._wait = _broken  # type: ignore[attr-defined]
