"""``oslo_spawn``: commands of oslo.concurrency are started without a copy of the parent's page tables.

``processutils.execute()`` always passes a ``preexec_fn``. This forces ``fork`` where ``vfork`` would be enough. In a
process with a large heap, the fork takes most of the time of a short command. Unless the caller gave a function,
oslo.concurrency's only restores SIGPIPE. Popen restores SIGPIPE itself (``restore_signals``). The patch drops the
function in exactly this case: if it is oslo.concurrency's own, its code is known, it calls no function of the caller's,
and signals are restored.

Differences: handlers of ``os.register_at_fork`` do not run for such a command. They prepare a forked Python process
to go on, and here no Python process goes on. Where CPython starts a command without ``preexec_fn`` by ``posix_spawn``
(3.13), glibc's two internal signals (32 and 33) stay ignored in the command.
"""

import functools
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.counters import Reason
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import KNOWN, Uses
from fastio.patching.registry import Patch

_counts = counters.of(__name__)

_SETUP = "oslo_concurrency.processutils:_subprocess_setup"


def needless(preexec_fn: Any, restore_signals: bool, setup: Callable[..., Any]) -> bool:
    """Whether the child is the same without ``preexec_fn``; ``setup`` is what oslo.concurrency passes one by."""
    # By identity: what a caller gave need be neither hashable nor comparable.
    return (
        restore_signals
        and type(preexec_fn) is functools.partial
        and preexec_fn.func is setup
        and len(preexec_fn.args) == 1
        and preexec_fn.args[0] is None
        and not preexec_fn.keywords
    )


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._execute_child``; Popen calls it with positional arguments only."""
    setup = hook.relied_on[_SETUP]
    import inspect

    parameters = list(inspect.signature(hook.original).parameters)
    preexec_fn = parameters.index("preexec_fn") - 1
    restore_signals = parameters.index("restore_signals") - 1

    def _execute_child(self: Any, *args: Any) -> Any:
        if needless(args[preexec_fn], args[restore_signals], setup):
            _counts.took()
            args = (*args[:preexec_fn], None, *args[preexec_fn + 1 :])
        elif args[preexec_fn] is not None:
            _counts.fell_back(Reason.PREEXEC_FN)
        return wrapped(self, *args)

    return _execute_child


_USES = Uses(
    "self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, p2cread, "
    "p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, *_",
    "preexec_fn",
)
#: The function that is left out has to be known.
_RELIES_ON = {_SETUP: KNOWN}

PATCH = Patch(
    __name__,
    summary="oslo.concurrency's commands: vfork instead of fork where its preexec_fn has nothing to do",
    changes="handlers of os.register_at_fork do not run for oslo.concurrency's commands, and with "
    "Python 3.13 they ignore glibc's two internal signals",
    targets=(
        _popen.native_target(make, "_execute_child", _USES, relies_on=_RELIES_ON),
        _popen.green_target(make, "_execute_child", _USES, relies_on=_RELIES_ON),
    ),
)
