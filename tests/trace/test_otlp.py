"""Records are OTLP/JSON, as OpenTelemetry's collector reads it from files."""

import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.trace import spans, values
from tests.trace import traces


def of_keys(part: Any, *endings: str) -> Iterator[Any]:
    """The values, however deep, of keys that end like this."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from [value] if key.endswith(endings) else of_keys(value, *endings)
    elif isinstance(part, list):
        for each in part:
            yield from of_keys(each, *endings)


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


def test_the_lines_are_requests_of_the_protocol(lines: list[dict[str, Any]]) -> None:
    trace_service = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="opentelemetry-proto is not installed"
    )
    from google.protobuf import json_format

    found = []
    for line in lines:
        # OpenTelemetry's mapping has ids in hexadecimal, protobuf's own in base64; in both, 64-bit numbers are texts.
        assert all(re.fullmatch("[0-9a-f]{16}|[0-9a-f]{32}", each) for each in of_keys(line, "Id"))
        assert all(re.fullmatch("-?[0-9]{1,19}", each) for each in of_keys(line, "UnixNano", "intValue"))
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
