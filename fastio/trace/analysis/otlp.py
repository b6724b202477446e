"""The spans as OTLP/JSON, which OpenTelemetry's collector and what it feeds can read.

A trace of OpenTelemetry is a request: its id is that of the global request id, or of the request's own, and the
server's span is within its client's. Times are corrected. Samples of resources are not exported.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fastio.trace.analysis.analysis import Analysis
from fastio.trace.analysis.messages import CALLER, is_server
from fastio.trace.analysis.model import Point, Process, Span, Trace
from fastio.trace.analysis.requests import Request
from fastio.trace.redaction import MASK
from fastio.version import VERSION

#: SpanKind and StatusCode of the protocol.
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
_STATUS_OK, _STATUS_ERROR = 1, 2
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SPAN = re.compile("[0-9a-f]{16}")
_SCOPE = {"name": "fastio.trace", "version": VERSION}
#: OpenTelemetry's conventions have this for what tells apart the instances of a service.
_INSTANCES = uuid.UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320")
#: The conventions' names for what ``os.uname()`` calls otherwise.
_ARCHITECTURES = {
    "x86_64": "amd64", "i386": "x86", "i686": "x86", "aarch64": "arm64", "armv7l": "arm32", "ppc64le": "ppc64",
}  # fmt: skip
#: Values that are a span's identity, and no attributes of it.
_IDENTITY = ("trace", "caller", "context")
#: The conventions' names for what has one.
_NAMES = {
    "method": "http.request.method",
    "path": "url.path",
    "status": "http.response.status_code",
    "peer": "client.address",
    "error": "error.message",
    "request": "openstack.request_id",
    "global": "openstack.global_request_id",
}


def export(analysis: Analysis, requests: Sequence[Request] | None = None) -> dict[str, Any]:
    """Plain data: an ``ExportTraceServiceRequest``.

    :param requests: only these; by default all, and what belongs to no request
    """
    if requests is None:
        return export_spans(analysis.trace, analysis.requests)
    return export_spans(analysis.trace, requests, {id(span) for request in requests for span in request.spans})


def export_spans(trace: Trace, requests: Sequence[Request], chosen: Collection[int] | None = None) -> dict[str, Any]:
    """Plain data, as that of :func:`export`.

    :param requests: those of the trace
    :param chosen: the ``id()`` of the spans that are exported; by default all of the trace
    """
    points = _points(trace)
    by_process: dict[int, list[dict[str, Any]]] = {}
    exported: set[int] = set()

    def add(span: Span, identity: str, parent: str) -> None:
        if id(span) not in exported and (chosen is None or id(span) in chosen):
            exported.add(id(span))
            by_process.setdefault(id(span.process), []).append(_span(span, identity, parent, points))

    for request in requests:
        for span in request.spans:
            add(span, span.trace or trace_id(request), _parent(span, request))
    for span in trace.spans():
        # What belongs to no request.
        add(span, span.trace or _trace_alone(span), _id_of(span.process.parent(span)) or _caller(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": list(_attributes(_resource(process)))},
                "scopeSpans": [{"scope": _SCOPE, "spans": by_process[id(process)]}],
            }
            for process in trace.processes
            if id(process) in by_process
        ]
    }


def trace_id(request: Request) -> str:
    """32 hexadecimal digits.

    Those that a ``traceparent`` had, else those of the UUID in the request's id where there is one.
    """
    if request.trace:
        return request.trace
    return _trace_of(request.global_id or request.id)


def _trace_of(name: str) -> str:
    found = _UUID.search(name)
    return found[0].replace("-", "").lower() if found else _hash(name, 32)


def _trace_alone(span: Span) -> str:
    """The trace of a span that belongs to no request that is known: the one that it names, else one of its process."""
    *_, outermost = span, *span.around()
    named = (
        ""
        if outermost.name == CALLER or is_server(outermost)
        else outermost.text("global") or outermost.text("request")
    )
    return _trace_of(named) if named else _hash(_process_key(span.process), 32)


def span_id(span: Span) -> str:
    """16 hexadecimal digits: those by which others name the span where it was handed on."""
    given = span.text("context")
    return given if _SPAN.fullmatch(given) else _hash(f"{_process_key(span.process)} {span.number}", 16)


def _caller(span: Span) -> str:
    """The span that a ``traceparent`` names as the one around this, empty if there is none."""
    given = span.text("caller")
    return given if _SPAN.fullmatch(given) else ""


def _id_of(span: Span | None) -> str:
    return "" if span is None else span_id(span)


def _process_key(process: Process) -> str:
    return f"{process.host} {process.boot} {process.pid} {process.started}"


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _resource(process: Process) -> dict[str, Any]:
    """What OpenTelemetry's conventions have for a service, a host, an operating system and a process."""
    python = process.versions.get("python")
    return {
        "service.name": _told(process.component) or "unknown",
        # No two processes have the same, also not one after the other.
        "service.instance.id": str(uuid.uuid5(_INSTANCES, _process_key(process))),
        "host.name": process.host,
        "host.arch": _ARCHITECTURES.get(process.arch, _told(process.arch)),
        "os.type": process.os or None,
        "os.version": _told(process.kernel),
        "os.description": f"{process.os.capitalize()} {process.kernel}" if _told(process.kernel) else None,
        "process.pid": process.pid,
        "process.executable.name": _told(process.program),
        "process.runtime.name": process.runtime or None,
        "process.runtime.version": None if python is None else str(python),
        **{f"{name}.version": str(version) for name, version in process.versions.items()},
    }


