"""Comparing two results: the table comes first, and noise is distinguished from change."""

import random

import numpy
import pytest
from scipy.stats import bootstrap

from benchmarks.harness import compare, statistics
from tests.benchmarks import samples
from tests.benchmarks.samples import SPREAD, times


def row(before: list[float], after: list[float], **fields) -> compare.Row:
    first, second = (samples.result(samples.case({"stock": figures}, **fields)) for figures in (before, after))
    (found,) = compare.compare(first, second).rows
    return found


@pytest.mark.parametrize("unit", ["MB/s", "s", "ms"])
def test_faster_slower_and_noise(unit):
    assert row(SPREAD, times(0.5), unit=unit).verdict == "faster"
    assert row(SPREAD, times(0.5), unit=unit).better.ratio == pytest.approx(2)
    assert row(SPREAD, times(2), unit=unit).verdict == "slower"
    assert row(SPREAD, times(2), unit=unit).better.ratio == pytest.approx(0.5)
    assert row(SPREAD, SPREAD, unit=unit).verdict == "noise"
    assert row(SPREAD, times(1.01), unit=unit).verdict == "noise"


def test_a_figure_of_zero_has_no_ratio():
    """A count, say of what is slower; here of reads."""
    before, after = (samples.case({"stock": SPREAD}, unit="reads", value="reads") for _ in range(2))
    for run in before.variants["stock"].runs:
        run["reads"] = 0
    found = compare.compare(samples.result(before), samples.result(after))
    assert (found.rows, found.left_out) == ([], ["case cat: row stock: a figure is 0; the medians are 0 and 6400"])


def test_three_rounds_can_not_tell():
    found = row([0.5, 0.51, 0.52], [0.1, 0.11, 0.12])
    assert found.verdict == "noise (too few rounds to tell)"
    assert found.better.ratio > 4


def test_noise_is_rarely_taken_for_change():
    random.seed(1)
    verdicts = [row(*[[random.gauss(1, 0.1) for _ in range(9)] for _ in range(2)]).verdict for _ in range(100)]
    assert verdicts.count("noise") >= 97


def test_a_change_takes_both_the_ranks_and_the_interval():
    def lumps(first: float, second: float) -> list[float]:
        return [start + number / 1000 for start, count in ((first, 10), (second, 11)) for number in range(count)]

    # The second is surely slower, but who knows by how much.
    found = row(lumps(1.0, 1.5), lumps(1.3, 2.0))
    assert found.p < compare.ALPHA and found.better.low < 1 < found.better.high
    assert found.verdict == "noise"
    # All of the interval is beyond 1, and chance would do that now and then.
    found = row([0.96, 0.96, 0.98, 0.99, 1.02, 1.02, 1.02], [0.94, 1.06, 1.06, 1.09, 1.10, 1.11, 1.18])
    assert found.p > compare.ALPHA and found.better.high < 1
    assert found.verdict == "noise"


def test_differences_are_reported():
    before = samples.result(samples.case({"stock": samples.variant(SPREAD, details={"python": "3.11"})}))
    after = samples.result(
        samples.case(
            {
                "stock": samples.variant(
                    SPREAD, parameters={"size": 1, "n": 3}, details={"python": "2.7", "fastio": {"settings": {
                        "chunk_size": {"value": 65536, "source": "default"}}}}
                )
            },
            parameters={"size": 1},
        ),
        machine={**samples.MACHINE, "kernel": "5.4", "load": 9},
        packages={"eventlet": "0.40", "gevent": "26"},
        suite="other",
    )  # fmt: skip
    differences = compare.compare(before, after).differences
    assert differences == [
        "suite: sample -> other",
        "machine kernel: 6.1 -> 5.4",
        "package eventlet: 0.41.3 -> 0.40",
        "package gevent: (none) -> 26",
        f"case cat: parameter size: {samples.SIZE} -> 1",
        "case cat: row stock: python: 3.11 -> 2.7",
        "case cat: row stock: parameter n: (none) -> 3",
        "case cat: row stock: fastio chunk_size: (none) -> 65536",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"load_before": 0.3}, {"load_before": 1.8}, ["case cat: load average before it: 0.3 -> 1.8"]),
        ({"load_before": 0.3}, {"load_before": 0.3}, []),
        ({}, {"backend": {"directory": "/dev/shm"}}, ["case cat: backend directory: (none) -> /dev/shm"]),
    ],
)
def test_the_surroundings_are_reported(before, after, told):
    first, second = (samples.result(samples.case({"stock": SPREAD}, **fields)) for fields in (before, after))
    assert compare.compare(first, second).differences == told


