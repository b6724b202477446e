"""Debian in a directory: what the tool says and copies without making one. CI runs it with a real one."""

import json
import pathlib
import shutil
import subprocess

import pytest

from benchmarks.tools import distributions, platforms
from benchmarks.tools.distributions import Distribution, DistributionError


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")


def test_only_root_can(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert distributions.main([]) == 0
    assert capsys.readouterr().out == "distributions: skipped: only root can make a distribution in a directory\n"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert distributions.main([]) == 0
    assert "skipped: not here: debootstrap, unshare (apt-get install" in capsys.readouterr().out


def test_the_project_is_copied(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir(mode=0o700)
    kept = {"setup.py", ".ci/run", "doc/source/a.rst", "doc/results/a.json", "fastio/build.py"}
    for name in (
        *kept, ".git/config", ".venv311/a", ".tox/a", "fastio/__pycache__/a", "a.egg-info/a", "fastio/a.pyc",
        "doc/build/a", "doc/source/generated/a.rst", "results/a.json",
    ):  # fmt: skip
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    shutil.copy(distributions.ROOT / ".gitignore", checkout)
    monkeypatch.setattr(distributions, "ROOT", checkout)
    distribution = Distribution("sid", tmp_path)
    old = distribution.root / distributions.PROJECT / "old.py"
    old.parent.mkdir(parents=True)
    old.touch()
    distribution.copy_project()
    copied = {str(path.relative_to(old.parent)) for path in old.parent.rglob("*") if path.is_file()}
    assert copied == {*kept, ".gitignore"}
    # The packaged glance-api runs as a user of its own, who imports from there.
    assert old.parent.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("if_possible", [False, True])
def test_what_can_not_be_made(
    root: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    if_possible: bool,
) -> None:  # fmt: skip
    """It is a failure, unless that is only tried, and the next suite has its turn."""

    def fail(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, stdout="E: no such suite\n")

    monkeypatch.setattr(distributions.subprocess, "run", fail)
    words = ["--directory", str(tmp_path), "--suites", "one", "two", *(["--if-possible"] if if_possible else [])]
    assert distributions.main([*words, "--", "tests/io"]) == (0 if if_possible else 1)
    told = capsys.readouterr().err
    assert told.count("E: no such suite") == 2 and "one: debootstrap --variant=minbase" in told
    told_of = "not passed: one (python3): cannot be made; two (python3): cannot be made"
    assert (told_of in told) is not if_possible


@pytest.mark.parametrize("status", [0, 1])
def test_what_is_run(root: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """The packages, an environment of each Python with those extras, the status, and the tests in both modes."""
    commands = []

    def note(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(" ".join(command))
        return subprocess.CompletedProcess(command, status if "pytest" in command else 0, stdout="")

    def make(self: Distribution) -> None:
        self.root.mkdir(exist_ok=True)

    monkeypatch.setattr(distributions.subprocess, "run", note)
    monkeypatch.setattr(Distribution, "make", make)
    pythons = ["python3.14", "python3.15"]
    words = ["--directory", str(tmp_path), "--packages", "glance-api", "--python", *pythons, "--extras", "test"]
    assert distributions.main([*words, "--", "tests/io"]) == status
    inside = [command.partition(f"{tmp_path}/sid ")[2] for command in commands]
    assert inside[0].startswith("apt-get") and inside[0].endswith("update")
    assert inside[1].endswith("install -y --no-install-recommends glance-api python3.14-venv")
    assert any(command.endswith(" python3.15-venv") for command in inside)
    made = [command.partition(" ")[0] for command in inside if " -m venv --clear --system-site-packages" in command]
    assert made == pythons
    assert any(command.endswith("pip install -q -e /opt/fastio[test]") for command in inside)
    ran = [each.partition(" PYTHONDONTWRITEBYTECODE=1 ")[2].split(maxsplit=2) for each in inside if "pytest" in each]
    tests = ["tests/io", f"tests/io -k {distributions.FURTHER}"]
    modes = ["TEST_EVENTLET=0", "TEST_EVENTLET=1"]
    python = f"/{distributions.ENVIRONMENT}/bin/python"
    assert ran == [
        words
        for each in tests
        for words in (
            *([mode, python, f"-m pytest -q -rfE {each}"] for mode in modes),
            *([python, "-m", f"pytest {' '.join(once)}"] for once in (distributions.SHEEPDOG, distributions.RELEASE)),
        )
    ]


STATUS = {
    "versions": {"CPython": "3.11.2", "glance": "25.1.0", "eventlet": "absent"},
    "patches": [
        {"name": "wait", "target": "subprocess:Popen.wait", "outcome": "applied", "found": "", "in_effect": True},
        {"name": "old", "target": "glance:f", "outcome": "unsupported version", "found": "25", "in_effect": False},
        {"name": "none", "target": "glance:g", "outcome": "absent", "found": "no g", "in_effect": False},
    ],
}


@pytest.mark.parametrize("wrong", [[], ["upload: status 500"]])
def test_all_of_a_release(
    root: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    wrong: list[str],
) -> None:  # fmt: skip
    """Without tests: what is in effect, each folder of tests in both modes, and the packaged glance-api."""
    commands = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        words = " ".join(command)
        commands.append(words)
        if "benchmarks.tools.packaged" in words:
            assert "--net" in command, "it listens where the package has it listen"
            (tmp_path / "bookworm/opt/fastio/packaged.json").write_text(json.dumps({"server": "uWSGI", "wrong": wrong}))
            return subprocess.CompletedProcess(command, len(wrong))
        return subprocess.CompletedProcess(command, 0, stdout=json.dumps(STATUS))

    monkeypatch.setattr(distributions.subprocess, "run", run)
    monkeypatch.setattr(Distribution, "make", lambda self: self.root.mkdir())
    monkeypatch.setattr(platforms, "FILE", tmp_path / "platforms.json")
    words = ["--directory", str(tmp_path), "--suites", "bookworm", "--soak", "20"]
    assert distributions.main([*words, "--write"]) == len(wrong)
    for package in distributions.PACKAGES:
        assert any("apt-get" in each and f" {package}" in each for each in commands)
    tests = [each for each in commands if " -m pytest " in each]
    assert len(tests) == 2 * len(distributions.TESTS)
    assert all("TEST_DISABLED=old " in each for each in tests), "the tests patch strictly"
    drop_in = tmp_path / "bookworm" / distributions.DROP_INS / "fastio.conf"
    assert drop_in.read_text() == (distributions.ROOT / distributions.DROP_IN).read_text()
    assert any("benchmarks.tools.packaged" in each and each.endswith("--soak 20") for each in commands)
    (kept,) = platforms.kept()
    assert (kept.name, kept.applied, kept.glance["wrong"]) == ("Debian 12", 1, wrong)
    assert ("not passed: bookworm (python3): glance-api" in capsys.readouterr().err) == bool(wrong)


def test_only_what_it_knows_of(root: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        distributions.main(["--suites", "buzz"])
    assert "--suites buzz: without tests one of bookworm, trixie, sid" in capsys.readouterr().err


def test_a_command_that_fails_is_shown(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DistributionError, match=r"^sid: false: exit status 1"):
        Distribution("sid", tmp_path)._checked(["false"])
