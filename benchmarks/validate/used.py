"""Whether the code that a diff changes is used at all: code that is never imported cannot be judged by running it."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from benchmarks.tools.upstream.runner import Launcher, clean_environment

from . import suites
from .candidates import Candidate
from .errors import UnusedError
from .projects import Project
from .variants import Variant

#: Seconds for importing all that is used.
LIMIT = 120

#: Characters of what it tells.
MOST = 16 << 20

#: Runs in the candidate's environment: imports what the suites import, and tells the files. The hook knows those that
#: cannot be imported, too: a module that the candidate has broken is used as well.
_PROBE = """\
import importlib, json, sys
job = json.load(open(sys.argv[1]))
found = set()
def note(event, arguments):
    if event == "exec":
        found.add(arguments[0].co_filename)
    elif event == "compile":
        found.add(arguments[1])
sys.addaudithook(note)
sys.path[:0] = job["path"]
for name in [job["prelude"], *job["modules"]]:
    try:
        if name == "monkey_patch":
            importlib.import_module("eventlet").monkey_patch()
        else:
            importlib.import_module(name)
    except BaseException:
        pass
found |= {getattr(module, "__file__", None) for module in list(sys.modules.values())}
with open(sys.argv[2], "w") as file:
    json.dump([each for each in found if isinstance(each, str)], file)
"""

#: What the workloads of the benchmarks import beside what the suites do.
_WORKLOADS = (
    "eventlet.wsgi", "oslo_concurrency.processutils", "glance_store.multi_backend", "glance.common.wsgi_app",
    "glance.api.v2.router", "glance.api.middleware.context", "glance.api.middleware.version_negotiation",
)  # fmt: skip


def check_used(project: Project, candidate: Candidate, variant: Variant, launcher: Launcher) -> None:
    """Check that a diff or a module changes what at least one suite or benchmark of the project imports.

    :param launcher: runs what imports it
    :raises UnusedError: that names what it changes, if it does not
    """
    if candidate.kind not in ("diff", "module"):
        return
    imported: set[str] = set()
    for name in project.suites:
        imported |= _imported(name, variant, launcher)
        if imported.intersection(variant.changed):
            return
    raise UnusedError(
        f"{candidate.text} changes nothing that is used: no suite and no benchmark for {project.name} imports "
        f"{', '.join(variant.changed)}"
    )


def _imported(name: str, variant: Variant, launcher: Launcher) -> set[str]:
    """The files of site-packages that a suite's modules and the workloads load, relative to it."""
    suite = suites.suite_for(name, variant)
    directory = suite.find()
    job = {
        "path": [str(directory)] if directory else [],
        "prelude": suite.prelude,
        "modules": [*suite.modules, *_WORKLOADS],
    }
    with tempfile.TemporaryDirectory(prefix="validate-", ignore_cleanup_errors=True) as scratch:
        probe, told, found = (Path(scratch, each) for each in ("probe.py", "job.json", "found.json"))
        probe.write_text(_PROBE)
        told.write_text(json.dumps(job))
        found.touch()
        own = Path(scratch, "own")
        own.mkdir()
        process = launcher.start(
            [str(variant.environment.python), *map(str, (probe, told, found))], own,
            {**clean_environment(), "TMPDIR": str(own), **suite.env},
            readable=[probe, told, *([directory] if directory else [])], writable=[found, own],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(LIMIT)
            with open(found, encoding="utf-8") as file:
                files = json.loads(file.read(MOST))
        except (subprocess.TimeoutExpired, ValueError):
            return set()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    site_packages = variant.environment.site_packages
    return {str(Path(each).relative_to(site_packages)) for each in files if Path(each).is_relative_to(site_packages)}
