"""What is recorded is OTLP/JSON, as OpenTelemetry's collector reads it from files."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from fastio.trace import spans, values
from tests.trace import traces

#: The parts of the JSON schema of an ExportTraceServiceRequest that are written. Ids are in hexadecimal, which differs
#: from protobuf's own mapping, and whole numbers of 64 bits are texts.
HEX16, HEX32, INT64 = "^[0-9a-f]{16}$", "^[0-9a-f]{32}$", "^-?[0-9]{1,19}$"


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    properties = {**required, **optional}
    return {"type": "object", "required": [*required], "properties": properties, "additionalProperties": False}


def _text(pattern: str = ".+") -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


ATTRIBUTES = _list(
    _object(
        {"key": _text(), "value": {"oneOf": [_object({"stringValue": _text()}), _object({"intValue": _text(INT64)})]}}
    )
)
SPAN = _object(
    {"traceId": _text(HEX32), "spanId": _text(HEX16), "name": _text(), "kind": {"enum": [1, 2, 3]},
     "startTimeUnixNano": _text(INT64), "endTimeUnixNano": _text(INT64), "attributes": ATTRIBUTES,
     "status": _object({}, code={"const": 2})},
    parentSpanId=_text(HEX16),
    events=_list(_object({"timeUnixNano": _text(INT64), "name": _text(), "attributes": ATTRIBUTES})),
)  # fmt: skip
SCOPE = _object({"scope": _object({"name": _text(), "version": _text()}), "spans": _list(SPAN)})
RESOURCE = _object({"resource": _object({"attributes": ATTRIBUTES}), "scopeSpans": _list(SCOPE)})
SCHEMA = _object({"resourceSpans": _list(RESOURCE)})


@pytest.fixture
def lines(recorded: Callable[[], Any], tmp_path: pathlib.Path) -> list[dict[str, Any]]:
    identity = values.request_id("req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3")
    with spans.Span(
        "glance.request", None, {"method": values.method("GET"), "global": identity, "status": 200}
    ) as root:
        spans.point("message.received", root, {"message": identity})
        with spans.begin("store.filesystem.get", bytes=1 << 40, store=values.name("images")):
            pass
    with pytest.raises(OSError), spans.begin("client.request"):
        raise OSError(28, "No space left on device")
    recorded()
    (path,) = traces.files(tmp_path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_lines_fit_the_schema(lines: list[dict[str, Any]]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    assert len(lines) == 2
    for line in lines:
        jsonschema.validate(line, SCHEMA)


def test_the_lines_are_requests_of_the_protocol(lines: list[dict[str, Any]]) -> None:
    """By opentelemetry-proto, whose mapping has ids in base64."""
    trace_service = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="opentelemetry-proto is not installed"
    )
    from google.protobuf import json_format

    found = []
    for line in lines:
        ids = {}
        for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            ids[span["name"]] = {name: span.pop(name, "") for name in ("traceId", "spanId", "parentSpanId")}
        request = json_format.ParseDict(line, trace_service.ExportTraceServiceRequest())
        (resource,) = request.resource_spans
        assert {each.key for each in resource.resource.attributes} >= {
            "service.name", "service.instance.id", "host.name", "process.pid", "telemetry.sdk.name"
        }  # fmt: skip
        found += [(span, ids[span.name]) for span in resource.scope_spans[0].spans]
    (get, of_get), (request, of_request), (failed, _) = found
    assert (get.name, request.name, failed.name) == ("store.filesystem.get", "glance.request", "client.request")
    assert of_get["parentSpanId"] == of_request["spanId"]
    assert of_get["traceId"] == of_request["traceId"] == "5ba9f1b26a0c4f0e9a424ef5b8e0a1c3"
    assert (get.kind, request.kind, failed.kind) == (1, 2, 3)
    assert (get.status.code, request.status.code, failed.status.code) == (0, 0, 2)
    assert request.start_time_unix_nano <= get.start_time_unix_nano <= get.end_time_unix_nano
    assert [event.name for event in request.events] == ["message.received"]
    attributes = {each.key: each.value for each in request.attributes}
    assert attributes["http.request.method"].string_value == "GET"
    assert attributes["http.response.status_code"].int_value == 200
    assert {each.key: each.value.int_value for each in get.attributes}["fastio.bytes"] == 1 << 40
    assert {each.key: each.value.string_value for each in failed.attributes}["fastio.error"] == "OSError ENOSPC"
