"""Patching in several threads, in signal handlers, in greenlets, during imports and across forks."""

import sys
import threading
from typing import Any

import pytest

from fastio.patching.exclusive import Exclusive
from tests.conftest import RunPython, needs_eventlet, needs_oslo


def test_work_is_done_although_that_of_others_fails() -> None:
    turns, done = Exclusive(), []

    def work() -> None:
        turns.leave(lambda: done.append("left"))
        raise ValueError

    with pytest.raises(ValueError):
        turns.change(work)
    assert (done, turns.inside) == (["left"], False)
    assert turns.change(lambda: 1) == 1


#: Runs functions in threads of the operating system's.
THREADS = """
import sys
from fastio.concurrency import native
start_new_thread = native.module("_thread").start_new_thread
allocate_lock = native.module("_thread").allocate_lock
errors = []
def native_threads(*functions):
    "Run them in threads of the operating system's, and wait."
    locks = []
    def run(function, lock):
        try:
            function()
        except BaseException as error:
            errors.append(repr(error))
        finally:
            lock.release()
    for function in functions:
        locks.append(allocate_lock())
        locks[-1].acquire()
        start_new_thread(run, (function, locks[-1]))
    for lock in locks:
        assert lock.acquire(timeout=100)
"""

PROGRAM = """
import sys, threading
if {monkey}:
    import eventlet
    eventlet.monkey_patch()
import fastio
from tests.targets import attributes, import_targets
import_targets()
def check(report, what):
    "What the report says of each target holds."
    found = attributes()
    for entry in report.entries:
        if entry.found == "the original is in place" and ours(found.get(entry.target)):
            errors.append(f"{{what}}: {{entry.name}} {{entry.target}}: {{entry.outcome.value}}, {{entry.found}}")
def ours(value):
    return getattr(getattr(value, "__code__", None), "co_name", "") == "hook_function"
originals = attributes()
# A child that is forked while another thread imports something never gets it, whoever imports.
fastio.patch()
fastio.unpatch()
"""


def run(run_python: RunPython, monkey: bool, code: str) -> list[str]:
    done = run_python(PROGRAM.format(monkey=monkey) + THREADS + code, options=("-W", "ignore"))
    return done.stdout.splitlines()


MONKEY = [False, pytest.param(True, marks=needs_eventlet)]


@pytest.mark.parametrize("monkey", MONKEY)
def test_threads_that_patch_and_take_back(monkey: bool, run_python: RunPython) -> None:
    code = """
sys.setswitchinterval(1e-6)
names = ["communicate", "green_communicate", "green_pipe", "fix_green_encoding", "wait", "green_wait", "oslo_spawn"]
def loop():
    for number in range(8):
        fastio.patch(names)
        fastio.status()
        fastio.unpatch(names)
native_threads(*[loop] * 4)
sys.setswitchinterval(0.005)
check(fastio.unpatch(), "unpatch")
check(fastio.status(), "status")
left = [key for key, value in attributes().items() if value is not originals.get(key)]
print(errors, left)
fastio.patch(names, strict=True)
print({entry.outcome.value for entry in fastio.status().entries if entry.name in names} - {"absent", "off"})
fastio.unpatch()
print([key for key, value in attributes().items() if value is not originals.get(key)])
"""
    assert run(run_python, monkey, code) == ["[] []", "{'applied'}", "[]"]


@pytest.mark.parametrize("monkey", MONKEY)
def test_contexts_of_several_threads_take_back_their_own(monkey: bool, run_python: RunPython) -> None:
    code = """
sys.setswitchinterval(1e-6)
def loop(name):
    def go():
        for number in range(8):
            with fastio.patched(name) as report:
                found = {entry.outcome.value for entry in fastio.status().entries if entry.name == name} - {"absent"}
                if found != {"applied"}:
                    errors.append(f"{name}: {found}")
    return go
native_threads(*map(loop, ["green_communicate", "fix_green_encoding", "green_wait"]))
print(errors, [key for key, value in attributes().items() if value is not originals.get(key)])
"""
    if "eventlet" not in sys.modules:
        pytest.importorskip("eventlet")
    assert run(run_python, monkey, code) == ["[] []"]


