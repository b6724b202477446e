"""COSBench's workload files (XML), so that workloads that exist can be run here.

Storages are swift, s3 and mock; operations read, write, delete and list; works of all types that COSBench has (init,
prepare, normal, cleanup, dispose, delay). What is not supported is an error that names the file, the line, the element,
the value and what is allowed, rather than something else than the file says.

What is different: objects' content is always checked (``hashCheck`` changes nothing), S3's buckets are addressed by
path, and with a ``division`` the objects are divided among turns, not among threads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from benchmarks.load import Wrong
from benchmarks.load.plan import Names, Operation, Plan, PlanError
from benchmarks.load.selectors import selector
from benchmarks.load.workload import KINDS, Stage, Work, Workload

#: COSBench's names of what has none.
CONTAINER_PREFIX, OBJECT_PREFIX = "mycontainers", "myobjects"
OPERATIONS = ("read", "write", "delete", "list")
STORAGES = ("swift", "s3", "mock")
AUTHS = ("none", "swauth", "keystone", "mock")
#: Failures that a work may have if it does not say so, in a million: COSBench's.
TOLERATED = {"normal": 200_000}
#: Seconds that preparing and cleaning up may take.
LONGEST = 3600.0
#: The seconds in which COSBench's storages must answer.
PATIENCE = 30.0

_NUMBERED = ("containers", "objects")
_AFFIXES = ("cprefix", "csuffix", "oprefix", "osuffix")
_CONFIG = (*_NUMBERED, *_AFFIXES, "sizes", "content", "chunked", "hashCheck", "hashcheck", "name")
_ATTRIBUTES = {
    "workload": ("name", "description", "config", "trigger"),
    "workflow": ("config",),
    "workstage": ("name", "closuredelay", "config", "trigger"),
    "work": ("name", "type", "workers", "interval", "division", "runtime", "rampup", "rampdown", "afr", "totalOps",
             "totalBytes", "driver", "config"),
    "operation": ("type", "ratio", "division", "config", "id"),
    "storage": ("type", "config"),
    "auth": ("type", "config"),
}  # fmt: skip
_CHILDREN = {
    "workload": ("storage", "auth", "workflow"),
    "workflow": ("workstage",),
    "workstage": ("storage", "auth", "work"),
    "work": ("storage", "auth", "operation"),
}


class WorkloadError(Wrong):
    """A file that is no workload, or one that cannot be run here."""


class _Element:
    """An element of the file, which knows where it is."""

    def __init__(self, path: Path, tag: str, attributes: Mapping[str, str], line: int) -> None:
        self.path, self.tag, self.attributes, self.line = path, tag, attributes, line
        self.children: list[_Element] = []

    def error(self, message: str) -> WorkloadError:
        name = self.attributes.get("name") or self.attributes.get("type")
        return WorkloadError(f"{self.path}:{self.line}: {self.tag}{f' {name!r}' if name else ''}: {message}")

    def all(self, tag: str) -> list[_Element]:
        return [child for child in self.children if child.tag == tag]

    def number(self, name: str, default: int, least: int = 0, most: int | None = None) -> int:
        text = self.attributes.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"\d+", text.strip()) or int(text) < least or (most is not None and int(text) > most):
            allowed = f"from {least} on" if most is None else f"from {least} to {most}"
            raise self.error(f"{name}={text!r} is not a whole number {allowed}")
        return int(text)

    def one_of(self, name: str, allowed: Collection[str], default: str) -> str:
        text = self.attributes.get(name, default)
        if text not in allowed:
            raise self.error(f"{name}={text!r} is not supported; allowed: {', '.join(allowed)}")
        return text

    def config(self) -> dict[str, str]:
        """``key=value;key=value``."""
        found = {}
        for entry in filter(str.strip, self.attributes.get("config", "").split(";")):
            key, equals, value = entry.partition("=")
            if not equals:
                raise self.error(f"config: {entry.strip()!r} is not key=value")
            found[key.strip()] = value.strip()
        return found


def read(path: Path | str) -> Workload:
    """The workload in a file.

    :raises WorkloadError: if there is none in it, or one that cannot be run here
    :raises OSError: if it cannot be read
    """
    path = Path(path)
    return _workload(_parsed(path, path.read_bytes()))


def _parsed(path: Path, data: bytes) -> _Element:
    parser = expat.ParserCreate()
    stack: list[_Element] = []
    roots: list[_Element] = []

    def begin(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(path, tag, attributes, parser.CurrentLineNumber)
        allowed = _CHILDREN.get(stack[-1].tag, ()) if stack else ("workload",)
        if tag not in allowed:
            where = f"in {stack[-1].tag}" if stack else "at the top"
            raise element.error(f"it cannot be {where}; allowed there: {', '.join(allowed) or 'nothing'}")
        for name in attributes:
            if name not in _ATTRIBUTES[tag]:
                known = ", ".join(_ATTRIBUTES[tag])
                raise element.error(f"attribute {name}={attributes[name]!r} is not known; allowed: {known}")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: stack.pop() and None
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise WorkloadError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from error
    return roots[0]


def _workload(root: _Element) -> Workload:
    _no_trigger(root)
    flows = root.all("workflow")
    if len(flows) != 1:
        raise root.error(f"it has {len(flows)} elements workflow instead of 1")
    config = root.config() | flows[0].config()
    stages = tuple(_stage(element, config, _service(root, None)) for element in flows[0].all("workstage"))
    if not stages:
        raise flows[0].error("it has no workstage")
    name = root.attributes.get("name") or root.path.stem
    return Workload(name, stages, root.attributes.get("description", ""))


def _no_trigger(element: _Element) -> None:
    if element.attributes.get("trigger"):
        raise element.error(f"trigger={element.attributes['trigger']!r} is not supported; allowed: none")


class _Service(NamedTuple):
    """The storage and the auth that hold for an element."""

    storage: _Element | None
    auth: _Element | None


def _service(element: _Element, outer: _Service | None) -> _Service:
    own: dict[str, _Element | None] = {}
    for tag in ("storage", "auth"):
        found = element.all(tag)
        if len(found) > 1:
            raise found[1].error(f"{element.tag} has one already")
        own[tag] = found[0] if found else getattr(outer, tag, None)
    return _Service(own["storage"], own["auth"])


def _stage(element: _Element, config: Mapping[str, str], outer: _Service) -> Stage:
    _no_trigger(element)
    name = element.attributes.get("name")
    if not name:
        raise element.error("it needs a name")
    service = _service(element, outer)
    inherited = {**config, **element.config()}
    works = tuple(_work(each, inherited, service) for each in element.all("work"))
    if not works:
        raise element.error("it has no work")
    return Stage(name, works, element.number("closuredelay", 0))


def _work(element: _Element, config: Mapping[str, str], outer: _Service) -> Work:
    kind = element.one_of("type", KINDS, "normal")
    name = element.attributes.get("name") or (kind if kind != "normal" else "")
    if not name:
        raise element.error("it needs a name")
    if element.attributes.get("driver"):
        raise element.error(f"driver={element.attributes['driver']!r} is not supported; allowed: none")
    if element.number("totalBytes", 0):
        raise element.error(f"totalBytes={element.attributes['totalBytes']!r} is not supported; use totalOps, runtime")
    element.number("interval", 5, 1)
    tolerated = element.number("afr", TOLERATED.get(kind, 0), 0, 10**6) / 1e6
    if kind == "delay":
        return Work(name, kind)
    if "workers" not in element.attributes:
        raise element.error("it needs workers")
    workers = element.number("workers", 1, 1)
    protocol, server, patience = _server(element, _service(element, outer))
    inherited = {**config, **element.config()}
    common = {"protocol": protocol, "server": server, "users": workers, "prefix": "", "patience": patience}
    try:
        if kind == "normal":
            return _normal(element, name, inherited, common, tolerated)
        return _other(element, name, kind, inherited, common, tolerated)
    except PlanError as error:
        raise element.error(str(error)) from error


def _normal(
    element: _Element, name: str, config: Mapping[str, str], common: Mapping[str, Any], tolerated: float
) -> Work:  # fmt: skip
    operations = [(each, each.number("ratio", 100, 0, 100)) for each in element.all("operation")]
    if not operations:
        raise element.error("it has no operation")
    if sum(ratio for _, ratio in operations) != 100:
        ratios = " + ".join(str(ratio) for _, ratio in operations)
        raise element.error(f"the ratios of its operations add up to {ratios}; they must to 100")
    runtime, total = element.number("runtime", 0), element.number("totalOps", 0)
    if not runtime and not total:
        raise element.error("runtime and totalOps are both 0: it would never end")
    rampup, rampdown = element.number("rampup", 0), element.number("rampdown", 0)
    plan = Plan(
        **common, operations=tuple(_operation(each, ratio, element, config) for each, ratio in operations if ratio),
        total=total, seconds=rampup + runtime + rampdown if runtime else LONGEST,
    )  # fmt: skip
    return Work(name, "normal", plan, warmup=rampup if runtime else 0, counted=runtime, tolerated=tolerated)


def _operation(element: _Element, ratio: int, work: _Element, config: Mapping[str, str]) -> Operation:
    kind = element.one_of("type", OPERATIONS, "")
    own = {**config, **element.config()}
    _known(element, own, _CONFIG)
    if kind == "list" and "objects" in own:
        raise element.error(f"config: objects={own['objects']} is not supported for list; allowed: containers")
    outer = work.one_of("division", ("none", "container", "object"), "none")
    division = element.one_of("division", ("none", "container", "object"), outer)
    try:
        return Operation(
            kind, ratio, containers=_names(element, own, "containers"),
            objects=None if kind == "list" else _names(element, own, "objects"),
            sizes=_needed(element, own, "sizes") if kind == "write" else "",
            division="none" if kind == "list" and division == "object" else division,
        )  # fmt: skip
    except PlanError as error:
        raise element.error(f"config: {error}") from error


def _other(
    element: _Element, name: str, kind: str, config: Mapping[str, str], common: Mapping[str, Any], tolerated: float
) -> Work:  # fmt: skip
    """A work of all objects, or of all containers, of a range."""
    if element.all("operation"):
        raise element.all("operation")[0].error(f"a work of type {kind!r} has no operations of its own")
    more = {"prepare": ["createContainer"], "cleanup": ["deleteContainer"]}.get(kind, [])
    _known(element, config, (*_CONFIG, *more))
    around = bool(more) and _boolean(element, config, more[0], False)
    containers = _names(element, config, "containers")
    names = _containers(element, containers) if around or not more else ()
    if not more:
        # Of the plan only the service counts.
        listing = Operation("list", containers=containers)
        return Work(name, kind, Plan(**common, operations=(listing,), total=1), names, tolerated=tolerated)
    if config.get("objects", "").replace(" ", "") == "r(0,0)":
        raise element.error(f"config: objects={config['objects']}: there would be nothing to {kind}")
    operation = Operation(
        "write" if kind == "prepare" else "delete", containers=containers, objects=_names(element, config, "objects"),
        sizes=_needed(element, config, "sizes") if kind == "prepare" else "", scan=True,
    )  # fmt: skip
    plan = Plan(**common, operations=(operation,), total=operation.scanned, seconds=LONGEST)
    return Work(name, kind, plan, names, tolerated=tolerated)


def _containers(element: _Element, names: Names) -> tuple[str, ...]:
    chosen = selector(names.selector)
    if chosen.kind != "r":
        raise element.error(f"config: containers={names.selector} cannot be scanned; allowed: r(LOW,HIGH)")
    return tuple(names.name(number) for number in range(chosen.low, chosen.high + 1))


def _names(element: _Element, config: Mapping[str, str], what: str) -> Names:
    letter, prefix = ("c", CONTAINER_PREFIX) if what == "containers" else ("o", OBJECT_PREFIX)
    names = Names(
        _needed(element, config, what), config.get(f"{letter}prefix", prefix), config.get(f"{letter}suffix", "")
    )
    try:
        selector(names.selector)
    except ValueError as error:
        raise element.error(f"config: {what}={names.selector}: {error}") from error
    return names


def _needed(element: _Element, config: Mapping[str, str], key: str) -> str:
    if key not in config:
        raise element.error(f"config: it needs {key}")
    return config[key]


def _known(element: _Element, config: Mapping[str, str], known: Collection[str]) -> None:
    _only(element, config, known)
    if config.get("content", "random") != "random":
        raise element.error(f"config: content={config['content']} is not supported; allowed: random")
    if _boolean(element, config, "chunked", False):
        raise element.error(f"config: chunked={config['chunked']} is not supported; allowed: false")


def _boolean(element: _Element, config: Mapping[str, str], key: str, default: bool) -> bool:
    text = config.get(key)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise element.error(f"config: {key}={text} is not one of true, false")
    return text.lower() == "true"


# --- storages and auths


def _server(element: _Element, service: _Service) -> tuple[str, dict[str, Any], float]:
    """Protocol, server and patience."""
    storage = service.storage
    if storage is None:
        raise element.error(f"there is no storage for it; allowed: {', '.join(STORAGES)}")
    protocol = storage.one_of("type", STORAGES, "")
    if service.auth is not None:
        service.auth.one_of("type", AUTHS, "none")
    config = storage.config()
    server = {"swift": _swift, "s3": _s3, "mock": _mock}[protocol](storage, config, service.auth)
    return protocol, server, _float(storage, config, "timeout", PATIENCE * 1000, 1) / 1000


def _only(element: _Element, config: Mapping[str, str], known: Collection[str]) -> None:
    for key, value in config.items():
        if key not in known:
            raise element.error(f"config: {key}={value} is not supported; allowed: {', '.join(known)}")


def _float(element: _Element, config: Mapping[str, str], key: str, default: float, least: float = 0) -> float:
    text = config.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not least <= value < float("inf"):
        raise element.error(f"config: {key}={text} is not a number from {least:g} on")
    return value


def _swift(storage: _Element, config: dict[str, str], auth: _Element | None) -> dict[str, Any]:
    _only(storage, config, ("timeout", "token", "storage_url", "policy"))
    server: dict[str, Any] = {"policy": config["policy"]} if "policy" in config else {}
    if "token" in config:
        return {**server, "token": config["token"], "storage_url": _url(storage, config, "storage_url")}
    kind = "none" if auth is None else auth.attributes.get("type", "none")
    if auth is None or kind not in ("swauth", "keystone"):
        where = storage if auth is None else auth
        raise where.error(f"auth type {kind!r} does not log in to swift; allowed: swauth, keystone")
    own = auth.config()
    known = ["username", "password", "auth_url", "url", "timeout"]
    _only(auth, own, [*known, "tenant_name", "service", "domain"] if kind == "keystone" else known)
    if "auth_url" not in own and "url" in own:
        own["auth_url"] = own["url"]
    url, user, key = _url(auth, own, "auth_url"), _needed(auth, own, "username"), _needed(auth, own, "password")
    if kind == "swauth":
        return {**server, "auth_v1": url, "user": user, "key": key}
    if not url.rstrip("/").endswith("/v3"):
        raise auth.error(
            f"config: auth_url={url} is not supported; allowed: Keystone's third version, http://HOST:PORT/v3"
        )
    project = _needed(auth, own, "tenant_name")
    return {**server, "auth_v3": url, "user": f"{project}:{user}", "key": key, "domain": own.get("domain", "default")}


def _s3(storage: _Element, config: dict[str, str], auth: _Element | None) -> dict[str, Any]:
    _only(storage, config, ("accesskey", "secretkey", "endpoint", "timeout", "path_style_access", "region"))
    if not _boolean(storage, config, "path_style_access", True):
        raise storage.error("config: path_style_access=false is not supported; allowed: true")
    server = {
        "url": _url(storage, config, "endpoint"), "access_key": _needed(storage, config, "accesskey"),
        "secret_key": _needed(storage, config, "secretkey"),
    }  # fmt: skip
    return server | ({"region": config["region"]} if "region" in config else {})


def _mock(storage: _Element, config: dict[str, str], auth: _Element | None) -> dict[str, Any]:
    _only(storage, config, ("size", "delay", "errors", "printing", "doStats", "timeout"))
    errors = _float(storage, config, "errors", 0)
    if errors > 1:
        raise storage.error(f"config: errors={config['errors']} is not a number from 0 to 1")
    size = _float(storage, config, "size", 1000)
    return {"size": int(size), "delay": _float(storage, config, "delay", 10) / 1000, "errors": errors}


def _url(element: _Element, config: Mapping[str, str], key: str) -> str:
    url = _needed(element, config, key)
    if not re.match(r"https?://[^/]", url):
        raise element.error(f"config: {key}={url} is not a URL, such as http://127.0.0.1:8080")
    return url
