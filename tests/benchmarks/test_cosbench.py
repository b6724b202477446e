"""COSBench's workload files: what they mean here, and what is said of those that cannot be run."""

import collections
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import Wrong, cosbench, selectors
from benchmarks.load.cosbench import WorkloadError
from benchmarks.load.plan import Names, Operation, Plan
from benchmarks.load.schedule import UNKNOWN_SIZE, Schedule
from benchmarks.load.selectors import selector

EXAMPLES = Path(__file__).parent.parent.parent / "doc" / "source" / "examples" / "load"

# --- selectors

ENDS = st.tuples(st.integers(1, 500), st.integers(0, 500)).map(lambda each: (each[0], each[0] + each[1]))


def test_a_constant() -> None:
    assert {selector("c(7)").number(rank) for rank in range(20)} == {7}
    assert selectors.size("c(0)KB", 3) == 0


def test_uniform_numbers_are_all_used_about_as_often() -> None:
    counts = collections.Counter(selector("u(1,10)").number(rank) for rank in range(10_000))
    assert set(counts) == set(range(1, 11)) and min(counts.values()) > 800 and max(counts.values()) < 1_200


@given(ENDS)
def test_ranges_and_sequences_go_round(ends) -> None:
    low, high = ends
    whole = list(range(low, high + 1))
    for text in (f"r({low},{high})", f"s({low}, {high})", f"{low}-{high}"):
        assert [selector(text).number(rank) for rank in range(2 * len(whole))] == 2 * whole


def test_a_histogram() -> None:
    chosen = selector("h(1|10|70,100|200|30)")
    found = [chosen.number(rank) for rank in range(10_000)]
    assert all(1 <= each <= 10 or 100 <= each <= 200 for each in found)
    assert 6_700 < sum(each <= 10 for each in found) < 7_300
    assert selector("h(5||1)").high == selectors.HIGHEST


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("c(64)B", 64),
        ("c(64)KB", 64_000),
        ("c(2)MB", 2 * 10**6),
        ("c(1)GB", 10**9),
        ("c(4)KiB", 4096),
        ("c(3)MiB", 3 << 20),
    ],
)
def test_units_of_cosbench_are_read(text, size) -> None:
    assert selectors.size(text, 5) == size


@pytest.mark.parametrize(
    "text",
    ["", "x(1)", "c()", "c(1,2)", "c(-1)", "u(5,1)", "r(1)", "s(0,3)", "r(1,2", "h(1|2)", "h(1|2|0)", "h(3|2|1)", "1-"],
)
def test_empty_selectors(text) -> None:
    with pytest.raises(Wrong, match="is not|has no upper end|must be from|weights are 0"):
        selector(text)


@pytest.mark.parametrize("text", ["c(64)", "c(64)TB", "64KB", "u(1,2)kb"])
def test_sizes_without_a_unit(text) -> None:
    with pytest.raises(Wrong):
        selectors.size(text, 0)


# --- plans with selectors


def selected(*operations: Operation, **fields) -> Plan:
    return Plan(**{"protocol": "swift", "server": {}, "operations": operations, "seconds": 1, **fields})


READ = Operation("read", 80, containers=Names("u(1,2)", "c"), objects=Names("u(1,50)", "o"))
WRITE = Operation("write", 20, containers=Names("c(3)", "c"), objects=Names("s(51,60)", "o", ".bin"), sizes="c(4)KiB")


def test_the_mix_is_exact_and_sequences_skip_nothing() -> None:
    steps = list(itertools.islice(Schedule(selected(READ, WRITE)).share(0, 1), 1000))
    writes = [step for step in steps if step.kind == "write"]
    assert len(writes) == 200
    assert [step.name for step in writes[:11]] == [f"o{number}.bin" for number in (*range(51, 61), 51)]
    assert {(step.container, step.size) for step in writes} == {("c3", 4096)}
    reads = [step for step in steps if step.kind == "read"]
    assert {step.container for step in reads} == {"c1", "c2"} and {step.size for step in reads} == {UNKNOWN_SIZE}
    assert len({step.name for step in reads}) == 50


