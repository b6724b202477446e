"""What the analysis of a trace costs: ``fastio trace report``, by the number of requests."""

from benchmarks.harness.engine import Case


def _case(requests: int) -> Case:
    return Case(
        name=f"requests-{requests}",
        title=f"fastio trace report, {requests} requests of some 20 events",
        workload="trace_report",
        variants=("report",),
        parameters={"requests": requests},
        unit="s",
        columns=("memory_mib", "events", "cpu_seconds"),
        needs=("drain3",),
        quick={"requests": 20},
    )


CASES = [_case(200), _case(2000)]


def test_trace_report(recorded):
    recorded()
