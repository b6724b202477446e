"""``fix_wait_poll``: waiting without ``select.poll()``; test_native_popen_in_a_hub.py does so with the native class."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import needs_eventlet
from tests.targets import not_needed

pytestmark = [needs_eventlet, pytest.mark.skipif(not_needed("fix_wait_poll"), reason="this Python waits without poll")]

CTRL_C = """
import eventlet
eventlet.monkey_patch()
import json, subprocess, sys
from eventlet import hubs
import fastio
from tests.child import Gate, command
if sys.argv[1] == "patched":
    fastio.patch(strict=True)
gate = Gate()
popen = subprocess.Popen(command(gate.tell, gate.wait), pass_fds=gate.fds, stdout=-1, stderr=-1)
main = eventlet.getcurrent()

def interrupts():
    gate.reached(lambda: eventlet.sleep(0.01))
    hubs.get_hub().schedule_call_global(0, main.throw, KeyboardInterrupt)

eventlet.spawn(interrupts)
try:
    popen.communicate()
except BaseException as error:
    print(json.dumps(type(error).__name__))
gate.open()
popen.wait()
"""


@pytest.mark.parametrize("state, error", [("stock", "AttributeError"), ("patched", "KeyboardInterrupt")])
def test_ctrl_c_in_a_green_communicate(run_python: Callable[..., Any], state: str, error: str) -> None:
    result = run_python(CTRL_C, state, options=("-W", "ignore"), env={"FASTIO_DISABLED": ""})
    assert json.loads(result.stdout) == error
