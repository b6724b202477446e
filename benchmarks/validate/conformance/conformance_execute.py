"""Guarantees of ``processutils.execute()``; its own tests have small outputs and miss lost data."""

from typing import Any

from conformance_processes import INPUT_SIZES, SIZES, Case, data_of, time_out
from oslo_concurrency import processutils


class Execute(Case):
    def test_output(self):
        for size in SIZES:
            data = data_of(size)
            out, err = processutils.execute("cat", self.file_of(data), binary=True)
            self.assertSame(out, data, f"{size} bytes of output")
            self.assertEqual(err, b"")

    def test_input_comes_back(self):
        for size in INPUT_SIZES:
            data = data_of(size)
            self.assertSame(processutils.execute("cat", process_input=data, binary=True)[0], data, f"{size} bytes")

    def test_output_through_a_shell(self):
        data = data_of(1 << 20)
        self.assertSame(processutils.execute(f"cat {self.file_of(data)}", shell=True, binary=True)[0], data, "shell")

    def test_text(self):
        text = "line äöß 漢字\n" * 10_000
        out, err = processutils.execute("cat", process_input=text)
        # Not assertEqual(): a diff of so many lines takes longer than a test may.
        self.assertSame(out.encode(errors="surrogateescape"), text.encode(), "text")
        self.assertEqual(err, "")

    def test_exit_status_and_what_was_said(self):
        with self.assertRaises(processutils.ProcessExecutionError) as caught:
            processutils.execute("sh", "-c", "echo out; echo err >&2; exit 7")
        error = caught.exception
        self.assertEqual((error.exit_code, error.stdout, error.stderr), (7, "out\n", "err\n"))
        processutils.execute("sh", "-c", "exit 7", check_exit_code=[0, 7])

    def test_attempts(self):
        made: list[Any] = []
        with self.assertRaises(processutils.ProcessExecutionError):
            processutils.execute("false", attempts=3, delay_on_retry=False, on_execute=made.append)
        self.assertEqual(len(made), 3)

    def test_time_out(self):
        # A release without the argument cannot be asked for it.
        try:
            found = time_out(processutils.execute, "sleep", "60", timeout=1)
        except processutils.UnknownArgumentError:
            self.skipTest("this release has no timeout")
        self.assertIsNotNone(found, "execute() returned")

    def test_no_time_out_where_there_is_time(self):
        try:
            found = processutils.execute("sh", "-c", "sleep 0.3; echo done", timeout=60)
        except processutils.UnknownArgumentError:
            self.skipTest("this release has no timeout")
        self.assertEqual(found, ("done\n", ""))

    def test_a_broken_pipe_is_the_signal_that_programs_expect(self):
        found = processutils.execute("sh", "-c", "yes | head -n 1; echo done", check_exit_code=False)
        # A child that ignores the signal prints that first.
        self.assertEqual(found, ("y\ndone\n", ""))

    def test_environment_and_directory(self):
        out, _ = processutils.execute(
            "/bin/sh", "-c", "echo $ASKED; pwd", env_variables={"ASKED": "yes", "PATH": "/usr/bin:/bin"}, cwd="/"
        )
        self.assertEqual(out, "yes\n/\n")

    def test_environment_is_only_what_is_given(self):
        out, _ = processutils.execute("/usr/bin/env", env_variables={"ASKED": "yes"})
        self.assertEqual(out, "ASKED=yes\n")


class NothingIsLeft(Case):
    def test_by_execute(self):
        self.assertNothingLeft(lambda: processutils.execute("echo", "x"))

    def test_by_execute_that_fails(self):
        def once():
            with self.assertRaises(processutils.ProcessExecutionError):
                processutils.execute("false")

        self.assertNothingLeft(once)
