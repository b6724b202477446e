"""Every call in fastio that may wait, found in its source, and why none of them can hold a hub.

A wait in the kernel on a thread that has a hub stops every greenlet of it, so each of them was looked at. A new one
fails ``tests/test_hub.py`` until it is on one of these lists, with its reason.
"""

import ast
import pathlib
from collections.abc import Iterator

import fastio

ROOT = pathlib.Path(fastio.__file__).parent

#: Methods and functions that wait, or do so with some arguments.
WAITING = frozenset({
    "accept", "acquire", "communicate", "connect", "flock", "join", "lockf", "poll", "readv", "recv", "run", "select",
    "sendall", "sendfile", "sleep", "wait", "wait3", "wait4", "wait_for_complete", "wait_for_complete_and_cb", "waitid",
    "waitpid",
})  # fmt: skip

#: Calls that only have the name: of a function of ours, or of a setting.
NOT_WAITING = {
    ("trace/wsgi.py:traced.trace", "_Request(environ, *names).run(application, start_response)"): "the application",
    ("patches/subprocess/_popen.py:replacement._communicate",
     "communicate(self, input, endtime, orig_timeout, dialect, mode, counts)"): "see _popen.communicate",
    ("patching/places.py:find.look", "accept(value)"): "a question about a function",
}  # fmt: skip

#: Calls that return at once, whatever comes: on any thread.
AT_ONCE = {
    ("drivers/_process.py:_reap", "popen.poll()"): "WNOHANG",
    ("concurrency/hub_wait.py:HubWaiter.exited", "popen.poll()"): "WNOHANG",
    ("drivers/_process.py:Child.stop", "self._popen.poll()"): "WNOHANG",
    ("concurrency/child_exit.py:open_pidfd", "os.waitid(os.P_PID, pid, _WAITABLE)"): "WNOHANG is in _WAITABLE",
    ("patches/eventlet/fix_green_pipelines.py:_other_end_is_gone", "poll.poll(0)"): "no time at all",
    ("concurrency/current.py:is_idle", "poll(0)"): "no time at all",
    ("io/file_sending.py:send", "os.sendfile(out, file, position, count)"):
        "the socket does not block, or the thread may (uploads.py: current.may_block()); in a process with a hub a "
        "worker's turn has fetched the bytes into memory; in transfers.py they are in memory, or the thread may wait",
    ("io/drain.py:Drain.move", "os.readv(self.fd, [buffer[:size]])"):
        "the selector has said that it is readable, as before upstream's os.read()",
    ("patches/eventlet/green_pipe.py:make_readinto.readinto", "os.readv(self._fileno, [b])"):
        "a GreenPipe's descriptor does not block",
}  # fmt: skip

#: Calls that let the other greenlets run, or go to a function that is elsewhere on these lists.
IN_THE_HUB = {
    ("io/exchange.py:exchange", "selector.wait(peer.remaining())"): "HubSelector under eventlet, else NativeSelector",
    ("concurrency/handover.py:Handover.take", "self._there.acquire()"):
        "greenlets' own where there is a hub: s3_ranges and http_ranges look at threads_are_green()",
    ("io/hashing.py:BackgroundHash._hand_over", "mark.wait()"): "the event that new_event() makes",
    ("concurrency/threads.py:Mark.wait", "self._event.wait(PATIENCE)"): "the event that new_event() makes",
    ("concurrency/threads.py:Worker.finish", "mark.wait()"): "the event that new_event() makes",
    ("concurrency/offload.py:_wait", "mark.wait()"): "the event that new_event() makes",
    ("concurrency/hub_wait.py:HubWaiter.until", "eventlet.sleep(interval)"): "eventlet's",
    ("concurrency/hub_wait.py:HubWaiter.opened", "eventlet.sleep(0)"): "eventlet's",
    ("concurrency/hub_wait.py:HubWaiter.apart", "working.wait()"): "a greenlet's",
    ("concurrency/pace.py:Pace.yield_to_hub", "sleep(0)"): "eventlet's",
    ("run_dir.py:_make", "run(*call)"): "a worker's; or this thread's as the process ends",
    ("run_dir.py:_close", "run(*call)"): "see _make",
    ("run_dir.py:_unlink", "run(*call)"): "see _make",
    ("run_dir.py:_names", "run(*call)"): "see _make",
    ("io/image_files.py:_File.write", "offload.run(*call)"): "a worker's",
    ("io/image_files.py:fetch", "offload.run(*call)"): "a worker's",
    ("patches/subprocess/_popen.py:communicate", "popen.wait(timeout=dialect.remaining(popen, endtime))"):
        "upstream's, or see wait.py and green_wait.py",
    ("patches/glance_store/store_rbd.py:_Request.wait",
     "offload.run(self.completion.wait_for_complete_and_cb)"): "a worker's",
    ("patches/glance_store/store_rbd.py:GreenReads.read", "request.wait()"): "a worker's",
    ("patches/glance_store/store_rbd.py:WriteBehind._settle", "request.wait()"): "a worker's",
}  # fmt: skip

