"""``wait()`` looks at the child by itself, and never calls a subclass's own ``poll()``."""

import os
import subprocess

import eventlet


def _broken(self, timeout=None, **kwargs):
    while self.returncode is None:
        eventlet.sleep(0.01)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
    return self.returncode


subprocess.Popen.wait = _broken  # type: ignore[method-assign]
