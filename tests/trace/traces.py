"""Reading what was recorded, as a test needs it."""

import json
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastio.trace import otlp
from tests.eventually import until

_NAMES = {shown: name for name, shown in otlp.NAMES.items()}


class Span(NamedTuple):
    name: str
    id: str
    parent: str
    trace: str
    begin: int
    end: int
    values: dict[str, Any]
    #: name and values
    events: list[tuple[str, dict[str, Any]]]
    #: of the process
    resource: dict[str, Any]
    #: the number of the line in the file
    line: int


def files(directory: str | pathlib.Path) -> list[pathlib.Path]:
    return sorted(pathlib.Path(directory).glob("*.jsonl"))


def spans(directory: str | pathlib.Path) -> list[Span]:
    """All spans, file by file, in the order in which they were written; every line has to be whole."""
    return [span for path in files(directory) for span in of_file(path)]


def of_file(path: pathlib.Path) -> list[Span]:
    found = []
    for number, line in enumerate(_whole(path).splitlines()):
        if line:
            (of_resource,) = json.loads(line)["resourceSpans"]
            (scope,) = of_resource["scopeSpans"]
            resource = _values(of_resource["resource"]["attributes"])
            found += [_span(each, resource, number) for each in scope["spans"]]
    return found


def _whole(path: pathlib.Path) -> str:
    """The text of a file whose last line ends: a reader can see a part of what is just being written."""

    def ended() -> list[str]:
        content = path.read_text(encoding="utf-8")
        # A file is empty where a write before took its first lines along.
        return [content] if not content or content.endswith("\n") else []

    (content,) = until(ended, f"the end of the last line of {path}")
    return content


def _span(each: dict[str, Any], resource: dict[str, Any], line: int) -> Span:
    times = int(each["startTimeUnixNano"]), int(each["endTimeUnixNano"])
    events = [(event["name"], _values(event["attributes"])) for event in each.get("events", ())]
    ids = each["spanId"], each.get("parentSpanId", ""), each["traceId"]
    return Span(each["name"], *ids, *times, _values(each["attributes"]), events, resource, line)


def _values(attributes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for each in attributes:
        ((kind, value),) = each["value"].items()
        name = _NAMES.get(each["key"], each["key"].removeprefix(otlp.PREFIX))
        assert name not in found
        found[name] = int(value) if kind == "intValue" else value
    return found


def ends(directory: str | pathlib.Path, name: str) -> list[dict[str, Any]]:
    """The values of the spans ``name``."""
    return [span.values for span in spans(directory) if span.name == name]


def well_formed(found: Iterable[Span]) -> None:
    """Each span is there once, within the one that it is part of."""
    by_id = {span.id: span for span in found}
    assert len(by_id) == len(list(found))
    for span in by_id.values():
        assert span.begin <= span.end
        if span.parent in by_id:
            assert by_id[span.parent].begin <= span.begin
            assert by_id[span.parent].trace == span.trace
