"""The examples of doc/source/deployment.rst, run as they stand; and what the service shows of fastio."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fastio
from benchmarks.backends import glance_logs as logs
from benchmarks.backends.base import HOST, BackendError
from benchmarks.backends.glance_api import Api, sha512
from benchmarks.backends.glance_service import Service
from tests.backends.conftest import alive
from tests.child import data
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until
from tests.glance.usable import usable

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="the services are processes of their own")

DOC = Path(__file__).parents[2] / "doc" / "source"
EXAMPLES = DOC / "examples"
TEXT = (DOC / "deployment.rst").read_text(encoding="utf-8")
#: the command lines of the document
COMMANDS = [line.strip() for line in re.findall(r"code-block:: console\n\n((?:   .+\n)+)", TEXT)]
DROP_IN = EXAMPLES / "glance-api.service.d" / "fastio.conf"
MIB = 1 << 20
#: The head of fastio's section in a report.
SECTION = re.compile(r"^=+ +fastio +=+$", re.MULTILINE)

#: Options that differ from fastio's own defaults, so that it is seen whether they count.
OPTIONS = {"fastio": {"chunk_size": "96KiB", "disabled": "image_hashing"}}


def fit(text: str, service: Service) -> str:
    """An example with the directories and the address of ``service`` instead of those of a machine of its own."""
    for documented, real in (
        ("/etc/glance/", f"{service.etc}/"),
        ("/usr/bin/", f"{service.python().parent}/"),
        ("127.0.0.1:9292", f"{HOST}:{service.http_port}"),
    ):
        text = text.replace(documented, real)
    return text


def documented(command: str, *files: str, without: str = "") -> Callable[[Service], list[str]]:
    """``command`` of the document, with the example ``files`` beside it, in which ``without`` is left out."""
    assert command in COMMANDS

    def make(service: Service) -> list[str]:
        for name in files:
            text = fit((EXAMPLES / name).read_text(encoding="utf-8"), service)
            assert without in text
            (service.directory / name).write_text(text.replace(without, ""))
        program, *arguments = shlex.split(fit(command, service))
        return [service.program(program), *arguments]

    return make


def exec_start(service: Service) -> list[str]:
    """The command of the systemd drop-in."""
    lines = [line.partition("=")[2] for line in DROP_IN.read_text().splitlines() if line.startswith("ExecStart=")]
    assert lines[0] == "" and len(lines) == 2
    return shlex.split(fit(lines[1], service))


EVENTLET = {
    "run": documented("fastio run -- glance-api --config-file /etc/glance/glance-api.conf"),
    "systemd": exec_start,
}
THREADS = {
    "uwsgi-import": documented("uwsgi --ini uwsgi.ini", "uwsgi.ini"),
    "uwsgi-children": documented(
        "fastio run --children -- uwsgi --ini uwsgi.ini", "uwsgi.ini", without="import = fastio.auto\n"
    ),
    "gunicorn-import": documented("gunicorn --config gunicorn.conf.py glance.wsgi.api:application", "gunicorn.conf.py"),
    "gunicorn-children": documented(
        "fastio run --children -- gunicorn --bind 127.0.0.1:9292 --worker-class gthread --threads 24 "
        "glance.wsgi.api:application"
    ),
}


def virtualenv(release: str) -> dict[str, str]:
    """uWSGI asks the operator for the environment of its application; the examples leave that to its variable."""
    return {"UWSGI_VIRTUALENV": str(usable(release)().python().parent.parent)}


def test_every_command_of_the_document_is_run() -> None:
    assert len(COMMANDS) == len(EVENTLET) + len(THREADS) - 1, "the systemd command is in the drop-in"


def moves_data(service: Service) -> None:
    api = Api(service.http_port)
    payload = data(3, 5 * MIB + 1)
    image = api.make(payload)
    assert api.show(image)["os_hash_value"] == sha512(payload)
    assert api.download(image).body == payload
    assert api.delete(image) == 204


def section(report: str) -> str:
    """fastio's section of a Guru Meditation Report, the last one; empty if it is not there."""
    parts = SECTION.split(report)
    return parts[-1] if len(parts) > 1 else ""


def honours_its_configuration(report: str, etc: Path) -> None:
    """fastio's table has the options of the service's configuration file."""
    assert len(SECTION.findall(report)) == 1
    table = section(report)
    (line,) = re.findall(r"^chunk_size .*$", table, re.MULTILINE)
    assert "96 KiB" in line and str(etc / "glance-api.conf") in line
    states = re.findall(r"^(store_\w+) +\S+ +(applied|off)\b", table, re.MULTILINE)
    assert ("store_filesystem", "applied") in states
    assert {state for name, state in states if name == "image_hashing"} == {"off"}


def summary(service: Service) -> list[str]:
    return [line.message for line in logs.lines(service.log(), ["INFO"]) if line.logger == "fastio"]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", EVENTLET)
