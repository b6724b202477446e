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
        "gives a child its parent's environment, too",
        PROCESSUTILS, "env=env_variables,\n            )",
        "env={**os.environ, **(env_variables or {})},\n            )",
        suite=NATIVE, tests=("Execute.test_environment_is_only_what_is_given",),
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
