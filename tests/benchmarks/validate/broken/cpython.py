"""CPython: the standard library's subprocess. What is replaced is the same in Python 3.10 to 3.13."""

from .candidate import Broken

SUBPROCESS = "Lib/subprocess.py"
#: A test that hangs alone as well costs many times the limit.
HANGS = ("--limit", "5")

BROKEN = (
    Broken(
        "writes all input at once, which two full pipes never end",
        SUBPROCESS, "self._input_offset + _PIPE_BUF]", "self._input_offset + (1 << 30)]",
        suite="conformance-native", tests=("EveryByte.test_input_comes_back",), options=HANGS,
    ),
    Broken(
        "loses the end of input that is not a multiple of the chunk",
        SUBPROCESS, "if self._input_offset >= len(self._input):",
        "if self._input_offset >= len(self._input) // _PIPE_BUF * _PIPE_BUF:",
        suite="conformance-native", match="EveryByte",
        tests=("EveryByte.test_input_comes_back", "EveryByte.test_input_as_other_buffers"),
    ),
    Broken(
        "leaves stdin open if there is no input",
        SUBPROCESS, "                if not input:\n                    try:\n",
        "                if input == '':\n                    try:\n",
        suite="conformance-native", tests=("Ends.test_input_that_is_not_there_ends",), options=HANGS,
    ),
    Broken(
        "returns from wait() when the time is out",
        SUBPROCESS, "raise TimeoutExpired(self.args, timeout)\n                    delay",
        "return None\n                    delay",
        suite="conformance-native", tests=("TimeOuts.test_wait",),
    ),
    Broken(
        "forgets what came before a time-out",
        SUBPROCESS, "            if not self._communication_started:\n                self._fileobj2output = {}\n",
        "            if True:\n                self._fileobj2output = {}\n",
        suite="conformance-native", tests=("TimeOuts.test_what_came_before_the_time_out_is_not_lost",),
    ),
    Broken(
        "decodes each piece of text by itself",
        SUBPROCESS, "                stdout = b''.join(stdout)\n",
        """\
                if self.text_mode:
                    stdout = ''.join(part.decode(self.stdout.encoding, 'replace') for part in stdout)
                    stdout = stdout.encode(self.stdout.encoding)
                else:
                    stdout = b''.join(stdout)
""",
        suite="conformance-native", tests=("EveryByte.test_text",),
    ),
    Broken(
        "takes a short read for the end",
        SUBPROCESS,
        "                            if not data:\n                                selector.unregister(key.fileobj)\n",
        "                            if len(data) < 32768:\n"
        "                                selector.unregister(key.fileobj)\n",
        suite="conformance-native", tests=("EveryByte.test_outputs_that_come_now_and_then",),
    ),
    Broken(
        "leaks a descriptor for each child",
        SUBPROCESS, "                os.close(errpipe_read)\n", "                pass\n",
        suite="conformance-native", match="NothingIsLeft",
        tests=("NothingIsLeft.test_by_communicate", "NothingIsLeft.test_by_waiting"),
    ),
    Broken(
        "says that a program is missing without its errno",
        SUBPROCESS, "raise child_exception_type(errno_num, err_msg, err_filename)", "raise OSError(err_msg)",
        suite="conformance-native", tests=("Ends.test_a_program_that_is_not_there",),
    ),
    Broken(
        "spins while a child says nothing",
        SUBPROCESS, "ready = selector.select(timeout)", "ready = selector.select(0)",
        suite="conformance-native", tests=("Waiting.test_costs_no_processor_time",),
    ),
    Broken(
        "raises if a child does not read its input",
        SUBPROCESS,
        "                            except BrokenPipeError:\n                                selector.unregister(",
        "                            except BlockingIOError:\n                                selector.unregister(",
        suite="cpython-native", tests=("ProcessTestCase.test_communicate_epipe",),
    ),
    Broken(
        "copies all output again with each piece",
        SUBPROCESS, "self._fileobj2output[key.fileobj].append(data)",
        "self._fileobj2output[key.fileobj][:] = [b''.join(self._fileobj2output[key.fileobj] + [data])]",
        benchmark="processes/output-both-16MiB", options=("--rounds", "7", "--size", "4MiB"),
    ),
)  # fmt: skip