def test_a_scan_has_every_object_of_every_container_once() -> None:
    scan = Operation(
        "write", containers=Names("r(1,3)", "c"), objects=Names("r(5,9)", "o"), sizes="u(1,9)KB", scan=True
    )
    steps = list(Schedule(selected(scan, total=scan.scanned)).share(0, 1))
    assert [(step.container, step.name) for step in steps] == [
        (f"c{c}", f"o{o}") for c in (1, 2, 3) for o in range(5, 10)
    ]
    assert len({step.number for step in steps}) == 15


# --- files


def test_the_example_workload_can_be_run() -> None:
    workload = cosbench.read(EXAMPLES / "swift.xml")
    assert workload.name == "swift"
    assert workload.stages[0].works[0].kind == "init" and workload.stages[-1].works[0].kind == "dispose"
    for stage in workload.stages:
        for work in stage.works:
            if work.plan is not None:
                assert next(Schedule(work.plan).share(0, 1))


def test_the_meaning_of_a_file() -> None:
    stages = {stage.name: stage for stage in cosbench.read(EXAMPLES / "swift.xml").stages}
    assert list(stages) == ["init", "prepare", "read", "pause", "mixed", "cleanup", "dispose"]
    assert stages["init"].works[0].containers == ("cosbench1", "cosbench2")
    prepare = stages["prepare"].works[0].plan
    assert prepare is not None
    assert (prepare.total, prepare.users) == (64, 4)
    assert prepare.server == {"auth_v1": "http://127.0.0.1:8080/auth/v1.0", "user": "test:tester", "key": "testing"}
    first = next(Schedule(prepare).share(0, 1))
    assert (first.container, first.name, first.size) == ("cosbench1", "myobjects1", 1 << 20)
    (read,) = stages["read"].works
    assert read.plan is not None
    assert (read.warmup, read.counted, read.plan.seconds, read.plan.users, read.tolerated) == (2, 20, 22, 8, 0.2)
    assert stages["pause"].delay == 2 and stages["pause"].works[0].kind == "delay"
    large, small = stages["mixed"].works
    assert [each.kind for each in small.plan.operations] == ["read", "write", "list"]
    assert stages["cleanup"].works[0].plan.total == 464 and stages["cleanup"].cleans and not stages["init"].cleans
    assert stages["dispose"].works[0].containers == ("cosbench1", "cosbench2")


def test_parts_of_a_workload() -> None:
    workload = cosbench.read(EXAMPLES / "swift.xml")
    assert [stage.name for stage in workload.cleaning().stages] == ["cleanup", "dispose"]
    plans_ = [work.plan for stage in workload.unverified().stages for work in stage.works if work.plan]
    assert plans_ and not any(each.verify for each in plans_)


FILE = """<?xml version="1.0"?>
<workload name="w" {workload}>
  {storage}
  {auth}
  <workflow>
    <workstage name="main" {stage}>
      <work name="work" workers="2" {work}>{operation}</work>
    </workstage>
  </workflow>
</workload>
"""
WELL = {
    "workload": "", "auth": "", "stage": "",
    "storage": '<storage type="swift" config="token=t;storage_url=http://h/v1/A" />',
    "work": 'runtime="1"', "operation": '<operation type="read" config="containers=c(1);objects=u(1,9)" />',
}  # fmt: skip


def written(tmp_path: Path, **parts: str) -> Path:
    path = tmp_path / "workload.xml"
    path.write_text(FILE.format(**{**WELL, **parts}))
    return path


def work_of(tmp_path: Path, **parts: str):
    (stage,) = cosbench.read(written(tmp_path, **parts)).stages
    return stage.works[0]


def operation(config: str, kind: str = "read", more: str = "") -> str:
    return f'<operation type="{kind}" {more} config="{config}" />'


def test_the_template_is_one(tmp_path) -> None:
    work = work_of(tmp_path)
    assert work.plan.server == {"token": "t", "storage_url": "http://h/v1/A"}
    assert work.plan.patience == cosbench.PATIENCE


