"""Run the variants of a case in fresh processes, interleaved, and keep every figure.

The machine drifts: neighbours come and go, caches warm up, clocks slow down. Each round therefore runs every variant
once, in a new (seeded) order: all variants see the same drift. A fresh process per run keeps one run's heap, imports
and patches out of the next one.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from benchmarks.harness import machine
from benchmarks.harness.results import ROOT, THROUGHPUT, TIME, CaseResult, Result, VariantResult
from benchmarks.harness.worker import SURROUNDINGS_VARIABLE
from fastio.config import format_size

#: Seconds for the start and the end of a case's backends. Each step has a separate limit.
_SURROUNDINGS = 600.0

#: Parts of each run's record beside its figures: where the operations of a load were kept, what limited it, and the
#: pairs of a run that compares by itself.
KEPT = ("records", "bottleneck", "pairs")


class CaseError(ValueError):
    """A case that cannot be run in this form."""


@dataclass(frozen=True)
class Variant:
    """One row of a case, where it differs from what the case says.

    :param name: key in the workload's ``VARIANTS``
    :param label: shown in tables; the name by default; distinguishes two variants of the same name
    :param parameters: these win over the case's
    :param rounds: more or fewer than the case's, for rows that cost little or much; tables mark them
    :param warmup: unmeasured runs before the first round
    :param python: another interpreter for this variant
    :param against: title of the variant that this one is compared with, if it is not the case's baseline
    :param skip: why this variant cannot run here; it is then shown as skipped, with this reason
    """

    name: str
    label: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None
    warmup: int | None = None
    python: str | None = None
    against: str = ""
    skip: str = ""

    @property
    def title(self) -> str:
        return self.label or self.name


@dataclass(frozen=True)
class Case:
    """The object of a measurement: the same work done by several variants.

    :param name: short and without blanks, unique in its suite
    :param workload: folder of ``benchmarks.suites`` whose ``workload.py`` the runs are of
    :param variants: rows of the table, in its order
    :param parameters: given to every variant
    :param rounds: measured runs of each variant
    :param baseline: title of the variant that the others are compared with; the first by default
    :param unit: ``MB/s`` or ``MiB/s`` (``bytes`` by ``seconds``), or ``s``, ``ms``, ``us``; with ``value`` any
    :param value: the figure of a run that the case is about, if it is not the throughput or the time; it is in ``unit``
        already, and less of it is better
    :param columns: further figures of the runs that tables show, their medians
    :param quick: parameters of a smoke run; by default 1 MiB where there is a ``size``
    :param warmup: unmeasured runs of each variant before the first round
    :param timeout: seconds that one run may take
    :param title: heading of the table
    :param backend: name of the backend of :mod:`benchmarks.backends` that runs while the case does
    :param backend_parameters: of the backend
    :param on_disk: whether the backends keep their files on a disk, not in memory
    :param beside: further backends that run meanwhile: a key for the runs, its name and its parameters; one that is
        unavailable is left out, and the variants that use it report that (``skip``); if one does not start, the runs
        get the reason, as ``failed``
    :param needs: packages that the workload imports beside those that every workload does
    :param prepare: variant that is run once before all others, and not measured; they get its result
    :param finish: variant that is run once after all others, and not measured
    :param summary: returns the result's summary of all runs of the case, once they are done
    :param long: more of what another case does too: left out of a smoke run
    """

    name: str
    workload: str
    variants: Sequence[Variant | str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 7
    baseline: str = ""
    unit: str = "MB/s"
    value: str = "seconds"
    columns: Sequence[str] = ()
    quick: Mapping[str, Any] | None = None
    warmup: int = 1
    timeout: float = 300
    title: str = ""
    backend: str = ""
    backend_parameters: Mapping[str, Any] = field(default_factory=dict)
    on_disk: bool = False
    beside: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    needs: Sequence[str] = ()
    prepare: str = ""
    finish: str = ""
    summary: Callable[[CaseResult], dict[str, Any]] | None = None
    long: bool = False

    def __post_init__(self) -> None:
        known = [*THROUGHPUT, *TIME]
        if self.value == "seconds" and self.unit not in known:
            raise CaseError(f"case {self.name}: unit {self.unit!r} is not one of {', '.join(known)}")
        if self.value != "seconds" and self.unit in THROUGHPUT:
            raise CaseError(f"case {self.name}: {self.unit} is of bytes and seconds, not of {self.value}")
        titles = [variant.title for variant in self.all_variants()]
        if len(set(titles)) != len(titles) or not titles:
            raise CaseError(f"case {self.name}: needs variants with different titles, not {titles}")
        if self.baseline and self.baseline not in titles:
            raise CaseError(f"case {self.name}: baseline {self.baseline!r} is not one of {', '.join(titles)}")

    def why_not(self) -> str:
        """Why the case cannot be run here; empty if it can."""
        missing = [name for name in self.needs if find_spec(name) is None]
        if missing:
            return f"not installed: {', '.join(missing)}"
        if not self.backend:
            return ""
        # Most cases have no backend.
        from benchmarks.harness import servers

        return servers.why_not(self.backend, self.backend_parameters) or (servers.why_no_disk() if self.on_disk else "")

    def all_variants(self) -> list[Variant]:
        return [Variant(variant) if isinstance(variant, str) else variant for variant in self.variants]


@dataclass(frozen=True)
class Options:
    """Changes of the command line to all cases.

    :param rounds: measured runs of each variant, instead of the case's and the variants' own numbers
    :param size: replaces the parameter ``size`` of the cases that have one, in bytes
    :param quick: one run of each variant, no warm-up, with the case's ``quick`` parameters: does it work at all?
    :param seed: of the order in which the variants run
    """

    rounds: int | None = None
    size: int | None = None
    quick: bool = False
    seed: int = 0

    def parameters(self, case: Case, variant: Variant) -> dict[str, Any]:
        """Return the variant's parameters. Its own ``size``, which is for slow variants, is never made larger."""
        parameters = {**case.parameters, **variant.parameters}
        if self.quick:
            quick = {"size": 1 << 20} if "size" in parameters else {}
            parameters.update(quick if case.quick is None else case.quick)
        if "size" in parameters and self.size is not None:
            own = variant.parameters.get("size", self.size)
            parameters["size"] = min(self.size, own)
        return parameters

    def title(self, case: Case) -> str:
        """The case's title, which names its own size, and the size that is used instead."""
        size = self.parameters(case, Variant("")).get("size")
        own = case.parameters.get("size")
        return case.title if size is None or size == own else f"{case.title}: {format_size(size)} in this run"

    def rounds_of(self, case: Case, variant: Variant) -> int:
        if self.quick:
            return 1
        if self.rounds is not None:
            return self.rounds
        return case.rounds if variant.rounds is None else variant.rounds

    def warmup_of(self, case: Case, variant: Variant) -> int:
        if self.quick:
            return 0
        return case.warmup if variant.warmup is None else variant.warmup

    def most_seconds(self, case: Case) -> float:
        """How long all runs of the case take at most, with its backends and what comes before and after them."""
        runs = sum(self.rounds_of(case, each) + self.warmup_of(case, each) for each in case.all_variants())
        return (runs + bool(case.prepare) + bool(case.finish)) * case.timeout + _SURROUNDINGS


