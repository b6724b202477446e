"""``fastio check``: what it says is what the service's own interpreter would do, with the service's own files."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastio import advice, servers
from fastio import check as command
from fastio.patching import registry
from fastio.report import Report

ROOT = Path(__file__).parents[1]
CONFIGURED = """\
[DEFAULT]
enabled_backends = fast:file, cheap:rbd
[fastio]
chunk_size = 2MiB
"""
needs_oslo_config = pytest.mark.skipif(
    importlib.util.find_spec("oslo_config") is None, reason="oslo.config is not installed"
)


def packages(python: Path) -> Path:
    """The directory of what is installed in an environment."""
    (found,) = python.parents[1].glob("lib/python*/site-packages")
    return found


def check(*arguments: Any, status: int = 0, path: Any = ROOT, **env: str) -> str:
    """Return its output; the standard error's if it fails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-m", "fastio", "check", *map(str, arguments)],
        env={**environ, "PYTHONPATH": str(path), **env}, cwd=ROOT, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status == 2 else done.stdout


def answered(*arguments: Any, **options: Any) -> Any:
    return json.loads(check("--json", *arguments, **options))


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "glance-api.conf"
    path.write_text(CONFIGURED)
    return path


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """A program of this Python, which must not be started."""
    path = tmp_path / "glance-api"
    path.write_text(f"#!{sys.executable}\nopen({str(tmp_path / 'started')!r}, 'w')\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing in it."""
    directory = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=100)
    return directory / "bin" / "python"


@needs_oslo_config
def test_a_service_with_its_configuration(service: Path, conf: Path, tmp_path: Path) -> None:
    found = answered("--", service, "--config-file", conf)
    assert (found["installed"], found["service"], found["interpreter"]) == (True, "glance-api", sys.executable)
    assert (found["files"], found["stores"]) == ([str(conf)], ["filesystem", "rbd"])
    setting = found["report"]["settings"]["chunk_size"]
    assert setting == {"value": 2 << 20, "source": f"oslo.config [fastio] chunk_size ({conf})"}
    assert {entry["name"] for entry in found["report"]["patches"]} == {patch.name for patch in registry.patches()}
    assert [entry["outcome"] for entry in found["report"]["patches"] if entry["name"] == "communicate"] == ["applied"]
    assert found["changes"] == {patch.name: patch.changes for patch in registry.patches() if patch.changes}
    assert " patches would be in effect: " in command.as_text(found)
    outcomes = {"store_rbd": "applied", "store_swift": "applied", "wait": "waiting for import"}
    others = {each.name for each in registry.TABLE if each.store not in ("", "filesystem", "rbd")}
    unused = {name for name, why in found["report"]["unused"].items() if why == "no such store is configured"}
    assert unused == others
    for entry in found["report"]["patches"]:
        entry |= {"outcome": outcomes.get(entry["name"], "off"), "found": "m is not imported yet"}
    found["report"]["unused"] = {"store_swift": "no such store is configured"}
    assert "\n1 patch not used here, no such store is configured.\n" in command.as_text(found)
    text = command.as_text(found, everything=True)
    assert "\n1 patch would be in effect: store_rbd.\n" in text
    assert "\n1 patch not used here, no such store is configured: store_swift.\n" in text
    assert "\n1 patch waiting for import, m is not imported yet: wait.\n" in text
    assert not (tmp_path / "started").exists()


