"""Another greenlet closes the streams of a Popen while ``communicate()`` waits in eventlet's hub."""

import os
import subprocess
import sys

import pytest

from tests.conftest import needs_eventlet

pytestmark = needs_eventlet

HUBS = ["epolls", "poll", "selects", "asyncio"]
START = """
import os, sys
import eventlet
from eventlet.green import subprocess
if sys.argv[1] == "patched":
    import fastio
    assert fastio.patch().outcome("green_communicate").value == "applied"

def outcome(function):
    try:
        with eventlet.Timeout(5):
            return function()
    except eventlet.Timeout:
        return "never returns"
    except Exception as error:
        return type(error).__name__, *error.args[:1]
"""
#: Each prints what ``communicate()`` returns or raises.
PROGRAMS = {
    # The child begins to read after the close, and so another turn of the hub begins.
    "close-stdout": """
popen = subprocess.Popen(["sh", "-c", "sleep 0.3; cat > /dev/null"], stdin=-1, stdout=-1)
eventlet.spawn_after(0.1, popen.stdout.close)
print(outcome(lambda: popen.communicate(bytes(1 << 24))), flush=True)
os._exit(0)
""",
    "close-stdin": """
popen = subprocess.Popen(["sh", "-c", "sleep 0.3; echo x; sleep 0.1; echo y"], stdin=-1, stdout=-1)
eventlet.spawn_after(0.1, popen.stdin.close)
print(outcome(lambda: popen.communicate(bytes(1 << 24))), flush=True)
os._exit(0)
""",
}


def run(program: str, hub: str, mode: str) -> str:
    environ = {**os.environ, "EVENTLET_HUB": hub, "EVENTLET_NO_GREENDNS": "yes", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", START + program, mode]
    return subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=60).stdout


@pytest.mark.parametrize("hub", HUBS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_outcome_is_upstreams(name: str, hub: str) -> None:
    # On a busy machine upstream may come to the closed stream in another step, and then raises another error.
    stock, patched = set(), set()
    for _ in range(5):
        stock.add(run(PROGRAMS[name], hub, "stock"))
        patched.add(run(PROGRAMS[name], hub, "patched"))
        if stock & patched:
            break
    assert stock & patched and "" not in stock | patched
