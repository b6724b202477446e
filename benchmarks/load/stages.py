"""Carry out a workload: one stage after the other, the works of a stage at the same time, each by a load generator.

A failure ends the workload, but not before the cleanup is done. A directory is left that has the records
of every work, the samples of the machines, and ``workload.json`` with what was done when::

    output/workload.json
    output/samples-local.jsonl.gz, samples-HOST-PORT.jsonl.gz
    output/03-main/reading/run.json, worker-0.csv.gz
"""

import concurrent.futures
import contextlib
import http.client
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load import Failed, Wrong, agent, files, measuring, protocols
from benchmarks.load.workload import FORMAT, SUMMARY, VERSION, Stage, Work, Workload

#: Seconds beyond its own time and its operations' patience after which a work's load generator is ended.
MARGIN = 180.0
#: Status of an object that was not there to be deleted, which is as good.
GONE = 404
#: Works that have operations.
OPERATING = ("prepare", "normal", "cleanup")


def carry_out(
    workload: Workload, output: Path, *, pids: Sequence[int] = (), agents: Sequence[tuple[str, int]] = (),
    patterns: Mapping[str, str] | None = None, stop: threading.Event | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Carry out a workload; ``output`` is a new directory.

    :param pids: servers of this machine that are sampled
    :param agents: addresses of those on other machines
    :param patterns: of further processes, here and there
    :param stop: ends it when it is set
    :param tell: is called with a line on what happens
    :raises Failed: if a stage has failed; what cleans up has been done by then; or, before anything is done, if an
        agent cannot be reached
    :raises Wrong: if a work cannot be done by the service, before anything is done
    """
    stop = stop or threading.Event()
    _check(workload)
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise Wrong(f"{output}: there is something in it already; records are not overwritten")
    summary: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "name": workload.name, "description": workload.description,
        "started": time.time(), "finished": None, "stages": [], "failure": "", "doubts": [],
    }  # fmt: skip
    with agent.everywhere(output, pids, agents, patterns or {}) as sampling:
        for number, stage in enumerate(workload.stages, 1):
            outcomes: list[dict[str, Any]] = []
            status = "skipped"
            if stage.cleans or not summary["failure"]:
                tell(f"{stage.name} …")
                outcomes = _carry_out(stage, output / f"{number:02d}-{_safe(stage.name)}", stop)
                problems = [each for each in outcomes if each["problem"]]
                status = "failed" if problems else "done"
                for each in problems:
                    tell(f"{stage.name}: {each['name']}: {each['problem']}")
                    summary["failure"] = summary["failure"] or (
                        f"stage {stage.name}, work {each['name']}: {each['problem']}"
                    )
            summary["stages"].append({"name": stage.name, "status": status, "works": outcomes})
            files.write(output / SUMMARY, summary)
            if status == "done":
                time.sleep(stage.delay)
    summary["doubts"] += sampling
    files.write(output / SUMMARY, {**summary, "finished": time.time()})
    if summary["failure"]:
        raise Failed(summary["failure"])


def _check(workload: Workload) -> None:
    """Find out what no service could do, before anything is done."""
    spread = [name for name in ("FASTIO_LOAD_BIND", "FASTIO_LOAD_WORKERS") if os.environ.get(name)]
    for stage in workload.stages:
        for work in stage.works:
            if work.plan is not None:
                protocols.client_class(work.plan.protocol).check(work.plan)
        if spread and sum(work.kind in OPERATING for work in stage.works) > 1:
            raise Wrong(
                f"stage {stage.name}: its works go on at the same time, and {spread[0]} has one place for workers: "
                "put them in one work, or run it without workers from elsewhere"
            )


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"


def _carry_out(stage: Stage, directory: Path, stop: threading.Event) -> list[dict[str, Any]]:
    """Do all works of a stage; returns what each came to."""
    with concurrent.futures.ThreadPoolExecutor(len(stage.works)) as pool:
        try:
            jobs = [
                pool.submit(_outcome, work, directory / f"{number}-{_safe(work.name)}", stop)
                for number, work in enumerate(stage.works, 1)
            ]
            return [job.result() for job in jobs]
        except BaseException:
            stop.set()
            raise


def _outcome(work: Work, directory: Path, stop: threading.Event) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": work.name, "kind": work.kind, "directory": "", "started": time.time(), "problem": "",
        "warmup": work.warmup, "counted": work.counted,
    }  # fmt: skip
    try:
        _do(work, directory, stop, found)
    except (Failed, Wrong, OSError, http.client.HTTPException) as error:
        found["problem"] = f"{type(error).__name__}: {error}"
    return {**found, "finished": time.time()}


def _do(work: Work, directory: Path, stop: threading.Event, found: dict[str, Any]) -> None:
    if work.plan is None:
        return
    if work.kind in ("init", "prepare"):
        _containers(work, "make_container")
    if work.kind in OPERATING:
        directory.parent.mkdir(exist_ok=True)
        found["directory"] = str(Path(directory.parent.name, directory.name))
        measuring.carry_out(work.plan, directory, stop, work.plan.seconds + work.plan.patience + MARGIN)
        _judge(work, directory, found)
    if work.kind in ("cleanup", "dispose"):
        _containers(work, "remove_container")


def _containers(work: Work, what: str) -> None:
    """Make or remove them all, even if one cannot be."""
    if not work.containers:
        return
    assert work.plan is not None
    service = protocols.once(work.plan)
    problems = []
    with contextlib.closing(service):
        for name in work.containers:
            try:
                getattr(service, what)(name)
            except (protocols.Refused, OSError, http.client.HTTPException) as error:
                problems.append(str(error) or type(error).__name__)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise protocols.Refused(problems[0] + more)


def _judge(work: Work, directory: Path, found: dict[str, Any]) -> None:
    """Whether more has failed than may."""
    # Reading results needs libraries that producing them does not need.
    from benchmarks.load import analysis

    try:
        run = analysis.read(directory)
    except Wrong as error:
        found["problem"] = str(error)
        return
    failed = run.operations.failed
    if work.kind == "cleanup":
        failed = failed & (run.operations.status != GONE)
    found |= {"operations": len(failed), "failed": int(failed.sum())}
    undone = work.plan.total - len(failed) if work.plan is not None and work.kind != "normal" else 0
    ratio = float(failed.mean())
    if ratio > work.tolerated:
        first = next(iter(run.errors), "")
        found["problem"] = f"{ratio:.2%} of {len(failed)} operations failed, {work.tolerated:.2%} may; such as: {first}"
    elif undone > 0:
        found["problem"] = f"{undone} of {work.plan.total if work.plan else 0} operations were not done in time"
