"""The examples of doc/source/operators/deployment.rst, run as they stand; and what the service shows of fastio."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fastio
from benchmarks.backends import glance_logs as logs
from benchmarks.backends.base import HOST, ROOT, BackendError
from benchmarks.backends.glance import SITE, Service
from benchmarks.backends.glance_api import Api, sha512
from tests.backends.conftest import alive
from tests.child import data
from tests.eventually import until
from tests.glance import asking
from tests.glance.sending import ini
from tests.glance.usable import usable

DOC = Path(__file__).parents[2] / "doc" / "source"
EXAMPLES = DOC / "examples"
TEXT = (DOC / "operators" / "deployment.rst").read_text(encoding="utf-8")
#: the command lines of the document
COMMANDS = [" ".join(line.split()) for line in re.findall(r"code-block:: console\n\n((?:   .+\n)+)", TEXT)]
#: examples that a test runs
RUN: set[str] = set()
#: As Debian sid packages it, less what names the package's own user, directories, log and plugin, and with two
#: processes instead of eight. The package's unit gives it a port as here.
DEBIAN_INI = Path(__file__).with_name("debian-uwsgi.ini")
DROP_IN = EXAMPLES / "glance-api.service.d" / "fastio.conf"
#: Debian's
MOD_WSGI = Path("/usr/lib/apache2/modules/mod_wsgi.so")
USER = "www-data"
#: How root runs Apache: as its user, who may read the tests' environments all the same.
AS_USER = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
    "--inh-caps=+dac_override", "--ambient-caps=+dac_override",
)  # fmt: skip
#: PYTHONPATH of the services: what tests need in them
PATHS = f"{SITE}{os.pathsep}{ROOT}"
MIB = 1 << 20
#: The head of fastio's section in a report.
SECTION = re.compile(r"^=+ +fastio +=+$", re.MULTILINE)

#: Options that differ from fastio's own defaults, so that it is seen whether they count.
OPTIONS = {"fastio": {"chunk_size": "96KiB", "disabled": "image_hashing"}}


def fit(text: str, service: Service) -> str:
    """An example with the directories and the address of ``service`` instead of a real machine's."""
    for documented, real in (
        ("/etc/glance/", f"{service.etc}/"),
        ("/usr/bin/", f"{service.python().parent}/"),
        ("127.0.0.1:9292", f"{HOST}:{service.http_port}"),
    ):
        text = text.replace(documented, real)
    return text


def undocumented(command: str, *files: str | Path, without: str = "") -> Callable[[Service], list[str]]:
    """A command as the document has them, that is not there; the rest is as in :func:`documented`."""

    def make(service: Service) -> list[str]:
        for name in files:
            write(name, service, service.directory, without)
        program, *arguments = shlex.split(fit(command, service))
        return [service.program(program), *arguments]

    return make


def documented(command: str, *files: str, without: str = "") -> Callable[[Service], list[str]]:
    """``command`` of the document, with the example ``files`` beside it, in which ``without`` is left out."""
    RUN.add(command)
    return undocumented(command, *files, without=without)


def write(name: str | Path, service: Service, directory: Path, without: str = "") -> str:
    """Write an example, in which ``without`` is left out, to ``directory``; returns its text."""
    example = EXAMPLES / name
    text = example.read_text(encoding="utf-8")
    assert without in text
    text = fit(text.replace(without, ""), service)
    (directory / example.name).write_text(text)
    return text


def exec_start(service: Service) -> list[str]:
    """The command of the systemd drop-in."""
    lines = [line.partition("=")[2] for line in DROP_IN.read_text().splitlines() if line.startswith("ExecStart=")]
    assert lines[0] == "" and len(lines) == 2
    return shlex.split(fit(lines[1], service))


