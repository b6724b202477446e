"""``python -m benchmarks.tools.getting_in`` measures what fastio adds to the start of a Python."""

import subprocess
import sys


def test_it_measures_each_row() -> None:
    command = [sys.executable, "-m", "benchmarks.tools.getting_in", "1"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout.splitlines()
    rows = {line[:41].strip(): line[41:].split() for line in lines[1:5]}
    added = {name: int(modules) for name, (modules, _) in rows.items()}
    assert added["Python alone"] > 0
    # fastio.patch() alone, and what fastio.auto has besides; a child has next to nothing.
    assert added["import fastio.auto"] > added["fastio.patch()"] > 50
    assert 0 < added["--children, a Python that uses none of it"] < 40
