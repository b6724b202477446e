"""The benchmark of tracing with few events, and what is said of its figures."""

import pytest

from benchmarks.harness.tables import EMPTY
from benchmarks.suites.trace import tables
from benchmarks.suites.trace import workload as trace
from tests.benchmarks import samples


def test_spans_that_are_lost_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastio.trace import recorder

    monkeypatch.setattr(recorder, "MOST_WAITING", 0)
    with pytest.raises(trace.LostSpans):
        trace.spans({"count": 50})
    assert recorder.active is None


SAME = [1.0 + number / 10_000 for number in range(-10, 11)]


@pytest.mark.parametrize(
    ("times", "met"),
    [(SAME, "yes"), ([1.02 * each for each in SAME], "no"), ([0.9, 1.1, 1.0, 0.8, 1.2, 0.95], EMPTY)],
)
def test_pairs_decide_what_a_trace_costs(times: list[float], met: str) -> None:
    cell = {"size": 1, "at_once": 1, "busy": 0, "large": True, "calls": 1}
    row = samples.variant([1.0], name="pairs")
    row.runs[-1]["pairs"] = [{**cell, "untraced": [1.0] * len(times), "traced": times}]
    case = samples.case({"pairs": row}, name="g", workload="never_slower", unit="slower", value="cpu_seconds")
    (table,) = tables.judgement(samples.result(case))
    assert [(line[0], line[-1]) for line in table.rows] == [("g: traced", met)]
    assert met != "yes" or table.rows[0][2].startswith("1.0000 (0.99")
