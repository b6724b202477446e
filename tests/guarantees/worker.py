"""Runs the scenarios, one after the other, and prints what was seen: ``python worker.py WORLD [PATCH ...]``.

WORLD is ``native`` or ``green``, which is monkey patched. The named patches are applied; ``default`` is all of the
default. Each scenario has a separate, forked process with this one's imports and a separate hub. The hub of this
process would be one for all, for an epoll object is shared after a fork, and reports to each of them the events of the
others' files.
"""

import hashlib
import json
import os
import posix
import signal
import sys
import warnings

warnings.simplefilter("ignore")

#: SIGALRM ends a process that hangs.
SECONDS = 30


def plain(value):
    """The same as JSON has it; what is long as its length and its hash."""
    if isinstance(value, (bytes, bytearray, memoryview, str)):
        data = value.encode() if isinstance(value, str) else bytes(value)
        if len(data) > 200:
            return f"{type(value).__name__} of {len(data)}, {hashlib.sha256(data).hexdigest()[:16]}"
        return repr(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float)) else repr(value)


def run(world, scenario):
    signal.alarm(SECONDS)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if world == "green":
        from eventlet import hubs

        hubs.use_hub()
    try:
        return plain(scenario())
    except BaseException as error:
        return f"raises {type(error).__name__}: {error}"


def main(world, names):
    if world == "green":
        import eventlet

        eventlet.monkey_patch()
    import fastio

    if names:
        fastio.patch(None if names == ["default"] else names, strict=True)
    from tests.guarantees.scenarios import SCENARIOS

    found = {}
    for name, (green, scenario) in SCENARIOS.items():
        if green and world != "green":
            continue
        file = os.memfd_create("result")
        pid = os.fork()
        if pid == 0:
            try:
                os.write(file, json.dumps(run(world, scenario)).encode())
            finally:
                os._exit(0)
        _, status = posix.waitpid(pid, 0)
        text = os.pread(file, 1 << 24, 0).decode()
        found[name] = json.loads(text) if text else f"ends with {status}"
        os.close(file)
    print(json.dumps(found))


main(sys.argv[1], sys.argv[2:])
