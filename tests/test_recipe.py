"""The contributor's page, "Adding a patch", followed for a library that is made up: what it says is enough."""

import json
import pathlib
import textwrap
from collections.abc import Callable

import pytest

import fastio
from tests.conftest import RunPython

FILES = {
    "site/madeup/__init__.py": """
        def add(a, b=1):
            return check(a) + b

        def check(a):
            return a
        """,
    "site/madeup-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: madeup\nVersion: 1.2\n",
    # From here on: what a contributor writes.
    "patches/madeup/__init__.py": 'REQUIRES = "madeup >= 1.0, < 2"\n',
    "patches/madeup/madeup_add.py": """
        from fastio.patching.known_code import KNOWN
        from fastio.patching.registry import Patch, Target

        def make(wrapped, hook):
            def add(a, b=1):
                return "patched", wrapped(a, b)
            return add

        PATCH = Patch(
            __name__,
            summary="madeup: sums that say who made them",
            targets=(Target("madeup:add", make, relies_on={"check": KNOWN}),),
        )
        """,
    "patches/madeup/fix_madeup.py": """
        from fastio.patching.known_code import Uses
        from fastio.patching.registry import Patch, Target

        def make(wrapped, hook):
            def add(a, b=1):
                return "fixed", wrapped(a, b)
            return add

        PATCH = Patch(
            __name__,
            summary="madeup: sums are right",
            targets=(Target("madeup:add", make, Uses("a, b=1", "check")),),
        )
        """,
}

#: Stands for the installation of the package, and of the known releases.
SETUP = """
    import json, os, pathlib, sys
    root = pathlib.Path(sys.argv[1])
    sys.path[:0] = [sys.argv[2], str(root / "site")]
    import fastio.patches
    fastio.patches.__path__.append(str(root / "patches"))
    from fastio.patching import registry
    registry.TABLE += (registry.Listed("madeup_add", "madeup"), registry.Listed("fix_madeup", "madeup"))
    from benchmarks.tools import fingerprints
    fingerprints.TABLE = root / "table.json"
    from fastio.patching import known_code
    if not fingerprints.TABLE.exists():
        fingerprints.TABLE.write_text(json.dumps(known_code.table()))
    known_code.table = lambda: json.loads(fingerprints.TABLE.read_text())
"""


@pytest.fixture
def madeup(tmp_path: pathlib.Path, run_python: RunPython) -> Callable[[str], str]:
    """Runs code where the library is installed and the patches are written; returns what it prints."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    cache = tmp_path / "cache" / "madeup-1.2"
    cache.mkdir(parents=True)
    (cache / "unpacked").symlink_to(tmp_path / "site")
    checkout = str(pathlib.Path(fastio.__file__).parents[1])

    def run(code: str) -> str:
        program = textwrap.dedent(SETUP) + textwrap.dedent(code)
        environment = {"FINGERPRINT_CACHE": str(tmp_path / "cache")}
        return run_python(program, str(tmp_path), checkout, env=environment).stdout

    return run


WRITE = """
    fingerprints.main(["madeup==1.2", "--accept", "madeup:add", "madeup:check"])
"""
USE = """
    import fastio
    report = fastio.patch(["fix_madeup", "madeup_add"])
    import madeup
    print(madeup.add(1), [entry.outcome.value for entry in fastio.status().entries if entry.target == "madeup:add"])
    fastio.unpatch()
    print(madeup.add(1))
"""


def test_a_new_library(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    madeup(WRITE)
    table = json.loads((tmp_path / "table.json").read_text())
    assert {key for key in table if key.startswith("madeup:")} == {"madeup:add", "madeup:check"}
    assert madeup(USE) == "('fixed', ('patched', 2)) ['applied', 'applied']\n2\n"
    assert (
        madeup("""
        from benchmarks.tools import supported
        print([row[-2:] for row in supported.patches_table().rows if "madeup" in row[0]])
        """)
        == "[['madeup 1.2', 'madeup >= 1.0, < 2'], ['-', 'madeup >= 1.0, < 2']]\n"
    )


def test_a_function_that_it_relies_on_changes(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    """Only what relies on it is left alone."""
    madeup(WRITE)
    path = tmp_path / "site" / "madeup" / "__init__.py"
    path.write_text(path.read_text().replace("return a\n", "return a * 1\n"))
    assert madeup(USE) == "('fixed', 2) ['changed upstream code', 'applied']\n2\n"


def test_a_release_that_is_not_in_the_range(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    madeup(WRITE)
    path = tmp_path / "site" / "madeup-1.2.dist-info" / "METADATA"
    path.write_text(path.read_text().replace("1.2", "2.0"))
    assert madeup(USE) == "2 ['unsupported version', 'unsupported version']\n2\n"


def test_an_undeclared_function_leaves_the_table(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.json"
    path.write_text('{"madeup:gone": {"0123456789abcdef": "madeup 1.1"}}')
    madeup(WRITE)
    assert "madeup:gone" not in json.loads(path.read_text())


def test_a_table_that_was_not_written(madeup: Callable[[str], str]) -> None:
    assert (
        madeup("""
        from tests.patching import test_known_code
        try:
            test_known_code.test_the_table()
        except AssertionError:
            print("it is seen")
        """)
        == "it is seen\n"
    )
