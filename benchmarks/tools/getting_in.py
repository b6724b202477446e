"""What fastio adds to the start of a Python: ``python -m benchmarks.tools.getting_in [processes]``.

Each row is measured in fresh processes that take turns. The CPU time is the smallest of each, since all that disturbs
a measurement adds to it. The libraries that have patches may be installed; nothing imports them.
"""

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

import fastio

ROOT = Path(fastio.__file__).parent
TELL = "import sys, time; print(len(sys.modules), time.process_time())"
#: What is run, and whether as a child of ``fastio run --children``.
ROWS = {
    "Python alone": (TELL, False),
    "fastio.patch()": ("import fastio; fastio.patch(); " + TELL, False),
    "import fastio.auto": ("import fastio.auto; " + TELL, False),
    "--children, a Python that uses none of it": (TELL, True),
}


def measure(processes: int) -> dict[str, tuple[int, float]]:
    """Modules in the process, and milliseconds of CPU time, of each row."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in ROWS}
    # One more than is counted: the first one writes the bytecode.
    for _ in range(processes + 1):
        for name, (code, child) in ROWS.items():
            told = subprocess.run(
                [sys.executable, "-c", code], env=_environment(child), stdout=subprocess.PIPE, text=True, check=True
            ).stdout.split()
            found[name].append((int(told[0]), 1000 * float(told[1])))
    return {name: min(rows[1:], key=lambda row: row[1]) for name, rows in found.items()}


def _environment(child: bool) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHONDONTWRITE"))}
    path = [*([str(ROOT / "bootstrap")] if child else []), str(ROOT.parent)]
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}


def to_text(found: dict[str, tuple[int, float]]) -> str:
    """A table of what each row adds to Python alone."""
    modules, milliseconds = found["Python alone"]
    width = max(map(len, found))
    lines = [f"{'':{width}}  modules  ms of CPU"]
    for name, row in found.items():
        added = row if name == "Python alone" else (row[0] - modules, row[1] - milliseconds)
        sign = "" if name == "Python alone" else "+"
        lines.append(f"{name:{width}}  {sign + str(added[0]):>7}  {f'{sign}{added[1]:.1f}':>9}")
    return "\n".join(lines)


def main() -> None:
    print(to_text(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15)))
    installed = {each.metadata["Name"] for each in importlib.metadata.distributions()}
    print("installed:", ", ".join(sorted(installed & {"eventlet", "glance_store", "oslo.concurrency"})))
    print(platform.python_implementation(), platform.python_version(), f"{os.cpu_count()} processors")


if __name__ == "__main__":
    main()
