"""Run benchmark suites: ``python -m benchmarks SUITE … [pytest's options]``, or ``tox -e bench -- SUITE …``.

``all`` stands for every suite. The glance environments that a suite needs are made first, where ``BENCHMARK_GLANCE32``
and ``BENCHMARK_GLANCE33`` name interpreters that do not exist yet. Each suite writes ``results/SUITE.json``. Several
suites run side by side with ``--quick``, which measures nothing. ``soak [--seconds S]`` runs
``benchmarks.tools.soak``.
"""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.backends.glance_environments import ENVIRONMENTS, set_up
from benchmarks.harness.environments import SetupError
from benchmarks.tools import side_by_side
from fastio.errors import meant

SUITES = Path(__file__).parent / "suites"
#: The environments of the suites that run glance-api.
GLANCE = {
    "clients": ["glance32"],
    **dict.fromkeys(("concurrency", "glance", "never_slower", "trace"), ["glance32", "glance33"]),
}


def names() -> list[str]:
    """The suites, sorted."""
    return sorted(file.parent.name for file in SUITES.glob("*/bench_*.py"))


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["soak"]:
        command = [sys.executable, "-m", "benchmarks.tools.soak", *arguments[1:]]
        return _set_up(ENVIRONMENTS) or subprocess.run(command).returncode
    options = [word.startswith("-") for word in arguments]
    count = options.index(True) if True in options else len(arguments)
    chosen, known = list(arguments[:count]), names()
    if not chosen:
        print(f"{__doc__.replace('`', '')}\nSuites: {', '.join(known)}")
        return 0
    for name in chosen:
        if name not in (*known, "all"):
            print(f"no suite {name!r}; suites: all, {', '.join(known)}{meant(name, known)}", file=sys.stderr)
            return 2
    chosen = known if "all" in chosen else chosen
    if status := _set_up(sorted({each for suite in chosen for each in GLANCE.get(suite, ())})):
        return status
    pytest = [sys.executable, "-m", "pytest", "-q", "-rsfE", "--benchmark-quiet", "-o", "python_files=bench_*.py"]
    if len(chosen) > 1 and "--quick" in arguments and "-k" not in arguments:
        commands = ([side_by_side.BETWEEN, *pytest, str(SUITES / name), *arguments[count:]] for name in chosen)
        return side_by_side.main([word for command in commands for word in command])
    command = [*pytest, *(str(SUITES / name) for name in chosen), *arguments[count:]]
    return subprocess.run(command).returncode


def _set_up(environments: Iterable[str]) -> int:
    """Make those that do not exist yet; returns an exit status."""
    try:
        for name in environments:
            python = Path(ENVIRONMENTS[name].python())
            if python.is_absolute() and not python.exists():
                set_up(ENVIRONMENTS[name], python.parent.parent)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