def apache(children: bool = False, without: str = "") -> Callable[[Service], list[str]]:
    """Apache with the virtual host of the document, and ``without`` left out of its WSGI file."""

    def make(service: Service) -> list[str]:
        write("glance-api.wsgi", service, service.etc, without)
        host = write("apache.conf", service, service.directory)
        modules = MOD_WSGI.parent
        configuration = service.directory / "apache2.conf"
        configuration.write_text(
            f"ServerName {HOST}\nListen {HOST}:{service.http_port}\nErrorLog {service.logs}/apache.log\n"
            f"PidFile {service.directory}/apache.pid\nDefaultRuntimeDir {service.directory}\n"
            f"LoadModule mpm_event_module {modules}/mod_mpm_event.so\n"
            f"LoadModule authz_core_module {modules}/mod_authz_core.so\nLoadModule wsgi_module {MOD_WSGI}\n"
            # Its own standard library: it would take that of the first python3 on the path.
            f"WSGISocketPrefix {service.directory}/wsgi\nWSGIPythonHome /usr\n{host}"
        )
        command = [str(shutil.which("apache2")), "-f", str(configuration), "-D", "FOREGROUND"]
        if os.geteuid() == 0:
            # mod_wsgi runs nothing as root.
            subprocess.run(["chown", "-R", USER, str(service.directory)], check=True)
            command = [*AS_USER, *command]
        return [service.program("fastio"), "run", "--children", "--", *command] if children else command

    return make


def in_mod_wsgi() -> dict[str, str]:
    """The variables by which Apache's Python finds what is installed in the environment; skips where that cannot be."""
    if shutil.which("apache2") is None or not MOD_WSGI.exists():
        pytest.skip("Apache and mod_wsgi are not installed (apt-get install apache2 libapache2-mod-wsgi-py3)")
    linked = subprocess.run(["ldd", MOD_WSGI], capture_output=True, text=True, check=True).stdout
    (own,) = set(re.findall(r"lib(python3\.\d+)\.so", linked))
    packages = usable("glance-33")().python().parent.parent / "lib" / own / "site-packages"
    if not packages.is_dir():
        pytest.skip(f"mod_wsgi has {own}: there is no {packages}")
    if os.geteuid() == 0:
        # Not test -r: that asks for what the user may do without the capability.
        reading = subprocess.run([*AS_USER, "ls", packages / "glance"], capture_output=True, text=True)
        if reading.returncode:
            pytest.skip(f"Apache's user cannot read {packages}: {reading.stderr.strip()}")
    return {"PYTHONPATH": f"{PATHS}{os.pathsep}{packages}"}


def virtualenv() -> dict[str, str]:
    """uWSGI asks the operator for the environment of its application; the examples leave that to its variable."""
    return {"UWSGI_VIRTUALENV": str(usable("glance-33")().python().parent.parent)}


def nothing() -> dict[str, str]:
    return {}


class Way(NamedTuple):
    """One way of running glance with fastio in it."""

    command: Callable[[Service], list[str]]
    #: how many workers it has
    workers: int
    environment: Callable[[], dict[str, str]] = nothing


CONFIGURED = "--config-file /etc/glance/glance-api.conf"
GUNICORN = "gunicorn --bind 127.0.0.1:9292"
APPLICATION = "glance.wsgi.api:application"
GTHREAD = f"--worker-class gthread --threads 24 {APPLICATION}"
IMPORT = "import fastio.auto  # noqa: F401 - before glance is loaded\n"
LAUNCHED = "tests.glance.launched"