#: A service that has read its configuration. It logs and prints what is in effect.
SERVICE = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
import fastio.auto
from fastio.patching import modules, registry
from oslo_config import cfg
cfg.CONF.register_opts([cfg.DictOpt("enabled_backends")])
cfg.CONF(["--config-file", sys.argv[1]], project="glance")
modules.import_all(target for patch in registry.patches() for target in patch.targets)
logging.basicConfig(level=logging.INFO, format="%(message)s")
fastio.patch()
print(json.dumps([fastio.status().numbers(), fastio.metrics().to_prometheus()]))
"""


@needs_oslo_config
def test_check_status_log_and_metrics_have_the_same_numbers(conf: Path, run_python: Callable[..., Any]) -> None:
    done = run_python(SERVICE, str(conf))
    numbers, metrics = json.loads(done.stdout)
    expected = Report.from_dict(answered("--config-file", conf)["report"]).numbers()
    assert numbers == expected and (expected["not used here"] >= 9 or not importlib.util.find_spec("glance_store"))
    assert f"fastio: {', '.join(f'{n} {word}' for word, n in expected.most_common())}\n" in done.stderr
    states = re.findall(r'^fastio_patch_state\{patch="\w+",state="([^"]+)",pid="\d+"\} 1$', metrics, re.MULTILINE)
    # Off and absent are left out of the metrics.
    assert {word: states.count(word) for word in states} == {
        word: number for word, number in expected.items() if word not in ("off", "absent")
    }


@needs_oslo_config
@pytest.mark.parametrize(
    ("text", "stores", "given"),
    [
        ("[DEFAULT]\nenabled_backends = a:file, b:rbd, c:file\n[b]\nrbd_store_chunk_size = 16\n",
         ["filesystem", "rbd"], {"[b] rbd_store_chunk_size": "16"}),
        ("[glance_store]\nstores = http, swift\ndefault_store = file\nfilesystem_store_chunk_size = 64\n",
         ["filesystem", "http", "swift"], {"[glance_store] filesystem_store_chunk_size": "64"}),
        ("[glance_store]\nstores = s3, vsphere, cinder\n", ["cinder", "s3", "vmware"], {}),
        ("[fastio]\nprofile = safe\n", ["filesystem", "http"], {}),
    ],
)  # fmt: skip
def test_the_stores_of_a_configuration(conf: Path, text: str, stores: list[str], given: dict[str, str]) -> None:
    conf.write_text(text)
    assert command.configuration([str(conf)], [], "")[1:] == (stores, given)


INI = """\
; a comment
[other]
module = none.of:it
[uwsgi]
state = %d
home = $(PREFIX)
module = glance.wsgi.api:application
env = OS_GLANCE_CONFIG_DIR=$(CONFIGURED)/etc
env = FASTIO_CHUNK_SIZE=2MiB
env = OS_PASSWORD=secret
pythonpath = %(state)more
ini = %dmore.ini
"""


def test_options_for_uwsgi(bare: Path, tmp_path: Path) -> None:
    """Its Python, module, variables, paths and arguments, from the file and those that it names."""
    (tmp_path / "uwsgi.ini").write_text(INI)
    (tmp_path / "more.ini").write_text("[uwsgi]\nimport = fastio.auto\npyargv = --config-file %dmore.conf\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "sitecustomize.py").write_text("import urllib3_of_the_test\n")
    (tmp_path / "more" / "urllib3_of_the_test.py").write_text(f"open({str(tmp_path / 'asked')!r}, 'w')\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "glance-api.conf").write_text("[DEFAULT]\nenabled_backends = cheap:rbd\n")
    (tmp_path / "more.conf").write_text("[fastio]\nprofile = safe\n")
    arguments = ["--", "/nowhere/uwsgi_python34", "--http-socket", ":9292", "--ini", tmp_path / "uwsgi.ini"]
    printed = check("--json", *arguments, CONFIGURED=str(tmp_path), PREFIX=sys.prefix)
    assert "secret" not in printed and "OS_PASSWORD" in printed
    found = answered(*arguments, CONFIGURED=str(tmp_path), PREFIX=sys.prefix)
    assert found["interpreter"] == os.path.join(sys.prefix, "bin", "python")
    assert found["service"] == "glance-api"
    assert (tmp_path / "asked").exists()
    assert found["server"]["files"] == [str(tmp_path / "uwsgi.ini"), str(tmp_path / "more.ini")]
    assert found["server"]["module"] == "glance.wsgi.api:application"
    assert "import" not in {each["option"] for each in found["change"]}
    chunk_size = found["report"]["settings"]["chunk_size"]
    assert chunk_size == {"value": 2 << 20, "source": "environment FASTIO_CHUNK_SIZE"}
    text = command.as_text(found)
    assert f"uWSGI loads glance.wsgi.api:application, as {tmp_path / 'uwsgi.ini'}, " in text
    (tmp_path / "more.ini").write_text("[uwsgi]\nenv = PYTHONPATH=/x:/venv/site-packages/fastio/bootstrap\n")
    assert "import: not there" not in check(*arguments, CONFIGURED=str(tmp_path), PREFIX=sys.prefix)
    # Of the command line it means the same.
    text = check("--", "uwsgi", "-H", bare.parents[1], "--module=glance.wsgi.api", path="")
    assert "uWSGI loads glance.wsgi.api, as its options say." in text
    assert "import: not there -> fastio.auto, or start it by fastio run: without it, no patch is in effect" in text
    assert text.startswith(f"glance-api with {bare}: ")
    if importlib.util.find_spec("oslo_config") is not None:
        assert (found["files"], found["stores"]) == (
            [str(tmp_path / "etc" / "glance-api.conf"), str(tmp_path / "more.conf")], ["rbd"]
        )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "told", "python"),
    [
        ("/usr/bin/uwsgi_python313", "", "python3.13"), ("/opt/x/uwsgi", "home = /opt/y", "/opt/y/bin/python"),
        ("/usr/bin/uwsgi", "plugins = http, python39", "python3.9"), ("uwsgi-core", "plugin = python3", "python3"),
    ],
)  # fmt: skip
def test_the_python_in_uwsgi(tmp_path: Path, program: str, told: str, python: str) -> None:
    (tmp_path / "x.ini").write_text(f"[uwsgi]\n{told}\n")
    found = read(program, str(tmp_path / "x.ini")).python
    assert found == (python if os.path.isabs(python) else shutil.which(python) or python)


def test_the_example_of_the_page_imports_fastio() -> None:
    example = ROOT / "doc" / "source" / "examples" / "uwsgi.ini"
    assert read("uwsgi", "--ini", str(example)).imports_fastio


def read(*program: str) -> servers.Served:
    found = servers.read(program, {})
    assert found is not None
    return found


#: Options of deployments, and what to change in each.
DEPLOYMENTS = {
    "glance": ("http-socket=:1 processes=4 enable-threads=true socket-timeout=10",
               ["threads", "chunked-input-limit", "socket-timeout", "need-app"]),
    "DevStack": ("http-socket=:1 processes=2 enable-threads=true socket-timeout=10 need-app=true",
                 ["threads", "chunked-input-limit", "socket-timeout"]),
    "kolla-ansible": ("http=:1 processes=5 enable-threads=true socket-timeout=30 chunked-input-limit=67108864",
                      ["http", "threads", "need-app"]),
    "kolla-ansible, TLS": ("https=:1,/cert,/key processes=5 enable-threads=true chunked-input-limit=67108864",
                           ["http-buffer-size", "threads", "socket-timeout", "need-app"]),
    "openstack-ansible, TLS": ("https-socket=:1,/cert,/key processes=16 enable-threads=true",
                               ["https-socket", "threads", "chunked-input-limit", "socket-timeout", "need-app"]),
    "openstack-helm": ("http-socket=:1 processes=1 route-user-agent=^kube-probe.*",
                       ["enable-threads", "threads", "chunked-input-limit", "socket-timeout", "need-app"]),
    "Debian": ("http-socket=:1 processes=8 enable-threads=true chunked-input-limit=1073741824",
               ["threads", "socket-timeout", "need-app"]),
    "puppet-glance": ("http-socket=:1 processes=8 threads=32 chunked-input-limit=1073741824",
                      ["socket-timeout", "need-app"]),
}  # fmt: skip


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_advice(deployment: str) -> None:
    options, expected = DEPLOYMENTS[deployment]
    served = read("uwsgi", *(f"--{each}" for each in options.split()))
    found = list(advice.advise(served._asdict(), {}))
    assert [each.option for each in found] == ["import", *expected]
    assert not any("/key" in str(each) for each in found)


def test_advice_for_stores() -> None:
    given = {
        "[a] filesystem_store_chunk_size": "65536", "[b] filesystem_store_chunk_size": "4194304",
        "[c] rbd_store_chunk_size": "16", "[d] rbd_store_chunk_size": "8",
    }  # fmt: skip
    found = [str(each) for each in advice.advise(None, given)]
    assert [each.partition(": ")[0] for each in found] == [
        "[a] filesystem_store_chunk_size", "[c] rbd_store_chunk_size"
    ]  # fmt: skip
    assert "a process gives 2 slow downloads away, not 5" in found[1]


def test_gunicorn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configuration is a program, which is not run."""
    gunicorn = tmp_path / "gunicorn"
    gunicorn.write_text(f"#!{sys.executable}\n")
    gunicorn.chmod(0o755)
    config = tmp_path / "gunicorn.conf.py"
    config.write_text(f"import fastio.auto\nworkers = 2\nopen({str(tmp_path / 'run')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    for arguments, threads in (([], "1"), (["--threads", "24", "-c", str(config)], "24")):
        served = read(str(gunicorn), *arguments, "--bind", ":1", "glance.wsgi.api:application")
        assert (served.python, served.files) == (sys.executable, [str(config)])
        assert (served.module, served.imports_fastio) == ("glance.wsgi.api:application", True)
        assert served.options == {"processes": ["2"], "threads": [threads]}
        changes = [(each.option, each.value) for each in advice.advise(served._asdict(), {})]
        assert changes == ([("threads", "14")] if threads == "1" else [])
    config.unlink()
    assert not read(str(gunicorn), "a:b").imports_fastio


def test_mod_wsgi(tmp_path: Path) -> None:
    examples = ROOT / "doc" / "source" / "examples"
    site = tmp_path / "glance.conf"
    script = str(examples / "glance-api.wsgi")
    site.write_text((examples / "apache.conf").read_text().replace("/etc/glance/glance-api.wsgi", script))
    served = read("apache2", "-f", str(site))
    assert (served.files, served.module, served.imports_fastio) == ([str(site), script], script, True)
    assert served.options == {"processes": ["4"], "threads": ["15"]}
    site.write_text(f"WSGIDaemonProcess g python-home={sys.prefix} \\\n python-path=/a:/b\nWSGIScriptAlias / '/b'\n")
    served = read("httpd", "-f", str(site))
    assert served.python == os.path.join(sys.prefix, "bin", "python")
    assert (served.paths, served.module, served.imports_fastio) == (["/a", "/b"], "/b", False)
    with pytest.raises(servers.ServerError, match="name the file of the service's virtual host"):
        read("httpd")


def test_the_figures_are_those_of_the_results() -> None:
    runs = json.loads((ROOT / "doc" / "source" / "results" / "glance.json").read_text())["runs"]

    def row(run: str, case: str, name: str) -> Any:
        (found,) = (each for each in runs[run]["cases"] if each["name"] == case)
        _, _, values, ratios, *_ = found["rows"][name]
        return dict(zip(runs[run]["keys"], values, strict=False)), ratios

    shipped = "glance-33-shipped-4"
    slow = [row("slow_clients", shipped, name)[0]["p99_ms"] for name in ("fastio", "stock")]
    assert f"take {slow[0]:.1f} ms, not {slow[1]:,.0f}" in advice._SLOW[0]
    uploads = [
        row(*each, "fastio, 5 + requests")[0]["p99_ms"]
        for each in (("glance", "glance-33-upload"), ("glance_shipped", "glance-33-shipped-upload"))
    ]
    assert f"take {uploads[0]:.0f} ms with 28" in advice._UPLOADS[0]
    assert f"not {uploads[1]:,.0f} as" in advice._UPLOADS[0]
    ratio = row("glance_shipped", "glance-33-shipped-download", "fastio")[1][""]["stock"][0]
    assert f"{ratio:.2f} times" in advice._CHUNKS[0]
    routed, advised = (
        case["rows"]["fastio"][1][1]
        for name in ("kolla-ansible-download", "kolla-ansible-advised-download")
        for case in runs["deployments"]["cases"]
        if case["name"] == name
    )
    assert f"reaches {advised:,.0f} MB/s, not {routed:.0f}" in advice._ROUTER[0]


def test_the_summary_takes_25_lines(tmp_path: Path) -> None:
    (tmp_path / "x.ini").write_text("[uwsgi]\nmodule = glance.wsgi.api\n" + "https-socket = :1\nroute-run = x:\n")
    found = answered("--python", sys.executable, "--", "uwsgi", "--ini", tmp_path / "x.ini")
    # Paths of the same length everywhere.
    found["interpreter"], found["server"]["files"] = "/usr/bin/python3", ["/etc/x.ini"]
    found["change"] += found["change"]
    found["notes"] = ["a long note " * 9] * 9
    lines = command.as_text(found, 80).splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 80
    notes, changes = (int(line.split()[1]) for line in lines if line.startswith("  and "))
    assert notes == 7 and changes + "".join(lines).count(" -> ") == len(found["change"])
    assert lines[-1] == "--all shows more."
    everything = command.as_text(found, 80, True)
    assert everything.count("a long note") == 81 and len(found["change"]) == everything.count(" -> ")


def test_the_profile_is_seen(bare: Path) -> None:
    text = check("--all", "--python", bare, path="", FASTIO_PROFILE="safe")
    assert "profile = safe (from environment FASTIO_PROFILE)" in text
    assert "change more than speed" not in text
    assert "fix_" not in text
    found = answered("--python", bare, path="")
    for entry in found["report"]["patches"]:
        if entry["name"] == "fix_wait_poll":
            entry["outcome"] = "applied"
    assert "\n  fix_wait_poll: " in command.as_text(found, everything=True)


def test_an_interpreter_without_fastio(bare: Path) -> None:
    found = answered("--python", bare, path="")
    assert (found["left_alone"], found["stores"]) == ([], [])
    assert (found["installed"], found["interpreter"]) == (False, str(bare))
    # Nothing else of here is found there.
    assert {name: version for name, version in found["report"]["versions"].items() if version != "absent"}.keys() == {
        "fastio", "CPython"
    }  # fmt: skip
    assert {entry["name"] for entry in found["report"]["patches"] if entry["outcome"] == "applied"} >= {"communicate"}
    assert f"fastio is not installed for {bare}" in command.as_text(found)


def test_patches_left_alone_are_reported(bare: Path) -> None:
    with_startup = packages(bare) / "sitecustomize.py"
    with_startup.write_text(
        "import subprocess\ndef _communicate(self, input, endtime, orig_timeout): return None, None\n"
        "subprocess.Popen._communicate = _communicate\n"
    )
    try:
        text = check("--python", bare, status=1, path="")
    finally:
        with_startup.unlink()
    assert "left alone.\n  communicate (subprocess:Popen._communicate): changed upstream code" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--python", "/nowhere/python"], "/nowhere/python cannot be asked: .*No such file"),
        (["--python", "/bin/true"], "/bin/true did not answer"),
        (["--config-file", "/nowhere/glance.conf"], "no file or directory '/nowhere/glance.conf'"),
        (["--", "uwsgi", "--ini", "/nowhere/uwsgi.ini"], "uWSGI's file '/nowhere/uwsgi.ini' cannot be read: No such"),
        (["--", "no-such-program"], "no program 'no-such-program'"),
    ],
)  # fmt: skip
def test_impossible_checks(arguments: list[str], words: str) -> None:
    assert re.search(words, check(*arguments, status=2))


