"""eventlet: the green subprocess, its pipes, sockets and WSGI server."""

from .candidate import Broken

SUBPROCESS, PIPES = "eventlet/green/subprocess.py", "eventlet/greenio/py3.py"
SOCKETS, WSGI = "eventlet/greenio/base.py", "eventlet/wsgi.py"
GREEN = "conformance-green"
#: A test that hangs alone as well costs many times the limit.
HANGS = ("--limit", "5")

_WAIT = "    def wait(self, timeout=None, check_interval=0.01):\n"
_METHOD = "    def communicate(self, input=None, timeout=None):\n"
_GREEN_COMMUNICATE = """\
        _communicate = FunctionType(
            subprocess_orig.Popen._communicate.__code__,
            globals())
"""

DROPS_THE_LAST_BYTE = Broken(
    "drops the last byte",
    SUBPROCESS, _WAIT,
    _METHOD + """\
        out, err = super().communicate(input, timeout)
        return out[:-1] if out else out, err

""" + _WAIT,
    suite=GREEN, match="test_output", tests=("EveryByte.test_output_of_communicate", "Execute.test_output"),
)  # fmt: skip

BROKEN = (
    DROPS_THE_LAST_BYTE,
    Broken(
        "ignores the time-out",
        SUBPROCESS, "        if timeout is not None:\n            endtime = time.time() + timeout\n",
        "        timeout = None\n",
        suite=GREEN, tests=("TimeOuts.test_wait",), options=HANGS,
    ),
    Broken(
        "leaks a descriptor",
        SUBPROCESS, "                    setattr(self, attr, wrapped_pipe)\n",
        "                    setattr(self, attr, wrapped_pipe)\n"
        "                    if attr == 'stdout':\n"
        "                        import os\n"
        "                        os.dup(wrapped_pipe.fileno())\n",
        suite=GREEN, match="NothingIsLeft",
        tests=("NothingIsLeft.test_by_communicate", "NothingIsLeft.test_by_execute"),
    ),
    Broken(
        "starves the hub",
        SUBPROCESS, _GREEN_COMMUNICATE, "        _communicate = subprocess_orig.Popen._communicate\n",
        suite=GREEN, tests=("OthersRun.test_while_a_child_says_nothing",),
    ),
    Broken(
        "is twice as slow",
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
        benchmark="processes/output-popen-16MiB", options=("--rounds", "21"),
    ),
    Broken(
        "takes a short read for the end",
        PIPES,
        "                if chunk == b'':\n                    return b''.join(buf)\n"
        "                buf.append(chunk)\n",
        "                buf.append(chunk)\n"
        "                if len(chunk) < DEFAULT_BUFFER_SIZE:\n                    return b''.join(buf)\n",
        suite=GREEN, tests=("EveryByte.test_read_of_what_comes_now_and_then",),
    ),
    Broken(
        "spins while it waits for a child",
        SUBPROCESS, "                eventlet.sleep(check_interval)\n", "                eventlet.sleep(0)\n",
        suite=GREEN, tests=("Waiting.test_costs_no_processor_time",),
    ),
    Broken(
        "loses what a socket has not taken",
        SOCKETS, "            tail += self.send(data[tail:], flags)\n",
        "            self.send(data[tail:], flags)\n            tail = len_data\n",
        suite=GREEN, tests=("Sockets.test_every_byte_of_sendall",),
    ),
    Broken(
        "takes an upload that broke off for a whole one",
        WSGI, '                        raise OSError("unexpected end of file while parsing chunked data")\n',
        "                        break\n",
        suite="eventlet", tests=("TestHttpd.test_aborted_chunked_post",),
    ),
)  # fmt: skip
