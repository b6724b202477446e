"""Offsets and drifts of clocks that are known are found again, as far as the messages settle them."""

import random

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from fastio.trace.analysis import clocks
from fastio.trace.analysis.clocks import Alignment
from fastio.trace.analysis.messages import Message
from fastio.trace.analysis.model import Process, Trace
from tests.trace.synthetic import BEGIN, MS, SECOND, Host

#: ns by which sums of µs may be wrong: what the module calls tolerance, on both sides.
ROUNDING = 3000
FEW = settings(max_examples=25)


class Net:
    """Hosts, a process on each, and messages between them."""

    def __init__(self, hosts: list[Host]) -> None:
        self.hosts = hosts
        self.processes = [Process(host.name, 1, host.boot, "service", "service") for host in hosts]
        for host, process in zip(hosts, self.processes, strict=True):
            process.clock_offset = host.wall(BEGIN) - host.monotonic(BEGIN)
        self.messages: list[Message] = []

    def send(self, sender: int, receiver: int, time: int, latency: int) -> Message:
        made = Message(
            self.processes[sender], self.hosts[sender].monotonic(time),
            self.processes[receiver], self.hosts[receiver].monotonic(time + latency),
            f"message {len(self.messages)}",
        )  # fmt: skip
        self.messages.append(made)
        return made

    def chat(self, seed: int, count: int, seconds: float, pairs: list[tuple[int, int]]) -> None:
        source = random.Random(seed)
        for _ in range(count):
            sender, receiver = source.choice(pairs)
            time = BEGIN + round(source.random() * seconds * SECOND)
            self.send(sender, receiver, time, 20_000 + round(source.expovariate(1 / (2 * MS))))

    def align(self) -> Alignment:
        return clocks.align(Trace(self.processes), self.messages)

    def truth(self, alignment: Alignment, host: Host, process: Process) -> tuple[float, float]:
        """The offset and drift that would set the host's clock by the reference."""
        own = alignment.corrections[process.clock]
        reference = next(h for h, p in zip(self.hosts, self.processes, strict=True) if p.clock == own.reference)
        wall = alignment.corrections[own.reference].wall
        there = reference.up + host.true(own.middle) * (1 + reference.drift) + wall
        return there - own.middle - own.wall, (1 + reference.drift) / (1 + host.drift) - 1


hosts = st.lists(
    st.builds(
        lambda offset, drift, up: (offset, drift * 1e-6, up),
        st.integers(-100_000 * SECOND, 100_000 * SECOND),
        st.floats(-200, 200),
        st.integers(1, 10**7).map(lambda second: second * SECOND),
    ),
    min_size=2,
    max_size=4,
).map(lambda all_: [Host(f"host{i}", offset, drift, up) for i, (offset, drift, up) in enumerate(all_)])


@given(
    hosts=hosts,
    seed=st.integers(0, 1 << 30),
    count=st.integers(2, 200),
    seconds=st.sampled_from([0.01, 1, 60, 3600]),
)
@FEW
def test_offset_and_drift_are_found_within_what_the_messages_allow(hosts, seed, count, seconds):
    net = Net(hosts)
    pairs = [pair for index in range(1, len(hosts)) for pair in ((index - 1, index), (index, index - 1))]
    # Each direction once at the beginning: the clocks are connected.
    for sender, receiver in pairs:
        net.send(sender, receiver, BEGIN, 5 * MS)
    net.chat(seed, count, seconds, pairs)
    alignment = net.align()
    assert alignment.contradictions == []
    assert alignment.residual <= ROUNDING
    for host, process in zip(net.hosts, net.processes, strict=True):
        found = alignment.corrections[process.clock]
        if found.reference == found.clock:
            continue
        offset, _ = net.truth(alignment, host, process)
        assert found.low - ROUNDING <= offset <= found.high + ROUNDING
        assert found.low - ROUNDING <= found.offset <= found.high + ROUNDING
        assert abs(found.offset - offset) <= found.high - found.low + ROUNDING


@given(seed=st.integers(0, 1 << 30), drift=st.floats(-200, 200), offset=st.integers(-SECOND, SECOND))
@FEW
def test_many_messages_settle_an_offset_to_a_fraction_of_a_millisecond(seed, drift, offset):
    net = Net([Host("a"), Host("b", offset, drift * 1e-6)])
    net.chat(seed, 2000, 60, [(0, 1), (1, 0)])
    alignment = net.align()
    found = alignment.corrections[net.processes[1 if alignment.corrections[net.processes[0].clock].reference ==
                                                net.processes[0].clock else 0].clock]  # fmt: skip
    index = [process.clock for process in net.processes].index(found.clock)
    truth, true_drift = net.truth(alignment, net.hosts[index], net.processes[index])
    assert abs(found.offset - truth) < 0.3 * MS
    assert abs(found.drift - true_drift) < 20e-6


