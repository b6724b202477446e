"""What ``pip install`` puts beside the modules, and what tox and CI run, is there."""

import configparser
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastio"
SCHEDULE = ROOT / ".github" / "workflows" / "newest.yml"

#: Directories that tox, or what it runs, makes.
MADE = ("results/", "doc/build/")


def data_files() -> list[str]:
    """The patterns of ``package_data``, from the package's folder on."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup["options.package_data"]["fastio"].split()


def files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def test_each_file_is_installed() -> None:
    """As a module of a package, or as data."""
    missing = [
        path.relative_to(PACKAGE).as_posix()
        for path in files()
        if not (path.suffix == ".py" and (path.parent / "__init__.py").exists())
    ]
    assert len(missing) >= 4
    assert [name for name in missing if not any(fnmatch(name, pattern) for pattern in data_files())] == []


def test_each_data_file_is_there() -> None:
    names = [path.relative_to(PACKAGE).as_posix() for path in files()]
    assert [pattern for pattern in data_files() if not any(fnmatch(name, pattern) for name in names)] == []


@pytest.mark.parametrize("name", ["tox.ini", ".ci/run"])
def test_what_is_run_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = set(re.findall(r"(?<![\w./{}-])(?:tests|benchmarks|fastio|doc|results)/[\w./-]*\w", text))
    modules = set(re.findall(r"-m ((?:tests|benchmarks|fastio)[\w.]*\w)", text))
    assert paths
    for module in modules:
        path = module.replace(".", "/")
        assert (ROOT / f"{path}.py").exists() or (ROOT / path / "__main__.py").exists(), module
    assert [path for path in paths if not path.startswith(MADE) and not (ROOT / path).exists()] == []


def test_the_schedule_runs_what_there_is() -> None:
    """Daily, on all Pythons, by environments of tox; GitHub reads the file, so nothing else would tell."""
    workflow = pytest.importorskip("yaml").safe_load(SCHEDULE.read_text(encoding="utf-8"))
    # "on" is a word for "true" in YAML.
    (schedule,) = workflow[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", schedule["cron"])
    tox, setup = configparser.ConfigParser(), configparser.ConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)
    run = []
    for job in workflow["jobs"].values():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        run += [name for command in commands for name in re.findall(r"tox -e (\S+)", command)]
        assert job.get("strategy", {}).get("matrix", {}).get("python", pythons) == pythons
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
    assert sorted(run) == ["distributions", "matrix", "newest", "newest-debian"]
    assert all(f"testenv:{name}" in tox for name in run)


def test_what_runs_natively_only_exists():
    from tests.conftest import NATIVELY_ONLY

    assert [name for name in NATIVELY_ONLY if not (ROOT / "tests" / name).exists()] == []
