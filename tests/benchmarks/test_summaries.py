"""A summary shows what its result shows, without the runs."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import documentation
from benchmarks.harness import gains, keep, summaries, tables
from benchmarks.harness.results import Result, ResultError
from tests.benchmarks import samples
from tests.benchmarks.samples import FAILURE, SPREAD

SETTINGS = {
    "chunk_size": {"value": 65536, "source": "environment"},
    "pipe_size": {"value": 1 << 20, "source": "default"},
}


def sample() -> Result:
    rows: dict[str, Any] = {
        "native-stock": SPREAD,
        "native-fastio": samples.variant([each / 3 for each in SPREAD], details={"fastio": {"settings": SETTINGS}}),
        "slow": samples.variant([5.0, 5.1], parameters={"size": 16 << 20}),
        "broken": samples.variant([], failure=FAILURE),
        "absent": samples.variant([], skipped="no such Python"),
        "lying": samples.variant(SPREAD, verified=False),
    }
    for row in (rows["slow"], rows["lying"]):
        for number, run in enumerate(row.runs):
            run["p99_ms"] = 1.5 + number
    return samples.result(
        samples.case(rows, title="200 MiB of random data", load_before=5.0, columns=["p99_ms"]),
        samples.case({"stock": [2.0], "fastio": [1.0]}, name="latency", unit="s", complete=False),
        suite="sheepdog",
    )


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory with the summary of the sample as the run ``mine``."""
    path = tmp_path / "mine.json"
    sample().write(path)
    into = tmp_path / "kept"
    into.mkdir()
    assert keep.main([str(path), "--into", str(into)]) == 0
    return into


def test_its_tables_and_gains_are_those_of_the_result(kept: Path) -> None:
    result, run = sample(), keep.runs(kept)["mine"]
    assert tables.tables(run) == tables.tables(result)
    assert tables.summary(run)[2:] == tables.summary(result)[2:] == ["fastio settings: chunk_size 65536"]
    for case, whole in zip(run.cases, result.cases, strict=True):
        assert gains.finding(case) == gains.finding(whole)
        for one, other in zip(gains.gains(case), gains.gains(whole), strict=True):
            assert (one.title, one.against, one.verdict) == (other.title, other.against, other.verdict)
            assert one.times == pytest.approx(other.times, rel=1e-4)
    assert not run.cases[0].variants["lying"].verified()


def test_the_medians_that_are_kept_are_judged(tmp_path: Path) -> None:
    """By the median that is kept, the goal of 1.3 times stock's is met."""
    rows = {"stock": samples.variant([1.0]), "fastio": samples.variant([1.0])}
    for title, figure in (("stock", 1.0), ("fastio", 1.29999999)):
        rows[title].runs[-1]["operations_per_second"] = figure
    case = samples.case(rows, name="offered-glance-32", columns=["operations_per_second"])
    judged = keep.summary(samples.result(case, suite="concurrency")).judged
    assert [row[-1] for row in judged[0].rows] == ["yes"]


def test_nothing_of_the_machine_is_kept_of_a_command() -> None:
    run = sample()
    run.command = [
        f"{keep.ROOT}/.tox/x/lib/pytest/__main__.py",
        "-q",
        f"{keep.ROOT}/a.py",
        "--result",
        "/b.json",
        "-k",
        "c",
    ]
    assert keep.summary(run).command == ["python", "-m", "pytest", "-q", "a.py", "-k", "c"]
    run.command = ["fastio", "validate", "eventlet"]
    assert keep.summary(run).command == run.command


def test_a_run_replaces_the_one_of_its_name_only(kept: Path) -> None:
    (path,) = kept.iterdir()
    assert path.name == "sheepdog.json"
    first = summaries.read(path)["mine"]
    keep.add("other", first, "sheepdog", kept)
    changed = sample()
    changed.packages = {"eventlet": "0.99"}
    keep.add("other", keep.summary(changed), "sheepdog", kept)
    runs = keep.runs(kept)
    assert runs["mine"] == first and runs["other"].packages == {"eventlet": "0.99"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "fastio-benchmark", "version": 2}'])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ResultError, match="x.json: "):
        summaries.read(path)
    assert keep.main([str(path), "--into", str(tmp_path)]) == 2


def test_pages_have_what_is_in_the_results(kept: Path, tmp_path: Path) -> None:
    runs = keep.runs(kept)
    documentation.make("mine.rst", tmp_path, runs)
    assert "* - native-fastio\n        - 1258" in (tmp_path / "mine.rst").read_text(encoding="utf-8")
    for name, message in (
        ("peers.rst", "there is no such run, only mine"),
        ("mine-more.rst", "nothing of the kind"),
        ("mine-judged.rst", "nothing of the kind"),
        ("mine.txt", "nothing of the kind"),
    ):
        with pytest.raises(ResultError, match=message):
            documentation.make(name, tmp_path, runs)
        assert not (tmp_path / name).exists()


def test_every_run_is_on_a_page() -> None:
    shown = {Path(name).stem.removesuffix("-judged") for name in documentation.shown()}
    assert {name for name, run in keep.runs().items() if not run.suite.startswith("validate")} <= shown
