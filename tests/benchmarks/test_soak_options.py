"""The soak's options, what it notes beside slow clients, and its verdict; the rest is in ``tests/glance``."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.tools import soak
from benchmarks.tools.soak import (
    ANSWERING,
    CLIENTS,
    GROWTH,
    LINGERING,
    MOST_SLOW,
    POOLED,
    SLOW_CLIENTS,
    Sample,
    Soak,
    main,
    summary,
)

OPEN = Counter({"socket": 15, "anon_inode:[eventpoll]": 5})
FLAT = Sample(OPEN, threads=4, greenlets=3, resident={1: 100 << 20})
WORKERS = (11, 12)


class Judged:
    """What the verdict looks at."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.eventlet = False
        self.http_port = 0
        self.chosen = {"workers": 4, "also": ""}
        self.written = ""

    def workers(self) -> list[int]:
        return [*WORKERS]

    def log(self) -> str:
        return self.written


@pytest.mark.parametrize(("options", "slow", "also"), [
    ([], 0, ""), (["--slow", "7"], 7, SLOW_CLIENTS), (["--slow", "7", "--stock"], 7, ""),
])  # fmt: skip
def test_how_many_are_slow(monkeypatch: pytest.MonkeyPatch, options: list[str], slow: int, also: str) -> None:
    given: dict[str, Any] = {}

    @contextlib.contextmanager
    def service(**parameters: Any) -> Iterator[Judged]:
        given.update(parameters)
        yield Judged("glance-33")

    def run(load: Soak, seconds: float) -> None:
        given["threads of clients"] = len(load._threads)
        if slow:
            load._fault("something")

    monkeypatch.setitem(soak.RELEASES, "glance-33", service)  # type: ignore[arg-type]
    monkeypatch.setattr(Soak, "run", run)
    # With slow clients it is the only release.
    options = options if slow else [*options, "--release", "glance-33"]
    assert main(options) == bool(slow)
    assert given["also"] == also and given["threads of clients"] == CLIENTS + slow
    shipped = {"workers": 4, "threads": 1, "listen": 4096}
    assert {name: given[name] for name in given if name in shipped} == (shipped if slow else {"threads": 8})


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (FLAT, []),
        (Sample(OPEN + Counter(socket=LINGERING), 4, 3, FLAT.resident), []),
        (Sample(OPEN + Counter(socket=LINGERING + 1), 4, 3, FLAT.resident), ["descriptors"]),
        (Sample(OPEN, 4 + 4 * POOLED, 3, FLAT.resident), []),
        (Sample(OPEN, 4 + 4 * POOLED + 1, 3, FLAT.resident), ["threads"]),
        (Sample(OPEN, 4, 3 + ANSWERING, FLAT.resident), []),
        (Sample(OPEN, 4, 3 + ANSWERING + 1, FLAT.resident), ["greenlets"]),
        (Sample(OPEN, 4, 3, {1: FLAT.resident[1] + GROWTH + 1}), ["has grown"]),
    ],
)
def test_the_verdict_on_what_is_left_behind(last: Sample, named: list[str]) -> None:
    load = Soak(Judged("glance-33"), seed=1)  # type: ignore[arg-type]
    load.tally.done.update(download=1, upload=1)
    load.tally.samples = [FLAT, FLAT, last]
    load._judge()
    assert len(load.tally.faults) == len(named)
    assert all(name in fault for name, fault in zip(named, load.tally.faults, strict=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seconds", "3"], "--seconds 3: at least 15, or there is no time for anything"),
        (["--seconds", "nan"], "--seconds nan: at least 15"),
        (["--seconds", "inf"], "--seconds inf: at least 15"),
        (["--seconds", "long"], "argument --seconds: invalid float value: 'long'"),
        (["--slow", "-1"], "--slow -1: at least 0 and at most 500"),
        (["--slow", str(MOST_SLOW + 1)], "--slow 501: at least 0 and at most 500"),
        (["--slow", "1.5"], "argument --slow: invalid int value: '1.5'"),
        (["--slow", "2", "--release", "glance-31"], "invalid choice: 'glance-31'"),
        (["--slov", "2"], "--slow"),
    ],
)
def test_a_bad_option_is_told(capsys: pytest.CaptureFixture[str], options: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2 and said in capsys.readouterr().err


class Answers:
    """In the place of the process that sends cheap requests."""

    def __init__(self, waited: list[float], error: str) -> None:
        self._waited = waited
        self._error = error

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def waited(self) -> list[float]:
        if self._error:
            raise RuntimeError(self._error)
        return self._waited


def test_how_long_cheap_requests_wait_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Soak(Judged("glance-33"), seed=1, slow=1)  # type: ignore[arg-type]
    answers = iter([Answers([1.5, 2.5], ""), Answers([9.0], ""), Answers([], "1 of 7 requests were not answered")])
    monkeypatch.setattr(soak, "Requests", lambda port, path: next(answers))
    assert "cheap requests" not in summary(load)
    for _ in range(2):
        load._ask_meanwhile(0)
    found = summary(load)["cheap requests"]
    assert found == {"p50_ms": 2.5, "p99_ms": 9.0, "worst_ms": 9.0, "requests": 3} and load.tally.faults == []
    load._ask_meanwhile(0)
    assert load.tally.faults == ["cheap requests: 1 of 7 requests were not answered"]


def test_nobody_asks_without_slow_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Soak(Judged("glance-33"), seed=1)  # type: ignore[arg-type]
    monkeypatch.delattr(soak, "Requests")
    load._ask_meanwhile(0)
    assert load.tally.waited == [] and load._warm()


#: As uWSGI logs requests.
HOW = "127.0.0.2 () {20 vars in 400 bytes} [Tue Nov 24 02:00:00 2026]"
ASKED = (
    "PUT /v2/images/ab/file => generated 0 bytes in 9 msecs (HTTP/1.1 204)",
    "GET /v2/images/ab/file => generated 0 bytes in 9 msecs (HTTP/1.1 200)",
)


def test_when_all_workers_are_warm() -> None:
    service = Judged("glance-33")
    service.chosen["also"] = SLOW_CLIENTS
    load = Soak(service, seed=1, slow=1)  # type: ignore[arg-type]
    done = [f"[pid: {pid}|app: 0|req: 1/1] {HOW} {ask}" for pid in WORKERS for ask in ASKED]
    for left_out in done:
        service.written = "\n".join(
            [each for each in done if each != left_out] + [f"[pid: 13|app: 0] {HOW} {ASKED[1]}"]
        )
        assert not load._warm()
    service.written = "\n".join(done)
    assert load._warm()
    # A download that the worker has sent itself.
    service.written = service.written.replace(
        "GET /v2/images/ab/file => generated 0 ", "GET /v2/images/ab/file => generated 9 "
    )
    assert not load._warm()
    service.chosen["also"] = ""
    assert load._warm()