def _told(value: str) -> str | None:
    """``value``; None if the files do not have it, or have it masked."""
    return value if value not in ("", MASK) else None


def _parent(span: Span, request: Request) -> str:
    """The id of the span around ``span``, in its process or elsewhere; empty if there is none."""
    outer = span.process.parent(span)
    if outer is not None or span is not request.server:
        return _id_of(outer) or _caller(span)
    # There may be another tracer's span between the client's and this one, but not if nobody has recorded it.
    told = _caller(span) if span.number_of("sampled") else ""
    return told or _id_of(request.client) or _caller(span)


def _points(trace: Trace) -> dict[tuple[int, int], list[Point]]:
    found: dict[tuple[int, int], list[Point]] = {}
    for process in trace.processes:
        for point in process.points:
            if point.span:
                found.setdefault((id(process), point.span), []).append(point)
    return found


def _span(span: Span, trace: str, parent: str, points: dict[tuple[int, int], list[Point]]) -> dict[str, Any]:
    kind = _CLIENT if span.name == "client.request" else _SERVER if span.name.endswith(".request") else _INTERNAL
    outcome = span.text("outcome")
    values = {_NAMES.get(name, f"fastio.{name}"): value for name, value in span.values.items() if name not in _IDENTITY}
    if not span.whole:
        values["fastio.incomplete"] = True
    status: dict[str, Any] = {}
    if outcome == "ok":
        status = {"code": _STATUS_OK}
    elif outcome:
        status = {"code": _STATUS_ERROR, "message": span.text("error") or outcome}
    return {
        "traceId": trace,
        "spanId": span_id(span),
        "parentSpanId": parent,
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": str(max(span.start, 0)),
        "endTimeUnixNano": str(max(span.finish, span.start, 0)),
        "attributes": list(_attributes(values)),
        "events": [
            {"timeUnixNano": str(max(point.time, 0)), "name": point.name, "attributes": list(_attributes(point.values))}
            for point in points.get((id(span.process), span.number), ())
        ],
        "status": status,
    }


def _attributes(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in values.items():
        if value is not None:
            yield {"key": name, "value": _value(value)}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return {"intValue": str(value)}
    if isinstance(value, float) and abs(value) < float("inf"):
        return {"doubleValue": value}
    if isinstance(value, str):
        # A half of a surrogate pair is no text in any protocol.
        return {"stringValue": value.encode("utf-8", "replace").decode()}
    return {"stringValue": json.dumps(value)}
