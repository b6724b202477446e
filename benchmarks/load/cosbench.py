"""COSBench's workload files (XML), so that workloads that exist can be run here.

The storage is swift; operations read, write, delete and list; works of all types that COSBench has (init,
prepare, normal, cleanup, dispose, delay). The tables below have all attributes and all keys of a ``config``. Those that
have no effect here are read with a notice. Everything else is an error that names the file, the line, the element, the
value and what is allowed.

Differences to COSBench: content is always checked, and workers do not divide objects among themselves: they take the
next operation each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

from benchmarks.load import Wrong
from benchmarks.load.plan import KINDS, Names, Operation, Plan
from benchmarks.load.selectors import selector
from benchmarks.load.workload import KINDS as WORKS
from benchmarks.load.workload import Stage, Work, Workload

STORAGES = ("swift",)
AUTHS = ("none", "swauth", "keystone")
#: Failures that a work may have if its file does not say how many, in a million: COSBench's.
TOLERATED = {"normal": 200_000}
#: Seconds that preparing and cleaning up may take.
LONGEST = 3600.0
#: The seconds in which COSBench's storages must answer.
PATIENCE = 30.0
#: Type of a work -> what it does to all objects, or all containers, of a range.
SCANS = {"init": "list", "prepare": "write", "cleanup": "delete", "dispose": "list"}


class WorkloadError(Wrong):
    """A file that is no workload, or one that cannot be run here."""


Reader = Callable[[str], Any]


def _no_effect(text: str) -> Any:
    """Return a value on which nothing here depends; it is read with a notice."""
    return text


def _whole(least: int, most: float = float("inf"), kind: type = int) -> Reader:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most or value == float("inf"):
            words = "whole number" if kind is int else "number"
            raise ValueError(f"is not a {words} from {least} " + ("on" if most == float("inf") else f"to {most}"))
        return value

    return read


def _milliseconds(text: str) -> float:
    return _whole(1, kind=float)(text) / 1000


def _one_of(*allowed: str) -> Reader:
    def read(text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ValueError(f"is not supported; allowed: {', '.join(filter(None, allowed)) or 'nothing'}")
        return text.strip().lower()

    return read


def _url(text: str) -> str:
    if not re.match(r"https?://[^/]", text):
        raise ValueError("is not a URL, such as http://127.0.0.1:8080")
    return text


def _keystone(text: str) -> str:
    if not _url(text).rstrip("/").endswith("/v3"):
        raise ValueError("is not supported; allowed: Keystone's third version, http://HOST:PORT/v3")
    return text


def _numbers(text: str) -> str:
    selector(text)
    return text


#: Element -> the elements that it may have.
CHILDREN = {
    "": ("workload",),
    "workload": ("storage", "auth", "workflow"),
    "workflow": ("workstage",),
    "workstage": ("storage", "auth", "work"),
    "work": ("storage", "auth", "operation"),
}
#: Element -> its attributes.
ATTRIBUTES: Mapping[str, Mapping[str, Reader]] = {
    "workload": {"name": str, "description": str, "config": str, "trigger": _one_of("")},
    "workflow": {"config": str},
    "workstage": {"name": str, "closuredelay": _whole(0), "config": str, "trigger": _one_of("")},
    "work": {
        "name": str, "type": _one_of(*WORKS), "workers": _whole(1), "interval": _whole(1), "runtime": _whole(0),
        "division": _no_effect, "rampup": _whole(0), "rampdown": _whole(0), "afr": _whole(0, 10**6),
        "totalOps": _whole(0), "totalBytes": _one_of("", "0"), "driver": _no_effect, "config": str,
    },
    "operation": {
        "type": str, "ratio": _whole(0, 100), "division": _no_effect, "config": str, "id": str,
    },
    "storage": {"type": _one_of(*STORAGES), "config": str},
    "auth": {"type": _one_of(*AUTHS), "config": str},
}  # fmt: skip

_FLAG = _one_of("false", "true")
_ANYWHERE = {"retry": _no_effect, "hashCheck": _no_effect, "hashcheck": _no_effect, "caching": _no_effect}
_OBJECTS: Mapping[str, Reader] = {
    "containers": _numbers, "objects": _numbers, "cprefix": str, "csuffix": str, "oprefix": str, "osuffix": str,
    "sizes": str, "content": _one_of("", "random"), "chunked": _one_of("", "false"), "name": str, **_ANYWHERE,
}  # fmt: skip
#: Kind of a ``config`` -> its keys.
CONFIGS: Mapping[str, Mapping[str, Reader]] = {
    **dict.fromkeys(("read", "write", "delete"), _OBJECTS),
    **dict.fromkeys(("init", "dispose"), {**_OBJECTS, "objects": str}),
    "list": {**_OBJECTS, "objects": _no_effect},
    "prepare": {**_OBJECTS, "createContainer": _FLAG},
    "cleanup": {**_OBJECTS, "deleteContainer": _FLAG},
    "swift": {"timeout": _milliseconds, "token": str, "storage_url": _url, "policy": str, **_ANYWHERE},
    "swauth": {
        "username": str, "password": str, "auth_url": _url, "url": _url, "timeout": _no_effect, **_ANYWHERE,
    },
    "keystone": {
        "username": str, "password": str, "auth_url": _keystone, "url": _keystone, "timeout": _no_effect,
        "tenant_name": str, "domain": str, "service": _no_effect, "region": _no_effect, **_ANYWHERE,
    },
}  # fmt: skip
#: Kind of a ``config`` -> the keys that it needs.
NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("read", "delete", "cleanup"), ("containers", "objects")),
    **dict.fromkeys(("write", "prepare"), ("containers", "objects", "sizes")),
    **dict.fromkeys(("list", "init", "dispose"), ("containers",)),
    "swauth": ("auth_url", "username", "password"),
    "keystone": ("auth_url", "username", "password", "tenant_name"),
}  # fmt: skip
#: Keys that the ``server`` of a plan has as well.
SERVER = ("policy", "token", "storage_url")


class _Element:
    """An element of the file, which knows where it is.

    :param parent: the element that it is in; of the file itself the path
    """

    def __init__(self, parent: _Element | Path, tag: str, line: int) -> None:
        self.tag, self.line, self.parent = tag, line, parent if isinstance(parent, _Element) else None
        self.path: Path = parent.path if isinstance(parent, _Element) else parent
        self.notices: list[str] = parent.notices if isinstance(parent, _Element) else []
        self.children: list[_Element] = []
        self.values: dict[str, Any] = {}
        self._name = ""

    def read(self, attributes: Mapping[str, str]) -> None:
        self._name = attributes.get("name") or attributes.get("type") or ""
        for name, text in attributes.items():
            if name not in ATTRIBUTES[self.tag]:
                known = ", ".join(ATTRIBUTES[self.tag])
                raise self.error(f"attribute {name}={text!r} is not known; allowed: {known}")
            self.values[name] = self._value(ATTRIBUTES[self.tag][name], f"{name}={text!r}", text)

    def _value(self, reader: Reader, what: str, text: str) -> Any:
        try:
            value = reader(text)
        except ValueError as error:
            # Of a selector, whose message has its text.
            own = f": {error}" if str(error).startswith("'") else f" {error}"
            raise self.error(f"{what}{own}") from error
        if reader is _no_effect and text not in ("", "none"):
            notice = f": {what} has no effect here"
            if not any(each.endswith(notice) for each in self.notices):
                self.notices.append(f"{self._where()}{notice}")
        return value

    def _where(self) -> str:
        return f"{self.path}:{self.line}: {self.tag}" + (f" {self._name!r}" if self._name else "")

    def error(self, message: str) -> WorkloadError:
        return WorkloadError(f"{self._where()}: {message}")

    def all(self, tag: str) -> list[_Element]:
        return [child for child in self.children if child.tag == tag]

    def own(self, tag: str) -> _Element | None:
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"{self.tag} has one already")
        return found[0] if found else None

    def nearest(self, tag: str) -> _Element | None:
        """Its own element of that tag, or that of an element around it."""
        return self.own(tag) or (self.parent.nearest(tag) if self.parent else None)

    def texts(self) -> dict[str, str]:
        """``key=value;key=value``, beside what is inherited; a storage and an auth inherit nothing."""
        found = self.parent.texts() if self.parent and self.tag not in ("storage", "auth") else {}
        for entry in filter(str.strip, self.values.get("config", "").split(";")):
            key, equals, value = entry.partition("=")
            if not equals:
                raise self.error(f"config: {entry.strip()!r} is not key=value")
            found[key.strip()] = value.strip()
        return found

    def config(self, kind: str) -> dict[str, Any]:
        """The values of :data:`CONFIGS`."""
        texts, known = self.texts(), CONFIGS[kind]
        if "url" in texts and "url" in known:
            texts.setdefault("auth_url", texts.pop("url"))
        for key in NEEDED.get(kind, ()):
            if key not in texts:
                raise self.error(f"config: it needs {key}")
        for key, text in texts.items():
            if key not in known:
                raise self.error(f"config: {key}={text} is not supported; allowed: {', '.join(known)}")
        return {key: self._value(known[key], f"config: {key}={text}", text) for key, text in texts.items()}


def read(path: Path | str) -> Workload:
    """The workload in a file.

    :raises WorkloadError: if there is none in it, or one that cannot be run here
    :raises OSError: if it cannot be read
    """
    root = _parsed(Path(path), Path(path).read_bytes())
    flow = root.own("workflow")
    if flow is None:
        raise root.error("it has no workflow")
    stages = tuple(map(_stage, flow.all("workstage")))
    if not stages:
        raise flow.error("it has no workstage")
    name = root.values.get("name") or Path(path).stem
    return Workload(name, stages, root.values.get("description", ""), tuple(root.notices))


def _parsed(path: Path, data: bytes) -> _Element:
    parser = expat.ParserCreate()
    top = _Element(path, "", 0)
    stack = [top]

    def begin(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(stack[-1], tag, parser.CurrentLineNumber)
        allowed = CHILDREN.get(stack[-1].tag, ())
        if tag not in allowed:
            where = f"in {stack[-1].tag}" if stack[-1].tag else "at the top"
            raise element.error(f"it cannot be {where}; allowed there: {', '.join(allowed) or 'nothing'}")
        element.read(attributes)
        stack[-1].children.append(element)
        stack.append(element)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: stack.pop() and None
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise WorkloadError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from error
    return top.children[0]


def _stage(element: _Element) -> Stage:
    name = element.values.get("name")
    if not name:
        raise element.error("it needs a name")
    works = tuple(map(_work, element.all("work")))
    if not works:
        raise element.error("it has no work")
    return Stage(name, works, element.values.get("closuredelay", 0))


def _work(element: _Element) -> Work:
    values = element.values
    kind = values.get("type", "normal")
    name = values.get("name") or (kind if kind != "normal" else "")
    if not name:
        raise element.error("it needs a name")
    if kind == "delay":
        return Work(name, kind)
    if "workers" not in values:
        raise element.error("it needs workers")
    server, patience = _server(element)
    runtime, rampup, total = (values.get(key, 0) for key in ("runtime", "rampup", "totalOps"))
    seconds = LONGEST
    names: tuple[str, ...] = ()
    if kind == "normal":
        operations = _operations(element)
        if not runtime and not total:
            raise element.error("runtime and totalOps are both 0: it would never end")
        if runtime:
            seconds = rampup + runtime + values.get("rampdown", 0)
    else:
        rampup = runtime = 0
        if element.all("operation"):
            raise element.all("operation")[0].error(f"a work of type {kind!r} takes no operations")
        own = element.config(kind)
        operations = (_operation(element, SCANS[kind], own, scan=True),)
        total = operations[0].scanned
        around = {"prepare": "createContainer", "cleanup": "deleteContainer"}.get(kind)
        if around is None or own.get(around) == "true":
            names = operations[0].all_containers()
    plan = Plan("swift", server, operations, users=values["workers"], total=total, seconds=seconds, patience=patience)
    tolerated = values.get("afr", TOLERATED.get(kind, 0)) / 1e6
    return Work(name, kind, plan, names, rampup if runtime else 0, runtime, tolerated)


def _operations(element: _Element) -> tuple[Operation, ...]:
    """Return the operations of a work."""
    operations = [(each, each.values.get("ratio", 100)) for each in element.all("operation")]
    if not operations:
        raise element.error("it has no operation")
    if sum(ratio for _, ratio in operations) != 100:
        ratios = " + ".join(str(ratio) for _, ratio in operations)
        raise element.error(f"the ratios of its operations add up to {ratios}; they must to 100")
    found = []
    for each, ratio in operations:
        kind = each.values.get("type")
        if kind not in KINDS:
            raise each.error(f"type={kind!r} is not supported; allowed: {', '.join(KINDS)}")
        if ratio:
            found.append(_operation(each, kind, each.config(kind), weight=ratio))
    return tuple(found)


def _operation(element: _Element, kind: str, config: Mapping[str, Any], **fields: Any) -> Operation:
    objects = _names(config, "objects") if kind != "list" else None
    sizes = config["sizes"] if kind == "write" else ""
    try:
        return Operation(kind, containers=_names(config, "containers"), objects=objects, sizes=sizes, **fields)
    except Wrong as error:
        raise element.error(f"config: {error}") from error


def _names(config: Mapping[str, Any], what: str) -> Names:
    """The names of containers or objects, with COSBench's prefix where the file has none."""
    return Names(config[what], config.get(f"{what[0]}prefix", f"my{what}"), config.get(f"{what[0]}suffix", ""))