#: Calls that wait in the kernel, and what keeps them from a thread that has a hub.
NATIVE = {
    ("check.py:_ask", "subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT)"):
        "fastio check",
    ("concurrency/events.py:NativeEvent.wait", "self._queue.get(timeout=seconds)"):
        "new_event() makes it without a hub; before a fork it waits for hashing, some milliseconds",
    ("concurrency/waiting.py:NativeSelector.wait",
     "self._poll.poll(None if timeout is None else math.ceil(max(0, timeout) * 1000))"): "see NativeWaiter",
    ("concurrency/waiting.py:NativeWaiter.readable", "selector.wait(seconds)"):
        "waiter() gives it where there is no hub; the Popen's of wait.py: current.may_block()",
    ("concurrency/waiting.py:NativeWaiter.writable", "selector.wait(None)"): "waiter() gives it where there is no hub",
    ("concurrency/waiting.py:NativeWaiter.exited", "popen.wait(seconds)"): "waiter() gives it where there is no hub",
    ("io/transfers.py:Sender._run", "epoll.poll(TICK if count else -1, count + 1)"):
        "a separate thread, without a hub",
    ("io/transfers.py:FileTransfer._has_room", "poll.poll(milliseconds)"):
        "no time at all, or in a thread of a file system",
    ("io/transfers.py:Sender.wait", "time.sleep(0.05)"):
        "the end of a worker of uWSGI, where connections are given away only without green threads",
    ("patches/glance/glance_slow_clients.py:make_drain_workers.drain_workers", "sender.wait()"): "see Sender.wait",
    ("patching/exclusive.py:Exclusive.change", "with self._lock"): "patching; see there who holds it, and for how long",
    ("patches/subprocess/wait.py:make.wait_for_exit", "selector.wait(delay)"): "current.may_block()",
    ("patches/glance_store/store_rbd.py:_Request.wait_natively", "self.completion.wait_for_complete_and_cb()"):
        "librbd has called back already, or an image is thrown away, where greenlets must not switch",
    ("trace/recorder.py:Recorder.end", "event.wait(_PATIENCE / 10)"): "the end of a trace, for five seconds at most",
}  # fmt: skip

#: Programs of the command line, which have no hub; and the reports that they write.
TOOLS = ("cli.py", "launcher.py", "trace/analysis/")


def waits() -> list[tuple[str, str]]:
    """``(module and function, call)`` of each, once for each occurrence."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(TOOLS):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [(f"{name}:{function}", call) for function, call in _in(tree, "")]
    return found


def _in(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = f"{function}.{child.name}".lstrip(".")
        elif isinstance(child, ast.Call) and _may_wait(child):
            yield function, ast.unparse(child)
        elif isinstance(child, ast.With):
            for item in child.items:
                if not isinstance(item.context_expr, ast.Call) and "lock" in ast.unparse(item.context_expr).lower():
                    yield function, f"with {ast.unparse(item.context_expr)}"
        yield from _in(child, inside)


def _may_wait(call: ast.Call) -> bool:
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    of = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
    if name == "get":
        return "queue" in of.lower() or any(keyword.arg in ("block", "timeout") for keyword in call.keywords)
    if name not in WAITING:
        return False
    if name == "join":
        # Of text, and of paths.
        text = isinstance(called, ast.Attribute) and isinstance(called.value, (ast.Constant, ast.BinOp))
        return not text and of not in ("os.path", "os.pathsep")
    if name == "acquire":
        return not call.args or ast.unparse(call.args[0]) != "False"
    if name in ("waitid", "waitpid"):
        return "WNOHANG" not in ast.unparse(call)
    # The constructor of an object that polls.
    return not (name == "poll" and of.rstrip("')\"").endswith("select"))
