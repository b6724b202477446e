"""What is exported is what the formats' own readers and schemas accept, and says what the trace says."""

import base64
import json
from typing import Any

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("drain3", reason="drain3 is not installed")

from benchmarks.tools.synthetic import BEGIN, HOSTS, MS, Host, Process, World
from fastio.trace.analysis import otlp, perfetto
from fastio.trace.analysis.analysis import analyse


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trace")
    world = World(list(HOSTS), seed=2)
    world.run(10, 3)
    world.download(BEGIN + 3000 * MS, error="ConnectionError: Connection refused", status=503)
    # A request that has no end, and a value of each type.
    world.client.begin(BEGIN + 3100 * MS, "client.request", truth=True, half=0.5, many=[1], nothing=None, lone="\ud800")
    world.write(directory)
    return analyse([directory])


def spans_of(made):
    return [span for each in made["resourceSpans"] for scope in each["scopeSpans"] for span in scope["spans"]]


def test_otlp_is_read_by_opentelemetrys_own_messages(analysis):
    json_format = pytest.importorskip("google.protobuf.json_format", reason="opentelemetry-proto is not installed")
    service = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="opentelemetry-proto is not installed"
    )
    made = json.loads(json.dumps(otlp.export(analysis)))
    for span in spans_of(made):
        # In OTLP's JSON ids are in hexadecimal, in that of protobuf in base64.
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = json_format.ParseDict(made, service.ExportTraceServiceRequest())
    found = [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert len(found) == len(analysis.trace.spans())
    assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in found)
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in found)
    assert len({span.span_id for span in found}) == len(found)
    assert {span.status.code for span in found} == {0, 1, 2}
    assert sum(len(span.events) for span in found) == 44
    names = {each.key: each.value.string_value for each in request.resource_spans[0].resource.attributes}
    assert names["service.name"] == "glance-api"
    # Of files that do not say it, as those of earlier releases.
    assert not {"os.type", "process.runtime.name", "process.runtime.version"} & set(names)
    instances = {
        each.value.string_value
        for resource in request.resource_spans for each in resource.resource.attributes
        if each.key == "service.instance.id"
    }  # fmt: skip
    assert len(instances) == len(request.resource_spans)


def test_the_servers_span_is_within_its_clients_in_one_trace(analysis):
    spans = {span["spanId"]: span for span in spans_of(otlp.export(analysis))}
    for request in analysis.kinds()["download"]:
        client, server = (spans[otlp.span_id(span)] for span in (request.client, request.server))
        assert server["parentSpanId"] == client["spanId"]
        assert server["traceId"] == client["traceId"] == request.global_id.removeprefix("req-").replace("-", "")
        assert (client["kind"], server["kind"]) == (3, 2)
        assert int(client["startTimeUnixNano"]) <= int(server["startTimeUnixNano"])
    assert all(span["parentSpanId"] in ("", *spans) for span in spans.values())


def test_one_request_can_be_exported_alone(analysis):
    [request] = analysis.request(analysis.kinds()["download"][0].id)
    assert len(spans_of(otlp.export(analysis, [request]))) == 6
    events = perfetto.export(analysis, [request])["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 6
    assert not any(event["ph"] == "C" for event in events)


NUMBER = {"type": "number"}
PLACE = {"pid": {"type": "integer"}, "tid": {"type": "integer"}, "ts": {**NUMBER, "minimum": 0}}
LENGTH = {**NUMBER, "minimum": 0}
TEXT = {"type": "string", "minLength": 1}


def event(ph, required, **properties):
    return {
        "properties": {"ph": {"const": ph}, "name": TEXT, **PLACE, **properties},
        "required": ["ph", "name", "pid", *required],
    }


#: Of the Trace Event Format's document, what is used here.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "oneOf": [
                    event("X", ["tid", "ts", "dur", "cat", "args"], dur=LENGTH, args={"type": "object"}),
                    event("s", ["tid", "ts", "id", "cat"]),
                    event("f", ["tid", "ts", "id", "cat", "bp"], bp={"const": "e"}),
                    event("C", ["ts", "args"], args={"type": "object", "additionalProperties": NUMBER}),
                    event("M", ["args"], name={"enum": ["process_name", "thread_name"]}, args={"required": ["name"]}),
                ],
            },
        },
    },
}


def test_perfetto_fits_the_trace_event_format(analysis):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    made = json.loads(json.dumps(perfetto.export(analysis)))
    jsonschema.validate(made, SCHEMA)
    kinds = [each["ph"] for each in made["traceEvents"]]
    assert kinds.count("X") == len(analysis.trace.spans())
    assert kinds.count("s") == kinds.count("f") == 11
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"traceEvents": [{"ph": "X", "name": "x", "pid": 1}]}, SCHEMA)


def test_what_is_in_a_row_is_nested_or_beside(analysis):
    rows: dict[Any, list[Any]] = {}
    for each in perfetto.export(analysis)["traceEvents"]:
        if each["ph"] == "X":
            rows.setdefault((each["pid"], each["tid"]), []).append((each["ts"], each["ts"] + each["dur"]))
    assert rows
    for spans in rows.values():
        open_until: list[Any] = []
        for start, finish in sorted(spans, key=lambda span: (span[0], -span[1])):
            # Microseconds as floating point.
            while open_until and open_until[-1] <= start + 0.002:
                open_until.pop()
            assert not open_until or finish <= open_until[-1] + 0.002
            open_until.append(finish)


def test_processes_of_two_hosts_with_one_number_stay_apart(tmp_path):
    for name in ("a", "b"):
        process = Process(Host(name), 1, "glance-api")
        process.end(BEGIN + MS, process.begin(BEGIN, "glance.request"), "glance.request")
        process.write(tmp_path)
    analysis = analyse([tmp_path])
    assert len({each["pid"] for each in perfetto.export(analysis)["traceEvents"]}) == 2
    assert len({span["spanId"] for span in spans_of(otlp.export(analysis))}) == 2
