"""The engine runs each variant in fresh processes, interleaved, and survives what goes wrong in them."""

import collections
import dataclasses
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from benchmarks.backends.base import BackendError
from benchmarks.harness import engine, machine, results, servers, worker
from benchmarks.harness.engine import Case, CaseError, Options, Variant
from tests.backends.conftest import alive
from tests.benchmarks.running import work
from tests.conftest import needs_eventlet, needs_oslo
from tests.eventually import until

ROOT = engine.ROOT
#: Seconds after which a test gives up on a process; none takes even a few.
PATIENCE = 100

#: Variants for the engine: the process says who it is, fails, hangs ...
SCRIPT = """
import json, os, subprocess, sys, time
name, parameters = sys.argv[-2], json.loads(sys.argv[-1])
result = {"seconds": 0.001, "verified": True, "bytes": 1000, "pid": os.getpid(), "said": name, **parameters}
if name == "fails":
    sys.exit("it is broken")
if name == "hangs":
    child = subprocess.Popen(["sleep", "1000"])
    with open(parameters["note"], "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    time.sleep(1000)
if name == "wrong":
    result["verified"] = False
if name == "lacks":
    del result["seconds"]
print("something else")
print("no JSON" if name == "mumbles" else json.dumps(result))
"""


def interpreter(path: Path, program: str) -> str:
    """A program in place of an interpreter: it is given what that would be given to run a variant."""
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def script(tmp_path):
    return interpreter(tmp_path / "script", SCRIPT)


@pytest.fixture
def run(script):
    """Run a case of these variants of the script; returns its result."""

    def run(*variants: Variant | str, options: Options | None = None, path: Path | None = None, **fields):
        made = [Variant(each) if isinstance(each, str) else each for each in variants]
        made = [dataclasses.replace(each, python=each.python or script) for each in made]
        result = results.Result("test", machine.describe(), machine.packages())
        case = Case("case", "none", made, **fields)
        engine.run([case], result, options, path=path, progress=io.StringIO())
        return result.case("case")

    return run


def test_every_run_is_a_process_and_the_variants_are_interleaved(run):
    case = run("a", "b", "c", rounds=4)
    runs = [(each["started"], each["round"], title) for title, row in case.variants.items() for each in row.runs]
    order = [title for _, _, title in sorted(runs)]
    rounds = [tuple(order[start : start + 3]) for start in range(0, len(order), 3)]
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    assert len(set(rounds)) > 1
    assert [number for _, number, _ in sorted(runs)] == [number for number in range(5) for _ in range(3)]
    pids = {each["pid"] for variant in case.variants.values() for each in variant.runs}
    assert len(pids) == 15 and os.getpid() not in pids
    assert case.complete


def test_the_order_comes_from_the_seed():
    rounds = dict.fromkeys("abcd", 5)
    assert engine.plan(rounds, 1) == engine.plan(rounds, 1)
    assert engine.plan(rounds, 1) != engine.plan(rounds, 2)


def test_few_rounds_are_spread_over_the_time():
    planned = engine.plan({"slow": 3, "usual": 7, "cheap": 9, "never": 0}, 0)
    assert collections.Counter(title for each in planned for title in each) == {"slow": 3, "usual": 7, "cheap": 9}
    assert [number for number, each in enumerate(planned) if "slow" in each] == [2, 5, 8]
    assert engine.plan({}, 0) == []


def test_parameters_reach_the_variant(run):
    case = run("a", Variant("a", label="other", parameters={"n": 2}), parameters={"n": 1}, rounds=1, warmup=0)
    assert [row.runs[0]["n"] for row in case.variants.values()] == [1, 2]
    assert case.variants["other"].parameters == {"n": 2}
    assert case.variants["other"].details["said"] == "a"
    assert json.loads(case.variants["other"].command[-1]) == {"n": 2}
    case = run("a", options=Options(quick=True), parameters={"size": 8, "n": 1}, quick={"n": 0})
    assert case.parameters == {"size": 8, "n": 0}


