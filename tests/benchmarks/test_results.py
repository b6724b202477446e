"""Results keep every figure, survive interruption, and refuse what they cannot read."""

import json

import pytest

from benchmarks.harness import results
from tests.benchmarks import samples


def test_a_written_result_is_read_again(tmp_path):
    failure = {"reason": "exit status 1", "status": 1, "stderr": "no"}
    written = samples.result(
        samples.case({"stock": [0.5, 0.25], "failed": samples.variant([], failure=failure), "fast": [0.1]}),
        samples.case({"stock": [0.5]}, name="other", unit="ms", columns=["p90"]),
    )
    path = tmp_path / "deep" / "result.json"
    written.write(path)
    assert results.read(path) == written
    assert [each.name for each in path.parent.iterdir()] == ["result.json"]


def test_every_raw_figure_is_in_the_file(tmp_path):
    path = tmp_path / "result.json"
    samples.result(samples.case({"stock": [0.5, 1 / 3]})).write(path)
    data = json.loads(path.read_text())
    (case,) = data["cases"]
    assert [run["seconds"] for run in case["variants"]["stock"]["runs"]] == [1000.0, 0.5, 1 / 3]
    assert {"format", "version", "machine", "packages", "command", "started", "finished"} <= data.keys()


def test_the_warm_up_does_not_count():
    case = samples.case({"stock": [0.5, 0.25]})
    assert case.figures("stock") == pytest.approx([samples.SIZE / 0.5 / 1e6, samples.SIZE / 0.25 / 1e6])
    assert case.variants["stock"].median("seconds") == 0.375


@pytest.mark.parametrize(
    ("unit", "value", "expected", "more_is_better"),
    [
        ("MB/s", "seconds", 100.0, True),
        ("MiB/s", "seconds", 1e8 / (1 << 20), True),
        ("s", "seconds", 2.0, False),
        ("ms", "seconds", 2000.0, False),
        ("us", "seconds", 2e6, False),
        ("ms", "p50", 7.0, False),
        ("waits", "p50", 7.0, False),
    ],
)
def test_units(unit, value, expected, more_is_better):
    case = samples.case({"stock": [1.0]}, unit=unit, value=value)
    assert case.figure({"bytes": 200_000_000, "seconds": 2.0, "p50": 7.0}) == pytest.approx(expected)
    assert case.more_is_better is more_is_better


def test_costs_are_by_the_bytes_that_were_moved():
    costs = samples.variant([0.5, 0.25, 0.5]).costs()
    assert costs["cpu_seconds_per_gib"] == pytest.approx(0.25 * 1024 / 200)
    assert costs["reads_per_mib"] == 32
    assert "waits_per_mib" not in costs


def test_a_figure_that_a_run_lacks_has_no_median():
    variant = samples.variant([0.5, 0.25])
    del variant.runs[-1]["reads"]
    assert variant.median("reads") is None
    assert "reads_per_mib" not in variant.costs()


def test_one_wrong_run_spoils_the_verification():
    variant = samples.variant([0.5, 0.25])
    assert variant.verified()
    variant.runs[-1]["verified"] = False
    assert not variant.verified()
    assert not samples.variant([]).verified()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no format"),
        ('{"format": "pyperf"}', "no format"),
        ('{"format": "fastio-benchmark", "version": 99}', "version 99"),
        ('{"format": "fastio-benchmark", "version": 1, "suite": "x"}', "version 1, but this program reads version 3"),
        ('{"format": "fastio-benchmark", "version": 3, "suite": "x"}', "incomplete"),
        (samples.result(samples.case({"stock": [0.5]})).text().replace('"workload": ', '"work": '), "incomplete"),
    ],
)
def test_other_files_are_refused_with_a_reason(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(results.ResultError, match=message) as caught:
        results.read(path)
    assert str(path) in str(caught.value)
