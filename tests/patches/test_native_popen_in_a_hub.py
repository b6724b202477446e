"""The native Popen in a thread that has a hub: upstream's code runs, and other greenlets do when that lets them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio.concurrency import current
from tests.conftest import hide_hub, needs_eventlet
from tests.targets import not_needed

#: Code that makes ``Popen`` the native class in a thread that has a hub, and ``spawn`` and ``sleep`` those of the hub.
SETUPS = {
    "taken before monkey_patch()": """
        from subprocess import Popen
        import eventlet
        eventlet.monkey_patch()
        from eventlet import sleep, spawn
        """,
    "monkey_patch(subprocess=False)": """
        import eventlet
        eventlet.monkey_patch(subprocess=False)
        from eventlet import sleep, spawn
        from subprocess import Popen
        """,
    "gevent": """
        from gevent import monkey
        monkey.patch_time()
        from subprocess import Popen
        from gevent import sleep, spawn
        """,
}

#: The child waits for a greenlet, which runs only if the wait lets it.
CODE = """
import faulthandler, json, subprocess, sys
faulthandler.dump_traceback_later(90, exit=True)
import fastio
from tests.child import Gate, command
gate = Gate()
if sys.argv[1] == "patched":
    fastio.patch(strict=True)

def opens():
    gate.reached(lambda: sleep(0.01))
    gate.open()

def go(steps, use, **options):
    popen = Popen(command(*steps, gate.tell, gate.wait, "exit:3"), pass_fds=gate.fds, **options)
    spawn(opens)
    try:
        result = use(popen)
    except Exception as error:
        result = type(error).__name__
    finally:
        popen.kill()
        popen.wait()
    return result

outputs = {"stdout": -1, "stderr": -1}
print(json.dumps([
    go([], lambda popen: popen.wait(timeout=20)),
    go(["close:1", "close:2"], lambda popen: popen.communicate(timeout=20)[0].decode(), **outputs),
]))
"""


@pytest.mark.parametrize("state", ["stock", "patched"])
@pytest.mark.parametrize("setup", SETUPS)
def test_other_greenlets_run(run_python: Callable[..., Any], setup: str, state: str) -> None:
    pytest.importorskip("gevent" if setup == "gevent" else "eventlet")
    # CPython 3.15 waits with select.poll(), where no greenlet runs, and which eventlet takes away.
    waits_with_poll = not_needed("wait")
    if waits_with_poll and setup == "gevent":
        pytest.skip("upstream lets no greenlet run")
    stock_fails = waits_with_poll and state == "stock"
    code = "\n".join(line.strip() for line in SETUPS[setup].splitlines()) + CODE
    result = run_python(code, state, options=("-W", "ignore"), env={"FASTIO_DISABLED": ""})
    assert json.loads(result.stdout) == (["AttributeError"] * 2 if stock_fails else [3, ""])


HUB = """
import json, sys, threading
setup = sys.argv[1]
import subprocess, time
import fastio
from fastio import counters
from fastio.concurrency import current
fastio.patch(["communicate", "wait"])

def exchanges():
    counters.reset()
    popen = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
    assert popen.communicate(b"x" * 1000) == (b"x" * 1000, None)
    return counters.exchanges

found = [exchanges()]
exec(setup)
found.append(exchanges())
thread = threading.Thread(target=lambda: found.append(exchanges()))
thread.start()
thread.join()
print(json.dumps(found))
"""


@pytest.mark.parametrize("library, get_hub", [("eventlet", "eventlet.hubs.get_hub()"), ("gevent", "gevent.get_hub()")])
def test_only_the_thread_with_the_hub(run_python: Callable[..., Any], library: str, get_hub: str) -> None:
    """Without a monkey patch it is the thread that counts."""
    pytest.importorskip(library)
    assert json.loads(run_python(HUB, f"import {library}; {get_hub}", options=("-W", "ignore")).stdout) == [1, 0, 1]


@needs_eventlet
def test_the_hubs_own_greenlet_has_the_hub() -> None:
    import eventlet
    from eventlet import hubs

    hide_hub()
    assert current.may_block() and current.hub() is None
    seen: list[Any] = []
    hub = hubs.get_hub()
    assert current.hub() is hub
    hub.schedule_call_global(0, lambda: seen.append((current.hub(), current.may_block(), current.is_green())))
    eventlet.sleep(0.01)
    assert seen == [(None, False, True)]


def test_nothing_of_a_library_is_imported(run_python: Callable[..., Any]) -> None:
    code = """
        import sys
        from fastio.concurrency import current
        assert current.may_block() and current.hub() is None and not current.is_green()
        print(sorted(name for name in sys.modules if name.partition(".")[0] in ("eventlet", "gevent", "greenlet")))
        """
    assert run_python(code).stdout == "[]\n"
    assert fastio.status()
