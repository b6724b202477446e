"""The benchmarks of a validation in a process: the engine, the servers that it starts, and all variants.

Clients and servers have to share a network, so there is one sandbox for all of them. The validation gives the process
the names of what is to be run, as JSON, and reads from its standard output a result after each case, in a line.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import fastio
from benchmarks.harness import engine, machine, results
from benchmarks.harness.engine import ROOT, Case, Options
from benchmarks.harness.results import CaseResult, Result
from benchmarks.tools.upstream.runner import Launcher, clean_environment
from benchmarks.tools.upstream.terminal import harmless

from . import measurements, projects
from .environments import Environment, Variant
from .errors import ValidateError

#: Characters of a line that is shown: what is printed there may be anything.
MOST_SHOWN = 300
#: Bytes of a result; more than any has.
MOST_READ = 64 << 20


def run(
    launcher: Launcher, cases: Sequence[tuple[str, Case]], variants: Sequence[Variant], modes: Sequence[str],
    options: Options,
) -> Result:  # fmt: skip
    """Run these cases of suites with the variants interleaved, by this launcher.

    :raises ValidateError: if what comes out of the process is no result
    """
    result = Result("validate", machine.describe(), _packages(variants[0]))
    job = {
        "cases": [(suite, case.name) for suite, case in cases], "modes": list(modes),
        "rounds": options.rounds, "size": options.size,
        "variants": [(each.name, str(each.environment.directory), each.version) for each in variants],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="validate-", ignore_cleanup_errors=True) as scratch:
        own = Path(scratch, "own")
        own.mkdir()
        process = launcher.start(
            [sys.executable, "-m", "benchmarks.validate.measuring", json.dumps(job)], ROOT,
            {**clean_environment(), "TMPDIR": str(own), "PYTHONPATH": str(ROOT)}, readable=[], writable=[own],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        said = _Said(process.stderr)
        try:
            while line := process.stdout.readline(MOST_READ):
                result.cases += _cases(line, Path(scratch, "result.json"))
            process.wait()
        finally:
            # With it ends all that it has started.
            process.kill()
            process.wait()
            said.join()
    if process.returncode:
        raise ValidateError(f"the benchmarks ended with exit status {process.returncode}: {said.last}")
    return result


class _Said(threading.Thread):
    """Shows what the process writes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        #: line that was not empty
        self.last = ""
        self._pipe = pipe
        self.start()

    def run(self) -> None:
        while line := self._pipe.readline(MOST_SHOWN):
            text = harmless(line.decode(errors="replace").rstrip("\n"))
            self.last = text.strip() or self.last
            sys.stderr.write(text + "\n" * line.endswith(b"\n"))
            sys.stderr.flush()


def _cases(line: bytes, file: Path) -> list[CaseResult]:
    """Return the content of a line."""
    try:
        file.write_text(str(json.loads(line)), encoding="utf-8")
        return [case for case in results.read(file).cases if case.complete]
    except (ValueError, results.ResultError) as error:
        raise ValidateError(f"the output of the benchmarks is no result: {error}") from None


def main(arguments: Sequence[str]) -> None:
    """Run what the JSON names."""
    # Other output is no result.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job: dict[str, Any] = json.loads(arguments[0])
    variants = [Variant(name, Environment(Path(place)), version, None) for name, place, version in job["variants"]]
    options = Options(rounds=job["rounds"], size=job["size"])
    for suite, name in job["cases"]:
        (case,) = (case for case in projects.cases_of(suite) if case.name == name)
        adapted = measurements.adapt(case, suite, variants, job["modes"])
        if adapted is not None:
            result = engine.run([adapted], Result("validate", machine.describe(), {}), options)
            print(json.dumps(result.text()), file=out, flush=True)


def _packages(stock: Variant) -> dict[str, str]:
    versions = stock.environment.versions()
    return {"fastio": fastio.__version__, **{name: versions[name] for name in machine.PACKAGES if name in versions}}


if __name__ == "__main__":
    main(sys.argv[1:])
