"""OTLP/JSON: the lines of a trace's files, as OpenTelemetry's exporter for files writes them.

A line is one ``ExportTraceServiceRequest``. https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/ has the
format; ids are in hexadecimal there, and whole numbers of 64 bits are texts.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fastio.trace.values import MASK, Recordable, name, program
from fastio.version import VERSION

#: SpanKind and StatusCode of the protocol.
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
_ERROR = 2
#: Attributes that the semantic conventions name; the others begin with ``fastio.``.
NAMES = {
    "method": "http.request.method",
    "path": "http.route",
    "status": "http.response.status_code",
    "request": "openstack.request_id",
    "global": "openstack.global_request_id",
}
PREFIX = "fastio."
#: Attributes of a process by which its clock can be compared with that of another: the boot of the kernel, and what was
#: added to the monotonic clock, in ns.
BOOT, CLOCK = "fastio.boot_id", "fastio.clock_offset"


class _Keys(dict[str, str]):
    """The beginning of an attribute by its name here."""

    def __missing__(self, name: str) -> str:
        found = self[name] = f'{{"key":{json.dumps(NAMES.get(name) or PREFIX + name)},"value":'
        return found


_keys = _Keys()


def _attributes(values: Mapping[str, Any]) -> str:
    """Numbers and what is known to be recordable, which needs no escapes; nothing else is recorded."""
    shown = [
        f'{_keys[name]}{{"intValue":"{value}"}}}}' if type(value) is int
        else f'{_keys[name]}{{"stringValue":"{value}"}}}}'
        for name, value in values.items() if type(value) in _KINDS
    ]  # fmt: skip
    return f"[{','.join(shown)}]"


_KINDS = (int, Recordable)


def encode(resource: str, spans: Iterable[Any], clock: int) -> bytes:
    """A line.

    :param resource: from :func:`resource`
    :param clock: ns to add to the monotonic clock, for ns since 1970
    """
    shown = ",".join(_span(each, clock) for each in spans)
    return f'{resource}"spans":[{shown}]}}]}}]}}\n'.encode()


def _span(span: Any, clock: int) -> str:
    what, values = span.name, span.values
    kind = _CLIENT if what == "client.request" else _SERVER if what.endswith(".request") else _INTERNAL
    parent = f'"parentSpanId":"{span.parent_id}",' if span.parent_id else ""
    status = f'{{"code":{_ERROR}}}' if values.get("outcome") in ("error", "aborted") else "{}"
    events = ""
    if span.events:
        shown = (
            f'{{"timeUnixNano":"{when + clock}","name":"{happened}","attributes":{_attributes(more)}}}'
            for when, happened, more in tuple(span.events)
        )
        events = f'"events":[{",".join(shown)}],'
    return (
        f'{{"traceId":"{span.trace}","spanId":"{span.id}",{parent}"name":"{what}","kind":{kind},'
        f'"startTimeUnixNano":"{span.began + clock}","endTimeUnixNano":"{span.finished + clock}",'
        f'"attributes":{_attributes(values)},{events}"status":{status}}}'
    )


def resource(component: str, host: str, instance: str, clock: int) -> str:
    """The beginning of each line of a process, up to its spans."""
    own = program(sys.argv).replace(MASK, "")
    service = (
        name(component) if component else "glance-api" if "glance.common.wsgi" in sys.modules else own or "unknown"
    )
    texts = {
        "service.name": service,
        "service.instance.id": instance,
        "host.name": name(host),
        "process.executable.name": own,
        "process.runtime.name": sys.implementation.name,
        "process.runtime.version": ".".join(map(str, sys.version_info[:3])),
        "telemetry.sdk.name": "fastio",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": VERSION,
        BOOT: boot_id(),
    }
    numbers = {"process.pid": os.getpid(), CLOCK: clock}
    attributes = [{"key": key, "value": {"stringValue": text}} for key, text in texts.items() if text]
    attributes += [{"key": key, "value": {"intValue": str(number)}} for key, number in numbers.items()]
    shown = json.dumps({"attributes": attributes}, separators=(",", ":"))
    scope = json.dumps({"name": "fastio.trace", "version": VERSION}, separators=(",", ":"))
    return f'{{"resourceSpans":[{{"resource":{shown},"scopeSpans":[{{"scope":{scope},'


def boot_id() -> str:
    """The boot of the kernel: monotonic clocks of one boot are one clock; empty if the system does not say."""
    try:
        found = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return found if re.fullmatch("[0-9a-f-]{36}", found) else ""
