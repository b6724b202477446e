"""Candidates for eventlet that are broken on purpose, and one that does nothing, from a diff to the report.

Minutes each, so only ``tox -e validate-tests`` runs them. The first run fetches what it needs; those after it have no
network.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.validate.command import Validate, validate_tests

validate_tests()

SUBPROCESS, PIPES = "eventlet/green/subprocess.py", "eventlet/greenio/py3.py"

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
DOES_NOTHING = (PIPES, "# TODO get rid of this", "# TODO: get rid of this")


@pytest.fixture(scope="module")
def validate(tmp_path_factory):
    return Validate("eventlet", tmp_path_factory.mktemp("validate"))


@pytest.mark.parametrize(
    ("candidate", "options", "tests"),
    [
        (DROPS_THE_LAST_BYTE, [], ["EveryByte.test_output_of_communicate", "Execute.test_output"]),
        # A test that hangs alone as well costs many times the limit.
        (IGNORES_THE_TIMEOUT, ["--limit", "5", "--match", "TimeOuts"], ["TimeOuts.test_wait"]),
        (LEAKS_A_DESCRIPTOR, [], ["NothingIsLeft.test_by_communicate", "NothingIsLeft.test_by_execute"]),
        (STARVES_THE_HUB, [], ["OthersRun.test_while_a_child_says_nothing"]),
        (READS_IN_ONE_GO, ["--match", "OthersRun"], ["OthersRun.test_while_much_data_comes"]),
    ],
    ids=[
        "drops the last byte", "ignores the timeout", "leaks a descriptor", "starves the hub", "reads in one go",
    ],
)  # fmt: skip
def test_what_breaks_is_caught_and_named(validate, candidate, options, tests):
    diff = validate.diff(*candidate)
    suite_only = ["--no-fastio", "--suite", "conformance-green", "--benchmarks", "none"]
    done, raw = validate("--candidate", diff, *suite_only, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    (suite,) = raw["pythons"][0]["suites"]
    failing = {each["test"] for each in suite["differences"] if each["verdict"] == "newly fails"}
    for test in tests:
        assert any(each.endswith("." + test) for each in failing), (test, failing, done.stdout)
        assert f"{test}: pass -> " in done.stdout


def test_wrong_data_in_a_benchmark_is_named(validate):
    diff = validate.diff(*DROPS_THE_LAST_BYTE)
    case = "communicate/popen-1MiB-stdout-binary"
    done, raw = validate(
        "--candidate", diff, "--no-fastio", "--suite", "none", "--benchmarks", case, "--rounds", "1"
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"candidate: {case} (eventlet): WRONG DATA" in done.stdout


def test_what_is_twice_as_slow_is_named(validate):
    diff = validate.diff(*IS_SLOWER)
    case = "communicate/popen-16MiB-stdout-binary"
    options = ["--no-fastio", "--suite", "none", "--benchmarks", case, "--rounds", "21"]
    done, raw = validate("--candidate", diff, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    (row,) = raw["pythons"][0]["rows"]
    assert (row["verdict"], row["failure"]) == ("slower", True)
    assert f"candidate: {case} (eventlet): slower" in done.stdout


def test_one_that_does_nothing_is_no_difference(validate):
    diff = validate.diff(*DOES_NOTHING)
    options = ["--no-fastio", "--suite", "conformance-green,oslo-green"]
    case = "communicate/popen-16MiB-stdout-binary"
    done, raw = validate("--candidate", diff, *options, "--benchmarks", case)
    if not raw["pythons"][0]["rows"][0]["verdict"].startswith("noise"):
        # Chance alone does that once in a hundred times.
        done, raw = validate("--candidate", diff, *options, "--benchmarks", case)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No difference from stock" in done.stdout
    verdicts = [each["verdict"] for suite in raw["pythons"][0]["suites"] for each in suite["differences"]]
    assert set(verdicts) <= {"flaky"}


def test_fastio_itself_passes(validate):
    # So much faster that no other load hides it.
    done, raw = validate("--suite", "conformance-green", "--benchmarks", "input/popen-16MiB")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = raw["pythons"][0]["rows"]
    assert (row["variant"], row["verdict"]) == ("fastio", "faster")
