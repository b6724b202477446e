"""The goals of fastio in the client: figures are medians, or ratios of two medians of the same interleaved run."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import CaseResult, Result
from fastio.tables import Table

#: Times curl's CPU time that glanceclient may take for all but the hashing.
CLIENT_CPU = 1.2
#: Share of stock's time that a verified download may take over HTTP.
CLIENT_TIME = 0.87
#: Times stock's rate at which ``openstack`` saves, and times curl's CPU time that it may take for all but the hashing,
#: both without the start of the command.
COMMAND_RATE, COMMAND_CPU = 5, 1.3


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    for case in result.cases:
        if "api-stock" in case.variants:
            yield from _apis(case)
        if "task" in case.parameters:
            yield from _commands(case)


def _commands(case: CaseResult) -> Iterator[Goal]:
    task = case.parameters["task"]
    what = f"openstack {task.replace('-', ' ')} over {case.parameters['scheme'].upper()}"
    hashing = case.median("limit-sha512", "transfer_cpu_seconds") if task == "image-save" else 0.0
    spent = case.median("openstack-fastio", "transfer_cpu_seconds")
    rest = None if spent is None or hashing is None else spent - hashing
    if task.endswith("save"):
        stock, fast = (_rate(case, f"openstack-{row}") for row in ("stock", "fastio"))
        yield goal_ratio(f"{what}, MB/s", stock, fast, "≥", COMMAND_RATE)
    curl = case.median("curl", "transfer_cpu_seconds")
    without = " without the hashing" if hashing else ""
    yield goal_ratio(f"{what}, CPU s{without}, curl for stock", curl, rest, "≤", COMMAND_CPU, "x curl")


def _rate(case: CaseResult, row: str) -> float | None:
    """MB/s, from the end of the command's start on."""
    size, seconds = case.median(row, "bytes"), case.median(row, "transfer_seconds")
    return size / seconds / 1e6 if size and seconds else None


def _apis(case: CaseResult) -> Iterator[Goal]:
    """Of glanceclient's API; ``client-*`` is the name of older cases without commands."""
    scheme = case.parameters["scheme"].upper()
    curl, hashing = case.median("curl", "cpu_seconds"), case.median("limit-sha512", "transfer_cpu_seconds")
    for row in ("api-fastio", "api-eventlet-fastio"):
        spent = case.median(row, "transfer_cpu_seconds")
        rest = None if spent is None or hashing is None else spent - hashing
        what = f"glanceclient over {scheme}, {row}, CPU s without the hashing, curl for stock"
        yield goal_ratio(what, curl, rest, "≤", CLIENT_CPU, "x curl")
        plain = f"{row}-unverified"
        what = f"glanceclient over {scheme}, {plain}, CPU s, curl for stock"
        yield goal_ratio(what, curl, case.median(plain, "transfer_cpu_seconds"), "≤", CLIENT_CPU, "x curl")
    if scheme == "HTTP":
        stock, fast = (case.median(row, "transfer_seconds") for row in ("api-stock", "api-fastio"))
        yield goal_ratio("glanceclient over HTTP, verified, seconds", stock, fast, "≤", CLIENT_TIME)
