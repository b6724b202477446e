"""Other tools' wrappers: one that came first is left alone, and one that came later can be undone without ours."""

import functools
import importlib.util
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.errors import PatchError
from fastio.report import Entry, Outcome
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.targets import attributes, import_targets

wrapt = pytest.importorskip("wrapt")

Function = Callable[..., Any]


def wraps(function: Function, count: Function) -> Any:
    @functools.wraps(function)
    def tool_wraps(*args: Any, **kwargs: Any) -> Any:
        count()
        return function(*args, **kwargs)

    return tool_wraps


def closure(function: Function, count: Function) -> Any:
    def tool_closure(*args: Any, **kwargs: Any) -> Any:
        count()
        return function(*args, **kwargs)

    return tool_closure


def two_references(function: Function, count: Function) -> Any:
    """As sentry-sdk does it: the original is called by one function or the other."""

    def tool_patched(*args: Any, **kwargs: Any) -> Any:
        count()
        return function(*args, **kwargs)

    def tool_runner(*args: Any, **kwargs: Any) -> Any:
        if not tool_patched:
            return function(*args, **kwargs)
        return tool_patched(*args, **kwargs)

    return functools.wraps(function)(tool_runner)


def proxy(function: Function, count: Function) -> Any:
    """As ddtrace and OpenTelemetry do it."""

    def tool_proxy(wrapped: Function, instance: Any, args: Any, kwargs: Any) -> Any:
        count()
        return wrapped(*args, **kwargs)

    return wrapt.FunctionWrapper(function, tool_proxy)


def proxy_of_closure(function: Function, count: Function) -> Any:
    return proxy(closure(function, lambda: None), count)


def default_argument(function: Function, count: Function) -> Any:
    def tool_default(*args: Any, _function: Function = function, **kwargs: Any) -> Any:
        count()
        return _function(*args, **kwargs)

    return tool_default


def partial_method(function: Function, count: Function) -> Any:
    def tool_partial(self: Any, function: Function, *args: Any, **kwargs: Any) -> Any:
        count()
        return function(self, *args, **kwargs)

    return functools.partialmethod(tool_partial, function)


class ToolObject:
    def __init__(self, function: Function, count: Function) -> None:
        self.function = function
        self.count = count

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count()
        return self.function(*args, **kwargs)


#: wrappers that show what they call, and what the status is to call them by
OPEN = {wraps: "tool_wraps", closure: "tool_closure", two_references: "tool_runner", proxy: "tool_proxy",
        proxy_of_closure: "tool_proxy"}  # fmt: skip
#: and those that do not
OPAQUE = {default_argument: "tool_default", partial_method: "partialmethod", ToolObject: "ToolObject"}
NAMES = {**OPEN, **OPAQUE}


