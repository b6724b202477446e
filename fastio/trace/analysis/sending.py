"""Sends spans to a collector: with OpenTelemetry's own exporter, which follows OpenTelemetry's own variables.

The exporter says of what it could not send only that. What the collector has answered, which tells whether and when to
try again, is taken from the session of requests that the exporter is given.
"""

import email.utils
import logging
import os
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastio.trace.analysis.model import TraceError

#: Where the standard has the path of traces, below the address of a collector.
PATH = "/v1/traces"
_ALLOWED = "an address such as http://collector:4318"
_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
#: Statuses by which a collector says that it will never take this.
_NEVER = (400, 413, 422)
#: Seconds that a collector can have somebody wait.
_LONGEST = 3600.0


class Unavailable(Exception):
    """The collector is not there, or does not take anything now.

    :ivar after: seconds before which it is not to be asked again
    """

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class Refused(Exception):
    """The collector will never take what was sent."""


def address(url: str) -> str:
    """The address that traces are sent to, of that of a collector.

    :raises ValueError: if it is none
    """
    parts = urllib.parse.urlsplit(url)
    # Looking at the port is what finds one that is none.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or parts.fragment:
        raise ValueError(url)
    path = parts.path.rstrip("/")
    return urllib.parse.urlunsplit(parts._replace(path=path if path.endswith(PATH) else path + PATH))


class Collector:
    """A collector, which is asked only when something is sent.

    :param url: where it is; by default what OpenTelemetry's variables say, else http://localhost:4318
    :raises TraceError: if that is no address, or the exporter is not installed
    """

    def __init__(self, url: str | None = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.trace.export import SpanExportResult
        except ImportError as error:
            raise TraceError(
                "this needs opentelemetry-exporter-otlp-proto-http, which cannot be imported "
                f"({error}): pip install 'fastio[otlp]'"
            ) from error
        self.url = _endpoint(url)
        self._answers, session = _watched_session()
        # What it logs is said here, and once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        try:
            self._exporter = OTLPSpanExporter(endpoint=self.url, session=session)
        except (ValueError, OSError) as error:
            raise TraceError(f"OpenTelemetry's exporter does not take what its variables say: {error}") from error
        self._success = SpanExportResult.SUCCESS

    def send(self, made: Mapping[str, Any]) -> None:
        """Send plain data as :func:`fastio.trace.analysis.otlp.export_spans` makes it.

        :raises Unavailable: if it cannot be sent now
        :raises Refused: if it cannot be sent at all
        """
        answers = self._answers
        answers.asked, answers.status, answers.after, answers.why = False, 0, 0.0, ""
        error: Exception | None = None
        try:
            if self._exporter.export(list(spans(made))) is self._success:
                return
        except Exception as raised:
            # Which errors the exporter catches differs from release to release.
            error = raised
        if not answers.asked:
            raise Refused(f"it cannot be encoded: {error}" if error else "it cannot be encoded, or is too large")
        if answers.status in _NEVER:
            raise Refused(answers.why)
        raise Unavailable(answers.why, answers.after)

    def rejected(self) -> int:
        """How many spans of the last ones the collector has taken and thrown away; it says why it did in ``why``."""
        return self._answers.rejected

    @property
    def why(self) -> str:
        return self._answers.why


def _endpoint(url: str | None) -> str:
    """The address to send to."""
    if url is None:
        for name in _PROTOCOLS:
            protocol = os.environ.get(name) or _PROTOCOL
            if protocol != _PROTOCOL:
                raise TraceError(f"{name}: {protocol!r} is not allowed; allowed is {_PROTOCOL}")
            if name in os.environ:
                break
    name, given = next(((name, os.environ[name]) for name in _VARIABLES if os.environ.get(name)), ("", ""))
    if url is not None or not given:
        name, given = "--otlp", "http://localhost:4318" if url is None else url
    try:
        made = address(given)
    except ValueError:
        raise TraceError(f"{name}: {given!r} is not allowed; allowed is {_ALLOWED}") from None
    # Of this one the standard has it that nothing is added to it.
    return given if name == _VARIABLES[0] else made


def _watched_session() -> tuple[Any, Any]:
    """What notes how each request of a session was answered, and the session."""
    import requests
    from requests.adapters import HTTPAdapter
    from requests.exceptions import RequestException

    class Session(requests.Session):
        def request(self, *arguments: Any, **named: Any) -> Any:
            answers.asked = True
            try:
                return super().request(*arguments, **named)
            except Exception as error:
                # Such as a header that cannot be sent.
                answers.why = answers.why or f"{type(error).__name__}: {error}"
                raise

    class Answers(HTTPAdapter):
        asked = False
        status = 0
        after = 0.0
        why = ""
        rejected = 0

        def send(self, *arguments: Any, **named: Any) -> Any:
            self.status, self.after, self.rejected = 0, 0.0, 0
            try:
                answer = super().send(*arguments, **named)
            except RequestException as error:
                self.why = f"{type(error).__name__}: {error}"
                raise
            self.status = answer.status_code
            self.why = "" if 200 <= self.status < 300 else f"it answers {answer.status_code} {answer.reason}"
            if self.why:
                # The exporter would try again by its own clock, or follow, or take a redirection for a success.
                self.after = _seconds(answer.headers.get("Retry-After"))
                answer.close()
                raise RequestException(self.why)
            self.rejected, self.why = _partial(answer.content)
            return answer

    answers, session = Answers(), Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, answers)
    return answers, session


def _seconds(value: str | None) -> float:
    """How long a ``Retry-After`` says to wait; 0 if it says nothing."""
    if value is None:
        return 0.0
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), _LONGEST)
    try:
        moment = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(moment - time.time(), 0.0), _LONGEST)


def _partial(content: bytes) -> tuple[int, str]:
    """How many spans of a request a collector has not taken, and why."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        told = ExportTraceServiceResponse.FromString(content).partial_success
    except DecodeError:
        # An answer of something else than a collector.
        return 0, ""
    return told.rejected_spans, told.error_message


def spans(made: Mapping[str, Any]) -> Iterator[Any]:
    """The spans of an ``ExportTraceServiceRequest`` as OpenTelemetry's SDK has them."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    kinds = {1: SpanKind.INTERNAL, 2: SpanKind.SERVER, 3: SpanKind.CLIENT}
    sampled = TraceFlags(TraceFlags.SAMPLED)

    def context(trace: str, span: str) -> Any:
        return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=sampled) if span else None

    for each in made["resourceSpans"]:
        resource = Resource(_plain(each["resource"]["attributes"]))
        for group in each["scopeSpans"]:
            scope = InstrumentationScope(group["scope"]["name"], group["scope"]["version"])
            for span in group["spans"]:
                status = span["status"]
                yield ReadableSpan(
                    name=span["name"],
                    context=context(span["traceId"], span["spanId"]),
                    parent=context(span["traceId"], span["parentSpanId"]),
                    resource=resource,
                    attributes=_plain(span["attributes"]),
                    events=[
                        Event(event["name"], _plain(event["attributes"]), int(event["timeUnixNano"]))
                        for event in span["events"]
                    ],
                    kind=kinds[span["kind"]],
                    status=Status(StatusCode(status.get("code", 0)), status.get("message")),
                    start_time=int(span["startTimeUnixNano"]),
                    end_time=int(span["endTimeUnixNano"]),
                    instrumentation_scope=scope,
                )


def _plain(attributes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = {}
    for each in attributes:
        ((kind, value),) = each["value"].items()
        found[each["key"]] = int(value) if kind == "intValue" else value
    return found