def test_neighbours_end_with_whoever_started_them():
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent("""
            import os, time
            from benchmarks.suites.never_slower.pairs import neighbours
            with neighbours(1) as pids:
                print(*pids, flush=True)
                time.sleep(1000)
        """)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    with started:
        pid = int(started.stdout.readline())
        assert alive(pid)
        started.kill()
    until(lambda: not alive(pid))


@pytest.mark.parametrize(
    ("options", "rounds", "size"),
    [
        (Options(), {"a": 4, "slow": 2}, {"a": 8 << 20, "slow": 2 << 20}),
        (Options(rounds=1), {"a": 2, "slow": 1}, {"a": 8 << 20, "slow": 2 << 20}),
        (Options(size=4 << 20), {"a": 4, "slow": 2}, {"a": 4 << 20, "slow": 2 << 20}),
        (Options(size=1 << 20), {"a": 4, "slow": 2}, {"a": 1 << 20, "slow": 1 << 20}),
        (Options(quick=True), {"a": 1, "slow": 1}, {"a": 1 << 20, "slow": 1 << 20}),
        (Options(quick=True, size=4096), {"a": 1, "slow": 1}, {"a": 4096, "slow": 4096}),
    ],
)
def test_options_set_rounds_and_sizes(run, options, rounds, size):
    slow = Variant("slow", rounds=2, warmup=0, parameters={"size": 2 << 20})
    case = run("a", slow, options=options, rounds=3, parameters={"size": 8 << 20})
    assert {title: len(row.runs) for title, row in case.variants.items()} == rounds
    assert {title: row.runs[0]["size"] for title, row in case.variants.items()} == size


@pytest.mark.parametrize(
    ("name", "reason", "said"),
    [
        ("fails", "exit status 1", "it is broken"),
        ("mumbles", "the last line of its output is no JSON object", "something else\nno JSON\n"),
        ("lacks", "its result has no seconds", ""),
    ],
)
def test_a_failure_is_recorded_and_the_others_go_on(run, name, reason, said):
    missing = Variant("none", python="/nowhere/python")
    case = run("a", name, "b", missing, rounds=3)
    assert "/nowhere/python" in case.variants["none"].failure["reason"]
    broken = case.variants[name]
    assert broken.failure["reason"].startswith(reason)
    assert said in broken.failure["stderr"]
    assert broken.runs == []
    assert [len(case.figures(title)) for title in ("a", "b")] == [3, 3]


def wait_for_the_end(note: Path) -> None:
    """Wait until the processes that a hanging run has noted end, now that they should."""
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 2
    until(lambda: not any(map(alive, pids)), f"the end of {pids}")


def test_a_run_that_hangs_ends_with_its_children(run, tmp_path):
    note = tmp_path / "note"
    # Enough for the others to end, and for this one to start what it starts.
    case = run("hangs", "a", parameters={"note": str(note)}, timeout=10, rounds=2)
    assert case.variants["hangs"].failure["reason"] == "no result after 10 s"
    wait_for_the_end(note)
    assert len(case.figures("a")) == 2


def test_wrong_data_and_what_can_not_run_here_are_recorded(run):
    case = run(
        "a", "wrong", Variant("fails", skip="not here"), rounds=1, summary=lambda case: {"rows": [*case.variants]}
    )
    rows = case.variants
    assert case.summary == {"rows": ["a", "wrong", "fails"]}
    assert rows["a"].verified() and not rows["wrong"].verified()
    assert (rows["fails"].skipped, rows["fails"].failure, rows["fails"].runs) == ("not here", None, [])


