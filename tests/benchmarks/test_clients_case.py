"""The suite of Python clients: small runs of its cases, and wrong data."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")
pytest.importorskip("rich", reason="tables need the extra 'bench'")

from benchmarks.harness import worker
from benchmarks.harness.engine import Case
from benchmarks.suites.clients.bench_clients import CASES
from tests.benchmarks.running import work
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = [pytest.mark.usefixtures("cache"), needs_eventlet, needs_oslo]

#: Divides nothing.
SIZE = 300_001

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each_case
def test_wrong_bytes_are_not_verified(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _need(case)
    monkeypatch.setenv(worker.CACHE_VARIABLE, str(tmp_path))
    payload = worker.random_payload(SIZE)
    content = bytearray(payload.path.read_bytes())
    content[-2] ^= 1
    payload.path.write_bytes(content)
    assert work("clients", "native-stock", {**case.parameters, "size": SIZE})["verified"] is False


def _need(case: Case) -> None:
    missing = [name for name in case.needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