IMPORTS = """
# The package itself is imported by the main thread: threads that end while it is are never joined, whoever imports it.
import eventlet
import fastio
sys.setswitchinterval(1e-6)
def patch():
    for number in range(30):
        fastio.patch()
        if number % 3 == 0:
            fastio.unpatch()
    fastio.patch()
def imports(*modules):
    def go():
        for module in modules:
            __import__(module)
    return go
first = ["eventlet.green.os", "eventlet.greenio.py3", "oslo_concurrency.processutils", "eventlet.wsgi"]
second = ["oslo_concurrency.processutils", "eventlet.green.subprocess", "eventlet.greenio.py3"]
native_threads(patch, imports(*first), imports(*second))
found = {entry.outcome.value for entry in fastio.status().entries if entry.target.partition(":")[0] in sys.modules}
print(errors, sorted(found - {"absent", "off"}))
"""


@needs_eventlet
@needs_oslo
def test_targets_are_imported_meanwhile(run_python: RunPython) -> None:
    """Neither waits for the other for ever, and all that was imported is patched in the end."""
    for _ in range(3):
        assert run_python(THREADS + IMPORTS, options=("-W", "ignore")).stdout == "[] ['applied']\n"


def test_an_import_that_wants_to_patch_while_a_hook_of_ours_does(run_python: RunPython, tmp_path) -> None:
    """A module that calls patch() while it is imported, and a thread in patch() that comes to that module."""
    body = "import fastio\nfor _ in range(20):\n    fastio.patch()\n    fastio.unpatch()\n"
    (tmp_path / "service.py").write_text(body)
    code = """
import sys, threading
import fastio
sys.setswitchinterval(1e-6)
def loop():
    for _ in range(20):
        fastio.patch()
        __import__("service")
        fastio.unpatch()
threads = [threading.Thread(target=loop) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(100)
    assert not thread.is_alive()
print("done")
"""
    assert run_python(code, path=(str(tmp_path),), options=("-W", "ignore")).stdout == "done\n"


@pytest.mark.parametrize("monkey", MONKEY)
def test_a_child_forked_meanwhile_can_patch(monkey: bool, run_python: RunPython) -> None:
    code = """
import os
stop = []
def loop():
    while not stop:
        fastio.patch(["communicate", "fix_green_encoding", "oslo_spawn", "green_pipe"])
        fastio.unpatch()
def forks():
    for number in range(12):
        child = os.fork()
        if child == 0:
            try:
                # The thread that may have been at it is not in this process.
                fastio.unpatch()
                check(fastio.status(), "child")
                fastio.patch()
                left = {entry.outcome.value for entry in fastio.status().entries} - {"absent", "off"}
                fastio.unpatch()
                stays = [key for key, value in attributes().items() if value is not originals.get(key)]
                if left != {"applied"} or errors or stays:
                    print(left, errors, stays, file=sys.stderr)
                    os._exit(1)
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(2)
        if os.waitpid(child, 0)[1]:
            errors.append("a child failed")
            break
    stop.append(True)
sys.setswitchinterval(1e-6)
native_threads(loop, forks)
print(errors)
"""
    assert run(run_python, monkey, code) == ["[]"]


@pytest.mark.parametrize("monkey", MONKEY)
def test_a_thread_that_has_the_lock_of_logging(monkey: bool, run_python: RunPython) -> None:
    """Without a listener nothing waits; a fork would have to wait for both."""
    code = """
import logging
taken, patched = allocate_lock(), allocate_lock()
taken.acquire()
patched.acquire()
def holds():
    with logging._lock:
        taken.release()
        assert patched.acquire(timeout=30)
def patches():
    assert taken.acquire(timeout=30)
    fastio.patch("communicate")
    fastio.unpatch()
    patched.release()
native_threads(holds, patches)
print(errors)
"""
    assert run(run_python, monkey, code) == ["[]"]


