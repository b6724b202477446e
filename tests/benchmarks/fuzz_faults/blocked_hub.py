"""``wait(timeout)`` blocks the hub."""

import subprocess

import eventlet.patcher

_wait = subprocess.Popen.wait
_sleep = eventlet.patcher.original("time").sleep


def _broken(self, timeout=None, **kwargs):
    if timeout is not None and 0 < timeout < 10 and self.poll() is None:
        _sleep(timeout)
        timeout = 0
    return _wait(self, timeout, **kwargs)


subprocess.Popen.wait = _broken  # type: ignore[method-assign]