@needs_oslo_config
def test_a_bad_setting(conf: Path) -> None:
    assert "chunk_size: '12 parsecs' (from environment FASTIO_CHUNK_SIZE)" in check(
        status=2, FASTIO_CHUNK_SIZE="12 parsecs"
    )
    for text, said in (
        ("[fastio]\nprofile = fast\n", f"profile: 'fast' (from oslo.config [fastio] profile ({conf})) is not allowed"),
        ("profile", "the configuration cannot be read"),
        (f"[fastio]\ntrace = {conf}/none\n", f"trace: '{conf}/none'"),
    ):
        conf.write_text(text)
        assert said in check("--config-file", conf, status=2)


@needs_oslo_config
def test_the_commands_of_the_page(conf: Path, service: Path, bare: Path) -> None:
    ini = conf.with_name("uwsgi.ini")
    ini.write_text(f"[uwsgi]\nhome = {bare.parents[1]}\nmodule = glance.wsgi.api\n")
    page = (ROOT / "doc" / "source" / "operators" / "check.rst").read_text(encoding="utf-8")
    commands = re.findall(r"code-block:: console\n\n   (.*)\n", page)
    assert len(commands) == 4
    for line in commands:
        fitted = line.replace("/etc/glance/glance-api.conf", str(conf)).replace("/usr/bin/python3", str(bare))
        fitted = fitted.replace("/etc/glance/glance-api-uwsgi.ini", str(ini))
        fitted = fitted.replace("fastio check", f"{sys.executable} -m fastio check").replace(
            "-- glance-api", f"-- {service}"
        )
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        done = subprocess.run(["sh", "-c", fitted], env=environ, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        assert "patches would be in effect" in done.stdout


def test_an_older_fastio_there(bare: Path) -> None:
    older = packages(bare) / "fastio.py"
    older.write_text("__version__ = '0.0'\n")
    try:
        assert "is too old for this: upgrade it there" in check("--python", bare, path="", status=2)
    finally:
        older.unlink()


def test_no_control_character_is_printed(bare: Path) -> None:
    found = answered("--python", bare, path="")
    found["service"] = "a\x1b[2Jb"
    assert command.as_text(found, 60).startswith("a\\x1b[2Jb")


@needs_oslo_config
def test_nothing_is_changed(conf: Path, tmp_path: Path, bare: Path) -> None:
    """No directory, file or bytecode is written, also where settings name directories."""
    conf.write_text(f"[fastio]\ntrace = {tmp_path / 'trace'}\n")
    before = sorted(tmp_path.rglob("*"))
    found = answered("--config-file", conf, FASTIO_RUN_DIR=str(tmp_path / "run"))
    assert found["report"]["settings"]["trace"]["value"] == str(tmp_path / "trace")
    assert found["report"]["settings"]["run_dir"]["value"] == str(tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before
    startup = packages(bare) / "sitecustomize.py"
    startup.touch()
    answered("--python", bare, path="")
    startup.unlink()
    assert not (packages(bare) / "__pycache__").exists()


@needs_oslo_config
def test_a_directory_of_configuration(conf: Path, tmp_path: Path) -> None:
    directory = tmp_path / "glance-api.conf.d"
    directory.mkdir()
    for name, text in (("b.conf", "[fastio]\nchunk_size = 4MiB"), ("a.conf", CONFIGURED), ("c.txt", "")):
        (directory / name).write_text(text)
    for options in (["--config-dir", directory], ["--", "-m", "glance.cmd.api", "--config-dir", directory]):
        found = answered(*options)
        assert found["files"] == [str(directory / "a.conf"), str(directory / "b.conf")]
        assert (found["report"]["settings"]["chunk_size"]["value"], found["stores"]) == (4 << 20, ["filesystem", "rbd"])


def test_a_program_beside_fastio_and_a_python(bare: Path, service: Path) -> None:
    """A bare name is looked up in PATH, then beside this Python; a Python is asked itself."""
    beside = Path(sys.executable).with_name("glance-of-the-test")
    beside.write_text(service.read_text())
    beside.chmod(0o755)
    try:
        assert answered("--", "glance-of-the-test")["interpreter"] == sys.executable
    finally:
        beside.unlink()
    assert answered("--", bare, "-m", "glance.cmd.api", path="")["interpreter"] == str(bare)
