"""A plan, the order of its operations, and what its objects hold."""

import itertools
import json
import re
import statistics
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import Wrong
from benchmarks.load import __main__ as command
from benchmarks.load import plan as plans
from benchmarks.load.content import BLOCK, Check, Content
from benchmarks.load.plan import Names, Operation, Plan
from benchmarks.load.schedule import Schedule, due
from benchmarks.load.selectors import selector

READ = Operation("read", 80, objects=Names("u(1,7)", "object-"))
WRITE = Operation("write", 20, objects=Names("r(8,9)", "object-", ".txt"), sizes="c(5)KB")


def plan(*operations: Operation, **fields) -> Plan:
    defaults = {"protocol": "logs", "server": {"url": "http://127.0.0.1:1"}, "total": 10}
    return Plan(operations=operations or (READ,), **{**defaults, **fields})


def test_it_survives_json() -> None:
    original = plan(READ, WRITE, Operation("list", 5, Names("c(3)")), users=3, think=0.5, labels={"server": "it"})
    assert plans.from_dict(json.loads(json.dumps(original.to_dict()))) == original


ONE = {"selector": "c(1)"}
OPERATIONS_THAT_ARE_NONE = [
    ({"kind": "read"}, "read: needs objects"),
    ({"kind": "list", "objects": ONE}, "list: has no objects"),
    ({"kind": "write", "objects": ONE}, "write: needs sizes"),
    ({"kind": "write", "objects": ONE, "sizes": "c(1)"}, "write: sizes: 'c(1)' does not end with one of the units"),
    ({"kind": "delete", "objects": ONE, "sizes": "c(1)KB"}, "delete: has no sizes"),
    ({"kind": "read", "objects": ONE, "sizes": "u(1,2)KB"}, "sizes: 'u(1,2)KB' is not the size of all"),
    ({"kind": "read", "objects": {"selector": "z(1)"}}, "read: objects: 'z(1)' is not one of c(N)"),
    ({"kind": "read", "objects": {"selector": "u(1,2)"}, "scan": True}, "objects: 'u(1,2)' cannot be scanned"),
    ({"kind": "read", "objects": ONE, "weight": 1.5}, "read: weight 1.5 is not a whole number from 1 on"),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "ftp"}, "protocol 'ftp' is not one of glance, swift, logs"),
        ({"users": 0}, "users 0 is not a whole number from 1 on"),
        ({"users": True}, "users True is not a whole number from 1 on"),
        ({"patience": 0}, "patience 0 is not a number above 0"),
        ({"total": 0}, "total and seconds are both 0"),
        ({"colour": "red"}, "plan: there is no 'colour', only protocol"),
        ({"operations": []}, "operations: there is none"),
        ({"operations": 3}, "operations: 3 is not a list"),
        ({"operations": [{"kind": "move"}]}, "operation 'move' is not one of read, write, delete, list"),
        ({"operations": ["read"]}, "operation: 'read' is not an object"),
        ({"operations": [{"kind": "read", "size": 3}]}, "operation: there is no 'size'"),
        ({"operations": [{"kind": "read", "objects": "r(1,2)"}]}, "objects: 'r(1,2)' is not an object"),
        ({"operations": [{"kind": "read", "objects": {"chosen": 1}}]}, "objects: there is no 'chosen', only selector"),
        *(({"operations": [fields]}, message) for fields, message in OPERATIONS_THAT_ARE_NONE),
        ({"rate": -1}, "rate -1 is not a number from 0 on"),
        ({"rate": 5, "think": 1}, "think 1 goes without a rate 5"),
        ({"version": 99}, "version 99"),
        ({"format": "other"}, "no plan of a load"),
    ],
)
def test_errors_are_named(change, message) -> None:
    with pytest.raises(Wrong, match=re.escape(message)):
        plans.from_dict({**plan().to_dict(), **change})


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for content, reason in ((None, "No such file or directory"), ("{", "not JSON: Expecting")):
        if content is not None:
            (tmp_path / "plan").write_text(content)
        assert command.main(["run", str(tmp_path / "plan"), "-o", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err.startswith(f"{tmp_path}/plan: {reason}")


def test_without_locust_it_says_what_to_install(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "locust", None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "plan").write_text(json.dumps(plan().to_dict()))
    assert command.main(["run", str(tmp_path / "plan"), "-o", str(tmp_path / "run")]) == 2
    assert "needs: pip install -e '.[bench,load]'\n" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_examples_of_the_documentation() -> None:
    directory = Path(__file__).parent.parent.parent / "doc" / "source" / "examples" / "load"
    assert plans.read(directory / "plan.json").users == 8
    assert plans.read(directory / "open.json").rate == 200
    yaml = pytest.importorskip("yaml", reason="only checked where PyYAML is installed")
    (play,) = yaml.safe_load((directory / "workers.yaml").read_text())
    assert "benchmarks.load worker {{ load_master }} --keep" in str(play)


RANGES = st.tuples(st.sampled_from("urs"), st.integers(1, 50), st.integers(0, 20)).map(
    lambda each: f"{each[0]}({each[1]},{each[1] + each[2]})"
)
OPERATIONS = st.lists(
    st.builds(
        Operation, kind=st.just("read"), weight=st.integers(1, 100), objects=st.builds(Names, RANGES, st.just("o")),
        containers=st.builds(Names, RANGES, st.just("c")),
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@given(
    OPERATIONS, st.integers(1, 60), st.integers(1, 7), st.integers(0, 5), st.one_of(st.just(0), st.floats(0.1, 1e4))
)  # fmt: skip
def test_workers_share_exactly_the_plan(operations, total, workers, seed, rate) -> None:
    schedule = Schedule(plan(*operations, total=total, seed=seed, rate=rate))
    alone = list(schedule.share(0, 1))
    shares = [list(schedule.share(worker, workers)) for worker in range(workers)]
    assert [shares[index % workers][index // workers] for index in range(total)] == alone
    assert sum(map(len, shares)) == len(alone) == total
    allowed = [(selector(each.containers.selector), selector(each.objects.selector)) for each in operations]
    for step in alone:
        container, number = divmod(step.number, 1 << 32)
        assert (step.container, step.name) == (f"c{container}", f"o{number}")
        assert any(c.low <= container <= c.high and o.low <= number <= o.high for c, o in allowed)
    if rate:
        assert alone[0].due == 0 and all(a.due <= b.due for a, b in itertools.pairwise(alone))


@given(data=st.data())
def test_any_part_of_an_object_is_that_part_of_it(data) -> None:
    made, size = Content(plan()), data.draw(st.sampled_from([0, 1, 1000, 70_000, 3_000_001]))
    number = data.draw(st.integers(0, 1000))
    whole = b"".join(made.pieces(number, size))
    offset, length = data.draw(st.integers(0, 3_100_000)), data.draw(st.integers(0, 3_100_000))
    assert len(whole) == size
    assert made.at(number, offset, length, size) == whole[offset : offset + length]


def test_objects_differ() -> None:
    made, other = Content(plan()), Content(plan(seed=1))
    assert len({made.at(number, 0, 4096, 4096) for number in range(200)}) == 200
    assert other.at(0, 0, 4096, 4096) != made.at(0, 0, 4096, 4096)


@given(st.integers(0, 2 * BLOCK + 9), st.lists(st.integers(1, 400_000), max_size=8), st.data())
def test_every_wrong_byte_is_seen(size, cuts, data) -> None:
    made = Content(plan())
    body = bytearray(b"".join(made.pieces(7, size)))
    damage = data.draw(st.sampled_from(["none", "shorter", "longer", "bit"])) if size else "longer"
    if damage == "shorter":
        del body[-1:]
    elif damage == "longer":
        body += b"x"
    elif damage == "bit":
        body[data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    check = Check(made, 7, size)
    offset = 0
    for cut in [*cuts, len(body)]:
        check.add(bytes(body[offset : offset + cut]))
        offset += cut
    problem = check.problem()
    if damage == "none":
        assert problem == ""
    elif damage == "bit":
        assert problem.startswith("wrong data in the piece from byte")
    else:
        assert problem == f"wrong data: {len(body)} bytes instead of {size}"


def test_only_the_number_of_bytes_if_that_is_asked_for() -> None:
    check = Check(Content(plan()), 0, 3, every_byte=False)
    check.add(b"abc")
    assert check.problem() == ""
    check.add(b"d")
    assert check.problem() == "wrong data: 4 bytes instead of 3"


def test_arrivals_keep_to_their_rate() -> None:
    moments = list(itertools.islice(due(plan(rate=50)), 20_001))
    gaps = [b - a for a, b in itertools.pairwise(moments)]
    # Of an exponential distribution the standard deviation is the mean.
    assert statistics.mean(gaps) == pytest.approx(0.02, rel=0.03)
    assert statistics.pstdev(gaps) == pytest.approx(0.02, rel=0.03)


def test_an_operation_due_after_the_plans_time_is_not_done() -> None:
    chosen = plan(total=0, seconds=2, rate=10)
    moments = [step.due for step in Schedule(chosen).share(0, 1)]
    assert moments == list(itertools.takewhile(lambda moment: moment < 2, due(chosen))) and len(moments) > 5
