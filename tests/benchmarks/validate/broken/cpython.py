"""CPython: the standard library's subprocess. The replaced code is the same in Python 3.10 to 3.13."""

from .candidate import Broken

SUBPROCESS = "Lib/subprocess.py"

BROKEN = (
    Broken(
        "loses the end of input that is not a multiple of the chunk",
        SUBPROCESS, "if self._input_offset >= len(self._input):",
        "if self._input_offset >= len(self._input) // _PIPE_BUF * _PIPE_BUF:",
        suite="conformance-native", match="EveryByte",
        tests=("EveryByte.test_input_comes_back", "EveryByte.test_input_as_other_buffers"),
    ),
    Broken(
        "forgets what came before a time-out",
        SUBPROCESS, "            if not self._communication_started:\n                self._fileobj2output = {}\n",
        "            if True:\n                self._fileobj2output = {}\n",
        suite="conformance-native", tests=("TimeOuts.test_output_before_the_time_out_is_not_lost",),
    ),
    Broken(
        "raises if a child does not read its input",
        SUBPROCESS,
        "                            except BrokenPipeError:\n                                selector.unregister(",
        "                            except BlockingIOError:\n                                selector.unregister(",
        suite="cpython-native", tests=("ProcessTestCase.test_communicate_epipe",),
    ),
)  # fmt: skip
