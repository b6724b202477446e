"""Where the image is, and what a command costs that fetches or sends it: what all rows of this suite share."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.backends.base import server_environment
from benchmarks.harness.modes import choice
from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.harness.worker import MULTIHASH, cache_directory, command_digest, surroundings

#: Seconds between two samples of the load.
SAMPLE = 0.1
#: requests prefers these over the certificate that it is given.
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Source(NamedTuple):
    """Where the image is."""

    url: str
    image: str
    #: of the server, for HTTPS
    certificate: str | None


def source(parameters: Mapping[str, Any]) -> Source:
    told = surroundings()
    image = told["prepared"]["image"]
    if choice(parameters, "scheme", "http", "https") == "http":
        return Source(told["access"]["url"], image, None)
    return Source(told["access"]["https_url"], image, told["access"]["certificate"])


def environment() -> dict[str, str]:
    """Of the commands: glanceclient's keeps schemas in the home directory, and nothing else configures openstack's."""
    home = cache_directory() / "glanceclient"
    home.mkdir(exist_ok=True)
    inherited = server_environment({"HOME": str(home), "PYTHONWARNINGS": "ignore"})
    return {name: value for name, value in inherited.items() if name not in CA_VARIABLES and not name.startswith("OS_")}


def written(command: Sequence[str]) -> str:
    """The SHA-512 of what the command writes."""
    return command_digest(command, MULTIHASH, env=environment(), stderr=subprocess.DEVNULL)


def timed(command: Sequence[str], servers: Sequence[int] = ()) -> dict[str, Any]:
    """Time and CPU time of a command, and its load over time; with ``servers`` also those of these processes.

    :raises RuntimeError: if it fails, with what it said
    """
    with tempfile.TemporaryFile() as said:
        before = server_cpu_seconds(list(servers))
        start = time.perf_counter()
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=said)
        samples, server_samples = [(0.0, 0.0)], [(0.0, 0.0)]

        def sampled() -> None:
            server_samples.append((time.perf_counter() - start, server_cpu_seconds(list(servers)) - before))

        try:
            with os.fdopen(os.pidfd_open(process.pid), "rb", buffering=0) as ended:
                while not select.select([ended], [], [], SAMPLE)[0]:
                    # Of one that ends just now the system may tell nothing any more.
                    spent = max(samples[-1][1], server_cpu_seconds([process.pid]))
                    samples.append((time.perf_counter() - start, spent))
                    if servers:
                        sampled()
        finally:
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        sampled()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}\n{said.read().decode()}")
    cpu = usage.ru_utime + usage.ru_stime
    samples.append((seconds, cpu))
    figures = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "load_percent": 100 * cpu / seconds,
        "load": load(samples),
    }
    if servers:
        figures.update(server_cpu_seconds=server_samples[-1][1], server_load=load(server_samples))
    return figures


def load(samples: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Seconds, and percent of one processor since the sample before, of samples of seconds and CPU seconds."""
    pairs = zip(samples, samples[1:])  # noqa: B905 (the second is one shorter)
    return [
        [round(after, 3), round(100 * max(0.0, spent - before) / (after - start), 1)]
        for (start, before), (after, spent) in pairs
        if after > start
    ]
