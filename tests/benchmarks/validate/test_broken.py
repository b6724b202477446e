"""Candidates that are broken on purpose: each is caught, and the verdict names what is wrong.

A minute or two each, so they run only if ``VALIDATE_TESTS`` is set; ``-k nova`` runs those of one project.
"""

import functools
import os
import shutil

import pytest

from tests.benchmarks.validate.broken import BROKEN
from tests.benchmarks.validate.command import Validate

if not os.environ.get("VALIDATE_TESTS"):
    pytest.skip("runs if VALIDATE_TESTS is set", allow_module_level=True)

ALL = [(project, broken) for project, candidates in BROKEN.items() for broken in candidates]


@pytest.fixture(scope="module")
def validate_of(tmp_path_factory):
    return functools.cache(lambda project: Validate(project, tmp_path_factory.mktemp("validate")))


@pytest.mark.parametrize(("project", "broken"), ALL, ids=[f"{project}: {broken.name}" for project, broken in ALL])
def test_caught_and_named(validate_of, project, broken):
    if project == "glance" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    validate = validate_of(project)
    validate.run(1, "--candidate", validate.diff(*broken.change), *broken.arguments())
    for line in broken.lines():
        assert line in validate.said, validate.said
    if broken.benchmark:
        assert broken.verdict in validate.said, validate.said
