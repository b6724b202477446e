"""The files that ``pip install`` puts beside the modules, and that tox and CI run, exist."""

import configparser
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.test_metadata import METADATA, SETUP

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fastio"

#: Directories that tox, or what it runs, makes.
MADE = ("results/", "doc/build/")


def data_files() -> list[str]:
    """The patterns of ``package_data``, from the package's folder on."""
    return SETUP["options.package_data"]["fastio"].split()


def files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*")) if path.is_file() and path.suffix != ".pyc"]


def test_each_file_is_installed() -> None:
    """As a module of a package, or as data."""
    missing = [
        path.relative_to(PACKAGE).as_posix()
        for path in files()
        if not (path.suffix == ".py" and (path.parent / "__init__.py").exists())
    ]
    assert len(missing) >= 3
    assert [name for name in missing if not any(fnmatch(name, pattern) for pattern in data_files())] == []


def test_each_data_file_is_there() -> None:
    names = [path.relative_to(PACKAGE).as_posix() for path in files()]
    assert [pattern for pattern in data_files() if not any(fnmatch(name, pattern) for name in names)] == []


@pytest.mark.parametrize("name", ["tox.ini", ".ci/run"])
def test_run_files_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = set(re.findall(r"(?<![\w./{}-])(?:tests|benchmarks|fastio|doc|results)/[\w./-]*\w", text))
    modules = set(re.findall(r"-m ((?:tests|benchmarks|fastio)[\w.]*\w)", text))
    assert paths
    for module in modules:
        path = module.replace(".", "/")
        assert (ROOT / f"{path}.py").exists() or (ROOT / path / "__main__.py").exists(), module
    assert [path for path in paths if not path.startswith(MADE) and not (ROOT / path).exists()] == []


def workflow(name: str) -> dict[Any, Any]:
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    return pytest.importorskip("yaml").safe_load(text)


def tox() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / "tox.ini", encoding="utf-8")
    return found


def environments_of(workflow: dict[Any, Any]) -> list[str]:
    """The environments of tox that it runs; where it names Pythons one by one, they are those of the classifiers."""
    pythons = re.findall(r"Python :: (3\.\d+)$", METADATA["classifiers"], re.MULTILINE)
    found: list[str] = []
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        assert matrix.get("python", pythons) == pythons
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            names = re.findall(r"tox -e (\$\{\{.*?\}\}|\S+)", step.get("run", ""))
            found += matrix["environment"] if names == ["${{ matrix.environment }}"] else names
    return found


def test_the_schedule_runs_what_there_is() -> None:
    """Daily, on all Pythons, by environments of tox; GitHub reads the file, so nothing else would tell."""
    newest = workflow("newest.yml")
    # "on" is a word for "true" in YAML.
    (schedule,) = newest[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", schedule["cron"])
    assert sorted(environments_of(newest)) == ["distributions", "matrix", "releases"]
    assert all(f"testenv:{name}" in tox() for name in environments_of(newest))


def test_a_change_is_tested_as_tox_and_ci_do() -> None:
    """All that ``tox`` runs without arguments, and the environments of .ci/run that need no servers."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    listed = environments_of(workflow("ci.yml"))
    assert set(re.findall(r"[\w-]+", tox()["tox"]["envlist"])) < set(listed)
    for name in set(listed) - set(re.findall(r"[\w-]+", tox()["tox"]["envlist"])) - {"py"}:
        assert f"testenv:{name}" in tox() and re.search(rf"-e .*\b{name}\b", script), name


def test_hooks_before_a_commit_and_a_push() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    hooks = [hook for repo in pytest.importorskip("yaml").safe_load(text)["repos"] for hook in repo["hooks"]]
    assert [hook["stages"] for hook in hooks] == [["pre-commit"], ["pre-push"]]
    in_ci = environments_of(workflow("ci.yml"))
    for hook in hooks:
        assert set(hook["entry"].removeprefix("tox -e ").split(",")) <= set(in_ci)


def test_files_that_run_natively_only_exist():
    from tests.conftest import NATIVELY_ONLY

    assert [name for name in NATIVELY_ONLY if not (ROOT / "tests" / name).exists()] == []
