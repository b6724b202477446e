"""What CI prints: what failed is at the end, too."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / ".ci" / "run"


def test_what_failed_is_said_at_the_end(tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_bytes(SCRIPT.read_bytes())
    python = tmp_path / "python3"
    told = [
        "E   assert 1 == 2",
        "FAILED tests/test_it.py::test_it - assert 1 == 2",
        "  tests: FAIL code 1 (1.00 seconds)",
    ]
    python.write_text("#!/bin/sh\ncat told\nexit 1\n")
    python.chmod(0o755)
    (tmp_path / "told").write_text("\n".join([*told, *["noise"] * 100, ""]))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("CI_LOG", None)
    ran = subprocess.run(
        ["bash", ".ci/run"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=100,
    )  # fmt: skip
    assert ran.returncode not in (0, None)
    _, _, end = ran.stdout.partition("CI failed, exit status ")
    assert [line for line in told if line in end.splitlines()] == told
    assert "noise" not in end
