"""A glance-api and a client on two hosts whose clocks disagree: one report, in which no answer precedes its question.

The other host is a separate namespace (unshare(1)): another name, and a monotonic clock that is a day ahead. Its wall
clock is wrong, too.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.backends.base import HOST, ROOT
from benchmarks.backends.glance import Service
from benchmarks.backends.glance_api import Api
from benchmarks.backends.glance_environments import ENVIRONMENTS
from tests.eventually import until

pytest.importorskip("scipy", reason="scipy is not installed")

from fastio.trace.analysis.analysis import Analysis
from tests.glance.reports import reported

SECOND = 1_000_000_000
#: Seconds by which the other host's monotonic clock is ahead.
AHEAD = 86_400
ELSEWHERE = ("unshare", "--uts", "--time", "--monotonic", str(AHEAD), "--fork")
ROUNDS = 10
SIZE = 1 << 20
#: Requests of the test itself: until the service has started, and those that make the image.
OWN = 3

#: Downloads an image again and again. The arguments: glance's URL, ns to add to the wall clock, and the image's id.
_CLIENT = f"""
import sys, time
url, wrong, identity = sys.argv[1], int(sys.argv[2]), sys.argv[3]
right = time.time_ns
time.time_ns = lambda: right() + wrong
import fastio
fastio.patch()
from glanceclient import Client
images = Client("2", endpoint=url, token="nobody").images
for _ in range({ROUNDS}):
    assert sum(map(len, images.data(images.get(identity).id))) == {SIZE}
"""


def elsewhere() -> str:
    """Why there can be no other host here; empty if there can."""
    if shutil.which(ELSEWHERE[0]) is None:
        return "there is no unshare"
    tried = subprocess.run([*ELSEWHERE, "hostname", "elsewhere"], capture_output=True, text=True)
    return f"there can be no separate namespace for the clock: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.mark.parametrize("wrong", [-7_250_000_000, 0, 3_600_000_000_000], ids=["slow", "right", "an hour ahead"])
def test_two_hosts(serve: Callable[..., Service], tmp_path: Path, wrong: int) -> None:
    """With glance 32: uWSGI ends each connection after one answer, without announcing it to the client."""
    reason = elsewhere() or ENVIRONMENTS["glance32"].missing()
    if reason:
        pytest.skip(reason)
    service = serve("glance-32", fastio="on", trace="on")
    image = Api(service.http_port).make(bytes(SIZE))
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)
    # The one that has a glanceclient.
    python = ENVIRONMENTS["glance32"].python()
    command = f"hostname elsewhere && exec {python} {script} http://{HOST}:{service.http_port} {wrong} {image}"
    own = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "FASTIO_TRACE": str(tmp_path / "trace")}
    done = subprocess.run(
        [*ELSEWHERE, "sh", "-c", command], env={**os.environ, **own}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    # The image itself, and its data.
    whole = 2 * ROUNDS

    def complete() -> Analysis | None:
        found = reported(service.traces, tmp_path / "trace")
        requests = found.requests if found else []
        served = [each for each in requests if each.server is not None]
        return found if len(served) >= whole + OWN else None

    analysis = until(complete)
    assert analysis.problems == []
    clocks = analysis.alignment.corrections
    (there,) = [each for name, each in clocks.items() if name.startswith("elsewhere")]
    (here,) = [each for name, each in clocks.items() if not name.startswith("elsewhere")]
    # The same moment on both clocks.
    apart = there.time(here.middle + AHEAD * SECOND) - here.time(here.middle)
    settled = there if there.high is not None else here
    assert settled.low is not None and settled.high is not None
    assert abs(apart) <= settled.high - settled.low < SECOND
    assert bool(analysis.alignment.wrong_before) == bool(wrong)
    both = [each for each in analysis.requests if each.client is not None and each.server is not None]
    assert len(both) >= whole
    for each in both:
        assert each.client.start <= each.server.start <= each.client.finish
        assert each.client.process.host == "elsewhere" != each.server.process.host