def _server(element: _Element) -> tuple[dict[str, Any], float]:
    """Server and patience."""
    storage = element.nearest("storage")
    if storage is None:
        raise element.error(f"there is no storage for it; allowed: {', '.join(STORAGES)}")
    if "type" not in storage.values:
        raise storage.error(f"it needs a type: {', '.join(STORAGES)}")
    own = storage.config("swift")
    server = {key: own[key] for key in SERVER if key in own}
    if "token" not in own:
        server |= _login(element.nearest("auth") or storage)
    elif "storage_url" not in own:
        raise storage.error("config: it needs storage_url")
    return server, own.get("timeout", PATIENCE)


def _login(auth: _Element) -> dict[str, Any]:
    """:param auth: the storage if there is no auth"""
    kind = auth.values.get("type", "none") if auth.tag == "auth" else "none"
    if kind == "none":
        raise auth.error("auth type 'none' does not log in to swift; allowed: swauth, keystone")
    own = auth.config(kind)
    if kind == "swauth":
        return {"auth_v1": own["auth_url"], "user": own["username"], "key": own["password"]}
    return {
        "auth_v3": own["auth_url"], "user": f"{own['tenant_name']}:{own['username']}", "key": own["password"],
        "domain": own.get("domain", "default"),
    }  # fmt: skip