EVENTLET = {
    "run": documented(f"fastio run -- glance-api {CONFIGURED}"),
    "module": documented(f"fastio run -m glance.cmd.api {CONFIGURED}"),
    "python": documented(f"fastio run -- python3 -m glance.cmd.api {CONFIGURED}"),
    "systemd": exec_start,
    "children": undocumented(f"fastio run --children -- glance-api {CONFIGURED}"),
    "import": undocumented(f"python -c 'import fastio.auto; from glance.cmd import api; api.main()' {CONFIGURED}"),
}
#: oslo.service's threading launcher
LAUNCHER = {
    "run": f"fastio run -m {LAUNCHED}",
    "children": f"fastio run --children -- python -m {LAUNCHED}",
    "import": f"python -c 'import sys, fastio.auto, {LAUNCHED} as own; own.main(*sys.argv[1:])'",
}
THREADS = {
    "uwsgi-import": Way(documented("uwsgi --ini uwsgi.ini", "uwsgi.ini"), 4, virtualenv),
    "uwsgi-run": Way(
        documented("fastio run -- uwsgi --ini uwsgi.ini", "uwsgi.ini", without="import = fastio.auto\n"), 4, virtualenv
    ),
    # Its own router has the port, and passes requests on to the workers.
    "uwsgi-router": Way(
        undocumented(
            "uwsgi --ini uwsgi.ini --http 127.0.0.1:9292", "uwsgi.ini", without="http-socket = 127.0.0.1:9292\n"
        ), 4, virtualenv,
    ),
    "uwsgi-debian": Way(
        undocumented(
            "fastio run --children -- uwsgi --ini debian-uwsgi.ini --http-socket 127.0.0.1:9292", DEBIAN_INI
        ), 2, virtualenv,
    ),
    "gunicorn-import": Way(documented(f"gunicorn --config gunicorn.conf.py {APPLICATION}", "gunicorn.conf.py"), 2),
    "gunicorn-run": Way(documented(f"fastio run -- {GUNICORN} --workers 4 --timeout 600 {APPLICATION}"), 4),
    "gunicorn-children": Way(documented(f"fastio run --children -- {GUNICORN} {GTHREAD}"), 1),
    "gunicorn-module": Way(undocumented(f"fastio run -m {GUNICORN} --workers 2 {GTHREAD}"), 2),
    "apache-import": Way(apache(), 4, in_mod_wsgi),
    "apache-children": Way(apache(children=True, without=IMPORT), 4, in_mod_wsgi),
    **{
        f"oslo.service-{method}-{how}": Way(undocumented(f"{LAUNCHER[how]} {method} 2 127.0.0.1:9292"), 2)
        for method, how in (("fork", "run"), ("fork", "import"), ("spawn", "children"), ("spawn", "import"))
    },
}  # fmt: skip


def test_every_command_of_the_document_is_run() -> None:
    assert sorted(COMMANDS) == sorted(RUN)


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
    states = set(re.findall(r"^(store_filesystem|image_hashing) +\S+ +(\w+)\b", table, re.MULTILINE))
    assert states == {("store_filesystem", "applied"), ("image_hashing", "off")}


def summary(service: Service) -> list[str]:
    return [line.message for line in logs.lines(service.log(), ["INFO"]) if line.logger == "fastio"]


def start_asking(serve: Callable[..., Service], release: str, way: Way, **options: Any) -> Service:
    """A service whose workers can be asked what is in effect in them."""

    def command(service: Service) -> list[str]:
        # Beside glance-api.conf, where glance looks for it.
        ini(service.paste(), service.etc, "asking")
        return way.command(service)

    environment = {"PYTHONPATH": PATHS, **way.environment()}
    config = {**OPTIONS, "paste_deploy": {"config_file": ""}}
    return serve(release, command=command, config=config, environment=environment, **options)


def every_worker_is_patched(service: Service, workers: int) -> None:
    """Each reports the patches, has the options of the service's files, and moves data."""
    api = Api(service.http_port)
    payload = data(3, 5 * MIB + 1)
    asking.moves_data(api, workers, payload, sha512(payload))
    for status in asking.statuses(api, workers):
        size = status["settings"]["chunk_size"]
        assert size["value"] == 96 * 1024 and str(service.etc / "glance-api.conf") in size["source"]
        outcomes = {(each["name"], each["outcome"]) for each in status["patches"]}
        assert {("communicate", "applied"), ("store_filesystem", "applied"), ("image_hashing", "off")} <= outcomes
        assert not {outcome for _, outcome in outcomes} & {"failed", "changed upstream code", "unsupported version"}


@pytest.mark.parametrize(
    ("way", "workers"),
    [("run", 1), ("run", 4), ("module", 1), ("python", 2), ("systemd", 2), ("children", 2), ("import", 1)],
)
def test_eventlet_server(serve: Callable[..., Service], way: str, workers: int) -> None:
    service = start_asking(serve, "glance-32", Way(EVENTLET[way], workers), workers=workers)
    assert len(service.workers()) == workers
    every_worker_is_patched(service, workers)
    assert len(summary(service)) == 1
    assert re.fullmatch(r"fastio: (?=.*\d+ in effect).*\d+ waiting.*", summary(service)[0])


