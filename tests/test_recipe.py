"""The contributor's page, followed for a library, a store and a suite that are made up: what it says is enough."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
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
            test_known_code.test_fingerprints_are_those_of_replaced_code_only()
        except AssertionError:
            print("it is seen")
        """)
        == "it is seen\n"
    )


def test_a_new_release(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    """One without new code is taken over; new code is shown and accepted; the range is widened at last."""
    madeup(WRITE)
    site, library = tmp_path / "site", tmp_path / "site" / "madeup" / "__init__.py"
    for version, old, new in (("1.3", "", ""), ("1.4", "return a\n", "return a * 1\n"), ("2.0", "", "")):
        (tmp_path / "cache" / f"madeup-{version}").mkdir()
        (tmp_path / "cache" / f"madeup-{version}" / "unpacked").symlink_to(site)
        library.write_text(library.read_text().replace(old, new))
        looked = f"print(int(fingerprints.main(['madeup=={version}'])))"
        shown = madeup(looked)
        assert ("new: madeup:check" in shown) == (version == "1.4"), shown
        assert ("not for this version: madeup" in shown) == (version == "2.0"), shown
        assert shown.endswith(f"{int(version != '1.3')}\n")
        accepted = ["madeup:check"] if version == "1.4" else []
        if version == "2.0":
            (tmp_path / "patches" / "madeup" / "__init__.py").write_text('REQUIRES = "madeup >= 1.0, < 3"\n')
        assert madeup(f"fingerprints.main(['madeup=={version}', '--accept', *{accepted}])\n{looked}").endswith("0\n")
        metadata = site / "madeup-1.2.dist-info" / "METADATA"
        metadata.write_text(re.sub("Version: [12].*\\Z", f"Version: {version}\n", metadata.read_text()))
        assert madeup(USE) == "('fixed', ('patched', 2)) ['applied', 'applied']\n2\n"


def test_a_patch_of_a_store(madeup: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    """It is not used in a service without such a store."""
    pytest.importorskip("oslo_config")
    madeup(WRITE)
    (tmp_path / "glance.conf").write_text("[DEFAULT]\nenabled_backends = one:rbd\n")
    store = """
        from oslo_config import cfg
        cfg.CONF.register_opts([cfg.DictOpt("enabled_backends")])
        cfg.CONF(["--config-file", str(root / "glance.conf")], project="glance")
        registry.TABLE = (*registry.TABLE[:-2], *(each._replace(store=STORE) for each in registry.TABLE[-2:]))
        import fastio
        fastio.patch(["fix_madeup", "madeup_add"])
        import madeup
        print({patch.name: patch.word for patch in fastio.status().patches() if "madeup" in patch.name})
        """
    for name, word in (("rbd", "in effect"), ("s3", "not used here")):
        words = {"madeup_add": word, "fix_madeup": word}
        assert madeup(textwrap.dedent(store).replace("STORE)", f"{name!r})")) == f"{words}\n"


SUITE = {
    "__init__.py": "",
    "bench_madeup.py": """
        "Reads the bytes of a payload, which are few."

        from benchmarks.harness.engine import Case
        from benchmarks.harness.goals import Asked

        CASES = [Case("sum", "madeup", ("stock", "fastio"), {"size": 1 << 20}, rounds=1, warmup=0)]
        GOALS = (Asked("{case}", "≤", 1000),)

        def test_madeup(recorded):
            recorded()
        """,
    "workload.py": """
        from benchmarks.harness import worker

        def run(parameters, wrong=b""):
            payload = worker.random_payload(parameters["size"])
            with worker.measure() as measured:
                found = payload.path.read_bytes() + wrong
            return measured.result(bytes=len(found), verified=worker.digest([found]) == payload.sha256)

        VARIANTS = {"stock": run, "fastio": run}
        """,
}


def test_a_new_suite(tmp_path: pathlib.Path) -> None:
    """The command finds the suite, runs it, and notices wrong bytes."""
    pytest.importorskip("psutil")
    pytest.importorskip("pytest_benchmark")
    checkout = pathlib.Path(fastio.__file__).parents[1]
    shutil.copytree(checkout / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    (tmp_path / "fastio").symlink_to(checkout / "fastio")
    folder = tmp_path / "benchmarks" / "suites" / "madeup"
    folder.mkdir()
    for name, text in SUITE.items():
        (folder / name).write_text(textwrap.dedent(text))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchmarks", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, env=environ)

    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "FASTIO_BENCHMARK_CACHE": str(tmp_path)}
    assert " madeup," in run().stdout
    done = run("madeup", "--quick", "-p", "no:cacheprovider")
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    result = json.loads((tmp_path / "results" / "quick-madeup.json").read_text())
    assert [case["name"] for case in result["cases"]] == ["sum"]
    workload = folder / "workload.py"
    workload.write_text(workload.read_text().replace('wrong=b""', 'wrong=b"x"'))
    done = run("madeup", "--quick", "-p", "no:cacheprovider")
    assert done.returncode == 1 and "did not have the expected SHA-256" in done.stdout, done.stdout + done.stderr


def test_the_structure() -> None:
    """The page has each part of the checkout, in at most twenty lines, and no other."""
    checkout = pathlib.Path(fastio.__file__).parents[1]
    page = (checkout / "doc" / "source" / "contributor.rst").read_text()
    for package, block in zip(("fastio", "benchmarks"), re.findall(r"::\n\n((?:    .*\n)+)", page), strict=False):
        assert len(block.splitlines()) <= 20
        named = set(re.findall(r"^    (\w+)/|, (\w+)/ ", block, re.MULTILINE))
        folders = {path.parent.name for path in (checkout / package).glob("*/__init__.py")}
        assert {first or second for first, second in named} == folders
