"""CPython: what takes the place of a module of the standard library."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from benchmarks.tools import pythons
from benchmarks.validate import candidates, projects
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.stdlib import StandardLibraryBuilder
from tests.benchmarks.validate.test_diffs import diff_of

LIBRARY = Path(sysconfig.get_path("stdlib"))
SUBPROCESS = (LIBRARY / "subprocess.py").read_text()
MARKED = SUBPROCESS + "\nCANDIDATE = True\n"


class Installer:
    def install(self, python, requirements):
        assert "eventlet" in requirements


@pytest.fixture
def builder(tmp_path):
    return StandardLibraryBuilder(projects.CPYTHON, "", pythons.find(""), tmp_path / "cache", Installer(), print)


def has_candidate(variant, *options):
    code = "import subprocess; print(hasattr(subprocess, 'CANDIDATE'))"
    python = str(variant.environment.python)
    return subprocess.run([python, *options, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_diff_of_lib(builder, tmp_path):
    diff = tmp_path / "my.diff"
    before = {"Lib/subprocess.py": SUBPROCESS, "Lib/test/test_subprocess.py": "not that one\n", "Misc/NEWS": "news\n"}
    after = {"Lib/subprocess.py": MARKED, "Lib/test/test_subprocess.py": "nor that\n", "Misc/NEWS": "newer\n"}
    diff.write_text(diff_of(before, after))
    stock = builder.stock()
    candidate = builder.candidate(stock, candidates.parse(str(diff)))
    assert candidate.changed == ["cpython-candidate/subprocess.py"]
    assert has_candidate(candidate)
    assert has_candidate(candidate, "-I")
    assert not has_candidate(stock)


def test_a_module(builder, tmp_path):
    module = tmp_path / "subprocess.py"
    module.write_text(MARKED)
    stock = builder.stock()
    assert has_candidate(builder.candidate(stock, candidates.parse(str(module))))


def test_what_the_standard_library_does_not_have(builder, tmp_path):
    module = tmp_path / "no_such_module.py"
    module.write_text("")
    with pytest.raises(ValidateError, match="the standard library has no no_such_module.py"):
        builder.candidate(builder.stock(), candidates.parse(str(module)))


def test_it_has_no_releases():
    with pytest.raises(ValidateError, match="--stock 3.12.1: what cpython is compared with is the Python of --python"):
        projects.at_release(projects.CPYTHON, "3.12.1")