def run(
    cases: Iterable[Case],
    result: Result,
    options: Options | None = None,
    *,
    path: Path | None = None,
    progress: TextIO | None = None,
) -> Result:
    """Run the cases and add them to ``result``.

    :param path: where the result is written after every run, so that an interrupted one leaves what it has measured
    :param progress: file for a line on every run; the standard error by default
    """  # fmt: skip
    options = options or Options()
    for case in cases:
        _run_case(case, result, options, path, progress or sys.stderr)
    return result


def plan(rounds: Mapping[str, int], seed: int) -> list[list[str]]:
    """The variants of each round, in their order.

    Every round has a new order. Variants with fewer rounds than others take part in rounds spread over the whole time.
    """
    shuffler = random.Random(seed)
    total = max(rounds.values(), default=0)
    planned = []
    for number in range(total):
        present = [title for title, own in rounds.items() if (number + 1) * own // total > number * own // total]
        shuffler.shuffle(present)
        planned.append(present)
    return planned


def _run_case(case: Case, result: Result, options: Options, path: Path | None, progress: TextIO) -> None:
    variants = {variant.title: variant for variant in case.all_variants()}
    recorded = CaseResult(
        name=case.name,
        title=options.title(case),
        workload=case.workload,
        parameters=options.parameters(case, Variant("")),
        baseline=case.baseline or next(iter(variants)),
        unit=case.unit,
        value=case.value,
        columns=list(case.columns),
        seed=options.seed,
        load_before=machine.load(),
    )
    missing = case.why_not()
    for title, variant in variants.items():
        recorded.variants[title] = VariantResult(
            name=variant.name,
            command=_command(case, variant, options.parameters(case, variant)),
            parameters=options.parameters(case, variant),
            rounds=options.rounds_of(case, variant),
            usual_rounds=options.rounds_of(case, Variant(variant.name)),
            against=variant.against if variant.against in variants else "",
            skipped=variant.skip or missing,
        )
    result.cases.append(recorded)
    able = {title: variant for title, variant in variants.items() if not (variant.skip or missing)}
    warmups = {title: options.warmup_of(case, variant) for title, variant in able.items()}
    measured = {title: recorded.variants[title].rounds for title in able}
    schedule = [(True, each) for each in plan(warmups, options.seed)]
    schedule += [(False, each) for each in plan(measured, options.seed + 1)]
    runs, done = sum(len(each) for _, each in schedule), 0
    print(f"{options.title(case) or case.name}: {runs} runs", file=progress, flush=True)
    with _surroundings(case, recorded, able) as told:
        for number, (warmup, titles) in enumerate(schedule):
            for title in titles:
                done += 1
                # The line begins before the run does, so that a run that hangs can be seen.
                what = f"{title} (warm-up)" if warmup else title
                print(f"  {done}/{runs}  {what} … ", end="", file=progress, flush=True)
                print(
                    _run_once(recorded.variants[title], case.timeout, number, warmup, told), file=progress, flush=True
                )
                if path is not None:
                    result.write(path)
    if case.summary is not None:
        recorded.summary = case.summary(recorded)
    recorded.complete = True
    if path is not None:
        result.write(path)


@contextlib.contextmanager
def _surroundings(case: Case, recorded: CaseResult, able: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Run the case's backends and prepare them; yields what the runs need to reach them.

    Where that fails all who would have run have failed.
    """
    told: dict[str, Any] = {}
    failure = None
    with contextlib.ExitStack() as stack:
        if able and case.backend:
            failure = _start(stack, case, recorded, told)
        if able and case.prepare and failure is None:
            failure = _prepare(case.prepare, case, recorded.parameters, told)
        if failure is not None:
            for title in able:
                recorded.variants[title].failure = failure
        yield told
        if able and case.finish and failure is None:
            found = _prepare(case.finish, case, recorded.parameters, told)
            if found is not None:
                recorded.backend["left over"] = f"{found['reason']}: {found['stderr'].strip().splitlines()[-1:]}"


def _start(
    stack: contextlib.ExitStack, case: Case, recorded: CaseResult, told: dict[str, Any]
) -> dict[str, Any] | None:  # fmt: skip
    """Start the case's backends and add to ``told`` how to reach them; returns the failure if its own fails.

    Of those beside it, only the rows that use one may fail with it.
    """
    from benchmarks.harness import servers

    def started(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return stack.enter_context(servers.running(name, parameters, directory))
        except (servers.BackendError, OSError) as error:
            return {"failed": str(error)}

    try:
        directory = servers.data_directory(case.backend, recorded.parameters.get("size", 0), case.on_disk)
    except OSError as error:
        return {"reason": f"no {case.backend}", "status": None, "stderr": str(error)}
    recorded.backend = {"name": case.backend, "directory": servers.described(directory), **case.backend_parameters}
    told.update(started(case.backend, case.backend_parameters))
    if "failed" in told:
        return {"reason": f"no {case.backend}", "status": None, "stderr": told["failed"]}
    told["beside"] = {}
    for known_by, (name, parameters) in case.beside.items():
        if not servers.why_not(name, parameters):
            told["beside"][known_by] = started(name, parameters)
            recorded.backend[known_by] = " ".join([name, *(f"{key}={value}" for key, value in parameters.items())])
    return None


def _prepare(name: str, case: Case, parameters: dict[str, Any], told: dict[str, Any]) -> dict[str, Any] | None:
    """Run what prepares or finishes the case and add its result to ``told``; returns its failure if there is one."""
    preparing = VariantResult(name, _command(case, Variant(name), parameters), parameters, 1, 1)
    found = _outcome(preparing, case.timeout, told)
    if preparing.failure is not None:
        return {**preparing.failure, "reason": f"{name}: {preparing.failure['reason']}"}
    told["prepared"] = found
    return None


def _command(case: Case, variant: Variant, parameters: Mapping[str, Any]) -> list[str]:
    python = variant.python or sys.executable
    return [python, "-m", "benchmarks.harness.worker", case.workload, variant.name, json.dumps(parameters)]


def _run_once(variant: VariantResult, timeout: float, round_number: int, warmup: bool, told: Mapping[str, Any]) -> str:
    """Run the variant once and record its result, or why it has failed; returns a word on it.

    A variant that has failed is not run again: its time-out could be spent many times over.
    """  # fmt: skip
    if variant.failure is not None:
        return "left out after its failure"
    started = time.time()
    found = _outcome(variant, timeout, told)
    if isinstance(found, str):
        return found
    figures = {key: value for key, value in found.items() if isinstance(value, (int, float))}
    missing = {"seconds", "verified"} - figures.keys()
    if missing:
        return _fail(variant, f"its result has no {' and no '.join(sorted(missing))}", 0, json.dumps(found).encode())
    own = {**figures, **{key: found[key] for key in KEPT if key in found}}
    variant.details = {key: value for key, value in found.items() if key not in own}
    variant.runs.append({"round": round_number, "warmup": warmup, "started": started, **own})
    rate = f", {figures['bytes'] / figures['seconds'] / 1e6:.4g} MB/s" if figures.get("bytes") else ""
    return f"{figures['seconds']:.3f} s{rate}" + ("" if figures["verified"] else ", wrong data")


def _outcome(variant: VariantResult, timeout: float, told: Mapping[str, Any]) -> dict[str, Any] | str:
    """The object that a run of the variant has printed, or a word on its failure, which is then recorded."""
    try:
        status, output, errors = _execute(variant.command, timeout, told)
    except subprocess.TimeoutExpired as expired:
        return _fail(variant, f"no result after {timeout:g} s", None, expired.stderr or b"")
    except OSError as error:
        return _fail(variant, f"it cannot be started: {error}", None, b"")
    if status:
        return _fail(variant, f"exit status {status}", status, errors)
    try:
        found = json.loads(output.decode().splitlines()[-1])
    except (ValueError, IndexError) as error:
        return _fail(variant, f"the last line of its output is no JSON object: {error}", 0, errors or output)
    if not isinstance(found, dict):
        return _fail(variant, "the last line of its output is no JSON object", 0, errors or output)
    return found


def _execute(command: list[str], timeout: float, told: Mapping[str, Any]) -> tuple[int, bytes, bytes]:
    environment = {**os.environ, SURROUNDINGS_VARIABLE: json.dumps(told)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [environment.get("PYTHONPATH")])])
    # A separate session, so that the children of a run that hangs end with it.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment, cwd=ROOT, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                error.stderr = process.communicate()[1]
            raise
    return process.returncode, output, errors


def _fail(variant: VariantResult, reason: str, status: int | None, errors: bytes) -> str:
    variant.failure = {"reason": reason, "status": status, "stderr": errors.decode(errors="replace")[-20_000:]}
    return f"failed: {reason}"
