"""A type checker's view of a program that uses fastio."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fastio

ROOT = Path(fastio.__file__).parents[1]


def check(program: str, tmp_path: Path) -> list[str]:
    """Return the output of ``mypy --strict`` on it, as if fastio were installed."""
    pytest.importorskip("mypy", reason="mypy is not installed: it comes with tox -e lint and tox -e package")
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path),
         "program.py"],
        cwd=tmp_path, env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, text=True,
        timeout=290,
    )  # fmt: skip
    return [line.partition(": ")[2] for line in done.stdout.splitlines() if ": error: " in line]


@pytest.mark.limit(600)
def test_a_program_that_is_right_and_one_that_is_wrong(tmp_path: Path) -> None:
    right = """
        import fastio
        import pathlib

        fastio.patch("communicate", chunk_size="64KiB", pipe_size=1 << 20, disabled=["wait"], trace=pathlib.Path("t"))
        fastio.patch(store_chunk_sizes={"s3": "256KiB"}, enabled=False)


        @fastio.patched(also="oslo_spawn")
        def serve(port: int) -> bytes:
            return b""


        with fastio.patched() as report:
            problems = report.problems()
        answer: bytes = serve(80)
    """
    assert check(right, tmp_path) == []
    wrong = """
        import fastio

        fastio.patch(5)


        @fastio.patched()
        def serve(port: int) -> bytes:
            return b""


        serve("80")
    """
    said = check(wrong, tmp_path)
    assert len(said) == 2
    assert 'Argument 1 to "patch"' in said[0]
    assert 'Argument 1 to "serve"' in said[1]