def test_an_interrupted_run_leaves_what_it_has_measured(script, tmp_path):
    path, note = tmp_path / "result.json", tmp_path / "note"
    code = f"""
        from pathlib import Path
        from benchmarks.harness import engine, results
        case = engine.Case("case", "none", [engine.Variant("a", python={script!r}, rounds=3),
            engine.Variant("hangs", python={script!r}, warmup=0, rounds=1)], {{"note": {str(note)!r}}})
        engine.run([case], results.Result("test", {{}}, {{}}), path=Path({str(path)!r}))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    until(lambda: note.exists() and len(note.read_text().split()) == 2, "the run that hangs")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    case = results.read(path).case("case")
    assert not case.complete
    assert len(case.variants["a"].runs) >= 1
    wait_for_the_end(note)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "MB"}, "unit 'MB' is not one of MB/s, MiB/s, s, ms, us"),
        ({"unit": "MB/s", "value": "p50"}, "MB/s is of bytes and seconds, not of p50"),
        ({"variants": ["a", "a"]}, "variants with different titles"),
        ({"variants": []}, "needs variants"),
        ({"baseline": "c"}, "baseline 'c' is not one of a, b"),
    ],
)
def test_a_case_that_can_not_be_run_is_refused(fields, message):
    with pytest.raises(CaseError, match=message):
        Case(**{"name": "x", "workload": "none", "variants": ["a", "b"], **fields})


# --- progress


def test_progress_in_a_log(script):
    stream = io.StringIO()
    case = Case("case", "none", [Variant("a", python=script), Variant("fails", python=script)], rounds=1)
    engine.run([case], results.Result("test", {}, {}), progress=stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "case: 4 runs"
    assert len(lines) == 5
    assert any("a (warm-up) … 0.001 s" in line for line in lines)
    assert any(line.endswith("fails (warm-up) … failed: exit status 1") for line in lines)
    assert any(line.endswith("fails … left out after its failure") for line in lines)


# --- the worker


@needs_oslo
def test_worker_counts_what_stock_code_does():
    size = 8 << 20
    native = work("sheepdog", "native-stock", {"task": "cat", "size": size})
    assert native["verified"] is True
    assert native["bytes"] == size
    assert native["reads"] == pytest.approx(256, rel=0.05)
    assert native["waits"] == pytest.approx(256, rel=0.05)
    # The chunks and their sum.
    assert 1.8 * size < native["peak_memory"] < 2.3 * size
    assert 0 < native["cpu_seconds"] < 10
    assert "fastio" not in native
    # One readall() in C; what subprocess itself reads, the end of a pipe, is no data.
    reference = work("sheepdog", "reference-readall", {"task": "cat", "size": size})
    assert reference["verified"] is True
    assert "reads" not in reference


@needs_oslo
@needs_eventlet
def test_worker_counts_hub_waits_and_what_fastio_does():
    size = 8 << 20
    stock = work("sheepdog", "eventlet-stock", {"task": "cat", "size": size})
    # A select, and a trampoline in the green os.read.
    assert stock["waits"] == pytest.approx(2 * stock["reads"], rel=0.05)
    fast = work("sheepdog", "eventlet-fastio", {"task": "cat", "size": size})
    assert fast["verified"] is True
    assert fast["reads"] < stock["reads"] / 3
    assert fast["waits"] < stock["waits"] / 6
    assert fast["peak_memory"] < 1.5 * size
    assert fast["fastio"]["counters"]["bytes_in"] == size
    assert fast["fastio"]["settings"]["chunk_size"]["source"] == "default"
    assert {each["name"]: each["outcome"] for each in fast["fastio"]["patches"]}["green_communicate"] == "applied"


@needs_eventlet
def test_a_measured_greenlet_that_sleeps_has_no_frame_of_the_harness():
    """fastio ends the sleeps of upstream's code by its frames."""
    code = """
import eventlet
from benchmarks.harness import worker

eventlet.sleep(0)
with worker.measure() as measured:
    asleep = eventlet.spawn(eventlet.sleep, 60)
    eventlet.sleep(0)
    print(asleep.gr_frame.f_back.f_code.co_name)
print(measured.waits)
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert (found.stdout.split(), found.stderr) == (["sleep", "2"], "")


def test_measuring_leaves_no_trace():
    before = os.read, os.readv
    with worker.measure() as measured:
        assert os.read is not before[0]
        subprocess.run(["sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"])
        time.sleep(0.05)
    assert (os.read, os.readv) == before
    assert measured.seconds >= 0.05
    # The child's time is in it.
    assert measured.cpu_seconds > 0.005


def test_measuring_sees_memory_that_is_gone_at_the_end():
    with worker.measure() as measured:
        bytearray(64 << 20)[::4096] = b"x" * (16 << 10)
    assert 60 << 20 < measured.peak_memory < 80 << 20
    with worker.measure() as measured:
        pass
    assert measured.peak_memory < 8 << 20


@pytest.mark.parametrize("make", [worker.random_payload, worker.text_payload])
@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 20) + 1])
def test_payloads(make, size, tmp_path, monkeypatch):
    monkeypatch.setenv(worker.CACHE_VARIABLE, str(tmp_path / "cache"))
    payload = make(size)
    data = payload.path.read_bytes()
    assert len(data) == payload.size == size
    assert hashlib.sha256(data).hexdigest() == payload.sha256
    created = payload.path.stat().st_mtime_ns
    assert make(size) == payload
    assert payload.path.stat().st_mtime_ns == created
    if size > 1:
        assert make(size, 1).sha256 != payload.sha256 or (make is worker.text_payload and size < 1024)
    if make is worker.text_payload:
        text = data.decode()
        assert not text or text.endswith("\n")
        assert size < 1024 or 0.05 < sum(character > "\x7f" for character in text) / len(text) < 0.25


# --- the suites as pytest files


SUITE = """
from benchmarks.harness.engine import Case, Variant
from fastio.tables import Table