@pytest.mark.parametrize("way", THREADS)
def test_every_worker_with_threads_is_patched(serve: Callable[..., Service], way: str) -> None:
    service = start_asking(serve, "glance-33", THREADS[way])
    every_worker_is_patched(service, THREADS[way].workers)


def test_the_report_of_the_eventlet_server(serve: Callable[..., Service]) -> None:
    service = serve("glance-32", command=EVENTLET["run"], config=OPTIONS, workers=2)
    for worker in service.workers():
        honours_its_configuration(guru_meditation(service, worker), service.etc)


def guru_meditation(service: Service, worker: int) -> str:
    """The report that a worker of the eventlet server writes to its standard error when it gets SIGUSR2."""
    before = 0

    def ask() -> None:
        nonlocal before
        before = len(service.log())
        subprocess.run(["kill", "-USR2", str(worker)], check=True)

    def answer() -> str:
        # Its main greenlet, where the handler runs, sleeps until something happens. It may interrupt the answer.
        with contextlib.suppress(TimeoutError):
            Api(service.http_port, timeout=10).ask("GET", "/healthcheck")
        found = service.log()[before:]
        if "Unable to run Guru Meditation Report!" in found:
            # oslo.config warns of an old option, once, and a handler that runs in the hub cannot wait for the log.
            ask()
        return found if fastio.names()[-1] in section(found) else ""

    ask()
    return str(until(answer, "the report"))


@pytest.mark.parametrize("way", ["uwsgi-import", "gunicorn-import"])
def test_the_report_with_threads(serve: Callable[..., Service], tmp_path: Path, way: str) -> None:
    trigger, reports = tmp_path / "trigger", tmp_path / "reports"
    trigger.touch()
    reports.mkdir()
    report_options = {"file_event_handler": trigger, "log_dir": reports}
    config = {**OPTIONS, "oslo_reports": report_options}
    command, _, environment = THREADS[way]
    service = serve("glance-33", command=command, config=config, environment=environment())
    assert set(summary(service)), service.log()
    time.sleep(1.1)  # the watcher compares the time of the file, in seconds, with that of its start
    trigger.touch()

    def written() -> list[str]:
        # Each worker writes a separate one, and may be in the middle of it.
        texts = [path.read_text() for path in reports.iterdir()]
        return [text for text in texts if fastio.names()[-1] in section(text)]

    for text in until(written, "a report"):
        honours_its_configuration(text, service.etc)


def test_after_an_upgrade_on_the_fly_gunicorn_is_patched(serve: Callable[..., Service]) -> None:
    service = serve("glance-33", command=THREADS["gunicorn-children"].command)
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


@pytest.mark.parametrize("release", ["glance-32", "glance-33"])
def test_a_bad_option_ends_the_start_with_a_clear_error(serve: Callable[..., Service], release: str, tmp_path) -> None:
    log = tmp_path / "glance.log"
    config = {"DEFAULT": {"log_file": log}, "fastio": {"chunk_size": "12 parsecs"}}
    error = r"chunk_size.*'12 parsecs'.*glance-api.conf"
    with pytest.raises(BackendError, match=error):
        serve(release, fastio="on", config=config)
    assert re.search(f"ERROR fastio .*{error}", log.read_text())


@pytest.mark.parametrize("release", ["glance-32", "glance-33"])
def test_a_bad_option_may_leave_it_unpatched(serve: Callable[..., Service], release: str) -> None:
    config = {"fastio": {"chunk_size": "12 parsecs", "on_error": "unpatched"}}
    service = serve(release, fastio="on", config=config)
    moves_data(service)
    found = [line.message for line in logs.lines(service.log(), ["ERROR"]) if line.logger == "fastio"]
    assert found and all(each.startswith("fastio: not patched: chunk_size: '12 parsecs'") for each in found)
    assert summary(service) == []


def test_uwsgi_without_it_is_not_patched(serve: Callable[..., Service]) -> None:
    assert summary(serve("glance-33", fastio="off")) == []
