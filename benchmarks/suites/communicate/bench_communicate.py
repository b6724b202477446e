"""All output of a child through ``communicate()``: by size, number of large outputs, bytes or text, and mode."""

import itertools

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import KIB, MIB, MODES

SIZES = {"64KiB": 64 * KIB, "1MiB": MIB, "16MiB": 16 * MIB, "200MiB": 200 * MIB}
REFERENCES = ("reference-readall", "reference-readv")


def _case(size: str, streams: str, mode: str, through: str) -> Case:
    what = {"popen": "communicate()", "oslo": "processutils.execute()"}[through]
    outputs = {"stdout": "on stdout", "both": "on stdout and on stderr"}[streams]
    # They read one output, into bytes.
    references = REFERENCES if (streams, mode) == ("stdout", "binary") else ()
    return Case(
        name=f"{through}-{size}-{streams}-{mode}",
        title=f"{what}: {size} {outputs}, {mode}",
        workload="communicate",
        variants=(*MODES, *references),
        parameters={"size": SIZES[size], "total": 64 * MIB, "streams": streams, "mode": mode, "through": through},
        baseline="eventlet-stock",
        quick={"size": min(SIZES[size], MIB), "total": 0},
    )


POPEN = itertools.product(SIZES, ("stdout", "both"), ("binary", "text"), ["popen"])
OSLO = [*itertools.product(SIZES, ["stdout"], ["binary"], ["oslo"]), ("200MiB", "stdout", "text", "oslo")]

CASES = [_case(*choice) for choice in (*POPEN, *OSLO)]


def test_communicate(recorded):
    recorded()
