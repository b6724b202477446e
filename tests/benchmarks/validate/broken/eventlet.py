"""Of eventlet."""

SUBPROCESS = "eventlet/green/subprocess.py"

_WAIT = "    def wait(self, timeout=None, check_interval=0.01):\n"
_METHOD = "    def communicate(self, input=None, timeout=None):\n"

#: file, what is in it, what the candidate has there
DROPS_THE_LAST_BYTE = (
    SUBPROCESS, _WAIT,
    _METHOD + """\
        out, err = super().communicate(input, timeout)
        return out[:-1] if out else out, err

""" + _WAIT,
)  # fmt: skip
IGNORES_THE_TIMEOUT = (
    SUBPROCESS,
    "        if timeout is not None:\n            endtime = time.time() + timeout\n",
    "        timeout = None\n",
)
LEAKS_A_DESCRIPTOR = (
    SUBPROCESS,
    "                    setattr(self, attr, wrapped_pipe)\n",
    "                    setattr(self, attr, wrapped_pipe)\n"
    "                    if attr == 'stdout':\n"
    "                        import os\n"
    "                        os.dup(wrapped_pipe.fileno())\n",
)
STARVES_THE_HUB = (
    SUBPROCESS,
    """\
        _communicate = FunctionType(
            subprocess_orig.Popen._communicate.__code__,
            globals())
""",
    "        _communicate = subprocess_orig.Popen._communicate\n",
)
IS_SLOWER = (
    SUBPROCESS, _WAIT,
    _METHOD + """\
        from time import perf_counter
        began = perf_counter()
        result = super().communicate(input, timeout)
        ended = perf_counter()
        while perf_counter() - ended < ended - began:
            pass
        return result

""" + _WAIT,
)  # fmt: skip
READS_IN_ONE_GO = (
    SUBPROCESS,
    STARVES_THE_HUB[1],
    """\
        class _Hungry:
            def __getattr__(self, name):
                from eventlet.green import os
                return getattr(os, name)

            def read(self, fd, size):
                from eventlet.green import os
                os.set_blocking(fd, True)
                return b"".join(iter(lambda: os.__original_read__(fd, size), b""))

        _communicate = FunctionType(
            subprocess_orig.Popen._communicate.__code__,
            dict(globals(), os=_Hungry()))
""",
)
