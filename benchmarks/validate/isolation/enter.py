"""The first program in a sandbox: it sets the limits, becomes the other user and then runs the command.

``python -IS enter.py JSON COMMAND …``. Only the standard library is there. The JSON has ``limits``, by the names of the
module ``resource``, and ``uid``, which is null where bubblewrap has changed the user already.
"""

import contextlib
import json
import os
import resource
import sys


def main() -> None:
    given = json.loads(sys.argv[1])
    for name, most in given["limits"].items():
        _, hard = resource.getrlimit(getattr(resource, name))
        own = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(getattr(resource, name), (own, own))
    # If the machine runs out of memory, the kernel ends these processes first.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    os.umask(0o022)
    if given["uid"] is not None:
        os.setgroups([])
        os.setresgid(given["uid"], given["uid"], given["uid"])
        os.setresuid(given["uid"], given["uid"], given["uid"])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
