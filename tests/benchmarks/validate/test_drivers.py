"""A candidate that is broken in a driver newly fails in the suites of conformance, which have the driver's server."""

import shutil
from pathlib import Path

import pytest

from benchmarks.tools.upstream import environment
from benchmarks.tools.upstream.sides import Sides
from benchmarks.tools.upstream.terminal import Screen
from benchmarks.validate import suites
from benchmarks.validate.environments import CANDIDATE, STOCK, Environment, Variant
from benchmarks.validate.sandbox import Isolation
from tests.backends.required import usable
from tests.benchmarks.validate.broken.glance_store import BROKEN, S3, SWIFT

glance_store = pytest.importorskip("glance_store", reason="the drivers are in the extra stores")

SERVERS = {S3: "s3", SWIFT: "swift"}
FAULTS = [each for each in BROKEN if each.file in SERVERS]


@pytest.mark.parametrize("broken", FAULTS, ids=[each.name for each in FAULTS])
def test_a_fault_in_a_driver_newly_fails(tmp_path, broken):
    usable(SERVERS[broken.file])
    sides = []
    for name in (STOCK, CANDIDATE):
        environment.create(tmp_path / name)
        variant = Variant(name, Environment(tmp_path / name), "", None)
        sides.append(suites.side(variant, 100, broken.tests[0], Isolation()))
    changed = variant.environment.site_packages / broken.file
    shutil.copytree(Path(glance_store.__file__).parent, variant.environment.site_packages / "glance_store")
    text = changed.read_text()
    assert text.count(broken.old) == 1
    changed.write_text(text.replace(broken.old, broken.new))
    # Twice each would be the same once more.
    compared = Sides(Screen(), jobs=2, most=0).compare([broken.suite], sides[0], sides[1:], whole=False)
    (failure,) = compared[0].failures()
    assert failure == f"{CANDIDATE}: {broken.suite}: conformance_stores.{broken.tests[0]}: pass -> fail"