SCRIPT = {script!r}

def case(name, names, **fields):
    return Case(name, "none", [Variant(each, python=SCRIPT) for each in names], {{"size": 8}}, **fields)

CASES = [
    case("one", {names!r}, rounds=3),
    Case("two", "none", [Variant("a", python=SCRIPT), Variant("b", skip="not here")], rounds=2),
    case("long", "a", rounds=1, long=True),
    case("away", "ab", backend="nothing"),
]

def judgement(result):
    # A title is folded to the width of its table.
    return [Table("Findings", ["cases of the result"], [[str(len(result.cases))]])]

def test_suite(recorded):
    recorded()
"""


@pytest.fixture
def suite(tmp_path, script):
    """Run pytest on a suite of these variants; returns the process, and the result that it left."""
    for module in ("pytest_benchmark", "numpy", "rich"):
        pytest.importorskip(module, reason="suites need the extra 'bench'")

    def suite(*arguments: str, names="ab"):
        (tmp_path / "bench_sample.py").write_text(SUITE.format(script=script, names=names))
        path = tmp_path / "out" / "result.json"
        command = [sys.executable, "-m", "pytest", "-rs", "-p", "pytest_benchmark.plugin", "-p", "benchmarks.conftest"]
        command += ["-p", "no:cacheprovider"]
        command += ["--rootdir", str(tmp_path), str(tmp_path / "bench_sample.py"), "--result", str(path), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TEST_EVENTLET": "0"}
        # Importing plugins that are not used takes longer than these runs.
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        return done, results.read(path) if path.exists() else None

    return suite


def test_recorded_runs_are_replayed(suite, tmp_path):
    exported = tmp_path / "exported.json"
    done, result = suite("--benchmark-json", str(exported))
    assert done.returncode == 0, done.stdout
    assert "4 passed, 3 skipped" in done.stdout
    assert [(case.name, case.complete) for case in result.cases] == [("one", True), ("two", True), ("long", True)]
    assert result.suite == "sample"
    benchmarks = {each["name"]: each for each in json.loads(exported.read_text())["benchmarks"]}
    one = benchmarks["test_suite[one-a]"]
    assert one["stats"]["data"] == pytest.approx([0.001] * 3)
    assert one["group"] == "one"
    assert len(benchmarks["test_suite[two-a]"]["stats"]["data"]) == 2
    assert "b: skipped: not here" in done.stdout
    assert "[2] " in done.stdout and "there is no backend 'nothing'" in done.stdout
    assert "Findings" in done.stdout and "are not judged" not in done.stdout
    # The progress is seen while it runs, not with the output of a test that failed.
    assert "one: 8 runs" in done.stderr + done.stdout


def test_options_of_the_command_line(suite):
    done, result = suite("--rounds", "2", "--size", "2KiB", "-k", "one-b")
    assert done.returncode == 0, done.stdout
    (case,) = result.cases
    assert case.parameters == {"size": 2048}
    assert {title: len(row.measured()) for title, row in case.variants.items()} == {"b": 2}


@pytest.mark.parametrize("option", ["--quick", "--benchmark-disable"])
def test_a_smoke_run_is_short_and_not_judged(suite, option):
    done, result = suite(option)
    assert done.returncode == 0, done.stdout
    assert [case.name for case in result.cases] == ["one", "two"]
    assert result.cases[0].parameters == {"size": 1 << 20}
    assert [len(row.runs) for row in result.cases[0].variants.values()] == [1, 1]
    assert "Findings" not in done.stdout and "are not judged" in done.stdout


def test_failures_and_errors_fail_their_test_only(suite):
    done, result = suite("--quick", names=("a", "fails", "wrong"))
    assert done.returncode == 1
    assert "2 failed, 2 passed, 3 skipped" in done.stdout
    assert "it is broken" in done.stdout
    assert "did not have the expected SHA-256" in done.stdout
    assert result.cases[0].variants["fails"].failure["status"] == 1


@pytest.mark.parametrize("option", [("--size", "much"), ("--rounds", "0")])
def test_bad_options_are_refused(suite, option):
    done, result = suite(*option)
    assert done.returncode == 4
    assert option[0] in done.stderr and option[1] in done.stderr
    assert result is None


def test_machine():
    described = machine.describe()
    assert set(machine.STABLE) <= described.keys()
    assert described["memory"] > 1 << 20
    assert described["threads"] >= described["usable_threads"] >= 1
    assert json.loads(json.dumps(described)) == described
    assert machine.packages()["pytest"] == pytest.__version__


# --- backends


class Fake:
    """A backend that is a note of its start and its end."""

    events: list[str] = []
    missing = None
    fails = False

    def __init__(self, directory=None, **parameters):
        self.parameters = parameters

    def why_not(self):
        return self.missing or ""

    def __enter__(self):
        if self.fails or self.parameters.get("fails"):
            raise BackendError("fake did not start: no idea")
        self.events.append("started")
        return self

    def __exit__(self, *_):
        self.events.append("stopped")

    def access(self):
        return {"backend": "fake", **self.parameters}

    def pids(self):
        return [1]


@pytest.fixture
def fake(monkeypatch):
    made = type("Fake", (Fake,), {"events": []})
    monkeypatch.setitem(servers.BACKENDS, "fake", "")
    monkeypatch.setattr(servers, "backend", lambda name: made)
    return made


#: Prints its surroundings; the one that prepares gives the others something.
TOLD = """
import json, os, sys
name = sys.argv[-2]
if name == "fails":
    sys.exit("nothing to read")