def test_eventlet_server(serve: Callable[..., Service], way: str, workers: int) -> None:
    service = serve("glance-32", command=EVENTLET[way], config=OPTIONS, workers=workers)
    moves_data(service)
    assert len(summary(service)) == 1
    assert re.fullmatch(r"fastio: \d+ applied, .*waiting.*", summary(service)[0])
    assert len(service.workers()) == workers
    for worker in service.workers():
        honours_its_configuration(guru_meditation(service, worker), service.etc)


def guru_meditation(service: Service, worker: int) -> str:
    """The report that a worker of the eventlet server writes to its standard error when it gets SIGUSR2."""
    before = len(service.log())
    subprocess.run(["kill", "-USR2", str(worker)], check=True)
    found = ""

    def whole() -> bool:
        nonlocal found
        # Its main greenlet, where the handler runs, sleeps until something happens.
        Api(service.http_port).ask("GET", "/healthcheck")
        found = service.log()[before:]
        return fastio.names()[-1] in section(found)

    until(whole)
    return found


@pytest.mark.parametrize("way", THREADS)
def test_threads(serve: Callable[..., Service], tmp_path: Path, way: str) -> None:
    trigger, reports = tmp_path / "trigger", tmp_path / "reports"
    trigger.touch()
    reports.mkdir()
    report_options = {"file_event_handler": trigger, "log_dir": reports}
    config = {**OPTIONS, "oslo_reports": report_options}
    service = serve("glance-33", command=THREADS[way], config=config, environment=virtualenv("glance-33"))
    moves_data(service)
    assert set(summary(service)), service.log()
    time.sleep(1.1)  # the watcher compares the time of the file, in seconds, with that of its own start
    trigger.touch()
    until(lambda: any(section(path.read_text()) for path in reports.iterdir()))
    for path in reports.iterdir():
        honours_its_configuration(path.read_text(), service.etc)


def test_after_an_upgrade_on_the_fly_gunicorn_is_patched(serve: Callable[..., Service]) -> None:
    service = serve("glance-33", command=THREADS["gunicorn-children"])
    first = service.workers()
    before = len(summary(service))
    service.signal(signal.SIGUSR2)
    until(lambda: len(service.workers()) > len(first) + 1)
    until(lambda: len(summary(service)) > before)
    moves_data(service)


def test_the_drop_in_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (apt-get install systemd)")
    (tmp_path / "glance-api.service").write_text(
        "[Unit]\nDescription=OpenStack Image service\n[Service]\nExecStart=/usr/bin/true\n"
    )
    directory = tmp_path / DROP_IN.parent.name
    directory.mkdir()
    # systemd-analyze looks whether the programs are there.
    text = DROP_IN.read_text()
    for program in ("fastio", "glance-api"):
        text = text.replace(f"/usr/bin/{program}", "/usr/bin/true")
    (directory / DROP_IN.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "glance-api.service")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reload_lets_transfers_end_and_reads_the_options_again(serve: Callable[..., Service]) -> None:
    service = serve("glance-32", fastio="on", config=OPTIONS)
    api = Api(service.http_port)
    payload = data(5, 48 * MIB)
    image = api.make(payload)
    (old,) = service.workers()
    with api.started_download(image) as response:
        service.reconfigure({"fastio": {"chunk_size": "32KiB"}})
        service.signal(signal.SIGHUP)
        until(lambda: set(service.workers()) - {old})
        (new,) = set(service.workers()) - {old}
        assert response.read() == payload
    until(lambda: not alive(old))
    assert service.workers() == [new]
    moves_data(service)
    table = section(guru_meditation(service, new))
    (line,) = re.findall(r"^chunk_size .*$", table, re.MULTILINE)
    assert "32 KiB" in line
    # It is no longer disabled.
    assert re.search(r"^image_hashing +\S+ +applied\b", table, re.MULTILINE)


@pytest.mark.parametrize("fastio", ["off", "on"])
def test_sigterm_ends_it_with_transfers_under_way(serve: Callable[..., Service], fastio: str) -> None:
    service = serve("glance-32", fastio=fastio, workers=2)
    api = Api(service.http_port)
    payload = data(7, 48 * MIB)
    image = api.make(payload)
    with api.started_download(image) as response:
        service.expect_end()
        service.signal(signal.SIGTERM)
        until(lambda: not service.pids())
        got = response.read() if response.chunked else b"".join(iter(lambda: response.read1(65536), b""))
    # As stock has it: the workers are ended at once, and what the client got is the beginning.
    assert len(got) < len(payload)
    assert payload.startswith(got)


def test_a_bad_option_ends_the_start_with_a_clear_error(serve: Callable[..., Service]) -> None:
    with pytest.raises(BackendError, match=r"chunk_size.*'12 parsecs'.*glance-api.conf"):
        serve("glance-32", fastio="on", config={"fastio": {"chunk_size": "12 parsecs"}})


def test_uwsgi_without_it_is_not_patched(serve: Callable[..., Service]) -> None:
    assert summary(serve("glance-33", fastio="off")) == []
