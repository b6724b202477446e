"""Small programs with a system call forbidden: ``python -m tests.denied_worker WORLD PATCHED``.

WORLD is ``native`` or ``green``, which is monkey patched; PATCHED is ``stock`` or ``patched``. Each line of stdin is
what ``tests.filters`` takes, or ``nothing``; it prints what was seen. A filter cannot be taken back, so each has a
separate, forked process with this one's imports and a separate hub.
"""

import importlib
import json
import os
import posix
import signal
import sys
import tempfile
import traceback
import types
import warnings

from tests import filters, programs

warnings.simplefilter("ignore")

#: SIGALRM ends a process that hangs.
SECONDS = 30


def seen(program, subprocess):
    try:
        result = program(subprocess)
        return repr(list(result) if isinstance(result, types.GeneratorType) else result)
    except BaseException as error:
        return f"raises {type(error).__name__}: {error}"


def run(world, patched, denial):
    signal.alarm(SECONDS)
    if denial != "nothing":
        filters.deny(denial)
    if world == "green":
        from eventlet import hubs

        hubs.use_hub()
    chosen = programs.OF_UPSTREAM
    if patched == "patched":
        chosen = chosen + programs.OF_FASTIO + programs.GREEN * (world == "green")
    subprocess = importlib.import_module("subprocess")
    return {program.__name__: seen(program, subprocess) for program in chosen}


def main(world, patched):
    if world == "green":
        import eventlet

        eventlet.monkey_patch()
    import fastio

    if patched == "patched":
        fastio.patch(strict=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as file:
            pid = os.fork()
            if pid == 0:
                try:
                    posix.write(file.fileno(), json.dumps(run(world, patched, line.strip())).encode())
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0)
            _, status = posix.waitpid(pid, 0)
            text = os.pread(file.fileno(), 1 << 20, 0).decode()
        print(text or json.dumps({"ends": status}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
