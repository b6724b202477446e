"""oslo.concurrency: processutils.execute()."""

from .candidate import Broken

PROCESSUTILS = "oslo_concurrency/processutils.py"
NATIVE = "conformance-native"

BROKEN = (
    Broken(
        "ignores the time-out",
        PROCESSUTILS, "obj.communicate(process_input, timeout=timeout)", "obj.communicate(process_input)",
        # A test that hangs alone as well costs many times the limit.
        suite=NATIVE, tests=("Execute.test_time_out",), options=("--limit", "5"),
    ),
    Broken(
        "takes the time-out for milliseconds",
        PROCESSUTILS, "obj.communicate(process_input, timeout=timeout)",
        "obj.communicate(process_input, timeout=timeout and timeout / 1000)",
        suite=NATIVE, tests=("Execute.test_no_time_out_where_there_is_time",),
    ),
    Broken(
        "lets programs ignore a broken pipe",
        PROCESSUTILS, "signal.signal(signal.SIGPIPE, signal.SIG_DFL)", "signal.signal(signal.SIGPIPE, signal.SIG_IGN)",
        suite=NATIVE, tests=("Execute.test_a_broken_pipe_is_the_signal_that_programs_expect",),
    ),
    Broken(
        "strips the output",
        PROCESSUTILS, "                return (stdout, stderr)\n            else:",
        "                return (stdout.strip(), stderr.strip())\n            else:",
        suite=NATIVE, tests=("Execute.test_text",),
    ),
    Broken(
        "looks at the first of the allowed exit codes only",
        PROCESSUTILS, "_returncode not in check_exit_code:", "_returncode != next(iter(check_exit_code)):",
        suite=NATIVE, tests=("Execute.test_exit_status_and_what_was_said",),
    ),
    Broken(
        "gives a child its parent's environment, too",
        PROCESSUTILS, "env=env_variables,\n            )",
        "env={**os.environ, **(env_variables or {})},\n            )",
        suite=NATIVE, tests=("Execute.test_environment_is_only_what_is_given",),
    ),
    Broken(
        "cuts input to what fits into a pipe",
        PROCESSUTILS, "process_input = encodeutils.to_utf8(process_input)",
        "process_input = encodeutils.to_utf8(process_input)[:65536]",
        suite=NATIVE, match="Execute", tests=("Execute.test_input_comes_back", "Execute.test_text"),
    ),
    Broken(
        "leaks a descriptor if a command fails",
        PROCESSUTILS, "                _stdout, _stderr = result\n                stdout = os.fsdecode(_stdout)\n"
        "                stderr = os.fsdecode(_stderr)\n                sanitized_stdout",
        "                _stdout, _stderr = result\n                os.open(os.devnull, os.O_WRONLY)\n"
        "                stdout = os.fsdecode(_stdout)\n"
        "                stderr = os.fsdecode(_stderr)\n                sanitized_stdout",
        suite=NATIVE, tests=("NothingIsLeft.test_by_execute_that_fails",),
    ),
    Broken(
        "sets another limit than the number of files",
        PROCESSUTILS, '"number_files": "--nofile"', '"number_files": "--nproc"',
        suite="oslo-native", tests=("PrlimitTestCase.test_number_files",),
    ),
    Broken(
        "does not import",
        PROCESSUTILS, "from oslo_utils import timeutils\n", "from oslo_utils import timeutil as timeutils\n",
        suite=NATIVE, match="Execute.test_attempts", tests=("_FailedTest.conformance_execute",), stock="missing",
    ),
)  # fmt: skip