class Tool:
    """Another tool, at one attribute. It undoes itself as tools do: what it saved is put back."""

    def __init__(self, style: Function, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        self.calls = 0
        self.saved = inspect.getattr_static(owner, name)
        self.style = style

    def install(self) -> None:
        self.wrapper = self.style(self.saved, self._count)
        setattr(self.owner, self.name, self.wrapper)

    def _count(self) -> None:
        self.calls += 1

    def undo(self) -> None:
        setattr(self.owner, self.name, self.saved)


#: The attribute that is looked at, of each class, and the patch there; test_contract.py has those of all others.
PLACES = [("subprocess", "communicate"), ("eventlet.green.subprocess", "green_communicate")]


def ran_communicate(popen: Any) -> int:
    """How often fastio's own code ran for one call."""
    before = counters.exchanges
    process = popen(["cat"], stdin=-1, stdout=-1, stderr=-1)
    data = b"\x00fastio\n" * 1000
    assert process.communicate(data) == (data, b"")
    return counters.exchanges - before


class At:
    """The attribute under test."""

    name = "_communicate"

    def __init__(self, module: str, patch: str) -> None:
        if module == "subprocess" and MONKEY_PATCHED:
            pytest.skip("subprocess.Popen is the green one here")
        self.popen = pytest.importorskip(module).Popen
        self.patch = patch
        self.key = f"{module}:Popen.{self.name}"
        self.original = inspect.getattr_static(self.popen, self.name)

    def ran(self) -> int:
        return ran_communicate(self.popen)

    def live(self) -> Any:
        return inspect.getattr_static(self.popen, self.name)

    def tool(self, style: Function) -> Tool:
        """A tool that has been installed there."""
        tool = Tool(style, self.popen, self.name)
        tool.install()
        return tool

    def entry(self, report: Any = None) -> Entry:
        report = report or fastio.status()
        return next(entry for entry in report.entries if entry.name == self.patch and entry.target == self.key)


@pytest.fixture(params=PLACES, ids=lambda place: place[0])
def at(request: pytest.FixtureRequest) -> Iterator[At]:
    at = At(*request.param)
    import_targets()
    yield at
    # Whatever happened, the next test starts from upstream's code.
    fastio.unpatch()
    setattr(at.popen, at.name, at.original)


@pytest.mark.parametrize("style", NAMES)
def test_below(at: At, style: Function) -> None:
    """It came first: that attribute is left alone, and only that one."""
    tool = at.tool(style)
    before = attributes()
    with pytest.raises(PatchError) as raised:
        fastio.patch(strict=True)
    assert at.key in str(raised.value)
    assert NAMES[style] in str(raised.value)
    assert attributes() == before

    entry = at.entry(fastio.patch())
    assert entry.outcome is Outcome.CHANGED
    assert entry.left_alone
    assert f"{NAMES[style]} " in entry.found
    assert ("does not show what it calls" in entry.found) is (style in OPAQUE)
    assert "fastio.patch() before" in entry.advice
    assert (at.ran(), tool.calls) == (0, 1)
    assert [entry.name for entry in fastio.status().entries if entry.in_effect]
    assert at.live() is tool.wrapper

    # Once it has gone, patch() is all that is needed.
    tool.undo()
    entry = at.entry()
    assert not entry.in_effect
    assert "fastio.patch()" in entry.advice
    fastio.patch(strict=True)
    assert at.ran() == 1
    fastio.unpatch()
    assert at.live() is at.original


@pytest.mark.parametrize("style", OPEN)
def test_above(at: At, style: Function) -> None:
    fastio.patch(strict=True)
    tool = at.tool(style)
    entry = at.entry()
    assert entry.outcome is Outcome.APPLIED
    assert entry.in_effect
    assert not entry.left_alone
    assert NAMES[style] in entry.found
    assert (at.ran(), tool.calls) == (1, 1)
    # Nothing is doubled, and it is no reason for strict to raise.
    fastio.patch(strict=True)
    assert at.live() is tool.wrapper
    assert (at.ran(), tool.calls) == (1, 2)

    fastio.unpatch()
    entry = at.entry()
    assert entry.outcome is Outcome.OFF
    assert "passes everything through" in entry.found
    assert NAMES[style] in entry.found
    assert at.live() is tool.wrapper
    assert (at.ran(), tool.calls) == (0, 3)

    fastio.patch(strict=True)
    assert at.live() is tool.wrapper
    assert (at.ran(), tool.calls) == (1, 4)
    tool.undo()
    assert at.ran() == 1
    assert at.entry().outcome is Outcome.APPLIED
    fastio.unpatch()
    assert at.live() is at.original


def test_several_above_are_named_outermost_first(at: At) -> None:
    fastio.patch(strict=True)
    for style in (wraps, proxy, closure):
        at.tool(style)
    found = at.entry().found
    assert found.index("tool_closure") < found.index("tool_proxy") < found.index("tool_wraps")
    assert at.ran() == 1


def test_the_public_method_is_wrapped() -> None:
    """``communicate`` is not replaced, but fastio relies on its code, which it must see beneath the tool."""
    import_targets()
    popen = importlib.import_module("subprocess").Popen
    is_own = "communicate" in vars(popen)
    tool = Tool(proxy, popen, "communicate")
    tool.install()
    try:
        with fastio.patched(strict=True):
            assert (ran_communicate(popen), tool.calls) == (1, 1)
    finally:
        if is_own:
            tool.undo()
        else:
            # The green class inherits it, and has to again.
            del popen.communicate


def test_a_wrapper_of_unknown_code_is_not_gone_beneath(at: At) -> None:
    """A wrapper that calls something that is not upstream's, and never upstream's."""
    tool = Tool(wraps, at.popen, at.name)
    tool.saved = lambda self, *args, **kwargs: None
    tool.install()
    with pytest.raises(PatchError, match=at.name):
        fastio.patch(at.patch, strict=True)
    assert at.live() is tool.wrapper
    setattr(at.popen, at.name, at.original)


def test_wrappers_in_a_circle_end(at: At) -> None:
    first = wraps(lambda *args: None, int)
    second = wraps(first, int)
    cell = first.__closure__[first.__code__.co_freevars.index("function")]
    cell.cell_contents = second
    setattr(at.popen, at.name, first)
    assert at.entry(fastio.patch()).left_alone
    assert fastio.status()


#: The real tools, in a separate process: they cannot be undone altogether.
REAL = """
import json, subprocess, sys, warnings
warnings.simplefilter("ignore")
import eventlet
eventlet.monkey_patch()
import fastio
from fastio import counters
from fastio.concurrency import child_exit

theirs = []

def patch_ours():
    fastio.patch()

{patch_theirs}

originals = {{name: getattr(subprocess.Popen, name) for name in ("wait", "__init__", "communicate", "_communicate")}}
for step in [patch_theirs, patch_ours] if sys.argv[1] == "below" else [patch_ours, patch_theirs]:
    step()

seen, real = [], child_exit.open_pidfd
child_exit.open_pidfd = lambda *args: [seen.append(args), real(*args)][1]

def calls():
    seen.clear(), counters.reset(), theirs.clear()
    process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
    output, _ = process.communicate(b"x" * 100000)
    subprocess.Popen(["sleep", "0.5"]).wait()
    text = subprocess.Popen(["true"], stdout=-1, encoding="latin-1")
    text.communicate()
    return {{
        "right": output == b"x" * 100000, "exchanges": counters.exchanges, "waits": len(seen) > 0,
        "decoded": text.stdout.encoding == "latin-1", "theirs": len(theirs) > 0,
    }}

found = {{"patched": calls(), "status": [[e.name, e.outcome.value, e.found] for e in fastio.status().entries]}}
fastio.patch()
found["again"] = calls()
fastio.unpatch()
found["unpatched"] = calls()
fastio.patch()
found["repatched"] = calls()
{undo_theirs}
fastio.unpatch()
found["left"] = [name for name, value in originals.items() if getattr(subprocess.Popen, name) is not value]
print(json.dumps(found))
"""

SENTRY = {
    "patch_theirs": """
def patch_theirs():
    import sentry_sdk
    sentry_sdk.init(transport=lambda envelope: None, traces_sample_rate=1.0)
    add = sentry_sdk.add_breadcrumb
    sentry_sdk.add_breadcrumb = lambda *args, **kwargs: [theirs.append(args), add(*args, **kwargs)][1]
""",
    # It cannot be undone.
    "undo_theirs": "for name, value in originals.items(): setattr(subprocess.Popen, name, value)",
}
DDTRACE = {
    "patch_theirs": """
def patch_theirs():
    from ddtrace.contrib.internal.subprocess import patch
    wait = patch._traced_subprocess_wait
    patch._traced_subprocess_wait = lambda *args: [theirs.append(args), wait(*args)][1]
    patch.patch()
""",
    "undo_theirs": "from ddtrace.contrib.internal.subprocess.patch import unpatch; unpatch()",
}


@needs_eventlet
@pytest.mark.parametrize("where", ["below", "above"])
@pytest.mark.parametrize("tool", [SENTRY, DDTRACE], ids=["sentry_sdk", "ddtrace"])
def test_the_real_tools(tool: dict[str, str], where: str, run_python: Callable[..., Any]) -> None:
    name = "sentry_sdk" if tool is SENTRY else "ddtrace"
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    found = json.loads(run_python(REAL.format(**tool), where).stdout.splitlines()[-1])
    # Where the tool was first, the attributes that it has wrapped are left alone.
    ours = where == "above"
    fast = {"right": True, "exchanges": 1, "waits": ours, "decoded": ours, "theirs": True}
    for when in ("patched", "again", "repatched"):
        assert found[when] == fast, when
    assert found["unpatched"] == {
        "right": True, "exchanges": 0, "waits": False, "decoded": False, "theirs": True,
    }  # fmt: skip
    (entry,) = [entry for entry in found["status"] if entry[0] == "fix_green_encoding"]
    assert entry[1] == (Outcome.CHANGED if where == "below" else Outcome.APPLIED).value
    assert f"{name}." in entry[2]
    assert found["left"] == []