def test_configurations_are_inherited(tmp_path) -> None:
    work = work_of(
        tmp_path, workload='config="cprefix=a;oprefix=b"', stage='config="cprefix=c;containers=c(3)"',
        work='runtime="1" config="osuffix=.y"', operation=operation("objects=c(4)"),
    )  # fmt: skip
    step = next(Schedule(work.plan).share(0, 1))
    assert (step.container, step.name) == ("c3", "b4.y")


def test_a_separate_storage(tmp_path) -> None:
    own = '<storage type="swift" config="token=u;storage_url=http://h/v1/B;timeout=5000"/>'
    work = work_of(tmp_path, operation=own + WELL["operation"])
    assert work.plan.protocol == "swift" and work.plan.patience == 5
    assert work.plan.server == {"token": "u", "storage_url": "http://h/v1/B"}


SWIFT = '<storage type="swift" config="policy=gold" />'
KEYSTONE = '<auth type="keystone" config="username=u;password=p;tenant_name=t;auth_url={url}" />'


def test_ways_to_log_in(tmp_path) -> None:
    auth = '<auth type="swauth" config="username=a:b;password=c;url=http://h/auth/v1.0" />'
    server = work_of(tmp_path, storage=SWIFT, auth=auth).plan.server
    assert server == {"policy": "gold", "auth_v1": "http://h/auth/v1.0", "user": "a:b", "key": "c"}
    server = work_of(tmp_path, storage=SWIFT, auth=KEYSTONE.format(url="http://h:5000/v3")).plan.server
    assert (server["auth_v3"], server["user"]) == ("http://h:5000/v3", "t:u")


#: In which line of the file a part is, and what is wrong with it there.
LINES = {"workload": 2, "storage": 3, "auth": 4, "work": 7, "operation": 7}
BOTH = "containers=c(1);objects=c(1)"
WRONG = [
    ("storage", '<storage type="s3" />', "storage 's3': type='s3' is not supported; allowed: swift"),
    ("storage", SWIFT, "auth type 'none' does not log in to swift; allowed: swauth, keystone"),
    ("auth", '<auth type="httpauth" />', "type='httpauth' is not supported; allowed: none, swauth, keystone"),
    ("storage", "<storage />", "it needs a type: swift"),
    ("storage", '<storage type="swift" config="token=t;storage_url=h:80" />', "storage_url=h:80 is not a URL"),
    ("storage", '<storage type="swift" config="token=t" />', "it needs storage_url"),
    ("storage", '<storage type="swift" config="timeout=soon" />', "timeout=soon is not a number from 1 on"),
    ("storage", '<storage type="swift" config="policy" />', "'policy' is not key=value"),
    ("work", "", "runtime and totalOps are both 0"),
    ("work", 'runtime="x"', "runtime='x' is not a whole number from 0 on"),
    ("work", 'runtime="1" colour="red"', "attribute colour='red' is not known; allowed: name, type"),
    ("work", 'runtime="1" totalBytes="9"', "totalBytes='9' is not supported; allowed: 0"),
    ("work", 'runtime="1" afr="1000001"', "afr='1000001' is not a whole number from 0 to 1000000"),
    ("work", 'runtime="1" type="mystery"', "type='mystery' is not supported; allowed: init, prepare, normal"),
    ("work", 'type="cleanup" config="containers=r(1,2);objects=r(1,2)"', "takes no operations"),
    ("workload", 'trigger="now.sh"', "trigger='now.sh' is not supported"),
    ("operation", "", "it has no operation"),
    ("operation", operation(BOTH, more='ratio="60"'), "add up to 60; they must to 100"),
    ("operation", operation(BOTH, "filewrite"),
     "type='filewrite' is not supported; allowed: read, write, delete, list"),
    ("operation", operation("containers=c(1)"), "operation 'read': config: it needs objects"),
    ("operation", operation("containers=c(1);objects=z(1)"), "objects=z(1): 'z(1)' is not one of c(N)"),
    ("operation", operation(f"{BOTH};depth=2"), "depth=2 is not supported; allowed: containers"),
    ("operation", operation(BOTH, "write"), "it needs sizes"),
    ("operation", operation(f"{BOTH};sizes=c(1)", "write"), "does not end with one of the units"),
    ("operation", operation(f"{BOTH};content=zero"), "content=zero is not supported; allowed: random"),
    ("operation", operation(f"{BOTH};chunked=true"), "chunked=true is not supported"),
    ("operation", "<thing/>", "thing: it cannot be in work; allowed there: storage, auth, operation"),
    ("operation", "<operation", "not XML"),
]  # fmt: skip
PREPARE = 'type="prepare" config="containers={};objects=r(1,2);sizes=c(1)KB{}"'


