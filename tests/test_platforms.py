"""The table of platforms: what is kept of ``fastio status``, what is told of it, and how an environment is made."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.tools import packaged, platforms, soak
from benchmarks.tools.platforms import APPROXIMATED, Platform
from benchmarks.tools.upstream.sources import Unavailable
from fastio.report import Outcome


def status(**outcomes: str) -> dict[str, Any]:
    """What ``fastio status --json`` says, by the names of patches."""
    patches = [
        {
            "name": name,
            "target": f"library:{name}",
            "outcome": outcome,
            "found": "1.0",
            "in_effect": outcome == "applied",
        }
        for name, outcome in outcomes.items()
    ]
    return {"versions": {"CPython": "3.11.2", "glance": "25.1.0", "eventlet": "absent"}, "patches": patches}


def test_what_is_in_effect_and_why_something_is_not() -> None:
    found = Platform.of_status("Debian 12", "2022.2 Zed", platforms.PACKAGES, status(
        one="applied", two="applied", old="unsupported version", gone="absent", quiet="off", new="changed upstream code"
    ))  # fmt: skip
    effect, reasons = platforms.tables([found])
    assert effect.rows == [["2022.2 Zed", "Debian 12", "packages", "3.11.2", "25.1.0", "–", "–", "2 of 4", "–"]]
    assert reasons.rows == [
        ["2022.2 Zed", "Debian 12", "old (unsupported version: 1.0); new (changed upstream code: 1.0)", "gone"]
    ]
    assert found.unsupported() == ["old"]
    assert found.text().startswith("Debian 12, 2022.2 Zed: 2 of 4 in effect\n  CPython 3.11.2\n")


def test_every_outcome_is_told() -> None:
    """Either it is in effect, or off on purpose, or in one of the two columns."""
    for outcome in Outcome:
        found = Platform.of_status("", "", "", status(it=outcome.value))
        told = [found.reasons(), found.not_needed()]
        assert [each for each in told if "it" in each] or outcome in (Outcome.APPLIED, Outcome.OFF)


def test_keeping(tmp_path: Path) -> None:
    """A platform is kept once, in the order of OpenStack's releases."""
    file = tmp_path / "platforms.json"
    for name, openstack, of in (("b", "2025.1", "x"), ("a", "2022.2", "x"), ("b", "2025.1", "y")):
        platforms.keep(Platform.of_status(name, openstack, of, status(one="applied")), file)
    assert [(each.name, each.of) for each in platforms.kept(file)] == [("a", "x"), ("b", "y")]


def test_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is made once, of that Python and those releases, and its status is kept."""
    made: list[tuple[str, list[str]]] = []

    def make(base: str, directory: Path, needs: list[str]) -> None:
        made.append((base, needs))
        directory.mkdir(parents=True)

    monkeypatch.setattr(platforms.pythons, "find", lambda text: SimpleNamespace(path=f"/python{text}"))
    monkeypatch.setattr(platforms, "make", make)
    monkeypatch.setattr(
        platforms.subprocess, "run",
        lambda command, **_: subprocess.CompletedProcess(command, 1, stdout=json.dumps(status(one="applied"))),
    )  # fmt: skip
    monkeypatch.setattr(platforms, "FILE", tmp_path / "platforms.json")
    for _ in range(2):
        assert platforms.main(["--directory", str(tmp_path), "--write", "2024.1"]) == 0
    ((base, needs),) = made
    assert base == "/python3.12" and {"glance==28.1.0", "eventlet==0.35.2"} <= set(needs)
    (kept,) = platforms.kept()
    assert kept.name == "Ubuntu 24.04" and all(each.startswith("https://") for each in kept.sources)
    assert "Ubuntu 24.04, 2024.1 Caracal: 1 of 1 in effect" in capsys.readouterr().out


def test_a_python_that_is_not_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(text: str) -> None:
        raise Unavailable(f"no {text}")

    monkeypatch.setattr(platforms.pythons, "find", missing)
    assert platforms.main(["2026.1", "--directory", "/nowhere"]) == 0
    assert capsys.readouterr().out == "Ubuntu 26.04 is not run: no 3.14\n"


def test_a_release_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        platforms.main(["1999.1"])
    assert "1999.1: one of 2022.1, 2023.1" in capsys.readouterr().err


def test_every_approximation_has_its_sources() -> None:
    assert all(each.sources and len(each.releases) == len(platforms._NAMES) for each in APPROXIMATED)
    assert len({each.openstack for each in APPROXIMATED}) == len(APPROXIMATED)


def test_what_is_kept_reaches_the_goals() -> None:
    """All but 2 % on Debian 13 and sid, all but 10 % on Debian 12."""
    found = {each.name: each for each in platforms.kept()}
    for name, goal in (("Debian 12", 0.9), ("Debian 13", 0.98), ("Debian sid", 0.98)):
        platform = found[name]
        assert platform.of == platforms.PACKAGES
        assert platform.applied / (platform.applied + len(platform.left_alone())) >= goal
        assert platform.glance["wrong"] == [] and "applied" in platform.glance["fastio"]


UNIT = """\
[Unit]
Description=glance
[Service]
User=glance
Environment=A=1
ExecStart=/etc/init.d/glance-api systemd-start
[Install]
WantedBy=multi-user.target
"""
DROP_IN = "[Service]\n# a remark=1\nExecStart=\nExecStart=/usr/bin/fastio run\nEnvironment=B=2\n"


def test_a_unit_and_its_drop_in() -> None:
    """A list grows, and an empty assignment takes away all that was there."""
    assert packaged.unit_options([UNIT]) == {
        "User": ["glance"], "Environment": ["A=1"], "ExecStart": ["/etc/init.d/glance-api systemd-start"]
    }  # fmt: skip
    both = packaged.unit_options([UNIT, DROP_IN])
    assert both["ExecStart"] == ["/usr/bin/fastio run"] and both["Environment"] == ["A=1", "B=2"]


def test_the_summary_in_a_log() -> None:
    log = "INFO fastio fastio: 1 patch applied\nother\nINFO fastio fastio: 27 patches applied, 4 absent\nfastio: no\n"
    assert packaged.summary_of(log) == "27 patches applied, 4 absent"
    assert packaged.summary_of("nothing\n") == ""


def test_the_loopback_of_a_network_namespace() -> None:
    """Where nobody may make one there is nothing to test."""
    code = (
        "from benchmarks.tools import packaged; packaged.loopback_up(); import socket; socket.create_server(('', 0)); "
        "s = socket.create_server(('127.0.0.2', 0)); socket.create_connection(s.getsockname()); print('up')"
    )
    command = ["unshare", "--net", sys.executable, "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "unshare failed" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("only root can have a network namespace")
    assert done.stdout == "up\n", done.stderr


def test_a_soak_that_is_too_short(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        packaged.main(["--soak", "3"])
    assert "--soak 3: at least 15" in capsys.readouterr().err


@pytest.mark.parametrize("spares", [True, False])
def test_a_reload_that_cuts_requests_off(spares: bool) -> None:
    """It is a fault, unless the release's server does not wait for requests that are under way."""
    load = soak.Soak(cast(Any, SimpleNamespace(http_port=1, eventlet=True, reload_spares_requests=spares)), seed=1)
    load._disturbed = "reload"

    def download(chance: random.Random) -> None:
        raise http.client.IncompleteRead(b"half")

    load._do(download, random.Random())
    assert load.tally.faults == ["download: cut off by a reload"] * spares
    assert load.tally.cut_off["download"] == (not spares)