def test_between_two_clocks_the_offset_is_in_the_middle_of_what_is_allowed():
    net = Net([Host("a"), Host("b", offset=40 * MS)])
    for second in range(10):
        for sender, receiver in ((0, 1), (1, 0)):
            net.send(sender, receiver, BEGIN + second * SECOND, 100 * MS)
    alignment = net.align()
    found = next(each for each in alignment.corrections.values() if each.reference != each.clock)
    index = [process.clock for process in net.processes].index(found.clock)
    truth, _ = net.truth(alignment, net.hosts[index], net.processes[index])
    assert abs(found.offset - truth) <= ROUNDING
    assert abs((found.low + found.high) / 2 - truth) <= ROUNDING
    assert found.high - found.low > 150 * MS


def test_messages_in_one_direction_leave_the_other_edge_open():
    net = Net([Host("a"), Host("b", offset=-3 * SECOND)])
    net.chat(1, 50, 10, [(0, 1)])
    alignment = net.align()
    found = next(each for each in alignment.corrections.values() if each.reference != each.clock)
    assert (found.low is None) != (found.high is None)
    assert alignment.residual <= ROUNDING
    assert alignment.wrong_before == 50


def test_a_clock_that_the_messages_do_not_contradict_is_believed():
    net = Net([Host("a"), Host("b", offset=40 * MS)])
    net.chat(1, 50, 10, [(0, 1)])
    found = next(each for each in net.align().corrections.values() if each.reference != each.clock)
    assert abs(found.offset) < 0.1 * MS


def test_clocks_without_messages_keep_their_wall_clocks():
    net = Net([Host("a"), Host("b", offset=SECOND)])
    alignment = net.align()
    assert {each.offset for each in alignment.corrections.values()} == {0}
    assert alignment.messages == 0


@pytest.mark.parametrize("by", [20 * MS, 2 * SECOND, 10**18])
def test_an_impossible_message_is_named_and_spoils_nothing(by):
    net = Net([Host("a"), Host("b", 37 * MS, 40e-6), Host("c", -5 * SECOND, -90e-6)])
    net.chat(3, 600, 60, [(0, 1), (1, 0), (1, 2), (2, 1)])
    good = net.align()
    bad = net.send(0, 1, BEGIN + 30 * SECOND, 0)
    bad = net.messages[-1] = Message(bad.sender, bad.sent, bad.receiver, bad.received - by, "the bad one")
    alignment = net.align()
    assert [each.message for each in alignment.contradictions] == [bad]
    contradiction = alignment.contradictions[0]
    assert contradiction.by == pytest.approx(by, abs=10 * MS)
    assert (contradiction.against.sender.host, contradiction.against.receiver.host) == ("b", "a")
    assert "the bad one, from service 1 on a to service 1 on b" in str(contradiction)
    assert "contradicts message" in str(contradiction)
    for clock, correction in good.corrections.items():
        assert alignment.corrections[clock].offset == pytest.approx(correction.offset, abs=0.5 * MS)


@given(seed=st.integers(0, 1 << 30), wrong=st.integers(1, 20))
@settings(FEW, max_examples=10)
def test_a_few_wrong_messages_among_many_are_found(seed, wrong):
    net = Net([Host("a"), Host("b", SECOND, 50e-6)])
    net.chat(seed, 400, 60, [(0, 1), (1, 0)])
    source = random.Random(seed)
    made = set()
    for _ in range(wrong):
        sender = source.randrange(2)
        net.send(sender, 1 - sender, BEGIN + source.randrange(60 * SECOND), -source.randrange(50 * MS, 5 * SECOND))
        made.add(net.messages[-1].what)
    assert {each.message.what for each in net.align().contradictions} == made


def test_the_hull_stands_for_all_messages():
    net = Net([Host("a"), Host("b")])
    net.chat(5, 300, 60, [(0, 1)])
    chosen = clocks.hull(net.messages)
    assert 1 < len(chosen) < 50
    for drift in (-1e-3, -1e-5, 0, 1e-4, 1e-3):
        least = min(each.received - each.sent * (1 + drift) for each in net.messages)
        assert min(each.received - each.sent * (1 + drift) for each in chosen) == least
    assert {id(each) for each in clocks.layers(net.messages, 1000)} == set(map(id, net.messages))


def test_two_containers_of_one_boot_have_one_clock():
    a, b = (Process("host", pid, "boot", "service", "service") for pid in (1, 2))
    assert a.clock == b.clock