#: The line, the message, and the parts of the file.
TOLD: list[tuple[int, str, dict[str, str]]] = [
    *((LINES[part], message, {part: text}) for part, text, message in WRONG),
    (7, "'u(1,2)' cannot be scanned, only c(N) and", {"work": PREPARE.format("u(1,2)", ""), "operation": ""}),
    (7, "createContainer=maybe is not supported; allowed: false, true",
     {"work": PREPARE.format("r(1,2)", ";createContainer=maybe"), "operation": ""}),
    (7, "work 'work': there is no storage for it; allowed: swift", {"storage": ""}),
    (4, "Keystone's third version", {"storage": SWIFT, "auth": KEYSTONE.format(url="http://h/v2.0")}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message", "parts"), TOLD)
def test_unsupported_elements_are_reported_with_their_line(tmp_path, line, message, parts) -> None:
    path = written(tmp_path, **parts)
    with pytest.raises(WorkloadError) as told:
        cosbench.read(path)
    assert str(told.value).startswith(f"{path}:{line}: ")
    assert message in str(told.value)


def test_other_files(tmp_path) -> None:
    path = tmp_path / "x.xml"
    for text, message in {
        "<a/>": "a: it cannot be at the top; allowed there: workload",
        "": "not XML",
        '<workload name="w"/>': "it has no workflow",
        '<workload name="w"><workflow/></workload>': "it has no workstage",
        '<workload name="w"><workflow><workstage name="s"/></workflow></workload>': "it has no work",
        '<workload name="w"><workflow><workstage/></workflow></workload>': "it needs a name",
    }.items():
        path.write_text(text)
        with pytest.raises(WorkloadError, match=message):
            cosbench.read(path)
    with pytest.raises(OSError):
        cosbench.read(tmp_path / "none.xml")


def test_ratios_of_nothing_are_left_out(tmp_path) -> None:
    both = operation("containers=c(1);objects=c(1)") + operation("containers=c(1);objects=c(1)", "delete", 'ratio="0"')
    (only,) = work_of(tmp_path, operation=both).plan.operations
    assert only.kind == "read"


PUBLIC = """<workload name="swift-sample" description="as files that are published have it">
<storage type="swift" config="token=t;storage_url=http://h/v1/A;retry=9;caching=true" />
<workflow>
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2);objects=r(0,0)" /></workstage>
<workstage name="main"><work name="main" workers="8" interval="10" driver="driver1" runtime="30" totalBytes="0"
 division="object">
<operation type="read" ratio="80" config="containers=u(1,2);objects=u(1,9);sizes=c(64)KB;hashCheck=True" />
<operation type="list" ratio="20" config="containers=u(1,2);objects=u(1,9);hashCheck=True" /></work></workstage>
<workstage name="pause"><work type="delay" workers="1"><operation type="delay" ratio="100" /></work></workstage>
</workflow></workload>"""


def test_elements_without_effect_are_read_with_a_notice(tmp_path) -> None:
    path = tmp_path / "public.xml"
    path.write_text(PUBLIC)
    found = cosbench.read(path)
    assert [work.kind for stage in found.stages for work in stage.works] == ["init", "normal", "delay"]
    assert found.notices == tuple(
        f"{path}:{where} has no effect here"
        for where in (
            "5: work 'main': driver='driver1'", "5: work 'main': division='object'",
            "2: storage 'swift': config: retry=9", "2: storage 'swift': config: caching=true",
            "7: operation 'read': config: hashCheck=True", "8: operation 'list': config: objects=u(1,9)",
        )
    )  # fmt: skip