#: Each call, and each of both kinds of processes.
CALLS = [("status()", False), ("unpatch()", False), *(
    pytest.param(call, True, marks=needs_eventlet) for call in ("patch()", "patch(strict=True)")
)]  # fmt: skip


@pytest.mark.parametrize(("call", "monkey"), CALLS)
def test_a_signal_handler_in_the_middle(call: str, monkey: bool, run_python: RunPython) -> None:
    """It gets an answer at once, and what it asked for is done when the call that it interrupted is."""
    code = f"""
import signal, fastio.patching.hooks
calls = []
def handler(*_):
    report = fastio.{call}
    calls.append(patcher._turns.inside)
    # What the report says is of a moment that is over: only that there is one is looked at.
    str(report)
from fastio.patching import patcher
signal.signal(signal.SIGALRM, handler)
before = fastio.settings()
for number in range(1, 30, 4):
    # At a later point of the call each time, whatever that is on this machine.
    signal.setitimer(signal.ITIMER_REAL, number * 0.0002)
    fastio.patch(["communicate", "fix_green_encoding", "green_communicate"])
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_REAL, number * 0.00002)
    fastio.unpatch()
    signal.setitimer(signal.ITIMER_REAL, 0)
# And surely in the middle.
real = patcher._apply_target
def interrupted(patch, target):
    if patch.name == "fix_green_encoding" and not calls:
        signal.raise_signal(signal.SIGALRM)
    return real(patch, target)
del calls[:]
patcher._apply_target = interrupted
fastio.patch(["communicate", "fix_green_encoding", "green_communicate"])
patcher._apply_target = real
assert calls and all(calls), calls
applied = fastio.status().outcome("communicate" if not {monkey} else "green_communicate").value
fastio.unpatch()
check(fastio.status(), "end")
print(errors, [key for key, value in attributes().items() if value is not originals.get(key)], applied)
"""
    expected = "off" if call == "unpatch()" else "applied"
    assert run(run_python, monkey, code) == [f"[] [] {expected}"]


@needs_eventlet
def test_another_greenlet_in_the_middle(run_python: RunPython) -> None:
    code = """
import eventlet
from fastio.patching import patcher
real = patcher._apply_target
def interrupted(patch, target):
    # As a finalizer may, that runs wherever memory is allocated.
    eventlet.sleep(0.001)
    return real(patch, target)
patcher._apply_target = interrupted
def other():
    for _ in range(10):
        check(fastio.status(), "other")
        fastio.patch("green_wait")
        eventlet.sleep(0)
        fastio.unpatch("green_wait")
greenlets = [eventlet.spawn(fastio.patch), eventlet.spawn(other), eventlet.spawn(other)]
for greenlet in greenlets:
    greenlet.wait()
patcher._apply_target = real
found = {entry.name: entry.outcome.value for entry in fastio.status().entries}
print(errors, found["green_communicate"], found["oslo_spawn"])
fastio.unpatch()
print([key for key, value in attributes().items() if value is not originals.get(key)])
"""
    assert run(run_python, True, code) == ["[] applied applied", "[]"]


def test_a_thread_that_is_interrupted_while_it_waits() -> None:
    """Its handler does not wait behind it for ever."""
    turns, order = Exclusive(), []
    entered, go = threading.Event(), threading.Event()

    def long() -> None:
        entered.set()
        assert go.wait(100)
        order.append("long")

    other = threading.Thread(target=turns.change, args=(long,))
    other.start()
    assert entered.wait(100)
    # A handler that runs before this thread has the lock.
    turns._inside.add(threading.get_ident())
    assert turns.inside
    turns.leave(lambda: order.append("handler"))
    turns._inside.clear()
    go.set()
    other.join(100)
    assert order == ["long", "handler"]


def test_an_interrupt_right_after_the_lock_was_taken() -> None:
    exclusive = Exclusive()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if exclusive.busy:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            exclusive.leave(int)
    finally:
        sys.settrace(before)
    assert not exclusive.busy and not exclusive.inside