told = json.loads(os.environ["FASTIO_BENCHMARK_SURROUNDINGS"])
print(json.dumps({"seconds": 0.001, "verified": True, "bytes": 1, "told": told, "made": name}))
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Run a case whose worker is the script above; returns its result."""
    path = interpreter(tmp_path / "told", TOLD)
    command = engine._command
    monkeypatch.setattr(
        engine, "_command",
        lambda case, variant, parameters: command(case, dataclasses.replace(variant, python=path), parameters),
    )  # fmt: skip

    def told(**fields):
        result = results.Result("test", {}, {})
        case = Case("case", "none", ["a", "b"], {"size": 1}, rounds=2, warmup=0, backend="fake", **fields)
        engine.run([case], result, progress=io.StringIO())
        return result.case("case")

    return told


def test_one_backend_for_all_runs_of_a_case(fake, told):
    case = told(backend_parameters={"workers": 2}, prepare="preparing")
    assert fake.events == ["started", "stopped"]
    assert [len(row.runs) for row in case.variants.values()] == [2, 2]
    heard = case.variants["a"].details["told"]
    assert heard["access"] == {"backend": "fake", "workers": 2}
    assert heard["pids"] == [1]
    assert heard["prepared"]["made"] == "preparing"
    assert case.backend.pop("directory")
    assert case.backend == {"name": "fake", "workers": 2}


def test_a_missing_package_skips_the_rows(fake, told):
    assert {row.skipped for row in told(needs=("json", "no_such_package")).variants.values()} == {
        "not installed: no_such_package"
    }
    fake.missing = "fake is not installed; install it with: apt-get install fake"
    case = told()
    assert {row.skipped for row in case.variants.values()} == {fake.missing}
    assert (fake.events, case.backend) == ([], {})


def test_a_backend_that_does_not_start(fake, told):
    fake.fails = True
    for row in told().variants.values():
        assert row.failure == {"reason": "no fake", "status": None, "stderr": "fake did not start: no idea"}
        assert row.runs == []


def test_a_backend_beside_it_that_does_not_start(fake, told):
    case = told(beside={"one": ("fake", {"fails": 1}), "other": ("fake", {}), "none": ("nothing", {})})
    heard = case.variants["a"].details["told"]["beside"]
    assert case.backend["other"] == "fake" and "none" not in case.backend
    assert heard.pop("one") == {"failed": "fake did not start: no idea"}
    assert heard == {"other": {"access": {"backend": "fake"}, "pids": [1]}}
    assert [row.failure for row in case.variants.values()] == [None, None]
    assert fake.events == ["started", "started", "stopped", "stopped"]


def test_a_case_that_can_not_be_prepared(fake, told):
    case = told(prepare="fails")
    assert fake.events == ["started", "stopped"]
    for row in case.variants.values():
        assert row.failure["reason"] == "fails: exit status 1"
        assert "nothing to read" in row.failure["stderr"]
        assert row.runs == []


def test_where_a_backend_keeps_its_files(monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "MEMORY", tmp_path)
    monkeypatch.setenv(worker.CACHE_VARIABLE, str(tmp_path / "cache"))
    assert servers.data_directory("filesystem", 1) == tmp_path
    assert servers.data_directory("filesystem", 1 << 60) == tmp_path / "cache"
    assert servers.data_directory("filesystem", 1, on_disk=True) == tmp_path / "cache"
    monkeypatch.setattr(servers, "_has_attributes", lambda directory: False)
    assert servers.data_directory("swift", 1) == tmp_path / "cache"
    assert servers.data_directory("filesystem", 1) == tmp_path
    monkeypatch.setattr(worker, "MEMORY", tmp_path / "nowhere")
    assert servers.data_directory("filesystem", 1) == tmp_path / "cache"


def test_a_file_system_has_a_type(tmp_path):
    assert servers.file_system(Path("/proc/self")) == "proc"
    kind = servers.file_system(tmp_path)
    assert kind and servers.described(tmp_path) == f"{tmp_path} ({kind})"


def test_a_case_with_a_changed_size_is_marked():
    case = Case("a", "none", [Variant("a")], title="16 MiB", parameters={"size": 16 << 20}, quick={"size": 1 << 20})
    assert Options().title(case) == "16 MiB"
    assert Options(quick=True).title(case) == "16 MiB: 1 MiB in this run"
    assert Options(size=4096).title(case) == "16 MiB: 4 KiB in this run"