def test_incomparable_rows_are_reported():
    failure = {"reason": "exit status 1", "status": 1, "stderr": ""}
    before = samples.result(
        samples.case({"stock": SPREAD, "gone": SPREAD, "fails": SPREAD}),
        samples.case({"stock": SPREAD}, name="old"),
        samples.case({"stock": SPREAD}, name="changed", unit="s"),
    )
    after = samples.result(
        samples.case({"stock": SPREAD, "fails": samples.variant([], failure=failure)}),
        samples.case({"stock": SPREAD}, name="new"),
        samples.case({"stock": SPREAD}, name="changed", unit="MB/s"),
    )
    found = compare.compare(before, after)
    assert [(row.case, row.title) for row in found.rows] == [("cat", "stock")]
    assert found.left_out == [
        "case cat: row gone: only in the first result",
        "case cat: row fails: no figures in the second result",
        "case old: only in the first result",
        "case changed: seconds in s and seconds in MB/s",
        "case new: only in the second result",
    ]


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, factor, kernel in (("one", 1, "6.1"), ("two", 0.5, "6.2")):
        paths.append(str(tmp_path / f"{name}.json"))
        machine = {**samples.MACHINE, "kernel": kernel}
        samples.result(samples.case({"stock": times(factor)}), machine=machine).write(tmp_path / f"{name}.json")
    return paths


def test_command_reads_both_files(files, capsys):
    one, two = files
    assert compare.main([one, two]) == 0
    there = capsys.readouterr().out
    assert compare.main([two, one]) == 0
    back = capsys.readouterr().out
    assert compare.main([one, one]) == 0
    same = capsys.readouterr().out
    assert "1 faster, 0 slower, 0 noise" in there and "419 MB/s" in there and "839 MB/s" in there
    assert "0 faster, 1 slower, 0 noise" in back
    assert "0 faster, 0 slower, 1 noise" in same and "same machine" in same
    assert there.index("419 MB/s") < there.index("1 faster") < there.index("machine kernel: 6.1 -> 6.2")


def test_command_names_a_file_that_is_no_result(files, tmp_path, capsys):
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    assert compare.main([files[0], str(broken)]) == 2
    assert str(broken) in capsys.readouterr().err
    assert compare.main([files[0], str(tmp_path / "missing.json")]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/missing.json: No such file or directory\n"


def test_statistics():
    assert statistics.median([30, 1, 2]) == 2
    assert statistics.deviation([1, 2, 3, 4, 100]) == 1
    # All seven of one side before all seven of the other: two of the 3,432 orders.
    assert statistics.rank_test(range(7), range(10, 17)) == pytest.approx(2 / 3432)
    assert statistics.smallest_p(7, 7) == pytest.approx(2 / 3432)
    interval = statistics.ratio(times(2), SPREAD)
    assert interval.ratio == pytest.approx(2)
    assert 1.7 < interval.low < 2 < interval.high < 2.3
    assert statistics.ratio(times(2), SPREAD) == interval


def test_intervals_are_those_of_scipy():
    random = numpy.random.default_rng(1)
    above, below = random.gamma(3, 1, 25), random.gamma(5, 1, 40)

    def ratio(first, second, axis):
        return numpy.median(first, axis=axis) / numpy.median(second, axis=axis)

    same = {"method": "percentile", "n_resamples": 10_000, "random_state": 2}
    found = statistics.ratio(above, below)
    assert found[1:] == pytest.approx(bootstrap((above, below), ratio, **same).confidence_interval, rel=0.03)
    assert found.ratio == pytest.approx(numpy.median(above) / numpy.median(below))


@pytest.mark.parametrize(
    ("figures", "arguments", "expected"),
    [
        (SPREAD, {}, []),
        (SPREAD[:3], {"usual_rounds": 3}, ["only 3 rounds"]),
        (SPREAD[:3], {"usual_rounds": 7}, ["only 3 rounds, by design"]),
        ([1.0], {"usual_rounds": 1}, ["only 1 round"]),
        ([1, 1, 1.2, 1.2, 1.3, 1.4, 1.5], {}, ["wide spread: ±17% around the median"]),
        ([*SPREAD[:-1], 1.0], {}, ["one run is 96% off the median"]),
        (SPREAD, {"seconds": [0.0005] * 7}, ["a run took only 0.5 ms"]),
    ],
)
def test_doubts(figures, arguments, expected):
    assert statistics.doubts(figures, **arguments) == expected
