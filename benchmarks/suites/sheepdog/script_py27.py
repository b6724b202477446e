# ruff: noqa: UP004, UP010, UP024, UP031
"""The sheepdog case as it was in 2016: ``python2.7 script_py27.py VARIANT JSON``, with eventlet 0.17.4.

A script of its own, because Python 2.7 cannot import the rest; it keeps to the protocol of
benchmarks/harness/worker.py. What it needs of the rest (payload, stand-in) a Python 3 prepares, which the parameter
``python3`` names.
"""

from __future__ import print_function

import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time

#: Bytes per read of the patch of the time.
PATCHED_READ = 100 * 1024 * 1024


def cpu_seconds():
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_memory():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as clear_refs:
            clear_refs.write("5")
    except IOError:
        pass


class CountingOs(object):
    """The ``os`` module as ``subprocess`` sees it: counts its reads of data, and may ask for more at once."""

    def __init__(self, module, read_size=None):
        self.__dict__.update(vars(module))
        self.reads = 0
        original = module.read

        def read(fd, size):
            # Other reads than those of the loop are of other sizes.
            data = original(fd, read_size if read_size and size == 1024 else size)
            self.reads += bool(data)
            return data

        self.read = read


def enter(variant):
    """Make the process what the variant says; returns the counter of its reads."""
    if variant == "native":
        counting = subprocess.os = CountingOs(os)  # type: ignore[attr-defined]
        return counting
    import eventlet

    eventlet.monkey_patch()
    from eventlet.green import os as green_os
    from eventlet.green import subprocess as green_subprocess

    read_size = PATCHED_READ if variant == "eventlet-100MiB-reads" else None
    counting = CountingOs(green_os, read_size)
    # eventlet has copied the code of _communicate into this namespace.
    green_subprocess.os = counting
    return counting


def main(variant, parameters):
    if variant not in ("native", "eventlet", "eventlet-100MiB-reads"):
        raise SystemExit("no variant %r" % variant)
    prepared = json.loads(
        subprocess.check_output(
            [parameters["python3"], "-m", "benchmarks.suites.sheepdog.workload", json.dumps(parameters)]
        ).decode()
    )
    os.environ.update({str(name): str(value) for name, value in prepared["environment"].items()})
    counting = enter(variant)
    from oslo_concurrency import processutils

    outputs = []
    reset_peak()
    memory, cpu, start = peak_memory(), cpu_seconds(), time.time()
    for command in prepared["commands"]:
        outputs.append(processutils.execute(*command)[0])
    seconds = time.time() - start
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds() - cpu,
        "peak_memory": peak_memory() - memory,
        "reads": counting.reads,
        "bytes": sum(map(len, outputs)),
        "python": platform.python_version(),
    }
    digest = hashlib.sha256()
    for output in outputs:
        digest.update(output)  # type: ignore[arg-type]
    result["verified"] = digest.hexdigest() == prepared["sha256"]
    if variant != "native":
        import eventlet

        result["eventlet"] = eventlet.__version__
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
