"""CPython: the standard library's subprocess. The replaced code is the same in Python 3.10 to 3.13."""

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
        "forgets what came before a time-out",
        SUBPROCESS, "            if not self._communication_started:\n                self._fileobj2output = {}\n",
        "            if True:\n                self._fileobj2output = {}\n",
        suite="conformance-native", tests=("TimeOuts.test_output_before_the_time_out_is_not_lost",),
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
        "says that a program is missing without its errno",
        SUBPROCESS, "raise child_exception_type(errno_num, err_msg, err_filename)", "raise OSError(err_msg)",
        suite="conformance-native", tests=("Ends.test_a_program_that_is_not_there",),
    ),
    Broken(
        "raises if a child does not read its input",
        SUBPROCESS,
        "                            except BrokenPipeError:\n                                selector.unregister(",
        "                            except BlockingIOError:\n                                selector.unregister(",
        suite="cpython-native", tests=("ProcessTestCase.test_communicate_epipe",),
    ),
)  # fmt: skip
